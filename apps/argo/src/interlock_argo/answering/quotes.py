"""What is quoted in answer to a question, and whether it surely answers it."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from interlock_argo.answering.asked import Asking, read_question
from interlock_argo.answering.days import latest_day
from interlock_argo.answering.follow_ups import Meant
from interlock_argo.answering.ranking import Candidate, Ranked, Ranking

_MOST = 2
_OR = re.compile(r"\b(?:or|than|versus|vs\.?)\b", re.I)
_LONGEST_SIDE = 3
"""Words of a thing that is compared; what has more after its "or" is another sentence."""
_NEAR = 0.06
"""So much lower a score may be for a statement to be quoted beside the best one."""
_COVERED, _TOGETHER, _ALIKE = 0.6, 0.88, 0.55
"""A statement surely answers that has most of the question's words, or fewer and is the nearer by meaning."""
_BARELY, _FAR = 0.2, 0.25
_INHERITED = 0.5
"""What a word counts that only the question before has."""
_UNDER_SHOWN = 120
_FEW_OWN = 3
"""So few words of its own say together what a question that goes on is about."""
_ELLIPSIS = 6
"""So short a question leaves out what it asks for; a longer one asks for something of its own."""


class Quoted(msgspec.Struct, frozen=True, kw_only=True):
    """What was found for a question."""

    picks: tuple[Candidate, ...]
    """Best first; empty where nothing has to do with it."""
    is_sure: bool

    @property
    def text(self) -> str:
        """The quotes with who says them; where they do not surely answer, only the nearest, as that."""
        if not self.picks:
            return ""
        if not self.is_sure:
            return f"The nearest is {_introduce(self.picks[0], 'what you told me', 'in')}: {self.picks[0].text}"
        return " ".join(f"{_introduce(one, 'You told me', 'According to')}: {one.text}" for one in self.picks)


def _introduce(one: Candidate, yours: str, by: str) -> str:
    if one.is_yours:
        return yours
    under = one.under.rpartition(" > ")[2]
    under = under if under not in one.said_by and len(under) <= _UNDER_SHOWN else ""
    return f"{by} {one.said_by}" + (f" ({under})" if under else "")


class Quotes:
    """Chooses among candidates."""

    def __init__(self) -> None:
        self._ranking = Ranking()

    def choose(self, meant: Meant, candidates: Sequence[Candidate]) -> Quoted:
        """What is quoted for a question, given the one that it goes on from."""
        asking = read_meant(meant)
        known = {one.text: one for one in candidates}
        if meant.other and meant.about:
            before = self.choose(Meant(question=meant.about), candidates)
            for one in before.picks[:1]:
                known.pop(one.text, None)
        ranked = self._ranking.rank(asking, list(known.values()))
        if asking.about_me:
            yours = tuple(one for one in known.values() if one.is_yours)
            return Quoted(picks=yours, is_sure=bool(yours))
        if not ranked or (ranked[0].covered < _BARELY and ranked[0].alike < _ALIKE):
            return Quoted(picks=(), is_sure=False)
        if len(sides := split_sides(asking)) > 1:
            return self._compare(sides, list(known.values()))
        sure = _latest(asking, [one for one in ranked if _answers(asking, one)])
        if not sure:
            return Quoted(picks=(ranked[0].candidate,), is_sure=False)
        return Quoted(picks=tuple(one.candidate for one in _beside(sure)), is_sure=True)

    def _compare(self, sides: Sequence[Asking], candidates: Sequence[Candidate]) -> Quoted:
        """For each of the things that are compared the best statement about it."""
        picks: dict[str, Candidate] = {}
        sure = True
        for side in sides:
            ranked = [one for one in self._ranking.rank(side, candidates) if one.fits]
            own = {term.word for term in side.terms if term.share == 1.0}
            best = next((one for one in ranked if own & one.terms), None)
            sure = sure and best is not None and not best.lacks and len(own & best.terms) * 2 >= len(own)
            if best is not None:
                picks[best.candidate.text] = best.candidate
        return Quoted(picks=tuple(picks.values()), is_sure=sure)


def split_sides(asking: Asking) -> list[Asking]:
    """A question about one thing or another as one for each, with what both share; itself, where it is of one."""
    found = _OR.search(asking.text) if asking.compares else None
    if found is None:
        return [asking]
    left = [term for term in asking.terms if asking.text.find(term.word) < found.start()]
    right = [term for term in asking.terms if asking.text.find(term.word) >= found.end()]
    if not left or not right or len(right) > _LONGEST_SIDE:
        return [asking]
    own, shared = left[-len(right) :], left[: -len(right)]
    halved = tuple(msgspec.structs.replace(term, share=_INHERITED) for term in shared)
    return [msgspec.structs.replace(asking, terms=(*side, *halved), compares=False) for side in (own, right)]


def read_meant(meant: Meant) -> Asking:
    """A question with the words that it leaves out, of the one before it."""
    asking = read_question(meant.question)
    if not meant.about:
        return asking
    before = read_question(meant.about)
    own = {term.word.casefold() for term in asking.terms}
    renamed = any(term.is_name for term in asking.terms)
    inherited = [t for t in before.terms if t.word.casefold() not in own and not (renamed and t.is_name)]
    inherited = [msgspec.structs.replace(term, share=_INHERITED * term.share) for term in inherited]
    return msgspec.structs.replace(
        asking,
        text=f"{meant.about} {asking.text}",
        kinds=asking.kinds or (before.kinds if len(asking.text.split()) <= _ELLIPSIS else ()),
        terms=(*asking.terms, *inherited),
    )


def _answers(asking: Asking, one: Ranked) -> bool:
    if not one.fits or one.lacks or (abs(one.alike) > 0.0 and one.alike < _FAR):
        return False
    own = {term.word for term in asking.terms if term.share == 1.0}
    if own and len(own) < len(asking.terms):  # it goes on: "and the plum tree?" is not answered by the pear tree
        is_about = own <= one.terms if len(own) <= _FEW_OWN else bool(own & one.terms)
        if not is_about:
            return False
    return one.covered >= _COVERED or (one.covered >= _BARELY and one.covered + one.alike >= _TOGETHER)


def _latest(asking: Asking, sure: list[Ranked]) -> list[Ranked]:
    """Those of the latest day, where it is asked how it is now and they say of when they are."""
    days = [latest_day(f"{one.candidate.said_by} {one.candidate.under} {one.candidate.text}") for one in sure]
    if not asking.latest or not any(days):
        return sure
    last = max(day for day in days if day)
    return [one for one, day in zip(sure, days, strict=True) if day == last]


def _beside(sure: Sequence[Ranked]) -> list[Ranked]:
    """The best one, and those that are about as good."""
    near = [one for one in sure if one.score >= sure[0].score - _NEAR]
    return near[:_MOST]
