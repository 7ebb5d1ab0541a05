"""The documents of the note service that are read, not written: capabilities, notes, folders."""

from collections.abc import Sequence
from typing import Final

from pydantic import AwareDatetime, BaseModel, Field, TypeAdapter, ValidationError

from oncebox_destinations.protocol import StoredNote
from oncebox_destinations.received_json import Garbage, Object
from oncebox_models.calls import Capabilities


class _Batch(BaseModel):
    max_items: int = Field(gt=0)
    max_bytes: int = Field(gt=0)


class _Capabilities(BaseModel):
    receiver: str = Field(min_length=1)
    batch: _Batch
    admission_window_s: float = Field(gt=0, allow_inf_nan=False)
    request_limit_s: float = Field(gt=0, allow_inf_nan=False)
    tombstone_retention_s: float = Field(gt=0, allow_inf_nan=False)
    server_time: AwareDatetime


class _Folder(BaseModel):
    path: str


class _Folders(BaseModel):
    folders: list[_Folder]


_STORED_NOTE: Final = TypeAdapter(StoredNote)


def capabilities(document: Object) -> Capabilities:
    """What the receiver says of itself; members we do not know are left out. Raises Garbage."""
    try:
        said = _Capabilities.model_validate(document)
    except ValidationError as error:
        raise _garbage(error) from error
    return Capabilities(
        receiver=said.receiver,
        batch_items=said.batch.max_items,
        batch_bytes=said.batch.max_bytes,
        admission_window_s=said.admission_window_s,
        request_limit_s=said.request_limit_s,
        tombstone_retention_s=said.tombstone_retention_s,
        server_time=said.server_time,
    )


def stored_note(document: Object) -> StoredNote:
    """One version of a note. Raises Garbage."""
    try:
        return _STORED_NOTE.validate_python(dict(document))
    except ValidationError as error:
        raise _garbage(error) from error


def folders(document: Object) -> Sequence[str]:
    """The paths of the folders. Raises Garbage."""
    try:
        return [folder.path for folder in _Folders.model_validate(document).folders]
    except ValidationError as error:
        raise _garbage(error) from error


def _garbage(error: ValidationError) -> Garbage:
    faults = error.errors(include_url=False, include_input=False)
    return Garbage("; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in faults))
