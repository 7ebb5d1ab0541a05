"""Settings that contradict a guarantee: one step beyond what fits is named, with what to change. Needs no server."""

from dataclasses import replace
from typing import Any

import pytest
from pydantic import SecretStr

from oncebox_models.calls import Capabilities
from oncebox_worker import safe_settings
from oncebox_worker.safe_settings import UnsafeSettings
from oncebox_worker.settings import WorkerSettings
from tests.integration.worker.parties import CAPABILITIES

# The receiver's numbers that just fit a worker's defaults, in seconds and operations.
JUST_FITS = replace(
    CAPABILITIES, admission_window_s=604_800.0, batch_items=100, tombstone_retention_s=604_840.0
)


def worker(**changes: Any) -> WorkerSettings:
    given: dict[str, Any] = {
        "database_url": "postgresql://x/y",
        "broker_url": "amqp://x",
        "notes_url": "http://x",
        "token": SecretStr("x"),
    }
    return WorkerSettings(**(given | changes))


def test_a_lease_that_may_end_before_its_call_is_named() -> None:
    """Else two workers call for one operation, and the first one's answer is thrown away."""
    safe_settings.check_times(worker(lease_s=30, call_timeout_s=10))
    with pytest.raises(UnsafeSettings, match="ONCEBOX_LEASE_S to at least 30"):
        safe_settings.check_times(worker(lease_s=29.9, call_timeout_s=10))


@pytest.mark.parametrize(
    ("told", "words"),
    [
        pytest.param(replace(JUST_FITS, tombstone_retention_s=604_839.0), "forgets a sealed key", id="tombstones"),
        pytest.param(replace(JUST_FITS, admission_window_s=259_199.0), "259200 s", id="admission window"),
        pytest.param(replace(JUST_FITS, batch_items=99), "ONCEBOX_CHUNK to 99", id="batch"),
    ],
)  # fmt: skip
def test_a_receiver_that_does_not_fit_is_named(told: Capabilities, words: str) -> None:
    """A receiver that forgets a sealed key while a packet may still come would execute what we called not saved."""
    safe_settings.check_receiver(worker(), JUST_FITS)
    with pytest.raises(UnsafeSettings, match=words):
        safe_settings.check_receiver(worker(), told)
