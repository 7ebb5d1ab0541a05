"""Settings that would void the guarantees: the process does not start, and says what to change."""

import pytest

from tests.acceptance.town import Town


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({"ONCEBOX_LEASE_S": "25", "ONCEBOX_CALL_TIMEOUT_S": "10"}, "ONCEBOX_LEASE_S"),
        # Found by another layer than the first; Celery must not swallow it and start all the same.
        ({"ONCEBOX_CONNECT_TIMEOUT_S": "10", "ONCEBOX_CALL_TIMEOUT_S": "10"}, "connect_timeout_s"),
    ],
)
def test_a_worker_whose_settings_contradict_each_other_does_not_start(
    town: Town, settings: dict[str, str], names: str
) -> None:
    """Invariant 9: exit 1, with the setting's name and no traceback."""
    ended = town.oncebox("worker", **settings)
    assert ended.returncode == 1, ended.stderr
    assert names in ended.stderr
    assert "Traceback" not in ended.stderr
