"""Sampling: what a tallied tree stands for, how far it may stand, and how sure a mean of plots is."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
from scipy.stats import t as student

from interlock_ranger.timber.volume import BA_PER_IN2

FT2_PER_ACRE = 43_560.0
CONFIDENCE = 0.95


def trees_per_acre(dbh_in: float, baf: float) -> float:
    """What one tree of a variable-radius plot stands for."""
    return baf / (BA_PER_IN2 * dbh_in**2)


def plot_radius_factor(baf: float) -> float:
    """Feet of limiting distance for each inch of DBH."""
    return math.sqrt(BA_PER_IN2 * FT2_PER_ACRE / math.pi) / math.sqrt(baf)


def limiting_distance_ft(dbh_in: float, baf: float, slope_pct: float = 0.0) -> float:
    """How far the centre of a tree may be to be counted, along the slope."""
    return plot_radius_factor(baf) * dbh_in * math.sqrt(1 + (slope_pct / 100) ** 2)


def plot_radius_ft(acres: float, slope_pct: float = 0.0) -> float:
    """The radius of a fixed plot, as it is laid out on a slope."""
    return math.sqrt(FT2_PER_ACRE * acres / math.pi) * math.sqrt(math.sqrt(1 + (slope_pct / 100) ** 2))


class Spread(msgspec.Struct, frozen=True):
    """A mean of plots, and how sure it is; None where one plot cannot tell."""

    n: int
    mean: float
    cv_pct: float | None
    standard_error: float | None
    error_pct: float | None
    """Half the 95 % interval, in percent of the mean."""


def spread(values: Sequence[float]) -> Spread:
    """Mean, coefficient of variation, standard error and sampling error."""
    n = len(values)
    mean = sum(values) / n
    if n < 2 or mean == 0:
        return Spread(n, mean, None, None, None)
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / (n - 1))
    error = deviation / math.sqrt(n)
    return Spread(n, mean, 100 * deviation / mean, error, 100 * t_value(n) * error / mean)


def t_value(n: int) -> float:
    """Student's t for a 95 % interval from n plots."""
    return float(student.ppf(0.5 + CONFIDENCE / 2, n - 1))


def plots_needed(cv_pct: float, error_pct: float) -> int:
    """The fewest plots whose sampling error is at most so large, if plots vary so much."""
    n = max(2, math.ceil((2 * cv_pct / error_pct) ** 2))
    for _ in range(50):
        better = max(2, math.ceil((t_value(n) * cv_pct / error_pct) ** 2 - 1e-9))
        if better == n:
            break
        n = better
    while t_value(n) * cv_pct / math.sqrt(n) > error_pct:
        n += 1
    return n
