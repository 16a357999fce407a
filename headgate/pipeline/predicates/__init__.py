"""Apache's predicates, one each."""
