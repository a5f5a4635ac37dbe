"""Outliers among siblings, and texts off their subject: they may be right, so they are only suspected."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache

import msgspec

from interlock_catalog.checks.issues import Issue
from interlock_catalog.contracts import Doc, Json, value_at
from interlock_catalog.document_keys import exercise_key
from interlock_catalog.naming import split_name
from interlock_catalog.snapshot import Snapshot
from interlock_catalog.vocabulary import equipment_name, ordered_words, slug

COMPARED = ("movement.type", "movement.split", "category", "metadata.plane_of_motion", "muscles.primary")
MIN_SIBLINGS = 3
"""With fewer, one value more or less makes a majority."""
MIN_SHARE = 0.6
"""The share of siblings with the same value from which on another value is an outlier."""
_IN_ANY_TEXT = ("bodyweight", "other", "box", "bench", "machine")
"""Equipment whose name is also a plain word: a text that has it need not speak of the equipment."""


def find_outliers(family: Snapshot) -> Iterator[Issue]:
    """Values that differ from what most siblings have, and descriptions that speak of something else."""
    docs, base_name = family.live, family.facts.base_name
    majorities = {field: _find_majority(docs, field) for field in COMPARED}
    for identity, doc in sorted(docs.items()):
        for field, majority in majorities.items():
            value = value_at(doc, field)
            if majority is not None and value not in (None, [], "") and not _is_alike(value, majority.value):
                why = f"{value!r}, while {majority.share:.0%} have {majority.value!r}"
                yield _issue(identity, field, "outlier", why, majority)
        yield from _check_description(identity, doc, family.slug, base_name)


class _Majority(msgspec.Struct, frozen=True):
    """The value that most of a family has, and the share that has it."""

    value: Json
    share: float


def _find_majority(docs: dict[str, Doc], field: str) -> _Majority | None:
    values = [
        # As text, since lists cannot be counted.
        json.dumps(value, sort_keys=True)
        for doc in docs.values()
        if (value := value_at(doc, field)) not in (None, [], "")
    ]
    # Not `<`: the exercise that is compared is one of the values itself.
    if len(values) <= MIN_SIBLINGS:
        return None
    common, count = Counter(values).most_common(1)[0]
    share = count / len(values)
    return _Majority(json.loads(common), share) if share >= MIN_SHARE else None


def _is_alike(value: Json, other: Json) -> bool:
    """Lists that share an element are alike: a variant may add a muscle."""
    if isinstance(value, list) and isinstance(other, list):
        return any(item in other for item in value)
    return bool(value == other)


def _check_description(identity: str, doc: Doc, family: str, base_name: str) -> Iterator[Issue]:
    """Whether a description speaks of the exercise, and of its own equipment."""
    text, name = doc.get("description"), doc.get("name")
    if not isinstance(text, str) or not isinstance(name, str) or not text.strip():
        return
    # Hyphens at both ends, so that whole words are found: a row is not in what is narrow.
    said = f"-{slug(text)}-"
    own = {slug(split_name(name)[0]), family, slug(base_name)}
    if not any(f"-{part}-" in said or f"-{part}s-" in said for part in own if part):
        why = f"it names neither {name!r} nor {base_name!r}"
        # That is enough: a text about something else names other equipment as well, and would be reported twice.
        yield _issue(identity, "description", "other_subject", why)
        return
    equipment = doc.get("equipment")
    mine = {str(item) for item in equipment} if isinstance(equipment, list) else set()
    named = {slug(found) for found in _equipment_pattern().findall(text)}
    others = [item for item in ordered_words("equipment") if item in named and item not in mine]
    # Equipment that is called other may be anything, so no text contradicts it.
    if others and "other" not in mine:
        yield _issue(identity, "description", "other_equipment", f"it speaks of {', '.join(others)}")


@cache
def _equipment_pattern() -> re.Pattern[str]:
    """Any equipment by its own name; the longest first, as one name may begin with another."""
    names = [equipment_name(item) for item in ordered_words("equipment") if item not in _IN_ANY_TEXT]
    return re.compile(rf"\b({'|'.join(sorted(names, key=len, reverse=True))})s?\b", re.IGNORECASE)


def _issue(identity: str, field: str, code: str, why: str, majority: _Majority | None = None) -> Issue:
    return Issue(
        target=exercise_key(identity),
        field=field,
        code=code,
        issue_type="inaccurate",
        severity="high",
        evidence=f"{field}: {why}",
        certain=False,
        suggestion=None if majority is None else majority.value,
        confidence=0.5 if majority is None else round(majority.share, 2),
    )
