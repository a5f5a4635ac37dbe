"""Which level of review an action needs: an exclusion that fits, else an assessment; a statement by significance."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from enum import StrEnum

import msgspec

from interlock import Result
from interlock_ranger.evidence import DataSource, Finding, Part, Recommendation, Step, Today, confidence, finding
from interlock_ranger.nepa.sources import cited, pack_source
from interlock_ranger.nepa.terms import (
    DRAFT,
    HARVESTS,
    Action,
    Cited,
    Degree,
    Land,
    Pathway,
    Resource,
    Screened,
    Significance,
)
from interlock_ranger.rules import Rule, rule, rules

_LIMITS = {
    "acres": "acres",
    "temp_road_mi": "miles of temporary road",
    "perm_road_mi": "miles of permanent road",
    "road_mi": "miles of road",
    "years_after_fire": "years after the fire",
}
CONSOLIDATED = date(2025, 7, 3)
"""The day on which 7 CFR 1b replaced 36 CFR 220."""


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """What is proposed; None where the caller did not say."""

    action: Action
    acres: float
    temp_road_mi: float | None = None
    perm_road_mi: float | None = None
    road_mi: float | None = None
    years_after_fire: float | None = None
    land: tuple[Land, ...] | None = None
    screened: tuple[Screened, ...] | None = None
    significance: Significance | None = None
    category: str | None = None


class Candidate(Part):
    """An exclusion, and whether the action fits into it."""

    rule: str
    citation: str
    category: str
    title: str
    fits: bool
    why: str
    record: str
    verified_against: str


class Decision(Finding):
    """The level of review."""

    pathway: Pathway
    action: Action
    acres: float
    fire_id: str | None
    decision_date: date
    decision_date_from: str
    because: str
    record: str
    page_limit: int | None
    years_limit: int | None
    candidates: tuple[Candidate, ...]
    questions: tuple[str, ...]
    refused: tuple[str, ...]
    rests_on: tuple[Cited, ...]
    unverified: bool
    draft: str = DRAFT


class Verdict(msgspec.Struct, frozen=True):
    """What follows for the project."""

    pathway: Pathway
    because: str
    by: str
    record: str = ""
    questions: tuple[str, ...] = ()


def decided(project: Project, fire_id: str | None, day: date | None, today: Today) -> Result[Decision]:
    """The draft decision for a day."""
    on = day or today()
    if project.action is Action.ROAD_CONSTRUCTION and project.road_mi is None:  # what is built is the road
        project = msgspec.structs.replace(project, road_mi=project.perm_road_mi)
    candidates = tuple(_candidate(entry, project, on) for entry in _exclusions(project.action, on))
    refused = _refused(project, on)
    verdict = _verdict(project, candidates, on)
    limiting = _limits_rule(verdict.pathway, on)
    names = dict.fromkeys((verdict.by, *(c.rule for c in candidates if c.fits), *limiting))
    rests = tuple(cited(name) for name in names)
    sources: tuple[DataSource, ...] = (pack_source(today),)
    limit = rule(limiting[0]).limits if limiting else {}
    value = {
        "pathway": verdict.pathway,
        "action": project.action,
        "acres": project.acres,
        "fire_id": fire_id,
        "decision_date": on,
        "decision_date_from": "named" if day is not None else "today, as none was named",
        "because": verdict.because,
        "record": verdict.record,
        "page_limit": int(limit["pages"]) if "pages" in limit else None,
        "years_limit": int(limit["years"]) if "years" in limit else None,
        "candidates": candidates,
        "questions": verdict.questions,
        "refused": refused,
        "rests_on": rests,
        "unverified": any(not rule(item.rule).verified for item in rests),
        "reasoning": _steps(project, candidates, refused, verdict, on),
        "recommendations": (
            Recommendation(rule="nepa.draft", text="the responsible official decides; check the cited texts first"),
            *(Recommendation(rule="nepa.circumstances", text=question) for question in verdict.questions),
        ),
    }
    given = (project.temp_road_mi, project.land, project.screened, project.significance)
    trust = confidence(today(), sources, 2 + sum(item is not None for item in given), 2 + len(given))
    return finding(Decision, _said(value, verdict), value, sources, trust)


def _exclusions(action: Action, on: date) -> list[Rule]:
    """Those that name the action and are in force, and those that a court has set aside by then."""
    return [
        entry
        for entry in rules().values()
        if action in entry.actions and (entry.applies(on) or (entry.status == "set_aside" and _began(entry, on)))
    ]


def _began(entry: Rule, on: date) -> bool:
    return entry.effective_from is not None and entry.effective_from <= on


def _candidate(entry: Rule, project: Project, on: date) -> Candidate:
    over, unsaid = [], []
    for name, most in entry.limits.items():
        given = getattr(project, name)
        if given is None:
            unsaid.append(f"{_LIMITS[name]} are not said (at most {most:,.10g})")
        elif given > most:
            over.append(f"{given:,.10g} {_LIMITS[name]} are over {most:,.10g}")
    set_aside = not entry.applies(on)
    why = "; ".join([*(["set aside by a court"] if set_aside else []), *over, *unsaid])
    conditions = f" (conditions: {'; '.join(entry.conditions)})" if entry.conditions and not over else ""
    return Candidate(
        rule=entry.id,
        citation=entry.citation,
        category=str(entry.values.get("category", entry.citation)),
        title=entry.title,
        fits=not over and not set_aside,
        why=(why or "no limit is exceeded") + conditions,
        record=str(entry.values.get("record", "")),
        verified_against=entry.verified_against,
    )


def _refused(project: Project, on: date) -> tuple[str, ...]:
    """Categories that were named, or would have fitted, but are not in force on the day."""
    found = []
    for entry in rules().values():
        named = project.category is not None and project.category == entry.id
        if entry.id.startswith("ce.") and named and not entry.applies(on):
            successor = entry.values.get("successor", "")
            way = f"; see {rule(successor).citation}" if successor else ""
            ended = "" if entry.effective_to is None else f" after {entry.effective_to.isoformat()}"
            state = entry.status.replace("_", " ")
            found.append(f"{entry.citation} does not apply to a decision of {on.isoformat()}: {state}{ended}{way}")
    return tuple(found)


def _verdict(project: Project, candidates: Sequence[Candidate], on: date) -> Verdict:
    barred = _barred(project)
    if barred is not None:
        return barred
    level = "nepa.level" if on >= CONSOLIDATED else "nepa.level-ceq"
    if project.significance is Significance.LIKELY:
        return Verdict(Pathway.EIS, "significant effects are likely", level, "EIS and record of decision")
    grave = [s for s in project.screened or () if s.degree in (Degree.UNCERTAIN, Degree.SIGNIFICANT)]
    told = ", ".join(f"{_words(s.resource)} ({_words(s.degree)})" for s in grave)
    if any(s.degree is Degree.SIGNIFICANT for s in grave):
        return Verdict(Pathway.EIS, f"significant effects are found: {told}", level, "EIS and record of decision")
    fitting = sorted((c for c in candidates if c.fits), key=lambda c: (c.record != "none", c.why.count("not said")))
    if not fitting:
        near = "; ".join(f"{c.citation}: {c.why}" for c in candidates) or "no category names this action"
        because = f"no exclusion on file fits ({near}); adopted exclusions were not checked"
        return Verdict(Pathway.EA, because, level, "EA and finding of no significant impact")
    rule_id = "nepa.circumstances" if on >= CONSOLIDATED else "nepa.circumstances-old"
    questions = _questions(project, fitting)
    if grave:
        because = f"extraordinary circumstances: {told}"
        return Verdict(Pathway.EA, because, rule_id, "EA and finding of no significant impact")
    if questions:
        first = fitting[0]
        because = f"{first.citation} ({first.title.lower()}) could fit, but the screening is incomplete"
        return Verdict(Pathway.ASK, because, rule_id, questions=questions)
    best = fitting[0]
    record = {"FANEC": "FANEC", "none": "none required"}.get(best.record, best.record)
    because = f"fits {best.citation}, {best.category} ({best.title.lower()}); no extraordinary circumstances"
    return Verdict(Pathway.CE, because, best.rule, record)


def _barred(project: Project) -> Verdict | None:
    land = project.land or ()
    harvest = project.action in (*HARVESTS, Action.HAZARD_TREE_REMOVAL)
    builds = project.action is Action.ROAD_CONSTRUCTION
    if Land.WILDERNESS in land and (harvest or builds):
        what = "commercial removal of trees" if harvest else "a permanent road"
        because = f"{what} is not allowed in wilderness"
        return Verdict(Pathway.PROHIBITED, because, "land.wilderness")
    if Land.ROADLESS in land and (harvest or builds or project.action is Action.FUEL_BREAK):
        because = "timber cutting and roads are barred in a roadless area but for narrow exceptions"
        return Verdict(Pathway.PROHIBITED, because, "land.roadless")
    return None


def _questions(project: Project, fitting: Sequence[Candidate]) -> tuple[str, ...]:
    """What has to be known before an exclusion can be used; what nobody said is not "none"."""
    asked = []
    limits = rule(fitting[0].rule).limits
    for name in ("temp_road_mi", "perm_road_mi", "road_mi", "years_after_fire"):
        if name in limits and getattr(project, name) is None:
            asked.append(f"how many {_LIMITS[name]}? (at most {limits[name]:g})")
    touches = (*HARVESTS, Action.HAZARD_TREE_REMOVAL, Action.ROAD_CONSTRUCTION, Action.FUEL_BREAK)
    if project.land is None and project.action in touches:
        asked.append("does it touch wilderness or an inventoried roadless area?")
    screened = {item.resource for item in project.screened or ()}
    missing = [resource.value.replace("_", " ") for resource in Resource if resource not in screened]
    if missing:
        asked.append(f"for each of these, is it there, and how would the action affect it: {', '.join(missing)}?")
    return tuple(asked)


def _limits_rule(pathway: Pathway, on: date) -> tuple[str, ...]:
    """The rule that limits pages and time, if there was one on the day."""
    found = {Pathway.EA: ("nepa.ea",), Pathway.EIS: ("nepa.eis",)}.get(pathway, ())
    return tuple(name for name in found if rule(name).applies(on))


def _words(name: StrEnum) -> str:
    return name.value.replace("_", " ")


def _steps(
    project: Project, candidates: Sequence[Candidate], refused: Sequence[str], verdict: Verdict, on: date
) -> tuple[Step, ...]:
    era = "7 CFR 1b" if on >= CONSOLIDATED else "36 CFR 220"
    steps = [Step(rule="nepa.level", said=f"{era} applies to a decision of {on.isoformat()}")]
    steps += [
        Step(rule=c.rule, said=f"{c.citation}: {'fits' if c.fits else 'does not fit'}; {c.why}") for c in candidates
    ]
    steps += [Step(rule="nepa.level", said=said) for said in refused]
    for item in project.screened or ():
        said = f"{_words(item.resource)}: {_words(item.degree)}" + (f", by {item.cause}" if item.cause else "")
        steps.append(Step(rule="nepa.circumstances", said=said))
    return (*steps, Step(rule=verdict.by, said=verdict.because))


def _said(value: dict[str, object], verdict: Verdict) -> str:
    action = str(value["action"]).replace("_", " ")
    refused: tuple[str, ...] = value["refused"]  # type: ignore[assignment]
    ends = "".join(f" {said}." for said in refused)
    head = f"DRAFT. {action} on {value['acres']:,.10g} acres, decision of {value['decision_date']}: "
    if verdict.pathway is Pathway.ASK:
        return head + f"not determined. {verdict.because}. Please say: {' '.join(verdict.questions)}" + ends
    pages = f", at most {value['page_limit']} pages and {value['years_limit']} year(s)" if value["page_limit"] else ""
    record = f"; record: {verdict.record}{pages}" if verdict.record else ""
    unverified = " The rules it rests on are unverified." if value["unverified"] else ""
    return head + f"{verdict.pathway.value}: {verdict.because}{record}." + unverified + ends
