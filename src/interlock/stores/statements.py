"""Every SQL text there is, the same for SQLite and PostgreSQL.

`?` marks a parameter. Tokens in braces are filled in once per database: {blob}, {id} and {real} are column types,
{for_update} and {for_share} lock the rows that were read, {in_key_order} stores a table in the order of its key,
{pick_lane} chooses a lane nobody else is writing, {relations} are the tables and indexes that there are.
"""

from __future__ import annotations

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE records (id {id} PRIMARY KEY, lane INTEGER NOT NULL, hash TEXT NOT NULL, at_us BIGINT NOT NULL,"
        " kind TEXT NOT NULL, call TEXT NOT NULL, turn TEXT, actor TEXT NOT NULL, tool TEXT NOT NULL,"
        " status TEXT NOT NULL, body TEXT NOT NULL)",
        "CREATE INDEX records_by_turn ON records (turn) WHERE turn IS NOT NULL",
        "CREATE TABLE payloads (record {id} PRIMARY KEY, body {blob} NOT NULL)",
        "CREATE TABLE lanes (lane INTEGER PRIMARY KEY, id BIGINT NOT NULL, count BIGINT NOT NULL, hash TEXT NOT NULL)",
        "CREATE TABLE checkpoints (n INTEGER PRIMARY KEY, body TEXT NOT NULL, signature TEXT NOT NULL,"
        " public_key TEXT NOT NULL)",
        "CREATE TABLE accounts (scope TEXT PRIMARY KEY, calls BIGINT NOT NULL DEFAULT 0,"
        " cost_micros BIGINT NOT NULL DEFAULT 0, ms BIGINT NOT NULL DEFAULT 0)",
        "CREATE TABLE reservations (call TEXT NOT NULL, scope TEXT NOT NULL, budget TEXT NOT NULL,"
        " expires_us BIGINT NOT NULL, calls BIGINT NOT NULL, cost_micros BIGINT NOT NULL, ms BIGINT NOT NULL,"
        " PRIMARY KEY (call, scope))",
        "CREATE INDEX reservations_by_scope ON reservations (scope)",
        "CREATE TABLE buckets (bucket TEXT PRIMARY KEY, tokens {real} NOT NULL, at_us BIGINT NOT NULL)",
    ),
    (
        "CREATE TABLE claims (name TEXT PRIMARY KEY, request TEXT NOT NULL DEFAULT '', state TEXT NOT NULL DEFAULT '',"
        " generation INTEGER NOT NULL DEFAULT 0, holder TEXT NOT NULL DEFAULT '', call TEXT NOT NULL DEFAULT '',"
        " tool TEXT NOT NULL DEFAULT '', keys TEXT NOT NULL DEFAULT '[]', tokens TEXT NOT NULL DEFAULT '[]',"
        " expires_us BIGINT NOT NULL DEFAULT 0, intent BIGINT, record BIGINT, turn TEXT, run TEXT,"
        " at_us BIGINT NOT NULL DEFAULT 0){in_key_order}",
        "CREATE INDEX claims_by_turn ON claims (turn) WHERE turn IS NOT NULL",
        "CREATE INDEX claims_by_run ON claims (run) WHERE run IS NOT NULL",
        "CREATE INDEX claims_in_doubt ON claims (state) WHERE state IN ('open', 'unknown')",
        "CREATE TABLE leases (key TEXT PRIMARY KEY, holder TEXT NOT NULL DEFAULT '', token BIGINT NOT NULL DEFAULT 0,"
        " changed BIGINT NOT NULL DEFAULT 0, expires_us BIGINT NOT NULL DEFAULT 0){in_key_order}",
        "CREATE TABLE tickets (id TEXT PRIMARY KEY, state TEXT NOT NULL, binding TEXT NOT NULL,"
        " created_us BIGINT NOT NULL, body TEXT NOT NULL)",
        "CREATE UNIQUE INDEX tickets_open ON tickets (binding) WHERE state = 'open'",
        "CREATE TABLE halts (scope TEXT PRIMARY KEY, by_whom TEXT NOT NULL, reason TEXT NOT NULL,"
        " at_us BIGINT NOT NULL)",
    ),
    (
        "ALTER TABLE leases ADD COLUMN changed_us BIGINT NOT NULL DEFAULT 0",
        "ALTER TABLE leases ADD COLUMN changed_run TEXT NOT NULL DEFAULT ''",
    ),
    (
        # In the row of its record, and its last column: a table of its own was one more page in each commit.
        "ALTER TABLE records ADD COLUMN payload {blob}",
        "UPDATE records SET payload = (SELECT p.body FROM payloads p WHERE p.record = records.id)"
        " WHERE id IN (SELECT record FROM payloads)",
        "DROP TABLE payloads",
    ),
    (
        "ALTER TABLE leases ADD COLUMN others_us BIGINT NOT NULL DEFAULT 0",
        "ALTER TABLE leases ADD COLUMN others_run TEXT NOT NULL DEFAULT ''",
        "UPDATE leases SET others_us = -1 WHERE changed_us > 0",  # NOT_KEPT
    ),
)

