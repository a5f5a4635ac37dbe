"""The NEPA Advisor's tools."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Annotated

from pydantic import Field

from interlock import Result, Tool, tool
from interlock.errors import InvalidInput, NotFound
from interlock_ranger.evidence import Today
from interlock_ranger.fires import Fires
from interlock_ranger.nepa.checklist import (
    GROUND_WORDS,
    Checklist,
    GroundDisturbance,
    SpeciesEffect,
    build_checklist,
)
from interlock_ranger.nepa.corpus import Corpus, SearchResult, search_corpus
from interlock_ranger.nepa.pathway import PathwayDecision, Project, choose_pathway
from interlock_ranger.nepa.terms import (
    ACTIONS,
    HARVESTS,
    PATHWAYS,
    Action,
    LandDesignation,
    Level,
    ScreenedResource,
    Significance,
)
from interlock_ranger.nepa.timeline import (
    CONSULTATIONS,
    OBJECTIONS,
    Consultation,
    Objections,
    Timeline,
    estimate_timeline,
)
from interlock_ranger.records import Designation, Fire
from interlock_ranger.rules import load_rules

Miles = Annotated[float, Field(ge=0, le=1000)]


def build_nepa_tools(fires: Fires, corpus: Path, today: Today) -> tuple[Tool, ...]:
    """The tools over these fires and a folder of documents."""
    return _search_tool(Corpus(corpus), today), _pathway_tool(fires, today), *_document_tools(today)


def _search_tool(corpus: Corpus, today: Today) -> Tool:
    # Any text is a query: the question itself is what a model that can only choose is offered.
    @tool(effect="read", known_values={"query": lambda text: (text,)}, free={"title", "text"}, own={"citation", "file"})
    def search_regulatory_documents(
        query: Annotated[str, Field(max_length=500)], most: Annotated[int, Field(ge=1, le=10)] = 3
    ) -> Result[SearchResult]:
        """What rules, statutes and handbooks say about something: passages with exact citations, or nothing on file."""
        return search_corpus(corpus, query, most, today)

    return search_regulatory_documents


def _years_after(fire: Fire | None, day: date) -> float | None:
    """How long after the fire a decision is made, if it is about one."""
    if fire is None:
        return None
    facts = fire.facts
    if day < facts.ignition_date:
        raise InvalidInput(f"{facts.name} began on {facts.ignition_date}; give a later decision_date")
    return round((day - facts.containment_date).days / 365.25, 2)


def _check_project(action: Action, acres: float, fire: Fire | None) -> None:
    """Whether there is anything to decide on: without acres, an action is about what is on file for it."""
    if acres > 0:
        return
    words = action.value.replace("_", " ")
    missing = "" if fire is None else _find_missing(action, fire)
    if fire is not None and missing:
        raise NotFound(
            f"{fire.facts.name} has {missing} on file, so there is no {words} to decide on; if one is proposed, give"
            " its acres"
        )
    if action in HARVESTS:
        raise InvalidInput(f"a {words} of 0 acres cannot be decided on; give its acres")


def _find_missing(action: Action, fire: Fire) -> str:
    """What an action would be done to, where nothing of it is on file."""
    if action is Action.TRAIL_REPAIR and not any(trail.damage_points for trail in fire.trails.values()):
        return "no damage of trails" if fire.trails else "no trails"
    # Wilderness and roadless land is not for harvests.
    if action in HARVESTS and all(stand.designation != Designation.NONE for stand in fire.stands.values()):
        return "no stands outside of wilderness and roadless areas" if fire.stands else "no stands"
    return ""


def _pathway_tool(fires: Fires, today: Today) -> Tool:
    categories = {
        name: (rule.citation, str(rule.values.get("category", rule.citation)))
        for name, rule in load_rules().items()
        if name.startswith("ce.")
    }

    @tool(effect="read", known_values={"fire_id": fires.names(), "action": ACTIONS, "category": categories})
    def decide_pathway(
        action: Action,
        acres: Annotated[float, Field(ge=0, le=10_000_000)],
        fire_id: str | None = None,
        temp_road_miles: Miles | None = None,
        permanent_road_miles: Miles | None = None,
        road_miles: Miles | None = None,
        land: list[LandDesignation] | None = None,
        screened: list[ScreenedResource] | None = None,
        significance: Significance | None = None,
        category: str | None = None,
        decision_date: date | None = None,
    ) -> Result[PathwayDecision]:
        """Which level of NEPA review an action needs: exclusion, assessment or impact statement; a draft, with rules.

        `screened`: extraordinary circumstances, each resource with the degree of effect. `land`: wilderness, roadless
        or none. What is left out is asked for, not taken as none. Without a date, today is used, and said.
        """
        fire = None if fire_id is None else fires.find(fire_id).fire
        _check_project(action, acres, fire)
        project = Project(
            action=action,
            acres=acres,
            temp_road_mi=temp_road_miles,
            perm_road_mi=permanent_road_miles,
            road_mi=road_miles,
            years_after_fire=_years_after(fire, decision_date or today()),
            land=None if land is None else tuple(land),
            screened=None if screened is None else tuple(screened),
            significance=significance,
            category=category,
        )
        return choose_pathway(project, fire, decision_date, today)

    return decide_pathway


def _document_tools(today: Today) -> tuple[Tool, Tool]:
    @tool(effect="read", known_values={"pathway": PATHWAYS, "action": ACTIONS, "ground": GROUND_WORDS})
    def generate_documentation_checklist(
        pathway: Level,
        action: Action,
        listed_species: list[SpeciesEffect] | None = None,
        ground: GroundDisturbance | None = None,
    ) -> Result[Checklist]:
        """What has to be written, who reports and who is consulted for a level of review and an action; a draft."""
        return build_checklist(pathway, action, listed_species, ground, today)

    @tool(effect="read", known_values={"pathway": PATHWAYS, "consultations": CONSULTATIONS, "objections": OBJECTIONS})
    def estimate_compliance_timeline(
        pathway: Level,
        start_date: date | None = None,
        consultations: list[Consultation] | None = None,
        objections: Objections = Objections.NOT_EXPECTED,
    ) -> Result[Timeline]:
        """How long compliance takes from a day: planning estimate, consultations, statutory deadline; a draft.

        Without a start, today is used, and said.
        """
        return estimate_timeline(pathway, start_date, consultations, objections, today)

    return generate_documentation_checklist, estimate_compliance_timeline
