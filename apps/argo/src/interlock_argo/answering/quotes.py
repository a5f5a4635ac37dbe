"""What is quoted in answer to a question, and whether it surely answers it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from interlock_argo.answering.asked import Asking, read_question
from interlock_argo.answering.days import latest_day
from interlock_argo.answering.follow_ups import Meant
from interlock_argo.answering.ranking import Candidate, Ranked, Ranking

_MOST, _MOST_COMPARED = 2, 3
_NEAR = 0.12
"""So much lower a score may be for a statement to be quoted beside the best one."""
_COVERED, _COVERED_ALIKE, _ALIKE = 0.6, 0.4, 0.55
"""A statement surely answers that has most of the question's words, or fewer and is near by meaning."""
_BARELY = 0.2
_INHERITED = 0.5
"""What a word counts that only the question before has."""
_UNDER_SHOWN = 120


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
        if asking.compares and (both := _compared(ranked)):
            return Quoted(picks=tuple(one.candidate for one in both), is_sure=True)
        sure = _latest(asking, [one for one in ranked if _answers(asking, one)])
        if not sure:
            return Quoted(picks=(ranked[0].candidate,), is_sure=False)
        return Quoted(picks=tuple(one.candidate for one in _beside(sure)), is_sure=True)


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
        kinds=asking.kinds or before.kinds,
        terms=(*asking.terms, *inherited),
    )


def _answers(asking: Asking, one: Ranked) -> bool:
    if not one.fits or one.lacks:
        return False
    return one.covered >= _COVERED or (one.covered >= _COVERED_ALIKE and one.alike >= _ALIKE)


def _compared(ranked: Sequence[Ranked]) -> list[Ranked]:
    """Statements that have the question's words between them; none where something of it is left."""
    picks, said = list[Ranked](), set[str]()
    for one in ranked:
        if one.fits and one.terms - said and len(picks) < _MOST_COMPARED:
            picks.append(one)
            said |= one.terms
    lacks = {name for one in ranked[:1] for name in one.lacks} - said
    return picks if len(picks) > 1 and not lacks and picks[0].covered >= _COVERED_ALIKE else []


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
