"""What must be there besides Python: Java itself, and jars, fetched once."""
