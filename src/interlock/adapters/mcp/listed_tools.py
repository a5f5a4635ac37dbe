"""The tools that one server has listed, and what it has said of them."""

from __future__ import annotations

import mcp_types as types
from mcp import Client

from interlock.adapters.mcp.forms import PromisedForms
from interlock.errors import ConfigError

_MOST_PAGES = 100
_REQUIRED = "required"


class ListedTools:
    """On one connection: what the last list says. Another connection to it may be to another version of it."""

    def __init__(self, server: str) -> None:
        self._server = server
        self.forms = PromisedForms()
        self.as_tasks: set[str] = set()
        """Those that it runs as tasks alone."""

    def copy(self) -> ListedTools:
        """What is known of them, for another connection."""
        made = ListedTools(self._server)
        made.forms, made.as_tasks = self.forms.copy(), set(self.as_tasks)
        return made

    async def read(self, client: Client) -> list[types.Tool]:
        """The list, all of its pages."""
        found: list[types.Tool] = []
        cursor: str | None = None
        for _page in range(_MOST_PAGES):
            page = await client.list_tools(cursor=cursor)
            found += page.tools
            cursor = page.next_cursor
            if not cursor:
                self.as_tasks = {one.name for one in found if one.execution and one.execution.task_support == _REQUIRED}
                self.forms.learn(found)
                return found
        raise ConfigError(f"the MCP server {self._server!r} lists its tools on more than {_MOST_PAGES} pages")
