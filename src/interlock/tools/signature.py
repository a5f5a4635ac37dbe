"""How a function becomes a contract: its name and description, what it takes and gives, and how it is called."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, get_type_hints

import msgspec
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError

from interlock.errors import ContractError
from interlock.tools.inputs import Parsed
from interlock.values import Context

if TYPE_CHECKING:
    from pydantic import BaseModel

Body = Callable[[Parsed, Context | None], Any]
"""The one way a tool's function is called: with arguments that passed its contract."""


_CONTEXT = (Context, "Context")


class Signature(msgspec.Struct, frozen=True, kw_only=True):
    """What a function says about itself."""

    takes: type[BaseModel]
    gives: Any
    body: Body
    wants_context: bool


class _Parameters(msgspec.Struct, frozen=True):
    """Type and default (`...`: none) of each argument, the parameter that takes the context, and the return type."""

    types: dict[str, Any]
    defaults: dict[str, Any]
    context_name: str | None
    gives: Any


def function_of(given: object) -> Callable[..., Any]:
    """The function to make a tool of; a sentence for what is none."""
    if isinstance(given, staticmethod):
        return function_of(given.__func__)
    if isinstance(given, classmethod):
        name = given.__func__.__name__
        raise ContractError(
            f"{name}: a classmethod has no class yet where it is decorated; below the class, write"
            f" tool(effect=...)(Class.{name})"
        )
    if isinstance(given, type):
        raise ContractError(
            f"{given.__name__} is a class; a tool is a function, a method of an object or an object that can be called"
        )
    if not callable(given):
        raise ContractError(f"{given!r} is not a function, so it cannot be a tool")
    for called in (given, type(given).__call__):
        if inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called):
            raise ContractError(f"{_name_function(given)}: generator tools are refused; return one whole value")
    return given


def name_of(function: Callable[..., Any]) -> str:
    """What a function is called; a sentence for one that has no name."""
    name = getattr(function, "__name__", None)
    if not isinstance(name, str) or name == "<lambda>":
        raise ContractError(
            f'{_name_function(function)} has no name of its own; give it one: tool(effect=..., name="...")'
        )
    return name


def describe(function: Callable[..., Any]) -> str:
    """Its docstring. Of an object, that of its `__call__`; what the standard library says about partials is none."""
    if isinstance(function, partial):
        return describe(function.func)
    if not inspect.isroutine(function) and not hasattr(function, "__wrapped__"):
        return inspect.getdoc(type(function).__call__) or inspect.getdoc(type(function)) or ""
    return inspect.getdoc(function) or ""


def is_async(function: Callable[..., Any]) -> bool:
    """Whether a call of it has to be awaited."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def read_signature(function: Callable[..., Any], name: str, around: dict[str, Any]) -> Signature:
    """The contract in a function's annotations; names in them are looked up in `around`, too."""
    parameters = _read_parameters(function, name, _read_hints(function, name, around))
    model, aliases = _build_model(name, parameters)
    return Signature(
        takes=model,
        gives=parameters.gives,
        body=_bind(function, aliases, parameters.context_name),
        wants_context=parameters.context_name is not None,
    )


def _read_hints(function: Callable[..., Any], name: str, around: dict[str, Any]) -> dict[str, Any]:
    inner = function.func if isinstance(function, partial) else function
    if not inspect.isroutine(inner) and not hasattr(inner, "__wrapped__"):
        inner = type(inner).__call__
    try:
        return get_type_hints(inner, localns=around, include_extras=True)
    except (NameError, AttributeError, TypeError, SyntaxError) as error:
        raise ContractError(f"{name}: an annotation cannot be resolved: {error}") from None


def _read_parameters(function: Callable[..., Any], name: str, hints: dict[str, Any]) -> _Parameters:
    types: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    context_name = None
    for parameter in _list_parameters(function, name):
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise ContractError(f"{name}: parameter {parameter} has no name a caller can use; spell it out")
        if parameter.name not in hints:
            raise ContractError(f"{name}: parameter {parameter.name!r} has no annotation; {_way_out(parameter.name)}")
        if hints[parameter.name] is Context:
            context_name = parameter.name
            continue
        types[parameter.name] = hints[parameter.name]
        defaults[parameter.name] = ... if parameter.default is parameter.empty else parameter.default
    if "return" not in hints:
        raise ContractError(f"{name}: the return type has no annotation; a contract needs it (Any is allowed)")
    return _Parameters(types, defaults, context_name, hints["return"])


def _list_parameters(function: Callable[..., Any], name: str) -> list[inspect.Parameter]:
    """What a caller may pass. What a partial fixes by keyword is no argument: a model must not replace it."""
    try:
        found = inspect.signature(function).parameters.values()
    except (ValueError, TypeError):
        raise ContractError(f"{name}: its parameters cannot be read; write an annotated function around it") from None
    fixed = set(function.keywords) if isinstance(function, partial) else set()
    return [parameter for parameter in found if parameter.name not in fixed]


def _way_out(parameter: str) -> str:
    if parameter in ("self", "cls"):
        return "a method becomes a tool on its object, where it is known what to call: tool(effect=...)(thing.method)"
    return "a contract needs its type"


def _build_model(name: str, parameters: _Parameters) -> tuple[type[BaseModel], dict[str, str]]:
    """A strict model of the parameters; names that Pydantic keeps for itself are carried as aliases."""
    # Here, so that what only imports the gate does not load everything that Pydantic makes models with.
    from pydantic import BaseModel, ConfigDict, Field, create_model

    aliases: dict[str, str] = {}
    fields: dict[str, Any] = {}
    for parameter, default in parameters.defaults.items():
        clash = parameter.startswith(("_", "model_")) or hasattr(BaseModel, parameter)
        attribute = f"arg_{parameter.strip('_')}" if clash else parameter
        while clash and (attribute in aliases or attribute in parameters.defaults):
            attribute += "_"  # `_x` beside `arg_x` or `__x`: each has a field of its own
        aliases[attribute] = parameter
        fields[attribute] = (parameters.types[parameter], Field(default, alias=parameter) if clash else default)
    try:
        config = ConfigDict(strict=True, extra="forbid", populate_by_name=False)
        return create_model(name.replace(".", "_"), __config__=config, **fields), aliases
    except (PydanticSchemaGenerationError, PydanticUserError) as error:
        raise ContractError(f"{name}: a parameter's type cannot be described: {error}") from None


def takes_context(function: Callable[..., Any]) -> bool:
    """Whether a function of one dict takes the context of the call behind it."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # of a builtin nothing is known
        return False
    places = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    return len(places) > 1 and (places[1].default is places[1].empty or places[1].annotation in _CONTEXT)


def _bind(function: Callable[..., Any], aliases: dict[str, str], context_name: str | None) -> Body:
    """How validated fields become the function's keyword arguments."""
    plain = all(attribute == parameter for attribute, parameter in aliases.items())

    def call(parsed: Parsed, context: Context | None) -> Awaitable[Any] | Any:
        given = parsed.bound
        if not plain:
            given = {parameter: given[attribute] for attribute, parameter in aliases.items()}
        if context_name is not None:
            given = {**given, context_name: context}
        return function(**given)

    if plain and context_name is None:
        return lambda parsed, _context: function(**parsed.bound)
    return call


def _name_function(function: Callable[..., Any]) -> str:
    if isinstance(function, partial):
        return f"a partial of {_name_function(function.func)}"
    name = getattr(function, "__qualname__", None) or f"an object of class {type(function).__name__}"
    return "a lambda" if name.endswith("<lambda>") else str(name)
