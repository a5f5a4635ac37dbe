"""What each failed search of the generated catalog means, to judge a scout by."""

from __future__ import annotations

import tomllib

from interlock_catalog.seed.build import SEARCHES


def read_meanings() -> dict[str, str]:
    """By query: the full name of the exercise, '' for none."""
    rows = tomllib.loads(SEARCHES.read_text(encoding="utf-8"))["search"]
    return {row["query"]: row["means"] for row in rows if not row["hits"]}
