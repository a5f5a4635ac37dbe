"""Units as they are written in answers and in field names: a closed table, with the prefixes of the metric system.

A spelling can stand for several units (`mw` in a field's name: megawatt or milliwatt), so a unit is a set of names, and
two agree if the sets meet.
"""

from __future__ import annotations

import re
from itertools import pairwise

Units = frozenset[str]
NO_UNIT: Units = frozenset()

_SPELLINGS = {
    "percent": "% percent pct percentage per-cent prozent",
    "usd": "$ us$ usd dollar dollars bucks",
    "eur": "€ eur euro euros",
    "gbp": "£ gbp pound-sterling pounds-sterling",
    "jpy": "¥ jpy yen",
    "chf": "chf",
    "cad": "cad c$",
    "aud": "aud a$",
    "sek": "sek",
    "nok": "nok",
    "dkk": "dkk",
    "inr": "₹ inr rupee rupees",
    "cny": "cny rmb yuan",
    "acre": "acre acres ac",
    "hectare": "hectare hectares ha",
    "mile": "mile miles mi",
    "light_year": "ly light-year light-years",
    "astronomical_unit": "au",
    "ccf": "ccf",
    "mcf": "mcf",
    "nautical_mile": "nmi nautical-mile nautical-miles",
    "foot": "ft foot feet",
    "inch": "in inch inches ″",
    "yard": "yd yard yards",
    "board_foot": "bf bdft board-feet board-foot",
    "mbf": "mbf thousand-board-feet",
    "mmbf": "mmbf million-board-feet",
    "cubic_foot": "cf cuft cubic-feet cubic-foot ft3 ft³ cu-ft",
    "cubic_metre": "m3 m³ cubic-metres cubic-meters cubic-metre cubic-meter",
    "cubic_yard": "cy yd3 cubic-yards cubic-yard cu-yd",
    "square_foot": "sqft ft2 ft² square-feet square-foot sq-ft",
    "square_metre": "m2 m² sqm square-metres square-meters square-metre square-meter sq-m",
    "square_kilometre": "km2 km² sqkm square-kilometres square-kilometers square-kilometre square-kilometer sq-km",
    "square_mile": "mi2 mi² square-miles square-mile sq-mi",
    "gallon": "gal gallon gallons",
    "barrel": "bbl barrel barrels",
    "carat": "carat carats ct",
    "ounce": "oz ounce ounces",
    "pound": "lb lbs pound pounds",
    "stone": "stone stones",
    "tonne": "t ton tons tonne tonnes",
    "minute": "min mins minute minutes",
    "hour": "h hr hrs hour hours",
    "day": "d day days",
    "week": "wk wks week weeks",
    "month": "mo mos month months",
    "year": "yr yrs year years",
    "decade": "decade decades",
    "degree": "° deg degree degrees lat lon latitude longitude",
    "microgram": "mcg",
    "cfm": "cfm",
    "cfs": "cfs",
    "celsius": "°c celsius degc",
    "fahrenheit": "°f fahrenheit degf",
    "bar": "bar bars",
    "psi": "psi",
    "atmosphere": "atm",
    "mmhg": "mmhg",
    "ppm": "ppm",
    "ppb": "ppb",
    "decibel": "db decibel decibels",
    "horsepower": "hp horsepower",
    "rpm": "rpm",
    "kelvin": "kelvin kelvins",
    "mph": "mph miles-per-hour",
    "kmh": "kmh km/h kph kilometres-per-hour kilometers-per-hour km-h",
    "metre_per_second": "m/s mps metres-per-second meters-per-second m-s",
    "knot": "kn knot knots kts",
    "calorie": "cal calorie calories",
    "kilocalorie": "kcal kilocalorie kilocalories",
    "point": "pt pts point points",
    "dozen": "dozen dozens",
    "bit": "bit bits",
    "byte": "byte bytes",
}
_METRIC = {  # symbol, then long forms
    "metre": ("m", "metre", "metres", "meter", "meters"),
    "gram": ("g", "gram", "grams"),
    "second": ("s", "second", "seconds", "sec", "secs"),
    "watt": ("W", "watt", "watts"),
    "watt_hour": ("Wh", "watt-hour", "watt-hours"),
    "byte": ("B", "byte", "bytes"),
    "bit_per_second": ("bps", "bit/s", "bits-per-second"),
    "hertz": ("Hz", "hertz"),
    "volt": ("V", "volt", "volts"),
    "ampere": ("A", "ampere", "amperes", "amp", "amps"),
    "joule": ("J", "joule", "joules"),
    "pascal": ("Pa", "pascal", "pascals"),
    "newton": ("N", "newton", "newtons"),
    "parsec": ("pc", "parsec", "parsecs"),
    "litre": ("L", "litre", "litres", "liter", "liters"),
    "mole": ("mol", "mole", "moles"),
    "ohm": ("Ω", "ohm", "ohms"),
}
_PREFIXES = {
    "": ("", ""),
    "nano": ("n", "nano"),
    "micro": ("µ", "micro"),
    "milli": ("m", "milli"),
    "centi": ("c", "centi"),
    "kilo": ("k", "kilo"),
    "mega": ("M", "mega"),
    "giga": ("G", "giga"),
    "tera": ("T", "tera"),
}
_BARE_LETTERS = frozenset("BVANJWKT")  # on their own they are rarely units
_NOT_SPOKEN = frozenset({"in", "point", "points", "second", "stone", "stones", "a", "dozen", "dozens", "ct", "kn"})


