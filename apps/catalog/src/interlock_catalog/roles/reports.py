"""Reports of roles: strict shapes, each handed in by a call of its own, so that who said what is on record."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, Field

from interlock import Tool, tool
from interlock_catalog.checks.issues import FIELDS, SEVERITIES, TYPES, specialist_of
from interlock_catalog.contracts import Json, Strict, enum_schema, one_of

_OWNED = tuple(field for fields in FIELDS.values() for field in fields)
_OPTIONS: dict[str, Any] = {"effect": "read", "capabilities": {"catalog:read"}}
OwnedField = Annotated[str, AfterValidator(one_of(_OWNED, "fields")), enum_schema(_OWNED)]
AnyField = Annotated[
    str, AfterValidator(one_of((*_OWNED, "merged_into"), "fields")), enum_schema((*_OWNED, "merged_into"))
]
IssueType = Annotated[str, AfterValidator(one_of(TYPES, "issue types")), enum_schema(TYPES)]
Severity = Annotated[str, AfterValidator(one_of(SEVERITIES, "severities")), enum_schema(SEVERITIES)]
Confidence = Annotated[float, Field(ge=0, le=1)]
Words = Annotated[str, Field(min_length=3, max_length=600)]
# Takes record:muscles and siblings:most of them; not verified:judged@NAME, and not a sentence without a source.
Tag = Annotated[str, Field(min_length=3, max_length=200, pattern=r"^[a-z_]+:[^\s@][^@]*$")]
"""What a model rests on, in its own words; the name of a judge behind an @ is not its to write."""
# Our own tags may name a judge: the approver's verified:judged@NAME does.
OwnTag = Annotated[str, Field(min_length=3, max_length=200, pattern=r"^[a-z_]+:\S")]


class ReportedIssue(Strict):
    """Something that an analyst finds wrong."""

    exercise_id: str
    field: AnyField
    issue_type: IssueType
    severity: Severity
    evidence: Words
    confidence: Confidence
    duplicate_of: str | None = None
    """For a duplicate: the id of the one that stays."""


class ProposedChange(Strict):
    """A value that a specialist proposes; what the field was is not for the model to say."""

    exercise_id: str
    field: OwnedField
    after: Json
    justification: Words
    evidence: Tag
    confidence: Confidence


class ProposedAction(Strict):
    """What a scout makes of a failed search."""

    query: Words
    hypothesis: Words
    evidence: Tag
    proposed_action: Literal["add_alias", "draft_exercise", "nothing"]
    exercise_id: str | None = None
    family_slug: str | None = None
    draft: dict[str, Json] | None = None
    rationale: Words
    confidence: Confidence
    apply: bool
    """Whether it should be done now, rather than only reported."""


class DraftDecision(Strict):
    """Yes or no to one draft."""

    exercise_id: str
    approve: bool
    justification: Words
    evidence: Annotated[list[OwnTag], Field(min_length=1)]


class ReportShape(NamedTuple):
    """A report that a model can be asked for: the tool that takes it, and the list that it consists of."""

    tool: str
    entries: str
    entry: type[Strict]


ISSUES = ReportShape("report_issues", "issues", ReportedIssue)
CHANGES = ReportShape("propose_changes", "changes", ProposedChange)
ACTIONS = ReportShape("propose_actions", "actions", ProposedAction)


def build_report_tools() -> tuple[Tool, ...]:
    """The tools by which roles hand in their work. Their descriptions are part of what a model is shown."""

    @tool(**_OPTIONS)
    def report_issues(
        family_slug: str, issues: Annotated[list[ReportedIssue], Field(max_length=200)]
    ) -> dict[str, Any]:
        """Report what is wrong with the exercises of a family; the field of an issue decides who mends it."""
        found = [{**issue.model_dump(), "specialist": specialist_of(issue.field)} for issue in issues]
        return {"family_slug": family_slug, "issues": found}

    @tool(**_OPTIONS)
    def propose_changes(
        family_slug: str, changes: Annotated[list[ProposedChange], Field(max_length=200)]
    ) -> dict[str, Any]:
        """Propose values for the fields of your speciality, each with a reason and the evidence that it rests on."""
        return {"family_slug": family_slug, "changes": [change.model_dump() for change in changes]}

    @tool(**_OPTIONS)
    def propose_actions(actions: Annotated[list[ProposedAction], Field(max_length=200)]) -> dict[str, Any]:
        """Say what failed searches mean, and what should be done about each."""
        return {"actions": [action.model_dump() for action in actions]}

    @tool(**_OPTIONS)
    def decide_drafts(
        family_slug: str, decisions: Annotated[list[DraftDecision], Field(max_length=200)]
    ) -> dict[str, Any]:
        """Approve drafts, or do not, each with the evidence that it rests on."""
        return {"family_slug": family_slug, "decisions": [decision.model_dump() for decision in decisions]}

    return report_issues, propose_changes, propose_actions, decide_drafts
