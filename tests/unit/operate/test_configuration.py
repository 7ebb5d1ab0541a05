"""Where a setting's value comes from, and what of it may be shown."""

import pytest

from oncebox_operate import configuration, settings_catalogue
from oncebox_operate.configuration import Given, Origin, without_password
from oncebox_operate.settings_catalogue import Secrecy, Setting
from oncebox_worker.settings import RelaySettings, WorkerSettings

LEASE = Setting("ONCEBOX_LEASE_S", "how long a claim lasts", "relay, worker", "s", "45")
URL = Setting("ONCEBOX_DATABASE_URL", "the sender's PostgreSQL", "all", secrecy=Secrecy.URL)
TOKEN = Setting("ONCEBOX_TOKEN", "our token", "worker", secrecy=Secrecy.SECRET)


def test_every_setting_of_a_role_is_in_the_catalogue_with_its_own_default() -> None:
    assert settings_catalogue.role_fields() == {*RelaySettings.model_fields, *WorkerSettings.model_fields}
    told = {setting.variable: setting for setting in settings_catalogue.settings()}
    assert (told["ONCEBOX_LEASE_S"].default, told["ONCEBOX_LEASE_S"].unit) == ("45", "s")
    assert (told["ONCEBOX_IDLE_POLL_S"].read_by, told["ONCEBOX_CONCURRENCY"].read_by) == ("relay", "worker")


def test_every_number_of_seconds_has_its_unit() -> None:
    for setting in settings_catalogue.settings():
        assert (setting.unit == "s") is setting.variable.endswith("_S"), setting.variable


@pytest.mark.parametrize(
    ("option", "variable", "told", "expected"),
    [
        (None, None, None, (None, Origin.UNSET)),
        (None, "v", None, ("v", Origin.VARIABLE)),
        ("v", "v", None, ("v", Origin.VARIABLE)),
        ("o", "v", None, ("o", Origin.OPTION)),
        ("o", None, "f", ("o", Origin.OPTION)),
        ("f", "f", "f", ("f", Origin.STATE_FILE)),
        ("v", "v", "f", ("v", Origin.VARIABLE)),
        (None, None, "f", (None, Origin.UNSET)),
    ],
)
def test_the_first_that_says_something_wins(
    option: str | None, variable: str | None, told: str | None, expected: tuple[str | None, Origin]
) -> None:
    def only(value: str | None) -> dict[str, str]:
        return {} if value is None else {URL.variable: value}

    (found,) = configuration.given([URL], only(variable), only(option), only(told))
    assert (found.value, found.origin) == expected


def test_a_default_is_one_when_nothing_is_said() -> None:
    (found,) = configuration.given([LEASE], {}, {}, {})
    assert (found.value, found.origin, found.secret) == ("45", Origin.DEFAULT, False)


def test_a_secret_is_set_or_not_set() -> None:
    assert Given(TOKEN, "oncebox_x", Origin.VARIABLE).shown == "set"
    assert Given(TOKEN, "oncebox_x", Origin.VARIABLE).secret
    assert Given(TOKEN, None, Origin.UNSET).shown is None


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me@h:5432/d", "postgresql://me@h:5432/d"),
        ("postgresql://me:p%40ss@h:5432/d?sslmode=require", "postgresql://me:***@h:5432/d?sslmode=require"),
        ("postgresql:///d?host=/tmp&user=me", "postgresql:///d?host=/tmp&user=me"),
        ("postgresql://h/d?password=p&user=me", "postgresql://h/d?password=***&user=me"),
        ("redis://:p@h:6379/0", "redis://:***@h:6379/0"),
        ("amqp://guest:gu@est@h//", "amqp://guest:***@h//"),
        ("amqp://guest:@h//", "amqp://guest:***@h//"),
        ("http://[::1", "***"),
        ("p@ssword", "***"),
    ],
)
def test_no_password_of_a_url_is_shown(url: str, shown: str) -> None:
    assert without_password(url) == shown


def test_a_variable_that_nothing_reads_is_named_with_what_was_meant() -> None:
    environment = {
        "ONCEBOX_LEASE": "3",
        "ONCEBOX_LEASE_S": "3",
        "ONCEBOX_XYZZY": "",
        "ONCEBOX_NOTES_PORT": "1",
        "ONCEBOX_TEST_REDIS_URL": "redis://h",
        "PATH": "/bin",
    }
    assert configuration.unread(environment, {"ONCEBOX_LEASE_S"}) == {
        "ONCEBOX_LEASE": "ONCEBOX_LEASE_S",
        "ONCEBOX_XYZZY": None,
    }
