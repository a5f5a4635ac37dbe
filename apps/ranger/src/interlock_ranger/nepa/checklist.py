"""What has to be written, who reports, and who has to be consulted, for a level of review."""

from __future__ import annotations

from enum import StrEnum

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
from interlock_ranger.nepa.citations import cite, pack_source
from interlock_ranger.nepa.terms import DRAFT, Action, Level, RuleCitation
from interlock_ranger.rules import Rule, get_rule, load_rules


class Effect(StrEnum):
    """What an action does to a listed species."""

    NO_EFFECT = "no_effect"
    NOT_LIKELY_ADVERSE = "not_likely_adverse"
    LIKELY_ADVERSE = "likely_adverse"


class GroundDisturbance(StrEnum):
    DISTURBED = "disturbed"
    UNDISTURBED = "undisturbed"


GROUND_WORDS = {
    "disturbed": ("disturbs the ground", "ground disturbance", "ground disturbing", "digging", "excavation"),
    "undisturbed": ("no ground disturbance", "does not disturb the ground", "no digging"),
}


class ListedSpecies(StrEnum):
    """Species that come up in these forests, by who is responsible for them."""

    NORTHERN_SPOTTED_OWL = "northern_spotted_owl"
    BULL_TROUT = "bull_trout"
    GRAY_WOLF = "gray_wolf"
    OREGON_SPOTTED_FROG = "oregon_spotted_frog"
    WHITEBARK_PINE = "whitebark_pine"
    CHINOOK_SALMON = "chinook_salmon"
    STEELHEAD = "steelhead"


# Fish that go to sea are for NOAA Fisheries, the others for the Fish and Wildlife Service (50 CFR 402.01).
_MARINE = (ListedSpecies.CHINOOK_SALMON, ListedSpecies.STEELHEAD)


class SpeciesEffect(Part):
    """A listed species and what the action does to it."""

    species: ListedSpecies
    effect: Effect


class ChecklistItem(Part):
    """One thing to be written or done."""

    item: str
    required: bool
    rule: str


class Checklist(Finding):
    pathway: Level
    action: Action
    items: tuple[ChecklistItem, ...]
    specialists: tuple[str, ...]
    consultations: tuple[ChecklistItem, ...]
    questions: tuple[str, ...]
    rests_on: tuple[RuleCitation, ...]
    unverified: bool
    draft: str = DRAFT


def _item(text: str, rule: str, *, required: bool = True) -> ChecklistItem:
    return ChecklistItem(item=text, required=required, rule=rule)


_EIS_TEXT = "environmental impact statement, at most 150 pages (300 if extraordinarily complex), within two years"
_ITEMS: dict[Level, tuple[ChecklistItem, ...]] = {
    Level.CE: (
        _item("FANEC: finding of applicability and no extraordinary circumstances, signed", "nepa.fanec"),
        _item("record of the interdisciplinary screening of each resource", "nepa.circumstances"),
        _item("project file", "nepa.fanec"),
        # Listed in order to say that it is not required.
        _item("scoping and comment", "nepa.no-scoping", required=False),
    ),
    Level.EA: (
        _item("environmental assessment, at most 75 pages, within one year", "nepa.ea"),
        _item("finding of no significant impact, signed", "nepa.ea"),
        _item("proposed action and alternatives where resource uses conflict", "nepa.ea"),
        _item("notice and comment of 30 days where objections apply", "nepa.objection"),
        _item("response to objections", "nepa.objection"),
    ),
    Level.EIS: (
        _item("notice of intent with a request for comment", "nepa.eis"),
        _item(_EIS_TEXT, "nepa.eis"),
        _item("comment of 45 days on a draft where objections apply", "nepa.objection"),
        _item("record of decision, signed", "nepa.eis"),
        _item("response to objections", "nepa.objection"),
    ),
}


