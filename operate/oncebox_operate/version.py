"""Which Oncebox this is."""

from importlib.metadata import PackageNotFoundError, version
from typing import Final


def _installed() -> str:
    try:
        return version("oncebox")
    except PackageNotFoundError:
        # A source tree on the path, not installed.
        return "unknown"


ONCEBOX: Final = _installed()
