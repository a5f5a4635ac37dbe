"""How well questions are sorted: held-out questions of four domains, by keywords, by the head, and by both."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from interlock.answers.intents import Classifier, Intent
from interlock.answers.requirements import leaves

DATA = Path(__file__).parent / "intents"
DOMAINS = ("ranger", "catalog", "empla", "argo")
WAYS = ("keywords", "semantic", "both")
DELEGATED = dict.fromkeys(("trail_assessor", "burn_analyst", "cruising_assistant", "nepa_advisor"), "delegate_query")
"""Delegations: the held-out questions to the coordinator say only that one is needed."""


def agents(domain: str, *, keywords: bool = True) -> dict[str, list[Intent]]:
    """The intents of a domain's agents."""
    found: dict[str, list[Intent]] = {}
    if domain == "ranger":
        return _of_ranger(keywords=keywords)
    for item in tomllib.loads((DATA / f"{domain}.toml").read_text(encoding="utf-8"))["intent"]:
        made = Intent(
            name=item["name"],
            requires=tuple(item["requires"]),
            keywords=tuple(item["keywords"]) if keywords else (),
            examples=tuple(item["examples"]),
        )
        found.setdefault(item["agent"], []).append(made)
    return found


def _of_ranger(*, keywords: bool) -> dict[str, list[Intent]]:
    """Those of the application itself; what goes to any specialist counts as a delegation."""
    from interlock_ranger.agents import SPECIALISTS, coordinator, specialist

    found = {}
    for agent in (*map(specialist, SPECIALISTS), coordinator()):
        kept = [intent if keywords else msgspec.structs.replace(intent, keywords=()) for intent in agent.intents]
        found[agent.name] = [intent for intent in kept if intent.name != "briefing"]
    return found


def questions(domain: str) -> list[dict[str, Any]]:
    """The held-out questions of a domain."""
    text = (DATA / f"{domain}-test.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def measure(domain: str, way: str) -> Counter[str]:
    """Counts: questions that need a tool, those let through as chat, those sorted right; chat, and false alarms on it.

    A line of chat that is not in the closed table is taken for a question, so that a tool is required: a false alarm
    costs a call or a question back, and lets nothing out.
    """
    sorters = {
        agent: Classifier(intents, semantic=way != "keywords")
        for agent, intents in agents(domain, keywords=way != "semantic").items()
    }
    counts: Counter[str] = Counter()
    for row in questions(domain):
        found = sorters[row["agent"]].classify(row["q"])
        tools = {DELEGATED.get(leaf.tool, leaf.tool) for leaf in leaves(found.requirement)}
        if row["kind"] == "chat":
            counts["chat"] += 1
            counts["alarms"] += not found.chat
            continue
        right = bool(tools & set(row["any"])) if row.get("any") else tools == set(row["tools"])
        counts["needs"] += 1
        counts["through"] += found.chat
        counts["right"] += right
        counts[f"{row['kind']}"] += 1
        counts[f"{row['kind']} right"] += right
    return counts


def row(name: str, way: str, counts: Counter[str]) -> str:
    """A line of the table."""
    kinds = " | ".join(f"{counts[f'{kind} right'] / counts[kind]:.0%}" for kind in ("plain", "paraphrase", "trap"))
    return (
        f"| {name} | {way} | {counts['through']} of {counts['needs']} | {counts['alarms']} of {counts['chat']}"
        f" ({counts['alarms'] / counts['chat']:.1%}) | {counts['right'] / counts['needs']:.3f} | {kinds} |\n"
    )


def table() -> tuple[str, Counter[str]]:
    """All domains and ways, and the counts of both together over all domains."""
    heads = ("domain", "by", "questions let through as chat", "false alarms on chat", "right tool")
    text = f"| {' | '.join((*heads, 'plain', 'paraphrase', 'trap'))} |\n"
    text += "|---|---|---|---|---|---|---|---|\n"
    total: dict[str, Counter[str]] = {way: Counter() for way in WAYS}
    for domain in DOMAINS:
        for way in WAYS:
            print(f"intents: {domain}, {way} …", flush=True)
            counts = measure(domain, way)
            total[way] += counts
            text += row(domain, way, counts)
    for way in WAYS:
        text += row("**all**", way, total[way])
    return text, total["both"]
