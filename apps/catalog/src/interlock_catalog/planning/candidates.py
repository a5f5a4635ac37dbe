"""Values that a field could have, from the records alone, and the confidence that a proposed value deserves."""

from __future__ import annotations

import json
from collections import Counter

from interlock_catalog.changes import MUSCLE_FIELDS, TEXT_FIELDS
from interlock_catalog.checks import Issue
from interlock_catalog.checks.outliers import find_outliers
from interlock_catalog.confidence import Tally
from interlock_catalog.contracts import Doc, Json, find_violations, is_within, value_at, with_value
from interlock_catalog.document_keys import exercise_key, name_of
from interlock_catalog.naming import split_name
from interlock_catalog.snapshot import Snapshot
from interlock_catalog.vocabulary import equipment_name

_MIN_SIBLINGS = 2
"""One sibling is no majority."""


def candidate_values(family: Snapshot, issue: Issue) -> dict[str, Json]:
    """The fields and values that would resolve an issue, from siblings and the record itself; {} if there are none."""
    identity = name_of(issue.target)
    doc = family.live.get(identity)
    if doc is None:
        return {}
    if is_within(issue.field, "muscles"):
        # All of them together: categories and contributions of one exercise do not fit the muscles of another.
        muscles = majority_value(family, "muscles", but=identity)
        fields = {} if muscles is None else {field: value_at({"muscles": muscles}, field) for field in MUSCLE_FIELDS}
        return {field: value for field, value in fields.items() if value is not None}
    if issue.field == "description":
        text = compose_description(doc, family)
        return {} if text is None else {"description": text}
    value = majority_value(family, issue.field, but=identity)
    return {} if value is None else {issue.field: value}


def majority_value(family: Snapshot, field: str, *, but: str) -> Json:
    """What most siblings without a violation in that field have; None if there are too few to tell."""
    values = []
    for identity, doc in sorted(family.live.items()):
        wrong = any(is_within(v.field, field) for v in find_violations("exercise", doc))
        if identity != but and not wrong and value_at(doc, field) not in (None, "", []):
            values.append(json.dumps(value_at(doc, field), sort_keys=True))
    if len(values) < _MIN_SIBLINGS:
        return None
    # The most frequent is enough: it is only offered, and somebody says yes or no.
    return json.loads(Counter(values).most_common(1)[0][0])


def compose_description(doc: Doc, family: Snapshot) -> str | None:
    """A plain description of an exercise from its own fields."""
    name, muscles = doc.get("name"), doc.get("muscles")
    if not isinstance(name, str) or not isinstance(muscles, dict) or not muscles.get("primary"):
        return None
    base = split_name(name)[0]
    equipment = doc.get("equipment") or []
    done = f" done with {equipment_name(equipment[0]).lower()}" if equipment else ""
    helped = " and ".join(str(m).replace("-", " ") for m in (muscles.get("secondary") or [])[:2])
    primary = " and ".join(str(m).replace("-", " ") for m in muscles["primary"])
    kind = family.facts.base_name
    support = f", with {helped} in support" if helped else ""
    return f"The {base} is a {kind.lower()} variation{done}. It works the {primary}{support}."


def estimate_confidence(family: Snapshot, identity: str, field: str, after: Json, stated: float) -> float:
    """The confidence in a value, whatever a model states: at most what siblings support; for a text what is stated.

    0 for what cannot be: a value that breaks the contract, a text that speaks of something else.
    """
    doc = family.live.get(identity)
    if doc is None:
        return 0.0
    made = with_value(doc, field, after)
    if any(is_within(field, v.field) for v in find_violations("exercise", made)):
        return 0.0
    # Siblings have other texts, and cannot bear one out.
    if field in TEXT_FIELDS:
        return 0.0 if field == "description" and _is_off_subject(family, identity, made) else stated
    return min(stated, sibling_support(family, identity, field, after))


def _is_off_subject(family: Snapshot, identity: str, doc: Doc) -> bool:
    outliers = find_outliers(family.with_states({exercise_key(identity): doc}))
    return any(issue.target == exercise_key(identity) and issue.field == "description" for issue in outliers)


def sibling_support(family: Snapshot, identity: str, field: str, after: Json) -> float:
    """How far siblings support a value: from 0.5, half of the way to 1 by the share of them that has it."""
    others = [value_at(doc, field) for i, doc in family.live.items() if i != identity]
    present = [value for value in others if value is not None]
    same = sum(value == after for value in present)
    return round(0.5 + Tally(same, len(present) - same).confidence / 2, 2)
