"""`interlock catalog list`, `search`, `get`, `validate`, `drift` and `agreement`: reads go through the gate, too."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Mapping
from typing import Any

from interlock import Outcome
from interlock.cli.output import console, notes, print_json, shown, table
from interlock_catalog.cli.common import add, loaded_of
from interlock_catalog.contracts import Json


def register(actions: Any) -> None:
    """Add the commands."""
    lists = add(actions, "list", run_list, "list exercises, families or aliases")
    lists.add_argument("--families", action="store_true", help="families")
    lists.add_argument("--aliases", action="store_true", help="aliases")
    lists.add_argument("--searches", action="store_true", help="failed searches")
    lists.add_argument("--family", metavar="SLUG", help="the exercises of one family")
    lists.add_argument("--status", choices=("draft", "approved", "deprecated", "merged"))
    lists.add_argument("--after", default="", metavar="ID", help="the last one of the page before")
    lists.add_argument("--limit", type=int, default=100, metavar="N", help="a page (default 100, at most 500)")
    search = add(actions, "search", run_search, "find exercises by their names")
    search.add_argument("query")
    get = add(actions, "get", run_get, "show one exercise")
    get.add_argument("id", help="its id, its name, or an alias")
    validate = add(
        actions,
        "validate",
        run_validate,
        "hold documents against their contracts",
        "Hold one document, or all of them, against their contracts. Exit 1 if one breaks its contract.",
    )
    validate.add_argument("key", nargs="?", help="exercise:ID, alias:SLUG or family:SLUG (default: all)")
    add(
        actions,
        "drift",
        run_drift,
        "hold the catalog against the journal",
        "Find documents that are not what the last"
        " recorded change made of them: somebody wrote past the gate. Exit 1 if there are any.",
    )
    agree = add(
        actions,
        "agreement",
        run_agreement,
        "hold shadow runs against what people did",
        "For each check and"
        " each family: did people do what the autopilot would have done? Families in which they always did can"
        " be enabled.",
    )
    agree.add_argument("--run", dest="run_id", metavar="RUN", help="one shadow run (default: all)")


def _asked(given: argparse.Namespace, tool: str, arguments: Json) -> Outcome:
    async def ask() -> Outcome:
        from interlock_catalog.app import opened

        async with opened(loaded_of(given)) as shop:
            return await shop.runtime.call(tool, arguments, actor="person")

    return asyncio.run(ask())


def _failed(given: argparse.Namespace, outcome: Outcome) -> int:
    problem = outcome.problem
    if given.json:
        print_json({"status": outcome.status.value, "message": outcome.summary})
    else:
        hints = f" (perhaps {', '.join(problem.hints)})" if problem is not None and problem.hints else ""
        notes().print(f"{shown(outcome.status.value)}: {shown(outcome.summary)}{shown(hints)}")
    return 1


def run_list(given: argparse.Namespace) -> int:
    """A page."""
    page = {"after": given.after, "limit": given.limit}
    columns: tuple[str, ...]
    if given.families:
        outcome = _asked(given, "list_families", page)
        columns = ("slug", "base_name", "status", "default_equipment")
    elif given.aliases:
        outcome, columns = _asked(given, "list_aliases", page), ("alias_slug", "exercise_id", "family_slug")
    elif given.searches:
        outcome, columns = _asked(given, "list_searches", page), ("query", "count", "hits")
    else:
        outcome = _asked(given, "list_exercises", {**page, "family": given.family, "status": given.status})
        columns = ("id", "name", "family_slug", "status", "version")
    if outcome.status.value not in ("ok", "no_data"):
        return _failed(given, outcome)
    rows = outcome.value or []
    if given.json:
        print_json(rows)
        return 0
    made = table(f"{len(rows)} on this page", columns)
    for row in rows:
        made.add_row(*(shown(row.get(column) or "") for column in columns))
    console().print(made)
    return 0


def run_search(given: argparse.Namespace) -> int:
    """By words of the name."""
    outcome = _asked(given, "search_exercises", {"query": given.query})
    if not outcome.ok:
        return _failed(given, outcome)
    if given.json:
        print_json(outcome.value)
        return 0
    for row in outcome.value:
        console().print(f"{shown(row['name'])}  [dim]{shown(row['id'])}[/]")
    return 0


def run_get(given: argparse.Namespace) -> int:
    """By id, or by what it is called."""
    outcome = _asked(given, "get_exercise", {"exercise_id": given.id})
    if not outcome.ok:
        named = _asked(given, "resolve_exercise", {"name": given.id})
        if not named.ok or not named.value.get("exercise_id"):
            return _failed(given, outcome)
        outcome = _asked(given, "get_exercise", {"exercise_id": named.value["exercise_id"]})
    print_json(outcome.value)
    return 0


def run_validate(given: argparse.Namespace) -> int:
    """One document, or all."""
    if given.key is not None:
        outcome = _asked(given, "validate_exercise", {"key": given.key})
        if not outcome.ok:
            return _failed(given, outcome)
        found = [outcome.value]
    else:
        with notes().status("validating"):
            found = asyncio.run(_all(given))
    wrong = [item for item in found if not item["valid"]]
    if given.json:
        print_json({"documents": len(found), "invalid": wrong})
    else:
        for item in wrong:
            for fault in item["faults"]:
                console().print(f"{shown(item['key'])}  [bold]{shown(fault['field'])}[/]  {shown(fault['message'])}")
        console().print(f"{len(found) - len(wrong)} of {len(found)} documents are valid")
    return 1 if wrong else 0


async def _all(given: argparse.Namespace) -> list[Json]:
    from interlock_catalog.app import opened
    from interlock_catalog.keeping import every

    found = []
    async with opened(loaded_of(given)) as shop:
        keys = [key async for key, _doc in every(shop.parts.backend)]
        for key in keys:
            outcome = await shop.runtime.call("validate_exercise", {"key": key}, actor="person")
            found.append(outcome.value or {"key": key, "valid": False, "faults": []})
    return found


def run_drift(given: argparse.Namespace) -> int:
    """Journal against catalog."""
    from interlock_catalog.keeping import drifted

    with notes().status("comparing"):
        found = asyncio.run(drifted(loaded_of(given)))
    if given.json:
        print_json(found)
    else:
        for item in found["drifted"]:
            console().print(f"{shown(item['key'])}  [dim]last recorded change: record {item['record']}[/]")
        console().print(f"{len(found['drifted'])} of {found['compared']} documents are not what the journal says")
    return 1 if found["drifted"] else 0


def run_agreement(given: argparse.Namespace) -> int:
    """Shadow against people."""
    from interlock_catalog.agreement import agreement

    found = asyncio.run(agreement(loaded_of(given), given.run_id))
    if given.json:
        print_json(found)
        return 0
    verdicts = ("agrees", "differs", "own", "pending", "unknown")
    made = table("shadow plans against what then happened", ("check", *verdicts))
    for name, counts in found["rules"].items():
        made.add_row(shown(name), *(str(counts.get(verdict, 0)) for verdict in verdicts))
    if found["rules"]:
        console().print(made)
    console().print(_confidence_table(found["confidence"]))
    ready = ", ".join(found["ready"])
    console().print(f"people did the same throughout in: {shown(ready or 'no family yet')}")
    return 0


def _confidence_table(rules: Mapping[str, Any]) -> Any:
    """What each rule's confidence rests on."""
    made = table("how sure each check makes the autopilot: right/all", ("check", "sure", "planted", "people"))
    for name, found in rules.items():
        counts = [f"{found[of]['right']}/{sum(found[of].values())}" for of in ("planted", "people")]
        made.add_row(shown(name), f"{found['confidence']:.2f}", *("-" if text == "0/0" else text for text in counts))
    return made
