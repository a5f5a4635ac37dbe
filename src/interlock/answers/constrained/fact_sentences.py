"""Results as short statements, each true as it stands: what a model that can only be constrained may choose from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from interlock.values import Json

_MOST = 60  # every statement is an alternative of the grammar
_LONGEST = 120
_LONGEST_LEAD = 1000
_NAMES = ("name", "title", "label")
_ABOUT = ("evidence", "rule")
"""Keys of what is about a result, not part of an answer: how it was come to, and by which rule."""


def fact_sentences(results: Sequence[Mapping[str, Json]]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What tools said of their results in one line, and a statement for each value that successful calls returned."""
    leads = tuple(" ".join(text.split()).rstrip(".") for text in map(_lead, results) if text)
    lines: dict[str, None] = {}
    for line in (line for found in results for line in _of(found.get("value"), _subject(found.get("value")))):
        if len(line) <= _LONGEST:
            lines[line] = None
        if len(lines) >= _MOST:  # a result may have thousands
            break
    return leads, tuple(lines)


def _lead(found: Mapping[str, Json]) -> str:
    """What a tool said in one line; a short text that is the whole result is that line (ADK's sub-agents answer so)."""
    value = found.get("value")
    whole = value if isinstance(value, str) and len(value) <= _LONGEST_LEAD else ""
    return str(found.get("summary") or whole)


def _of(value: Json, subject: str, path: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            if key in _NAMES or key in _ABOUT:
                continue
            yield from _of(item, subject, f"{path} {key}".strip().replace("_", " "))
    elif isinstance(value, list):
        for item in value:
            inner = _subject(item)
            yield from _of(item, f"{subject}, {inner}" if subject and inner else inner or subject, path)
    elif value is not None and path:
        # A truth is an int in Python; formatted as a number it would be 1.
        written = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
        yield _plain(f"{subject}: {path} {written}" if subject else f"{path} {written}")


def _subject(value: Json) -> str:
    if not isinstance(value, dict):
        return ""
    return next((str(value[key]) for key in _NAMES if isinstance(value.get(key), str)), "")


def _plain(text: str) -> str:
    """One line without the marks that separate statements."""
    return " ".join(text.replace(";", ",").split()).rstrip(".")  # _statements takes them apart at "; "
