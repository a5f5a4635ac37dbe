"""The words for what a tool does: those that its author gives (`says=`), and those that its name and description have.

An answer that says that something was done is held against the records of the tools whose words it uses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from interlock.errors import ContractError
from interlock.tools.verbs import VerbTable, verb_table

_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_WORD = re.compile(r"[A-Za-z]+")
_MOST = 40
_LONGEST = 80


def check_says(where: str, given: Any) -> tuple[str, ...]:
    """The words of an author, in lower case; a sentence for what could not be found in an answer."""
    if isinstance(given, str):
        raise ContractError(f"{where} is a list of words for what the tool does; write [{given!r}]")
    if not isinstance(given, Iterable):
        raise ContractError(f"{where} is a list of words such as ['refunded', 'money back'], not {given!r}")
    words = list(given)
    for word in words:
        if not isinstance(word, str) or len(word) > _LONGEST or not any(letter.isalpha() for letter in word):
            raise ContractError(f"{where} is a list of words such as ['refunded', 'money back'], and {word!r} is none")
    if len(words) > _MOST:
        raise ContractError(f"{where} has {len(words)} words; at most {_MOST} are looked for")
    return tuple(" ".join(word.lower().split()) for word in words)


def effect_words(name: str, description: str, given: Iterable[str] = ()) -> tuple[str, ...]:
    """Everything that is said for a tool's effect: what was given, then what its name and description say."""
    table = verb_table()
    verbs = dict.fromkeys((*_verbs_in_name(name, table), *_verb_of_description(description, table)))
    found = [form for verb in verbs for form in _forms(verb, table)]
    return tuple(dict.fromkeys((*given, *found)))


def name_parts(name: str) -> list[str]:
    """The words of a name, whatever joins them: refund_payment, sendMail, mail.send."""
    return [part.lower() for part in _PART.findall(name)]


def _verbs_in_name(name: str, table: VerbTable) -> list[str]:
    """The first part that is a verb (`refund_payment`, `mail.send`): the others say what it is done to."""
    parts = name_parts(name.rpartition(".")[2])  # `orders.cancel`: before the point stands what it is about
    known = [part for part in parts if part in table.deeds]
    return known[:1] or parts[:1]


def _verb_of_description(description: str, table: VerbTable) -> list[str]:
    """The verb that a description begins with: "Pays a payment back", "Tell somebody"."""
    first = _WORD.match(description.strip())
    if first is None:
        return []
    word, stem = first[0].lower(), table.stem(first[0].lower())
    if word in table.deeds:
        return [word]
    return [verb for verb in (word.removesuffix("s"), word.removesuffix("es")) if verb in table.deeds][:1] or (
        [verb for verb in sorted(table.deeds) if table.stem(verb) == stem][:1]
    )


def _forms(verb: str, table: VerbTable) -> list[str]:
    return [table.participle(verb), verb, *table.nouns.get(verb, ()), *table.idioms.get(verb, ())]
