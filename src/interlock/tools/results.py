"""What a tool returned, read into one shape: value or honest failure or honest nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from math import isfinite
from typing import Any, get_args, get_origin

import msgspec
from pydantic.errors import PydanticSchemaGenerationError
from pydantic_core import PydanticSerializationError, ValidationError

from interlock.canonical import MAX_DEPTH, WHATEVER, Refusal, canonical
from interlock.errors import ContractError
from interlock.reasons import Reason
from interlock.tools.long_texts import LONG, is_longer, size_of
from interlock.tools.reported_failures import SAYS_NOTHING_OF_FAILURE, reported_failure
from interlock.values import FieldProblem, Json, Problem, Result, Status, clean

_MOST_USD = 1e9
LONGEST_MESSAGE = 2000
"""Characters of a sentence about a failure."""
_CONTAINERS = (list, dict, tuple, set, frozenset)
_OPEN_TYPES: dict[Any, type] = {Any: object, dict: dict, list: list}
_OK = Status.OK  # looked up once: on Python 3.11 a member of an enum costs as much as a call
_MOST_FIELDS = 64
"""An object with more is not a short one."""
_FLAT = {str, int, float, bool, type(None)}
"""Types whose values hold no others; enums of texts and numbers are added as they are met."""
_MOST_FLAT = 200
"""Types that are remembered so: an application that makes enums as it goes must not fill the memory with them."""
_EXACT = (int, str, bool)
"""Types of which a value is what it is written as (but for a text that is none): no need to let Pydantic look."""
_WHOLE = 2**63
"""Numbers below it are written as they are."""
_ROOM = 4
"""A type may leave out some of what it is given: only what holds so many times the limit is refused unread."""
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder(order="deterministic").encode


class Reading(msgspec.Struct, frozen=True, gc=False):
    """A tool's answer after it was read: what the outcome and the record are made from."""

    status: Status
    value: Json = None
    text: bytes = b"null"
    is_bare: bool = False
    """Nothing but a value: the tool said no more about it."""
    returned: bool = False
    """Whether the tool came to its end: then it has done what it does, whatever its answer is worth."""
    said: str = ""
    """What was said about the value; empty where it speaks for itself."""
    problem: Problem | None = None
    snippets: tuple[str, ...] = ()
    metadata: dict[str, Json] = {}
    confidence: float | None = None
    sources: tuple[str, ...] = ()
    cost_micros: int | None = None
    traceback: str = ""
    """Of what the tool's own code raised, redacted: it lies beside the record, for whoever wrote the tool."""
    rejected: Json = None
    """What came back instead of a value, where it is JSON: what is redacted in it is so in what is said."""


