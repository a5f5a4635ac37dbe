"""Every statement of a memory, in one table; braces stand for what the databases spell differently."""

from __future__ import annotations

LIVE = "(d.expires_us IS NULL OR d.expires_us > ?)"
"""A document that has not expired; the parameter is the time."""

_TABLES = (
    "CREATE TABLE IF NOT EXISTS memory_meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS memory_namespaces (name TEXT PRIMARY KEY, at_us {id} NOT NULL)",
    """CREATE TABLE IF NOT EXISTS memory_documents (
        number {serial}, id TEXT NOT NULL UNIQUE, namespace TEXT NOT NULL, kind TEXT NOT NULL, trust TEXT NOT NULL,
        time_us {id} NOT NULL, expires_us {id}, half_life_s {real}, revision {id} NOT NULL, chunks {id} NOT NULL,
        title TEXT NOT NULL, metadata TEXT NOT NULL, digest TEXT NOT NULL, added_us {id} NOT NULL,
        vouched_by TEXT NOT NULL, vouched_us {id} NOT NULL)""",
    "CREATE INDEX IF NOT EXISTS memory_documents_revision ON memory_documents (revision)",
    "CREATE INDEX IF NOT EXISTS memory_documents_expires ON memory_documents (expires_us)",
    """CREATE TABLE IF NOT EXISTS memory_sources (
        document {id} NOT NULL, source TEXT {c_order} NOT NULL, time_us {id} NOT NULL, added_us {id} NOT NULL,
        trust TEXT NOT NULL, PRIMARY KEY (document, source))""",
    "CREATE INDEX IF NOT EXISTS memory_sources_source ON memory_sources (source)",
    # The keys under which a source has brought a document: another source may have brought it under another one.
    """CREATE TABLE IF NOT EXISTS memory_keys (
        number {serial}, document {id} NOT NULL, key TEXT NOT NULL, source TEXT {c_order} NOT NULL)""",
    "CREATE INDEX IF NOT EXISTS memory_keys_document ON memory_keys (document)",
    "CREATE INDEX IF NOT EXISTS memory_keys_key ON memory_keys (key)",
    "CREATE TABLE IF NOT EXISTS memory_removals (number {serial}, revision {id} NOT NULL, document {id} NOT NULL)",
    "CREATE INDEX IF NOT EXISTS memory_removals_revision ON memory_removals (revision)",
    """CREATE TABLE IF NOT EXISTS memory_facts (
        number {serial}, id TEXT NOT NULL UNIQUE, document {id}, namespace TEXT NOT NULL, subject TEXT NOT NULL,
        predicate TEXT NOT NULL, value TEXT NOT NULL, source TEXT NOT NULL, trust TEXT NOT NULL, state TEXT NOT NULL,
        since_us {id} NOT NULL, until_us {id}, vouched_by TEXT NOT NULL)""",
    "CREATE INDEX IF NOT EXISTS memory_facts_stand ON memory_facts (namespace, subject, predicate, state)",
    "CREATE INDEX IF NOT EXISTS memory_facts_of ON memory_facts (document, state)",
    """CREATE TABLE IF NOT EXISTS memory_tombstones (
        number {serial}, id TEXT NOT NULL UNIQUE, digest TEXT NOT NULL, namespace TEXT NOT NULL, at_us {id} NOT NULL,
        by_whom TEXT NOT NULL, reason TEXT NOT NULL)""",
    "CREATE INDEX IF NOT EXISTS memory_tombstones_digest ON memory_tombstones (digest)",
    # Texts that came in untrusted, by keyed digests: the label outlives the text.
    "CREATE TABLE IF NOT EXISTS memory_labels (digest TEXT PRIMARY KEY)",
)
_PACKED = (
    """CREATE TABLE IF NOT EXISTS memory_vectors (
        number {serial}, chunk {id} NOT NULL UNIQUE, document {id} NOT NULL, scale {real} NOT NULL, codes {blob})""",
    "CREATE INDEX IF NOT EXISTS memory_vectors_document ON memory_vectors (document)",
)
SQLITE_SCHEMA = (
    *_TABLES,
    """CREATE TABLE IF NOT EXISTS memory_chunks (
        number INTEGER PRIMARY KEY, start {id} NOT NULL, heading TEXT NOT NULL, text TEXT NOT NULL)""",
    # Without a copy of the text: it would have to be forgotten twice.
    """CREATE VIRTUAL TABLE IF NOT EXISTS memory_words USING fts5(
        words, content='', tokenize='porter unicode61 remove_diacritics 2')""",
    *_PACKED,
)
POSTGRES_SCHEMA = (
    *_TABLES,
    """CREATE TABLE IF NOT EXISTS memory_chunks (
        number {id} PRIMARY KEY, start {id} NOT NULL, heading TEXT NOT NULL, text TEXT NOT NULL, words tsvector
        GENERATED ALWAYS AS (to_tsvector('english', heading || ' ' || text)) STORED)""",
    "CREATE INDEX IF NOT EXISTS memory_chunks_words ON memory_chunks USING gin (words)",
    *_PACKED,
)
PGVECTOR_SCHEMA = (
    """CREATE TABLE IF NOT EXISTS memory_embeddings (
        chunk {id} PRIMARY KEY, document {id} NOT NULL, embedding halfvec({dimensions}) NOT NULL)""",
    "CREATE INDEX IF NOT EXISTS memory_embeddings_document ON memory_embeddings (document)",
    """CREATE INDEX IF NOT EXISTS memory_embeddings_near ON memory_embeddings
        USING hnsw (embedding halfvec_ip_ops)""",
)
HAS_PGVECTOR = "SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'"
MAKE_PGVECTOR = "CREATE EXTENSION IF NOT EXISTS vector"
PGVECTOR_VERSION = "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
SEARCH_THROUGH_FILTERS = "SET hnsw.iterative_scan = strict_order"
LOOK_WIDELY = "SET hnsw.ef_search = 100"
LOCK_SERVER = "SELECT pg_advisory_xact_lock(?)"
"""One writer at a time, as in SQLite: whoever reads what is new by its number must not miss one that commits late."""

