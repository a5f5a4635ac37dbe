"""Citations: 36 CFR 220.6(e)(13), RFC 9110, Section 14.2, (Miller et al., 2019)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from interlock.answers.grounding.claims import Claim

_KINDS = ("reporters", "series", "parts")


class Citations:
    """Laws, standards, papers, and parts of a document."""

    def __init__(self, table: Mapping[str, Any]) -> None:
        # Not str.format: the patterns have braces of their own.
        whole = "|".join(table["patterns"]).replace("{section}", table["section"])
        for kind in _KINDS:
            whole = whole.replace(f"{{{kind}}}", "|".join(table[kind]))
        self._pattern = re.compile(whole)

    def find(self, text: str) -> Iterator[Claim]:
        for match in self._pattern.finditer(text):
            # Inside a number dots and hyphens are part of it; at its end they are the sentence's ("Section 14.2.").
            said = match[0].rstrip(".-]")
            yield Claim("citation", said, match.start(), match.start() + len(said))
