"""Built-in config providers, written with api only."""