READ_META = "SELECT value FROM memory_meta WHERE name = ?"
NOTE_META = "INSERT INTO memory_meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING"
CLEAR_META = "UPDATE memory_meta SET value = '' WHERE name = ? AND value = ?"
WRITE_META = "UPDATE memory_meta SET value = ? WHERE name = ?"

ADD_NAMESPACE = "INSERT INTO memory_namespaces (name, at_us) VALUES (?, ?) ON CONFLICT (name) DO NOTHING"
NAMESPACES = "SELECT name FROM memory_namespaces ORDER BY name"
DROP_NAMESPACE = "DELETE FROM memory_namespaces WHERE name = ?"

_DOCUMENT = """d.number, d.id, d.namespace, d.kind, d.trust, d.time_us, d.expires_us, d.half_life_s, d.chunks,
    d.title, d.metadata, d.digest, d.vouched_by"""
FIND_DOCUMENT = f"SELECT {_DOCUMENT} FROM memory_documents d WHERE d.id = ?"
READ_DOCUMENT = f"SELECT {_DOCUMENT} FROM memory_documents d WHERE d.number = ?"
READ_DOCUMENTS = f"SELECT {_DOCUMENT} FROM memory_documents d WHERE d.number IN ({{marks}})"
READ_TEXTS = "SELECT number, heading, text FROM memory_chunks WHERE number IN ({marks})"
KEPT_DOCUMENTS = f"""SELECT {_DOCUMENT} FROM memory_documents d WHERE {LIVE} AND (? = '' OR d.id = ?)
    AND (? = '' OR EXISTS (SELECT 1 FROM memory_keys k WHERE k.document = d.number AND k.key = ?))
    AND (? = '' OR EXISTS (SELECT 1 FROM memory_sources s WHERE s.document = d.number
    AND s.source = ?)) AND {{where}} ORDER BY d.number DESC LIMIT ?"""
LAST_SOURCES = """SELECT document, source FROM memory_sources WHERE document IN ({marks})
    ORDER BY added_us, source"""
ADD_DOCUMENT = """INSERT INTO memory_documents (id, namespace, kind, trust, time_us, expires_us, half_life_s, revision,
    chunks, title, metadata, digest, added_us, vouched_by, vouched_us)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '', 0) RETURNING number"""
