"""Things that an answer speaks of although the turn has read nothing about them.

A name that a tool knows is no result: "Ann Lee is ill" rests on nothing where only Bob Ray was looked up. And what was
looked for and not found is not said to be there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from interlock.answers.grounding.evidence import Fact, once
from interlock.answers.grounding.mentions import Mention
from interlock.answers.grounding.sentences import Sentences
from interlock.answers.grounding.state_words import StateTable
from interlock.answers.grounding.support import Support
from interlock.answers.grounding.unknown_names import words_of_texts

_WORD = re.compile(r"[^\W\d_]+")
_EXISTS = re.compile(
    r"\W{0,3}(?:exists?|(?:does|do) exist|(?:is|are|was|were) (?:there|found|on file|in (?:the|our) records))\b",
    re.I,
)


def find_unread(
    sentences: Sentences, mentions: Sequence[Mention], facts: Sequence[Fact], table: StateTable
) -> Iterator[tuple[int, int]]:
    """Where something is said of a known thing that no result, call or question of the turn has."""
    hard = [one for one in mentions if not one.soft and not one.is_date]
    if not hard:
        return
    read, texts = once(facts, names_read), once(facts, words_of_texts)
    for one in hard:
        name = sentences.text[one.start : one.end]
        words = _WORD.findall(name.lower().replace("’", "'").removesuffix("'s"))
        if any(same & read for same in one.names.values()) or texts.issuperset(words):
            continue
        sentence = sentences.all[sentences.at(one.start)]
        said = sentences.text[sentence.start : sentence.end]
        if not table.is_conditional(said) and not table.has_denial(said):
            yield one.start, one.end


def names_read(facts: Sequence[Fact]) -> frozenset[str]:
    """All names of the rows, and of the calls that returned them."""
    rows = {id(row): row for fact in facts for row in fact.place.row.chain()}
    return frozenset(name for row in rows.values() for same in row.names.values() for name in same)


def is_said_to_exist(text: str, one: Support) -> bool:
    """Whether what only the question or a call has is said to be there."""
    only_asked = one.how == "echo" or (one.how == "exact" and one.path.startswith(("$.asked", "$.not_found")))
    return only_asked and _EXISTS.match(text, one.end) is not None
