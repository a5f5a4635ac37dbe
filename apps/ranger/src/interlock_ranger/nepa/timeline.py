"""How long compliance takes: what the law limits, what consultations take, and a planning estimate, kept apart."""

from __future__ import annotations

import math
from datetime import date, timedelta
from enum import StrEnum

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


def timed(
    pathway: Level, start: date | None, consultations: list[Consultation] | None, objections: Objections, today: Today
) -> Result[Timeline]:
    """The timeline from a day."""
    begins = start or today()
    plan = rule("nepa.planning-times").limits
    own = int(plan[f"{pathway.value.lower()}_days"])
    stages = [
        Stage(stage=f"prepare the {pathway.value}", days=own, basis="planning estimate", rule="nepa.planning-times")
    ]
    longest = 0
    for item in consultations or ():
        takes = days_of(item)
        longest = max(longest, CONSULTING_FROM_DAY + takes)
        name = item.value.replace("_", " ")
        stages.append(
            Stage(stage=f"{name} from day {CONSULTING_FROM_DAY}", days=takes, basis="law", rule=_TAKES[item][0])
        )
    total = max(own, longest)
    expected = objections is Objections.EXPECTED
    if expected and pathway is not Level.CE:
        limits = rule("nepa.objection").limits
        comment = int(limits[f"comment_{pathway.value.lower()}_days"])
        days = int(limits["objection_days"] + limits["response_days"])
        stages.append(Stage(stage="comment", days=comment, basis="law", rule="nepa.objection"))
        stages.append(Stage(stage="objection and response", days=days, basis="law", rule="nepa.objection"))
        total += comment + days
    deadline, fits = None, None
    if pathway is not Level.CE and rule(f"nepa.{pathway.value.lower()}").applies(begins):
        years = math.floor(rule(f"nepa.{pathway.value.lower()}").limits["years"])
        deadline = anniversary(begins, years)
        fits = begins + timedelta(days=max(own, longest)) <= deadline
    finish = begins + timedelta(days=total)
    names = dict.fromkeys(
        (*(s.rule for s in stages), *(() if deadline is None else (f"nepa.{pathway.value.lower()}",)))
    )
    sources = (pack_source(today),)
    value = {
        "pathway": pathway,
        "start_date": begins,
        "start_date_from": "named" if start is not None else "today, as none was named",
        "stages": tuple(stages),
        "estimated_days": total,
        "estimated_finish": finish,
        "statutory_deadline": deadline,
        "fits_deadline": fits,
        "rests_on": tuple(cited(name) for name in names),
        "unverified": any(not rule(name).verified for name in names),
        "reasoning": (
            Step(rule="nepa.planning-times", said=f"{own} days to prepare; an estimate, not a limit of law"),
            Step(rule="nepa.planning-times", said=f"consultations side by side, from day {CONSULTING_FROM_DAY}"),
        ),
        "recommendations": (
            Recommendation(rule="nepa.draft", text="start consultations as soon as the action is described"),
        ),
    }
    limit = (
        f"; the {pathway.value} itself is due by law on {deadline}" if deadline is not None else "; no statutory clock"
    )
    asked = "" if consultations is not None else " Consultations were not named and are not counted."
    asked += " Exclusions are not open to objection." if expected and pathway is Level.CE else ""
    said = (
        f"DRAFT. {pathway.value} from {begins.isoformat()}: about {total} days, until {finish.isoformat()}{limit}."
        f" {'; '.join(f'{s.stage} {s.days} days ({s.basis})' for s in stages)}.{asked}"
    )
    trust = confidence(today(), sources, 1 + (start is not None) + (consultations is not None), 3)
    return finding(Timeline, said, value, sources, trust)
