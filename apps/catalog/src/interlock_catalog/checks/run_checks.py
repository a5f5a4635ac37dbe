"""The deterministic pass over one family: every check, in a fixed order."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from interlock_catalog.checks.aliases import find_alias_issues, find_held_names
from interlock_catalog.checks.duplicates import find_duplicates
from interlock_catalog.checks.issues import Issue, issue_from_normalisation, issue_from_violation
from interlock_catalog.checks.namesakes import find_namesakes
from interlock_catalog.checks.outliers import find_outliers
from interlock_catalog.contracts import MIN_DESCRIPTION, Doc, find_violations, value_at
from interlock_catalog.document_keys import exercise_key
from interlock_catalog.normalise import FamilyFacts, normalise
from interlock_catalog.shortening import shorten
from interlock_catalog.snapshot import Snapshot


def run_checks(family: Snapshot) -> tuple[Issue, ...]:
    """Every issue of a family, each once."""
    found = list[Issue]()
    facts = family.facts
    for identity, doc in sorted(family.live.items()):
        found += find_exercise_issues(exercise_key(identity), doc, facts)
    found += find_duplicates(family)
    found += find_namesakes(family)
    found += find_alias_issues(family)
    found += find_held_names(family)
    found += find_outliers(family)
    return tuple({(issue.target, issue.field, issue.code): issue for issue in found}.values())


class CheckedFamily(msgspec.Struct, frozen=True):
    """The issues of a family, and the family without the records that could not be checked at all."""

    family: Snapshot
    issues: tuple[Issue, ...]
    unreadable: tuple[Issue, ...] = ()
    """One for each record that was set aside: it is for a person, and its siblings are worked on without it."""


def check_apart(family: Snapshot) -> CheckedFamily:
    """Every issue of a family; a record on which a check breaks down is set aside, and does not stop its family."""
    try:
        return CheckedFamily(family, run_checks(family))
    except Exception:  # noqa: BLE001 - records may hold anything, and which one it was is found out below
        broken = {identity: error for identity in family.live if (error := _check_alone(family, identity)) is not None}
    readable = msgspec.structs.replace(
        family, exercises={identity: doc for identity, doc in family.exercises.items() if identity not in broken}
    )
    found = tuple(
        issue_from_violation(exercise_key(identity), "id", "unreadable", f"the record cannot be checked: {error}")
        for identity, error in broken.items()
    )
    return CheckedFamily(readable, run_checks(readable), found)


def _check_alone(family: Snapshot, identity: str) -> str | None:
    """What goes wrong when one record is checked without its siblings; None if nothing does."""
    alone = msgspec.structs.replace(family, exercises={identity: family.exercises[identity]}, aliases={})
    try:
        run_checks(alone)
    except Exception as error:  # noqa: BLE001 - whatever a check stumbles over is said of this record
        return shorten(f"{type(error).__name__}: {error}", 200)
    return None


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
