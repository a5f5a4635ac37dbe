"""What the author of a tool may say about it beside its function, checked where it is said.

A wrong option is a sentence at declaration, not an error of Python's at the first call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from enum import StrEnum
from math import isfinite
from typing import Any, TypeVar

import msgspec

from interlock.canonical import did_you_mean
from interlock.config import parse_duration
from interlock.errors import ConfigError, ContractError
from interlock.tools.bounds import Limits, RetryRule
from interlock.tools.effect_words import check_says
from interlock.tools.effects import ONCE_PER, check_compensation, key_of, simulate_of
from interlock.tools.known_values import check_known_values
from interlock.tools.result_fields import check_fields
from interlock.tools.roles import check_roles
from interlock.values import Effect, Trust

Word = TypeVar("Word", bound=StrEnum)


def check_options(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options as a `Tool` holds them; ContractError names the one that is wrong and what to write instead."""
    checked = {}
    for option, value in given.items():
        check = _CHECKS.get(option)
        if check is None:
            hint = did_you_mean(option, _CHECKS) or f"; a tool's options are {', '.join(sorted(_CHECKS))}"
            raise ContractError(f"{name}: there is no option {option!r}{hint}")
        checked[option] = check(f"{name}: {option}", value)
    if checked.get("effect") is None:
        raise ContractError(f'{name}: say what it does to the world: effect="read", "write" or "send"')
    return checked


def _check_word(kind: type[Word]) -> Callable[[str, Any], Word]:
    def check(where: str, given: Any) -> Word:
        words = [word.value for word in kind]
        if given not in words:
            hint = did_you_mean(given, words) if isinstance(given, str) else ""
            raise ContractError(f"{where} is {', '.join(words)}, not {given!r}{hint}")
        return kind(given)

    return check


def _check_effect(where: str, given: Any) -> Effect | None:
    return None if given is None else _check_word(Effect)(where, given)


def _check_once_per(where: str, given: Any) -> str:
    if given not in ONCE_PER:
        hint = did_you_mean(given, ONCE_PER) if isinstance(given, str) else ""
        raise ContractError(f"{where} is one of {', '.join(ONCE_PER)}, not {given!r}{hint}")
    return str(given)


def _check_seconds(where: str, given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not (isfinite(given) and given > 0):
        raise ContractError(f"{where} must be a number of seconds above 0, not {given!r}")
    return given


def _check_deadline(where: str, given: Any) -> float | None:
    return None if given is None else _check_seconds(where, given)


def _check_names(where: str, given: Any) -> frozenset[str]:
    if isinstance(given, str):
        raise ContractError(f"{where} is a set of names; write {{{given!r}}}")
    if not isinstance(given, Iterable):
        raise ContractError(f"{where} is a set of names, not {given!r}")
    names = list(given)
    wrong = [item for item in names if not isinstance(item, str) or not item]
    if wrong:
        raise ContractError(f"{where} is a set of names, and {wrong[0]!r} is not a name")
    return frozenset(names)


def _check_values(kind: type[msgspec.Struct]) -> Callable[[str, Any], Any]:
    """For options that are a value of ours: it is one, and what stands in it is in bounds."""

    def check(where: str, given: Any) -> Any:
        if not isinstance(given, kind):
            fields = ", ".join(f"{field}=..." for field in kind.__struct_fields__)
            raise ContractError(f"{where} is interlock.{kind.__name__}({fields}), not {given!r}")
        for field in msgspec.structs.fields(kind):
            value = getattr(given, field.name)
            if isinstance(value, float) and not isfinite(value):
                raise ContractError(f"{where}.{field.name} must be a finite number, not {value}")
            try:
                msgspec.convert(value, field.type)
            except msgspec.ValidationError as error:
                raise ContractError(f"{where}.{field.name} cannot be {value!r}: {error}") from None
        return given

    return check


def _check_condition(where: str, given: Any) -> str | None:
    if given is not None and not isinstance(given, str):
        raise ContractError(f"{where} is a condition in CEL, as text ('args.force'), not {given!r}")
    return given


def _check_retention(where: str, given: Any) -> timedelta | None:
    if given is None or isinstance(given, timedelta):
        kept = given
    else:
        try:
            kept = timedelta(seconds=parse_duration(given))
        except (ConfigError, TypeError, OverflowError):
            raise ContractError(f"{where} is a stretch of time, such as '30d' or '12h', not {given!r}") from None
    if kept is not None and kept <= timedelta(0):
        raise ContractError(f"{where} must be longer than nothing, not {given!r}")
    return kept


def _check_truth(where: str, given: Any) -> bool:
    if not isinstance(given, bool):
        raise ContractError(f"{where} is True or False, not {given!r}")
    return given


def _check_refusals(where: str, given: Any) -> tuple[type[Exception], ...]:
    kinds = (given,) if isinstance(given, type) else tuple(given) if isinstance(given, list | tuple) else None
    if kinds is None or not all(isinstance(kind, type) and issubclass(kind, Exception) for kind in kinds):
        raise ContractError(f"{where} are classes of exceptions, such as (ValueError,), not {given!r}")
    if Exception in kinds:
        raise ContractError(f"{where}: Exception is every mistake that a program can make; name those that refuse")
    return kinds


def _accept(_where: str, given: Any) -> Any:
    """For what is checked together with the effect."""
    return given


_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "effect": _check_effect,
    "timeout_s": _check_seconds,
    "deadline_s": _check_deadline,
    "retry": _check_values(RetryRule),
    "limits": _check_values(Limits),
    "capabilities": _check_names,
    "redact": _check_names,
    "retention": _check_retention,
    "trust": _check_word(Trust),
    "free": _check_names,
    "outsiders": _check_names,
    "own": _check_names,
    "roles": check_roles,
    "recalls": _check_names,
    "known_values": check_known_values,
    "fields": check_fields,
    "egress": _accept,
    "key": key_of,
    "locks": key_of,
    "resource": _accept,
    "simulate": simulate_of,
    "invariants": _accept,
    "probe": _accept,
    "compensate": check_compensation,
    "review_when": _check_condition,
    "operator": _check_truth,
    "once_per": _check_once_per,
    "repeatable": _check_truth,
    "idempotent": _check_truth,
    "says": check_says,
    "refusals": _check_refusals,
}