SET_DOCUMENT = """UPDATE memory_documents SET kind = ?, trust = ?, time_us = ?, expires_us = ?, half_life_s = ?,
    revision = ? WHERE number = ?"""
VOUCH_DOCUMENT = """UPDATE memory_documents SET trust = 'trusted', vouched_by = ?, vouched_us = ?, revision = ?
    WHERE number = ?"""
_IS_FACT_ALONE = """NOT EXISTS (SELECT 1 FROM memory_sources s WHERE s.document = memory_documents.number
    AND NOT EXISTS (SELECT 1 FROM memory_keys k WHERE k.document = s.document AND k.source = s.source AND k.key = ?))
    AND NOT EXISTS (SELECT 1 FROM memory_keys k WHERE k.document = memory_documents.number AND k.key <> ?)"""
_STANDS_NO_MORE = """NOT EXISTS (SELECT 1 FROM memory_facts f WHERE f.document = memory_documents.number
    AND f.state <> 'replaced')"""
END_DOCUMENT = f"""UPDATE memory_documents SET expires_us = 0, revision = ? WHERE number = ? AND {_STANDS_NO_MORE}
    AND {_IS_FACT_ALONE}"""
"""As a fact that holds no more; what somebody has brought as something else stays. At no time that is looked for when
what has expired is removed: its history stays."""
BE_NO_FACT = f"""UPDATE memory_documents SET kind = 'note', revision = ? WHERE number = ? AND kind = 'fact'
    AND expires_us IS NULL AND {_STANDS_NO_MORE}"""
ADD_SOURCE = """INSERT INTO memory_sources (document, source, time_us, added_us, trust) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (document, source) DO UPDATE SET time_us = excluded.time_us, added_us = excluded.added_us,
    trust = excluded.trust"""
SOURCES = "SELECT source FROM memory_sources WHERE document = ? ORDER BY added_us, source"
ADD_KEY = "INSERT INTO memory_keys (document, key, source) VALUES (?, ?, ?)"
LAST_KEY = "SELECT key FROM memory_keys WHERE document = ? ORDER BY number DESC LIMIT 1"
KEY_SOURCES = "SELECT source FROM memory_keys WHERE document = ? AND key = ? ORDER BY number"
DROP_KEY_OF_SOURCE = "DELETE FROM memory_keys WHERE document = ? AND key = ? AND source = ?"
DROP_KEY = "DELETE FROM memory_keys WHERE document = ? AND key = ?"
DROP_KEYS_OF_SOURCE = "DELETE FROM memory_keys WHERE document = ? AND source = ?"
DROP_SOURCES_OF_KEY = """DELETE FROM memory_sources WHERE document = ? AND source IN (SELECT k.source FROM memory_keys k
    WHERE k.document = memory_sources.document AND k.key = ?) AND NOT EXISTS (SELECT 1 FROM memory_keys k
    WHERE k.document = memory_sources.document AND k.source = memory_sources.source AND k.key <> ?)"""
"""The sources that have brought a document under this key alone."""
DROP_SOURCE = "DELETE FROM memory_sources WHERE document = ? AND source = ?"
ADD_CHUNK = "INSERT INTO memory_chunks (number, start, heading, text) VALUES (?, ?, ?, ?)"
ADD_WORDS = "INSERT INTO memory_words (rowid, words) VALUES (?, ?)"
DROP_WORDS = "INSERT INTO memory_words (memory_words, rowid, words) VALUES ('delete', ?, ?)"
MERGE_WORDS = "INSERT INTO memory_words (memory_words) VALUES ('optimize')"
"""What was deleted from the index lies in its older parts until they are made one."""
CHUNKS_BETWEEN = """SELECT number, start, heading, text FROM memory_chunks WHERE number BETWEEN ? AND ?
    ORDER BY number"""
WITHOUT_VECTOR = """SELECT c.number, c.heading, c.text FROM memory_chunks c
    LEFT JOIN {vectors} v ON v.chunk = c.number WHERE v.chunk IS NULL AND c.number > ? ORDER BY c.number LIMIT ?"""
