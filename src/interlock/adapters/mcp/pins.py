"""What a server offered when somebody looked at it: a tool that is another one since then is switched off.

A server may change what a tool says and takes after it was looked at. The file of pins holds each tool as it was; what
differs from it, what is new, and what hides something in its words is not offered to anybody until it is pinned again.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

import mcp_types as types
import msgspec
from pydantic import ValidationError

from interlock.canonical import canonical
from interlock.errors import ConfigError
from interlock.values import Json

_FORM = 2
_FIRST = {"name", "title", "description", "input_schema", "output_schema", "annotations"}
_SEEN = {1: _FIRST, _FORM: {*_FIRST, "icons", "meta"}}
"""What a pin covers, by its form: nothing else goes through. Pins of the first one hold until they are made anew."""
_LINES = 40
_AROUND = 40
_INSTRUCTION = re.compile(
    r"<\s*/?\s*(?:important|system|secret|instructions?|admin)\b"
    r"|\b(?:ignore|disregard|forget|override)\b[^.]{0,30}\b(?:previous|prior|above|earlier|other|all)\b[^.]{0,30}"
    r"\b(?:instructions?|rules?|prompts?|tools?|messages?)"
    r"|\b(?:do not|don't|never|without)\b[^.]{0,20}\b(?:tell|mention|inform|reveal|telling|informing|mentioning)\b"
    r"[^.]{0,30}\b(?:user|human|person|anyone|anybody)"
    r"|\bbefore (?:using|calling|invoking) (?:this|any|other|another)\b[^.]{0,60}"
    r"\b(?:read|send|call|fetch|include|pass)\b"
    r"|\b(?:instead of|rather than) (?:using |calling )?(?:the )?(?:other|any other)\b[^.]{0,30}\btools?"
    r"|~/\.ssh|id_rsa|/etc/passwd|\.env\b[^.]{0,30}\b(?:content|read|include|pass)",
    re.IGNORECASE,
)
"""What descriptions of tools that mean harm say: a first look, not a proof."""
_HIDDEN = ("Cf", "Co", "Cs", "Cn", "Cc", "Zl", "Zp")
_BLANKS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and marks that show nothing."""
_LINES_OF_TEXT = frozenset("\n\r\t")
_SELECTORS = (range(0x180B, 0x1810), range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0))
"""Variation selectors: they change how a letter looks, or nothing, and bytes can be written in them."""


class PinnedTool(msgspec.Struct, frozen=True):
    """A tool as it was looked at."""

    digest: str
    offered: dict[str, Json]
    form: int = 1


class PinsFile(msgspec.Struct, frozen=True):
    """The tools of each server."""

    servers: dict[str, dict[str, PinnedTool]] = {}

    @classmethod
    def read(cls, file: Path) -> PinsFile:
        """What a file holds; nothing where there is none."""
        try:
            return msgspec.json.decode(file.read_bytes(), type=cls)
        except FileNotFoundError:
            return cls()
        except (OSError, msgspec.MsgspecError) as error:
            raise ConfigError(
                f"the pins in {file} cannot be read: {error}; pin the servers again into a new file"
            ) from None

    def write(self, file: Path) -> None:
        """Put it in place of what is there, whole or not at all."""
        beside = file.with_name(f"{file.name}.new")
        beside.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n")
        os.replace(beside, file)

    def pin(self, server: str, offered: Iterable[types.Tool], accept: Collection[str] = ()) -> PinsFile:
        """With the tools of a server as they are now, but for those that tell a model what to do, unless somebody who
        has read that accepts them."""
        fit = [one for one in offered if not find_hidden(one)]
        kept = [one for one in fit if one.name in accept or not find_instruction(one)]
        pinned = {one.name: PinnedTool(digest_of(one), _as_seen(one), _FORM) for one in kept}
        return PinsFile({**self.servers, server: pinned})

    def without(self, server: str) -> PinsFile:
        """Without a server."""
        return PinsFile({name: tools for name, tools in self.servers.items() if name != server})

    def tools_of(self, server: str) -> list[types.Tool]:
        """The tools of a server as they were pinned."""
        try:
            return [types.Tool.model_validate(one.offered) for one in self.servers.get(server, {}).values()]
        except ValidationError:
            raise ConfigError(f"the pins of {server!r} hold something else than tools; pin it again") from None

    def switched_off(self, server: str, offered: Iterable[types.Tool]) -> dict[str, str]:
        """The tools that nobody may use as they are, and why."""
        pinned = self.servers.get(server, {})
        listed = list(offered)
        found = {one.name: _objection(one, pinned) for one in listed}
        often = Counter(one.name for one in listed)
        found |= {name: "the server offers it twice" for name, count in often.items() if count > 1}
        gone = dict.fromkeys(pinned.keys() - found.keys(), "the server does not offer it any more")
        return {name: why for name, why in {**found, **gone}.items() if why}


