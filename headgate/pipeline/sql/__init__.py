"""Between two parts of a chain: records as rows for a statement, and its rows as records."""
