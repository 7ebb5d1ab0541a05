"""Ids of notes: UUIDs of version 7, which grow with time and so keep the index's newest page warm."""

import secrets
import time
from uuid import UUID


def new() -> UUID:
    """48 bits of milliseconds, then random bits."""
    milliseconds = time.time_ns() // 1_000_000
    random = secrets.randbits(74)
    high, low = random >> 62, random & (2**62 - 1)
    return UUID(int=(milliseconds & (2**48 - 1)) << 80 | 0x7 << 76 | high << 64 | 0b10 << 62 | low)
