"""The kinds of operation and the shape of their arguments: closed schemas of strings."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final, Literal, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from oncebox_models.names import wrong_text

TITLE_LENGTH: Final = 300
"""Longest title, in characters."""
TEXT_BYTES: Final = 256 * 1024
"""Longest text of a note, in UTF-8 bytes."""
FOLDER_LENGTH: Final = 500
"""Longest folder path, in characters."""


class Kind(StrEnum):
    """What is to be written."""

    NOTE_CREATE = "note.create"
    NOTE_REVISE = "note.revise"


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with an input: where (`arguments.title`), and what to do about it."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


def _storable(value: str) -> str:
    if wrong := wrong_text(value):
        raise ValueError(wrong)
    return value


def _not_blank(value: str) -> str:
    if not value.strip():
        raise ValueError("is blank")
    return value


def _small_enough(value: str) -> str:
    size = len(value.encode())
    if size > TEXT_BYTES:
        raise ValueError(
            f"is {size:,} bytes of UTF-8; at most {TEXT_BYTES:,} are allowed. Split it into several notes"
        )
    return value


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class NoteCreate(_Arguments):
    """Arguments of `note.create`: a new note in a folder."""

    folder: Annotated[
        str, Field(max_length=FOLDER_LENGTH), AfterValidator(_not_blank), AfterValidator(_storable)
    ]
    title: Annotated[
        str, Field(max_length=TITLE_LENGTH), AfterValidator(_not_blank), AfterValidator(_storable)
    ]
    text: Annotated[str, AfterValidator(_storable), AfterValidator(_small_enough)]
    format: Literal["markdown", "plain"] = "markdown"


class NoteRevise(_Arguments):
    """Arguments of `note.revise`: a new version of a note, if it still is at the version `if_match` names."""

    note_id: Annotated[str, Field(max_length=128), AfterValidator(_not_blank), AfterValidator(_storable)]
    if_match: Annotated[str, Field(max_length=200), AfterValidator(_not_blank), AfterValidator(_storable)]
    title: Annotated[
        str, Field(max_length=TITLE_LENGTH), AfterValidator(_not_blank), AfterValidator(_storable)
    ]
    text: Annotated[str, AfterValidator(_storable), AfterValidator(_small_enough)]
    format: Literal["markdown", "plain"] = "markdown"


_SCHEMAS: Final[Mapping[str, type[_Arguments]]] = {Kind.NOTE_CREATE: NoteCreate, Kind.NOTE_REVISE: NoteRevise}


def check_arguments(kind: str, arguments: Mapping[str, object]) -> tuple[dict[str, str], list[Fault]]:
    """The arguments as they will be stored (defaults filled in), and every fault found.

    With faults the first value is empty.
    """
    schema = _SCHEMAS.get(kind) if isinstance(kind, str) else None  # pyright: ignore[reportUnnecessaryIsInstance] (input)
    if schema is None:
        return {}, [Fault("kind", f"{kind!r} is not known here; known kinds: {', '.join(_SCHEMAS)}")]
    if not isinstance(arguments, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] (input)
        return {}, [Fault("arguments", f"must be an object of strings, got {type(arguments).__name__}")]
    try:
        return schema.model_validate(dict(arguments)).model_dump(), []
    except ValidationError as error:
        return {}, [
            Fault(
                ".".join(("arguments", *(str(part) for part in fault["loc"]))), _message(fault["type"], fault)
            )
            for fault in error.errors(include_url=False)
        ]


def _message(fault_type: str, fault: Mapping[str, object]) -> str:
    limits = cast(
        "Mapping[str, object]", fault.get("ctx", {})
    )  # pydantic: "ctx" is a dict of str when present
    value = fault.get("input")
    match fault_type:
        case "string_too_long":
            length = len(value) if isinstance(value, str) else 0
            return f"has {length} characters; at most {limits.get('max_length')} are allowed"
        case "string_unicode":
            return "holds a lone surrogate; it is not valid Unicode text"
        case "string_type":
            # Not the value itself: it may be the text, in bytes, and a fault is what people log.
            return f"must be a string, got {type(value).__name__}"
        case "missing":
            return "is required"
        case "extra_forbidden":
            return "is not an argument of this kind; remove it"
        case "value_error":
            return str(limits.get("error"))
        case _:
            return str(fault.get("msg"))
