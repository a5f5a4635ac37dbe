"""Texts of the results that an answer tells the wrong way round, and messages that it says go to somebody else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from interlock.answers.grounding.evidence import Fact, once
from interlock.answers.grounding.fact_kinds import facts_of
from interlock.answers.grounding.mentions import Mention
from interlock.answers.grounding.rows import plain_name
from interlock.answers.grounding.sentences import Sentences

_INSTEAD = re.compile(r"(?P<one>\d[\w:.,-]{0,20}) (?:instead of|rather than) (?P<other>\d[\w:.,-]{0,20})", re.I)
_PREVIEW = "preview"
_MOST_TEXTS = 500
_GOES_TO = re.compile(
    r"\b(?:(?:would|will) (?:go|be sent|be addressed|be written) (?:out )?to|(?:is|are) (?:addressed|written) to"
    r"|recipients?|(?:lists?|names|covers|contains|includes|mentions))\b",
    re.I,
)
_IS_DRAFT = re.compile(
    r"\b(?:messages?|notices?|notes?|letters?|mails?|e-?mails?|texts?|sms|drafts?|reminders?|invitations?)\b", re.I
)


def find_turned(text: str, facts: Sequence[Fact]) -> Iterator[tuple[int, int]]:
    """Where an answer says "5 instead of 7" and a text of the results says "7 instead of 5"."""
    said = [(match, match["one"].rstrip(".,"), match["other"].rstrip(".,")) for match in _INSTEAD.finditer(text)]
    if not said:
        return
    known = {
        (match["one"].rstrip(".,"), match["other"].rstrip(".,"))
        for fact in facts
        if fact.text and not fact.echo
        for match in _INSTEAD.finditer(fact.text)
    }
    for match, one, other in said:
        if (other, one) in known and (one, other) not in known:
            yield match.span()


def find_unplanned(sentences: Sentences, mentions: Sequence[Mention], facts: Sequence[Fact]) -> Iterator[Mention]:
    """Names that a message which is only planned is said to go to, or to list, and that its preview does not have."""
    has = once(facts, _text_of_previews)
    if not has:
        return
    for one in mentions:
        sentence = sentences.all[sentences.at(one.start)]
        before = sentences.text[sentence.start : one.start]
        if one.soft or one.is_date or not _GOES_TO.search(before) or not _IS_DRAFT.search(before):
            continue
        names = {name for same in one.names.values() for name in same}
        if not any(f" {name} " in has for name in names):
            yield one


def _text_of_previews(facts: Sequence[Fact]) -> str:
    """The words of all previews; empty without one."""
    planned = [fact.text for fact in facts_of(facts, "text") if fact.source.startswith(_PREVIEW)][:_MOST_TEXTS]
    return f" {plain_name(' '.join(planned))} " if planned else ""
