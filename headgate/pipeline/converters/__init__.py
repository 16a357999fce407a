"""Converters, one each."""
