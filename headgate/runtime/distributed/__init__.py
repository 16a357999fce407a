"""A worker among others: what the group gives it, and what it does for the group."""