def digest_of(offered: types.Tool, form: int = _FORM) -> str:
    """A digest of everything of a tool that a model or a caller goes by."""
    return hashlib.sha256(canonical(_as_seen(offered, form))).hexdigest()


def _as_seen(offered: types.Tool, form: int = _FORM) -> dict[str, Json]:
    seen = _SEEN.get(form, _SEEN[_FORM])
    return offered.model_dump(mode="json", by_alias=True, exclude_none=True, include=seen)


def _objection(offered: types.Tool, pinned: Mapping[str, PinnedTool]) -> str:
    known = pinned.get(offered.name)
    form = _FORM if known is None else known.form
    hidden = _hidden_in(_as_seen(offered, form))
    if hidden:
        return f"it hides something: {hidden}"
    if known is None:
        return "nobody has pinned it"
    same = known.digest == digest_of(offered, form)
    return "" if same else f"it is not what was pinned:\n{_difference(known, offered)}"


def _difference(known: PinnedTool, offered: types.Tool) -> str:
    before, now = (
        msgspec.json.format(msgspec.json.encode(one, order="sorted"), indent=2).decode().splitlines()
        for one in (known.offered, _as_seen(offered, known.form))
    )
    lines = list(difflib.unified_diff(before, now, "pinned", "offered now", lineterm="", n=1))
    more = len(lines) - _LINES
    return "\n".join(lines[:_LINES] + ([f"… and {more} lines more"] if more > 0 else []))


def find_instruction(offered: types.Tool) -> str:
    """Words of a tool that tell a model what to do beside it, as they stand there."""
    return _instruction_in(_as_seen(offered))


def find_hidden(offered: types.Tool) -> str:
    """A character in the words of a tool that people do not see and models read, by its name."""
    return _hidden_in(_as_seen(offered))


def find_harm(listed: types.Prompt | types.Resource | types.ResourceTemplate) -> str:
    """Why something that is not pinned is left out of lists: its words hide something, or tell a model what to do."""
    words: list[Json] = [listed.title, listed.description]
    words += [text for one in getattr(listed, "arguments", None) or () for text in (one.title, one.description)]
    hidden, said = _hidden_in(words), _instruction_in(words)
    if hidden:
        return f"it hides something: {hidden}"
    return f"it tells a model what to do: {said}" if said else ""


def _instruction_in(words: Json) -> str:
    text = msgspec.json.encode(_on_one_line(words)).decode()
    found = _INSTRUCTION.search(text)
    return "" if found is None else text[max(0, found.start() - _AROUND) : found.end() + _AROUND]


def _on_one_line(words: Json) -> Json:
    """The same with one blank between words: how they are set does not hide what they say."""
    if isinstance(words, dict):
        return {_on_one_line(key): _on_one_line(item) for key, item in words.items()}
    if isinstance(words, list):
        return [_on_one_line(item) for item in words]
    return " ".join(words.split()) if isinstance(words, str) else words


def _hidden_in(words: Json) -> str:
    found = next((c for text in _texts_in(words) for c in text if _is_hidden(c)), None)
    return "" if found is None else f"the invisible character U+{ord(found):04X} {unicodedata.name(found, '')}".strip()


def _is_hidden(character: str) -> bool:
    if character.isascii() and character.isprintable():
        return False
    code = ord(character)
    is_mark = character in _BLANKS or any(code in some for some in _SELECTORS)
    return is_mark or (unicodedata.category(character) in _HIDDEN and character not in _LINES_OF_TEXT)


def _texts_in(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _texts_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts_in(item)
