"""What has to be written, who reports, and who has to be consulted, for a level of review."""

from __future__ import annotations

from enum import StrEnum

from interlock import Result
from interlock_ranger.evidence import Finding, Part, Recommendation, Step, Today, confidence, finding
from interlock_ranger.nepa.sources import cited, pack_source
from interlock_ranger.nepa.terms import DRAFT, Action, Cited, Level
from interlock_ranger.rules import Rule, rule, rules


class Effect(StrEnum):
    """What an action does to a listed species."""

    NO_EFFECT = "no_effect"
    NOT_LIKELY_ADVERSE = "not_likely_adverse"
    LIKELY_ADVERSE = "likely_adverse"


class Ground(StrEnum):
    """Whether the ground is disturbed."""

    DISTURBED = "disturbed"
    UNDISTURBED = "undisturbed"


GROUND = {
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


MARINE = (ListedSpecies.CHINOOK_SALMON, ListedSpecies.STEELHEAD)


class SpeciesEffect(Part):
    """A listed species and what the action does to it."""

    species: ListedSpecies
    effect: Effect


class Item(Part):
    """One thing to be written or done."""

    item: str
    required: bool
    rule: str


class Checklist(Finding):
    """What has to be written."""

    pathway: Level
    action: Action
    items: tuple[Item, ...]
    specialists: tuple[str, ...]
    consultations: tuple[Item, ...]
    questions: tuple[str, ...]
    rests_on: tuple[Cited, ...]
    unverified: bool
    draft: str = DRAFT


_ITEMS: dict[Level, tuple[tuple[str, bool, str], ...]] = {
    Level.CE: (
        ("FANEC: finding of applicability and no extraordinary circumstances, signed", True, "nepa.fanec"),
        ("record of the interdisciplinary screening of each resource", True, "nepa.circumstances"),
        ("project file", True, "nepa.fanec"),
        ("scoping and comment", False, "nepa.no-scoping"),
    ),
    Level.EA: (
        ("environmental assessment, at most 75 pages, within one year", True, "nepa.ea"),
        ("finding of no significant impact, signed", True, "nepa.ea"),
        ("proposed action and alternatives where resource uses conflict", True, "nepa.ea"),
        ("notice and comment of 30 days where objections apply", True, "nepa.objection"),
        ("response to objections", True, "nepa.objection"),
    ),
    Level.EIS: (
        ("notice of intent with a request for comment", True, "nepa.eis"),
        (
            "environmental impact statement, at most 150 pages (300 if extraordinarily complex), within two years",
            True,
            "nepa.eis",
        ),
        ("comment of 45 days on a draft where objections apply", True, "nepa.objection"),
        ("record of decision, signed", True, "nepa.eis"),
        ("response to objections", True, "nepa.objection"),
    ),
}


def listed(
    pathway: Level, action: Action, species: list[SpeciesEffect] | None, ground: Ground | None, today: Today
) -> Result[Checklist]:
    """The checklist; what was not said is asked for, not left out."""
    items = tuple(Item(item=text, required=needed, rule=name) for text, needed, name in _ITEMS[pathway])
    free = [entry for entry in rules().values() if action in entry.actions and _needs_no_record(entry, today)]
    if pathway is Level.CE and free:
        text = f"no document under {free[0].citation} ({free[0].title.lower()}); keep a note in the project file"
        items = (Item(item=text, required=True, rule=free[0].id), *items[1:])
    experts: list[str] = rule("nepa.specialists").values[action.value]
    consults, questions = _consultations(species, ground)
    names = dict.fromkeys(item.rule for item in (*items, *consults) if item.required)
    sources = (pack_source(today),)
    value = {
        "pathway": pathway,
        "action": action,
        "items": items,
        "specialists": tuple(experts),
        "consultations": consults,
        "questions": questions,
        "rests_on": tuple(cited(name) for name in names),
        "unverified": any(not rule(name).verified for name in names),
        "reasoning": (
            Step(rule=items[0].rule, said=f"{sum(item.required for item in items)} documents for a {pathway.value}"),
            Step(rule="nepa.specialists", said=f"{len(experts)} specialists usually report on it"),
            Step(rule="esa.section-7", said="consultation follows the effect on a species, not its presence"),
        ),
        "recommendations": tuple(Recommendation(rule="nepa.draft", text=question) for question in questions)
        or (Recommendation(rule="nepa.draft", text="check the cited texts before the file is closed"),),
    }
    needed = "; ".join(item.item for item in items if item.required)
    consulted = "; ".join(item.item for item in consults if item.required)
    said = (
        f"DRAFT. {pathway.value} for {action.value.replace('_', ' ')}: {needed}. Specialists: {', '.join(experts)}."
        + (f" Consultations: {consulted}." if consulted else "")
        + (f" To be said: {' '.join(questions)}" if questions else "")
    )
    trust = confidence(today(), sources, 2 + (species is not None) + (ground is not None), 4)
    return finding(Checklist, said, value, sources, trust)


def _needs_no_record(entry: Rule, today: Today) -> bool:
    return entry.values.get("record") == "none" and entry.applies(today())


def _consultations(
    species: list[SpeciesEffect] | None, ground: Ground | None
) -> tuple[tuple[Item, ...], tuple[str, ...]]:
    found, asked = [], []
    if species is None:
        asked.append("which listed species are there, and how would the action affect each?")
    for item in species or ():
        who = "NOAA Fisheries" if item.species in MARINE else "the Fish and Wildlife Service"
        name = item.species.value.replace("_", " ")
        text = {
            Effect.NO_EFFECT: f"no consultation for {name}: no effect; document why",
            Effect.NOT_LIKELY_ADVERSE: f"informal consultation with {who} for {name}: written concurrence, 60 days",
            Effect.LIKELY_ADVERSE: f"formal consultation with {who} for {name}: 135 days",
        }[item.effect]
        found.append(Item(item=text, required=item.effect is not Effect.NO_EFFECT, rule="esa.section-7"))
    if ground is None:
        asked.append("does it disturb the ground?")
    elif ground is Ground.DISTURBED:
        text = "review by the state historic preservation officer, 30 days for each finding"
        found.append(Item(item=text, required=True, rule="nhpa.section-106"))
    return tuple(found), tuple(asked)
