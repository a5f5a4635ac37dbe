"""Which level of review an action needs: an exclusion that fits, else an assessment; a statement by significance."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
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
from interlock_ranger.nepa.citations import Topic, cite, find_rule, pack_source, rule_in_force
from interlock_ranger.nepa.terms import (
    DRAFT,
    HARVESTS,
    Action,
    Degree,
    LandDesignation,
    Pathway,
    Resource,
    RuleCitation,
    ScreenedResource,
    Significance,
)
from interlock_ranger.records import Fire
from interlock_ranger.rules import Rule, get_rule, load_rules

_LIMIT_WORDS = {
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
    land: tuple[LandDesignation, ...] | None = None
    screened: tuple[ScreenedResource, ...] | None = None
    significance: Significance | None = None
    category: str | None = None


class Candidate(Part):
    """An exclusion, and whether the action fits into it."""

    rule: str
    citation: str
    category: str
    title: str
    fits: bool
    reason: str
    record: str
    verified_against: str


class PathwayDecision(Finding):
    pathway: Pathway
    action: Action
    acres: float
    fire_id: str | None
    decision_date: date
    decision_date_from: str
    reason: str
    record: str
    page_limit: int | None
    years_limit: int | None
    candidates: tuple[Candidate, ...]
    questions: tuple[str, ...]
    refused: tuple[str, ...]
    rests_on: tuple[RuleCitation, ...]
    unverified: bool
    draft: str = DRAFT


class ReviewLevel(msgspec.Struct, frozen=True, kw_only=True):
    """What follows for the project, and by which rule."""

    pathway: Pathway
    reason: str
    rule: str
    record: str = ""
    questions: tuple[str, ...] = ()


def choose_pathway(project: Project, fire: Fire | None, day: date | None, today: Today) -> Result[PathwayDecision]:
    """The draft decision for a day; without one, for today."""
    on = day or today()
    circumstances = rule_in_force(Topic.CIRCUMSTANCES, on)
    if project.action is Action.ROAD_CONSTRUCTION and project.road_mi is None:  # what is built is the road
        project = msgspec.structs.replace(project, road_mi=project.perm_road_mi)
    candidates = tuple(_candidate(rule, project, on) for rule in _exclusions(project.action, on))
    refused = _refuse_category(project, on)
    level = _review_level(project, candidates, on)
    limits_rule = _limits_rule(level.pathway, on)
    limits = {} if limits_rule is None else get_rule(limits_rule).limits
    fitting = (c.rule for c in candidates if c.fits)
    names = dict.fromkeys((level.rule, *fitting, *(() if limits_rule is None else (limits_rule,))))
    pack = pack_source()
    # Of a fire its dates are used: a decision about one that is synthetic is no decision about a real one.
    sources = (pack,) if fire is None else (pack, fire.source("fire.json"))
    given = (project.temp_road_mi, project.land, project.screened, project.significance)
    evidence = Evidence(
        reasoning=_reasoning(project, candidates, refused, level, on),
        recommendations=(
            Recommendation(
                rule=rule_in_force(Topic.DRAFT, on),
                text="the responsible official decides; check the cited texts first",
            ),
            *(Recommendation(rule=circumstances, text=question) for question in level.questions),
        ),
        # By the pack alone: the day on which a fire was contained does not go out of date.
        confidence=compute_confidence(today(), (pack,), 2 + sum(item is not None for item in given), 2 + len(given)),
        data_sources=sources,
    )
    decision = PathwayDecision(
        pathway=level.pathway,
        action=project.action,
        acres=project.acres,
        fire_id=None if fire is None else fire.id,
        decision_date=on,
        decision_date_from="named" if day is not None else "today, as none was named",
        reason=level.reason,
        record=level.record,
        page_limit=int(limits["pages"]) if "pages" in limits else None,
        years_limit=int(limits["years"]) if "years" in limits else None,
        candidates=candidates,
        questions=level.questions,
        refused=refused,
        rests_on=tuple(cite(name) for name in names),
        unverified=any(not get_rule(name).is_verified for name in names),
        synthetic=evidence.is_synthetic,
        evidence=evidence,
    )
    return build_result(decision, _summarise(decision))


def _exclusions(action: Action, on: date) -> list[Rule]:
    """Those that name the action and are in force, and those that a court has set aside by then."""
    return [
        rule
        for rule in load_rules().values()
        # One that was set aside is kept in view, so that the decision can say why it is not offered.
        if action in rule.actions and (rule.applies_on(on) or (rule.status == "set_aside" and _has_begun(rule, on)))
    ]


def _has_begun(rule: Rule, on: date) -> bool:
    return rule.effective_from is not None and rule.effective_from <= on


def _candidate(rule: Rule, project: Project, on: date) -> Candidate:
    # Ten digits, so that the reason does not round 250.1 acres to the very limit that they exceed.
    over = [
        f"{given:,.10g} {_LIMIT_WORDS[name]} are over {most:,.10g}"
        for name, most in rule.limits.items()
        if (given := getattr(project, name)) is not None and given > most
    ]
    # What is not said does not keep an exclusion from fitting; `_open_questions` asks before it is used.
    unsaid = [
        f"{_LIMIT_WORDS[name]} are not said (at most {rule.limits[name]:,.10g})"
        for name in _unsaid_limits(rule, project)
    ]
    set_aside = not rule.applies_on(on)
    reason = "; ".join([*(["set aside by a court"] if set_aside else []), *over, *unsaid])
    conditions = f" (conditions: {'; '.join(rule.conditions)})" if rule.conditions and not over else ""
    return Candidate(
        rule=rule.id,
        citation=rule.citation,
        category=str(rule.values.get("category", rule.citation)),
        title=rule.title,
        fits=not over and not set_aside,
        reason=(reason or "no limit is exceeded") + conditions,
        record=str(rule.values.get("record", "")),
        verified_against=rule.verified_against,
    )


def _unsaid_limits(rule: Rule, project: Project) -> list[str]:
    return [name for name in rule.limits if getattr(project, name) is None]


def _refuse_category(project: Project, on: date) -> tuple[str, ...]:
    """What is said to a category that was named, but is not in force on the day."""
    refused = []
    for rule in load_rules().values():
        named = project.category is not None and project.category == rule.id
        if rule.id.startswith("ce.") and named and not rule.applies_on(on):
            refused.append(f"{rule.citation} does not apply to a decision of {on.isoformat()}: {_why_not(rule, on)}")
    return tuple(refused)


def _why_not(rule: Rule, on: date) -> str:
    """Not yet in force, or not any more, with what stands in its place."""
    if rule.effective_from is not None and on < rule.effective_from:
        before = rule.values.get("predecessor", "")
        return f"it is in force from {rule.effective_from.isoformat()}" + (f"; see {before}" if before else "")
    successor = rule.values.get("successor", "")
    instead = f"; see {get_rule(successor).citation}" if successor else ""
    ended = "" if rule.effective_to is None else f" after {rule.effective_to.isoformat()}"
    return f"{rule.status.replace('_', ' ')}{ended}{instead}"


def _review_level(project: Project, candidates: Sequence[Candidate], on: date) -> ReviewLevel:
    """In the order of the rule: what is forbidden, what is significant, what is excluded, what has to be asked."""
    prohibited = _find_prohibition(project)
    if prohibited is not None:
        return prohibited
    significant = _find_significance(project, on)
    if significant is not None:
        return significant
    # The one that needs no record comes first; then the one of which the least is left to ask.
    fitting = sorted(
        (c for c in candidates if c.fits),
        key=lambda c: (c.record != "none", len(_unsaid_limits(get_rule(c.rule), project))),
    )
    return _exclusion_level(project, fitting, on) if fitting else _assessment_level(candidates, on)


def _find_significance(project: Project, on: date) -> ReviewLevel | None:
    record = "EIS and record of decision"
    if project.significance is Significance.LIKELY:
        reason = "significant effects are likely"
        return ReviewLevel(pathway=Pathway.EIS, reason=reason, rule=rule_in_force(Topic.LEVEL, on), record=record)
    grave = _grave_effects(project)
    # Uncertainty is no significance: it rules an exclusion out further down, and leads to an EA.
    if any(item.degree is Degree.SIGNIFICANT for item in grave):
        reason = f"significant effects are found: {_describe_effects(grave)}"
        return ReviewLevel(pathway=Pathway.EIS, reason=reason, rule=rule_in_force(Topic.LEVEL, on), record=record)
    return None


def _assessment_level(candidates: Sequence[Candidate], on: date) -> ReviewLevel:
    near = "; ".join(f"{c.citation}: {c.reason}" for c in candidates) or "no category names this action"
    return ReviewLevel(
        pathway=Pathway.EA,
        # The list of adopted exclusions was not at hand (docs/ranger.md), and a decision that none fits has to say so.
        reason=f"no exclusion on file fits ({near}); adopted exclusions were not checked",
        rule=rule_in_force(Topic.LEVEL, on),
        record="EA and finding of no significant impact",
    )


def _exclusion_level(project: Project, fitting: Sequence[Candidate], on: date) -> ReviewLevel:
    """An exclusion fits: it is used unless circumstances are extraordinary, or nobody has said whether they are."""
    best = fitting[0]
    circumstances = rule_in_force(Topic.CIRCUMSTANCES, on)
    grave, questions = _grave_effects(project), _open_questions(project, best)
    # Before open questions: what is known already rules the exclusion out, whatever the answers are.
    if grave:
        reason = f"extraordinary circumstances: {_describe_effects(grave)}"
        record = "EA and finding of no significant impact"
        return ReviewLevel(pathway=Pathway.EA, reason=reason, rule=circumstances, record=record)
    if questions:
        reason = f"{best.citation} ({best.title.lower()}) could fit, but the screening is incomplete"
        return ReviewLevel(pathway=Pathway.ASK, reason=reason, rule=circumstances, questions=questions)
    return ReviewLevel(
        pathway=Pathway.CE,
        reason=f"fits {best.citation}, {best.category} ({best.title.lower()}); no extraordinary circumstances",
        rule=best.rule,
        record="none required" if best.record == "none" else best.record,
    )


def _grave_effects(project: Project) -> list[ScreenedResource]:
    """Presence of a resource is no extraordinary circumstance; an uncertain or significant effect on it is."""
    return [item for item in project.screened or () if item.degree in (Degree.UNCERTAIN, Degree.SIGNIFICANT)]


def _describe_effects(effects: Sequence[ScreenedResource]) -> str:
    return ", ".join(f"{_words(item.resource)} ({_words(item.degree)})" for item in effects)


def _find_prohibition(project: Project) -> ReviewLevel | None:
    # Land that nobody named forbids nothing here; `_open_questions` asks about it before an exclusion is used.
    land = project.land or ()
    harvest = project.action in (*HARVESTS, Action.HAZARD_TREE_REMOVAL)
    builds = project.action is Action.ROAD_CONSTRUCTION
    if LandDesignation.WILDERNESS in land and (harvest or builds):
        what = "commercial removal of trees" if harvest else "a permanent road"
        reason = f"{what} is not allowed in wilderness"
        return ReviewLevel(pathway=Pathway.PROHIBITED, reason=reason, rule="land.wilderness")
    # Fuel breaks only here: this rule is about cutting timber, that of wilderness about commercial enterprise.
    if LandDesignation.ROADLESS in land and (harvest or builds or project.action is Action.FUEL_BREAK):
        reason = "timber cutting and roads are barred in a roadless area but for narrow exceptions"
        return ReviewLevel(pathway=Pathway.PROHIBITED, reason=reason, rule="land.roadless")
    return None


def _open_questions(project: Project, exclusion: Candidate) -> tuple[str, ...]:
    """What has to be known before an exclusion can be used; what nobody said is not "none"."""
    questions = []
    limits = get_rule(exclusion.rule).limits
    # Acres are not among them, as the tool does not run without.
    for name in ("temp_road_mi", "perm_road_mi", "road_mi", "years_after_fire"):
        if name in limits and getattr(project, name) is None:
            questions.append(f"how many {_LIMIT_WORDS[name]}? (at most {limits[name]:g})")
    touches = (*HARVESTS, Action.HAZARD_TREE_REMOVAL, Action.ROAD_CONSTRUCTION, Action.FUEL_BREAK)
    if project.land is None and project.action in touches:
        questions.append("does it touch wilderness or an inventoried roadless area?")
    screened = {item.resource for item in project.screened or ()}
    missing = [_words(resource) for resource in Resource if resource not in screened]
    if missing:
        questions.append(f"for each of these, is it there, and how would the action affect it: {', '.join(missing)}?")
    return tuple(questions)


def _limits_rule(pathway: Pathway, on: date) -> str | None:
    """The rule that limits pages and time, if there was one on the day."""
    topic = {Pathway.EA: Topic.EA, Pathway.EIS: Topic.EIS}.get(pathway)
    return None if topic is None else find_rule(topic, on)


def _words(name: StrEnum) -> str:
    return name.value.replace("_", " ")


def _reasoning(
    project: Project, candidates: Sequence[Candidate], refused: Sequence[str], level: ReviewLevel, on: date
) -> tuple[Step, ...]:
    era, level_rule = "7 CFR 1b" if on >= CONSOLIDATED else "36 CFR 220", rule_in_force(Topic.LEVEL, on)
    steps = [Step(rule=level_rule, text=f"{era} applies to a decision of {on.isoformat()}")]
    steps += [
        Step(rule=c.rule, text=f"{c.citation}: {'fits' if c.fits else 'does not fit'}; {c.reason}") for c in candidates
    ]
    steps += [Step(rule=level_rule, text=text) for text in refused]
    for item in project.screened or ():
        text = f"{_words(item.resource)}: {_words(item.degree)}" + (f", by {item.cause}" if item.cause else "")
        steps.append(Step(rule=rule_in_force(Topic.CIRCUMSTANCES, on), text=text))
    return (*steps, Step(rule=level.rule, text=level.reason))


def _summarise(d: PathwayDecision) -> str:
    refused = "".join(f" {text}." for text in d.refused)
    # Where none were said, as of trails, acres are no part of the finding.
    size = f" on {d.acres:,.10g} acres" if d.acres else ""
    head = f"DRAFT. {_words(d.action)}{size}, decision of {d.decision_date}: "
    if d.pathway is Pathway.ASK:
        return head + f"not determined. {d.reason}. Please say: {' '.join(d.questions)}" + refused
    years = "1 year" if d.years_limit == 1 else f"{d.years_limit} years"
    pages = f", at most {d.page_limit} pages and {years}" if d.page_limit else ""
    record = f"; record: {d.record}{pages}" if d.record else ""
    unverified = " The rules it rests on are unverified." if d.unverified else ""
    return head + f"{d.pathway.value}: {d.reason}{record}." + unverified + refused
