"""Every SQL statement of the service, by name.

All of them run under READ COMMITTED, where each statement sees what was committed before it began. That is
why a lock and the read that it protects are always two statements.

`KEY_LOCK` and `GRANT_LOCK` name the advisory locks. Two keys with one hash only wait for each other.
"""

from typing import Final

KEY_LOCK: Final = "hashtextextended(concat_ws(chr(31), 'key', tenant, principal, key), 0)"
GRANT_LOCK: Final = "hashtextextended(concat_ws(chr(31), 'grant', tenant, principal, folder), 0)"

_KEYS: Final = (
    "unnest(%(tenants)s::text[], %(principals)s::text[], %(keys)s::text[])"
    " WITH ORDINALITY AS asked(tenant, principal, key, position)"
)

# --- connections -----------------------------------------------------------------------------------------

SESSION_SETTINGS: Final = """
SELECT set_config('synchronous_commit', 'on', false),
       set_config('default_transaction_isolation', 'read committed', false),
       set_config('TimeZone', 'UTC', false),
       set_config('jit', 'off', false),
       set_config('lock_timeout', %(lock_timeout)s, false),
       set_config('statement_timeout', %(statement_timeout)s, false),
       set_config('idle_in_transaction_session_timeout', %(idle_timeout)s, false)
"""

# Neither can be set for a session: a server with one of them off loses notes whose receipts are out.
FORGETFUL: Final = """
SELECT name FROM pg_settings WHERE name IN ('fsync', 'full_page_writes') AND setting <> 'on' ORDER BY name
"""

SCHEMA_REVISION: Final = "SELECT version_num FROM alembic_version"

RECEIVER: Final = "SELECT id, clock_timestamp() FROM receiver"

# --- tokens ----------------------------------------------------------------------------------------------

AUTHENTICATE: Final = """
SELECT tenant, principal, delegate, tenants, secret_hash, revoked_at IS NULL AS live, clock_timestamp() AS now
FROM token WHERE id = %(id)s
"""

TOKEN_CREATE: Final = """
INSERT INTO token (id, tenant, principal, delegate, tenants, secret_hash)
VALUES (%(id)s, %(tenant)s, %(principal)s, %(delegate)s, %(tenants)s, %(secret_hash)s)
RETURNING created_at
"""

TOKEN_REGISTER: Final = """
INSERT INTO token (id, tenant, principal, delegate, tenants, secret_hash)
VALUES (%(id)s, %(tenant)s, %(principal)s, %(delegate)s, %(tenants)s, %(secret_hash)s)
ON CONFLICT (id) DO NOTHING
RETURNING created_at
"""

TOKEN_REGISTERED: Final = """
SELECT tenant, principal, tenants, secret_hash, created_at, revoked_at FROM token WHERE id = %(id)s
"""

TOKEN_LIST: Final = """
SELECT id, tenant, principal, delegate, tenants, created_at, revoked_at FROM token ORDER BY created_at, id
"""

TOKEN_REVOKE: Final = """
UPDATE token SET revoked_at = coalesce(revoked_at, clock_timestamp()) WHERE id = %(id)s
RETURNING tenant, principal, revoked_at
"""

# --- grants ----------------------------------------------------------------------------------------------

FOLDER_CREATE: Final = """
INSERT INTO folder (tenant, path) VALUES (%(tenant)s, %(folder)s) ON CONFLICT (tenant, path) DO NOTHING
"""

GRANT_LOCK_EXCLUSIVE: Final = f"""
SELECT pg_advisory_xact_lock({GRANT_LOCK})
FROM (VALUES (%(tenant)s::text, %(principal)s::text, %(folder)s::text)) AS wanted(tenant, principal, folder)
"""

GRANT_ADD: Final = """
INSERT INTO folder_grant (tenant, principal, folder_id)
SELECT tenant, %(principal)s, id FROM folder WHERE tenant = %(tenant)s AND path = %(folder)s
ON CONFLICT (folder_id, principal) WHERE revoked_at IS NULL DO NOTHING
RETURNING id, granted_at
"""

GRANT_LIVE: Final = """
SELECT g.id, g.granted_at FROM folder_grant g JOIN folder f ON f.id = g.folder_id
WHERE f.tenant = %(tenant)s AND f.path = %(folder)s AND g.principal = %(principal)s AND g.revoked_at IS NULL
"""