class Output:
    """The contract of a result: the annotated type, its schema, and how to turn it into JSON."""

    def __init__(self, annotation: Any, where: str) -> None:
        from pydantic import TypeAdapter  # loaded with the first tool, not with the library

        self.has_metadata = annotation is Result or get_origin(annotation) is Result
        if annotation is Result:
            annotation = Any
        elif get_origin(annotation) is Result:
            (annotation,) = get_args(annotation)
        self.nothing_is_ok = annotation is None or annotation is type(None)
        try:
            adapter: TypeAdapter[Any] = TypeAdapter(annotation)
            self.schema: dict[str, Json] = adapter.json_schema(mode="serialization")
        except (PydanticSchemaGenerationError, TypeError) as error:
            raise ContractError(f"{where}: the return type cannot be described: {error}") from None
        self._adapter = adapter
        self._validate = adapter.validator.validate_python
        self._dump = adapter.serializer.to_python
        self._open = _OPEN_TYPES.get(annotation) if isinstance(annotation, type) or annotation is Any else None
        if get_origin(annotation) in (dict, list) and set(get_args(annotation)) <= {str, Any}:
            self._open = get_origin(annotation) if Any in get_args(annotation) else None
        self.takes_open_dicts = self._open in (dict, object)
        """Whether a dict may be returned, of which nothing is promised."""
        self._as_given = str if annotation is str else self._open
        self.exact = annotation if isinstance(annotation, type) and annotation in _EXACT else None

    def schemas(self) -> tuple[dict[str, Json], ...]:
        """The schema by the names that others see, and by those under which a value is written down."""
        return self.schema, self._adapter.json_schema(mode="serialization", by_alias=False)

    def is_over(self, value: Any, max_bytes: int) -> str | None:
        """What is said of a value that is plainly over the limit, which shows before it is checked or written out."""
        if self._as_given is not None and isinstance(value, self._as_given):
            over = is_longer(value, max_bytes)
            return f"the result has more than the {max_bytes:,} bytes allowed" if over else None
        most = _ROOM * max_bytes
        if not is_longer(value, most):
            return None
        return f"the tool returned more than {most:,} characters for a result of {max_bytes:,} bytes at most"

    def read_open(self, value: Any) -> tuple[Json, bytes] | None:
        """The value as JSON and as text, where its type promises nothing of what is inside; None where it does."""
        if self._open is not None and isinstance(value, self._open):
            try:
                text = _encode(value)
                # NaN is written as null, and depth shows as brackets: a text with such a trace takes the long way.
                if b"null" not in text and text.count(b"{") + text.count(b"[") <= MAX_DEPTH:
                    return _decode(text), text
            except (TypeError, ValueError, RecursionError):
                pass  # something inside is not: let the type's own serializer try
        return None

    def read(self, value: Any) -> tuple[Json, bytes]:
        """The value as JSON and as text, checked against the type; `Refusal` if it is not what the tool promised."""
        written = self.read_open(value)
        if written is not None:
            return written
        try:
            if type(value) is self.exact and (type(value) is not str or value.isascii()):
                return value, canonical(value, max_bytes=WHATEVER)
            if self._open is not None:  # any other type says itself what it is made of
                _refuse_endless(value)
            checked = self._validate(value)
            # By default Pydantic only warns where a value is not of its type.
            plain = self._dump(checked, mode="json", warnings="error")
            text = canonical(plain, max_bytes=WHATEVER)
            if b"null" in text:
                _refuse_lost_numbers(self._dump(checked, mode="python"))
        except ValidationError as error:
            found = error.errors(include_url=False, include_input=False)
            raise Refusal(*(FieldProblem(".".join(map(str, e["loc"])) or "result", e["msg"]) for e in found)) from None
        except (PydanticSerializationError, UnicodeError, ValueError, RecursionError) as error:
            raise Refusal(f"result: cannot be written as JSON ({error})") from None
        return plain, text


def _refuse_endless(value: Any) -> None:
    """What is gone through to be written may have no end: it would take all memory, and nothing could stop it."""
    if isinstance(value, Iterator):
        raise Refusal(f"result: a {type(value).__name__} may have no end; return a list of what is in it")
    if isinstance(value, dict):
        value = dict.values(value)  # its own: those of a class of somebody else's may have no end
    elif not isinstance(value, list | tuple | set | frozenset):
        return
    for item in value:
        _refuse_endless(item)


def _refuse_lost_numbers(value: Any) -> None:
    """JSON has no NaN: where a number would silently become null, the result is refused instead."""
    if isinstance(value, float) and not isfinite(value):
        raise Refusal(f"result: {value} is not a JSON number")
    if isinstance(value, dict):
        for item in value.values():
            _refuse_lost_numbers(item)
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            _refuse_lost_numbers(item)


def read_short(raw: Any, output: Output, nothing_is_ok: bool, max_bytes: int) -> Reading | None:
    """Read what a tool returned if that is little work, as on the event loop; None where it is long."""
    try:
        if type(raw) is dict and raw and output.takes_open_dicts:
            reading = _read_flat(raw, max_bytes)
            if reading is not None:
                return reading
        if size_of(raw) > LONG:
            return None
        found = output.read_open(raw) if type(raw) is dict and raw else None
        if found is not None and SAYS_NOTHING_OF_FAILURE(found[0]) and len(found[1]) <= max_bytes:
            _remember_flat(raw.values())
            return Reading(_OK, found[0], found[1], True, True)
    except Exception as error:  # noqa: BLE001 - as below
        return _unreadable(raw, error)
    return read_result(raw, output, nothing_is_ok, max_bytes)


