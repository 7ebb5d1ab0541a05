"""The one error of the embedded servers."""


class EmbeddedError(Exception):
    """An embedded server cannot be prepared, started or stopped; the message says what to do."""