CHUNK_IS_THERE = "SELECT 1 FROM memory_chunks WHERE number = ?"

ADD_VECTOR = """INSERT INTO memory_vectors (chunk, document, scale, codes) VALUES (?, ?, ?, ?)
    ON CONFLICT (chunk) DO NOTHING"""
VECTORS_AFTER = (
    "SELECT number, chunk, document, scale, codes FROM memory_vectors WHERE number > ? ORDER BY number LIMIT ?"
)
ADD_EMBEDDING = """INSERT INTO memory_embeddings (chunk, document, embedding) VALUES (?, ?, ?)
    ON CONFLICT (chunk) DO NOTHING"""
DOCUMENTS_AFTER = """SELECT number, revision, namespace, kind, trust, expires_us FROM memory_documents
    WHERE revision > ? ORDER BY revision"""
REMOVALS_AFTER = "SELECT document FROM memory_removals WHERE revision > ?"
DOCUMENTS_FROM = "SELECT document FROM memory_sources WHERE source >= ? AND source < ?"

# The number of a chunk holds that of its document, so that a filter reads no text (interlock.memory.numbering).
_PLACE = "JOIN memory_documents d ON d.number = w.rowid >> 20"
SQLITE_COUNT = "SELECT count(*) FROM (SELECT 1 FROM memory_words WHERE memory_words MATCH ? LIMIT ?) AS found"
POSTGRES_COUNT = """SELECT count(*) FROM (SELECT 1 FROM memory_chunks WHERE words @@ to_tsquery('english', ?)
    LIMIT ?) AS found"""
SQLITE_MATCH = f"""SELECT w.rowid FROM memory_words w {_PLACE} WHERE memory_words MATCH ? AND {{where}}
    ORDER BY w.rank LIMIT ?"""
POSTGRES_MATCH = """SELECT c.number FROM memory_chunks c JOIN memory_documents d ON d.number = c.number >> 20,
    to_tsquery('english', ?) AS asked WHERE c.words @@ asked AND {where}
    ORDER BY ts_rank_cd(c.words, asked, 1) DESC, c.number LIMIT ?"""
SQLITE_NEWEST = """SELECT w.rowid FROM memory_words w CROSS JOIN memory_documents d ON d.number = w.rowid >> 20
    WHERE memory_words MATCH ? AND {where} ORDER BY w.rowid DESC LIMIT ?"""
"""Of those that are meant: among the newest of all there may be nothing but what others have written."""
POSTGRES_NEWEST = """SELECT c.number FROM memory_chunks c JOIN memory_documents d ON d.number = c.number >> 20
    WHERE c.words @@ to_tsquery('english', ?) AND {where} ORDER BY c.number DESC LIMIT ?"""
NEAR = """SELECT e.chunk, -(e.embedding <#> ?::halfvec) AS likeness FROM memory_embeddings e
    JOIN memory_documents d ON d.number = e.document WHERE {where}
    ORDER BY e.embedding <#> ?::halfvec LIMIT ?"""
IN_NAMESPACES = "d.namespace IN ({marks})"
IN_KINDS = "d.kind IN ({marks})"
IN_TRUST = "d.trust = ?"
FROM_SOURCE = """EXISTS (SELECT 1 FROM memory_sources s WHERE s.document = d.number AND s.source >= ? AND
    s.source < ?)"""

DROP_CHUNKS = "DELETE FROM memory_chunks WHERE number BETWEEN ? AND ?"
DROP_VECTORS = "DELETE FROM {vectors} WHERE document = ?"
DROP_SOURCES = "DELETE FROM memory_sources WHERE document = ?"
DROP_KEYS = "DELETE FROM memory_keys WHERE document = ?"
DROP_FACTS = "DELETE FROM memory_facts WHERE document = ?"
DROP_DOCUMENT = "DELETE FROM memory_documents WHERE number = ?"
ADD_REMOVAL = "INSERT INTO memory_removals (revision, document) VALUES (?, ?)"
BY_ID = "SELECT number FROM memory_documents d WHERE d.id = ? AND (? = '' OR d.namespace = ?)"
BY_NAMESPACE = "SELECT number FROM memory_documents WHERE namespace = ?"
BY_KEY = """SELECT DISTINCT d.number FROM memory_keys k JOIN memory_documents d ON d.number = k.document
    WHERE k.key = ? AND (? = '' OR d.namespace = ?) ORDER BY d.number"""
