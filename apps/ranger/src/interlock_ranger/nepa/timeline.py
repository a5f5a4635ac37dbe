"""How long compliance takes: what the law limits, what consultations take, and a planning estimate, kept apart."""

from __future__ import annotations

import math
from datetime import date, timedelta
from enum import StrEnum

import msgspec

from interlock import Result
from interlock_ranger.evidence import Finding, Part, Recommendation, Step, Today, confidence, finding
from interlock_ranger.nepa.sources import cited, pack_source
from interlock_ranger.nepa.terms import DRAFT, Cited, Level
from interlock_ranger.rules import rule

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
_TAKES = {
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
    """How long compliance takes."""

    pathway: Level
    start_date: date
    start_date_from: str
    stages: tuple[Stage, ...]
    estimated_days: int
    estimated_finish: date
    statutory_deadline: date | None
    fits_deadline: bool | None
    rests_on: tuple[Cited, ...]
    unverified: bool
    draft: str = DRAFT


def days_of(consultation: Consultation) -> int:
    """How long one takes."""
    name, limit = _TAKES[consultation]
    return int(rule(name).limits[limit])


def anniversary(start: date, years: int) -> date:
    """The same day some years on; of 29 February, the last of the month."""
    try:
        return start.replace(year=start.year + years)
    except ValueError:
        return start.replace(year=start.year + years, day=28)


class Planned(msgspec.Struct, frozen=True):
    """Stages with how long they take together, and by themselves without objections."""

    stages: tuple[Stage, ...]
    total_days: int
    own_days: int


def planned(pathway: Level, consultations: list[Consultation] | None, objections: Objections) -> Planned:
    """The stages: preparation and consultations side by side, then comment, objection and response."""
    own = int(rule("nepa.planning-times").limits[f"{pathway.value.lower()}_days"])
    stages = [
        Stage(stage=f"prepare the {pathway.value}", days=own, basis="planning estimate", rule="nepa.planning-times")
    ]
    longest = own
    for item in consultations or ():
        takes = days_of(item)
        longest = max(longest, CONSULTING_FROM_DAY + takes)
        name = f"{item.value.replace('_', ' ')} from day {CONSULTING_FROM_DAY}"
        stages.append(Stage(stage=name, days=takes, basis="law", rule=_TAKES[item][0]))
    total = longest
    if objections is Objections.EXPECTED and pathway is not Level.CE:
        limits = rule("nepa.objection").limits
        comment = int(limits[f"comment_{pathway.value.lower()}_days"])
        days = int(limits["objection_days"] + limits["response_days"])
        stages.append(Stage(stage="comment", days=comment, basis="law", rule="nepa.objection"))
        stages.append(Stage(stage="objection and response", days=days, basis="law", rule="nepa.objection"))
        total += comment + days
    return Planned(tuple(stages), total, longest)


def deadline_of(pathway: Level, begins: date) -> date | None:
    """When the law wants it done, if it had a limit on the day it began."""
    name = f"nepa.{pathway.value.lower()}"
    if pathway is Level.CE or not rule(name).applies(begins):
        return None
    return anniversary(begins, math.floor(rule(name).limits["years"]))


def timed(
    pathway: Level, start: date | None, consultations: list[Consultation] | None, objections: Objections, today: Today
) -> Result[Timeline]:
    """The timeline from a day."""
    begins, plan = start or today(), planned(pathway, consultations, objections)
    deadline = deadline_of(pathway, begins)
    finish = begins + timedelta(days=plan.total_days)
    limiting = () if deadline is None else (f"nepa.{pathway.value.lower()}",)
    names = dict.fromkeys((*(stage.rule for stage in plan.stages), *limiting))
    sources = (pack_source(today),)
    value = {
        "pathway": pathway,
        "start_date": begins,
        "start_date_from": "named" if start is not None else "today, as none was named",
        "stages": plan.stages,
        "estimated_days": plan.total_days,
        "estimated_finish": finish,
        "statutory_deadline": deadline,
        "fits_deadline": None if deadline is None else begins + timedelta(days=plan.own_days) <= deadline,
        "rests_on": tuple(cited(name) for name in names),
        "unverified": any(not rule(name).verified for name in names),
        "reasoning": (
            Step(
                rule="nepa.planning-times",
                said=f"{plan.stages[0].days} days to prepare; an estimate, not a limit of law",
            ),
            Step(rule="nepa.planning-times", said=f"consultations side by side, from day {CONSULTING_FROM_DAY}"),
        ),
        "recommendations": (
            Recommendation(rule="nepa.draft", text="start consultations as soon as the action is described"),
        ),
    }
    limit = (
        f"; the {pathway.value} itself is due by law on {deadline}" if deadline is not None else "; no statutory clock"
    )
    told = "; ".join(f"{stage.stage} {stage.days} days ({stage.basis})" for stage in plan.stages)
    asked = "" if consultations is not None else " Consultations were not named and are not counted."
    if objections is Objections.EXPECTED and pathway is Level.CE:
        asked += " Exclusions are not open to objection."
    said = f"DRAFT. {pathway.value} from {begins}: about {plan.total_days} days, until {finish}{limit}. {told}.{asked}"
    trust = confidence(today(), sources, 1 + (start is not None) + (consultations is not None), 3)
    return finding(Timeline, said, value, sources, trust)
