"""The Burn Analyst's tools."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from interlock import Result, Tool, tool
from interlock_ranger.burn.assess import BurnAssessment, Reading, assess_burn
from interlock_ranger.burn.boundary import GeoMultiPolygon, GeoPolygon
from interlock_ranger.burn.boundary_check import BoundaryCheck, check_boundary
from interlock_ranger.burn.mtbs import MtbsClassification, classify_fire
from interlock_ranger.burn.severity import Scale
from interlock_ranger.evidence import Today
from interlock_ranger.fires import Fires
from interlock_ranger.part_names import PartKind

SCALES = {"generic": ("generic breakpoints", "Key and Benson"), "analyst": ("analyst thresholds", "analyst's")}


def build_burn_tools(fires: Fires, today: Today) -> tuple[Tool, ...]:
    known = {"fire_id": fires.names(), "sector_id": fires.part_names(PartKind.SECTOR)}

    @tool(effect="read", known_values={**known, "scale": SCALES})
    def assess_severity(
        fire_id: str | None = None,
        sector_id: str | None = None,
        scale: Scale = Scale.GENERIC,
        sectors: list[Reading] | None = None,
    ) -> Result[BurnAssessment]:
        """How badly a fire burned, whole or one sector: dNBR, severity classes, erosion risk, which sectors come first.

        `scale`: generic breakpoints, or the thresholds that the analyst set for this fire. `sectors`: your own readings
        instead of those on file.
        """
        fire, ids = fires.find(fire_id, sector=sector_id)
        return assess_burn(fire, ids["sector"], scale, sectors, today)

    @tool(effect="read", known_values=known)
    def classify_mtbs(fire_id: str | None = None, sector_id: str | None = None) -> Result[MtbsClassification]:
        """The six MTBS classes of a fire or sector, in acres and percent, by the thresholds set for this fire."""
        fire, ids = fires.find(fire_id, sector=sector_id)
        return classify_fire(fire, ids["sector"], today)

    @tool(effect="read", known_values={"fire_id": fires.names()})
    def validate_boundary(
        fire_id: str | None = None,
        tolerance_pct: Annotated[float, Field(gt=0, le=100)] = 5.0,
        geometry: Annotated[GeoPolygon | GeoMultiPolygon, Field(discriminator="type")] | None = None,
    ) -> Result[BoundaryCheck]:
        """Check a fire's perimeter: valid, closed, not crossing itself, holes, and its area against reported acres.

        `geometry`: a GeoJSON polygon of your own to check against the reported acres of the fire.
        """
        return check_boundary(fires.find(fire_id).fire, tolerance_pct, geometry, today)

    return assess_severity, classify_mtbs, validate_boundary
