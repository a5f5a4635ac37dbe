"""Keys of documents: stores, requests and the ledger know a document by a text. Only this file writes and reads it."""

from __future__ import annotations

from enum import StrEnum

import msgspec

RESOURCE = "catalog"
"""The name by which the ledger knows the catalog: what stands before the slash in a key of a record."""


class DocumentKind(StrEnum):
    """What is kept under a key."""

    EXERCISE = "exercise"
    ALIAS = "alias"
    FAMILY = "family"
    SEARCH = "search"
    ANSWER = "idem"
    """The answer to a request that carried an idempotency key."""
    LEDGER = "ledger"
    """Which token works for a ledger whose fencing tokens were sent."""
    RUN = "run"
    WORKER = "worker"

    @property
    def prefix(self) -> str:
        """What every key of this kind begins with: pages are asked for by it."""
        return f"{self.value}:"


class DocumentKey(msgspec.Struct, frozen=True, order=True):
    """The kind of a document, and its name among those of the kind."""

    kind: DocumentKind
    name: str

    @property
    def text(self) -> str:
        return f"{self.kind.prefix}{self.name}"

    @classmethod
    def parse(cls, text: str) -> DocumentKey:
        """The key that a text stands for; ValueError if there is no such kind."""
        kind, colon, name = text.partition(":")
        if not colon or kind not in _KINDS:
            kinds = ", ".join(DocumentKind)
            raise ValueError(f"{text!r} is no key of a document: write KIND:NAME, where KIND is one of {kinds}")
        return cls(DocumentKind(kind), name)


_KINDS = frozenset(DocumentKind)


def exercise_key(identity: object) -> str:
    return DocumentKey(DocumentKind.EXERCISE, str(identity)).text


def alias_key(slug: object) -> str:
    return DocumentKey(DocumentKind.ALIAS, str(slug)).text


def family_key(slug: object) -> str:
    return DocumentKey(DocumentKind.FAMILY, str(slug)).text


def name_of(key: str) -> str:
    """The id or slug in a key."""
    return DocumentKey.parse(key).name


def kind_of(key: str) -> DocumentKind | None:
    """The kind of document that a key stands for; None if it stands for none."""
    try:
        return DocumentKey.parse(key).kind
    except ValueError:
        return None
