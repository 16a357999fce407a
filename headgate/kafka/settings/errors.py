"""The one error of client settings."""


class ClientConfigError(ValueError):
    """A setting that cannot be done; the message is one sentence that says what to use instead."""
