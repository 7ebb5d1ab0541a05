"""Finding secrets in what processes left behind, in whatever form they were written down.

A part of a secret is a find, too: logs are cut. What was found is told without the secret itself.
"""

import base64
import binascii
import html
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote_to_bytes

PART: Final = 8
"""Characters in a row, white space left out, that count as a find. Random ones do not meet by chance."""
_SPACE: Final = re.compile(rb"\s+")
_ESCAPE: Final = re.compile(
    rb"\\(?:u([0-9A-Fa-f]{4})(?:\\u([dD][c-fC-F][0-9A-Fa-f]{2}))?|x([0-9A-Fa-f]{2})|(.))"
)
_BASE64: Final = re.compile(rb"[A-Za-z0-9+/_-]{11,}")
_HEXADECIMAL: Final = re.compile(rb"(?:[0-9A-Fa-f]{2}){%d,}" % PART)
_LETTERS: Final = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"f": b"\f"}


@dataclass(frozen=True, slots=True)
class Find:
    """`secret`: its name. `where`: what was looked at. `form`: how it was written there, from the outside in."""

    secret: str
    where: str
    form: str

    def __str__(self) -> str:
        return f"{self.secret} in {self.where} ({self.form})"


class Scanner:
    """Looks for the secrets, given by name."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._parts = {name: _parts(secret) for name, secret in secrets.items()}

    def look_at(self, where: str, data: bytes | str) -> list[Find]:
        """One find for each secret that is in the data, in its plainest form."""
        raw = data.encode(errors="surrogateescape") if isinstance(data, str) else data
        missing, finds = dict(self._parts), list[Find]()
        for form, view in _views(raw):
            for name in [name for name, parts in missing.items() if any(part in view for part in parts)]:
                finds.append(Find(name, where, form))
                del missing[name]
        return finds

    def look_at_files(self, files: Mapping[str, Path]) -> list[Find]:
        """The same for files, each under the name that a person knows it by."""
        return [find for where, file in files.items() for find in self.look_at(where, file.read_bytes())]


def _parts(secret: str) -> list[bytes]:
    """Its bytes, white space left out: all runs of `PART` characters."""
    packed = "".join(secret.split())
    if len(packed) < PART:
        raise ValueError(f"a secret of {len(packed)} characters would be found by chance")
    return [packed[at : at + PART].encode() for at in range(len(packed) - PART + 1)]


def _views(raw: bytes) -> Iterator[tuple[str, bytes]]:
    """The data as it is and as the decoders see it, one after another and two in a row; without white space, since a
    line may be broken anywhere."""
    plain = _packed(raw)
    yield "as it is", plain
    for name, decode in _DECODERS.items():
        once = _packed(decode(plain))
        if once == plain:
            continue
        yield name, once
        for inner in _INNER:
            twice = _packed(_DECODERS[inner](once))
            if twice != once:
                yield f"{name}, {inner}", twice


def _packed(data: bytes) -> bytes:
    return _SPACE.sub(b"", data)


def _unescaped(data: bytes) -> bytes:
    """Backslash escapes of JSON, and of Python's repr."""

    def plain(match: re.Match[bytes]) -> bytes:
        unit, second, byte, letter = match.groups()
        if unit is not None:
            units = b"".join(bytes.fromhex(half.decode()) for half in (unit, second) if half)
            return units.decode("utf-16-be", errors="replace").encode()
        if byte is not None:
            return bytes.fromhex(byte.decode())
        return _LETTERS.get(letter, letter)

    return _ESCAPE.sub(plain, data)


def _from_base64(data: bytes) -> bytes:
    """All that may be base64, of either alphabet and wrapped, from each of the four places where it may begin."""
    decoded = list[bytes]()
    for run in _BASE64.findall(data.replace(b"\\n", b"")):
        standard = run.translate(bytes.maketrans(b"-_", b"+/"))
        for start in range(4):
            whole = standard[start : start + (len(standard) - start) // 4 * 4]
            rest = standard[start + len(whole) :]
            tail = rest + b"=" * (-len(rest) % 4) if len(rest) > 1 else b""
            decoded.append(base64.b64decode(whole + tail))
    return b"\n".join(decoded)


def _from_hexadecimal(data: bytes) -> bytes:
    """All that may be hexadecimal digits, from both places where they may begin."""
    decoded = list[bytes]()
    for match in _HEXADECIMAL.finditer(data):
        for digits in (match[0], match[0][1:-1]):
            decoded.append(binascii.unhexlify(digits))
    return b"\n".join(decoded)


def _from_html(data: bytes) -> bytes:
    return html.unescape(data.decode(errors="surrogateescape")).encode(errors="surrogateescape")


_DECODERS: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "escaped": _unescaped,
    "percent-encoded": unquote_to_bytes,
    "HTML": _from_html,
    "base64": _from_base64,
    "hexadecimal": _from_hexadecimal,
}
_INNER: Final = ("escaped", "percent-encoded")
"""What may be found inside another form: JSON in base64, JSON in a string of JSON, a URL in JSON."""
