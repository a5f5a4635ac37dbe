"""RANGER as an application of Interlock: its tools over a folder of fires, its five agents, its policy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from interlock.answers import App, delegation
from interlock_ranger.agents import DEADLINE_S, PURPOSES, SPECIALISTS, coordinator, specialist
from interlock_ranger.burn.tools import build_burn_tools
from interlock_ranger.coordinator.tools import build_coordinator_tools
from interlock_ranger.evidence import Today, today_utc
from interlock_ranger.fires import Fires
from interlock_ranger.nepa.tools import build_nepa_tools
from interlock_ranger.settings import HERE, load_settings
from interlock_ranger.timber.tools import build_timber_tools
from interlock_ranger.trails.tools import build_trail_tools
from interlock_ranger.view.result_tables import ResultTables

DATA = HERE / "data"
CORPUS = HERE / "corpus"


def build_app(
    data: Path | Fires = DATA,
    corpus: Path = CORPUS,
    tables: Sequence[Path] = (),
    today: Today = today_utc,
    deadline_s: float = DEADLINE_S,
) -> App:
    """RANGER over these folders: fires, documents, and tables that may be read; `today` is the clock.

    `deadline_s` is how long a specialist may take for a question; the coordinator has twice as long.
    """
    fires = data if isinstance(data, Fires) else Fires(data)
    tools = (
        *build_trail_tools(fires, today),
        *build_burn_tools(fires, today),
        # So that a question about the trees.csv of a fire finds it, and not only tables that people bring.
        *build_timber_tools(fires, (*tables, fires.folder), today),
        *build_nepa_tools(fires, corpus, today),
        *build_coordinator_tools(fires, today),
    )
    specialists = tuple(specialist(name, deadline_s) for name in SPECIALISTS)
    delegations = tuple(delegation(agent, description=PURPOSES[agent.name]) for agent in specialists)
    return App(
        name="ranger",
        agents=(coordinator(2 * deadline_s), *specialists),
        tools=(*tools, *delegations),
        policy=HERE / "policy.toml",
        description="Post-fire recovery of a forest: burn, trails, timber, NEPA; a coordinator and four specialists.",
        present=ResultTables(fires),
    )


class Opened(NamedTuple):
    """RANGER over the folders of the settings."""

    app: App
    fires: Fires


def open_ranger(*, skip_refused: bool = False) -> Opened:
    """As the settings say; with `skip_refused`, also over a folder in which some of the fires cannot be used."""
    settings = load_settings().settings
    fires = Fires(Path(settings.data), skip_refused=skip_refused)
    return Opened(build_app(fires, Path(settings.corpus), tuple(map(Path, settings.tables))), fires)


if TYPE_CHECKING:
    APP: App
    """What `interlock ask ranger` finds as an entry point."""
else:

    def __getattr__(name: str) -> App:
        # When it is asked for, and not when this is imported: a fire that is refused must not keep the commands from
        # telling which one it is.
        if name != "APP":
            raise AttributeError(name)
        globals()[name] = open_ranger().app
        return globals()[name]
