"""The statements of a draft, each with whether the records of the turn agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from interlock.answers.grounding import Source
from interlock.answers.grounding.field_names import snake_keys
from interlock.answers.requirements import CallSeen
from interlock.answers.statements.agreement import Judge, Records
from interlock.answers.statements.deeds import EffectStatement
from interlock.answers.statements.directions import Directions, may_turn
from interlock.answers.statements.effect_calls import EffectCall, Things, call_of, words_of
from interlock.answers.statements.effects import EffectState, TurnEffect
from interlock.answers.statements.explaining import explain
from interlock.answers.statements.languages import foreign_deed
from interlock.answers.statements.lexicon import Lexicon, lexicon
from interlock.answers.statements.linked import Links
from interlock.answers.statements.nothing_found import find_not_found, find_unfounded, found_nothing
from interlock.answers.statements.reading import find_deeds
from interlock.answers.statements.reports import Reported
from interlock.answers.statements.rows import Rows
from interlock.answers.statements.told_states import ToldStates
from interlock.answers.statements.touched import Objects
from interlock.answers.statements.verb_groups import Stance
from interlock.answers.statements.wording import Sentence, clean, is_unreadable, sentences
from interlock.tools import Tool
from interlock.values import Effect, Json, Status, Trust, Value, shorten


class TurnRecords(Value, frozen=True):
    """What a turn's records hold for its statements: the tools there are, the calls that were made, what they gave."""

    tools: tuple[Tool, ...] = ()
    calls: tuple[CallSeen, ...] = ()
    effects: tuple[TurnEffect, ...] = ()
    sources: tuple[Source, ...] = ()
    given: tuple[Source, ...] = ()
    """What was handed in beside: the preview of a call that was not made."""


def check_statements(draft: str, turn: TurnRecords) -> tuple[EffectStatement, ...]:
    """Everything that a draft says of deeds, in order; what cannot be read does not agree."""
    words = lexicon()
    records = cache(lambda: _read_records(turn, words))
    judge: Judge | None = None
    directions: Directions | None = None
    links: Links | None = None
    found: list[EffectStatement] = []
    read = list(sentences(clean(draft), words))
    if found_nothing(turn.calls) and not turn.given:
        wrong = find_unfounded(
            [one for one in read if not is_unreadable(one.text) and not foreign_deed(one.words)], words
        )
        found += [wrong] if wrong is not None else []
    not_found = find_not_found(read, turn.calls, words)
    found += [not_found] if not_found is not None else []
    for sentence in read:
        if is_unreadable(sentence.text):
            found.append(_unreadable(sentence))
            continue
        language = foreign_deed(sentence.words)
        if language:
            found.append(_foreign(sentence, language, turn))
            continue
        if turn.effects and may_turn(sentence):
            directions = directions or _read_directions(turn, records().calls)
            turned = directions.check(sentence)
            found += [turned] if turned is not None else []
        for deed in find_deeds(sentence, words):
            judge = judge or Judge(records(), words)  # most sentences tell of no deed
            statement = judge.judge(deed)
            if statement is not None:
                found.append(statement)
        if links is None and turn.effects:
            links = Links(records().calls, records().objects, words)
        linked = links.find(sentence) if links is not None else None
        if linked is not None:
            why = explain([linked], [linked])
            found.append(EffectStatement(shorten(sentence.text, 300), Stance.DONE, agrees=False, why=why))
    return tuple(found)


def check_safely(draft: str, turn: TurnRecords) -> tuple[EffectStatement, ...]:
    """The same for a text that may hold anything: what cannot be checked does not agree."""
    try:
        return check_statements(draft, turn)
    except Exception as error:  # noqa: BLE001 - a fault in a check must hold the answer back, not let it out
        why = f"its statements cannot be checked: {type(error).__name__}"
        return (EffectStatement(shorten(draft, 300), Stance.DONE, agrees=False, why=why),)


def _unreadable(sentence: Sentence) -> EffectStatement:
    why = "it is in a script in which statements are not read"
    return EffectStatement(shorten(sentence.text, 300), Stance.DONE, agrees=False, why=why)


def _foreign(sentence: Sentence, language: str, turn: TurnRecords) -> EffectStatement:
    """A deed in a language whose clauses are not read: it agrees by words that the author of a tool gave for it."""
    done = {effect.tool for effect in turn.effects if effect.state is EffectState.DONE}
    spoken = " ".join(sentence.words)
    said = any(word in spoken for tool in turn.tools if tool.name in done for word in tool.says)
    why = "" if said else f"in {language.title()}, no call of this turn is known to have done this"
    return EffectStatement(shorten(sentence.text, 300), Stance.DONE, agrees=said, why=why)


def _read_directions(turn: TurnRecords, calls: Sequence[EffectCall]) -> Directions:
    """What was moved from where to where; a preview counts as what would be."""
    previews = [(_record(source), snake_keys(source.value)) for source in turn.given]
    results = [(_record(source), _value(source)) for source in turn.sources if source.trusted]
    return Directions(calls, Objects([*results, *previews], turn.tools))


def _read_records(turn: TurnRecords, words: Lexicon) -> Records:
    by_record = {source.id: source for source in turn.sources}
    arguments = {call.record: snake_keys(call.arguments) for call in turn.calls}
    calls = tuple(
        call_of(effect, arguments.get(effect.record), _value(by_record.get(f"record {effect.record}")), words)
        for effect in turn.effects
    )
    trust = {tool.name: tool.trust for tool in turn.tools}
    changing = [tool for tool in turn.tools if tool.effect is not Effect.READ]
    changes = {tool.name for tool in changing}
    made = {f"record {effect.record}" for effect in turn.effects if effect.state is EffectState.DONE}
    # What a change returned tells of the world, too; what a preview returned is not so.
    reads = [source for source in turn.sources if source.tool not in changes or source.id in made]

    def _is_trusted(source: Source) -> bool:
        return trust.get(source.tool, Trust.TRUSTED) is Trust.TRUSTED

    trusted = [_value(source) for source in reads if _is_trusted(source)]
    reported, quoted = Reported(trusted, words), Reported([_value(source) for source in reads], words)
    theirs = quoted if len(trusted) < len(reads) else None
    return Records(
        tools=tuple(words_of(tool, words) for tool in changing),
        calls=calls,
        rows=Rows(trusted, words),
        objects=Objects([(_record(source), _value(source)) for source in reads if _is_trusted(source)], turn.tools),
        things=Things(turn.tools, calls, [_value(source) for source in reads]),
        has_read=any(not call.changes and call.status in (Status.OK, Status.NO_DATA) for call in turn.calls),
        reported=reported,
        reasons=Reported([call.message for call in turn.calls if call.message], words),
        quoted=quoted,
        told=ToldStates(trusted, reported, theirs, words, acted=bool(turn.effects)),
    )


def _record(source: Source) -> int:
    kind, _space, number = source.id.partition(" ")
    return int(number) if kind == "record" and number.isdecimal() else 0


def _value(source: Source | None) -> Json:
    """What a result says itself; how it was come to is no part of it."""
    if source is None or not isinstance(source.value, Mapping):
        return None if source is None else snake_keys(source.value)
    return snake_keys(
        {key: source.value[key] for key in ("value", "summary", "snippets", "metadata", "made") if key in source.value}
    )
