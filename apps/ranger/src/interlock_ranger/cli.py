"""`interlock ranger`: the briefing, exports, fires and rules. What is heavy is imported when a command runs."""

from __future__ import annotations

import argparse
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from interlock.cli.interrupts import run_to_end
from interlock.cli.options import load_command_settings, store_option
from interlock.cli.output import console, notes, print_json, sanitize, table
from interlock.cli.parser import document_exits

if TYPE_CHECKING:
    from interlock_ranger.briefing.compose import Briefing
    from interlock_ranger.fires import Fires

_WRONG = "the command, a setting or a file of a fire is wrong, or there is no such fire"
SEASONS = ("summer", "fall", "winter", "spring")


def register(commands: Any, common: Any) -> None:
    parser = commands.add_parser(
        "ranger",
        help="post-fire recovery: briefing, exports, fires, rules",
        description="RANGER: post-fire forest recovery. Questions go to `interlock ask ranger`; here are the briefing"
        " of a fire, files for other programs, and what is on file. All figures come from governed calls that"
        " `interlock turns show` and `interlock audit verify` can prove.",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    briefing = actions.add_parser("briefing", help="burn, trails, timber and compliance of a fire in one go")
    export = actions.add_parser("export", help="GeoJSON, CSV, briefing events and the page, into a folder")
    for command in (briefing, export):
        command.add_argument("fire", help="a fire's id or name, such as cedar-creek-2022")
        command.add_argument("--season", choices=SEASONS, help="for closures (default: that of today)")
    briefing.add_argument("--html", metavar="FILE", type=Path, help="write the page with map and charts there, too")
    export.add_argument("--to", metavar="FOLDER", type=Path, required=True, help="where the files go")
    actions.add_parser("fires", help="the fires on file")
    rules = actions.add_parser("rules", help="the rule packs, with citation and what each was verified against")
    rules.add_argument("--unverified", action="store_true", help="only those that nobody has checked yet")
    unverified = "there is no briefing: a specialist did not succeed; or there is one, and another fire cannot be used"
    for command, run, wrong in (
        (briefing, run_briefing, unverified),
        (export, run_export, unverified),
        (actions.choices["fires"], run_fires, "a fire of the folder cannot be used; the others are listed"),
        (rules, run_rules, ""),
    ):
        common(command)
        # Only a command that writes records needs its store.
        document_exits(command, wrong=wrong, store=wrong is unverified, more={2: _WRONG})
        command.set_defaults(run=run)


def _find_fire(fires: Fires, name: str) -> str:
    """The id of the fire that was named."""
    from interlock.errors import ConfigError
    from interlock.tools import match_values

    if name in fires.refused:
        raise fires.refused[name]
    known = {key: (key, *names) for key, names in fires.names().items()}
    found = (name,) if name in known else match_values(name, known)
    if len(found) != 1:
        raise ConfigError(f"there is no one fire {name!r}; on file are {', '.join(known)}")
    return found[0]


async def _compose(given: argparse.Namespace) -> Composed:
    from interlock import Runtime
    from interlock_ranger.app import open_ranger
    from interlock_ranger.briefing.compose import compose_briefing
    from interlock_ranger.evidence import today_utc

    settings = load_command_settings(given).settings
    app, fires = open_ranger(skip_refused=True)
    fire = fires.by_id[_find_fire(fires, given.fire)]
    _tell_refused(fires)
    async with Runtime.open(
        settings.store, policy=app.policy or settings.policy, tools=app.tools, settings=settings
    ) as runtime:
        # A line of its own: the first time on a machine it takes longer than all the rest.
        notes().print(
            "[dim]reading what the specialists are asked for (the first time on a machine, it is learned) …[/]"
        )
        with notes().status(f"asking four specialists about {sanitize(fire.facts.name)} …"):
            return Composed(await compose_briefing(runtime, app, fire, today_utc(), given.season), bool(fires.refused))


class Composed(NamedTuple):
    briefing: Briefing
    others_refused: bool
    """Whether there are fires beside it that cannot be used."""


def _tell_refused(fires: Fires) -> None:
    """Which fires cannot be used and why, beside what is said of the others."""
    for error in fires.refused.values():
        notes().print(sanitize(error), soft_wrap=True)


def run_briefing(given: argparse.Namespace) -> int:
    """Print the briefing, and write the page if it is asked for."""
    if given.html is not None:
        _require_folder(given.html.absolute().parent, given.html)
    briefing, others_refused = run_to_end(_compose(given))
    if not briefing.turn.verified:
        return _refuse(given, briefing)
    if given.html is not None:
        from interlock_ranger.briefing.page import render_page

        given.html.write_text(render_page(briefing), encoding="utf-8")
        notes().print(f"[dim]page: {sanitize(given.html)}[/]")
    if given.json:
        from interlock_ranger.briefing.events import build_events

        events = build_events(briefing, datetime.now(UTC).isoformat())
        print_json([event.model_dump(mode="json") for event in events])
    else:
        from interlock_ranger.briefing.terminal import print_briefing

        print_briefing(console(), briefing, store_option(given))
    return int(others_refused)


def _require_folder(folder: Path, wanted: Path) -> None:
    """Before anything is asked: a page that nobody can write is found out in a second, not after the run."""
    from interlock.errors import ConfigError

    if wanted.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise ConfigError(f"{wanted} cannot be written: name a file in a folder that there is and you may write to")


def _refuse(given: argparse.Namespace, briefing: Briefing) -> int:
    """No page, no events, no headings without a text: a sentence for each specialist that did not succeed."""
    notes().print(f"there is no briefing on {sanitize(briefing.fire.facts.name)}, which needs all four specialists:")
    for failure in briefing.failures:
        notes().print(f"  {sanitize(failure)}")
    where = store_option(given)
    notes().print(f"[dim]turn: interlock turns show {sanitize(briefing.turn.turn + where)}[/]")
    return 1


def run_export(given: argparse.Namespace) -> int:
    from interlock_ranger.briefing.exports import write_exports
    from interlock_ranger.briefing.page import render_page

    briefing, others_refused = run_to_end(_compose(given))
    if not briefing.turn.verified:
        return _refuse(given, briefing)
    files = write_exports(briefing, given.to, datetime.now(UTC).isoformat())
    (given.to / "briefing.html").write_text(render_page(briefing), encoding="utf-8")
    names = [str(file) for file in (*files, given.to / "briefing.html")]
    if given.json:
        print_json({"files": names, "turn": briefing.turn.turn, "verified": briefing.turn.verified})
    else:
        for name in names:
            console().print(sanitize(name))
    return int(others_refused)


def run_fires(given: argparse.Namespace) -> int:
    from interlock_ranger.fires import Fires
    from interlock_ranger.settings import load_settings

    fires = Fires(Path(load_settings().settings.data), skip_refused=True)
    _tell_refused(fires)
    rows = [
        {
            "fire_id": key,
            "name": fire.facts.name,
            "acres": fire.facts.reported_acres,
            "contained": fire.facts.containment_date.isoformat(),
            "synthetic": fire.facts.synthetic,
            "phase": fire.facts.phase,
            "on file": ", ".join(
                f"{count} {name}{'' if count == 1 else 's'}"
                for name, count in (
                    ("sector", len(fire.sectors)),
                    ("trail", len(fire.trails)),
                    ("plot", len(fire.plots)),
                )
            ),
        }
        for key, fire in fires.by_id.items()
    ]
    if given.json:
        print_json(rows)
        return int(bool(fires.refused))
    listing = table("fires on file", rows[0])
    for row in rows:
        listing.add_row(
            *(f"{v:,}" if isinstance(v, int) and not isinstance(v, bool) else sanitize(v) for v in row.values())
        )
    console().print(listing)
    return int(bool(fires.refused))


def run_rules(given: argparse.Namespace) -> int:
    import msgspec

    from interlock_ranger.rules import load_rules

    found = [rule for rule in load_rules().values() if not (given.unverified and rule.is_verified)]
    if given.json:
        print_json(msgspec.to_builtins(found))
        return 0
    listing = table(f"{len(found)} rules", ("id", "applies", "verified against", "citation"))
    for rule in found:
        ends = "" if rule.effective_to is None else rule.effective_to.isoformat()
        begins = "" if rule.effective_from is None else rule.effective_from.isoformat()
        span = f"{begins}–{ends}" if begins or ends else "always"
        listing.add_row(sanitize(rule.id), span, sanitize(rule.verified_against), sanitize(rule.citation))
    console().print(listing)
    return 0
