"""Which server offers what beside tools: an address belongs to who lists it, else to whose template it fits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import islice

import mcp_types as types
from mcp.shared.uri_template import InvalidUriTemplate, UriTemplate

_MOST_LISTED = 100_000
"""Addresses of one server: those that it has listed last."""
_MOST_TEMPLATES = 1_000
"""Of one server: an address is held against each."""
_GAP = re.compile(r"\{[^}]*\}")


class Offers:
    """What servers have listed. The names of servers are given in their order: of two that offer the same, the first
    has it."""

    def __init__(self, servers: Sequence[str]) -> None:
        self._servers = tuple(servers)
        self._owners: dict[str, str] = {}
        self._listed: dict[str, dict[str, None]] = {name: {} for name in servers}
        self._templates: dict[str, tuple[str, ...]] = {}
        self._matchers: dict[str, tuple[UriTemplate, ...]] = {}
        self._prompts: dict[str, frozenset[str]] = {}

    def list_resource(self, server: str, uri: str) -> bool:
        """A server lists an address: whether it has it. The first who does keeps it, however much another lists."""
        if self._owners.setdefault(uri, server) != server:
            return False
        own = self._listed[server]
        own.pop(uri, None)
        own[uri] = None
        while len(own) > _MOST_LISTED:
            oldest = next(iter(own))
            del own[oldest], self._owners[oldest]
        return True

    def list_templates(self, server: str, listed: Iterable[types.ResourceTemplate]) -> None:
        """All templates of a server, in place of those of before."""
        texts = tuple(islice(dict.fromkeys(one.uri_template for one in listed), _MOST_TEMPLATES))
        if texts != self._templates.get(server):
            self._templates[server] = texts
            self._matchers[server] = tuple(found for text in texts if (found := _parse(text)) is not None)

    def list_prompts(self, server: str, listed: Iterable[types.Prompt]) -> None:
        """All prompts of a server, by their names there, in place of those of before."""
        self._prompts[server] = frozenset(one.name for one in listed)

    def is_listed(self, uri: str) -> bool:
        """Whether somebody has listed an address."""
        return uri in self._owners

    def servers_of(self, uri: str) -> list[str]:
        """The server that lists an address; else those that have a template which it fits, the closest fit first."""
        if uri in self._owners:
            return [self._owners[uri]]
        fits = {name: fit for name in self._servers if (fit := self._fit(name, uri)) is not None}
        return sorted(fits, key=lambda name: -fits[name])

    def servers_of_reference(self, text: str) -> list[str]:
        """The servers that have a template of these words; else those that the same as an address belongs to."""
        found = [name for name in self._servers if text in self._templates.get(name, ())]
        return found or self.servers_of(text)

    def has_prompt(self, server: str, prompt: str) -> bool | None:
        """Whether a server lists a prompt; None of one that has listed none yet."""
        return None if server not in self._prompts else prompt in self._prompts[server]

    def _fit(self, server: str, uri: str) -> int | None:
        """How much of an address a server's templates say themselves; None where none fits."""
        fitting = (one for one in self._matchers.get(server, ()) if one.match(uri) is not None)
        return max((len(_GAP.sub("", one.template)) for one in fitting), default=None)


def _parse(text: str) -> UriTemplate | None:
    """A template as the SDK matches it; None of one that it cannot match."""
    try:
        return UriTemplate.parse(text)
    except InvalidUriTemplate:
        return None
