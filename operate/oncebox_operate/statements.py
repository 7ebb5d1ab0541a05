"""The SQL of the commands on the sender's database, beside that of the outbox: most of it is for `verify`."""

from typing import Final

from sqlalchemy import TextClause, text


def _named(name: str, sql: str) -> TextClause:
    return text(f"/* oncebox:{name} */ {sql}")


# The same digest as the one in `ledger`, of the arguments instead of the note.
CONTENT: Final = _named(
    "verify_content",
    """
    select a.id, sha256(convert_to(concat(
             length(a.j ->> 'format'), ':', a.j ->> 'format', length(a.j ->> 'title'), ':', a.j ->> 'title',
             a.j ->> 'text'), 'UTF8')) as content
    from (select id, cast(arguments as json) as j from oncebox.operation
          where id = any(cast(:ids as uuid[])) and arguments is not null) as a""",
)

# Which of these keys have an operation here.
KNOWN: Final = _named(
    "verify_known",
    """
    select k.position from unnest(cast(:tenants as text[]), cast(:principals as text[]), cast(:operation_ids as text[]))
                           with ordinality as k(tenant, principal, operation_id, position)
    join oncebox.operation o on o.operation_id = k.operation_id and o.tenant = k.tenant
         and o.principal = k.principal and o.destination = :destination""",
)

COUNT: Final = _named(
    "verify_count", "select count(*) from oncebox.operation where destination = :destination"
)

LAST_VIOLATIONS: Final = _named(
    "verify_violations",
    """
    select v.kind, v.id, v.at, coalesce(o.operation_id, '') as operation_id
    from oncebox.violation v left join oncebox.operation o on o.id = v.id
    order by v.violation_id desc limit :limit""",
)

ARGUMENTS: Final = _named("arguments", "select arguments, ordering_key from oncebox.operation where id = :id")
