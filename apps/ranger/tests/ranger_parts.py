"""What tests of RANGER share."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import rasterio
from numpy.typing import NDArray

from interlock import Outcome, Runtime
from interlock.answers import App
from interlock.errors import ConfigError
from interlock.values import Problem
from interlock_ranger.app import DATA, build_app
from interlock_ranger.briefing.compose import Briefing
from interlock_ranger.fires import Fires

TODAY = date(2026, 11, 15)
PATIENCE_S = 1800.0
"""How long a test waits for anything before it gives up: no outcome depends on it, however busy the machine is."""
Call = Callable[..., Awaitable[Outcome]]
Case = dict[str, Any]
"""A question with the calls that answer it, as plans.json has it."""


class Composed(NamedTuple):
    briefing: Briefing
    calls: set[int]
    """The records of calls in its ledger."""


def problem(outcome: Outcome) -> Problem:
    """Why a call gave nothing."""
    assert outcome.problem is not None
    return outcome.problem


def policy_text(app: App) -> str:
    assert isinstance(app.policy, Path)
    return app.policy.read_text(encoding="utf-8")


class FireFolder:
    """A copy of a shipped fire, whose files a test spoils."""

    def __init__(self, parent: Path, fire_id: str = "cedar-creek-2022") -> None:
        self.path = parent / fire_id
        shutil.copytree(DATA / fire_id, self.path)

    def text(self, file: str) -> str:
        return (self.path / file).read_text(encoding="utf-8")

    def replace(self, file: str, old: str, new: str) -> None:
        """Every occurrence; that there is one is part of the test."""
        text = self.text(file)
        assert old in text, (file, old)
        (self.path / file).write_text(text.replace(old, new), encoding="utf-8")

    def edit(self, file: str, change: Callable[[Any], Any]) -> None:
        """A JSON file, changed in place or replaced by what `change` returns."""
        document = json.loads(self.text(file))
        changed = change(document)
        (self.path / file).write_text(json.dumps(document if changed is None else changed), encoding="utf-8")

    def edit_raster(self, file: str, change: Callable[[NDArray[Any]], NDArray[Any]], **profile: Any) -> None:
        """A raster with other values, and another profile where one is given; its scale is kept unless given."""
        with rasterio.open(self.path / file) as raster:
            old, values, scales, tags = raster.profile, raster.read(1), raster.scales, raster.tags()
        scales = profile.pop("scales", scales)
        with rasterio.open(self.path / file, "w", **{**old, **profile}) as raster:
            raster.write(change(values), 1)
            raster.scales = scales
            raster.update_tags(**tags)

    def drop_labels(self, *, synthetic: bool) -> None:
        """The same fire, called synthetic or real throughout."""
        said = ("true", "yes") if synthetic else ("false", "no")
        for file in ("fire.json", "perimeter.geojson", "sectors.geojson", "trails.json", "stands.json"):
            self.replace(file, '"synthetic": true', f'"synthetic": {said[0]}')
        for file in ("plots.csv", "trees.csv"):
            lines = self.text(file).splitlines()
            rows = [line.rpartition(",")[0] + f",{said[1]}" for line in lines[1:]]
            (self.path / file).write_text("\n".join([lines[0], *rows, ""]), encoding="utf-8")
        for file in ("nbr_pre.tif", "nbr_post.tif"):
            with rasterio.open(self.path / file, "r+") as raster:
                raster.update_tags(SYNTHETIC=said[1])

    def refusal(self) -> str:
        """What is said when the fire is read, as it has to be refused."""
        with pytest.raises(ConfigError) as caught:
            Fires(self.path.parent)
        return str(caught.value)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Call]:
        """Tools over the folder, called as an operator."""
        app = build_app(self.path.parent, today=lambda: TODAY)
        async with Runtime.open("memory://", policy=app.policy or "", tools=app.tools) as runtime:

            def call_tool(tool: str, **arguments: Any) -> Awaitable[Outcome]:
                return runtime.call(tool, arguments, actor="operator")

            yield call_tool
