"""The MCP gateway beside a direct connection over the same transport: calls, memory, and lists of many tools.

    python benchmarks/mcp_gateway.py [--calls 3000] [--long 20000] [--write]

Client, gateway and server are processes of their own, over standard streams; the gateway has a policy, a ledger in
SQLite and pins. Ratios are of medians of interleaved rounds in one run.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "mcp-speed.md"
AT_ONCE, ROUNDS, SERVERS, TOOLS = 64, 5, 20, 25
SERVER = f"""
import asyncio, sys
import mcp_types as types
from mcp.server import Server
from mcp.server.stdio import stdio_server

SCHEMA = {{"type": "object", "properties": {{"text": {{"type": "string"}}}}, "required": ["text"]}}
TOOLS = [types.Tool(name=f"echo{{n}}", description="Say it again.", input_schema=SCHEMA) for n in range({TOOLS})]

async def list_tools(ctx, params):
    return types.ListToolsResult(tools=TOOLS)

async def call_tool(ctx, params):
    return types.CallToolResult(content=[types.TextContent(text=params.arguments["text"])])

async def main():
    server = Server("echo", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())

asyncio.run(main())
"""
POLICY = 'version = 1\nmode = "apply"\n[[rule]]\nid = "all"\ntools = ["*"]\ndecision = "allow"\n'


def prepare(folder: Path, servers: int) -> None:
    """A folder with settings, pins and a policy for so many servers."""
    (folder / "server.py").write_text(SERVER)
    (folder / "policy.toml").write_text(POLICY)
    for number in range(servers):
        add = [sys.executable, "-m", "interlock", "mcp", "add", f"s{number}", "--", sys.executable, "server.py"]
        subprocess.run(add, cwd=folder, check=True, capture_output=True)
    with (folder / "interlock.toml").open("a") as file:
        for number in range(servers):
            file.write(f'\n[mcp.s{number}.tools."*"]\neffect = "read"\n')


@asynccontextmanager
async def connect(folder: Path, *arguments: str) -> AsyncIterator[Client]:
    """A client of a process that is started for it."""
    started = StdioServerParameters(command=sys.executable, args=list(arguments), cwd=str(folder))
    async with Client(started, cache=None) as client:
        yield client


async def call_many(client: Client, tool: str, count: int) -> float:
    """Seconds for so many calls, some at once."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def call(number: int) -> None:
        async with gate:
            found = await client.call_tool(tool, {"text": str(number)})
            assert not found.is_error, found

    begun = time.perf_counter()
    await asyncio.gather(*(call(number) for number in range(count)))
    return time.perf_counter() - begun


async def list_all(clients: list[Client], times: int) -> float:
    """Seconds for listing all tools of all clients so often."""
    begun = time.perf_counter()
    for _time in range(times):
        await asyncio.gather(*(client.list_tools() for client in clients))
    return time.perf_counter() - begun


def memory_of(folder: Path) -> int:
    """KiB that the gateway of a folder holds now."""
    found = subprocess.run(["ps", "-eo", "pid,rss,args"], capture_output=True, text=True, check=True).stdout
    held = [line.split() for line in found.splitlines() if "mcp serve" in line and str(folder) in line]
    return max((int(fields[1]) for fields in held), default=0)


async def measure(calls: int, long: int) -> list[tuple[str, str, str, float, str]]:
    """The rows of the table."""
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder, 1)
        serve = ("-m", "interlock", "mcp", "serve", "--config", str(folder / "interlock.toml"))
        async with connect(folder, "server.py") as direct, connect(folder, *serve) as gateway:
            await call_many(direct, "echo0", 200)
            await call_many(gateway, "s0_echo0", 200)
            times = [
                (await call_many(gateway, "s0_echo0", calls), await call_many(direct, "echo0", calls))
                for _ in range(ROUNDS)
            ]
            ours, theirs = (statistics.median(side) for side in zip(*times, strict=True))
            what = f"a call through the gateway, {AT_ONCE} at once, vs the direct call over the same transport"
            rows.append(
                (what, f"{ours / calls * 1e6:,.0f} µs", f"{theirs / calls * 1e6:,.0f} µs", ours / theirs, "≤ 1.5")
            )
            before = memory_of(folder)
            await call_many(gateway, "s0_echo0", long)
            after = memory_of(folder)
            what = f"memory of the gateway after {long:,} calls more, vs before them"
            rows.append((what, f"{after // 1024} MiB", f"{before // 1024} MiB", after / max(1, before), "≤ 1.1"))
    rows.append(await measure_lists())
    return rows


async def measure_lists() -> tuple[str, str, str, float, str]:
    """The tools of many servers, listed by one gateway and by a client for each."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder, SERVERS)
        serve = ("-m", "interlock", "mcp", "serve", "--config", str(folder / "interlock.toml"))
        async with AsyncExitStack() as stack:
            direct = [await stack.enter_async_context(connect(folder, "server.py")) for _ in range(SERVERS)]
            gateway = [await stack.enter_async_context(connect(folder, *serve))]
            assert len((await gateway[0].list_tools()).tools) == SERVERS * TOOLS
            for number in range(SERVERS):  # each is started by now, and takes no time from what is measured
                assert not (await gateway[0].call_tool(f"s{number}_echo0", {"text": "there?"})).is_error
            times = [(await list_all(gateway, 5), await list_all(direct, 5)) for _ in range(ROUNDS)]
        ours, theirs = (statistics.median(side) / 5 for side in zip(*times, strict=True))
        what = f"{SERVERS * TOOLS} tools of {SERVERS} servers listed by the gateway, vs by a client for each server"
        return what, f"{ours * 1e3:.1f} ms", f"{theirs * 1e3:.1f} ms", ours / theirs, "≤ 1.2"


def as_table(rows: list[tuple[Any, ...]]) -> str:
    """The rows as Markdown."""
    lines = ["| | ours | theirs | ratio | wanted | |", "|---|---|---|---|---|---|"]
    for what, ours, theirs, ratio, wanted in rows:
        holds = "✓" if ratio <= float(wanted.removeprefix("≤ ")) else "✗"
        lines.append(f"| {what} | {ours} | {theirs} | {ratio:.2f} | {wanted} | {holds} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=3_000, help="calls of each round")
    parser.add_argument("--long", type=int, default=100_000, help="calls over which the memory is watched")
    parser.add_argument("--write", action="store_true", help="write docs/mcp-speed.md")
    given = parser.parse_args()
    table = as_table(asyncio.run(measure(given.calls, given.long)))
    print(table)
    if given.write:
        said = "Written by `make bench-mcp`: client, gateway and server are processes of their own."
        head = f"# Speed of the MCP gateway\n\n{said}\n\n"
        PAGE.write_text(f"{head}{table}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