def _read_flat(raw: dict[str, Any], max_bytes: int) -> Reading | None:
    """The usual answer, in few steps: a short object of texts and numbers; None where it is any other."""
    if len(raw) > _MOST_FIELDS:
        return None
    characters = 0
    try:
        for name, value in raw.items():
            kind = type(value)
            if kind is str:
                characters += len(value)
            elif kind not in _FLAT:
                return None
            characters += len(name)
        if characters > LONG:
            return None
        text = _encode(raw)
    except (TypeError, ValueError):  # a name that is no text, half a character, a number without end: the long way
        return None  # says so
    if b"null" in text or len(text) > max_bytes:  # it may have been NaN
        return None
    value = _decode(text)
    return Reading(_OK, value, text, True, True) if SAYS_NOTHING_OF_FAILURE(value) else None


def _remember_flat(values: Iterable[Any]) -> None:
    """Enums of texts and numbers, whose sizes are their own: the next answer with one takes the short way."""
    for kind in map(type, values):
        if kind not in _FLAT and issubclass(kind, Enum) and issubclass(kind, str | int) and len(_FLAT) < _MOST_FLAT:
            _FLAT.add(kind)


def read_result(raw: Any, output: Output, nothing_is_ok: bool, max_bytes: int) -> Reading:
    """Read what a tool returned; never raises for what a tool may get wrong."""
    if type(raw) is int and output.exact is int and -_WHOLE < raw < _WHOLE:  # it says nothing but itself
        text = _encode(raw)
        if len(text) <= max_bytes:
            return Reading(_OK, raw, text, True, True)
    try:
        return _read_result(raw, output, nothing_is_ok, max_bytes)
    except Exception as error:  # noqa: BLE001 - an object of somebody else's, some of which cannot be asked if they are empty
        return _unreadable(raw, error)


def _unreadable(raw: Any, error: Exception) -> Reading:
    message = f"the tool returned a {type(raw).__name__}, which cannot be read: it raised {type(error).__name__}"
    return _fail(Reason.BAD_RESULT, message, None)


def _read_result(raw: Any, output: Output, nothing_is_ok: bool, max_bytes: int) -> Reading:
    result = raw if type(raw) is Result else None
    value = raw if result is None else result.value
    if result is not None:
        wrong = _wrong(result)
        if wrong is not None:
            # Without `result`: its price may be what is wrong.
            return _fail(Reason.BAD_RESULT, f"the tool returned a malformed result: {wrong}", None)
    try:
        if (result is not None and result.no_data) or (
            (not value or type(value) is str) and _is_empty(value, nothing_is_ok)
        ):
            return _nothing(result or Result())
        over = output.is_over(value, max_bytes)
        if over is not None and reported_failure(value) is None:
            return _fail(Reason.TOO_LARGE, over, result)
        plain, text = output.read(value)
        failure = None if type(plain) is dict and SAYS_NOTHING_OF_FAILURE(plain) else reported_failure(plain)
    except Refusal as refusal:
        # {"error": …} fits no promised type: the failure that it reports is said, not that it does not fit.
        failure, plain = reported_failure(value), _as_json(value)
        if failure is None:
            message = f"the tool returned something else than it promised: {refusal}"
            return _fail(Reason.BAD_RESULT, message, result, plain)
    if failure is not None:
        return _fail(Reason.REPORTED_FAILURE, failure, result, plain)
    if len(text) > max_bytes:
        # Failed, never cut: half a result would be taken for the whole.
        message = f"the result has {len(text):,} bytes, more than the {max_bytes:,} allowed"
        return _fail(Reason.TOO_LARGE, message, result)  # the message quotes nothing of it
    if result is None:
        return Reading(_OK, plain, text, True, True)
    return Reading(
        status=Status.OK,
        value=plain,
        text=text,
        said=result.summary,
        snippets=tuple(result.snippets),
        metadata=result.metadata,
        confidence=result.confidence,
        sources=tuple(result.sources),
        cost_micros=_micros(result),
        returned=True,
    )


