"""The five agents: who they are, which tools they have, and what their answers need."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

import msgspec

from interlock.answers import Agent, Intent, Requirement, all_of, need
from interlock.answers.grounding import Vocabulary, default_vocabulary

HERE = Path(__file__).parent
DEADLINE_S = 180.0
"""Of a specialist: the embedded model takes seconds for a question, and many times as long on a busy machine. The
coordinator, whose specialists work within its time, has twice as much."""
RULES = (
    "Say that data is synthetic where its result says so, and only there: what is synthetic is never called real, nor"
    " real data synthetic.",
    "Advice on closures, salvage and NEPA is a draft for a responsible official: say so.",
    "Name the rule ids and data sources that the results give.",
)

TOOLS: dict[str, tuple[str, ...]] = {
    "trail_assessor": ("classify_damage", "evaluate_closure", "prioritize_trails"),
    "burn_analyst": ("assess_severity", "classify_mtbs", "validate_boundary"),
    "cruising_assistant": ("recommend_methodology", "estimate_volume", "assess_salvage", "analyze_csv_data"),
    "nepa_advisor": (
        "search_regulatory_documents",
        "decide_pathway",
        "generate_documentation_checklist",
        "estimate_compliance_timeline",
    ),
}
DEFAULTS = {
    "trail_assessor": "classify_damage",
    "burn_analyst": "assess_severity",
    "cruising_assistant": "estimate_volume",
    "nepa_advisor": "decide_pathway",
}
PURPOSES = {
    "trail_assessor": "You are the Trail Assessor of a forest after a wildfire: damage, closures and repair of trails.",
    "burn_analyst": "You are the Burn Analyst of a forest after a wildfire: burn severity, MTBS classes, boundaries.",
    "cruising_assistant": "You are the Cruising Assistant of a forest after a wildfire: timber, salvage, cruises.",
    "nepa_advisor": "You are the NEPA Advisor of a forest after a wildfire: which review, documents, times, rules.",
    "coordinator": "You are the Recovery Coordinator: you route questions to four specialists, ask back where one"
    " is unclear, rank fires, and bring a full briefing together from all four.",
}
SPECIALISTS = tuple(TOOLS)


@cache
def ranger_vocabulary() -> Vocabulary:
    """Everyday English, and the units and citations of forestry."""
    return default_vocabulary().extend(HERE / "vocabulary.toml")


def load_intents(agent: str) -> tuple[Intent, ...]:
    """How people ask an agent; "nothing on file" is an honest answer to any of it."""
    return tuple(
        Intent(
            name=item["name"],
            requires=_requirement(item["requires"]),
            keywords=tuple(item["keywords"]),
            examples=tuple(item["examples"]),
            weight=item.get("weight", 1.0),
        )
        for item in tomllib.loads((HERE / "intents" / f"{agent}.toml").read_text(encoding="utf-8"))["intent"]
    )


def _requirement(names: str | list[str]) -> Requirement:
    if isinstance(names, str):
        return need(names, no_data=True)
    return all_of(*(need(name, no_data=True) for name in names))


def _add_specialist_examples(intent: Intent) -> Intent:
    """A route to a specialist, with every third of that specialist's own examples beside the route's."""
    if intent.name not in SPECIALISTS:
        return intent
    own = [example for item in load_intents(intent.name) for example in item.examples[::3]]
    return msgspec.structs.replace(intent, examples=(*intent.examples, *own))


def specialist(name: str, deadline_s: float = DEADLINE_S) -> Agent:
    return Agent(
        name=name,
        tools=TOOLS[name],
        intents=load_intents(name),
        default=need(DEFAULTS[name], no_data=True),
        purpose=PURPOSES[name],
        rules=RULES,
        deadline_s=deadline_s,
        vocabulary=ranger_vocabulary(),
    )


def coordinator(deadline_s: float = 2 * DEADLINE_S) -> Agent:
    """The one that routes: it requires nothing by itself but what its intents say; a full briefing needs all four."""
    return Agent(
        name="coordinator",
        tools=("portfolio_triage", *SPECIALISTS),
        intents=tuple(map(_add_specialist_examples, load_intents("coordinator"))),
        purpose=PURPOSES["coordinator"],
        rules=RULES,
        deadline_s=deadline_s,
        vocabulary=ranger_vocabulary(),
    )
