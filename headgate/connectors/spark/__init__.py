"""Connectors that read and write with Spark."""
