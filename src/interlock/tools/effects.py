"""What a tool that changes the world says about it: the keys, the resource, the probe, how to take it back."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any

import msgspec

from interlock.errors import ContractError
from interlock.values import Effect, Json

KeyOf = Callable[[Mapping[str, Json]], str | tuple[str, ...]]
Simulate = Callable[[Json, Mapping[str, Json], str], Json]
"""The state of one key after the call, from its state before (None: it does not exist), the arguments and the key."""
Invariants = Callable[[Mapping[str, Json], Mapping[str, Json], Mapping[str, Json]], Coroutine[Any, Any, Iterable[str]]]
"""What would be wrong with the world after the call: sentences, from the arguments and the states of its keys before
and after. Asked when the call is planned, and again under its leases."""
Probe = Callable[..., Coroutine[Any, Any, bool | None]]
"""Whether the effect landed, from the arguments and the context of the call; None if the world does not say."""

ONCE_PER = ("turn", "run", "actor", "ever")


class Compensation(msgspec.Struct, frozen=True):
    """The call that makes up for another one: a tool, and its arguments from the arguments and value of the first."""

    tool: str
    arguments: Callable[[Mapping[str, Json], Json], dict[str, Json]]


def key_of(given: str | KeyOf | None) -> KeyOf | None:
    """A key as a function; a text is a template over the arguments ('{trail_id}')."""
    if not isinstance(given, str):
        return given
    return lambda arguments: given.format_map(arguments)


def simulate_of(given: Callable[..., Json] | None) -> Simulate | None:
    """A simulation as a function of state, arguments and key; the key may be left out where there is only one."""
    if given is None or len(inspect.signature(given).parameters) >= 3:
        return given
    return lambda state, arguments, _key: given(state, arguments)


def refuse_bad_effect(tool: Any) -> None:
    """Refuse a contract whose effect cannot be planned, performed once or settled."""
    name, resource = tool.name, tool.resource
    if tool.effect is Effect.READ:
        options = ("resource", "locks", "simulate", "invariants", "probe", "compensate")
        given = [option for option in options if getattr(tool, option)]
        if given or tool.repeatable or tool.idempotent:
            raise ContractError(f"{name}: a read changes nothing, so {', '.join(given) or 'repeatable'} has no meaning")
        return
    if tool.once_per not in ONCE_PER:
        raise ContractError(f"{name}: once_per is one of {', '.join(ONCE_PER)}, not {tool.once_per!r}")
    if tool.probe is not None and not inspect.iscoroutinefunction(tool.probe):
        raise ContractError(f"{name}: a probe is an async function of the arguments and the context")
    if tool.invariants is not None and (tool.simulate is None or not inspect.iscoroutinefunction(tool.invariants)):
        raise ContractError(f"{name}: invariants are an async function of the states that simulate= says would be left")
    if tool.effect is Effect.SEND:
        if resource is not None or tool.simulate is not None:
            raise ContractError(f"{name}: a send has no state to put back; with a resource it is a write")
        return
    if resource is None:
        raise ContractError(
            f"{name}: a write tool names the resource it changes (resource=..., key=...), so that the change can be"
            " shown and taken back; what cannot be read back is a send"
        )
    _refuse_bad_resource(name, resource)
    if tool.key is None and not callable(getattr(resource, "snapshot", None)):
        raise ContractError(
            f"{name}: a write tool names its key, or its resource {resource.name!r} has snapshot() so that"
            " whatever the tool touches can be found by comparison"
        )


def _refuse_bad_resource(name: str, resource: Any) -> None:
    called = getattr(resource, "name", None)
    if not isinstance(called, str) or not called or "/" in called or not called.isprintable():
        raise ContractError(f"{name}: a resource has a name, printable and without '/', not {called!r}")
    for method in ("read_state", "restore"):
        if not inspect.iscoroutinefunction(getattr(resource, method, None)):
            raise ContractError(f"{name}: the resource {called!r} has no async {method}()")
