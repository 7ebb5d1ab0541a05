"""The JSON that commands print, key by key with its meaning: the source of the tables in the reference."""

from typing import Annotated, TypedDict


class Receipt(TypedDict):
    """A receipt, byte for byte as the receiver's canonical form when the line is printed."""

    args_hash: Annotated[str, "hash of the arguments that were executed"]
    note: Annotated[dict[str, object], "`id`, `folder`, `version`, `etag`, `location`, `created_at`"]
    operation_id: Annotated[str, "the key that it was saved under"]


class Operation(TypedDict):
    """One operation: `status`, `wait`, `list`, and the first keys of `show`."""

    id: Annotated[str, "our UUID"]
    operation_id: Annotated[str, "the caller's name for it"]
    tenant: Annotated[str, "whose it is"]
    principal: Annotated[str, "whose it is, within the tenant"]
    destination: Annotated[str, "where it goes"]
    kind: Annotated[str, "`note.create` or `note.revise`"]
    run: Annotated[str, "the intent's run"]
    step: Annotated[str, "the intent's step"]
    purpose: Annotated[str, "why it is wanted"]
    state: Annotated[
        str,
        "`pending`, `sending`, `retrying`, `unknown`, `saved`, `refused`, `not_saved`, `needs_review`",
    ]
    definite: Annotated[bool, "it is `saved`, `refused` or `not_saved`: this never changes"]
    say: Annotated[str, "one honest sentence; its first words decide"]
    reason: Annotated[str | None, "why it ended, or what the last call brought; null for neither"]
    receipt: Annotated[dict[str, object] | None, "the receipt (below); null unless `saved`"]
    problem: Annotated[dict[str, object] | None, "the receiver's own words on a refusal"]
    attempts: Annotated[int | None, "calls that may have reached the receiver; null once settled"]
    unanswered: Annotated[int | None, "those of them without a verdict; null once settled"]
    wanted: Annotated[str | None, "`deliver`, `abandon` or `refuse`; null once settled"]
    next_at: Annotated[str | None, "when the next call is due; null while one is under way and once settled"]
    deadline: Annotated[str, "after it the receiver executes nothing"]
    created_at: Annotated[str, "when it was enqueued"]
    settled_at: Annotated[str | None, "when it ended; null while it is open"]
    supersedes: Annotated[str | None, "UUID of the operation that this one replaces"]
    args_hash: Annotated[str, "SHA-256 of the canonical arguments (`jcs-sha256/1`)"]
    as_of: Annotated[str, "the database's clock at this answer"]


class Call(TypedDict):
    """One call of `show`: an item of `calls`, in order of their start."""

    call_id: Annotated[str, "a new one for each request"]
    kind: Annotated[str, "`send`, `status`, `seal` or `verify`"]
    outcome: Annotated[
        str | None,
        "`receipt`, `sealed`, `conflict`, `refused`, `gone`, `unauthenticated`, `not_executed`, `not_sent`,"
        " `not_found`, `in_progress`, `unknown`; null while it is under way",
    ]
    reason: Annotated[str | None, "one stable word, such as `timeout`"]
    http_status: Annotated[int | None, "null when no answer came"]
    problem: Annotated[dict[str, object] | None, "the receiver's problem body"]
    worker: Annotated[str, "who made it"]
    operations: Annotated[int, "how many operations it carried"]
    started_at: Annotated[str, "when it was claimed"]
    finished_at: Annotated[str | None, "null while it is under way, or when its worker died"]


class Timeline(Operation):
    """`show`: the keys of an operation, and its calls."""

    calls: Annotated[list[Call], "every call that concerned it (below)"]


class Enqueued(TypedDict):
    """`enqueue`."""

    id: Annotated[str, "our UUID"]
    operation_id: Annotated[str, "the name it is known by, chosen or derived"]
    tenant: Annotated[str, "whose it is"]
    principal: Annotated[str, "whose it is, within the tenant"]
    destination: Annotated[str, "where it goes"]
    created: Annotated[bool, "false: it existed already, with equal arguments; nothing more is sent"]
    state: Annotated[str, "as in `status`"]
    receipt: Annotated[dict[str, object] | None, "as in `status`"]
    reason: Annotated[str | None, "as in `status`"]
    say: Annotated[str, "one sentence"]


class Retried(Operation):
    """`retry`: the keys of an operation, and what was done."""

    did: Annotated[
        str,
        "`due` (the next call is due now), `under_way` (a call was left alone) or `settled` (there is none)",
    ]
    next_call: Annotated[str | None, "`send`, `status` or `seal`; null once settled"]
    waits_for: Annotated[
        str | None,
        "`receiver` (no worker has reached it yet) or `ordering_key` (an earlier operation); null for neither",
    ]
    command: Annotated[str | None, "what wants it again; null unless it is `refused` or `not_saved`"]


class Cancelled(Operation):
    """`cancel`: the keys of an operation, and what was done."""

    did: Annotated[
        str,
        "`settled` (nothing was ever sent), `sealing` (the receiver is asked to close its key) or `nothing`"
        " (it was settled or given up before)",
    ]


