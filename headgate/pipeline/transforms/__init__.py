"""Apache's transforms, one each, and what they share."""
