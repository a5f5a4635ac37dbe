"""PREPARE for what changes the world: before-image, simulated after-image, diff, risk and digest."""

from __future__ import annotations

import msgspec

from interlock.changes.images import Image, Sight, diff_of, look, risk_of, simulated
from interlock.changes.names import keys_of, plan_digest
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
