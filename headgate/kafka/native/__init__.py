"""librdkafka by columns: its own calls, and producers that take whole Arrow columns."""
