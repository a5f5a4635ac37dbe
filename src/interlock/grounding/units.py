"""Units as they are written in answers and in field names: a closed table, one canonical name for each."""

from __future__ import annotations

import re
from itertools import pairwise

_SPELLINGS = {
    "percent": "% percent pct percentage per-cent prozent",
    "usd": "$ usd dollar dollars us$ bucks",
    "eur": "€ eur euro euros",
    "jpy": "¥ jpy yen",
    "chf": "chf",
    "cad": "cad",
    "gbp": "£ gbp pound-sterling pounds-sterling",
    "acre": "acre acres ac",
    "hectare": "hectare hectares ha",
    "mile": "mile miles mi",
    "kilometre": "km kilometre kilometres kilometer kilometers",
    "metre": "m metre metres meter meters",
    "centimetre": "cm centimetre centimetres centimeter centimeters",
    "millimetre": "mm millimetre millimetres millimeter millimeters",
    "foot": "ft foot feet",
    "inch": "in inch inches ″",
    "yard": "yd yard yards",
    "board_foot": "bf bdft board-feet board-foot board_feet board_foot",
    "mbf": "mbf thousand-board-feet",
    "mmbf": "mmbf million-board-feet",
    "cubic_foot": "cf cuft cubic-feet cubic-foot ft3",
    "cubic_metre": "m3 cubic-metres cubic-meters",
    "cubic_yard": "cy cubic-yards cubic-yard",
    "square_foot": "sqft square-feet square-foot",
    "square_metre": "m² sqm square-metres square-meters square-metre square-meter",
    "square_kilometre": "km² sqkm square-kilometres square-kilometers square-kilometre square-kilometer",
    "square_mile": "sq-mi square-miles square-mile",
    "litre": "l litre litres liter liters",
    "gallon": "gal gallon gallons",
    "carat": "carat carats ct",
    "ounce": "oz ounce ounces",
    "milligram": "mg milligram milligrams",
    "second": "s sec secs second seconds",
    "millisecond": "ms millisecond milliseconds",
    "minute": "min mins minute minutes",
    "hour": "h hr hrs hour hours",
    "day": "d day days",
    "week": "wk week weeks",
    "month": "mo month months",
    "year": "yr yrs year years",
    "degree": "° deg degree degrees",
    "celsius": "°c celsius",
    "fahrenheit": "°f fahrenheit",
    "gram": "g gram grams",
    "kilogram": "kg kilogram kilograms kilo kilos",
    "pound": "lb lbs pound pounds",
    "tonne": "t ton tons tonne tonnes",
    "byte": "b byte bytes",
    "kilobyte": "kb kilobyte kilobytes",
    "megabyte": "mb megabyte megabytes",
    "gigabyte": "gb gigabyte gigabytes",
    "watt": "w watt watts",
    "kilowatt": "kw kilowatt kilowatts",
    "mph": "mph miles-per-hour",
    "kmh": "kmh km/h kph kilometres-per-hour kilometers-per-hour",
    "metre_per_second": "m/s mps metres-per-second meters-per-second",
    "calorie": "cal kcal calorie calories",
    "joule": "j joule joules kj",
    "kilowatt_hour": "kwh kilowatt-hours kilowatt-hour",
    "point": "pt pts point points",
}
UNITS = {spelling.replace("-", " "): name for name, text in _SPELLINGS.items() for spelling in text.split()}
SPOKEN = tuple(unit for unit in UNITS if unit not in ("in", "point", "points"))
"""What may follow a figure in an answer: "in" and "point" are mostly other words there."""
_ONLY_AT_THE_END = frozenset(
    ["in", "m", "s", "h", "d", "g", "t", "b", "w", "l", "j", "mo", "ac", "min", "sec", "second", "cal", "pt", "ct"]
)
_MORE_AT_THE_END = {
    "f": {"fahrenheit"},
    "c": {"celsius"},
    "ms": {"millisecond", "metre_per_second"},
    "km h": {"kmh"},
    "m s": {"metre_per_second"},
    "sq km": {"square_kilometre"},
    "sq m": {"square_metre"},
    "sq ft": {"square_foot"},
    "km2": {"square_kilometre"},
    "m2": {"square_metre"},
    "mi2": {"square_mile"},
    "yd3": {"cubic_yard"},
}
_SHARES = frozenset({"share", "fraction", "ratio", "rate", "probability", "confidence", "proportion"})
_TOKENS = re.compile(r"[A-Za-z$%€£¥°]+[23]?(?![0-9])|[A-Za-z]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")


def unit_of(text: str) -> str | None:
    """The canonical unit of a word that follows or leads a figure; None if it is none."""
    return UNITS.get(" ".join(text.lower().replace("-", " ").split()))


def units_in_name(name: str) -> frozenset[str]:
    """The units that a field's name speaks of: `total_acres`, `costUsd`, `trees_per_mile`, `tmax_f`."""
    words = [word.lower() for part in _CAMEL.split(name) for word in _TOKENS.findall(part)]
    pairs = [" ".join(pair) for pair in pairwise(words)]
    found = {UNITS[word] for word in words if word in UNITS and word not in _ONLY_AT_THE_END}
    found |= {UNITS[pair] for pair in pairs if pair in UNITS}
    if pairs and pairs[-1] in _MORE_AT_THE_END:  # rate_km_h
        return frozenset(_MORE_AT_THE_END[pairs[-1]])
    last = words[-1] if len(words) > 1 else ""
    found |= {UNITS[last]} if last in _ONLY_AT_THE_END else set()  # height_m, took_s
    return frozenset(found | _MORE_AT_THE_END.get(last, set()))


def is_share(name: str) -> bool:
    """Whether a field's name speaks of a part of one."""
    return any(word.lower() in _SHARES for part in _CAMEL.split(name) for word in _TOKENS.findall(part))
