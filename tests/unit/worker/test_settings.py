"""Settings: read from the environment, all wrong ones named, no secret shown."""

import pytest
from pydantic import ValidationError

from oncebox_worker.settings import RelaySettings, WorkerSettings

ALL = {
    "ONCEBOX_DATABASE_URL": "postgresql://x/y",
    "ONCEBOX_BROKER_URL": "amqp://x",
    "ONCEBOX_NOTES_URL": "http://x",
    "ONCEBOX_TOKEN": "token-canary",
}


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name, value in ALL.items():
        monkeypatch.setenv(name, value)
    return monkeypatch


def worker() -> WorkerSettings:
    return WorkerSettings()  # pyright: ignore[reportCallIssue] from the environment


def test_four_variables_suffice(environment: pytest.MonkeyPatch) -> None:
    """Everything else has a default under which the guarantees hold."""
    settings = worker()
    assert settings.token.get_secret_value() == "token-canary"
    assert "token-canary" not in repr(settings)
    assert settings.lease_s >= settings.call_timeout_s + 20


def test_the_policy_has_these_numbers(environment: pytest.MonkeyPatch) -> None:
    """What the outbox works by comes from the settings."""
    environment.setenv("ONCEBOX_LEASE_S", "50")
    environment.setenv("ONCEBOX_BUDGET", "3")
    environment.setenv("ONCEBOX_RETRY_CEILING_S", "7")
    policy = worker().policy()
    assert (policy.lease_s, policy.budget, policy.schedule.ceiling_s, policy.redispatch_s) == (50, 3, 7, 60)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ONCEBOX_BROKER_URL", "memory://"),
        ("ONCEBOX_BROKER_URL", "127.0.0.1:5672"),
        ("ONCEBOX_BROKER_URL", "filesystem://"),
        ("ONCEBOX_QUEUE_PREFIX", "two words"),
        ("ONCEBOX_QUEUE_PREFIX", ""),
        ("ONCEBOX_CHUNK", "0"),
        ("ONCEBOX_CHUNK", "501"),
        ("ONCEBOX_LEASE_S", "0"),
        ("ONCEBOX_LEASE_S", "nan"),
        ("ONCEBOX_BUDGET", "0"),
        ("ONCEBOX_CONCURRENCY", "0"),
        ("ONCEBOX_CALL_TIMEOUT_S", "-1"),
        ("ONCEBOX_LOG_LEVEL", "loud"),
    ],
)
def test_a_value_that_cannot_work_is_refused(environment: pytest.MonkeyPatch, name: str, value: str) -> None:
    """It is named, and the other values, the token among them, are not printed."""
    environment.setenv(name, value)
    with pytest.raises(ValidationError) as refused:
        worker()
    assert [str(fault["loc"][0]) for fault in refused.value.errors()] == [
        name.removeprefix("ONCEBOX_").lower()
    ]
    assert "token-canary" not in str(refused.value)


def test_all_that_is_missing_is_named_at_once(environment: pytest.MonkeyPatch) -> None:
    """One start shows them all; what is set is not shown."""
    for name in ("ONCEBOX_DATABASE_URL", "ONCEBOX_BROKER_URL"):
        environment.delenv(name)
    with pytest.raises(ValidationError) as refused:
        worker()
    assert {fault["loc"][0] for fault in refused.value.errors()} == {"database_url", "broker_url"}
    assert "token-canary" not in str(refused.value)


def test_a_relay_needs_no_receiver(environment: pytest.MonkeyPatch) -> None:
    """It reaches the database and the broker only; a token in its environment is not even read."""
    for name in ("ONCEBOX_NOTES_URL", "ONCEBOX_TOKEN"):
        environment.delenv(name)
    settings = RelaySettings()  # pyright: ignore[reportCallIssue] from the environment
    assert not hasattr(settings, "token")
