"""The shape of the application: the public surface of the library only, no cycles; sizes: tests/test_architecture.py."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import interlock_ranger

SOURCE = Path(interlock_ranger.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
PUBLIC = {  # what applications build on, see docs/architecture.md
    "interlock",
    "interlock.adapters.adk",
    "interlock.cli.setting",
    "interlock.config",
    "interlock.errors",
    "interlock.intents",
    "interlock.models",
    "interlock.schema",
    "interlock.turn",
}


def module(file: Path) -> str:
    parts = ("interlock_ranger", *file.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            yield node.module or ""


def test_only_the_public_surface_of_the_library_is_used() -> None:
    used = {name for file in FILES for name in imports(file) if name.split(".")[0] == "interlock"}
    assert used <= PUBLIC, used - PUBLIC
    private = [
        f"{file.name}: {alias.name}"
        for file in FILES
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name.startswith("_")
    ]
    assert private == []


def test_there_are_no_cycles() -> None:
    names = {module(file) for file in FILES}
    graph = {module(file): {name for name in imports(file) if name in names and name != module(file)} for file in FILES}
    cycle: list[str] = []
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        cycle = error.args[1]
    assert cycle == []


def test_every_module_function_and_class_says_what_it_is() -> None:
    silent = []
    for file in FILES:
        tree = ast.parse(file.read_text())
        if file.stat().st_size and ast.get_docstring(tree) is None:
            silent.append(str(file.relative_to(SOURCE)))
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                inner = node.name in ("named", "built", "keep")
                if not node.name.startswith("_") and not inner and ast.get_docstring(node) is None:
                    silent.append(f"{file.relative_to(SOURCE)}:{node.lineno}: {node.name}")
    assert silent == []


def test_the_environment_is_read_in_one_place() -> None:
    reads = {str(f.relative_to(SOURCE)) for f in FILES if "os.environ" in f.read_text()}
    assert reads == {"app.py"}
