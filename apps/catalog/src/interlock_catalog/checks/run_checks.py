"""The deterministic pass over one family."""

from __future__ import annotations

from collections.abc import Iterator

from interlock_catalog.checks.aliases import alias_issues
from interlock_catalog.checks.issues import Issue, of_fault, of_reason
from interlock_catalog.checks.odd import odd_ones
from interlock_catalog.checks.twins import twins
from interlock_catalog.contracts import LEAST_DESCRIPTION, Doc, faults
from interlock_catalog.normalise import FamilyFacts, normalise
from interlock_catalog.snapshot import Snapshot


def inspect(family: Snapshot) -> tuple[Issue, ...]:
    """Every issue of a family, in a fixed order."""
    found = list[Issue]()
    facts = family.facts
    for identity, doc in sorted(family.live.items()):
        found += exercise_issues(f"exercise:{identity}", doc, facts)
    found += twins(family)
    found += alias_issues(family)
    found += odd_ones(family)
    return tuple({(issue.target, issue.field, issue.code): issue for issue in found}.values())


def exercise_issues(target: str, doc: Doc, facts: FamilyFacts) -> Iterator[Issue]:
    """What normalisation would put right, and what is still wrong after it."""
    made = normalise(doc, facts)
    for reason in made.reasons:
        yield of_reason(target, reason.field, reason.code, reason.why)
    for fault in faults("exercise", made.doc):
        if fault.field == "description" and fault.code == "invalid":
            text = str(made.doc.get("description") or "")
            code = "missing" if not text.strip() else "short"
            yield of_fault(target, "description", code, f"has {len(text)} characters; {LEAST_DESCRIPTION} are needed")
        elif fault.code == "invalid" and _is_empty(made.doc, fault.field):
            yield of_fault(target, fault.field, "missing", "is empty")
        else:
            yield of_fault(target, fault.field, fault.code, fault.message)


def _is_empty(doc: Doc, field: str) -> bool:
    value: object = doc
    for part in field.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value in (None, "", [], {})
