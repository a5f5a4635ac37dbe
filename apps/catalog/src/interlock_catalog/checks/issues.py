"""An issue: which field of which document, what kind, how severe, on what evidence, and which role fixes it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from interlock_catalog.contracts import is_within
from interlock_catalog.evidence import Evidence

Json = Any
TYPES = ("missing", "incomplete", "inconsistent", "inaccurate")
SEVERITIES = ("low", "medium", "high", "critical")
SEVERE = ("high", "critical")
FIELDS: dict[str, tuple[str, ...]] = {
    "content": ("description", "execution_notes", "common_mistakes"),
    "biomechanics": (
        "movement.type",
        "movement.split",
        "metadata.level",
        "metadata.plane_of_motion",
        "metadata.unilateral",
        "category",
        "equipment",
        "variant_key",
    ),
    "anatomy": ("muscles.primary", "muscles.secondary", "muscles.category", "muscles.contribution"),
    "programming": ("programming_use_cases", "suitability_notes", "stimulus_tags"),
}
"""Which specialist may touch which fields. The policy holds the same table; a test compares them."""
SPECIALISTS = tuple(FIELDS)
ROLES = frozenset({"analyst", *SPECIALISTS, "normalizer", "librarian", "scout", "approver"})
"""The actors of the autopilot; everybody else is people."""


class Issue(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """Something that is wrong, or looks so."""

    target: str
    """The key of the document: exercise:ID or alias:SLUG."""
    field: str
    code: str
    issue_type: str
    severity: str
    evidence: str
    certain: bool = True
    """False: it is only suspected, and somebody has to judge."""
    by: str = "checks"
    confidence: float = 1.0
    suggestion: Json = None
    """What the value should be, where that can be told."""
    judge: str = ""
    """The model that says so, if it is one."""

    @property
    def specialist(self) -> str | None:
        """The field decides who fixes it; None: nobody but the librarian or a person."""
        return specialist_of(self.field)

    @property
    def rule(self) -> Evidence:
        """What a change that is made for it rests on."""
        return Evidence(self.by, self.code, self.judge)


def specialist_of(field: str) -> str | None:
    """The specialist that owns a field, or the field that it is part of."""
    for name, fields in FIELDS.items():
        # A violation of `muscles` as a whole belongs to whoever owns its parts.
        if any(is_within(field, owned) or is_within(owned, field) for owned in fields):
            return name
    return None


def severe_issues(issues: Iterable[Issue]) -> list[Issue]:
    """The issues for which specialists are called: high or critical, and certain."""
    return [issue for issue in issues if issue.severity in SEVERE and issue.certain]


_TYPE = {
    "missing": "missing",
    "unknown_field": "inconsistent",
    "invalid": "inaccurate",
    "slug": "inconsistent",
    "qualifier": "inconsistent",
    "doubled": "inconsistent",
    "derived": "inconsistent",
    "muscles": "inconsistent",
    "sum": "inconsistent",
    "target": "inconsistent",
    "placeholder": "incomplete",
    "short": "incomplete",
    "markup": "incomplete",
    "merge": "inconsistent",
}
_CRITICAL = ("description", "name", "equipment", "muscles", "muscles.primary", "placeholder")
_LOW = ("doubled", "markup")


def issue_from_violation(target: str, field: str, code: str, message: str) -> Issue:
    """A violation of the contract as an issue."""
    severity = "high"
    if code in _LOW:
        severity = "low"
    elif (code == "missing" and field in _CRITICAL) or code in ("placeholder", "unreadable"):
        severity = "critical"
    elif code in ("unknown_field", "derived", "slug"):
        severity = "medium"
    return Issue(
        target=target,
        field=field,
        code=code,
        issue_type=_TYPE.get(code, "inaccurate"),
        severity=severity,
        evidence=f"{field}: {message}",
    )


def issue_from_normalisation(target: str, field: str, code: str, why: str) -> Issue:
    """What normalisation corrects by itself, as an issue."""
    severity = "low" if code == "text" else "medium"
    return Issue(
        target=target,
        field=field,
        code=code,
        issue_type="inconsistent",
        severity=severity,
        evidence=f"{field}: {why}",
        by="normaliser",
    )