GRANT_REVOKE: Final = """
UPDATE folder_grant g SET revoked_at = greatest(clock_timestamp(), g.granted_at) FROM folder f
WHERE f.id = g.folder_id AND f.tenant = %(tenant)s AND f.path = %(folder)s
  AND g.principal = %(principal)s AND g.revoked_at IS NULL
RETURNING g.id, g.granted_at, g.revoked_at
"""

GRANT_LIST: Final = """
SELECT g.id, g.tenant, g.principal, f.path, g.granted_at, g.revoked_at
FROM folder_grant g JOIN folder f ON f.id = g.folder_id
WHERE (%(tenant)s::text IS NULL OR g.tenant = %(tenant)s)
  AND (%(principal)s::text IS NULL OR g.principal = %(principal)s)
ORDER BY g.id
"""

# The order of the inner query is the order in which the locks are taken.
GRANT_LOCKS_SHARED: Final = f"""
SELECT pg_advisory_xact_lock_shared(lock)
FROM (SELECT DISTINCT {GRANT_LOCK} AS lock
      FROM unnest(%(tenants)s::text[], %(principals)s::text[], %(folders)s::text[])
           AS asked(tenant, principal, folder)
      ORDER BY lock) AS sorted
"""

# The clock is read while the grant locks are held: a note's time lies between grant and revocation.
GRANTS_READ: Final = """
SELECT asked.position, g.id, f.id, clock_timestamp()
FROM unnest(%(tenants)s::text[], %(principals)s::text[], %(folders)s::text[])
     WITH ORDINALITY AS asked(tenant, principal, folder, position)
JOIN folder f ON f.tenant = asked.tenant AND f.path = asked.folder
JOIN folder_grant g ON g.folder_id = f.id AND g.principal = asked.principal AND g.revoked_at IS NULL
"""

PERMITTED_FOLDERS: Final = """
SELECT asked.tenant, asked.principal, f.path, g.granted_at
FROM unnest(%(tenants)s::text[], %(principals)s::text[]) AS asked(tenant, principal)
JOIN folder_grant g ON g.tenant = asked.tenant AND g.principal = asked.principal AND g.revoked_at IS NULL
JOIN folder f ON f.id = g.folder_id
ORDER BY f.path
"""

# --- operations ------------------------------------------------------------------------------------------

KEY_LOCK_WAIT: Final = f"SELECT pg_advisory_xact_lock({KEY_LOCK}) FROM {_KEYS}"

KEY_LOCK_TRY: Final = f"SELECT position, pg_try_advisory_xact_lock({KEY_LOCK}) FROM {_KEYS}"

# The locks are looked at and not taken: a probe that took them would make a concurrent batch see "busy".
KEYS_HELD: Final = f"""
SELECT asked.position FROM
(SELECT position, {KEY_LOCK} AS lock FROM {_KEYS}) AS asked
JOIN pg_locks held ON held.locktype = 'advisory' AND held.objsubid = 1 AND held.granted
     AND held.mode = 'ExclusiveLock'
     AND held.database = (SELECT oid FROM pg_database WHERE datname = current_database())
     AND ((held.classid::bigint << 32) | held.objid::bigint) = asked.lock
"""

RECORDS_READ: Final = f"""
SELECT asked.position, r.state, r.args_hash, r.note_id, r.version, r.folder, r.created_at
FROM {_KEYS}
JOIN operation_record r ON r.tenant = asked.tenant AND r.principal = asked.principal AND r.key = asked.key
"""

CLOCK: Final = "SELECT clock_timestamp()"

NOTES_TO_REVISE: Final = """
SELECT n.id, n.tenant, f.path FROM note n JOIN folder f ON f.id = n.folder_id WHERE n.id = ANY(%(ids)s)
"""

NOTES_LOCK: Final = "SELECT id FROM note WHERE id = ANY(%(ids)s) ORDER BY id FOR NO KEY UPDATE"

NOTES_CURRENT: Final = """
SELECT n.id, n.version, v.etag
FROM note n JOIN note_version v ON v.note_id = n.id AND v.version = n.version WHERE n.id = ANY(%(ids)s)
"""

