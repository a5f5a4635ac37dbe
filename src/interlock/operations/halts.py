"""The kill switch: stop a tool, an actor, a run or everything, and let it run again."""

from __future__ import annotations

from interlock.errors import ConfigError
from interlock.operations.ledger_writer import LedgerEntry, LedgerWriter
from interlock.principals import normal_name
from interlock.transitions import Halt, Lift


async def halt(writer: LedgerWriter, scope: str, reason: str) -> int:
    """Stop a tool, an actor, a run or everything, in every process within a second."""
    scope = _normal_scope(scope)
    entry = LedgerEntry("halt", "halted", {"scope": scope, "state": "halted", "reason": reason})
    return await writer.commit(entry, Halt(scope, writer.by, reason))


async def unhalt(writer: LedgerWriter, scope: str) -> int:
    """Let it run again."""
    scope = _normal_scope(scope)
    return await writer.commit(LedgerEntry("halt", "lifted", {"scope": scope, "state": "lifted"}), Lift(scope))


def _normal_scope(scope: str) -> str:
    """A scope as it is kept: the name of an actor in the form in which names are compared."""
    refuse_odd_scope(scope)
    kind, _, name = scope.partition(":")
    return f"actor:{normal_name(name)}" if kind == "actor" else scope


def refuse_odd_scope(scope: str) -> None:
    """Refuse what names nothing that can be stopped."""
    kind, _, name = scope.partition(":") if isinstance(scope, str) else ("", "", "")
    if scope != "all" and (kind not in ("tool", "actor", "run") or not name):
        raise ConfigError(f"{scope!r} cannot be halted: say all, tool:NAME, actor:NAME or run:NAME")
