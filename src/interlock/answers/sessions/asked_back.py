"""What a turn has asked, as values: which arguments of which tool are wanted, or what is asked for at all."""

from __future__ import annotations

from collections.abc import Mapping

from interlock.answers.events import AskedBack
from interlock.answers.history import History
from interlock.answers.intents import Classified
from interlock.answers.requirements import CallSeen, Requirement, next_needs
from interlock.engine import ToolBinding
from interlock.reasons import FieldReason, Reason
from interlock.tools import Unclear, resolve


def describe_question(
    classified: Classified,
    missing: Requirement | None,
    history: History,
    bindings: Mapping[str, ToolBinding],
    fields: tuple[str, ...] = (),
) -> AskedBack:
    """What the question that ends a turn is about; `fields`, where a model has said which arguments it means."""
    wanted = () if missing is None else tuple(leaf.tool for leaf in next_needs(missing))
    if fields:
        return AskedBack(tool=wanted[0] if wanted else "", fields=fields)
    made = [call for call in history.own if call.record > history.replied_at and call.tool in wanted]
    if made:
        return AskedBack(tool=made[-1].tool, fields=_fields(made[-1], bindings))
    # A model that can only choose asks before it calls, where it is not clear what is meant.
    return AskedBack(intents=classified.intents if not classified.clear else ())


def _fields(call: CallSeen, bindings: Mapping[str, ToolBinding]) -> tuple[str, ...]:
    if call.reason is Reason.AMBIGUOUS:
        unclear = find_unclear(call, bindings)
        return () if unclear is None else (unclear.field,)
    return tuple(problem.field for problem in call.fields if problem.reason is FieldReason.MISSING)


def find_unclear(call: CallSeen, bindings: Mapping[str, ToolBinding]) -> Unclear | None:
    """Which argument of a call fits several known values, as the call itself has found; None if a tool asked."""
    binding = bindings.get(call.tool)
    found = None if binding is None else resolve(binding.tool.known_values, call.arguments)
    return found if isinstance(found, Unclear) else None
