"""Which tools a clause speaks of, by their words, and which of their calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from interlock.answers.statements.deeds import Deed
from interlock.answers.statements.effect_calls import EffectCall, Things, ToolWords, find_phrase, fits, is_named
from interlock.answers.statements.lexicon import Lexicon


class Match(NamedTuple):
    """The tools whose words a clause uses, and their calls that it can be about."""

    tools: frozenset[str] = frozenset()
    surely: bool = False
    """By words of their own, not only by ones that may be said for them."""
    calls: tuple[EffectCall, ...] = ()
    fitting: tuple[EffectCall, ...] = ()
    """Of those, the ones that name the same thing."""


class Matcher:
    """Finds the tools and calls that deeds are about."""

    def __init__(self, tools: Sequence[ToolWords], calls: Sequence[EffectCall], things: Things, words: Lexicon) -> None:
        self._tools, self._calls, self._things, self._words = tools, tuple(calls), things, words

    def find(self, deed: Deed, *, by_noun: bool = False) -> Match:
        """What a deed is about; `by_noun`: also by the deed as a thing ("the refund went through")."""
        stems = self.stems(deed)
        ranked = [(self._strength(deed, tool, stems, by_noun), tool) for tool in self._tools]
        if by_noun:  # "the order was refused": of the tools that do something to orders, the one that was called
            called = {call.effect.tool for call in self._calls}
            ranked = [pair for pair in ranked if pair[0] > 1 and pair[1].tool in called] or ranked
        best = max((rank for rank, _tool in ranked), default=0)
        found = [tool for rank, tool in ranked if rank == best and best]
        # Of several that send or change something, the one whose thing is named.
        named = [tool for tool in found if tool.nouns & {*stems}]
        names = frozenset(tool.tool for tool in (named if len(found) > 1 and named else found))
        calls = tuple(call for call in self._calls if call.effect.tool in names)
        acted = tuple(call for call in calls if deed.verb in call.actions)
        things = self._things.named_in(deed.clause)
        if not calls:  # no tool of that very word was called, but one for which it may be said, and its thing is named
            alike = {tool.tool for tool in self._tools if deed.verb in tool.alike}
            calls = tuple(c for c in self._calls if c.effect.tool in alike and is_named(c, deed, things))
        fitting = tuple(call for call in acted or calls if fits(call, deed, things, calls))
        return Match(names | {call.effect.tool for call in calls}, best > 1, calls, fitting)

    def naming(self, deed: Deed) -> list[EffectCall]:
        """The calls of which a clause names something that they were made with."""
        things = self._things.named_in(deed.clause)
        return [call for call in self._calls if is_named(call, deed, things)]

    def stems(self, deed: Deed) -> list[str]:
        """The words of a clause and of its subject."""
        inside = {*deed.clause}
        return [*map(self._words.verbs.stem, (*deed.clause, *(word for word in deed.subject if word not in inside)))]

    def _strength(self, deed: Deed, tool: ToolWords, stems: Sequence[str], by_noun: bool) -> int:
        words, inside = self._words, {*stems}
        if any(find_phrase(phrase, stems) for phrase in tool.phrases):
            return 3
        if self._is_other_medium(deed, tool):
            return 0
        if deed.verb and deed.verb in tool.verbs:
            return 3
        if (by_noun or deed.verb in words.light or deed.verb in words.entries) and tool.verbs & inside:
            return 3
        if by_noun and tool.nouns & inside:
            return 2
        if any(deed.verb in call.actions for call in self._calls if call.effect.tool == tool.tool):
            return 2
        return 1 if deed.verb in tool.alike and self._overlaps(deed, tool, inside) else 0

    def _overlaps(self, deed: Deed, tool: ToolWords, inside: set[str]) -> bool:
        """Whether a clause that uses another word for what a tool does speaks of the things that the tool is about."""
        calls = [call for call in self._calls if call.effect.tool == tool.tool]
        context = tool.context.union(*(call.words for call in calls))
        content = {stem for stem in inside if len(stem) > 2 and not stem[0].isdigit()} - {deed.verb}
        content -= self._words.plain | self._words.days | self._words.months  # when it was says nothing of what
        if content & context or not content or self._media(deed) & self._media_of(tool):
            return True
        return bool({*deed.after[:1]} & self._words.pronouns) or bool({*deed.subject[-1:]} & self._words.pronouns)

    def _is_other_medium(self, deed: Deed, tool: ToolWords) -> bool:
        """Whether something else was sent than the tool sends: a letter by the one that sends e-mails."""
        named = {word for word in deed.clause if self._words.verbs.stem(word) in tool.context}
        # "I refunded the postage of the parcel": what the tool is about was not sent by it.
        said, sent = self._media(deed) - {self._words.media.get(word) for word in named}, self._media_of(tool)
        return bool(said and sent and not said & sent)

    def _media(self, deed: Deed) -> set[str]:
        return {self._words.media[word] for word in deed.clause if word in self._words.media}

    def _media_of(self, tool: ToolWords) -> set[str]:
        return {self._words.media[word] for word in (*tool.nouns, *tool.verbs) if word in self._words.media}
