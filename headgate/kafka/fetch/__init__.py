"""Kafka's own bytes: fetches, and the record batches in them as Arrow columns."""