META_TABLE = "CREATE TABLE IF NOT EXISTS interlock_meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)"
READ_META = "SELECT name, value FROM interlock_meta"
WRITE_META = (
    "INSERT INTO interlock_meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)
ADD_LANE = "INSERT INTO lanes (lane, id, count, hash) VALUES (?, 0, 0, ?)"

LANES = "SELECT lane, id, count, hash FROM lanes ORDER BY lane"
PICK_LANE = "SELECT lane, id, count, hash FROM lanes {pick_lane}"
LOCK_LANE = "SELECT lane, id, count, hash FROM lanes WHERE lane = ? {for_update}"
MOVE_LANE = "UPDATE lanes SET id = ?, count = ?, hash = ? WHERE lane = ?"
MOVE_LANE_FROM = MOVE_LANE + " AND id = ? AND hash = ?"
APPEND = (
    "INSERT INTO records (id, lane, hash, at_us, kind, call, turn, actor, tool, status, body)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
# Most records have no payload: those are written without the column, which is quicker.
APPEND_WHOLE = APPEND.replace("body)", "body, payload)").replace("?)", "?, ?)")
PLACE_OF = "SELECT lane, hash FROM records WHERE id = ?"
ACCEPTED_HISTORIES = "SELECT body FROM records WHERE kind = 'history' ORDER BY id"
READ_PAYLOAD = "SELECT payload FROM records WHERE id = ? AND payload IS NOT NULL"
PAYLOAD_IDS = "SELECT id FROM records WHERE id > ? AND payload IS NOT NULL ORDER BY id LIMIT ?"
DROP_PAYLOAD = "UPDATE records SET payload = NULL WHERE id = ?"
READ_PAYLOAD_KEY = "SELECT value FROM interlock_meta WHERE name = 'payload_key'"
NOTE_PAYLOAD_KEY = "INSERT INTO interlock_meta (name, value) VALUES ('payload_key', ?) ON CONFLICT (name) DO NOTHING"
MOVE_PAYLOAD_KEY = "UPDATE interlock_meta SET value = ? WHERE name = 'payload_key'"

_COLUMNS = "SELECT id, lane, hash, at_us, kind, call, turn, actor, tool, status, body FROM records"
_FILTERS = (
    " AND (CAST(? AS INTEGER) IS NULL OR lane = ?) AND (CAST(? AS TEXT) IS NULL OR call = ?)"
    " AND (CAST(? AS TEXT) IS NULL OR actor = ?) AND (CAST(? AS TEXT) IS NULL OR tool = ?)"
    " AND (CAST(? AS TEXT) IS NULL OR status = ?) AND (CAST(? AS BIGINT) IS NULL OR at_us >= ?)"
    " AND (CAST(? AS BIGINT) IS NULL OR at_us < ?)"
)
SCAN_ALL = _COLUMNS + " WHERE id > ? AND id <= ? ORDER BY id LIMIT ?"
SCAN_ALL_OF_TURN = _COLUMNS + " WHERE turn = ? AND id > ? AND id <= ? ORDER BY id LIMIT ?"
SCAN = _COLUMNS + " WHERE id > ? AND id <= ?" + _FILTERS + " ORDER BY id LIMIT ?"
SCAN_TURN = _COLUMNS + " WHERE turn = ? AND id > ? AND id <= ?" + _FILTERS + " ORDER BY id LIMIT ?"
NEWEST = _COLUMNS + " WHERE id > ? AND id <= ?" + _FILTERS + " ORDER BY id DESC LIMIT ?"
NEWEST_TURN = _COLUMNS + " WHERE turn = ? AND id > ? AND id <= ?" + _FILTERS + " ORDER BY id DESC LIMIT ?"

OPEN_ACCOUNT = "INSERT INTO accounts (scope) VALUES (?) ON CONFLICT (scope) DO NOTHING"
READ_ACCOUNT = "SELECT calls, cost_micros, ms FROM accounts WHERE scope = ? {for_update}"
WRITE_ACCOUNT = "UPDATE accounts SET calls = ?, cost_micros = ?, ms = ? WHERE scope = ?"
ACCOUNTS = "SELECT scope, calls, cost_micros, ms FROM accounts ORDER BY scope"
BUCKETS = "SELECT bucket, tokens FROM buckets WHERE at_us > 0 ORDER BY bucket"
READ_HELD = "SELECT call, budget, expires_us, calls, cost_micros, ms FROM reservations WHERE scope = ?"
ADD_HELD = (
    "INSERT INTO reservations (call, scope, budget, expires_us, calls, cost_micros, ms) VALUES (?, ?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (call, scope) DO UPDATE SET expires_us = excluded.expires_us, calls = excluded.calls,"
    " cost_micros = excluded.cost_micros, ms = excluded.ms"
)
DROP_HELD = "DELETE FROM reservations WHERE call = ? AND scope = ?"
OPEN_BUCKET = "INSERT INTO buckets (bucket, tokens, at_us) VALUES (?, -1, 0) ON CONFLICT (bucket) DO NOTHING"
READ_BUCKET = "SELECT tokens, at_us FROM buckets WHERE bucket = ? {for_update}"
WRITE_BUCKET = "UPDATE buckets SET tokens = ?, at_us = ? WHERE bucket = ?"
LOCK_CHECKPOINTS = "SELECT lane FROM lanes ORDER BY lane {for_update}"
LAST_CHECKPOINT = "SELECT COALESCE(MAX(n), 0) FROM checkpoints"
ADD_CHECKPOINT = "INSERT INTO checkpoints (n, body, signature, public_key) VALUES (?, ?, ?, ?)"
CHECKPOINTS = "SELECT n, body, signature, public_key FROM checkpoints ORDER BY n"

_CLAIM = (
    "SELECT name, request, state, generation, holder, call, tool, keys, tokens, expires_us, intent, record, turn, run,"
    " at_us FROM claims"
)
OPEN_CLAIM = "INSERT INTO claims (name) VALUES (?) ON CONFLICT (name) DO NOTHING"
READ_CLAIM = _CLAIM + " WHERE name = ? AND state <> ''"
LOCK_CLAIM = _CLAIM + " WHERE name = ? {for_update}"
READ_CLAIM_PAIR = _CLAIM + " WHERE name = ? UNION ALL " + _CLAIM + " WHERE name = ?"
CLAIMS = (
    _CLAIM + " WHERE state <> '' AND (CAST(? AS TEXT) IS NULL OR turn = ?) AND (CAST(? AS TEXT) IS NULL OR run = ?)"
    " AND (CAST(? AS BIGINT) IS NULL OR at_us >= ?) AND (CAST(? AS BIGINT) IS NULL OR record = ? OR intent = ?)"
    " ORDER BY intent"
)
HELD_BY = "SELECT call, scope, calls, cost_micros, ms FROM reservations WHERE call = ?"
UNSETTLED = _CLAIM + " WHERE state = 'unknown' OR (state = 'open' AND expires_us <= ?) ORDER BY intent"
WRITE_CLAIM = (
    "INSERT INTO claims (request, state, generation, holder, call, tool, keys, tokens, expires_us, intent, record,"
    " turn, run, at_us, name) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET"
    " request = excluded.request, state = excluded.state, generation = excluded.generation, holder = excluded.holder,"
    " call = excluded.call, tool = excluded.tool, keys = excluded.keys, tokens = excluded.tokens,"
    " expires_us = excluded.expires_us, intent = excluded.intent, record = excluded.record, turn = excluded.turn,"
    " run = excluded.run, at_us = excluded.at_us"
)
# What ends or renews a claim leaves the indexes by turn and run alone: to name a column is to write its index again.
MOVE_CLAIM = "UPDATE claims SET state = ?, expires_us = ?, intent = ?, record = ? WHERE name = ?"
_LEASE = "SELECT key, holder, token, changed, expires_us, changed_us, changed_run, others_us, others_run FROM leases"
OPEN_LEASE = "INSERT INTO leases (key) VALUES (?) ON CONFLICT (key) DO NOTHING"
# Not OR, nor IN: in a table in key order SQLite makes a table of its own for either, which takes longer than to look.
READ_LEASE = _LEASE + " WHERE key = ? UNION ALL " + _LEASE + " WHERE key = ?"
READ_LEASES = _LEASE + " WHERE substr(key, 1, length(?)) = ?"
LOCK_LEASE = _LEASE + " WHERE key = ? {for_update}"
SHARE_LEASE = _LEASE + " WHERE key = ? {for_share}"
LOCK_LEASES = _LEASE + " WHERE substr(key, 1, length(?)) = ? ORDER BY key {for_update}"
WRITE_LEASE = (
    "INSERT INTO leases (holder, token, changed, expires_us, changed_us, changed_run, others_us, others_run, key)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET holder = excluded.holder,"
    " token = excluded.token, changed = excluded.changed, expires_us = excluded.expires_us,"
    " changed_us = excluded.changed_us, changed_run = excluded.changed_run,"
    " others_us = excluded.others_us, others_run = excluded.others_run"
)
READ_TICKET = "SELECT body FROM tickets WHERE id = ?"
LOCK_TICKET = READ_TICKET + " {for_update}"
SAME_TICKETS = "SELECT body FROM tickets WHERE binding = ? AND state = 'open' {for_update}"
TICKETS = (
    "SELECT body FROM tickets WHERE (CAST(? AS TEXT) IS NULL OR state = ?)"
    " AND (CAST(? AS TEXT) IS NULL OR body LIKE ?) ORDER BY created_us, id"
)
WRITE_TICKET = (
    "INSERT INTO tickets (id, state, binding, created_us, body) VALUES (?, ?, ?, ?, ?)"
    " ON CONFLICT (id) DO UPDATE SET state = excluded.state, body = excluded.body"
)
HALTS = "SELECT scope, by_whom, reason, at_us FROM halts ORDER BY scope"
WRITE_HALT = (
    "INSERT INTO halts (scope, by_whom, reason, at_us) VALUES (?, ?, ?, ?) ON CONFLICT (scope)"
    " DO UPDATE SET by_whom = excluded.by_whom, reason = excluded.reason, at_us = excluded.at_us"
)
DROP_HALT = "DELETE FROM halts WHERE scope = ?"

DOCUMENTS_TABLE = (
    "CREATE TABLE IF NOT EXISTS {table} (key TEXT {c_order} PRIMARY KEY, body TEXT, version BIGINT NOT NULL DEFAULT 0)"
)
# The newest fencing token of each key, for each ledger: their tokens cannot be compared.
FENCES_TABLE = (
    "CREATE TABLE IF NOT EXISTS {table}_fences (key TEXT NOT NULL, ledger TEXT NOT NULL, token BIGINT NOT NULL,"
    " PRIMARY KEY (key, ledger))"
)
READ_FENCE = "SELECT token FROM {table}_fences WHERE key = ? AND ledger = ?"
WRITE_FENCE = (
    "INSERT INTO {table}_fences (key, ledger, token) VALUES (?, ?, ?) ON CONFLICT (key, ledger)"
    " DO UPDATE SET token = excluded.token"
)
READ_DOCUMENT = "SELECT body, version FROM {table} WHERE key = ? AND body IS NOT NULL"
DOCUMENTS_INDEX = "CREATE INDEX IF NOT EXISTS {table}_{field} ON {table} ({field_of})"
DOCUMENTS_RELATIONS = "SELECT name FROM {relations} WHERE name IN ({marks})"
SOME_DOCUMENTS = "SELECT key, body, version FROM {table} WHERE key IN ({marks}) AND body IS NOT NULL ORDER BY key"
PAGE_OF_DOCUMENTS = (
    "SELECT key, body, version FROM {table} WHERE key > ? AND key >= ? AND key < ? AND body IS NOT NULL"
    " ORDER BY key LIMIT ?"
)
# By the index of the field: a range of keys would be gone through one by one.
FIND_DOCUMENTS = (
    "SELECT key, body, version FROM {table} WHERE {field_of} IN ({marks}) AND key || '' >= ? AND key || '' < ?"
    " AND body IS NOT NULL ORDER BY key"
)
COUNT_DOCUMENTS = "SELECT COUNT(*) FROM {table} WHERE key >= ? AND key < ? AND body IS NOT NULL"
ALL_DOCUMENTS = "SELECT key, body, version FROM {table} WHERE body IS NOT NULL ORDER BY key"
OPEN_DOCUMENT = "INSERT INTO {table} (key) VALUES (?) ON CONFLICT (key) DO NOTHING"
LOCK_DOCUMENT = "SELECT version, body IS NULL FROM {table} WHERE key = ? {for_update}"
WRITE_DOCUMENT = "UPDATE {table} SET body = ?, version = version + 1 WHERE key = ?"
