"""From the outbox's values to the JSON of `shapes`. Times are UTC, in RFC 3339."""

import json
from datetime import UTC, datetime
from typing import cast

from oncebox_models.outcomes import Receipt
from oncebox_operate import shapes
from oncebox_outbox import Enqueued, Outbox
from oncebox_outbox.insights import Lag
from oncebox_outbox.listing import TimelineCall
from oncebox_outbox.status import OperationStatus


def operation(known: OperationStatus) -> shapes.Operation:
    """A status as JSON."""
    return {
        "id": str(known.id),
        "operation_id": known.operation_id,
        "tenant": known.tenant,
        "principal": known.principal,
        "destination": known.destination,
        "kind": known.kind,
        "run": known.run,
        "step": known.step,
        "purpose": known.purpose,
        "state": str(known.state),
        "definite": known.definite,
        "say": known.say,
        "reason": known.reason,
        "receipt": None if known.receipt is None else receipt(known.receipt),
        "problem": known.problem,
        "attempts": known.attempts,
        "unanswered": known.unanswered,
        "wanted": None if known.wanted is None else str(known.wanted),
        "next_at": utc_or_none(known.next_at),
        "deadline": utc(known.deadline),
        "created_at": utc(known.created_at),
        "settled_at": utc_or_none(known.settled_at),
        "supersedes": None if known.supersedes is None else str(known.supersedes),
        "args_hash": known.args_hash,
        "as_of": utc(known.as_of),
    }


def timeline(known: OperationStatus, calls: list[TimelineCall]) -> shapes.Timeline:
    """A status with its calls as JSON."""
    return {**operation(known), "calls": [_call(call) for call in calls]}


def _call(call: TimelineCall) -> shapes.Call:
    return {
        "call_id": str(call.call_id),
        "kind": str(call.kind),
        "outcome": call.outcome,
        "reason": call.reason,
        "http_status": call.http_status,
        "problem": call.problem,
        "worker": call.worker,
        "operations": call.operations,
        "started_at": utc(call.started_at),
        "finished_at": utc_or_none(call.finished_at),
    }


def receipt(held: Receipt) -> dict[str, object]:
    """A receipt in the key order of its canonical text, so that printing it gives the same bytes."""
    return cast("dict[str, object]", json.loads(held.text))  # a receipt is a JSON object


def enqueued(outbox: Outbox, held: Enqueued, say: str) -> shapes.Enqueued:
    """What the outbox holds, as JSON."""
    return {
        "id": str(held.id),
        "operation_id": held.operation_id,
        "tenant": outbox.tenant,
        "principal": outbox.principal,
        "destination": outbox.destination,
        "created": held.created,
        "state": str(held.state),
        "receipt": None if held.receipt is None else receipt(held.receipt),
        "reason": held.reason,
        "say": say,
    }


def lag(seen: Lag, max_age_s: float | None) -> shapes.Lag:
    """Depth and age as JSON. A destination that is no longer registered is listed while it has entries."""
    names = dict.fromkeys((*seen.destinations, *(depth.destination for depth in seen.depths)))
    return {
        "entries": seen.entries,
        "unknown": seen.unknown,
        "oldest_age_s": round(seen.oldest_age_s, 3),
        "scale_target": seen.scale_target,
        "destinations": [_destination_lag(seen, name) for name in names],
        "violations": seen.violations,
        "max_age_s": max_age_s,
        "ok": max_age_s is None or seen.oldest_age_s <= max_age_s,
    }


def _destination_lag(seen: Lag, name: str) -> shapes.DestinationLag:
    depths = [depth for depth in seen.depths if depth.destination == name]
    return {
        "destination": name,
        "entries": sum(depth.entries for depth in depths),
        "oldest_age_s": round(max((depth.oldest_age_s for depth in depths), default=0.0), 3),
        "states": {
            str(depth.state): {"entries": depth.entries, "oldest_age_s": round(depth.oldest_age_s, 3)}
            for depth in depths
        },
    }


def utc(moment: datetime) -> str:
    """RFC 3339 in UTC."""
    return moment.astimezone(UTC).isoformat()


def utc_or_none(moment: datetime | None) -> str | None:
    return None if moment is None else utc(moment)
