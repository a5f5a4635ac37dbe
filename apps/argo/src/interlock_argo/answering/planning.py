"""A plan for a question, composed of its own parts: each a question by itself, with the name of what all are about."""

from __future__ import annotations

import re

_MOST = 6
_ASKS = r"(?:(?:in|into|of|by|from|to|at|on|for) )?(?:how|what|when|where|who|whom|whose|which|why)\b"
_PARTS = re.compile(rf"\?\s+|;\s+|,?\s+and\s+(?={_ASKS})|,\s+(?={_ASKS})", re.I)
_NAME = re.compile(r"(?<!^)(?<![.?!] )\b[A-Z][\w’'-]*(?: (?:of |the |de |von )?[A-Z][\w’'-]*)*")
_OWNS = re.compile(r"\b(?:its|their|his|her)\b", re.I)
_IS = re.compile(r"\b(?:it|they|them|he|him|she)\b", re.I)


def split_question(question: str) -> list[str]:
    """The questions that one is made of; itself, where it is one."""
    parts = [" ".join(part.split()).rstrip("?.! ") for part in _PARTS.split(question)]
    parts = [part for part in parts if part][:_MOST]
    names = _NAME.findall(parts[0]) if parts else []
    if not names:
        return parts
    subject = max(names, key=len)
    return [parts[0], *(_say_of(part, subject) for part in parts[1:])]


def _say_of(part: str, subject: str) -> str:
    """A part that names nothing, with the subject in place of the word that stands for it."""
    if _NAME.search(part):
        return part
    said = _IS.sub(subject, _OWNS.sub(f"{subject}'s", part, count=1), count=1)
    return said if said != part else f"{part} ({subject})"


def compose_plan(question: str) -> str:
    """The plan as a turn reads it."""
    lines = [f"{number}. {part}?" for number, part in enumerate(dict.fromkeys(split_question(question)), 1)]
    return "\n".join(("<plan>", *lines, "</plan>"))
