"""Anchors where others hold them: a git repository, or an HTTP endpoint such as a calendar or a transparency log."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from interlock.audit.checkpoints import statement_of
from interlock.errors import ConfigError, ToolError, install_hint
from interlock.records import Checkpoint
from interlock.tools.body_limits import BodyLimits

_GIT = "git:"
_CALENDAR = "/digest"
_TIMEOUT_S = 30.0
_LIMITS = BodyLimits(wire_bytes=65_536, body_bytes=65_536, owner="")


class Receipt(msgspec.Struct, frozen=True):
    """What came back from where an anchor was published."""

    n: int
    target: str
    receipt: str
    """A commit, or what the endpoint answered: as text, or in base64 where it is none."""


def publish(target: str, checkpoint: Checkpoint) -> Receipt:
    """Hand an anchor to somebody else; `ConfigError` says what went wrong, and the anchor stays where it is."""
    if target.startswith(_GIT):
        return Receipt(checkpoint.n, target, _commit(Path(target.removeprefix(_GIT)).expanduser(), checkpoint))
    if target.startswith(("https://", "http://")):
        return Receipt(checkpoint.n, target, _post(target, checkpoint))
    raise _nowhere(target)


def check_target(target: str) -> None:
    """Raise ConfigError for what is no place that anchors go to, before anything is signed."""
    if not target.removeprefix(_GIT) or not target.startswith((_GIT, "https://", "http://")):
        raise _nowhere(target)


def _nowhere(target: str) -> ConfigError:
    return ConfigError(f"{target!r}: anchors go to git:FOLDER or https://…")


def _commit(folder: Path, checkpoint: Checkpoint) -> str:
    """One line more in a file of the repository, and a commit of that alone."""
    file = folder / f"{statement_of(checkpoint).ledger}.anchors.jsonl"
    try:
        with file.open("ab") as out:
            out.write(msgspec.json.encode(checkpoint) + b"\n")
    except OSError as error:
        raise ConfigError(f"{folder}: the anchor cannot be written there: {error.strerror}") from None
    _git(folder, "add", "--", file.name)
    _git(folder, "commit", "--quiet", "--message", f"Interlock: checkpoint {checkpoint.n}", "--", file.name)
    return _git(folder, "rev-parse", "HEAD").strip()


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError(f"git cannot be run in {folder}: {error}") from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise ConfigError(f"git {arguments[0]} in {folder}: {said[-1] if said else done.returncode}")
    return done.stdout


def _post(url: str, checkpoint: Checkpoint) -> str:
    try:
        import httpx
    except ImportError:
        raise ConfigError(f"publishing anchors over HTTP needs httpx: {install_hint('http')}") from None
    digest = hashlib.sha256(checkpoint.body.encode())
    # A calendar of OpenTimestamps takes the bare digest; everybody else gets the whole statement, which is no secret.
    calendar = url.rstrip("/").endswith(_CALENDAR)
    body = (
        digest.digest() if calendar else msgspec.json.encode({"digest": digest.hexdigest(), "checkpoint": checkpoint})
    )
    kind = "application/octet-stream" if calendar else "application/json"
    # In a thread of its own: whoever publishes may be in a loop already, and only a loop can give a whole exchange up.
    with ThreadPoolExecutor(1) as thread:
        try:
            status, content = thread.submit(asyncio.run, _exchange(url, body, kind)).result()
        except (TimeoutError, ToolError) as error:
            why = str(error) or f"no whole answer within {_TIMEOUT_S:g} s"
            raise ConfigError(f"{url}: the anchor may have been taken, and there is no receipt: {why}") from None
        except httpx.HTTPError as error:
            raise ConfigError(f"{url}: the anchor could not be published: {type(error).__name__}: {error}") from None
    if status >= 300:
        raise ConfigError(f"{url}: the anchor was not taken: HTTP {status}")
    try:
        return content.decode()
    except UnicodeDecodeError:
        return base64.b64encode(content).decode()


async def _exchange(url: str, body: bytes, kind: str) -> tuple[int, bytes]:
    """The status and the whole answer of an endpoint; it gets so much time and so many bytes, however it sends them."""
    import httpx

    from interlock.tools.egress import ask_for_bounded, read_bounded

    async with asyncio.timeout(_TIMEOUT_S), httpx.AsyncClient(timeout=_TIMEOUT_S) as client:
        request = client.build_request("POST", url, content=body, headers={"Content-Type": kind})
        ask_for_bounded(request)
        answer = await read_bounded(await client.send(request, stream=True), _LIMITS)
    return answer.status_code, answer.content
