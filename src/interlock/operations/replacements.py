"""Another policy or other tools in place of those a runtime had: the ledger says which, and who has done it."""

from __future__ import annotations

from interlock.operations.ledger_writer import LedgerEntry, LedgerWriter
from interlock.policy import Ruleset
from interlock.values import Json


async def record_replacement(writer: LedgerWriter, before: Ruleset, after: Ruleset) -> int:
    """Write down what calls are governed by from now on; the number of the record."""
    what: dict[str, Json] = {
        "from": before.version,
        "to": after.version,
        "file": after.policy.file,
        "tools": {name: version for name, version in after.versions.items() if before.versions.get(name) != version},
        "gone": sorted(before.versions.keys() - after.versions.keys()),
    }
    return await writer.commit(LedgerEntry("policy", "replaced", what))
