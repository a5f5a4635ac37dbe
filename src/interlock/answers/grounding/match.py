"""Whether what an answer claims stands in the evidence: units and rounding understood, sums checked."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal

from interlock.answers.grounding.claims import Claim
from interlock.answers.grounding.evidence import Fact, Source, facts
from interlock.answers.grounding.expressions import derivations
from interlock.answers.grounding.vocabulary import Vocabulary, default_vocabulary
from interlock.values import Value

_BARE = re.compile(r"[\W_]+")
# Without it "about 100" would stand for 60, which rounds to one hundred if the noughts are not meant.
_AT_MOST_OFF = Decimal("0.1")
_NAMED_PART = re.compile(r"(?P<word>[A-Za-z]+)\.?\s+(?P<number>\S+)")
_YEARS = (Decimal(1900), Decimal(2100))


class Support(Value, frozen=True):
    """One claim, and what stands behind it."""

    text: str
    kind: str
    start: int
    end: int
    source: str = ""
    """`record 12`, `question`, or the id of a chunk; empty if nothing stands behind it."""
    path: str = ""
    how: str = "unsupported"
    """exact, rounded, echo, counted, derived, or unsupported."""


class Grounded(Value, frozen=True):
    """An answer's claims, each with its support."""

    claims: tuple[Support, ...] = ()

    @property
    def unsupported(self) -> tuple[Support, ...]:
        """Those that nothing stands behind."""
        return tuple(claim for claim in self.claims if claim.how == "unsupported")

    @property
    def is_supported(self) -> bool:
        """Whether everything is supported."""
        return not self.unsupported

    @property
    def cites(self) -> bool:
        """Whether at least one claim rests on a result, not only on the question."""
        return any(claim.how not in ("unsupported", "echo") for claim in self.claims)


def ground(answer: str, sources: Sequence[Source], vocabulary: Vocabulary | None = None) -> Grounded:
    """Trace every claim of an answer to where it comes from."""
    words = vocabulary or default_vocabulary()
    # The id of a source is evidence too: an answer may refer to "record 12".
    known = (*facts(sources, words), *(Fact(s.id, "$", text=s.id) for s in sources))
    said, index, matcher = words.claims(answer), _Index(known), _Matcher(words)
    found = [
        _support(claim, index.near(claim), matcher, _words(answer[max(0, claim.start - 60) : claim.end + 30]))
        for claim in said
    ]
    # One sum may rest on the result of another. Every round supports at least one claim more, so it ends.
    while _derive(answer, said, found):
        pass
    return Grounded(tuple(found))


class _Index:
    """Facts by what they are and how large, so that a claim is held only against those that it could mean."""

    def __init__(self, known: Sequence[Fact]) -> None:
        # Without the sign: "fell by 40" may stand for -40.
        sized = [(abs(float(fact.number)), n) for n, fact in enumerate(known) if fact.number is not None]
        self._sized = sorted(sized)
        self._known = known
        self._rest = [fact for fact in known if fact.number is None]

    def near(self, claim: Claim) -> Sequence[Fact]:
        """The facts that may stand behind a claim."""
        if claim.number is None:
            return self._rest
        places: set[int] = set()
        said = abs(float(claim.number))
        # The value as it is, a share said in percent, fields in thousands, millions and billions. Every window is wider
        # than what `_rounds_to` lets pass, so that nothing that would match is left out.
        for scale in (1.0, 1e-2, 1e-3, 1e-6, 1e-9):
            middle = said * scale
            wide = middle * 0.11 + (1.01 if scale == 1.0 else 0.011 if scale == 1e-2 else 0.0)
            first = bisect_left(self._sized, (middle - wide, -1))
            last = bisect_right(self._sized, (middle + wide, len(self._known)))
            places.update(place for _, place in self._sized[first:last])
        return [self._known[place] for place in sorted(places)] + self._rest


def ground_safely(answer: str, sources: Sequence[Source], vocabulary: Vocabulary | None = None) -> Grounded:
    """The same for a text that may hold anything: what cannot be read is supported by nothing."""
    try:
        return ground(answer, sources, vocabulary)
    except Exception as error:  # noqa: BLE001 - a fault in a check must hold the answer back, not let it out
        text = f"(a text that cannot be checked: {type(error).__name__})"
        return Grounded((Support(text, "number", 0, len(answer)),))


