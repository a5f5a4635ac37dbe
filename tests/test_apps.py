"""The shape of the applications: the public surface of the library only, no cycles; sizes: tests/test_architecture.py."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from tests.test_architecture import find_cycle

APPS = Path(__file__).parent.parent / "apps"
LIBRARY = Path(__file__).parent.parent / "src"
SURFACE_PAGE = Path(__file__).parent.parent / "docs" / "surface.md"
_MODULE, _NAME = re.compile(r"^## `(interlock[\w.]*)`"), re.compile(r"^\| `(\w+)` \|")


def surface() -> dict[str, set[str]]:
    """What docs/surface.md states, by module."""
    stated: dict[str, set[str]] = {}
    for line in SURFACE_PAGE.read_text(encoding="utf-8").splitlines():
        module, name = _MODULE.match(line), _NAME.match(line)
        if module is not None:
            stated[module[1]] = set()
        elif name is not None and stated:
            stated[list(stated)[-1]].add(name[1])
    return stated


NAMES = sorted(folder.name for folder in APPS.glob("*/src/interlock_*") if folder.is_dir())


@pytest.fixture(params=NAMES)
def source(request: pytest.FixtureRequest) -> Path:
    name: str = request.param
    return APPS / name.removeprefix("interlock_") / "src" / name


def files(source: Path) -> list[Path]:
    return sorted(source.rglob("*.py"))


def module(source: Path, file: Path) -> str:
    parts = (source.name, *file.relative_to(source).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)  # which may be modules
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):  # by its name as a text
            yield node.value.partition(":")[0]


def imported_names(file: Path) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "interlock":
            yield from ((node.module or "", alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "(whole)") for alias in node.names if alias.name.split(".")[0] == "interlock")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            name = node.value.partition(":")[0]
            if re.fullmatch(r"interlock[\w.]+", name) and _is_module_of_the_library(name):
                yield name, "(by its name as a text)"


def _is_module_of_the_library(name: str) -> bool:
    place = LIBRARY.joinpath(*name.split("."))
    return name != "interlock" and (place.is_dir() or place.with_suffix(".py").is_file())


def test_only_the_stated_surface_of_the_library_is_used(source: Path) -> None:
    stated = surface()
    app = source.parent.parent
    beside = [
        file for part in ("agents", "tests", "benchmarks", "scripts") for file in sorted((app / part).rglob("*.py"))
    ]
    used = {item for file in (*files(source), *beside) for item in imported_names(file)}
    assert {(module, name) for module, name in used if name not in stated.get(module, ())} == set()


def test_what_the_surface_states_is_there() -> None:
    stated = surface()
    assert len(stated) > 5
    missing = [
        f"{module}.{name}"
        for module, names in stated.items()
        for name in names
        if not hasattr(import_module(module), name)
    ]
    assert missing == []
    assert [name for names in stated.values() for name in names if name.startswith("_")] == []


def test_there_are_no_cycles(source: Path) -> None:
    names = {module(source, file) for file in files(source)}
    graph = {
        module(source, file): {name for name in imports(file) if name in names and name != module(source, file)}
        for file in files(source)
    }
    assert find_cycle(graph) == []


def test_rooms_do_not_lean_on_each_other(source: Path) -> None:
    """Packages of an application import each other in one direction."""
    graph: dict[str, set[str]] = {}
    for file in files(source):
        room = file.relative_to(source).parts[0]
        for name in imports(file):
            parts = name.split(".")
            if parts[0] == source.name and len(parts) > 1 and (source / parts[1]).is_dir() and parts[1] != room:
                graph.setdefault(room, set()).add(parts[1])
    rooms = {room: {other for other in others if (source / room).is_dir()} for room, others in graph.items()}
    assert find_cycle(rooms) == []
    assert len(rooms) > 2


def test_the_durable_engine_is_imported_where_it_is_needed_only() -> None:
    source = APPS / "catalog" / "src" / "interlock_catalog"
    uses = {str(f.relative_to(source)) for f in files(source) if "dbos" in set(imports(f))}
    assert uses == {"runner/durable.py", "runner/worker.py"}
    heavy = {
        "interlock_catalog.runner.durable",
        "interlock_catalog.runner.worker",
        "interlock_catalog.runner.foreground",
    }
    for file in files(source / "cli"):
        top = [node for node in ast.parse(file.read_text()).body if isinstance(node, ast.ImportFrom | ast.Import)]
        names = {node.module for node in top if isinstance(node, ast.ImportFrom)}
        assert not names & heavy, file
