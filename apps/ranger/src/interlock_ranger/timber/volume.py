"""Volume of a tree: cubic feet by published equations, board feet by bucking its stem into logs under a log rule.

The three rules do not stand in a constant ratio: each scales every log by its own small-end diameter.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import StrEnum
from functools import lru_cache
from typing import Any

from interlock_ranger.rules import rule
from interlock_ranger.timber.species import Species, equation

BA_PER_IN2 = 0.005454154
"""Basal area in square feet of a tree of one inch."""


class LogRule(StrEnum):
    """How board feet are scaled."""

    SCRIBNER = "scribner"
    DOYLE = "doyle"
    INTERNATIONAL = "international"


def _powers(number: int) -> Callable[[float, float], float]:
    values = rule(f"timber.cvts-{number}").values
    return lambda d, h: 10 ** float(values["a"] + values["b"] * math.log10(d) + values["c"] * math.log10(h))


def _douglas_fir_west(d: float, h: float) -> float:
    x, y = math.log10(d), math.log10(h)
    return float(10 ** (-3.21809 + 0.04948 * y * x - 0.15664 * x**2 + 2.02132 * x + 1.63408 * y - 0.16185 * y**2))


def _douglas_fir_east(d: float, h: float) -> float:
    return math.exp(-6.110493 + 1.81306 * math.log(d) + 1.083884 * math.log(h))


def _ponderosa(d: float, h: float) -> float:
    x, y = math.log(d), math.log(h)
    return math.exp(-8.521558 + 1.977243 * x - 0.105288 * y**2 + 136.0489 / h**2 + 1.99546 * y)


def _western_hemlock(d: float, h: float) -> float:
    return float(10 ** (-2.72170 + 2.00857 * math.log10(d) + 1.08620 * math.log10(h) - 0.00568 * d))


def _mountain_hemlock(d: float, h: float) -> float:
    return float(0.001106485 * d**1.8140497 * h**1.2744923)


_EQUATIONS: dict[int, Callable[[float, float], float]] = {
    1: _douglas_fir_west,
    2: _douglas_fir_east,
    4: _ponderosa,
    6: _western_hemlock,
    17: _mountain_hemlock,
}


def cubic_ft(species: Species, region: str, dbh_in: float, height_ft: float) -> float:
    """Total cubic volume, ground to tip."""
    number = equation(species, region)
    made = _EQUATIONS.get(number) or _powers(number)
    return made(dbh_in, height_ft)


def form_class(species: Species, dbh_in: float) -> int:
    """Girard form class: diameter inside bark at the top of the first log, in percent of DBH."""
    classes: list[int] = rule("timber.form-class").values[species.value]
    return classes[min(4, max(0, int((dbh_in - 1) / 10)))]


def logs(dbh_in: float, height_ft: float, form: int) -> tuple[tuple[int, float], ...]:
    """The logs of a stem, from the butt: scaling diameter in whole inches, and length in feet."""
    taper = rule("timber.behre").values
    a, top, step = taper["a"], taper["top_dib_in"], taper["log_ft"] + taper["trim_ft"]
    first_top = taper["stump_ft"] + step
    butt = dbh_in * form / 100
    if butt < top or height_ft < taper["least_height_ft"]:
        return ()
    found, above = [], height_ft - first_top
    height = first_top
    while height < height_ft:
        x = (height_ft - height) / above
        dib = butt * x / (a * x + (1 - a))
        if dib < top:
            break
        found.append((math.floor(dib + 0.5), taper["log_ft"]))
        height += step
    ratio = top / butt
    reach = height_ft - ratio * (1 - a) * above / (1 - a * ratio)
    rest = reach - (height - step)
    if rest > 12:
        found.append((int(top), taper["log_ft"]))
    elif rest >= 4:
        found.append((int(top), taper["log_ft"] / 2))
    return tuple(found)


@lru_cache(maxsize=1)
def _factors() -> dict[str, Any]:
    return rule("timber.scribner").values


def scribner(dib_in: int, length_ft: float) -> float:
    """Board feet by the factor table, a log of at most 20 feet."""
    if dib_in < 2:
        return 0.0
    table = _factors()
    if dib_in < 6:
        factor = table["small"][dib_in - 2]
    elif dib_in < 12:
        factor = (table["short"] if length_ft <= 15 else table["long"])[dib_in - 6]
    else:
        factor = table["large"][min(dib_in, 60) - 12]
    return float(math.floor(length_ft * factor + 0.5))


def doyle(dib_in: int, length_ft: float) -> float:
    """Board feet by Doyle."""
    return ((dib_in - 4) / 4) ** 2 * length_ft if dib_in > 4 else 0.0


def international(dib_in: int, length_ft: float) -> float:
    """Board feet by International 1/4-inch, section by section."""
    if dib_in < 4:
        return 0.0
    whole = int(length_ft // 4)
    total = sum(_section(dib_in + 0.5 * n) for n in range(whole))
    return total + (length_ft % 4) / 4 * _section(dib_in)


def _section(dib_in: float) -> float:
    return 0.905 * (0.22 * dib_in**2 - 0.71 * dib_in)


_RULES: dict[LogRule, Callable[[int, float], float]] = {
    LogRule.SCRIBNER: scribner,
    LogRule.DOYLE: doyle,
    LogRule.INTERNATIONAL: international,
}


def board_ft(species: Species, dbh_in: float, height_ft: float, log_rule: LogRule) -> float:
    """Gross board feet of a tree."""
    scale = _RULES[log_rule]
    return sum(scale(dib, length) for dib, length in logs(dbh_in, height_ft, form_class(species, dbh_in)))


def net(gross: float, defect_pct: float) -> float:
    """What is left after the defect."""
    return gross * (1 - min(100.0, max(0.0, defect_pct)) / 100)
