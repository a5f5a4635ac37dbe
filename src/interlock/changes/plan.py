"""PREPARE for what changes the world: before-image, simulated after-image, diff, risk and digest."""

from __future__ import annotations

import msgspec

from interlock.changes.images import Image, Sight, Unreadable, diff_of, look, own_copy, risk_of, simulated
from interlock.changes.names import keys_of, local, plan_digest, within_of
from interlock.errors import ToolError
from interlock.resilience import Expired
from interlock.schema import Tool
from interlock.values import Json, Plan


class Expected(msgspec.Struct, frozen=True):
    """The claim that a call will make."""

    name: str
    request: str
    generation: int


class Planner(msgspec.Struct, frozen=True):
    """Makes the plans of one tool."""

    tool: Tool
    sight: Sight

    async def plan(self, arguments: dict[str, Json], policy: str, claim: Expected) -> Plan:
        """The plan of one call, on the world as it is now. `Refusal` or `Unreadable` if there can be none."""
        keys = keys_of(self.tool, arguments)
        within_of(self.tool, arguments)  # what it will be held under can be told, or there is no plan
        images = await look(self.tool, keys, self.sight)
        return self.on(images, keys, arguments, policy, claim)

    def on(
        self, images: tuple[Image, ...], keys: tuple[str, ...], arguments: dict[str, Json], policy: str, claim: Expected
    ) -> Plan:
        """The plan of one call on these images."""
        tool = self.tool
        before, after = [image.state for image in images], simulated(tool, keys, images, arguments)
        versions = tuple(image.version for image in images)
        return Plan(
            digest=plan_digest(self.sight.digest, (tool.name, keys, arguments), policy, versions),
            keys=keys,
            before=before,
            after=after,
            diff=diff_of(tool, keys, before, after),
            risk=risk_of(tool.effect, before, after, whole=tool.key is None),
            versions=versions,
            claim=claim.name,
            generation=claim.generation,
        )

    async def violations(self, plan: Plan, arguments: dict[str, Json]) -> tuple[str, ...]:
        """What the tool's invariants find wrong with the states that the plan would leave."""
        tool, sight = self.tool, self.sight
        if tool.invariants is None or plan.after is None:
            return ()
        if sight.faults is not None:
            sight.faults.at("change.invariants")
        before, after = (dict(zip(map(local, plan.keys), states, strict=True)) for states in (plan.before, plan.after))
        try:
            asked = tool.invariants(*own_copy((arguments, before, after)))
            found = await sight.deadlines.within(tool.timeout_s, asked)
            return tuple(str(item) for item in ((found,) if isinstance(found, str) else found) if item)
        except Expired:
            raise Unreadable(f"the invariants of {tool.name!r} gave no answer within {tool.timeout_s:g} s") from None
        except ToolError as error:
            raise Unreadable(f"the invariants of {tool.name!r} cannot be checked: {error}") from None
        except Exception as error:  # noqa: BLE001 - the tool's own function
            why = f"{type(error).__name__}: {error}"
            raise Unreadable(f"the invariants of {tool.name!r} cannot be checked: {why}") from None