class Reconciled(TypedDict):
    """`reconcile`."""

    asked: Annotated[int, "operations that are asked about now"]
    unknown: Annotated[int, "those of them whose outcome is unknown"]
    access_lost: Annotated[int, "those of them that wait for our access to come back"]
    id: Annotated[str | None, "the operation that was named; null when none was"]
    operation_id: Annotated[str | None, "its name"]
    state: Annotated[str | None, "as in `status`: asking does not change it"]


class StateLag(TypedDict):
    """The open operations of a destination in one state."""

    entries: Annotated[int, "how many"]
    oldest_age_s: Annotated[float, "seconds since the oldest was enqueued; 0 when there is none"]


class DestinationLag(TypedDict):
    """One destination of `lag`."""

    destination: Annotated[str, "its name"]
    entries: Annotated[int, "open operations"]
    oldest_age_s: Annotated[float, "seconds since the oldest was enqueued; 0 when there is none"]
    states: Annotated[dict[str, StateLag], "by state: `entries`, `oldest_age_s`"]


class Lag(TypedDict):
    """`lag`; with `--watch` one object a look."""

    entries: Annotated[int, "all open operations"]
    unknown: Annotated[int, "those that may or may not be saved"]
    oldest_age_s: Annotated[float, "seconds since the oldest was enqueued; 0 when there is none"]
    scale_target: Annotated[int, "ready, leased or due within 30 s: the number for an autoscaler"]
    destinations: Annotated[list[DestinationLag], "every registered destination, with zeros (below)"]
    violations: Annotated[dict[str, int], "recorded contradictions, by kind"]
    max_age_s: Annotated[float | None, "what `--max-age` allows"]
    ok: Annotated[bool, "nothing is older than that"]


class Migrated(TypedDict):
    """`migrate up`, `down` and `status`: a line a database."""

    database: Annotated[str, "`sender` or `notes`"]
    revision: Annotated[str | None, "where it stands; null: no tables"]
    head: Annotated[str, "what this version of Oncebox wants"]
    current: Annotated[bool, "the two are equal"]


class MigrationSql(TypedDict):
    """`migrate sql`."""

    database: Annotated[str, "`sender`"]
    sql: Annotated[str, "what a first `migrate up` executes"]


class Problem(TypedDict):
    """One of `problems`."""

    found: Annotated[
        str,
        "`lost`, `duplicate`, `contradiction`, `mismatch`, `not_permitted`, `unreadable`, `orphan`, `violation`",
    ]
    operation_id: Annotated[str, "the operation; empty when it is not one operation's"]
    id: Annotated[str | None, "its UUID"]
    detail: Annotated[str, "what was seen"]


class Verified(TypedDict):
    """`verify`."""

    operations: Annotated[int, "in the sender's ledger, for this destination"]
    saved: Annotated[int, "of them"]
    refused: Annotated[int, "of them"]
    not_saved: Annotated[int, "of them"]
    needs_review: Annotated[int, "of them"]
    unknown: Annotated[int, "of them"]
    open: Annotated[int, "of them: pending, sending, retrying or unknown"]
    notes: Annotated[int, "versions in the receiver's database that were written for these operations"]
    foreign_notes: Annotated[int, "versions there that were not"]
    receiver_notes: Annotated[int, "all versions there when it began"]
    lost: Annotated[int, "said to be saved, and there is no note"]
    duplicates: Annotated[int, "second notes for one operation"]
    contradictions: Annotated[int, "said to be refused or not saved, and there is a note"]
    mismatches: Annotated[
        int, "another text, hash, version, folder or record, or not handed out to its owner"
    ]
    not_permitted: Annotated[int, "written without a grant that was in force"]
    orphans: Annotated[int, "open operations without an outbox entry"]
    violations: Annotated[int, "contradictions that workers recorded"]
    deep: Annotated[bool, "notes were read over HTTP, too"]
    read: Annotated[int, "how many were"]
    problems: Annotated[list[Problem], "what is wrong, at most 100 of them (below)"]
    seconds: Annotated[float, "how long it took"]
    ok: Annotated[bool, "nothing is wrong; else the exit code is 8"]


class Up(TypedDict):
    """`up`: one line, when everything is ready."""

    notes_url: Annotated[str, "the note service"]
    database_url: Annotated[str, "the sender's database, with its password"]
    notes_database_url: Annotated[str, "the note service's own, with its password"]
    broker_url: Annotated[str, "the broker, with its password"]
    queue_prefix: Annotated[str, "begins the names of the queues there"]
    token: Annotated[str, "the workers' token at the note service"]
    tenant: Annotated[str, "whose notes are written"]
    principal: Annotated[str, "whose notes are written, within the tenant"]
    folder: Annotated[str, "where this principal may write"]
    data: Annotated[str, "the folder with the data and the logs"]