# The record goes in complete and first; a note or a version exists only for a record that went in. The clock
# is read row by row, after the key locks. `last_write` keeps the published limit of a request.
WRITE: Final = """
WITH item AS (
    SELECT * FROM unnest(
        %(tenants)s::text[], %(principals)s::text[], %(keys)s::text[], %(deadlines)s::timestamptz[],
        %(hashes)s::text[], %(notes)s::uuid[], %(versions)s::integer[], %(folders)s::text[],
        %(folder_ids)s::bigint[], %(grant_ids)s::bigint[], %(titles)s::text[], %(texts)s::text[],
        %(formats)s::text[], %(etags)s::text[], %(call_ids)s::text[])
    WITH ORDINALITY AS t(tenant, principal, key, deadline, args_hash, note_id, version, folder, folder_id,
                         grant_id, title, text, format, etag, call_id, position)
), record AS (
    INSERT INTO operation_record (tenant, principal, key, state, args_hash, note_id, version, folder, created_at)
    SELECT tenant, principal, key, 'completed', args_hash, note_id, version, folder, %(written_at)s
    FROM item WHERE clock_timestamp() < least(deadline, now() + %(last_write)s)
    ON CONFLICT (tenant, principal, key) DO NOTHING
    RETURNING tenant, principal, key
), done AS (
    SELECT item.* FROM item JOIN record USING (tenant, principal, key)
), created AS (
    INSERT INTO note (id, tenant, folder_id, version, created_at)
    SELECT note_id, tenant, folder_id, 1, %(written_at)s FROM done WHERE version = 1
), revised AS (
    UPDATE note SET version = done.version FROM done WHERE note.id = done.note_id AND done.version > 1
), stored AS (
    INSERT INTO note_version (note_id, version, tenant, principal, operation_key, folder, title, text, format,
                              etag, args_hash, call_id, token_id, grant_id, created_at)
    SELECT note_id, version, tenant, principal, key, folder, title, text, format, etag, args_hash, call_id,
           %(token_id)s, grant_id, %(written_at)s
    FROM done
)
SELECT position FROM done
"""

# A later seal with a later deadline keeps the tombstone longer: what was promised must outlive that packet too.
SEAL: Final = """
INSERT INTO operation_record (tenant, principal, key, state, args_hash, created_at, deadline)
SELECT tenant, principal, key, 'sealed', args_hash, clock_timestamp(), deadline
FROM unnest(%(tenants)s::text[], %(principals)s::text[], %(keys)s::text[], %(hashes)s::text[],
            %(deadlines)s::timestamptz[]) AS asked(tenant, principal, key, args_hash, deadline)
ON CONFLICT (tenant, principal, key) DO UPDATE SET deadline = excluded.deadline
WHERE operation_record.state = 'sealed' AND operation_record.deadline < excluded.deadline
"""

LOCK_TIMEOUT_LOCAL: Final = "SELECT set_config('lock_timeout', %(lock_timeout)s, true)"

# --- purge -----------------------------------------------------------------------------------------------

PURGE_CANDIDATES: Final = """
SELECT tenant, principal, key FROM operation_record
WHERE state = 'sealed' AND deadline < clock_timestamp() - %(margin)s
  AND created_at + %(window)s < clock_timestamp() - %(margin)s
ORDER BY deadline LIMIT %(limit)s
"""

PURGE: Final = f"""
DELETE FROM operation_record r USING {_KEYS}
WHERE r.tenant = asked.tenant AND r.principal = asked.principal AND r.key = asked.key
  AND r.state = 'sealed' AND greatest(r.deadline, r.created_at + %(window)s) + %(margin)s < clock_timestamp()
"""

PURGE_LOCK_TRY: Final = "SELECT pg_try_advisory_lock(hashtextextended('purge', 0))"

# --- reading ---------------------------------------------------------------------------------------------

NOTE_READ: Final = """
SELECT v.note_id, v.folder, v.version, v.etag, v.created_at, v.title, v.text, v.format, v.args_hash,
       v.principal, v.operation_key
FROM note n
JOIN note_version v ON v.note_id = n.id AND v.version = coalesce(%(version)s, n.version)
WHERE n.id = %(id)s AND n.tenant = %(tenant)s
  AND EXISTS (SELECT FROM folder_grant g
              WHERE g.folder_id = n.folder_id AND g.principal = %(principal)s AND g.revoked_at IS NULL)
"""

NOTES_OF_OPERATION: Final = """
SELECT note_id, folder, version, etag, created_at FROM note_version
WHERE tenant = %(tenant)s AND principal = %(principal)s AND operation_key = %(key)s
"""
