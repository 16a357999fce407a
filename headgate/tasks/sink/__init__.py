"""Sink tasks: fetch, through the pipeline, put, commit."""
