"""The hash over an operation's arguments, `jcs-sha256/1`.

SHA-256 over the RFC 8785 canonical JSON of `{"v": 1, "kind": KIND, "arguments": ARGUMENTS}`, with the arguments
as they were sent. They hold strings only, and for those (with names in ASCII) sorted keys and the shortest
escapes are the canonical form; a property test holds this against a full implementation.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Final

_encoder: Final = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def canonical_bytes(kind: str, arguments: Mapping[str, str]) -> bytes:
    """The bytes that are hashed; raises UnicodeEncodeError on a lone surrogate."""
    return _encoder.encode({"v": 1, "kind": kind, "arguments": arguments}).encode("utf-8")


def args_hash(kind: str, arguments: Mapping[str, str]) -> str:
    """64 lower-case hexadecimal digits."""
    return hashlib.sha256(canonical_bytes(kind, arguments)).hexdigest()
