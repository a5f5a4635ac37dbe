"""The changes that can be made, as pure functions of documents: the tools simulate and perform with the same ones."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Container, Mapping, Sequence
from typing import Annotated

from pydantic import AfterValidator, Field

from interlock_catalog.contracts import Doc, Json, Name, Slug, Strict, with_value
from interlock_catalog.document_keys import DocumentKey, DocumentKind
from interlock_catalog.normalise import FamilyFacts, normalise
from interlock_catalog.vocabulary import slug as slug_of

MUSCLE_FIELDS = ("muscles.primary", "muscles.secondary", "muscles.category", "muscles.contribution")
TEXT_FIELDS = (
    "description",
    "execution_notes",
    "common_mistakes",
    "suitability_notes",
    "programming_use_cases",
    "stimulus_tags",
)
PATCHABLE = (
    "name",
    "name_slug",
    "family_slug",
    "variant_key",
    "equipment",
    "category",
    *MUSCLE_FIELDS,
    "metadata.level",
    "metadata.plane_of_motion",
    "metadata.unilateral",
    "movement.type",
    "movement.split",
    *TEXT_FIELDS,
)
"""What `upsert_exercise` may set; id, status and merges have operations of their own."""


def _check_encodable(text: str) -> str:
    text.encode()  # a lone surrogate is no text
    return text


class FieldChange(Strict):
    """One field: what it was, what it should be, and why."""

    field: str
    before: Json
    after: Json
    justification: Annotated[str, Field(min_length=3, max_length=600)]
    evidence: Annotated[str, Field(min_length=3, max_length=200, pattern=r"^[a-z_]+:\S")]


class NormaliseItem(Strict):
    """One exercise of a page that is normalised, with what must be known about its family."""

    exercise_id: Name
    family_name: Annotated[str, Field(max_length=200, pattern=r"^[^\x00-\x1f]*$"), AfterValidator(_check_encodable)]
    qualified: bool
    old_slug: Slug | None = None
    """A slug that it loses by this, and that becomes an alias."""
    keeps_slug: bool = False
    """Its slug leads to something else as well, and could not become an alias: only what leaves it as it is is done."""


class AliasTarget(Strict):
    """An alias, and what it should point at."""

    alias_slug: Name
    exercise_id: Name | None = None
    family_slug: Slug | None = None


def patch_exercise(state: Doc | None, changes: Sequence[Mapping[str, Json]], identity: str) -> Doc:
    """An exercise with changes made; a new one is a draft."""
    made: Doc = dict(state) if state is not None else {"id": identity, "status": "draft", "merge_lineage": []}
    for change in changes:
        made = with_value(made, str(change["field"]), change["after"])
    return made


def normalise_exercise(state: Doc | None, item: Mapping[str, Json]) -> Doc | None:
    """An exercise in canonical form."""
    if state is None:
        return None
    held = frozenset({str(state.get("name_slug"))} if item.get("keeps_slug") else ())
    return normalise(state, FamilyFacts(str(item["family_name"]), bool(item["qualified"]), held)).doc


def list_normalise_items(
    live: Mapping[str, Doc], facts: FamilyFacts, aliases: Container[str]
) -> dict[str, dict[str, Json]]:
    """What normalising each live exercise of a family takes, by id: no name goes without an alias that leads there."""
    slugs = {identity: normalise(doc, facts).doc.get("name_slug") for identity, doc in live.items()}
    items: dict[str, dict[str, Json]] = {}
    for identity, doc in live.items():
        old = doc.get("name_slug")
        # A slug that is not that of the name is itself the fault, and nobody knows the exercise by it.
        is_known = isinstance(doc.get("name"), str) and slug_of(str(doc["name"])) == old
        is_lost = is_known and old and old != slugs[identity] and old not in slugs.values() and old not in aliases
        items[identity] = {
            "exercise_id": identity,
            "family_name": facts.base_name,
            "qualified": facts.qualified,
            "old_slug": str(old) if is_lost else None,
        }
        if old in facts.held:
            items[identity]["keeps_slug"] = True
    return items


def merge_document(key: str, state: Doc | None, source: str, target: str) -> Doc | None:
    """What a merge of `source` into `target` makes of one document: of either exercise, or of an alias."""
    parsed = DocumentKey.parse(key)
    if parsed.kind is DocumentKind.ALIAS:
        return build_alias(parsed.name, exercise_id=target)
    if state is None:
        return None
    if parsed.name == source:
        return {**state, "status": "merged", "merged_into": target}
    # Made again, a merge must not list its source twice.
    lineage = [item for item in state.get("merge_lineage") or [] if item != source]
    return {**state, "merge_lineage": [*lineage, source]}


def build_alias(slug: str, *, exercise_id: str | None = None, family_slug: str | None = None) -> Doc:
    """An alias document, with the targets that it has and no others."""
    doc: Doc = {"alias_slug": slug}
    if exercise_id is not None:
        doc["exercise_id"] = exercise_id
    if family_slug is not None:
        doc["family_slug"] = family_slug
    return doc


def approve_draft(state: Doc | None) -> Doc | None:
    """The same draft, approved."""
    return None if state is None else {**state, "status": "approved"}


def content_digest(doc: Doc | None) -> str:
    """Identifies an exercise as it was when something was decided about it; what was merged into it does not matter."""
    plain = None if doc is None else {**doc, "merge_lineage": []}
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:16]
