"""A server that asks back, for tests: for a word of a model, for a person's word, for folders; it logs and reports."""

from __future__ import annotations

import asyncio

from mcp.server.mcpserver import Context, MCPServer
from mcp_types import SamplingMessage, TextContent
from pydantic import BaseModel

server = MCPServer("asking")


class Colour(BaseModel):
    colour: str


@server.tool()
async def ask_person(ctx: Context) -> str:
    """Ask whoever sits at the client."""
    found = await ctx.elicit("Which colour?", Colour)
    return found.data.colour if found.action == "accept" else found.action


@server.tool()
async def ask_model(prompt: str, ctx: Context) -> str:
    """Ask the client's model."""
    found = await ctx.session.create_message(
        messages=[SamplingMessage(role="user", content=TextContent(text=prompt))],
        max_tokens=10,
        related_request_id=ctx.request_id,
    )
    return found.content.text if isinstance(found.content, TextContent) else "?"


@server.tool()
async def take_long(ctx: Context) -> str:
    """Report how far it is, and log."""
    for step in range(3):
        await ctx.report_progress(step, 3, f"step {step}")
        await ctx.info(f"at {step}")
        await asyncio.sleep(0)
    return "done"


if __name__ == "__main__":
    server.run("stdio")
