"""A family as it was read: its document, its exercises, the aliases that point into it, and their versions."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import msgspec

from interlock_catalog.contracts import Doc, is_live
from interlock_catalog.document_keys import DocumentKey, DocumentKind
from interlock_catalog.normalise import FamilyFacts, family_facts

_encode = msgspec.json.Encoder(order="deterministic").encode


class Snapshot(msgspec.Struct, frozen=True):
    """Everything about a family is decided from this, so that the same snapshot gives the same plan."""

    slug: str
    family: Doc | None
    exercises: dict[str, Doc]
    """By id."""
    aliases: dict[str, Doc]
    """By slug: those of its exercises, those of the family itself, and those with the name of one of them."""
    elsewhere: dict[str, Doc] = {}
    """Exercises of other families that these aliases or merges point at, by id."""
    versions: dict[str, str] = {}

    @property
    def live(self) -> dict[str, Doc]:
        """The exercises that are there for people."""
        return {key: doc for key, doc in self.exercises.items() if is_live(doc)}

    @property
    def facts(self) -> FamilyFacts:
        """What normalisation needs."""
        return family_facts(self.family, self.exercises.values(), self.aliases)

    @property
    def digest(self) -> str:
        """Of everything that was read, versions left out."""
        # An undo brings content back while versions only grow: the same family has to have the same digest again.
        content = [self.slug, self.family, self.exercises, self.aliases, self.elsewhere]
        return hashlib.sha256(_encode(content)).hexdigest()[:16]

    def with_states(self, states: Mapping[str, Doc | None]) -> Snapshot:
        """The same family once these keys have these states."""
        exercises, aliases, family = dict(self.exercises), dict(self.aliases), self.family
        for key, state in states.items():
            parsed = DocumentKey.parse(key)
            if parsed.kind is DocumentKind.FAMILY and parsed.name == self.slug:
                family = state
                continue
            documents = exercises if parsed.kind is DocumentKind.EXERCISE else aliases
            if state is None:
                documents.pop(parsed.name, None)
            else:
                documents[parsed.name] = state
        return msgspec.structs.replace(self, family=family, exercises=exercises, aliases=aliases)