BY_AGE = "SELECT number FROM memory_documents d WHERE d.time_us < ? AND (? = '' OR d.namespace = ?)"
BY_SOURCE = """SELECT d.number, s.source FROM memory_documents d JOIN memory_sources s ON s.document = d.number
    WHERE s.source >= ? AND s.source < ? AND (? = '' OR d.namespace = ?) ORDER BY d.number"""
EXPIRED = """SELECT number FROM memory_documents d WHERE expires_us BETWEEN 1 AND ? AND NOT EXISTS (SELECT 1
    FROM memory_facts f WHERE f.document = d.number) ORDER BY expires_us LIMIT ?"""
ADD_TOMBSTONE = """INSERT INTO memory_tombstones (id, digest, namespace, at_us, by_whom, reason)
    VALUES (?, ?, ?, ?, ?, ?)"""
FIND_TOMBSTONE = "SELECT max(at_us) FROM memory_tombstones WHERE digest = ?"
TOMBSTONES = "SELECT id, digest, namespace, at_us, by_whom, reason FROM memory_tombstones ORDER BY number"
VACUUM = tuple(f"VACUUM memory_{name}" for name in ("chunks", "documents", "sources", "keys", "facts", "vectors"))
VACUUM_EMBEDDINGS = "VACUUM memory_embeddings"

ADD_LABEL = "INSERT INTO memory_labels (digest) VALUES (?) ON CONFLICT (digest) DO NOTHING"
FIND_LABEL = "SELECT 1 FROM memory_labels WHERE digest = ?"

_FACT = "id, namespace, subject, predicate, value, source, trust, state, since_us, until_us, vouched_by"
CURRENT_FACT = f"""SELECT {_FACT}, document FROM memory_facts WHERE namespace = ? AND subject = ? AND predicate = ?
    AND state = 'current' ORDER BY number LIMIT 1"""
FACTS = f"""SELECT {_FACT} FROM memory_facts WHERE namespace = ? AND (? = '' OR subject = ?)
    AND (? = '' OR predicate = ?) AND (? = '' OR state = ?) ORDER BY subject, predicate, since_us, number"""
ADD_FACT = """INSERT INTO memory_facts (id, document, namespace, subject, predicate, value, source, trust, state,
    since_us, until_us, vouched_by) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
MOVE_FACT = "UPDATE memory_facts SET source = ? WHERE id = ?"
DROP_FACT = "DELETE FROM memory_facts WHERE id = ?"
SET_FACT = "UPDATE memory_facts SET state = ?, until_us = ?, source = ?, trust = ?, vouched_by = ? WHERE id = ?"
COUNT_FACTS = "SELECT count(*) FROM memory_facts WHERE document = ?"
FACTS_OF = f"SELECT {_FACT}, document FROM memory_facts WHERE document = ? ORDER BY number"
STANDING_FACTS = f"""SELECT {_FACT}, document FROM memory_facts WHERE document = ? AND state <> 'replaced'
    ORDER BY number"""

COUNT_DOCUMENTS = "SELECT count(*) FROM memory_documents"
COUNT_CHUNKS = "SELECT count(*) FROM memory_chunks"
COUNT_VECTORS_OF = "SELECT count(*) FROM {vectors} WHERE document = ?"
COUNT_VECTORS = "SELECT count(*) FROM {vectors}"

FROM_SCHEMA_1 = (
    """INSERT INTO memory_keys (document, key, source) SELECT d.number, d.key, s.source FROM memory_documents d
        JOIN memory_sources s ON s.document = d.number WHERE d.key <> '' ORDER BY d.number, s.added_us""",
    "DROP INDEX memory_documents_key",
    "ALTER TABLE memory_documents DROP COLUMN key",
    "DROP INDEX memory_facts_about",
    "DROP INDEX memory_facts_document",
)
ALL_FACTS = "SELECT DISTINCT document, subject, predicate FROM memory_facts"