class _Said(msgspec.Struct):
    """The types of everything in a Result beside its value."""

    summary: str
    snippets: tuple[str, ...]
    metadata: dict[str, Any]
    confidence: float | None
    sources: tuple[str, ...]
    cost_usd: float | None
    no_data: bool


def _wrong(result: Result[Any]) -> str | None:
    """What is not as the result contract says, or None."""
    said = {name: getattr(result, name) for name in _Said.__struct_fields__}
    sure = said["confidence"]
    if sure is not None and (type(sure) not in (int, float) or not 0 <= sure <= 1):
        return f"confidence must be a number between 0 and 1, not {sure!r}"
    try:
        checked = msgspec.convert(said, _Said)
        canonical([checked.summary, checked.snippets, checked.metadata, checked.sources])
    except (msgspec.ValidationError, Refusal) as error:
        return str(error)
    if checked.cost_usd is not None and not 0 <= checked.cost_usd <= _MOST_USD:
        return "cost_usd must be a number from zero to a billion"
    return None


def shorten_problem(problem: Problem) -> Problem:
    """A problem whose sentences are not endless: the last step before it is written down or given out."""
    if len(problem.message) <= LONGEST_MESSAGE and all(len(hint) <= LONGEST_MESSAGE for hint in problem.hints):
        return problem
    hints = tuple(hint[:LONGEST_MESSAGE] for hint in problem.hints)
    return msgspec.structs.replace(problem, message=problem.message[:LONGEST_MESSAGE], hints=hints)


def _nothing(result: Result[Any]) -> Reading:
    return Reading(
        status=Status.NO_DATA,
        said=result.summary or "nothing found",
        metadata=result.metadata,
        sources=tuple(result.sources),
        confidence=result.confidence,
        cost_micros=_micros(result),
        returned=True,
    )


def ask_first(message: str, requests: object, max_bytes: int, hints: tuple[str, ...] = ()) -> Reading:
    """The reading of a tool that has done nothing, as it has to be told something first."""
    shown: dict[str, Json] = {}
    try:
        text = b"" if requests is None else canonical(requests)
    except Refusal as refusal:
        hints += (f"what it asks for is left out, as it is no JSON: {refusal}",)
    else:
        if len(text) > max_bytes:
            hints += (f"what it asks for is left out, as it has {len(text):,} bytes of {max_bytes:,} allowed",)
        elif text:
            shown = {"requests": msgspec.json.decode(text)}
    message, hints = clean(message), tuple(map(clean, hints))
    problem = Problem(reason=Reason.INPUT_REQUIRED, message=message, hints=hints)
    return Reading(status=Status.INPUT_REQUIRED, said=message, problem=problem, metadata=shown)


def _fail(reason: Reason, message: str, result: Result[Any] | None, rejected: Json = None) -> Reading:
    message = clean(message)
    return Reading(
        status=Status.FAILED,
        said=message,
        problem=Problem(reason=reason, message=message),
        cost_micros=_micros(result),
        returned=True,
        rejected=rejected,
    )


def _as_json(value: Any) -> Json:
    """What was returned, if it is JSON; None if not."""
    try:
        canonical(value, WHATEVER)
    except Refusal:
        return None
    return value


def _is_empty(value: Any, nothing_is_ok: bool) -> bool:
    if nothing_is_ok:
        return False
    if isinstance(value, str):
        return not value or value.isspace()
    return value is None or (not value and isinstance(value, _CONTAINERS))  # 0 and False are answers


def _micros(result: Result[Any] | None) -> int | None:
    return None if result is None or result.cost_usd is None else round(result.cost_usd * 1_000_000)
