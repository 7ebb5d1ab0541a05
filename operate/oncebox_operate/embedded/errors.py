"""The errors of the embedded servers."""


class EmbeddedError(Exception):
    """An embedded server cannot be prepared, started or stopped; the message says what to do."""


class FolderInUse(EmbeddedError):
    """Another process works with this data; the message says which."""
