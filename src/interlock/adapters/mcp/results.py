"""What a tool of a server has returned, as a value that is recorded and read by rules; and as a result again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mcp_types as types
import msgspec
from pydantic import ValidationError

from interlock.errors import Permanent
from interlock.values import Json, shorten

_SAID = 500
_PARTS = "content"
_STRUCTURED = "structuredContent"
_META = "_meta"
_PROTOCOL = "io.modelcontextprotocol/"
_ALONE = ({"result"}, {_PARTS})


def value_of(server: str, tool: str, found: types.CallToolResult) -> Json:
    """A text, or structured content, where that is all that there is to it; else everything that it consists of."""
    if found.is_error:
        raise Permanent(f"{server}: {tool} failed: {shorten(text_of(found) or 'it does not say why', _SAID)}")
    only_text, structured = all(map(_is_bare_text, found.content)), found.structured_content
    only_text = only_text and not own_meta(found)
    if isinstance(structured, dict) and only_text and not _looks_whole(structured):
        return structured  # its texts are for those who do not read that
    if structured is None and only_text and len(found.content) <= 1:
        return text_of(found) if found.content else None
    return found.model_dump(
        mode="json", by_alias=True, exclude_none=True, include={_PARTS, "structured_content", "meta"}
    )


def size_of_result(found: types.CallToolResult) -> int:
    """About how many bytes its texts have, which are handed on whatever the value is."""
    return sum(len(part.text) for part in found.content if isinstance(part, types.TextContent))


def result_of(value: Json) -> types.CallToolResult:
    """The same as a result again: what a client of the gateway gets, from a record, too."""
    if isinstance(value, dict) and _looks_whole(value):
        try:
            return types.CallToolResult.model_validate(value)
        except ValidationError:  # structured content of a tool of ours that is called so
            pass
    parts: list[Any] = [] if value is None else [types.TextContent(text=_as_text(value))]
    return types.CallToolResult(content=parts, structured_content=value if isinstance(value, dict) else None)


def text_of(found: types.CallToolResult) -> str:
    """Everything in it that is text."""
    return "\n".join(part.text for part in found.content if isinstance(part, types.TextContent))


def _is_bare_text(part: Any) -> bool:
    return isinstance(part, types.TextContent) and part.annotations is None and not part.meta


def own_meta(found: types.Result) -> dict[str, Any]:
    """What a server says in `_meta`, but for what the protocol says there."""
    return {key: item for key, item in (found.meta or {}).items() if not key.startswith(_PROTOCOL)}


def _as_text(value: Json) -> str:
    """For those who read only text: what is alone in a value, or all of it."""
    alone = next(iter(value.values())) if isinstance(value, dict) and value.keys() in _ALONE else value
    return alone if isinstance(alone, str) else msgspec.json.encode(alone).decode()


def _looks_whole(value: Mapping[str, Any]) -> bool:
    return isinstance(value.get(_PARTS), list) and value.keys() <= {_PARTS, _STRUCTURED, _META}
