"""The frozen bytes of an operation's arguments, and their hash (`jcs-sha256/1`).

Arguments are objects of strings with ASCII names. For those, the standard library's encoder with sorted keys
writes the bytes of RFC 8785; `tests/unit/test_canonical.py` holds it against the `rfc8785` package.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Final

HASH_ALG: Final = "jcs-sha256/1"


def canonical_arguments(arguments: Mapping[str, str]) -> str:
    """The canonical JSON of `arguments`: what is stored, sent byte for byte, and hashed."""
    return json.dumps(dict(arguments), sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def args_hash(kind: str, canonical: str) -> str:
    """SHA-256 (64 hex digits) over the canonical JSON of {"arguments", "kind", "v": 1}."""
    text = f'{{"arguments":{canonical},"kind":{json.dumps(kind, ensure_ascii=False)},"v":1}}'
    return hashlib.sha256(text.encode()).hexdigest()
