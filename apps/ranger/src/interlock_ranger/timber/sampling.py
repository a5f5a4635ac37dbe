"""Sampling: what a tallied tree stands for, how far it may stand, and how sure a mean of plots is."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
from scipy.stats import t as student

from interlock_ranger.timber.volume import BA_PER_IN2

FT2_PER_ACRE = 43_560.0
CONFIDENCE = 0.95
_ROUNDING = 1e-9
"""So that a quotient which is whole but for the last bit is not rounded up to the next."""


def trees_per_acre(dbh_in: float, baf: float) -> float:
    """What one tree of a variable-radius plot stands for: the basal area factor, divided by its own basal area."""
    return baf / (BA_PER_IN2 * dbh_in**2)


def plot_radius_factor(baf: float) -> float:
    """Feet of limiting distance for each inch of DBH: 8.696 / √BAF, where a tree covers BAF ft² an acre."""
    return math.sqrt(BA_PER_IN2 * FT2_PER_ACRE / math.pi) / math.sqrt(baf)


def limiting_distance_ft(dbh_in: float, baf: float, slope_pct: float = 0.0) -> float:
    """How far the centre of a tree may be to be counted, along the slope."""
    # A tape along the slope is longer than the map by 1 / cos of its angle, which for a slope in percent is this root.
    return plot_radius_factor(baf) * dbh_in * math.sqrt(1 + (slope_pct / 100) ** 2)


def plot_radius_ft(acres: float, slope_pct: float = 0.0) -> float:
    """The radius of a fixed plot, laid out on a slope as a circle that covers its acres when seen from above.

    The circle is an ellipse on the map, squeezed in one direction only: hence the root of the slope's correction.
    """
    return math.sqrt(FT2_PER_ACRE * acres / math.pi) * math.sqrt(math.sqrt(1 + (slope_pct / 100) ** 2))


class SampleMean(msgspec.Struct, frozen=True, kw_only=True):
    """A mean of plots, and how sure it is; None where one plot cannot tell."""

    n: int
    mean: float
    cv_pct: float | None = None
    standard_error: float | None = None
    error_pct: float | None = None
    """Half the 95 % interval, in percent of the mean."""


def estimate_mean(values: Sequence[float]) -> SampleMean:
    """Mean, coefficient of variation, standard error and sampling error."""
    n = len(values)
    mean = sum(values) / n
    # One plot shows no variation, and a coefficient of variation is a share of the mean.
    if n < 2 or mean == 0:
        return SampleMean(n=n, mean=mean)
    # n - 1, as the mean is estimated from the same plots.
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / (n - 1))
    error = deviation / math.sqrt(n)
    return SampleMean(
        n=n,
        mean=mean,
        cv_pct=100 * deviation / mean,
        standard_error=error,
        error_pct=100 * t_value(n) * error / mean,
    )


class SampledPart(msgspec.Struct, frozen=True, kw_only=True):
    """A total that was extrapolated from plots; its error is None where they cannot tell it."""

    total: float
    error_pct: float | None


def precision(error_pct: float) -> float:
    """What a sampling error leaves of a figure's confidence: 1 without one, a half at 100 %, falling ever further."""
    return 1 / (1 + error_pct / 100)


def precision_of_sum(parts: Sequence[SampledPart]) -> float:
    """Of a sum of independent totals: half intervals add in quadrature, and a part of unknown error counts nothing."""
    whole = sum(part.total for part in parts)
    known = [(part.total, part.error_pct) for part in parts if part.error_pct is not None]
    told = sum(total for total, _ in known)
    if not told:
        return 0.0
    half = math.sqrt(sum((total * error_pct / 100) ** 2 for total, error_pct in known))
    return told / whole * precision(100 * half / told)


def t_value(n: int) -> float:
    """Student's t for a 95 % interval from n plots."""
    # Two-sided: half of what is left over lies at either end.
    return float(student.ppf(0.5 + CONFIDENCE / 2, n - 1))


def plots_needed(cv_pct: float, error_pct: float) -> int:
    """The fewest plots whose sampling error is at most so large, if plots vary so much.

    n = (t CV / E)², where t is that of n - 1 (Freese 1962): begun with a t of 2 and repeated until n stands still. It
    can swing between two values for ever, so rounds are bounded, and what is left over is counted up.
    """
    # Never one plot: it has no degree of freedom, and so no t.
    n = max(2, math.ceil((2 * cv_pct / error_pct) ** 2))
    for _ in range(50):
        better = max(2, math.ceil((t_value(n) * cv_pct / error_pct) ** 2 - _ROUNDING))
        if better == n:
            break
        n = better
    while t_value(n) * cv_pct / math.sqrt(n) > error_pct:
        n += 1
    return n