def _derive(answer: str, said: Sequence[Claim], found: list[Support]) -> bool:
    """Support what the answer computes itself, and the same figure where it is used again; whether anything was."""
    supported = [item.how != "unsupported" for item in found]
    new = dict(derivations(answer, said, supported))
    for place, claim in enumerate(said):
        # Only a derived figure is supported by its repetition: any other finds the fact behind it by itself.
        if not supported[place] and place not in new and claim.number is not None:
            same = [n for n, item in enumerate(found) if item.how == "derived" and _repeats(claim, said[n])]
            if same:
                new[place] = found[same[0]].path
    fresh = [place for place in new if not supported[place]]
    for place in fresh:
        claim = said[place]
        found[place] = Support(claim.text, claim.kind, claim.start, claim.end, "answer", new[place], "derived")
    return bool(fresh)


def _repeats(claim: Claim, other: Claim) -> bool:
    same = other.number in (claim.number, claim.digits)
    return same and (not claim.units or not other.units or bool(claim.units & other.units))


def _support(claim: Claim, known: Sequence[Fact], matcher: _Matcher, around: frozenset[str]) -> Support:
    """The best fact behind a claim: of those that are equally good, the one whose name is spoken of beside it."""
    best: tuple[tuple[int, int], Fact, str] | None = None
    for fact in known:
        how = matcher.how(claim, fact)
        if how is None:
            continue
        rank = _RANKS.index("echo" if fact.echo else "counted" if fact.counted else how)
        order = (rank, -len(_words(fact.path.rpartition(".")[2]) & around))
        if best is None or order < best[0]:
            best = (order, fact, _RANKS[rank])
    if best is None:
        return Support(claim.text, claim.kind, claim.start, claim.end)
    return Support(claim.text, claim.kind, claim.start, claim.end, best[1].source, best[1].path, best[2])


def _words(text: str) -> frozenset[str]:
    # Five letters, so that "closures" in an answer meets a field called `closure`.
    return frozenset(word[:5] for word in _BARE.sub(" ", text.lower()).split() if len(word) > 2)


_RANKS = ("exact", "rounded", "counted", "echo")


