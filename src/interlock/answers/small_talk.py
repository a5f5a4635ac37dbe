"""What is answered to conversation: words of the agent's own description, or a model's words that say nothing.

There is no result to hold such an answer against, so that it may not say anything that a result could bear out.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files

from interlock.answers.agent import Agent
from interlock.answers.asked import Asked
from interlock.answers.conversation import TalkKind, phrases, read_table, talk_words
from interlock.answers.entities import Entities
from interlock.answers.grounding import Grounded
from interlock.answers.history import History
from interlock.answers.intents.keywords import hits, split_words
from interlock.tools import Tool, normalize
from interlock.values import Json

_BRIEF = (TalkKind.THANKS, TalkKind.FAREWELL, TalkKind.REACTION)
"""Whoever says only these does not want to be told again what the agent is for."""
_YOU = re.compile(r"\b(you are|you|your|yours|yourself)\b", re.I)
_I = {"you are": "I am", "you": "I", "your": "my", "yours": "mine", "yourself": "myself"}
_PURPOSE = re.compile(r"[^.!?\n]{1,300}[.!?]?")
_MOST_ABILITIES = 12
_JOINING = frozenset(
    {
        "a",
        "an",
        "and",
        "any",
        "at",
        "by",
        "for",
        "from",
        "i",
        "in",
        "is",
        "it",
        "me",
        "my",
        "of",
        "on",
        "or",
        "the",
        "to",
    }
)


def small_talk(agent: Agent, tools: Sequence[Tool], question: str, draft: str) -> str:
    """What leaves where nothing was asked for: the draft if it says nothing, otherwise a text that is fixed."""
    return draft if draft and says_nothing(agent, tools, draft) else fixed_reply(agent, question)


def only_talks(asked: Asked, history: History, grounded: Grounded) -> bool:
    """Whether nothing was asked for; or nothing is needed, and the draft rests on nothing that was returned."""
    rests = bool(history.sources) or grounded.cites
    return not asked.required and (asked.classified.chat or not rests)


def fixed_reply(agent: Agent, question: str) -> str:
    """A reply of the kind that the question is of, and who the agent is, in the words of its own description."""
    talk = phrases(agent.chat).recognise(question)
    table = read_table()
    replies = table[next(iter(table)) if talk is None else talk.language]["replies"]
    said = [replies[kind] for kind in (() if talk is None else talk.kinds) if kind in replies]
    if talk is not None and all(kind in _BRIEF for kind in talk.kinds):
        return " ".join(said)
    names = [intent.name.replace("_", " ") for intent in agent.intents][:_MOST_ABILITIES]
    can = f"{replies['can']} {', '.join(names)}." if names else ""
    return " ".join(part for part in (*said, _introduce(agent), can) if part)


def _introduce(agent: Agent) -> str:
    """The agent's purpose, which is said to the model, as the agent would say it of itself."""
    first = _PURPOSE.match(agent.purpose.strip())
    if first is None:
        return f"I am {agent.name}."
    return _YOU.sub(lambda found: _I[found[0].lower()], first[0])


def says_nothing(agent: Agent, tools: Sequence[Tool], draft: str) -> bool:
    """Whether a text is made of the words of small talk alone, and none of them is a word of the agent's field."""
    words = talk_words(draft)
    if not words:
        return False
    said = {word for word in words if word.isalpha()}
    harmless = said <= _harmless_words() or phrases(agent.chat).recognise(draft) is not None
    keywords = [keyword for intent in agent.intents for keyword in intent.keywords]
    if not harmless or said & _words_of_field(agent, tools) or hits(keywords, split_words(draft)):
        return False
    entities = Entities(draft, tools)
    return not any(entities.known_to(tool.name) for tool in tools)


@cache
def _harmless_words() -> frozenset[str]:
    text = (files("interlock.answers") / "tables" / "small_talk.toml").read_text(encoding="utf-8")
    return frozenset(tomllib.loads(text)["words"])


def _words_of_field(agent: Agent, tools: Sequence[Tool]) -> frozenset[str]:
    """Keywords of one word, and the words of longer ones and of all names but for those that only join others."""
    keywords = [normalize(keyword) for intent in agent.intents for keyword in intent.keywords]
    names = [*(intent.name for intent in agent.intents), *(tool.name for tool in tools)]
    names += [name for tool in tools for schema in (tool.input.schema, tool.output.schema) for name in _fields(schema)]
    parts = {word for keyword in keywords for word in keyword.split()} - _harmless_words()
    return frozenset(keywords) | parts | ({word for name in map(normalize, names) for word in name.split()} - _JOINING)


def _fields(schema: Json) -> Iterable[str]:
    """The names of all fields of a schema, those of what it is made of too."""
    whole = schema if isinstance(schema, dict) else {}
    parts = [whole, *whole.get("$defs", {}).values()]
    return [name for part in parts if isinstance(part, dict) for name in part.get("properties", {})]
