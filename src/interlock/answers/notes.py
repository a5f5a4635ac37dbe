"""What an answer says whatever the model wrote: what was only planned, what nothing is on file for, what was refused.

A name that is not on file is quoted only to a user who has said it: an argument is the words of a model.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from interlock.records import Content, Stored
from interlock.values import Json, Status, Value


class Note(Value, frozen=True):
    """One such sentence."""

    text: str
    quotes: tuple[str, ...] = ()
    """What it repeats from the arguments of a call."""
    unquoted: str = ""
    """What is said in its place, where the user has not said all of that."""

    def say_to(self, words: str) -> str:
        """The sentence for a user who has said `words`."""
        return self.text if all(_stands_in(words, quoted) for quoted in self.quotes) else self.unquoted


def notes_of(record: Stored, content: Content) -> tuple[Note, ...]:
    """What has to be said of one record of a call."""
    if record.status == Status.PLANNED:
        return (Note(f"{record.tool} was only planned; nothing was changed."),)
    if record.status != Status.NO_DATA:
        return ()
    said = content.problem.message if content.problem is not None else content.said or "nothing on file"
    if content.attempts:  # the tool's own words
        return (Note(f"{record.tool}: {said}"),)
    quotes = tuple(text for text in _texts(content.arguments) if text in said)
    unquoted = f"{record.tool}: nothing is on file under the name that was looked for."
    return (Note(f"{record.tool}: {said}", quotes, unquoted),)


def say_notes(notes: Iterable[Note], words: str) -> tuple[str, ...]:
    """The sentences for a user who has said `words`, each once."""
    return tuple(dict.fromkeys(note.say_to(words) for note in notes))


def _texts(value: Json) -> list[str]:
    if isinstance(value, dict):
        return [text for item in value.values() for text in _texts(item)]
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    return [value] if isinstance(value, str) and value else []


def _stands_in(words: str, quoted: str) -> bool:
    plain = " ".join(quoted.split())
    said = " ".join(words.split())
    return re.search(rf"(?<!\w){re.escape(plain)}(?!\w)", said, re.IGNORECASE) is not None
