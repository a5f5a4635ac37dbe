"""The deterministic pass over one family: every check, in a fixed order."""

from __future__ import annotations

from collections.abc import Iterator

from interlock_catalog.checks.aliases import find_alias_issues
from interlock_catalog.checks.duplicates import find_duplicates
from interlock_catalog.checks.issues import Issue, issue_from_normalisation, issue_from_violation
from interlock_catalog.checks.outliers import find_outliers
from interlock_catalog.contracts import MIN_DESCRIPTION, Doc, find_violations, value_at
from interlock_catalog.document_keys import exercise_key
from interlock_catalog.normalise import FamilyFacts, normalise
from interlock_catalog.snapshot import Snapshot


def run_checks(family: Snapshot) -> tuple[Issue, ...]:
    """Every issue of a family, each once."""
    found = list[Issue]()
    facts = family.facts
    for identity, doc in sorted(family.live.items()):
        found += find_exercise_issues(exercise_key(identity), doc, facts)
    found += find_duplicates(family)
    found += find_alias_issues(family)
    found += find_outliers(family)
    return tuple({(issue.target, issue.field, issue.code): issue for issue in found}.values())


def find_exercise_issues(target: str, doc: Doc, facts: FamilyFacts) -> Iterator[Issue]:
    """What normalisation would correct, and what breaks the contract after it."""
    made = normalise(doc, facts)
    for correction in made.corrections:
        yield issue_from_normalisation(target, correction.field, correction.code, correction.why)
    # After normalisation, or what that corrects by itself would be reported a second time, for a specialist.
    for violation in find_violations("exercise", made.doc):
        # Both are invalid by the contract; a model has a record for empty ones and for short ones (calibration.toml).
        if violation.field == "description" and violation.code == "invalid":
            text = str(made.doc.get("description") or "")
            code = "missing" if not text.strip() else "short"
            yield issue_from_violation(
                target, "description", code, f"has {len(text)} characters; {MIN_DESCRIPTION} are needed"
            )
        elif violation.code == "invalid" and _is_empty(made.doc, violation.field):
            yield issue_from_violation(target, violation.field, "missing", "is empty")
        else:
            yield issue_from_violation(target, violation.field, violation.code, violation.message)


def _is_empty(doc: Doc, field: str) -> bool:
    return value_at(doc, field) in (None, "", [], {})