class Check(TypedDict):
    """One of `checks`."""

    check: Annotated[str, "what was looked at, such as `database`, `tables`, `token`"]
    verdict: Annotated[str, "`ok`, `warn` or `fail`"]
    says: Annotated[str, "what was seen"]
    do: Annotated[str | None, "the command to type; null for `ok`"]
    unreachable: Annotated[bool, "it does not answer: then the exit code is 9"]


class Examined(TypedDict):
    """`doctor`."""

    ok: Annotated[bool, "nothing failed; else the exit code is 8 or 9"]
    failed: Annotated[int, "checks that failed"]
    warned: Annotated[int, "checks that a person should judge"]
    quick: Annotated[bool, "only what a health check needs was looked at"]
    checks: Annotated[list[Check], "every check, in order (below)"]


class Configured(TypedDict):
    """One setting of `config`."""

    variable: Annotated[str, "its name"]
    value: Annotated[
        str | None, "its value here; a secret is `set`, a password `***`; null when it is not set"
    ]
    origin: Annotated[str, "`option`, `variable`, `state file` (of a running `up`), `default` or `unset`"]
    default: Annotated[str | None, "what it is when nothing is said; null for nothing"]
    unit: Annotated[str | None, "of its number; null for what is none"]
    secret: Annotated[bool, "`value` is not all of it"]
    read_by: Annotated[str, "the commands that it is for"]
    about: Annotated[str, "what it is"]


class Environment(TypedDict):
    """`env`."""

    variables: Annotated[dict[str, str], "value by name, of every setting that is set"]
    withheld: Annotated[list[str], "names of those with a secret, unless `--show-secrets` is given"]


class Pruned(TypedDict):
    """`prune`."""

    operations: Annotated[int, "that lost their arguments; with `--dry-run`, that would"]
    calls: Annotated[int | None, "that were removed; null with `--dry-run`"]
    tombstones: Annotated[
        int | None,
        "sealed keys that the note service forgot; null when it was not asked, or another purge ran",
    ]
    older_than_s: Annotated[float, "what `--older-than` means, in seconds"]
    dry_run: Annotated[bool, "nothing was changed"]


class Completion(TypedDict):
    """`completion`."""

    shell: Annotated[str, "`bash`, `zsh` or `fish`"]
    script: Annotated[str | None, "for that shell to read; null with `--install`"]
    path: Annotated[str | None, "where it was written with `--install`; else null"]


class FaultCount(TypedDict):
    """One kind of fault of `demo`."""

    count: Annotated[int, "how often it happened"]
    in_flight: Annotated[int, "how often while at least one operation was in flight"]


class Demo(TypedDict):
    """`demo`."""

    operations: Annotated[int, "committed by the agent"]
    rolled_back: Annotated[int, "transactions that the agent rolled back, on top of them"]
    saved: Annotated[int, "operations with a receipt"]
    notes: Annotated[int, "counted by SQL in the note service's database"]
    duplicates: Annotated[int, "second notes, counted there"]
    lost: Annotated[int, "said to be saved, and not there"]
    unknown: Annotated[int, "still of unknown outcome at the end"]
    needs_review: Annotated[int, "that no machine could settle"]
    replays: Annotated[int, "times the receiver was sent what it had executed before"]
    reconciled: Annotated[int, "operations once of unknown outcome that were settled by proof"]
    attempts: Annotated[int, "to send an operation, all together"]
    faults: Annotated[
        dict[str, FaultCount], "by kind: `count`, and `in_flight`: those that struck operations"
    ]
    doubts: Annotated[list[str], "what is not as promised; empty when `ok`"]
    seed: Annotated[int, "decided when what broke"]
    seconds: Annotated[float, "how long it took, set-up included"]
    ok: Annotated[bool, "all as promised; else the exit code is 8"]


class Boundary(TypedDict):
    """One of `boundaries` of `demo --exercise`."""

    broken: Annotated[str, "what was broken"]
    seen: Annotated[str, "what was seen"]
    said: Annotated[str, "what was said of the operation, at the end"]
    notes: Annotated[int, "notes under its key, counted by SQL"]
    ok: Annotated[bool, "exactly one, and nothing untrue was said"]


class Exercise(TypedDict):
    """`demo --exercise`."""

    boundaries: Annotated[list[Boundary], "the three, in their order (below)"]
    ok: Annotated[bool, "all of them; else the exit code is 8"]


class Version(TypedDict):
    """`version`."""

    version: Annotated[str, "of Oncebox"]
    python: Annotated[str, "of Python"]
    schema: Annotated[str, "revision of the sender's tables that it wants"]


class Error(TypedDict):
    """The value of `error`: printed on stdout as `{"error": {…}}` by any command that fails under `--json`."""

    kind: Annotated[str, "one stable word: `usage`, `invalid_operation`, `not_found`, `ambiguous`, …"]
    exit_code: Annotated[int, "the process ends with it"]
    message: Annotated[str, "what is wrong"]
    hint: Annotated[str | None, "what to do next"]
    faults: Annotated[list[dict[str, str]], "all that is wrong with an input: `path`, `message`"]
    matches: Annotated[list[dict[str, object]], "what an ambiguous name may have meant"]
