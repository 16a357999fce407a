"""Datagen: believable records of a schema, at a rate, exactly repeatable."""
