"""Decisions: what should run, what to do next; no Kafka, no Spark, no HTTP."""