def build_checklist(
    pathway: Level,
    action: Action,
    species: list[SpeciesEffect] | None,
    ground: GroundDisturbance | None,
    today: Today,
) -> Result[Checklist]:
    """The checklist; what was not said is asked for, not left out."""
    items = _documents(pathway, action, today)
    experts: list[str] = get_rule("nepa.specialists").values[action.value]
    consultations, questions = _consultations(species, ground), _open_questions(species, ground)
    names = dict.fromkeys(item.rule for item in (*items, *consultations) if item.required)
    sources = (pack_source(),)
    check = Recommendation(rule="nepa.draft", text="check the cited texts before the file is closed")
    count = sum(item.required for item in items)
    evidence = Evidence(
        reasoning=(
            Step(rule=items[0].rule, text=f"{count} documents for a {pathway.value}"),
            Step(rule="nepa.specialists", text=f"{len(experts)} specialists usually report on it"),
            Step(rule="esa.section-7", text="consultation follows the effect on a species, not its presence"),
        ),
        recommendations=tuple(Recommendation(rule="nepa.draft", text=question) for question in questions) or (check,),
        confidence=compute_confidence(today(), sources, 2 + (species is not None) + (ground is not None), 4),
        data_sources=sources,
    )
    checklist = Checklist(
        pathway=pathway,
        action=action,
        items=items,
        specialists=tuple(experts),
        consultations=consultations,
        questions=questions,
        rests_on=tuple(cite(name) for name in names),
        unverified=any(not get_rule(name).is_verified for name in names),
        synthetic=evidence.is_synthetic,
        evidence=evidence,
    )
    return build_result(checklist, _summarise(checklist))


def _documents(pathway: Level, action: Action, today: Today) -> tuple[ChecklistItem, ...]:
    """What has to be written; an exclusion that needs no record takes the place of the first document."""
    items = _ITEMS[pathway]
    free = [rule for rule in load_rules().values() if action in rule.actions and _needs_no_record(rule, today)]
    if pathway is not Level.CE or not free:
        return items
    text = f"no document under {free[0].citation} ({free[0].title.lower()}); keep a note in the project file"
    return (_item(text, free[0].id), *items[1:])


def _needs_no_record(rule: Rule, today: Today) -> bool:
    return rule.values.get("record") == "none" and rule.applies_on(today())


def _consultations(species: list[SpeciesEffect] | None, ground: GroundDisturbance | None) -> tuple[ChecklistItem, ...]:
    items = [_consultation(item) for item in species or ()]
    if ground is GroundDisturbance.DISTURBED:
        text = "review by the state historic preservation officer, 30 days for each finding"
        items.append(_item(text, "nhpa.section-106"))
    return tuple(items)


def _consultation(item: SpeciesEffect) -> ChecklistItem:
    agency = "NOAA Fisheries" if item.species in _MARINE else "the Fish and Wildlife Service"
    name = item.species.value.replace("_", " ")
    text = {
        Effect.NO_EFFECT: f"no consultation for {name}: no effect; document why",
        Effect.NOT_LIKELY_ADVERSE: f"informal consultation with {agency} for {name}: written concurrence, 60 days",
        Effect.LIKELY_ADVERSE: f"formal consultation with {agency} for {name}: 135 days",
    }[item.effect]
    return _item(text, "esa.section-7", required=item.effect is not Effect.NO_EFFECT)


def _open_questions(species: list[SpeciesEffect] | None, ground: GroundDisturbance | None) -> tuple[str, ...]:
    questions = []
    if species is None:
        questions.append("which listed species are there, and how would the action affect each?")
    if ground is None:
        questions.append("does it disturb the ground?")
    return tuple(questions)


def _summarise(c: Checklist) -> str:
    needed = "; ".join(item.item for item in c.items if item.required)
    consulted = "; ".join(item.item for item in c.consultations if item.required)
    return (
        f"DRAFT. {c.pathway.value} for {c.action.value.replace('_', ' ')}: {needed}."
        f" Specialists: {', '.join(c.specialists)}."
        + (f" Consultations: {consulted}." if consulted else "")
        + (f" To be said: {' '.join(c.questions)}" if c.questions else "")
    )
