"""The shape of the applications: the public surface of the library only, no cycles; sizes: tests/test_architecture.py."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

APPS = Path(__file__).parent.parent / "apps"
SURFACE: dict[str, set[str]] = tomllib.loads((Path(__file__).parent.parent / "docs" / "surface.toml").read_text())
ENVIRONMENT = {"interlock_ranger": {"app.py"}, "interlock_catalog": {"settings.py"}}


@pytest.fixture(params=sorted(ENVIRONMENT))
def source(request: pytest.FixtureRequest) -> Path:
    return APPS / request.param.removeprefix("interlock_") / "src" / request.param


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


def test_only_the_public_surface_of_the_library_is_used(source: Path) -> None:
    used = {name for file in files(source) for name in imports(file) if name.split(".")[0] == "interlock"}
    assert used <= PUBLIC, used - PUBLIC
    private = [
        f"{file.name}: {alias.name}"
        for file in files(source)
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name.startswith("_")
    ]
    assert private == []


def test_there_are_no_cycles(source: Path) -> None:
    names = {module(source, file) for file in files(source)}
    graph = {
        module(source, file): {name for name in imports(file) if name in names and name != module(source, file)}
        for file in files(source)
    }
    cycle: list[str] = []
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        cycle = error.args[1]
    assert cycle == []


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
    circle: list[str] = []
    try:
        TopologicalSorter(rooms).prepare()
    except CycleError as error:
        circle = error.args[1]
    assert circle == []
    assert len(rooms) > 2


def test_the_environment_is_read_in_one_place(source: Path) -> None:
    reads = {str(f.relative_to(source)) for f in files(source) if "os.environ" in f.read_text()}
    assert reads == ENVIRONMENT[source.name]


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
