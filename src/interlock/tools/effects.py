"""What a tool that changes the world says about it: the keys, the resource, the probe, how to take it back."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Coroutine, Iterable, Mapping
from string import Formatter
from typing import Any, cast

import msgspec

from interlock.canonical import did_you_mean
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


def key_of(where: str, given: Any) -> KeyOf | None:
    """A key as a function; a text is a template over the arguments ('{order_id}')."""
    if given is None or callable(given):
        return cast("KeyOf | None", given)
    if not isinstance(given, str):
        raise ContractError(f"{where} is a template ('{{order_id}}') or a function of the arguments, not {given!r}")
    return KeyTemplate(where, given)


class KeyTemplate:
    """A key that is written as a text with arguments in braces."""

    def __init__(self, where: str, text: str) -> None:
        self._where = where
        self.text = text
        try:
            self.fields = {
                str(field) for _text, field, _format, _conversion in Formatter().parse(text) if field is not None
            }
        except ValueError as error:
            raise ContractError(f"{where}: {text!r} is not a template: {error}") from None

    def __call__(self, arguments: Mapping[str, Json]) -> str:
        return self.text.format_map(arguments)

    def refuse_unknown(self, parameters: Iterable[str]) -> None:
        """A template can only name what the tool takes."""
        known = tuple(parameters)
        for field in sorted(self.fields):
            argument = re.split(r"[.\[]", field)[0]
            if argument not in known:
                hint = did_you_mean(argument, known)
                raise ContractError(f"{self._where}: {self.text!r} names {argument!r}, which is no parameter{hint}")


def simulate_of(where: str, given: Any) -> Simulate | None:
    """A simulation as a function of state, arguments and key; the key may be left out where there is only one."""
    if given is None or takes_positional(given, 3):
        return cast("Simulate | None", given)
    if not takes_positional(given, 2):
        raise ContractError(f"{where} is a function of state and arguments (and, where there are several, the key)")
    return lambda state, arguments, _key: given(state, arguments)


def check_compensation(where: str, given: Any) -> Compensation | None:
    """The call that makes up for another one; a sentence for what could not be made when an undo needs it."""
    if given is None:
        return None
    if not isinstance(given, Compensation):
        raise ContractError(f"{where} is interlock.Compensation(tool, arguments), not {given!r}")
    if not isinstance(given.tool, str) or not given.tool:
        raise ContractError(f"{where}: Compensation has the name of a tool, as text, not {type(given.tool).__name__}")
    if inspect.iscoroutinefunction(given.arguments) or not takes_positional(given.arguments, 2):
        raise ContractError(
            f"{where}: the arguments of {given.tool!r} are made by a plain function of two parameters:"
            " the arguments and the value of the call that it makes up for"
        )
    return given


def takes_positional(function: Any, count: int) -> bool:
    """Whether it can be called with so many values by position."""
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:  # of other parameters, or nothing that can be called
        return False
    except ValueError:  # a function of C that does not say: it is taken at its word
        return True
    return True


def refuse_bad_effect(tool: Any) -> None:
    """Refuse a contract whose effect cannot be planned, performed once or settled."""
    name, resource = tool.name, tool.resource
    if tool.effect is Effect.READ:
        options = ("resource", "locks", "simulate", "invariants", "probe", "compensate", "says")
        given = [option for option in options if getattr(tool, option)]
        if given or tool.repeatable or tool.idempotent:
            raise ContractError(f"{name}: a read changes nothing, so {', '.join(given) or 'repeatable'} has no meaning")
        return
    if tool.idempotent and not tool.wants_context:
        raise ContractError(
            f"{name}: idempotent says that the other side honours the idempotency key; take `context: Context` and hand"
            " on context.idempotency_key, or leave idempotent out"
        )
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
