"""The player of injections, from the benchmarks: a script there, and no part of a package."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent.parent / "benchmarks" / "provenance" / "injections.py"


def _load() -> Any:
    spec = importlib.util.spec_from_file_location("played_injections_of_benchmarks", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_LOADED = _load()
play = _LOADED.play
measure = _LOADED.measure
