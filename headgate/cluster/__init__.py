"""A cluster of workers: who is in it, and who does what."""
