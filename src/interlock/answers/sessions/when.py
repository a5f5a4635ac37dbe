"""How old something is, as an answer says it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from interlock.answers.grounding import Grounded, Source


def clock_time(at_us: int, now_us: int) -> str:
    """The time of the day, with the day where it is another one."""
    at, now = datetime.fromtimestamp(at_us / 1e6, UTC), datetime.fromtimestamp(now_us / 1e6, UTC)
    return at.strftime("%H:%M UTC" if at.date() == now.date() else "%Y-%m-%d %H:%M UTC")


def age_notes(grounded: Grounded, given: Sequence[Source], now_us: int) -> tuple[str, ...]:
    """For every record of an earlier turn that an answer rests on, of when it is, and what rests on it."""
    dated = {source.id: source for source in given if source.at_us}
    used: dict[str, list[str]] = {}
    for claim in grounded.claims:
        if claim.source in dated and claim.how not in ("unsupported", "echo"):
            used.setdefault(claim.source, []).append(claim.text)
    return tuple(
        f"{', '.join(dict.fromkeys(texts))}: as of {clock_time(dated[name].at_us, now_us)}, {name}"
        + (f" ({dated[name].tool})" if dated[name].tool else "")
        for name, texts in used.items()
    )