def _tables() -> tuple[dict[str, Units], dict[str, Units], dict[str, Units]]:
    """Symbols whose case matters, words whose case does not, and symbols as field names write them."""
    symbols: dict[str, set[str]] = {}
    words: dict[str, set[str]] = {}
    for name, text in _SPELLINGS.items():
        for spelling in text.split():
            words.setdefault(spelling.replace("-", " "), set()).add(name)
    for base, (symbol, *longer) in _METRIC.items():
        for prefix, (short, long) in _PREFIXES.items():
            spelled = {short + symbol, ("u" if prefix == "micro" else short) + symbol}
            for one in spelled | ({short + "l"} if symbol == "L" else set()):
                if one not in _BARE_LETTERS:
                    symbols.setdefault(one, set()).add(prefix + base)
            for word in longer:
                words.setdefault(long + word.replace("-", " "), set()).add(prefix + base)
    named = {key: set(value) for key, value in words.items()}
    for symbol, names in symbols.items():
        named.setdefault(symbol.lower(), set()).update(names)
    return _frozen(symbols), _frozen(words), _frozen(named)


def _frozen(table: dict[str, set[str]]) -> dict[str, Units]:
    return {key: frozenset(value) for key, value in table.items()}


_EXACT, _WORDS, _FOLDED = _tables()
CURRENCIES = frozenset("usd eur gbp jpy chf cad aud sek nok dkk inr cny".split())


SPOKEN = tuple(sorted({*_EXACT, *_WORDS} - _NOT_SPOKEN, key=len, reverse=True))
"""What may follow a figure in an answer, longest first: "in" and "point" are mostly other words there."""
_ONLY_AT_THE_END = frozenset({spelling for spelling in _FOLDED if len(spelling) <= 2 and spelling.isalpha()}) | {
    "min", "sec", "second", "cal", "stone", "point", "points",
}  # fmt: skip
_MORE_AT_THE_END = {
    "f": frozenset({"fahrenheit"}),
    "c": frozenset({"celsius"}),
    "ms": frozenset({"metre_per_second"}),
}
_STATISTICS = frozenset({"min", "max", "avg", "mean", "median", "total", "sum", "limit", "target"})
_SHARES = frozenset({"share", "fraction", "ratio", "rate", "probability", "confidence", "proportion"})
_TOKENS = re.compile(r"(?<![0-9])[A-Za-z$%€£¥°]+[23]?(?![0-9A-Za-z])|(?<![0-9A-Za-z])[A-Za-z]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")


def units_of(text: str) -> Units:
    """The units that a word which follows or leads a figure can stand for."""
    spelled = " ".join(text.replace("-", " ").split())
    return _EXACT.get(spelled) or _WORDS.get(spelled.lower(), NO_UNIT)


def units_named(text: str) -> Units:
    """The units that a field's value or name can stand for, whatever its case."""
    spelled = " ".join(text.replace("-", " ").split())
    if spelled in ("F", "C"):
        return _MORE_AT_THE_END[spelled.lower()]
    whole = _EXACT.get(spelled) or _FOLDED.get(spelled.lower())
    return whole or _FOLDED.get(spelled.partition("/")[0].partition(" per ")[0].lower(), NO_UNIT)


def units_in_name(name: str) -> Units:
    """The units that a field's name speaks of: `total_acres`, `costUsd`, `tmax_f`; `trees_per_mile` is per mile."""
    words = [word.lower() for part in _CAMEL.split(name) for word in _TOKENS.findall(part)]
    while len(words) > 1 and words[-1] in _STATISTICS and (words[-1] != "min" or words[-2] in _FOLDED):
        words.pop()  # temp_c_min: the unit stands before
    if "per" not in words[1:]:
        return _plain_units(words)
    at = words.index("per", 1)
    after = {f"per_{unit}" for word in words[at + 1 : at + 2] for unit in _FOLDED.get(word, NO_UNIT)}
    beside = _FOLDED.get(words[at - 1], NO_UNIT) | _plain_units(words[:at]) | _plain_units(["", *words[at + 2 :]])
    return frozenset(after | beside)


def _plain_units(words: list[str]) -> Units:
    pairs = [" ".join(pair) for pair in pairwise(words)]
    if pairs and pairs[-1] in ("km h", "m s"):
        return _FOLDED[pairs[-1]]
    last = words[-1] if len(words) > 1 else ""
    if last in _ONLY_AT_THE_END and len(words) > 2 and words[-2] in _FOLDED:  # read_mb_s, level_ug_l: one per the other
        return _FOLDED[words[-2]]
    found = set().union(*(_FOLDED[word] for word in words if word in _FOLDED and word not in _ONLY_AT_THE_END))
    found = found.union(*(_FOLDED[pair] for pair in pairs if pair in _FOLDED))
    if last in _ONLY_AT_THE_END:  # height_m, took_s
        found |= _FOLDED.get(last, NO_UNIT)
    return frozenset(found | _MORE_AT_THE_END.get(last, NO_UNIT))


def is_share(name: str) -> bool:
    """Whether a field's name speaks of a part of one."""
    return any(word.lower() in _SHARES for part in _CAMEL.split(name) for word in _TOKENS.findall(part))
