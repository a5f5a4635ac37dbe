"""PREPARE for what changes the world: snapshot before, simulated snapshot after, diff, risk and digest."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from interlock.changes.differences import show_difference
from interlock.changes.keys import TakingBack, keys_of, local_key, locks_of, plan_digest
from interlock.changes.snapshots import (
    Snapshot,
    SnapshotReader,
    Unreadable,
    lay_over,
    own_copy,
    read_snapshots,
    risk_of,
    simulate,
)
from interlock.errors import ToolError, safe_message
from interlock.resilience import Expired
from interlock.tools import Tool, redactor_of
from interlock.tools.tracebacks import log_traceback
from interlock.values import Json, Plan


class Expected(msgspec.Struct, frozen=True):
    """The claim that a call will make."""

    name: str
    request: str
    generation: int
    call_name: str = ""
    """What stands for the caller's own id of the call."""
    taking_back: TakingBack = TakingBack()
    landings: int | None = None
    """What had landed on its keys, where it stands and is to be made again as another change came after it."""


class Planner(msgspec.Struct, frozen=True):
    """Makes the plans of one tool."""

    tool: Tool
    snapshot_reader: SnapshotReader

    async def plan(
        self, arguments: dict[str, Json], policy: str, claim: Expected, overlay: Mapping[str, Json] | None = None
    ) -> Plan:
        """The plan of one call, on the world as it is now. `Refusal` or `Unreadable` if there can be none.

        With an overlay, on the world as it would be then; the versions are those of now.
        """
        keys = keys_of(self.tool, arguments)
        locks_of(self.tool, arguments)  # what it will be held under can be told, or there is no plan
        snapshots = await read_snapshots(self.tool, keys, self.snapshot_reader)
        if overlay:
            snapshots = lay_over(keys, snapshots, overlay)
        return await self.on(snapshots, keys, arguments, policy, claim)

    async def on(
        self,
        snapshots: tuple[Snapshot, ...],
        keys: tuple[str, ...],
        arguments: dict[str, Json],
        policy: str,
        claim: Expected,
    ) -> Plan:
        """The plan of one call on these snapshots."""
        tool = self.tool
        before, after = [snapshot.state for snapshot in snapshots], simulate(tool, keys, snapshots, arguments)
        versions = tuple([snapshot.version for snapshot in snapshots])
        return Plan(
            digest=plan_digest(self.snapshot_reader.digest, tool.name, keys, arguments, policy, versions),
            keys=keys,
            before=before,
            after=after,
            diff=await show_difference(tool, keys, before, after),
            risk=risk_of(tool.effect, before, after, whole=tool.key is None),
            versions=versions,
            key_versions=snapshots[0].key_versions if snapshots else {},
            claim=claim.name,
            generation=claim.generation,
        )

    async def violations(self, plan: Plan, arguments: dict[str, Json]) -> tuple[str, ...]:
        """What the tool's invariants find wrong with the states that the plan would leave."""
        tool, snapshot_reader = self.tool, self.snapshot_reader
        if tool.invariants is None or plan.after is None:
            return ()
        if snapshot_reader.faults is not None:
            snapshot_reader.faults.at("change.invariants")
        before, after = (
            dict(zip(map(local_key, plan.keys), states, strict=True)) for states in (plan.before, plan.after)
        )
        try:
            asked = tool.invariants(*own_copy((arguments, before, after)))
            found = await snapshot_reader.deadlines.within(tool.timeout_s, asked)
            return tuple(str(item) for item in ((found,) if isinstance(found, str) else found) if item)
        except Expired:
            raise Unreadable(f"the invariants of {tool.name!r} gave no answer within {tool.timeout_s:g} s") from None
        except ToolError as error:
            message = f"the invariants of {tool.name!r} cannot be checked: {error}"
            raise Unreadable(message, before, after) from None
        except Exception as error:  # noqa: BLE001 - the tool's own function
            log_traceback(f"invariants of {tool.name!r}", error, redactor_of(tool, arguments, before, after))
            message = f"the invariants of {tool.name!r} cannot be checked: {safe_message(error)}"
            raise Unreadable(message, before, after) from None
