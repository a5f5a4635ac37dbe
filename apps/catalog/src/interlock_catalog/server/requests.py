"""The bodies of requests: strict shapes, so that nothing else comes further."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, Field

from interlock_catalog.changes import AliasTarget, NormaliseItem
from interlock_catalog.contracts import Name, Slug, Strict, Text, shape_error

_MAX_DEPTH = 12
_MAX_INTEGER = 2**53
"""The largest up to which every reader of JSON keeps integers exactly."""


def _check_storable(value: Any) -> Any:
    """JSON that every database can hold: no NUL, no lone surrogates, not too deep."""
    stack: list[tuple[Any, int]] = [(value, 0)]
    while stack:
        item, depth = stack.pop()
        if depth > _MAX_DEPTH:
            raise ValueError("nested too deeply")
        if isinstance(item, str):
            if "\x00" in item:
                raise ValueError("text must not hold NUL")
            # A lone surrogate raises here, and UnicodeEncodeError is a ValueError, as a validator needs.
            item.encode()
        elif isinstance(item, dict):
            stack += [(part, depth + 1) for pair in item.items() for part in pair]
        elif isinstance(item, list):
            stack += [(part, depth + 1) for part in item]
        elif isinstance(item, int) and not isinstance(item, bool) and abs(item) > _MAX_INTEGER:
            raise ValueError("a number is too large")
    if isinstance(value, dict) and (wrong := shape_error(value)) is not None:
        raise ValueError(wrong)
    return value


# No other kinds: stored answers (idem:…) and the log of searches are in the same table.
Key = Annotated[str, Field(max_length=160, pattern=r"^(exercise|alias|family):[^\s/\x00-\x1f]+$")]
Document = Annotated[dict[str, Any], AfterValidator(_check_storable)]


class UpsertExercise(Strict):
    """A whole exercise."""

    exercise: Document


class ById(Strict):
    """An exercise by its id."""

    id: Name


class Ensure(Strict):
    """An exercise that should exist."""

    name: Text
    family_slug: Slug


class Merge(Strict):
    """One exercise into another one of its family."""

    source_id: Name
    target_id: Name
    family_slug: Slug
    aliases: Annotated[list[Name], Field(max_length=100)] = []


class NormalizePage(Strict):
    """Exercises of one family."""

    family_slug: Slug
    items: Annotated[list[NormaliseItem], Field(min_length=1, max_length=60)]


class ByFamily(Strict):
    """A family by its slug."""

    family_slug: Slug


class Page(Strict):
    """The next page."""

    after: Annotated[str, Field(max_length=160, pattern=r"^[^\x00-\x1f]*$")] = ""
    limit: Annotated[int, Field(ge=1, le=200)] = 50


class UpsertAlias(Strict):
    """An alias and where it should point."""

    alias_slug: Name
    exercise_id: Name | None = None
    family_slug: Slug | None = None


class DeleteAlias(Strict):
    """An alias that goes for another one."""

    alias_slug: Name
    replacement: AliasTarget


class Repoint(Strict):
    """An alias and its new target."""

    alias_slug: Name
    exercise_id: Name


class WriteDocuments(Strict):
    """Documents that are written together; null removes one."""

    documents: Annotated[dict[Key, Document | None], Field(min_length=1, max_length=100)]


class Nothing(Strict):
    """A request that says everything in its headers."""


class Duplicate(Strict):
    """A copy of the whole catalog."""

    # It becomes the name of a table.
    target: Annotated[str, Field(pattern=r"^copy[a-z0-9_]{0,40}$")]
