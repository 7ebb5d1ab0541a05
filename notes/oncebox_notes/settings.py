"""What an operator can set. Only `__main__` builds this from the environment; everybody else gets the value."""

from pathlib import Path
from typing import Final, Self

from pydantic import Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

TOMBSTONE_MARGIN_SECONDS: Final = 86_400
"""How long a tombstone outlives the last packet that could still be admitted, in seconds."""

TITLE_LIMIT: Final = 300
"""Longest title, in characters."""

FOLDER_DEPTH_LIMIT: Final = 8
"""Deepest folder path, in segments."""

FOLDER_LENGTH_LIMIT: Final = 512
"""Longest folder path, in characters, after decoding."""


class Settings(BaseSettings):
    """Settings of one note service process; every field is read from `ONCEBOX_NOTES_<FIELD>`.

    `request_limit_seconds` is the published hard limit: counted from the moment a request is admitted, its
    transaction cannot commit later than that. `TimeBudget` in `database` says how it is kept.
    """

    model_config = SettingsConfigDict(env_prefix="ONCEBOX_NOTES_", frozen=True, extra="ignore")

    database_url: SecretStr
    host: str = "127.0.0.1"
    port: int = Field(default=8320, ge=0, le=65_535)
    admission_window_seconds: int = Field(default=604_800, gt=0)
    lock_timeout_seconds: float = Field(default=2.0, gt=0)
    request_limit_seconds: float = Field(default=30.0, gt=0)
    batch_max_items: int = Field(default=500, gt=0, le=500)
    note_max_bytes: int = Field(default=262_144, gt=0)
    body_max_bytes: int = Field(default=8_388_608, gt=0)
    pool_size: int = Field(default=8, gt=0)
    rate_limit_per_token: float | None = Field(default=None, gt=0)
    """Operations a second for one token; none means no limit."""
    access_log: Path | None = None
    """Where the access log goes; none means stderr."""
    log_level: str = "INFO"

    @model_validator(mode="after")
    def _lock_timeout_fits(self) -> Self:
        longest = self.request_limit_seconds / 6
        if self.lock_timeout_seconds >= longest:
            raise ValueError(
                f"lock_timeout_seconds is {self.lock_timeout_seconds}, and must be below a sixth of"
                f" request_limit_seconds ({longest}): raise the request limit or lower the lock timeout"
            )
        return self

    @property
    def tombstone_retention_seconds(self) -> int:
        """How long a tombstone is kept at least, in seconds after it was made."""
        return self.admission_window_seconds + TOMBSTONE_MARGIN_SECONDS