class _Matcher:
    """Whether a fact stands behind a claim, and how."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._magnitudes = vocabulary.field_magnitudes
        self._currencies = vocabulary.units.currencies
        self._in_large = re.compile(rf"_(?P<word>{'|'.join(self._magnitudes)})(?:$|_per_|_usd$|_eur$)")

    def how(self, claim: Claim, fact: Fact) -> str | None:
        """exact, rounded or counted; None if it does not."""
        if claim.kind == "number":
            return None if fact.number is None and fact.date[0] is None else self._number(claim, fact)
        if claim.kind == "date":
            year, month, day = claim.date
            turned = claim.either and _same_date((year, day, month), fact.date)
            return "exact" if turned or _same_date(claim.date, fact.date) else None
        if claim.kind == "time":
            return "exact" if claim.minutes == fact.minutes else None
        if claim.kind == "citation" and _is_part(claim.text, fact):
            return "exact"
        return "exact" if fact.text and _stands_in(claim, fact.text) else None

    def _number(self, claim: Claim, fact: Fact) -> str | None:
        said = claim.number
        assert said is not None
        if fact.number is None:
            # "In 2022" is supported by the year of a date; a figure with a unit, or beyond these years, is none.
            is_year = not claim.units and claim.step == 1 and _YEARS[0] <= said <= _YEARS[1]
            return "exact" if is_year and said == fact.date[0] else None
        if fact.label:
            # A figure in a name supports one of its unit or kind ("24-hour" by `restored_24h`), but not "24 acres".
            as_label = not claim.units or claim.units & fact.units or "-" in claim.text
            return "counted" if as_label and abs(said) == fact.number and claim.step == 1 else None
        if fact.counted:
            return "counted" if not claim.units and said == fact.number else None
        values = self._values(claim, fact)
        if said in values:
            return "exact"
        return "rounded" if any(_rounds_to(value, claim) for value in values) else None

    def _values(self, claim: Claim, fact: Fact) -> list[Decimal]:
        """What the figure of a fact may be said as; nothing if its unit is another."""
        assert fact.number is not None
        values = [fact.number]
        if (claim.falls or claim.turned) and fact.number < 0:
            values.append(-fact.number)
        if "percent" in claim.units and "percent" not in fact.units:
            if fact.units and not fact.share:  # a field in acres is not a percentage, whatever its figure
                return []
            # A `share` of 0.4 is 40 %, never 0.4 %; a field that says neither may be kept either way.
            values = [value * 100 for value in values if _is_fraction(value)] + ([] if fact.share else values)
        elif not self._units_agree(claim, fact):
            return []
        large = self._in_large.search(fact.path) if claim.digits is not None else None
        if large is None:
            return values
        return [value.scaleb(self._magnitudes[large["word"]]) for value in values]  # sales_bn: 4.5 is 4.5 billion

    def _units_agree(self, claim: Claim, fact: Fact) -> bool:
        if not claim.units:
            return True
        if fact.echo and not fact.units:
            return False  # "12 scouts" in the question are not 12 miles in the answer
        if fact.money and claim.units & self._currencies:
            return bool(claim.units & (fact.money | fact.units))
        # A value without a known unit agrees with any: most fields do not name theirs.
        return not fact.units or bool(claim.units & fact.units)


def _is_part(text: str, fact: Fact) -> bool:
    """Section 14.2, where a field `section` says 14.2."""
    match = _NAMED_PART.fullmatch(text)
    if match is None or match["word"].lower()[:4] not in fact.path.rpartition(".")[2].lower():
        return False
    return match["number"] in (fact.text, str(fact.number))


def _is_fraction(value: Decimal) -> bool:
    # Growth may be above one (1.4 is 140 %); a whole number from two on is a percentage already.
    return abs(value) <= 1 or (abs(value) < 10 and value != value.to_integral_value())


def _rounds_to(value: Decimal, claim: Claim) -> bool:
    said = claim.number
    assert said is not None
    step = claim.step
    if claim.about and said != 0 and step >= 1:  # "about 127,000": the noughts are not meant
        # Trailing noughts after "about" are rounding, not precision.
        step = max(step, Decimal(1).scaleb(_noughts(said)))
    if step >= 1 and value == value.to_integral_value() and step == 1:
        return False  # a whole number is said whole, or with "about"
    scaled = value / step
    # `quantize` raises where its result has more than the 28 digits of the context.
    if abs(scaled) > Decimal(10) ** 20 or not _near(value, claim):
        return False
    wanted = said / step
    return any(scaled.quantize(Decimal(1), rounding=way) == wanted for way in (ROUND_HALF_UP, ROUND_HALF_EVEN))


def _near(value: Decimal, claim: Claim) -> bool:
    """Rounding moves a figure a little, and "over" and "under" say in which direction."""
    said = claim.number
    assert said is not None
    if (claim.bound == ">" and value < said) or (claim.bound == "<" and value > said):
        return False
    # With decimals rounding moves it by half of the last one at most, which needs no further bound.
    return claim.step < 1 or abs(value - said) <= _AT_MOST_OFF * abs(said)


def _noughts(said: Decimal) -> int:
    digits = str(abs(said).to_integral_value())
    return len(digits) - len(digits.rstrip("0"))


def _same_date(said: tuple[int | None, ...], known: tuple[int | None, ...]) -> bool:
    if all(part is None for part in known):
        return False
    # One-sided: an answer may say less than the result (August 2022), but not a day that the result does not have.
    return all(a is None or a == b for a, b in zip(said, known, strict=True))


def _stands_in(claim: Claim, text: str) -> bool:
    """Whether an identifier, citation or address stands in a text, as a whole and whatever its punctuation."""
    # Letter by letter, and not as the beginning of more: record 1 is not supported by record 12.
    if claim.kind in ("url", "mail", "reference"):
        at = text.lower().find(claim.text.lower())
        return at >= 0 and not text[at + len(claim.text) : at + len(claim.text) + 1].isalnum()
    # Punctuation is not: "CASE-2024-17" is what the result calls CASE_2024_17.
    said, there = _BARE.sub(" ", claim.text.lower()).strip(), f" {_BARE.sub(' ', text.lower()).strip()} "
    return f" {said} " in there or f" {said.replace(' ', '')} " in there
