"""HTTP in front of the herder."""
