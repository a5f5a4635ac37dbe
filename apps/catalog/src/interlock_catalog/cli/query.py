"""`interlock catalog list`, `search`, `get`, `validate`, `drift`, `shadow-report`: reads go through the gate, too."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Mapping
from typing import Any

from interlock import Outcome
from interlock.cli.output import console, notes, print_json, sanitize, table
from interlock.errors import ConfigError
from interlock.reasons import Reason
from interlock_catalog.cli.arguments import add_command
from interlock_catalog.cli.suggestions import naming_a_run
from interlock_catalog.contracts import KINDS, Json
from interlock_catalog.counts import format_count
from interlock_catalog.document_keys import kind_of
from interlock_catalog.settings import home_option, load_existing_catalog


def register(actions: Any) -> None:
    lists = add_command(actions, "list", run_list, "list exercises, families or aliases")
    lists.add_argument("--families", action="store_true", help="families")
    lists.add_argument("--aliases", action="store_true", help="aliases")
    lists.add_argument("--searches", action="store_true", help="failed searches")
    lists.add_argument("--family", metavar="SLUG", help="the exercises of one family")
    lists.add_argument("--status", choices=("draft", "approved", "deprecated", "merged"))
    lists.add_argument("--after", default="", metavar="ID", help="the last one of the page before")
    lists.add_argument("--limit", type=int, default=100, metavar="N", help="a page (default 100, at most 500)")
    search = add_command(actions, "search", run_search, "find exercises by their names")
    search.add_argument("query")
    get = add_command(actions, "get", run_get, "show one exercise")
    get.add_argument("id", help="its id, its name, or an alias")
    validate = add_command(
        actions,
        "validate",
        run_validate,
        "check documents against their contracts",
        "Check one document, or all of them, against their contracts.",
    )
    validate.add_argument("key", nargs="?", help="exercise:ID, alias:SLUG or family:SLUG (default: all)")
    add_command(
        actions,
        "drift",
        run_drift,
        "compare the catalog with the journal",
        "Find documents that are not what the last recorded change made of them: somebody wrote past the gate.",
    )
    report = add_command(
        actions,
        "shadow-report",
        run_shadow_report,
        "compare shadow runs with what people did",
        "For each check and"
        " each family: did people do what the autopilot would have done? Families in which they always did can"
        " be enabled.",
    )
    report.add_argument("--run", dest="run_id", metavar="RUN", help="one shadow run (default: all)")


def _call(given: argparse.Namespace, tool: str, arguments: Json) -> Outcome:
    async def call() -> Outcome:
        from interlock_catalog.app import open_app

        async with open_app(load_existing_catalog(given.home)) as app:
            return await app.runtime.call(tool, arguments, actor="person")

    return asyncio.run(call())


def _print_problem(given: argparse.Namespace, outcome: Outcome) -> int:
    """Say why there is nothing to show; ConfigError where what was named is not there, or could be several."""
    problem = outcome.problem
    hints = f" (perhaps {', '.join(problem.hints)})" if problem is not None and problem.hints else ""
    if problem is not None and problem.reason in (Reason.NOT_FOUND, Reason.AMBIGUOUS):
        raise ConfigError(f"{problem.message}{hints}")
    if given.json:
        print_json({"status": outcome.status.value, "message": outcome.summary})
    else:
        notes().print(f"{sanitize(outcome.status.value)}: {sanitize(outcome.summary)}{sanitize(hints)}")
    return 1


def run_list(given: argparse.Namespace) -> int:
    """Print a page."""
    page = {"after": given.after, "limit": given.limit}
    columns: tuple[str, ...]
    if given.families:
        outcome = _call(given, "list_families", page)
        columns = ("slug", "base_name", "status", "default_equipment")
    elif given.aliases:
        outcome, columns = _call(given, "list_aliases", page), ("alias_slug", "exercise_id", "family_slug")
    elif given.searches:
        outcome, columns = _call(given, "list_searches", page), ("query", "count", "hits")
    else:
        outcome = _call(given, "list_exercises", {**page, "family": given.family, "status": given.status})
        columns = ("id", "name", "family_slug", "status", "version")
    if outcome.status.value not in ("ok", "no_data"):
        return _print_problem(given, outcome)
    rows = outcome.value or []
    if given.json:
        print_json(rows)
        return 0
    made = table(f"{len(rows)} on this page", columns)
    for row in rows:
        made.add_row(*(sanitize(row.get(column) or "") for column in columns))
    console().print(made)
    return 0


def run_search(given: argparse.Namespace) -> int:
    """Search by words of the name."""
    outcome = _call(given, "search_exercises", {"query": given.query})
    if not outcome.ok:
        return _print_problem(given, outcome)
    if given.json:
        print_json(outcome.value)
        return 0
    for row in outcome.value:
        console().print(f"{sanitize(row['name'])}  [dim]{sanitize(row['id'])}[/]")
    return 0


def run_get(given: argparse.Namespace) -> int:
    """Show an exercise by its id, or by what it is called."""
    outcome = _call(given, "get_exercise", {"exercise_id": given.id})
    if not outcome.ok:
        named = _call(given, "resolve_exercise", {"name": given.id})
        if not named.ok:
            unclear = named.problem is not None and named.problem.reason is Reason.AMBIGUOUS
            return _print_problem(given, named if unclear else outcome)
        family = named.value.get("family_slug")
        if not named.value.get("exercise_id"):
            look = f"interlock catalog list --family {family}{home_option(given.home)}"
            raise ConfigError(f"{given.id!r} is a family, and no exercise; `{look}` lists those that it has")
        outcome = _call(given, "get_exercise", {"exercise_id": named.value["exercise_id"]})
        if not outcome.ok:
            return _print_problem(given, outcome)
        if outcome.value["exercise"].get("name") != given.id:
            notes().print(f"[dim]by its {sanitize(named.value['by'])}: {sanitize(outcome.value['exercise']['id'])}[/]")
    print_json(outcome.value)
    return 0


def run_validate(given: argparse.Namespace) -> int:
    """Validate one document, or all."""
    if given.key is not None:
        outcome = _call(given, "validate_exercise", {"key": given.key})
        if not outcome.ok:
            return _print_problem(given, outcome)
        found = [outcome.value]
    else:
        with notes().status("validating"):
            found = asyncio.run(_validate_all(given))
    invalid = [item for item in found if not item["valid"]]
    if given.json:
        print_json({"documents": len(found), "invalid": invalid})
        return 1 if invalid else 0
    for item in invalid:
        for violation in item["violations"]:
            field, message = sanitize(violation["field"]), sanitize(violation["message"])
            console().print(f"{sanitize(item['key'])}  [bold]{field}[/]  {message}")
    console().print(f"valid: {len(found) - len(invalid)} of {format_count(len(found), 'document')}")
    if any("vocabulary" in violation["message"] for item in invalid for violation in item["violations"]):
        look = f"interlock catalog run --dry-run{home_option(given.home)}"
        notes().print(
            "[dim]words that are not in the vocabulary are usual in data that was just imported: a run puts those that"
            f" it knows into the catalog's own words ({sanitize(look)} shows which)[/]"
        )
    return 1 if invalid else 0


async def _validate_all(given: argparse.Namespace) -> list[Json]:
    from interlock_catalog.app import open_app
    from interlock_catalog.backup import iterate_documents

    found = []
    async with open_app(load_existing_catalog(given.home)) as app:
        keys = [key async for key, _state in iterate_documents(app.backend) if kind_of(key) in KINDS]
        for key in keys:
            outcome = await app.runtime.call("validate_exercise", {"key": key}, actor="person")
            found.append(outcome.value or {"key": key, "valid": False, "violations": []})
    return found


def run_drift(given: argparse.Namespace) -> int:
    """Compare the catalog with the journal."""
    from interlock_catalog.backup import find_drift

    with notes().status("comparing"):
        found = asyncio.run(find_drift(load_existing_catalog(given.home)))
    if given.json:
        print_json(found)
    else:
        for item in found["drifted"]:
            console().print(f"{sanitize(item['key'])}  [dim]last recorded change: record {item['record']}[/]")
        compared = format_count(found["compared"], "document")
        console().print(f"not what the journal says: {len(found['drifted'])} of {compared}")
    return 1 if found["drifted"] else 0


def run_shadow_report(given: argparse.Namespace) -> int:
    """Compare shadow runs with what people did."""
    from interlock_catalog.shadow_report import build_shadow_report

    with naming_a_run(given):
        found = asyncio.run(build_shadow_report(load_existing_catalog(given.home), given.run_id))
    if given.json:
        print_json(found)
        return 0
    verdicts = ("agrees", "differs", "own", "pending", "unknown")
    made = table("shadow plans compared with what then happened", ("check", *verdicts))
    for name, counts in found["rules"].items():
        made.add_row(sanitize(name), *(str(counts.get(verdict, 0)) for verdict in verdicts))
    if found["rules"]:
        console().print(made)
    console().print(_build_confidence_table(found["confidence"]))
    ready = ", ".join(found["ready"])
    console().print(f"people did the same throughout in: {sanitize(ready or 'no family yet')}")
    return 0


def _build_confidence_table(rules: Mapping[str, Any]) -> Any:
    """What each rule's confidence rests on."""
    made = table("confidence in each check: right/all", ("check", "confidence", "planted", "people"))
    for name, found in rules.items():
        counts = [f"{found[of]['right']}/{sum(found[of].values())}" for of in ("planted", "people")]
        made.add_row(sanitize(name), f"{found['confidence']:.2f}", *("-" if text == "0/0" else text for text in counts))
    return made
