"""Values that a field could have, made from the records alone, and how sure one may be of a value that is proposed."""

from __future__ import annotations

import json
from collections import Counter

from interlock_catalog.checks import Issue
from interlock_catalog.checks.odd import odd_ones
from interlock_catalog.contracts import Doc, Json, faults, value_at, with_value
from interlock_catalog.naming import split_name
from interlock_catalog.snapshot import Snapshot
from interlock_catalog.trust import Seen
from interlock_catalog.vocabulary import equipment_name

MUSCLE_FIELDS = ("muscles.primary", "muscles.secondary", "muscles.category", "muscles.contribution")
TEXTS = (
    "description",
    "execution_notes",
    "common_mistakes",
    "suitability_notes",
    "programming_use_cases",
    "stimulus_tags",
)
_FEW = 2


def candidate(family: Snapshot, issue: Issue) -> dict[str, Json]:
    """The fields and values that would mend an issue, from siblings and the record itself; {} if there are none."""
    identity = issue.target.partition(":")[2]
    doc = family.live.get(identity)
    if doc is None:
        return {}
    if issue.field.startswith("muscles"):
        muscles = common(family, "muscles", but=identity)
        fields = {} if muscles is None else {field: value_at({"muscles": muscles}, field) for field in MUSCLE_FIELDS}
        return {field: value for field, value in fields.items() if value is not None}
    if issue.field == "description":
        text = described(doc, family)
        return {} if text is None else {"description": text}
    value = common(family, issue.field, but=identity)
    if value is None and issue.field in ("movement", "metadata"):
        return {}
    return {} if value is None else {issue.field: value}


def common(family: Snapshot, field: str, *, but: str) -> Json:
    """What most siblings without a fault in that field have; None if there are too few to tell."""
    values = []
    for identity, doc in sorted(family.live.items()):
        wrong = any(f.field == field or f.field.startswith(f"{field}.") for f in faults("exercise", doc))
        if identity != but and not wrong and value_at(doc, field) not in (None, "", []):
            values.append(json.dumps(value_at(doc, field), sort_keys=True))
    if len(values) < _FEW:
        return None
    return json.loads(Counter(values).most_common(1)[0][0])


def described(doc: Doc, family: Snapshot) -> str | None:
    """A plain description of an exercise from its own fields."""
    name, muscles = doc.get("name"), doc.get("muscles")
    if not isinstance(name, str) or not isinstance(muscles, dict) or not muscles.get("primary"):
        return None
    base = split_name(name)[0]
    equipment = doc.get("equipment") or []
    tool = equipment_name(equipment[0]).lower() if equipment else "no equipment"
    helped = " and ".join(str(m).replace("-", " ") for m in (muscles.get("secondary") or [])[:2])
    primary = " and ".join(str(m).replace("-", " ") for m in muscles["primary"])
    kind = family.facts.base_name
    support = f", with {helped} in support" if helped else ""
    return f"The {base} is a {kind.lower()} variation done with {tool}. It works the {primary}{support}."


def confidence(family: Snapshot, identity: str, field: str, after: Json, said: float) -> float:
    """How sure one may be, whatever a model says: a value as sure as siblings bear it out, a text as sure as is said.

    0 for what cannot be: a value that breaks the contract, a text that speaks of something else.
    """
    doc = family.live.get(identity)
    if doc is None:
        return 0.0
    made = with_value(doc, field, after)
    if any(f.field == field or field.startswith(f"{f.field}.") for f in faults("exercise", made)):
        return 0.0
    if field in TEXTS:
        odd = [
            i for i in odd_ones(family.becoming({f"exercise:{identity}": made})) if i.target == f"exercise:{identity}"
        ]
        wrong = field == "description" and any(issue.field == field for issue in odd)
        return 0.0 if wrong else said
    return min(said, support(family, identity, field, after))


def support(family: Snapshot, identity: str, field: str, after: Json) -> float:
    """How far the siblings bear a value out: from a coin's toss, half the way for each share of them that has it."""
    others = [value_at(doc, field) for i, doc in family.live.items() if i != identity]
    held = [value for value in others if value is not None]
    same = sum(value == after for value in held)
    return round(0.5 + Seen(same, len(held) - same).sure / 2, 2)
