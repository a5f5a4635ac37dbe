"""What looks odd beside its siblings, or does not speak of its own subject: it may be right, so somebody judges."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache

from interlock_catalog.checks.issues import Issue
from interlock_catalog.contracts import Doc, Json, value_at
from interlock_catalog.naming import split_name
from interlock_catalog.snapshot import Snapshot
from interlock_catalog.vocabulary import equipment_name, ordered, slug

COMPARED = ("movement.type", "movement.split", "category", "metadata.plane_of_motion", "muscles.primary")
LEAST_SIBLINGS = 3
LEAST_SHARE = 0.6
_UNSAID = ("bodyweight", "other", "box", "bench", "machine")
"""Equipment whose name may stand in any text."""


def odd_ones(family: Snapshot) -> Iterator[Issue]:
    """Values that differ from what most siblings have, and descriptions that speak of something else."""
    docs, base_name = family.live, family.facts.base_name
    usual = {field: _usual(docs, field) for field in COMPARED}
    for identity, doc in sorted(docs.items()):
        for field, found in usual.items():
            value = value_at(doc, field)
            if found is not None and value not in (None, [], "") and not _alike(value, found[0]):
                yield _issue(identity, field, "outlier", f"{value!r}, while {found[1]:.0%} have {found[0]!r}", found)
        yield from _strange_text(identity, doc, family.slug, base_name)


def _usual(docs: dict[str, Doc], field: str) -> tuple[Json, float] | None:
    """The value that most of the family has, and how many have it."""
    values = [_frozen(value) for doc in docs.values() if (value := value_at(doc, field)) not in (None, [], "")]
    if len(values) <= LEAST_SIBLINGS:
        return None
    common, count = Counter(values).most_common(1)[0]
    share = count / len(values)
    return (json.loads(common), share) if share >= LEAST_SHARE else None


def _frozen(value: Json) -> str:
    return json.dumps(value, sort_keys=True)


def _alike(value: Json, usual: Json) -> bool:
    """Lists that share an element are alike."""
    if isinstance(value, list) and isinstance(usual, list):
        return any(item in usual for item in value)
    return bool(value == usual)


def _strange_text(identity: str, doc: Doc, family: str, base_name: str) -> Iterator[Issue]:
    text, name = doc.get("description"), doc.get("name")
    if not isinstance(text, str) or not isinstance(name, str) or not text.strip():
        return
    said = f"-{slug(text)}-"
    own = {slug(split_name(name)[0]), family, slug(base_name)}
    if not any(f"-{part}-" in said or f"-{part}s-" in said for part in own if part):
        why = f"it names neither {name!r} nor {base_name!r}"
        yield _issue(identity, "description", "other_subject", why, None)
        return
    equipment = doc.get("equipment")
    mine = {str(item) for item in equipment} if isinstance(equipment, list) else set()
    named = {slug(found) for found in _spoken().findall(text)}
    others = [item for item in ordered("equipment") if item in named and item not in mine]
    if others and "other" not in mine:
        yield _issue(identity, "description", "other_equipment", f"it speaks of {', '.join(others)}", None)


@cache
def _spoken() -> re.Pattern[str]:
    """Any equipment of which a text may speak, by its own name."""
    names = [equipment_name(item) for item in ordered("equipment") if item not in _UNSAID]
    return re.compile(rf"\b({'|'.join(sorted(names, key=len, reverse=True))})s?\b", re.IGNORECASE)


def _issue(identity: str, field: str, code: str, why: str, usual: tuple[Json, float] | None) -> Issue:
    return Issue(
        target=f"exercise:{identity}",
        field=field,
        code=code,
        issue_type="inaccurate",
        severity="high",
        evidence=f"{field}: {why}",
        certain=False,
        suggestion=None if usual is None else usual[0],
        confidence=0.5 if usual is None else round(usual[1], 2),
    )
