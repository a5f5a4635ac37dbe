"""Limits that are looked at before any work, and what is said to whoever is over them."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from interlock.canonical import Refusal, canonical, did_you_mean
from interlock.errors import InvalidInput
from interlock.memory.documents import Document, DocumentKind, Retention
from interlock.values import Trust, shorten
from interlock.wrong_values import refuse_unknown

_CHUNK_ID = re.compile(r"[\w:.-]+", re.ASCII)
_NAMESPACE = re.compile(r"[a-z0-9][a-z0-9_.:-]{0,99}")
_LATEST_US = 2**62
MOST_HITS = 50
MOST_DOCUMENTS = 200
NEIGHBOURS = 10


class MemoryLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much is taken at once."""

    document_chars: int = 2_000_000
    chunks: int = 10_000
    """Of one document."""
    query_chars: int = 2_000
    chunk_id_chars: int = 200
    name_chars: int = 2_000
    """Of a source, a title, a key, a subject or a predicate."""
    value_chars: int = 10_000
    """Of a fact."""
    metadata_bytes: int = 4_096

    def check_document(self, document: object) -> None:
        """Refuse what cannot be remembered as it is, before it is cut or embedded."""
        if not isinstance(document, Document):
            raise InvalidInput(f"a document is an interlock.memory.Document, not {type(document).__name__}")
        _require_types(document)
        if len(document.text) > self.document_chars:
            raise InvalidInput(
                f"the document has {len(document.text):,} characters; at most {self.document_chars:,} are remembered"
                " at once: split it"
            )
        if not document.text.strip():
            raise InvalidInput("the document has no text")
        if not document.source.strip():
            raise InvalidInput("a document says where it comes from: source= is empty")
        for name in ("source", "title", "key"):
            self.check_name(name, getattr(document, name))
        if document.replaces and not document.key:
            raise InvalidInput("replaces= needs a key=: what goes are other documents under the same key")
        if document.kind is DocumentKind.WEB and document.trust is Trust.TRUSTED:
            raise InvalidInput(
                "text from the web is untrusted, whoever hands it over; a person who has read it may vouch for it"
            )
        _check_time("time_us", document.time_us)
        _check_retention(document.retention)
        self._check_metadata(document)

    def _check_metadata(self, document: Document) -> None:
        try:
            canonical(document.metadata, self.metadata_bytes)
        except Refusal as refusal:
            raise InvalidInput(f"metadata: {refusal}") from None

    def check_name(self, what: str, text: object, *, needed: bool = False) -> str:
        """A text that names something: bounded, and on one line."""
        if not isinstance(text, str):
            raise InvalidInput(f"{what} is a text, not {type(text).__name__}")
        if needed and not text.strip():
            raise InvalidInput(f"{what} is empty")
        if len(text) > self.name_chars:
            raise InvalidInput(f"{what} has {len(text):,} characters; at most {self.name_chars:,}")
        if not text.isprintable():
            raise InvalidInput(f"{what} {shorten(ascii(text))} has characters that nobody sees; write it without")
        return text

    def check_value(self, value: object) -> str:
        """The value of a fact."""
        if not isinstance(value, str) or not value.strip():
            raise InvalidInput("the value of a fact is a text that is not empty")
        if len(value) > self.value_chars:
            raise InvalidInput(f"the value of the fact has {len(value):,} characters; at most {self.value_chars:,}")
        return value

    def check_query(self, query: object) -> str:
        """The words of a search."""
        if not isinstance(query, str):
            raise InvalidInput(f"a query is a text, not {type(query).__name__}")
        if not query.strip():
            raise InvalidInput("the query is empty")
        if len(query) > self.query_chars:
            raise InvalidInput(f"the query has {len(query):,} characters; at most {self.query_chars:,}")
        return query

    def check_chunk_id(self, chunk: object) -> str:
        """An id as a search has given it."""
        if not isinstance(chunk, str):
            raise InvalidInput(f"a chunk id is a text, not {type(chunk).__name__}")
        if len(chunk) > self.chunk_id_chars:
            raise InvalidInput(f"the chunk id has {len(chunk):,} characters; at most {self.chunk_id_chars}")
        if _CHUNK_ID.fullmatch(chunk) is None:
            raise InvalidInput(
                f"{shorten(ascii(chunk))} is no chunk id: letters, digits and the signs _ : . - are allowed"
            )
        return chunk


def check_count(what: str, value: object, least: int, most: int) -> int:
    """A whole number within bounds."""
    if type(value) is not int:
        raise InvalidInput(f"{what} is a whole number, not {shorten(repr(value))}")
    if not least <= value <= most:
        raise InvalidInput(f"{what} is between {least} and {most}, not {value}")
    return value


def check_namespace_name(name: object) -> str:
    """A name that a namespace may have."""
    if not isinstance(name, str) or _NAMESPACE.fullmatch(name) is None:
        raise InvalidInput(
            f"{shorten(ascii(name))} cannot be the name of a namespace: at most 100 small letters, digits and the"
            " signs _ . : -, beginning with a letter or digit"
        )
    return name


def refuse_unknown_namespaces(asked: Iterable[object], known: Iterable[str]) -> None:
    """Refuse a namespace that nobody has made."""
    names = sorted(known)
    for name in asked:
        if not isinstance(name, str) or name not in names:
            way_out = did_you_mean(str(name)[:100], names) or f"; there are {', '.join(names)}"
            raise InvalidInput(f"there is no namespace {shorten(str(name))!r}{way_out}")


def refuse_unknown_options(what: str, options: Iterable[str], known: Iterable[str]) -> None:
    """Refuse an option that nothing reads: a misspelled filter would find more than was asked for."""
    refuse_unknown(what, options, known)


def _require_types(document: Document) -> None:
    """Structs look at what they decode, not at what is passed."""
    try:
        msgspec.convert(msgspec.to_builtins(document), Document)
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        raise InvalidInput(f"the document cannot be remembered: {error}") from None
    for name, kind in (("kind", DocumentKind), ("trust", Trust)):
        value = getattr(document, name)
        if not isinstance(value, kind):
            raise InvalidInput(f"{name} is {kind.__name__}.{kind(value).name}, and not the text {str(value)!r}")


def _check_time(what: str, value: int | None) -> None:
    if value is not None and not 0 <= value < _LATEST_US:
        raise InvalidInput(f"{what} is microseconds since 1970, not {value}")


def _check_retention(retention: Retention | None) -> None:
    for name in () if retention is None else ("keep_s", "half_life_s"):
        value = getattr(retention, name)
        if value is not None and not 0 < value < _LATEST_US / 1e6:
            raise InvalidInput(f"retention: {name} is a number of seconds above 0, not {value}")
