"""New files in folders, as records."""
