"""What a tool returned, read into one shape: value or honest failure or honest nothing."""

from __future__ import annotations

import re
from typing import Any, get_args, get_origin

import msgspec
from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError
from pydantic_core import PydanticSerializationError

from interlock.errors import ContractError
from interlock.schema.canonical import Refusal, canonical, guard
from interlock.values import Json, Problem, Result, Status

_ERROR_TEXT = re.compile(r"\s*(error|exception|traceback)\b[^\n]{0,40}:", re.IGNORECASE)
_SUMMARY_CHARS = 160


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """A tool's answer after it was read: what the outcome and the record are made from."""

    status: Status
    value: Json = None
    text: bytes = b"null"
    summary: str = ""
    problem: Problem | None = None
    snippets: tuple[str, ...] = ()
    metadata: dict[str, Json] = {}
    confidence: float | None = None
    sources: tuple[str, ...] = ()
    cost_micros: int | None = None


class Output:
    """The contract of a result: the annotated type, its schema, and how to turn it into JSON."""

    def __init__(self, annotation: Any, where: str) -> None:
        if annotation is Result:
            annotation = Any
        elif get_origin(annotation) is Result:
            (annotation,) = get_args(annotation)
        self.nothing_is_ok = annotation is None or annotation is type(None)
        try:
            self._adapter: TypeAdapter[Any] = TypeAdapter(annotation)
            self.schema: dict[str, Json] = self._adapter.json_schema(mode="serialization")
        except (PydanticSchemaGenerationError, TypeError) as error:
            raise ContractError(f"{where}: the return type cannot be described: {error}") from None

    def to_json(self, value: Any) -> Json:
        """The value as JSON, checked against the type; `Refusal` if it is not what the tool promised."""
        try:
            checked = self._adapter.validate_python(value)
            plain = self._adapter.dump_python(checked, mode="json", warnings="error")
        except ValidationError as error:
            found = error.errors(include_url=False, include_input=False)
            raise Refusal(*(f"{'.'.join(map(str, e['loc'])) or 'result'}: {e['msg']}" for e in found)) from None
        except (PydanticSerializationError, UnicodeError, ValueError, RecursionError) as error:
            raise Refusal(f"result: cannot be written as JSON ({error})") from None
        guard(plain, "result")
        return plain


def read_result(raw: Any, output: Output, *, nothing_is_ok: bool, max_bytes: int) -> Reading:
    """Read what a tool returned; never raises for what a tool may get wrong."""
    result: Result[Any] = raw if isinstance(raw, Result) else Result(value=raw)
    try:
        failure = _in_band_failure(result.value)
        if failure is not None:
            return _failed("reported_failure", failure, result)
        if result.no_data or (_is_empty(result.value) and not nothing_is_ok):
            return Reading(
                status=Status.NO_DATA,
                value=None,
                summary=result.summary or "nothing found",
                metadata=_plain(result.metadata),
                sources=tuple(result.sources),
                confidence=result.confidence,
                cost_micros=_micros(result.cost_usd),
            )
        value = output.to_json(result.value)
        failure = _in_band_failure(value)
        if failure is not None:
            return _failed("reported_failure", failure, result)
        text = canonical(value, max_bytes=2**62)
        metadata = _plain(result.metadata)
    except Refusal as refusal:
        return _failed("bad_result", f"the tool returned something else than it promised: {refusal}", result)
    if len(text) > max_bytes:
        return _failed("too_large", f"the result has {len(text):,} bytes, more than the {max_bytes:,} allowed", result)
    return Reading(
        status=Status.OK,
        value=value,
        text=text,
        summary=result.summary or _summary(value, text),
        snippets=tuple(result.snippets),
        metadata=metadata,
        confidence=result.confidence,
        sources=tuple(result.sources),
        cost_micros=_micros(result.cost_usd),
    )


def _failed(error: str, message: str, result: Result[Any]) -> Reading:
    problem = Problem(error=error, message=message)
    return Reading(
        status=Status.FAILED, summary=message, problem=problem, cost_micros=_micros(result.cost_usd)
    )


def _in_band_failure(value: Any) -> str | None:
    """The message of a failure that was returned instead of raised, or None."""
    if isinstance(value, str):
        return value.strip()[:500] if _ERROR_TEXT.match(value) else None
    if not isinstance(value, dict):
        return None
    error = value.get("error")
    if value.get("success") is False or value.get("isError") is True or value.get("is_error") is True:
        return _words(error) or _words(value.get("message")) or _words(value.get("content")) or "the tool reported failure"
    if error and value.get("success") is not True:
        return _words(error)
    return None


def _words(value: Any) -> str | None:
    match value:
        case None | "" | False:
            return None
        case str():
            return value[:500]
        case {"message": str(message)}:
            return message[:500]
        case [{"text": str(text)}, *_]:
            return text[:500]
        case _:
            return str(value)[:500]


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, str | list | dict | tuple | set | frozenset) and not (
        value.strip() if isinstance(value, str) else value
    ))


def _plain(metadata: dict[str, Json]) -> dict[str, Json]:
    if metadata:
        guard(metadata, "metadata")
        canonical(metadata)
    return metadata


def _micros(cost_usd: float | None) -> int | None:
    return None if cost_usd is None else round(cost_usd * 1_000_000)


def _summary(value: Json, text: bytes) -> str:
    line = value if isinstance(value, str) else text[: _SUMMARY_CHARS * 4].decode(errors="ignore")
    line = " ".join(line.split())
    return line if len(line) <= _SUMMARY_CHARS else line[: _SUMMARY_CHARS - 1] + "…"
