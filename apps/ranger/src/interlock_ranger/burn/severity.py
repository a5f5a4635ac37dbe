"""Classes of burn severity and of erosion risk: pure functions of dNBR and slope."""

from __future__ import annotations

import math
from enum import StrEnum

import msgspec
import numpy as np
from numpy.typing import NDArray

from interlock_ranger.records import Thresholds
from interlock_ranger.rules import get_rule


class Severity(StrEnum):
    """How badly vegetation burned, the least first."""

    REGROWTH = "regrowth"
    UNBURNED = "unburned"
    LOW = "low"
    MODERATE = "moderate"
    HIGH = "high"


class Scale(StrEnum):
    """Whose thresholds are used."""

    GENERIC = "generic"
    ANALYST = "analyst"


class Erosion(StrEnum):
    """How likely soil is to move."""

    LOW = "low"
    MODERATE = "moderate"
    HIGH = "high"
    CRITICAL = "critical"
    UNKNOWN = "unknown"


SCALE_RULES = {Scale.GENERIC: "burn.key-benson", Scale.ANALYST: "burn.analyst"}
SEVERITIES = tuple(Severity)
MTBS_NAMES = {
    1: "unburned to low",
    2: "low",
    3: "moderate",
    4: "high",
    5: "increased greenness",
    6: "mask",
}
MTBS_GREENER, MTBS_MASK = 5, 6


def thresholds_of(scale: Scale, analyst: Thresholds) -> Thresholds:
    """The thresholds of a scale: those of Key & Benson, or those that the analyst set for the fire."""
    if scale is Scale.ANALYST:
        return analyst
    # The published table splits moderate at 0.44 (`moderate_high`); the five classes here have one moderate.
    generic = get_rule("burn.key-benson").values
    return Thresholds(
        increased_greenness=generic["regrowth"], low=generic["low"], moderate=generic["moderate"], high=generic["high"]
    )


def classify_severity(dnbr: float, thresholds: Thresholds) -> Severity:
    """The class of one value; a threshold belongs to the class above it."""
    # The fields of Thresholds rise, so the number of those that are reached is the place of the class.
    reached: int = sum(dnbr >= threshold for threshold in msgspec.structs.astuple(thresholds))
    return SEVERITIES[reached]


def classify_pixels(dnbr: NDArray[np.float64], thresholds: Thresholds) -> NDArray[np.int64]:
    """The classes of many values, as places in `SEVERITIES`."""
    # The same as `classify_severity`: digitize, too, counts a bound as reached unless right=True.
    return np.asarray(np.digitize(dnbr, msgspec.structs.astuple(thresholds)))


def classify_mtbs(dnbr: NDArray[np.float64], known: NDArray[np.bool_], thresholds: Thresholds) -> NDArray[np.int64]:
    """MTBS classes 1 to 6 of pixels."""
    classes = 1 + np.digitize(dnbr, (thresholds.low, thresholds.moderate, thresholds.high))
    # In this order: greener ground would be class 1 otherwise, and the mask beats all, as nothing was seen there.
    classes[dnbr < thresholds.increased_greenness] = MTBS_GREENER
    classes[~known] = MTBS_MASK
    return np.asarray(classes)


def degrees_to_percent(slope_deg: float) -> float:
    return 100 * math.tan(math.radians(slope_deg))


def percent_to_degrees(slope_pct: float) -> float:
    return math.degrees(math.atan(slope_pct / 100))


def erosion_risk(severity: Severity, slope_pct: float | None) -> Erosion:
    """Erosion risk; without a slope, it is not known where it would matter."""
    # Before the slope is looked at: below moderate severity the risk is low on any slope, so a missing one is no gap.
    if severity not in (Severity.MODERATE, Severity.HIGH):
        return Erosion.LOW
    if slope_pct is None:
        return Erosion.UNKNOWN
    limits = get_rule("burn.erosion").values
    # One step up for each limit of slope that is reached, and one for high severity.
    steps = (slope_pct >= limits["sloping_pct"]) + (slope_pct >= limits["steep_pct"]) + (severity is Severity.HIGH)
    return (Erosion.LOW, Erosion.MODERATE, Erosion.HIGH, Erosion.CRITICAL)[steps]
