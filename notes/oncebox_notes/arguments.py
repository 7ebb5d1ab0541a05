"""The arguments of the two kinds of operation: closed schemas of strings, all faults reported at once."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeGuard, assert_never
from uuid import UUID

from oncebox_notes import canonical, folders
from oncebox_notes.problems import Code, Fault
from oncebox_notes.settings import TITLE_LIMIT
from oncebox_notes.strict_json import AmbiguousObject, Json

Kind = Literal["note.create", "note.revise"]

KINDS: Final[tuple[Kind, ...]] = ("note.create", "note.revise")
FORMATS: Final = ("markdown", "plain")

_REQUIRED: Final[dict[Kind, tuple[str, ...]]] = {
    "note.create": ("folder", "title", "text"),
    "note.revise": ("note_id", "if_match", "title", "text"),
}
_OPTIONAL: Final = ("format",)


@dataclass(frozen=True, slots=True)
class Content:
    """What a version of a note holds."""

    title: str
    text: str
    format: str


@dataclass(frozen=True, slots=True)
class Create:
    """`folder` is the resolved path."""

    folder: str
    content: Content
    args_hash: str


@dataclass(frozen=True, slots=True)
class Revise:
    """`if_match` is the tag without quotes."""

    note_id: UUID
    if_match: str
    content: Content
    args_hash: str


def is_kind(value: Json) -> TypeGuard[Kind]:
    return value in KINDS


def closed_object(
    value: Json, required: Collection[str], optional: Collection[str], path: str, faults: list[Fault]
) -> Mapping[str, Json]:
    """The known names of an object; a doubtful or unknown name is a fault, a missing one is for the caller."""
    if not isinstance(value, dict):
        faults.append(Fault("invalid_argument", path, "must be an object"))
        return {}
    if isinstance(value, AmbiguousObject):
        faults.append(Fault("invalid_argument", path, f"has the name {value.repeated[:64]!r} twice"))
    unknown = [name for name in value if name not in required and name not in optional]
    if unknown:
        known = ", ".join([*required, *optional])
        named = ", ".join(repr(name[:64]) for name in unknown[:8])
        faults.append(
            Fault("invalid_argument", path, f"has the unknown field {named}; known fields are {known}")
        )
    return value


def parse(
    kind: Kind, value: Json, note_max_bytes: int, path: str, faults: list[Fault]
) -> Create | Revise | None:
    """The arguments of one operation, found at `path` ("" is the body itself); what is wrong goes to `faults`."""
    before = len(faults)
    required = _REQUIRED[kind]
    found = closed_object(value, required, _OPTIONAL, path or "the body", faults)
    prefix = f"{path}." if path else ""
    strings: dict[str, str] = {}
    for name in (*required, *_OPTIONAL):
        if name in found:
            checked = _string(found[name], prefix + name)
            if isinstance(checked, Fault):
                faults.append(checked)
            else:
                strings[name] = checked
        elif name in required and isinstance(value, dict):
            code: Code = "precondition_required" if name == "if_match" else "invalid_argument"
            faults.append(Fault(code, prefix + name, "is required"))
    faults += _content_faults(strings, note_max_bytes, prefix)
    match kind:
        case "note.create":
            folder = _folder(strings, prefix, faults)
            if len(faults) > before:
                return None
            return Create(folder, _content(strings), canonical.args_hash(kind, strings))
        case "note.revise":
            note_id = _note_id(strings, prefix, faults)
            if len(faults) > before or note_id is None:
                return None
            return Revise(note_id, strings["if_match"], _content(strings), canonical.args_hash(kind, strings))
        case _:
            assert_never(kind)


def _string(value: Json, path: str) -> str | Fault:
    if not isinstance(value, str):
        return Fault("invalid_argument", path, "must be a string")
    if "\x00" in value:
        return Fault("invalid_argument", path, f"has a NUL character at position {value.index(chr(0))}")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        return Fault("invalid_argument", path, f"has a lone surrogate at position {error.start}")
    return value


def _content_faults(strings: Mapping[str, str], note_max_bytes: int, prefix: str) -> list[Fault]:
    faults: list[Fault] = []

    def fault(name: str, message: str, code: Code = "invalid_argument") -> None:
        faults.append(Fault(code, prefix + name, message))

    title = strings.get("title")
    if title is not None and not title.strip():
        fault("title", "must not be blank")
    if title is not None and len(title) > TITLE_LIMIT:
        fault("title", f"has {len(title)} characters; the limit is {TITLE_LIMIT}")
    size = len(strings.get("text", "").encode("utf-8"))
    if size > note_max_bytes:
        fault("text", f"has {size} bytes; the limit is {note_max_bytes}", "too_large")
    if strings.get("format", FORMATS[0]) not in FORMATS:
        fault("format", f"must be one of {', '.join(FORMATS)}")
    return faults


def _content(strings: Mapping[str, str]) -> Content:
    return Content(strings["title"], strings["text"], strings.get("format", FORMATS[0]))


def _folder(strings: Mapping[str, str], prefix: str, faults: list[Fault]) -> str:
    if "folder" not in strings:
        return ""
    try:
        return folders.resolve(strings["folder"])
    except folders.InvalidFolderError as error:
        faults.append(Fault("invalid_argument", f"{prefix}folder", str(error)))
        return ""


def _note_id(strings: Mapping[str, str], prefix: str, faults: list[Fault]) -> UUID | None:
    if "if_match" in strings and not strings["if_match"].strip():
        faults.append(
            Fault("precondition_required", f"{prefix}if_match", "must be the etag that you have read")
        )
    note_id = parse_note_id(strings.get("note_id", ""))
    if "note_id" in strings and note_id is None:
        faults.append(Fault("invalid_argument", f"{prefix}note_id", "must be the id of a note, a UUID"))
    return note_id


def parse_note_id(value: str) -> UUID | None:
    """A note's id in its canonical form; none for anything else."""
    try:
        note_id = UUID(value)
    except ValueError:
        return None
    return note_id if str(note_id) == value else None
