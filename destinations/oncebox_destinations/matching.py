"""From a whole answer to one Answer for each operation: by key, never by order."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

from oncebox_destinations import outcomes_of_http as table
from oncebox_destinations.exchange import Reply
from oncebox_destinations.reasons import Reason
from oncebox_destinations.received_json import Garbage, Object, is_list, is_object, parse_object
from oncebox_destinations.request_bodies import on_behalf_of
from oncebox_destinations.transport_failures import Failure
from oncebox_models.calls import Outgoing
from oncebox_models.outcomes import Answer
from oncebox_models.states import CallKind

_OK: Final = 200


def answers(
    kind: CallKind, operations: Sequence[Outgoing], result: Reply | Failure, *, after_s: float | None
) -> Mapping[UUID, Answer]:
    """Exactly one Answer for each of a request's operations, whose keys are all different.

    `after_s` is the reply's Retry-After. An item that is missing, there twice or somebody else's leaves the
    operation concerned UNKNOWN; its neighbours keep their answers.
    """
    if isinstance(result, Failure):
        return dict.fromkeys((operation.id for operation in operations), table.of_failure(result))
    if result.status != _OK:
        whole = table.of_whole_request(kind, result, operations=len(operations), after_s=after_s)
        return dict.fromkeys((operation.id for operation in operations), whole)
    try:
        items = _by_key(result)
    except Garbage:
        garbage = table.unknown(Reason.GARBAGE, result.status)
        return dict.fromkeys((operation.id for operation in operations), garbage)
    return {operation.id: _answer(kind, operation, items) for operation in operations}


def _by_key(reply: Reply) -> Mapping[str, Sequence[Object]]:
    items = parse_object(reply.body).get("items")
    if not is_list(items):
        raise Garbage("no list of items")
    found: defaultdict[str, list[Object]] = defaultdict(list)
    for item in items:
        if is_object(item) and isinstance(key := item.get("operation_id"), str):
            found[key].append(item)
    return found


def _answer(kind: CallKind, operation: Outgoing, items: Mapping[str, Sequence[Object]]) -> Answer:
    match items.get(operation.operation_id, ()):
        case [item]:
            # The wire need not repeat the principal, as no request of ours holds a key twice. If it does, it
            # counts.
            if item.get("on_behalf_of", on_behalf_of(operation)) != on_behalf_of(operation):
                return table.unknown(Reason.MISSING_ITEM, _OK)
            return table.of_item(kind, operation, item)
        case []:
            return table.unknown(Reason.MISSING_ITEM, _OK)
        case _:
            return table.unknown(Reason.DOUBLED_ITEM, _OK)
