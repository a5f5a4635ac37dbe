"""Three workflows that are ready: a quick look-up, research, and taking something in."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.answers.workflows import Done, Phase, SourceRule, Workflow

_ANY = SourceRule()


def quick_lookup(tools: Sequence[str], *, calls: int = 2, name: str = "quick") -> Workflow:
    """At most two calls, then a short answer."""
    return Workflow(
        name=name,
        calls=calls,
        phases=(
            Phase("look", "answer from what is known, or look it up", tuple(tools), Done(calls=calls), answers=True),
            Phase("answer", "answer in two to four sentences from the results", answers=True),
        ),
        rules=("One call is usually enough; a second one only to follow the first up.",),
    )


def research(
    search: Sequence[str],
    read: Sequence[str],
    *,
    calls: int = 10,
    sources: int = 3,
    rule: SourceRule = _ANY,
    name: str = "research",
) -> Workflow:
    """A plan, then reading, then a synthesis: not before there is a plan, enough distinct sources were read, and each
    sub-question has one.

    `search` finds sources and `read` fetches them: only what the latter return counts. `rule` says which sources are
    authoritative, and how many of them are wanted.
    """
    tools = tuple(dict.fromkeys((*search, *read)))
    done = Done(sources=sources, of=tuple(read), questions=True, rule=rule)
    return Workflow(
        name=name,
        calls=calls,
        phases=(
            Phase("plan", "write a numbered plan of the questions to look into; call nothing yet", (), Done(plan=True)),
            Phase("read", f"find and read at least {sources} different sources, one for each question", tools, done),
            Phase("synthesis", "write the answer from what was read, and say what remains unknown", answers=True),
        ),
        max_tokens=4096,
        rules=("Prefer sources that say different things, and compare them.", *_name_authorities(rule)),
    )


def _name_authorities(rule: SourceRule) -> tuple[str, ...]:
    return (f"Prefer authoritative sources: {', '.join(rule.authoritative)}.",) if rule.authoritative else ()


def ingest(read: Sequence[str], write: Sequence[str], *, calls: int = 3, name: str = "ingest") -> Workflow:
    """Read one thing, keep a summary of it, confirm: what is kept has to be shorter than what was read, and its own."""
    return Workflow(
        name=name,
        calls=calls,
        phases=(
            Phase("read", "read what is named", tuple(read), Done(sources=1, of=tuple(read))),
            Phase(
                "keep",
                "write a summary of what was read to memory, in your own order and much shorter than it",
                tuple(write),
                Done(calls=1, of=tuple(write)),
                summarises=tuple(write),
            ),
            Phase("confirm", "say in a sentence what was kept", answers=True),
        ),
        max_tokens=2048,
    )
