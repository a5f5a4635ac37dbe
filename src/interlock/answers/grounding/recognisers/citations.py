"""Citations: 36 CFR 220.6(e)(13), RFC 9110, Section 14.2, (Miller et al., 2019)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from interlock.answers.grounding.claims import Claim
from interlock.answers.grounding.patterns import compile_table

_KINDS = ("reporters", "series", "parts")


class Citations:
    """Laws, standards, papers, and parts of a document."""

    def __init__(self, table: Mapping[str, Any]) -> None:
        patterns = [_fill_in(pattern, table) for pattern in table["patterns"]]
        for pattern in patterns:
            compile_table(pattern, "citations")
        self._pattern = compile_table("|".join(patterns), "citations")

    def find(self, text: str) -> Iterator[Claim]:
        for match in self._pattern.finditer(text):
            # Inside a number dots and hyphens are part of it; at its end they are the sentence's ("Section 14.2.").
            said = match[0].rstrip(".-]")
            yield Claim("citation", said, match.start(), match.start() + len(said))


def _fill_in(pattern: str, table: Mapping[str, Any]) -> str:
    # Not str.format: the patterns have braces of their own.
    pattern = pattern.replace("{section}", table["section"])
    for kind in _KINDS:
        pattern = pattern.replace(f"{{{kind}}}", "|".join(table[kind]))
    return pattern
