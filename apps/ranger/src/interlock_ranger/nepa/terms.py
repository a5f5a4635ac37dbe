"""The words of NEPA that the tools share, as closed sets."""

from __future__ import annotations

from enum import StrEnum

from interlock_ranger.evidence import Part


class Action(StrEnum):
    """What is proposed."""

    SALVAGE_HARVEST = "salvage_harvest"
    SANITATION_HARVEST = "sanitation_harvest"
    LIVE_TREE_HARVEST = "live_tree_harvest"
    HAZARD_TREE_REMOVAL = "hazard_tree_removal"
    POST_FIRE_REHABILITATION = "post_fire_rehabilitation"
    REFORESTATION = "reforestation"
    WATERSHED_RESTORATION = "watershed_restoration"
    TRAIL_REPAIR = "trail_repair"
    TRAIL_CONSTRUCTION = "trail_construction"
    ROAD_REPAIR = "road_repair"
    ROAD_CONSTRUCTION = "road_construction"
    RECREATION_SITE_REPAIR = "recreation_site_repair"
    CLOSURE_ORDER = "closure_order"
    DEBRIS_REMOVAL = "debris_removal"
    FUEL_BREAK = "fuel_break"
    STAND_IMPROVEMENT = "stand_improvement"


HARVESTS = (Action.SALVAGE_HARVEST, Action.SANITATION_HARVEST, Action.LIVE_TREE_HARVEST, Action.STAND_IMPROVEMENT)
ACTIONS: dict[str, tuple[str, ...]] = {
    "salvage_harvest": ("salvage", "salvage sale", "salvage logging", "salvage harvest", "salvage project", "logging"),
    "sanitation_harvest": ("sanitation harvest", "sanitation"),
    "live_tree_harvest": ("live tree harvest", "thinning", "commercial thinning", "logging"),
    "hazard_tree_removal": ("hazard tree removal", "hazard trees", "danger trees", "roadside hazard trees"),
    "post_fire_rehabilitation": (
        "post-fire rehabilitation",
        "rehabilitation",
        "rehab",
        "BAER work",
        "mulching",
        "seeding",
    ),
    "reforestation": ("replanting", "planting", "tree planting", "reforestation"),
    "watershed_restoration": ("watershed restoration", "stream restoration"),
    "trail_repair": ("trail repair", "trail maintenance", "trail reconstruction", "repairing trails", "trail work"),
    "trail_construction": ("trail construction", "new trail", "reroute"),
    "road_repair": ("road repair", "road maintenance", "road work", "culverts", "culvert repair"),
    "road_construction": ("road construction", "new road", "building a road"),
    "recreation_site_repair": ("campground repair", "recreation site repair", "campground"),
    "closure_order": ("closure order", "area closure"),
    "debris_removal": ("debris removal", "sediment removal", "removing debris"),
    "fuel_break": ("fuel break", "fuelbreak", "fuels reduction"),
    "stand_improvement": ("timber stand improvement", "stand improvement", "wildlife habitat improvement"),
}


class Pathway(StrEnum):
    """The level of review."""

    CE = "CE"
    EA = "EA"
    EIS = "EIS"
    ASK = "ASK"
    PROHIBITED = "PROHIBITED"


PATHWAYS: dict[str, tuple[str, ...]] = {
    "CE": ("categorical exclusion", "exclusion", "catex", "FANEC"),
    "EA": ("environmental assessment", "assessment"),
    "EIS": ("environmental impact statement", "impact statement"),
}


class Level(StrEnum):
    """The three levels that have documents and a timeline."""

    CE = "CE"
    EA = "EA"
    EIS = "EIS"


class Resource(StrEnum):
    """What extraordinary circumstances are screened for."""

    LISTED_SPECIES = "listed_species"
    WETLANDS_FLOODPLAINS = "wetlands_floodplains"
    MUNICIPAL_WATERSHED = "municipal_watershed"
    DESIGNATED_AREA = "designated_area"
    ROADLESS_AREA = "roadless_area"
    CULTURAL_SITE = "cultural_site"
    HISTORIC_PROPERTY = "historic_property"
    RESEARCH_AREA = "research_area"


class Degree(StrEnum):
    """How the action would affect a resource: its presence alone says nothing."""

    ABSENT = "absent"
    PRESENT_NOT_SIGNIFICANT = "present_not_significant"
    UNCERTAIN = "uncertain"
    SIGNIFICANT = "significant"


class ScreenedResource(Part):
    """One resource, how the action would touch it, and how much."""

    resource: Resource
    degree: Degree
    cause: str = ""


class LandDesignation(StrEnum):
    """Designations that forbid, whatever the review says."""

    # Somebody said that it is neither; where nobody has said anything, `land` is left out, and asked for.
    NONE = "none"
    WILDERNESS = "wilderness"
    ROADLESS = "roadless"


class Significance(StrEnum):
    """Whether effects are likely to be significant."""

    LIKELY = "likely"
    NOT_LIKELY = "not_likely"
    UNKNOWN = "unknown"


class RuleCitation(Part):
    """A rule that a decision rests on."""

    rule: str
    citation: str
    title: str
    verified_against: str


DRAFT = "DRAFT for the responsible official; not legal advice and not a decision."
