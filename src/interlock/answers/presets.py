"""Three workflows that are ready: a quick look-up, research, and taking something in."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.answers.workflows import Done, Phase, Workflow


def quick_lookup(tools: Sequence[str], *, calls: int = 2) -> Workflow:
    """At most two calls, then a short answer."""
    return Workflow(
        name="quick look-up",
        calls=calls,
        phases=(
            Phase("look", "answer from what is known, or look it up", tuple(tools), Done(calls=calls), answers=True),
            Phase("answer", "answer in two to four sentences from the results", answers=True),
        ),
        rules=("One call is usually enough; a second one only to follow the first up.",),
    )


def research(tools: Sequence[str], *, calls: int = 10, sources: int = 3) -> Workflow:
    """A plan, then reading, then a synthesis: not before there is a plan and enough sources were read."""
    return Workflow(
        name="research",
        calls=calls,
        phases=(
            Phase("plan", "write a numbered plan of the questions to look into; call nothing yet", (), Done(plan=True)),
            Phase("read", f"find and read at least {sources} different sources", tuple(tools), Done(sources=sources)),
            Phase("synthesis", "write the answer from what was read, and say what remains unknown", answers=True),
        ),
        max_tokens=4096,
        rules=("Prefer sources that say different things, and compare them.",),
    )


def ingest(read: Sequence[str], write: Sequence[str], *, calls: int = 3) -> Workflow:
    """Read one thing, keep it, confirm."""
    return Workflow(
        name="ingest",
        calls=calls,
        phases=(
            Phase("take in", "read what is named, then write a summary of it to memory", (*read, *write),
                  Done(calls=2), answers=True),
            Phase("confirm", "say in a sentence what was kept", answers=True),
        ),
        max_tokens=2048,
    )  # fmt: skip
