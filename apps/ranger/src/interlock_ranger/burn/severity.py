"""Classes of burn severity and of erosion risk: pure functions of dNBR and slope."""

from __future__ import annotations

import math
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from interlock_ranger.fires import Thresholds
from interlock_ranger.rules import rule


class Severity(StrEnum):
    """How badly vegetation burned."""

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
_ORDER = tuple(Severity)


def cuts(scale: Scale, analyst: Thresholds) -> tuple[float, float, float, float]:
    """Where regrowth ends, and low, moderate and high begin."""
    if scale is Scale.ANALYST:
        return analyst.increased_greenness, analyst.low, analyst.moderate, analyst.high
    generic = rule("burn.key-benson").values
    return generic["regrowth"], generic["low"], generic["moderate"], generic["high"]


def severity(dnbr: float, bounds: tuple[float, float, float, float]) -> Severity:
    """The class of one value; a bound belongs to the class above it."""
    return _ORDER[sum(dnbr >= bound for bound in bounds)]


def severities(dnbr: NDArray[np.float64], bounds: tuple[float, float, float, float]) -> NDArray[np.int64]:
    """The classes of many values, as places in `Severity`."""
    return np.asarray(np.digitize(dnbr, bounds))


def slope_pct_of(degrees: float) -> float:
    """A slope in percent from one in degrees."""
    return 100 * math.tan(math.radians(degrees))


def slope_deg_of(percent: float) -> float:
    """A slope in degrees from one in percent."""
    return math.degrees(math.atan(percent / 100))


def erosion(found: Severity, slope_pct: float | None) -> Erosion:
    """Erosion risk; without a slope, it is not known where it would matter."""
    if found not in (Severity.MODERATE, Severity.HIGH):
        return Erosion.LOW
    if slope_pct is None:
        return Erosion.UNKNOWN
    limits = rule("burn.erosion").values
    steps = (slope_pct >= limits["sloping_pct"]) + (slope_pct >= limits["steep_pct"])
    order = (Erosion.LOW, Erosion.MODERATE, Erosion.HIGH, Erosion.CRITICAL)
    return order[steps + (found is Severity.HIGH)]


MTBS_NAMES = {
    1: "unburned to low",
    2: "low",
    3: "moderate",
    4: "high",
    5: "increased greenness",
    6: "mask",
}


def mtbs(dnbr: NDArray[np.float64], known: NDArray[np.bool_], analyst: Thresholds) -> NDArray[np.int64]:
    """MTBS classes 1 to 6 of pixels."""
    classes = 1 + np.digitize(dnbr, (analyst.low, analyst.moderate, analyst.high))
    classes[dnbr < analyst.increased_greenness] = 5
    classes[~known] = 6
    return np.asarray(classes)
