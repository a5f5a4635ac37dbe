"""Whether what an answer says of deeds agrees with the records of its turn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from interlock.answers.statements.consequences import Consequences
from interlock.answers.statements.deeds import Deed, Doer, EffectStatement, Form, predicate_of
from interlock.answers.statements.effect_calls import EffectCall, Things, ToolWords
from interlock.answers.statements.effects import EffectState
from interlock.answers.statements.explaining import NEVER, explain
from interlock.answers.statements.lexicon import Lexicon
from interlock.answers.statements.matching import Match, Matcher
from interlock.answers.statements.placements import is_put_nowhere
from interlock.answers.statements.receipts import Receipts
from interlock.answers.statements.reports import Reported
from interlock.answers.statements.rows import Rows
from interlock.answers.statements.told_states import ToldStates
from interlock.answers.statements.touched import Objects, TouchedRows
from interlock.answers.statements.verb_groups import Stance
from interlock.answers.statements.verb_kinds import Kind, kind_of, resolve_light
from interlock.values import shorten

_OTHERWISE = "the results say otherwise"


class Records(NamedTuple):
    """What statements are held against."""

    tools: tuple[ToolWords, ...]
    """Of every effect tool that could have been called."""
    calls: tuple[EffectCall, ...]
    things: Things
    rows: Rows
    objects: Objects
    has_read: bool
    """A read of the turn has succeeded, if only to find nothing."""
    reported: Reported
    reasons: Reported
    """Why calls were refused or failed: that may be repeated, and proves no deed of a tool."""
    quoted: Reported
    """The same with results whose words may be quoted and not believed."""
    told: ToldStates


class Judge:
    """Holds deeds against records."""

    def __init__(self, records: Records, words: Lexicon) -> None:
        self._records, self._words = records, words
        self._touched: dict[int, TouchedRows] = {}
        self._matcher = Matcher(records.tools, records.calls, records.things, words)
        self._consequences = Consequences(records.calls, records.objects, words)
        self._receipts = Receipts(records.tools, records.calls, records.reported, self._matcher, words)

    def judge(self, deed: Deed) -> EffectStatement | None:
        """What the records say of a deed; None where nothing is claimed that they could contradict."""
        why = None if self._records.told.tells(deed) else self._objection(self._resolve(deed))
        if why is None or self._records.quoted.says_whose(deed.sentence.text):
            return None
        if why and deed.doer is not Doer.SPEAKER and self._is_quoted(deed):
            return None
        return EffectStatement(shorten(deed.sentence.text, 300), deed.stance, agrees=not why, why=why)

    def _is_quoted(self, deed: Deed) -> bool:
        """Whether a result has the whole sentence, or why a call came to nothing is told in its own words."""
        told = self._records.reasons.has_clause(deed.subject, deed.word, deed.after)
        return told or self._records.reported.quotes(deed.sentence.text)

    def _resolve(self, deed: Deed) -> Deed:
        """The deed that is meant: of "the booking was placed" the booking, unless a tool of the turn places things.

        Nor where a row says it of its own booking, and no call of the turn that would have made one came to nothing.
        """
        resolved = resolve_light(deed, self._words)
        if resolved is deed:
            return deed
        match, meant = self._matcher.find(deed), self._matcher.find(resolved)
        told = self._records.rows.tell(deed.verb, deed.sentence.words) and all(call.is_done for call in meant.calls)
        return deed if told or (match.surely and match.calls) else resolved

    def _objection(self, deed: Deed) -> str | None:
        """Why a deed does not agree; empty if it does, None if it claims nothing."""
        if deed.subject and deed.doer in (Doer.OTHER, Doer.HOUSE) and deed.verb in self._words.approvals:
            return self._by_other(deed) if deed.stance is Stance.DONE else None
        if deed.doer is Doer.OTHER and deed.verb in self._words.receipts and deed.stance is Stance.DONE:
            return self._receipts.judge(deed)
        if deed.doer in (Doer.USER, Doer.OTHER):
            return None
        if deed.verb and kind_of(deed, self._words) is Kind.NO_DEED:
            return None
        judges = {
            Stance.DONE: self._judge_done,
            Stance.NOT_DONE: self._judge_not_done,
            Stance.FAILED: self._judge_failed,
            Stance.COMING: self._judge_coming,
            Stance.TRIED: self._judge_tried,
            Stance.REQUESTED: self._judge_requested,
            Stance.WAITING: self._judge_waiting,
            Stance.REFUSED: self._judge_refused,
            Stance.UNSURE: self._judge_unsure,
            Stance.PLANNED: self._judge_planned,
        }
        judge = judges.get(deed.stance)
        return None if judge is None else judge(deed)

    # What was done.

    def _judge_done(self, deed: Deed) -> str | None:
        if deed.form is Form.STATE:
            return self._judge_state(deed)
        kind = kind_of(deed, self._words) if deed.verb else Kind.ANYTHING
        if kind is Kind.LOOK:
            looked = self._records.has_read or bool(self._records.calls)
            return "" if looked else "nothing was looked up in this turn"
        if kind is Kind.ANYTHING:
            return self._judge_anything(deed)
        if deed.doer is not Doer.SPEAKER and {*deed.clause} & {"still", "remains", "remain"}:
            return None  # as it was before
        match = self._matcher.find(deed)
        if any(call.is_done for call in match.fitting):
            done = [call for call in match.fitting if call.is_done]
            return self._of_other(deed, done) or self._too_many(deed, match)
        row = self._records.rows.tell(deed.verb, deed.sentence.words)
        if deed.doer is Doer.NOBODY and row is False and not match.calls:
            return _OTHERWISE
        if deed.doer is not Doer.SPEAKER and self._is_reported(deed, surely=match.surely):
            return None
        generic = deed.verb in self._words.generic and not deed.is_taken_away
        if not match.tools and generic and self._has(EffectState.DONE):
            return self._judge_anything(deed)
        if not match.surely and not self._is_claim(deed):
            return None
        return explain(match.calls, match.fitting) or NEVER

    def _judge_state(self, deed: Deed) -> str | None:
        """That a thing is now as a call would have made it."""
        mine = self._matcher.naming(deed)
        if any(call.is_done for call in mine) or self._has(EffectState.DONE):
            return None
        if mine:
            return explain(mine, mine)
        said = {word for word in predicate_of(deed, self._words) if word not in self._words.auxiliaries}
        told = self._records.reported.names(map(self._words.verbs.stem, said - self._words.plain))
        known = (
            (told and not is_put_nowhere(deed, self._records.reported, self._words))
            or any(word[:1].isdigit() for word in said)
            or self._records.reported.has_flag(self._matcher.stems(deed))
        )
        return None if known or "now" not in deed.clause or not self._records.tools else NEVER

    def _of_other(self, deed: Deed, calls: Iterable[EffectCall]) -> str:
        """What is said of another thing than the calls were made to: by a name, a day or a place of another row."""
        why = ""
        for call in calls:
            rows = self._rows_of(call)
            other = rows.other_in(deed.clause, deed.sentence.text)
            if other is None and rows.is_ordinal(deed.clause) is not False:
                return ""
            why = f"{explain([call], [call])}, and not to {other or 'that one'}"
        return why

    def _rows_of(self, call: EffectCall) -> TouchedRows:
        record = call.effect.record
        if record not in self._touched:
            tool = next((tool for tool in self._records.tools if tool.tool == call.effect.tool), None)
            context = tool.nouns | tool.verbs if tool is not None else ()
            self._touched[record] = TouchedRows(call, self._records.objects, context)
        return self._touched[record]

    def _too_many(self, deed: Deed, match: Match) -> str:
        """ "Both were refunded" of one refund; a call with several arguments may do several things."""
        made = [call for call in match.fitting if call.is_done]
        failed = [call for call in match.calls if call.effect.state in _NOT_MADE]
        if "both" in deed.clause and failed:
            return explain(failed, failed)
        if "both" in deed.clause and len(made) == 1 and len(made[0].arguments) < _SEVERAL:
            return f"{explain(made, made)}, and once only"
        return ""

    def _judge_anything(self, deed: Deed) -> str | None:
        """ "All set", "the refund went through": something of the turn was done, and nothing else came to nothing."""
        match = self._matcher.find(deed, by_noun=True)
        mine = self._mine(match)
        if any(call.is_done for call in mine):
            failed = [call for call in mine if call.effect.state in _NOT_MADE]
            partly = bool({*deed.clause} & _PARTLY)
            return explain(failed, failed) if failed and not match.tools and not partly else ""
        if mine:
            return None if self._tells_any(deed, match) else explain(mine, mine)
        if not match.tools and not self._is_about_us(deed):
            return None
        return None if self._tells_any(deed, match) or not self._records.tools else NEVER

    def _is_about_us(self, deed: Deed) -> bool:
        """Whether a phrase can be of a deed of ours: "a limit of 50 went out" is not, "a reminder went out" is."""
        words, said = self._words, {*deed.clause, *deed.subject}
        if not deed.subject or said & {"you", "your", "i", "we"} or said & words.pronouns:
            return True
        return bool(said & (words.promise_things | words.institutions | {"help"})) or bool(
            {*self._matcher.stems(deed)} & words.verbs.deed_stems
        )

    def _tells_any(self, deed: Deed, match: Match) -> bool:
        """Whether results speak of what is done in a phrase: "the order is on its way" of one that was shipped."""
        content = [stem for stem in self._matcher.stems(deed) if stem in self._words.verbs.deed_stems]
        moving = ["ship", "dispatch", "send", "transit"] if "way" in deed.clause else []
        stems = (*content, *moving)
        told = any(self._records.reported.tells(stem, strictly=match.surely) for stem in stems)
        return told or any(self._records.reasons.tells(stem, strictly=True) for stem in stems)

    def _is_claim(self, deed: Deed) -> bool:
        """Whether a deed that is no tool's own is said to be one of ours, and not of the world."""
        words = self._words
        if deed.doer in (Doer.SPEAKER, Doer.HOUSE) or deed.is_taken_away:
            return True
        if deed.word in words.statives or deed.form is Form.LABEL or self._consequences.has(deed):
            return False
        personal = bool({*deed.subject, *deed.clause} & {"you", "your"}) or {*deed.subject} <= words.pronouns
        perfect = deed.form is Form.BARE or "been" in deed.clause or deed.verb not in words.flows
        if deed.verb not in words.verbs.deed_stems:
            return personal and "been" in deed.clause and bool({*deed.subject} & {"you", "your"})
        return deed.verb not in words.soft or "now" in deed.clause or "been" in deed.clause or (personal and perfect)

    def _is_reported(self, deed: Deed, *, surely: bool) -> bool:
        records = self._records
        # "The balance has been charged": that results speak of charges does not say so of what is open.
        surely = surely or ("been" in deed.clause and bool({*deed.subject} & self._words.owed))
        sweeping = bool({*deed.clause, *deed.subject} & _SWEEPING) or {"now", "been"} <= {*deed.clause}
        # A field `charges` tells of no card that has been charged.
        paid = "been" in deed.clause and deed.verb in self._words.flows and "to" in deed.after[:1]
        if records.reported.tells(deed.verb, strictly=surely or paid, of_all=sweeping):
            return True
        if not surely and records.reasons.tells(deed.verb, strictly=True):
            return True
        if not surely and records.reported.has_flag(self._matcher.stems(deed)) and "been" not in deed.clause:
            return True
        attributed = bool({*deed.governing_words} & self._words.reporting)
        here = {"you", "your", "it", "this", "that"} & {*deed.subject} or {"been", "now"} & {*deed.clause}
        distant = not here and not surely and bool(deed.subject)
        return (attributed or distant) and records.quoted.tells(deed.verb, strictly=surely or paid, of_all=sweeping)

    def _by_other(self, deed: Deed) -> str | None:
        """That somebody has approved or promised something is told by a result; while a call waits, by its record."""
        waiting = [call for call in self._records.calls if call.effect.state is EffectState.WAITING]
        if self._records.reported.tells(deed.verb, strictly=bool(waiting)):
            return None
        if waiting:
            return explain(waiting, waiting)
        told = self._records.quoted.tells(deed.verb, strictly=False) or self._has(EffectState.DONE)
        deeds = {*self._matcher.stems(deed)} - {deed.verb} & self._words.verbs.deed_stems
        ours = bool({*deed.clause} & {"you", "your"}) or bool(deeds)
        return NEVER if ours and not told and not {*deed.sentence.words} & self._words.reporting else None

    # What was not.

    def _judge_not_done(self, deed: Deed) -> str | None:
        if deed.verb and kind_of(deed, self._words) is Kind.LOOK:
            return None
        match = self._matcher.find(deed, by_noun=not deed.verb)
        anything = not match.calls and ("nothing" in deed.clause or not deed.verb)
        mine = self._records.calls if anything else match.fitting
        made = [call for call in mine if call.is_done]
        unknown = [call for call in mine if call.effect.state is EffectState.UNKNOWN]
        if made and len(made) == len(mine):
            told = self._records.rows.denies(deed.verb, deed.sentence.words) or self._is_other_thing(deed, made)
            return None if told else explain(made, mine)
        if "neither" in deed.clause and made:
            return explain(made, mine)
        if unknown and len(unknown) == len(mine):
            return explain(unknown, mine)
        if not match.calls and deed.doer is Doer.NOBODY and self._records.rows.tell(deed.verb, deed.sentence.words):
            return _OTHERWISE
        return "" if mine else None

    def _is_other_thing(self, deed: Deed, made: Sequence[EffectCall]) -> bool:
        """Whether a clause speaks of another thing than the one that was done: the first fee, that of 4 April."""
        rows = [self._rows_of(call) for call in made]
        placed = {row.is_ordinal(deed.clause) for row in rows} - {None}
        if placed:
            return placed == {False}
        if {*deed.clause} & self._words.others:
            return True
        text = deed.sentence.text
        if all(row.other_in(deed.sentence.words, text) and not row.names_own(deed.sentence.words) for row in rows):
            return True
        known = {str(value).lower() for call in made for value in call.arguments.values()}
        figures = {word for word in deed.clause if word[:1].isdigit()}
        return bool(figures) and not any(figure in value for figure in figures for value in known)

    def _judge_failed(self, deed: Deed) -> str | None:
        if deed.verb and kind_of(deed, self._words) is Kind.LOOK:
            return None
        match = self._matcher.find(deed, by_noun=not deed.verb)
        mine = match.fitting if match.tools else self._records.calls if not deed.verb else ()
        if not mine:
            return None
        made = [call for call in mine if call.is_done]
        if made and {*deed.clause, *deed.subject} & {"neither", "none", "no"}:
            return explain(made, mine)
        failed = [call for call in mine if call.effect.state in _NOT_MADE]
        return self._of_other(deed, failed) if failed else explain(mine, mine)

    def _judge_unsure(self, deed: Deed) -> str | None:
        match = self._matcher.find(deed, by_noun=True)
        mine = match.fitting if match.tools else self._records.calls
        if any(call.effect.state is EffectState.UNKNOWN for call in mine):
            return ""
        made = [call for call in mine if call.is_done]
        return explain(made, mine) if made and len(made) == len(mine) and match.surely else None

    # What is to come.

    def _judge_coming(self, deed: Deed) -> str | None:
        if deed.form is Form.PROMISE:
            return self._judge_promise(deed)
        if kind_of(deed, self._words) is not Kind.DEED:
            return None
        match = self._matcher.find(deed)
        if any(call.effect.state in _TO_COME for call in match.fitting):
            return ""
        if deed.doer is Doer.SPEAKER and deed.word.endswith("ing") and "am" in deed.clause:
            return explain(match.calls, match.fitting) or NEVER  # "I am holding it for you": it is said to be so now
        if deed.doer in (Doer.SPEAKER, Doer.HOUSE):
            return (explain(match.calls, match.fitting) or NEVER) if self._is_known(deed, match) else None
        return explain(match.fitting, match.fitting) if match.fitting and match.surely else None

    def _judge_promise(self, deed: Deed) -> str | None:
        if any(call.effect.state in _TO_COME for call in self._records.calls):
            return ""
        things = {self._words.verbs.stem(word) for word in deed.clause if word in self._words.promise_things}
        reported = self._records.reported
        return None if any(reported.tells(thing, strictly=False) for thing in things) else NEVER

    def _judge_tried(self, deed: Deed) -> str | None:
        match = self._matcher.find(deed)
        if match.calls:
            return ""
        return "no such call was made in this turn" if self._is_known(deed, match) else None

    def _judge_requested(self, deed: Deed) -> str | None:
        match = self._matcher.find(deed, by_noun=True)
        mine = self._mine(match)
        if any(call.effect.state in _ASKED for call in mine):
            return ""
        if deed.doer is not Doer.SPEAKER and self._is_reported(deed, surely=False):
            return None
        return explain(mine, mine) or NEVER

    def _is_known(self, deed: Deed, match: Match) -> bool:
        kept = deed.verb in self._words.keeping and "for" in deed.after  # "I am holding it for you"
        return bool(match.tools) or kept or deed.verb in self._words.verbs.deed_stems - self._words.soft

    def _judge_waiting(self, deed: Deed) -> str | None:
        if "your" in deed.clause and self._has(EffectState.PLANNED):
            return ""  # a preview waits for the word of whoever asked for it
        return self._stands(deed, EffectState.WAITING, _WAITING_WORDS)

    def _judge_refused(self, deed: Deed) -> str | None:
        return self._stands(deed, EffectState.REFUSED, _REFUSED_WORDS)

    def _stands(self, deed: Deed, state: EffectState, named: Iterable[str]) -> str | None:
        match = self._matcher.find(deed, by_noun=True)
        mine = self._mine(match)
        if any(call.effect.state is state for call in mine):
            return ""
        reported = self._records.reported
        if any(reported.tells(word, strictly=False) or word in reported.coming for word in named):
            return None
        if not mine:
            waits = state is EffectState.WAITING or match.surely
            return NEVER if waits and deed.doer is Doer.NOBODY else None
        return explain(mine, mine)

    def _judge_planned(self, deed: Deed) -> str | None:
        calls = self._records.calls
        made = [call for call in calls if call.is_done]
        return explain(made, calls) if made and len(made) == len(calls) and "would" not in deed.clause else None

    def _mine(self, match: Match) -> Sequence[EffectCall]:
        """The calls that a clause is about; any, where it names none that was made."""
        return match.fitting if match.calls else self._records.calls

    def _has(self, state: EffectState) -> bool:
        return any(call.effect.state is state for call in self._records.calls)


_NOT_MADE = frozenset(
    {EffectState.FAILED, EffectState.REFUSED, EffectState.WAITING, EffectState.PLANNED, EffectState.UNDONE}
)
_TO_COME = frozenset({EffectState.DONE, EffectState.WAITING, EffectState.PLANNED})
_ASKED = frozenset({EffectState.DONE, EffectState.WAITING, EffectState.UNKNOWN})
_SEVERAL = 3
"""A call with so many arguments may have changed two things at once."""
_PARTLY = frozenset({"one", "only", "partly", "part", "first", "second", "half"})
_SWEEPING = frozenset({"all", "both", "every", "they", "everything", "each"})
_WAITING_WORDS = ("wait", "await", "pend", "pending", "queu", "hold", "approv", "review")
_REFUSED_WORDS = ("refus", "deny", "declin", "reject", "block", "allow", "permit")
