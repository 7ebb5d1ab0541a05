"""What must hold before a relay or worker may run: durable settings, and numbers that do not contradict each other."""

from typing import Final

from sqlalchemy import Engine, inspect

from oncebox_models.calls import Capabilities
from oncebox_models.tables import SCHEMA, metadata
from oncebox_outbox.engine import durability_faults, worker_engine
from oncebox_outbox.policy import DEFAULT_DEADLINE_S
from oncebox_worker.settings import RoleSettings, WorkerSettings

_SETTLE_S: Final = 20.0
"""Time left after a call to write its answer down, in seconds: one statement timeout, twice."""


class UnsafeSettings(Exception):
    """Settings under which the guarantees do not hold. `faults` names each with what to change."""

    def __init__(self, faults: list[str]) -> None:
        self.faults = faults
        super().__init__("; ".join(faults))


def check_database(settings: RoleSettings) -> None:
    """Raises UnsafeSettings when the server would lose what it confirms, or lacks tables or columns that we write."""
    engine = worker_engine(settings.database_url, pool_size=1, application="oncebox start")
    try:
        faults = durability_faults(engine) + _schema_faults(engine)
    finally:
        engine.dispose()
    if faults:
        raise UnsafeSettings(faults)


def _schema_faults(engine: Engine) -> list[str]:
    """A column that is missed only when an answer is written down would leave every operation unsettled."""
    found = inspect(engine).get_multi_columns(schema=SCHEMA)
    columns = {table: {column["name"] for column in listed} for (_, table), listed in found.items()}
    if "outbox_entry" not in columns:
        return [f"schema {SCHEMA} has no tables in this database; create them with: oncebox migrate up"]
    missing = sorted(
        f"{table.name}.{column.name}"
        for table in metadata.tables.values()
        for column in table.columns
        if column.name not in columns.get(table.name, set())
    )
    if not missing:
        return []
    return [f"schema {SCHEMA} lacks {', '.join(missing)}; bring it to this version with: oncebox migrate up"]


def check_times(settings: WorkerSettings) -> None:
    """Raises UnsafeSettings when a lease can run out while its call is still answered."""
    needed_s = settings.call_timeout_s + _SETTLE_S
    if settings.lease_s < needed_s:
        raise UnsafeSettings(
            [
                f"lease_s is {settings.lease_s:g}, but a call may take call_timeout_s = {settings.call_timeout_s:g} and"
                f" settling it {_SETTLE_S:g} more; set ONCEBOX_LEASE_S to at least {needed_s:g},"
                " or lower ONCEBOX_CALL_TIMEOUT_S"
            ]
        )


def check_receiver(settings: WorkerSettings, told: Capabilities) -> None:
    """Raises UnsafeSettings when what the receiver admits and remembers does not fit our settings."""
    faults: list[str] = []
    if DEFAULT_DEADLINE_S > told.admission_window_s:
        faults.append(
            f"operations get {DEFAULT_DEADLINE_S:g} s to be delivered, but the receiver admits deadlines at most"
            f" {told.admission_window_s:g} s ahead; raise its admission window"
        )
    if settings.chunk > told.batch_items:
        faults.append(
            f"chunk is {settings.chunk}, but the receiver takes at most {told.batch_items} operations a request;"
            f" set ONCEBOX_CHUNK to {told.batch_items} or less"
        )
    # A packet may be admitted until its deadline, at most the window ahead, and is on its way for a call's time.
    needed_s = told.admission_window_s + settings.call_timeout_s + told.request_limit_s
    if told.tombstone_retention_s < needed_s:
        faults.append(
            f"the receiver forgets a sealed key after {told.tombstone_retention_s:g} s, but may still execute a call"
            f" for it {needed_s:g} s later; raise its tombstone retention, or lower its admission window"
        )
    if faults:
        raise UnsafeSettings(faults)
