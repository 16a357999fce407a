"""Java's semantics where compatibility needs them: text, numbers, regex, dates, JSON; imports nothing of ours."""
