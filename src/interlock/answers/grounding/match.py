"""Whether what an answer claims stands in the evidence: units and rounding understood, sums checked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal

from interlock.answers.grounding.claims import AT_MOST_OFF, Claim
from interlock.answers.grounding.evidence import Fact, Source, read_evidence
from interlock.answers.grounding.expressions import derive
from interlock.answers.grounding.index import FactIndex
from interlock.answers.grounding.vocabulary import Vocabulary, default_vocabulary
from interlock.config import TextLimits
from interlock.values import Value

_BARE = re.compile(r"[\W_]+")
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
    unchecked: str = ""
    """Why the answer, or what it rests on, was not read as a whole: a limit, in a sentence; empty if it was."""

    @property
    def unsupported(self) -> tuple[Support, ...]:
        """Those that nothing stands behind."""
        return tuple(claim for claim in self.claims if claim.how == "unsupported")

    @property
    def is_supported(self) -> bool:
        """Whether everything is supported."""
        return not self.unsupported and not self.unchecked

    @property
    def cites(self) -> bool:
        """Whether at least one claim rests on a result, not only on the question."""
        return any(claim.how not in ("unsupported", "echo") for claim in self.claims)


def ground(
    answer: str, sources: Sequence[Source], vocabulary: Vocabulary | None = None, limits: TextLimits | None = None
) -> Grounded:
    """Trace every claim of an answer to where it comes from.

    The work has a bound that follows from the limits: an answer with more in it is not checked, and so not supported.
    """
    words, limits = vocabulary or default_vocabulary(), limits or TextLimits()
    if len(answer) > limits.max_draft_chars:
        return Grounded(unchecked=_over(len(answer), "characters", limits.max_draft_chars, "max_draft_chars"))
    said = words.claims(answer)
    if len(said) > limits.max_claims:
        return Grounded(unchecked=_over(len(said), "figures, names and dates", limits.max_claims, "max_claims"))
    evidence = read_evidence(sources, words, limits.max_evidence_chars)
    index, matcher = FactIndex(said, evidence.facts, words.field_magnitudes.values()), _Matcher(words)
    found = [
        _support(claim, index, matcher, _words(answer[max(0, claim.start - 60) : claim.end + 30])) for claim in said
    ]
    for place, path in derive(answer, said, [item.how != "unsupported" for item in found]).items():
        claim = said[place]
        found[place] = Support(claim.text, claim.kind, claim.start, claim.end, "answer", path, "derived")
    grounded = Grounded(tuple(found))
    # Where everything is supported by what was read, it does not matter that there was more.
    if evidence.cut and not grounded.is_supported:
        why = f"only the first {limits.max_evidence_chars:,} characters of the results are read (max_evidence_chars)"
        return Grounded(tuple(found), why)
    return grounded


def _over(count: int, what: str, limit: int, setting: str) -> str:
    return f"an answer of {count:,} {what} is not checked: at most {limit:,} are ({setting})"


def ground_safely(
    answer: str, sources: Sequence[Source], vocabulary: Vocabulary | None = None, limits: TextLimits | None = None
) -> Grounded:
    """The same for a text that may hold anything: what cannot be read is supported by nothing."""
    try:
        return ground(answer, sources, vocabulary, limits)
    except Exception as error:  # noqa: BLE001 - a fault in a check must hold the answer back, not let it out
        text = f"(a text that cannot be checked: {type(error).__name__})"
        return Grounded((Support(text, "number", 0, len(answer)),))


def _support(claim: Claim, index: FactIndex, matcher: _Matcher, around: frozenset[str]) -> Support:
    """The best fact behind a claim: of those that are equally good, the one whose name is spoken of beside it."""
    if claim.number is None:
        known = [(fact, "exact") for fact in index.exact(claim)]
    else:
        near = index.near_number(claim)
        known = [(fact, how) for fact in near if (how := matcher.how(claim, fact)) is not None]
    best: tuple[tuple[int, int], Fact, str] | None = None
    for fact, how in known:
        rank = _RANKS.index("echo" if fact.echo else "counted" if fact.counted else how)
        order = (rank, -len(_words(fact.place.name) & around))
        if best is None or order < best[0]:
            best = (order, fact, _RANKS[rank])
    if best is None:
        return Support(claim.text, claim.kind, claim.start, claim.end)
    return Support(claim.text, claim.kind, claim.start, claim.end, best[1].source, best[1].place.path, best[2])


def _words(text: str) -> frozenset[str]:
    # Five letters, so that "closures" in an answer meets a field called `closure`.
    return frozenset(word[:5] for word in _BARE.sub(" ", text.lower()).split() if len(word) > 2)


_RANKS = ("exact", "rounded", "counted", "echo")


class _Matcher:
    """Whether a fact stands behind a figure, and how."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._magnitudes = vocabulary.field_magnitudes
        self._currencies = vocabulary.units.currencies
        self._in_large = re.compile(rf"_(?P<word>{'|'.join(self._magnitudes)})(?:$|_per_|_usd$|_eur$)")

    def how(self, claim: Claim, fact: Fact) -> str | None:
        """exact, rounded or counted; None if it does not."""
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
        large = self._in_large.search(fact.place.path) if claim.digits is not None else None
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


def _is_fraction(value: Decimal) -> bool:
    # Growth may be above one (1.4 is 140 %); a whole number from two on is a percentage already.
    return abs(value) <= 1 or (abs(value) < 10 and value != value.to_integral_value())


def _rounds_to(value: Decimal, claim: Claim) -> bool:
    said = claim.number
    assert said is not None
    step = claim.rounding
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
    return claim.step < 1 or abs(value - said) <= AT_MOST_OFF * abs(said)
