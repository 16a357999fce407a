"""What a configuration may say: the keys of worker and connector, checked and looked up."""
