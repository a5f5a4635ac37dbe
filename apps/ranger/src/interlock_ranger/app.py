"""RANGER as an application of Interlock: its tools over a folder of fires, its five agents, its policy."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path

from interlock.answers import App, delegation
from interlock_ranger.agents import PURPOSES, SPECIALISTS, coordinator, specialist
from interlock_ranger.burn.tools import burn_tools
from interlock_ranger.coordinator.tools import coordinator_tools
from interlock_ranger.evidence import Today
from interlock_ranger.fires import Fires
from interlock_ranger.nepa.tools import nepa_tools
from interlock_ranger.timber.tools import timber_tools
from interlock_ranger.trails.tools import trail_tools
from interlock_ranger.view.beside import Beside

HERE = Path(__file__).parent
DATA = HERE / "data"
CORPUS = HERE / "corpus"


def today_utc() -> date:
    """The clock of the machine."""
    return datetime.now(UTC).date()


def build(
    data: Path | Fires = DATA, corpus: Path = CORPUS, tables: Sequence[Path] = (), today: Today = today_utc
) -> App:
    """RANGER over these folders: fires, documents, and tables that may be read; `today` is the clock."""
    fires = data if isinstance(data, Fires) else Fires(data)
    computing = (
        *trail_tools(fires, today),
        *burn_tools(fires, today),
        *timber_tools(fires, (*tables, fires.folder), today),
        *nepa_tools(fires, corpus, today),
        *coordinator_tools(fires, today),
    )
    specialists = tuple(map(specialist, SPECIALISTS))
    delegate_query = tuple(delegation(agent, description=PURPOSES[agent.name]) for agent in specialists)
    return App(
        name="ranger",
        agents=(coordinator(), *specialists),
        tools=(*computing, *delegate_query),
        policy=HERE / "policy.toml",
        description="Post-fire recovery of a forest: burn, trails, timber, NEPA; a coordinator and four specialists.",
        present=Beside(fires),
    )


def _folders(name: str, *otherwise: Path) -> tuple[Path, ...]:
    """The folders that a variable of the environment names."""
    return tuple(Path(item) for item in os.environ.get(name, "").split(os.pathsep) if item) or otherwise


FIRES = Fires(_folders("RANGER_DATA", DATA)[0])
APP = build(FIRES, _folders("RANGER_CORPUS", CORPUS)[0], _folders("RANGER_TABLES"))
