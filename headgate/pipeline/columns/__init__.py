"""Values of one shape by columns: JSON in, transforms, text out, with no object for any record."""
