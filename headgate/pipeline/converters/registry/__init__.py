"""Converters for a Confluent-compatible schema registry: Avro, JSON Schema, Protobuf.

They need the extra `headgate[registry]`. Nothing here imports it before a converter is configured, so that the classes
are found without it and can say what to install.
"""
