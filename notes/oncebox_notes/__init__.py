"""The note service: the party that receives notes and records each of them once.

It shares no code with the sender. What both sides share is the wire, described in `docs/wire/`.
"""

from typing import Final

VERSION: Final = "0.1.0"
