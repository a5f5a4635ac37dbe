"""What the records say that budgets were charged: as much as the accounts of the store must hold, and no more."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from interlock.ports import Spent, Store
from interlock.records import Changed, Charge, Stored
from interlock.values import Attempt

_MEASURES = ("calls", "money", "time")


class _Charging(msgspec.Struct, gc=False):
    """The parts of a record's content that say what was charged: a pass over millions of reads takes no more apart."""

    charged: tuple[Charge, ...] = ()
    cost_micros: int = 0
    attempts: tuple[Attempt, ...] = ()
    change: Changed | None = None

    def charges(self) -> tuple[Charge, ...]:
        """What budgets were charged; in older records of changes a scope stands for one call, and what it took."""
        if self.change is None or not self.change.charged:
            return self.charged
        ms = -(-sum(made.duration_us for made in self.attempts) // 1000)
        return tuple(Charge(scope, 1, self.cost_micros, ms) for scope in self.change.charged)


_decode = msgspec.json.Decoder(_Charging).decode


class BudgetFold:
    """Sums of charges by scope. Accounts only grow, and each grows in the commit of the record that says so.

    So an account that is read after the records holds at least their sum, and one that was read before them no more.
    """

    def __init__(self) -> None:
        self._sums: dict[str, list[int]] = {}
        self._before: dict[str, Spent] = {}

    def see(self, record: Stored) -> None:
        """Take one record in, in whose text there is something of charges."""
        try:
            charges = _decode(record.body).charges()
        except msgspec.DecodeError:
            return  # the chain has said that it is not what was written
        for charge in charges:
            spent = self._sums.setdefault(charge.scope, [0, 0, 0])
            spent[0] += charge.calls
            spent[1] += charge.cost_micros
            spent[2] += charge.ms

    async def look(self, store: Store) -> None:
        """Read the accounts, before the records up to now are."""
        self._before = await store.all_spent()

    async def compare(self, store: Store) -> list[str]:
        """What the accounts hold otherwise than the records say."""
        before = self._before
        await self.look(store)
        return [*self._less_faults(self._before), *self._more_faults(before)]

    def _less_faults(self, accounts: dict[str, Spent]) -> Iterator[str]:
        for scope, sums in sorted(self._sums.items()):
            if scope not in accounts:
                yield f"budget {scope}: has spent something by the ledger, and is not in the store: it was deleted"
                continue
            less = _measures(tuple(sums), accounts[scope])
            if less:
                yield f"budget {scope}: has spent less than the ledger says ({less}): it was set back"

    def _more_faults(self, accounts: dict[str, Spent]) -> Iterator[str]:
        for scope, spent in accounts.items():
            more = _measures((spent.calls, spent.cost_micros, spent.ms), Spent(*self._sums.get(scope, ())))
            if more:
                yield f"budget {scope}: has spent more than the ledger says ({more}): it was raised, or invented"


def _measures(larger: tuple[int, ...], smaller: Spent) -> str:
    """By name: what there is more of. No numbers, as those of a budget in use are others at each look."""
    amounts = (smaller.calls, smaller.cost_micros, smaller.ms)
    return ", ".join(name for name, one, other in zip(_MEASURES, larger, amounts, strict=True) if one > other)
