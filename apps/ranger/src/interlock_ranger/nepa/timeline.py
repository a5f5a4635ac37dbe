"""How long compliance takes: what the law limits, what consultations take, and a planning estimate, kept apart."""

from __future__ import annotations

import math
from datetime import date, timedelta
from enum import StrEnum

import msgspec

from interlock import Result
from interlock_ranger.evidence import (
    Evidence,
    Finding,
    Part,
    Recommendation,
    Step,
    Today,
    build_result,
    compute_confidence,
)
from interlock_ranger.nepa.citations import Topic, cite, find_rule, pack_source
from interlock_ranger.nepa.terms import DRAFT, Level, RuleCitation
from interlock_ranger.rules import get_rule

CONSULTING_FROM_DAY = 45
"""When consultations can start: once the action is described."""


class Consultation(StrEnum):
    """What has to be consulted on."""

    ESA_INFORMAL = "esa_informal"
    ESA_FORMAL = "esa_formal"
    SECTION_106 = "section_106"
    CWA_404 = "cwa_404"


CONSULTATIONS = {
    "esa_informal": ("informal consultation", "concurrence"),
    "esa_formal": ("formal consultation", "biological opinion"),
    "section_106": ("section 106", "SHPO", "historic preservation"),
    "cwa_404": ("section 404", "404 permit", "wetland permit"),
}
_LIMITS = {
    Consultation.ESA_INFORMAL: ("esa.section-7", "informal_days"),
    Consultation.ESA_FORMAL: ("esa.section-7", "formal_days"),
    Consultation.SECTION_106: ("nhpa.section-106", "finding_days"),
    Consultation.CWA_404: ("cwa.section-404", "verification_days"),
}


class Objections(StrEnum):
    """Whether objections have to be reckoned with."""

    EXPECTED = "expected"
    NOT_EXPECTED = "not_expected"


OBJECTIONS = {
    "expected": ("objection", "objections", "objects", "object", "objector", "objectors", "appeal", "appeals"),
    "not_expected": ("no objections", "no objection", "nobody objects", "without objections", "unopposed"),
}


class Stage(Part):
    """A stretch of time, and what it rests on."""

    stage: str
    days: int
    basis: str
    rule: str


class Timeline(Finding):
    pathway: Level
    start_date: date
    start_date_from: str
    stages: tuple[Stage, ...]
    estimated_days: int
    estimated_finish: date
    statutory_deadline: date | None
    fits_deadline: bool | None
    rests_on: tuple[RuleCitation, ...]
    unverified: bool
    draft: str = DRAFT


class StagePlan(msgspec.Struct, frozen=True, kw_only=True):
    """Stages with how long they take together, and by themselves without objections."""

    stages: tuple[Stage, ...]
    total_days: int
    own_days: int


def consultation_days(consultation: Consultation) -> int:
    rule, limit = _LIMITS[consultation]
    return int(get_rule(rule).limits[limit])


def anniversary(start: date, years: int) -> date:
    """The same day some years on; of 29 February, the last of the month."""
    try:
        return start.replace(year=start.year + years)
    except ValueError:
        return start.replace(year=start.year + years, day=28)


def plan_stages(pathway: Level, consultations: list[Consultation] | None, objections: Objections) -> StagePlan:
    """The stages: preparation and consultations side by side, then comment, objection and response."""
    own = int(get_rule("nepa.planning-times").limits[f"{pathway.value.lower()}_days"])
    stages = [
        Stage(stage=f"prepare the {pathway.value}", days=own, basis="planning estimate", rule="nepa.planning-times")
    ]
    longest = own
    for item in consultations or ():
        days = consultation_days(item)
        longest = max(longest, CONSULTING_FROM_DAY + days)
        name = f"{item.value.replace('_', ' ')} from day {CONSULTING_FROM_DAY}"
        stages.append(Stage(stage=name, days=days, basis="law", rule=_LIMITS[item][0]))
    total = longest
    # 36 CFR 218 is about EAs and EISs; exclusions are not open to objection.
    if objections is Objections.EXPECTED and pathway is not Level.CE:
        limits = get_rule("nepa.objection").limits
        comment = int(limits[f"comment_{pathway.value.lower()}_days"])
        days = int(limits["objection_days"] + limits["response_days"])
        stages.append(Stage(stage="comment", days=comment, basis="law", rule="nepa.objection"))
        stages.append(Stage(stage="objection and response", days=days, basis="law", rule="nepa.objection"))
        total += comment + days
    return StagePlan(stages=tuple(stages), total_days=total, own_days=longest)


def statutory_deadline(pathway: Level, begins: date) -> date | None:
    """When the law wants it done, if it had a limit on the day it began."""
    name = _limiting_rule(pathway, begins)
    return None if name is None else anniversary(begins, math.floor(get_rule(name).limits["years"]))


def _limiting_rule(pathway: Level, begins: date) -> str | None:
    """The rule that limits the time; no law limits that of an exclusion."""
    return None if pathway is Level.CE else find_rule(Topic(pathway.value), begins)


def estimate_timeline(
    pathway: Level, start: date | None, consultations: list[Consultation] | None, objections: Objections, today: Today
) -> Result[Timeline]:
    """The timeline from a day; without one, from today."""
    begins, plan = start or today(), plan_stages(pathway, consultations, objections)
    deadline = statutory_deadline(pathway, begins)
    limiting = _limiting_rule(pathway, begins)
    names = dict.fromkeys((*(stage.rule for stage in plan.stages), *(() if limiting is None else (limiting,))))
    sources = (pack_source(),)
    given = 1 + (start is not None) + (consultations is not None)
    prepare = f"{plan.stages[0].days} days to prepare; an estimate, not a limit of law"
    start_early = "start consultations as soon as the action is described"
    evidence = Evidence(
        reasoning=(
            Step(rule="nepa.planning-times", text=prepare),
            Step(rule="nepa.planning-times", text=f"consultations side by side, from day {CONSULTING_FROM_DAY}"),
        ),
        recommendations=(Recommendation(rule="nepa.draft", text=start_early),),
        confidence=compute_confidence(today(), sources, given, 3),
        data_sources=sources,
    )
    timeline = Timeline(
        pathway=pathway,
        start_date=begins,
        start_date_from="named" if start is not None else "today, as none was named",
        stages=plan.stages,
        estimated_days=plan.total_days,
        estimated_finish=begins + timedelta(days=plan.total_days),
        statutory_deadline=deadline,
        # Without the time of objections: what the law limits is the document itself, not what follows it.
        fits_deadline=None if deadline is None else begins + timedelta(days=plan.own_days) <= deadline,
        rests_on=tuple(cite(name) for name in names),
        unverified=any(not get_rule(name).is_verified for name in names),
        synthetic=evidence.is_synthetic,
        evidence=evidence,
    )
    notes = "" if consultations is not None else " Consultations were not named and are not counted."
    if objections is Objections.EXPECTED and pathway is Level.CE:
        notes += " Exclusions are not open to objection."
    return build_result(timeline, _summarise(timeline) + notes)


def _summarise(t: Timeline) -> str:
    limit = "no statutory clock"
    if t.statutory_deadline is not None:
        limit = f"the {t.pathway.value} itself is due by law on {t.statutory_deadline}"
    stages = "; ".join(f"{stage.stage} {stage.days} days ({stage.basis})" for stage in t.stages)
    return (
        f"DRAFT. {t.pathway.value} from {t.start_date}: about {t.estimated_days} days, until {t.estimated_finish};"
        f" {limit}. {stages}."
    )
