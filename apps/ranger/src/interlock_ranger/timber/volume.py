"""Volume of a tree: cubic feet by published equations, board feet by bucking its stem into logs under a log rule.

The three rules do not stand in a constant ratio: each scales every log by its own small-end diameter.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import StrEnum
from functools import lru_cache
from typing import Any, NamedTuple

from interlock_ranger.records import Region, Species
from interlock_ranger.rules import get_rule
from interlock_ranger.timber.species import equation_number

BA_PER_IN2 = 0.005454154
"""Basal area in square feet of a tree of one inch: π / 4 / 144."""
_WHOLE_LOG_FT, _HALF_LOG_FT = 12, 4
"""What is left above the last log counts as a whole log if it is longer than this, as half a log from this on."""


class LogRule(StrEnum):
    """How board feet are scaled."""

    SCRIBNER = "scribner"
    DOYLE = "doyle"
    INTERNATIONAL = "international"


# Cubic feet from DBH in inches and height in feet. Coefficients as in the National Volume Estimator Library of the
# Forest Service (pnwtarif.f, fia_nw_tarif.for), each in the form in which it was published; tests hold them to values
# that were worked out by hand.


def _log_linear(number: int) -> Callable[[float, float], float]:
    """The form that most equations share: log V = a + b log D + c log H."""
    values = get_rule(f"timber.cvts-{number}").values
    return lambda d, h: 10 ** float(values["a"] + values["b"] * math.log10(d) + values["c"] * math.log10(h))


def _douglas_fir_west(d: float, h: float) -> float:
    x, y = math.log10(d), math.log10(h)
    return float(10 ** (-3.21809 + 0.04948 * y * x - 0.15664 * x**2 + 2.02132 * x + 1.63408 * y - 0.16185 * y**2))


def _douglas_fir_east(d: float, h: float) -> float:
    # Natural logarithms here and for ponderosa (both Summerfield 1980), base ten in others: each as it was published.
    return math.exp(-6.110493 + 1.81306 * math.log(d) + 1.083884 * math.log(h))


def _ponderosa(d: float, h: float) -> float:
    x, y = math.log(d), math.log(h)
    return math.exp(-8.521558 + 1.977243 * x - 0.105288 * y**2 + 136.0489 / h**2 + 1.99546 * y)


def _western_hemlock(d: float, h: float) -> float:
    return float(10 ** (-2.72170 + 2.00857 * math.log10(d) + 1.08620 * math.log10(h) - 0.00568 * d))


def _mountain_hemlock(d: float, h: float) -> float:
    return float(0.001106485 * d**1.8140497 * h**1.2744923)


# Five equations have a form of their own; the other five share one, and their coefficients are in rules/timber.toml.
_EQUATIONS: dict[int, Callable[[float, float], float]] = {
    1: _douglas_fir_west,
    2: _douglas_fir_east,
    4: _ponderosa,
    6: _western_hemlock,
    17: _mountain_hemlock,
}


def cubic_ft(species: Species, region: Region, dbh_in: float, height_ft: float) -> float:
    """Total cubic volume, ground to tip."""
    number = equation_number(species, region)
    volume = _EQUATIONS.get(number) or _log_linear(number)
    return volume(dbh_in, height_ft)


def form_class(species: Species, dbh_in: float) -> int:
    """Girard form class: diameter inside bark at the top of the first log, in percent of DBH."""
    classes: list[int] = get_rule("timber.form-class").values[species.value]
    return classes[min(4, max(0, int((dbh_in - 1) / 10)))]  # under 11 inches, under 21, … from 41 on


class Log(NamedTuple):
    dib_in: int
    """Scaling diameter: inside bark at the small end, in whole inches."""
    length_ft: float


def buck_stem(dbh_in: float, height_ft: float, form: int) -> tuple[Log, ...]:
    """The logs of a stem, from the butt, by Behre's hyperbola.

    With x the share of the stem above the first log that lies above a height, the diameter there is
    d = butt x / (a x + 1 - a). Solved for the height where d is the top diameter, it says how far logs reach.
    """
    taper = get_rule("timber.behre").values
    a, top_in, step_ft = taper["a"], taper["top_dib_in"], taper["log_ft"] + taper["trim_ft"]
    first_top_ft = taper["stump_ft"] + step_ft
    butt_in = dbh_in * form / 100
    # The least height also keeps the stem above the first log longer than nothing: x is a share of that.
    if butt_in < top_in or height_ft < taper["least_height_ft"]:
        return ()
    logs, above_ft = [], height_ft - first_top_ft
    at_ft = first_top_ft
    while at_ft < height_ft:
        x = (height_ft - at_ft) / above_ft
        dib_in = butt_in * x / (a * x + (1 - a))
        if dib_in < top_in:
            break
        # Half an inch counts up; Python's round would go to the even inch.
        logs.append(Log(math.floor(dib_in + 0.5), taper["log_ft"]))
        at_ft += step_ft
    ratio = top_in / butt_in
    reach_ft = height_ft - ratio * (1 - a) * above_ft / (1 - a * ratio)
    rest_ft = reach_ft - (at_ft - step_ft)
    # The rest ends where the stem is as thin as the top, so it is scaled at that diameter.
    if rest_ft > _WHOLE_LOG_FT:
        logs.append(Log(int(top_in), taper["log_ft"]))
    elif rest_ft >= _HALF_LOG_FT:
        logs.append(Log(int(top_in), taper["log_ft"] / 2))
    return tuple(logs)


@lru_cache(maxsize=1)
def _scribner_factors() -> dict[str, Any]:
    """Board feet for a foot of length: `small` from 2 inches on, `short` and `long` from 6, `large` from 12 to 60."""
    return get_rule("timber.scribner").values


def scribner(dib_in: int, length_ft: float) -> float:
    """Board feet by the factor table, a log of at most 20 feet."""
    if dib_in < 2:
        return 0.0
    table = _scribner_factors()
    if dib_in < 6:
        factor = table["small"][dib_in - 2]
    elif dib_in < 12:
        # From 6 to 11 inches the table of the Forest Service has one factor for short logs and one for longer ones.
        factor = (table["short"] if length_ft <= 15 else table["long"])[dib_in - 6]
    else:
        # The table ends at 60 inches. Thicker logs are scaled as that, and so never too high.
        factor = table["large"][min(dib_in, 60) - 12]
    return float(math.floor(length_ft * factor + 0.5))


def doyle(dib_in: int, length_ft: float) -> float:
    """Board feet by Doyle: a slab of four inches is taken off, whatever the log."""
    # Below four inches the square would rise again.
    return ((dib_in - 4) / 4) ** 2 * length_ft if dib_in > 4 else 0.0


def international(dib_in: int, length_ft: float) -> float:
    """Board feet by International 1/4-inch, in sections of four feet that are half an inch thicker each."""
    # The formula of a section falls below zero at 3.2 inches.
    if dib_in < 4:
        return 0.0
    whole = int(length_ft // 4)
    total = sum(_section(dib_in + 0.5 * n) for n in range(whole))
    return total + (length_ft % 4) / 4 * _section(dib_in)


def _section(dib_in: float) -> float:
    """A section of four feet: 0.22 D² - 0.71 D for a kerf of 1/8 inch, times 0.905 for one of 1/4."""
    return 0.905 * (0.22 * dib_in**2 - 0.71 * dib_in)


_RULES: dict[LogRule, Callable[[int, float], float]] = {
    LogRule.SCRIBNER: scribner,
    LogRule.DOYLE: doyle,
    LogRule.INTERNATIONAL: international,
}


def board_ft(species: Species, dbh_in: float, height_ft: float, log_rule: LogRule) -> float:
    """Gross board feet of a tree."""
    scale = _RULES[log_rule]
    return sum(scale(log.dib_in, log.length_ft) for log in buck_stem(dbh_in, height_ft, form_class(species, dbh_in)))


def deduct_defect(gross: float, defect_pct: float) -> float:
    # Clamped: a defect of 120 % must not make wood negative, nor one of -5 % add to it.
    return gross * (1 - min(100.0, max(0.0, defect_pct)) / 100)
