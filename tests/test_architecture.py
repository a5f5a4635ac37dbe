"""The shape of the code: layers, cycles, sizes, public names, no hidden state."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import interlock
from interlock.errors import install_hint

SOURCE = Path(__file__).parent.parent / "src" / "interlock"

# The layers of docs/architecture.md, from the bottom. Imports point down only.
LAYERS: tuple[frozenset[str], ...] = (
    frozenset(
        {
            "values",
            "records",
            "reasons",
            "errors",
            "addresses",
            "state",
            "transitions",
            "ports",
            "canonical",
            "config",
            "principals",
            "openings",
            "wrong_values",
            "first_use",
            "toml_text",
        }
    ),
    frozenset({"tools", "policy", "budget", "resilience", "audit", "metrics", "stores", "resources"}),
    frozenset({"changes", "review"}),
    frozenset({"engine"}),
    frozenset({"operations"}),
    frozenset({"runtime", "assembly"}),
    frozenset({"models", "answers", "embedding", "memory"}),
    frozenset({"cli", "testing", "adapters", "__init__", "__main__"}),
)
SECOND_HALF = {"models", "answers", "embedding", "memory"}
# The few edges allowed inside a layer.
SIDEWAYS = {
    ("errors", "reasons"),
    ("values", "reasons"),
    ("records", "state"),
    ("records", "values"),
    ("canonical", "values"),
    ("config", "canonical"),
    ("config", "errors"),
    ("config", "toml_text"),
    ("cli", "adapters"),
    ("config", "values"),
    ("principals", "errors"),
    ("state", "principals"),
    ("openings", "canonical"),
    ("openings", "state"),
    ("openings", "transitions"),
    ("ports", "records"),
    ("ports", "values"),
    ("ports", "state"),
    ("ports", "transitions"),
    ("state", "values"),
    ("transitions", "reasons"),
    ("transitions", "records"),
    ("transitions", "state"),
    ("transitions", "values"),
    ("wrong_values", "canonical"),
    ("wrong_values", "errors"),
    ("review", "changes"),
    ("policy", "tools"),
    ("budget", "tools"),
    ("audit", "tools"),
    ("resilience", "tools"),
    ("resources", "resilience"),
    ("resources", "stores"),
    ("resources", "tools"),
    ("runtime", "assembly"),
    ("answers", "models"),
    ("answers", "embedding"),
    ("memory", "embedding"),
    ("cli", "__init__"),
    ("__main__", "cli"),
}
STATE_ALLOWED = {  # file -> why it may hold a ContextVar or a global
    "adapters/adk/llm.py": "the turn that the next model call of this task belongs to",
    "adapters/adk/plugin.py": "the turn that delegates, for agents that ADK starts under another invocation; and what a"
    " program waits for, which neither a session nor an invocation tells apart",
    "adapters/adk/tools.py": "the ADK tool behind the call that is on the path in this task",
    "adapters/mcp/answered_errors.py": "whose request the SDK writes in this task",
    "adapters/mcp/downstream.py": "the call of a client of the gateway that is on the path in this task",
    "answers/runner.py": "the turn that a model is working on in this task, for tools that delegate",
    "tools/wire.py": "what the call that runs in this task or thread has sent, and the context of its threads",
}

FILES = sorted(SOURCE.rglob("*.py"))
APPS = Path(__file__).parent.parent / "apps"
ALL = [*FILES, *sorted(APPS.glob("*/src/**/*.py"))]


@cache
def tree_of(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


def shown(file: Path) -> str:
    return str(file.relative_to(SOURCE if file.is_relative_to(SOURCE) else APPS))


def unit(file: Path) -> str:
    """The room a file belongs to: a package or a top-level module."""
    relative = file.relative_to(SOURCE)
    return relative.parts[0].removesuffix(".py")


def module(file: Path) -> str:
    parts = ("interlock", *file.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def known_modules() -> frozenset[str]:
    return frozenset(module(file) for file in FILES)


@cache
def imports(file: Path) -> tuple[tuple[str, int], ...]:
    return tuple(_find_imports(file))


def _find_imports(file: Path) -> Iterator[tuple[str, int]]:
    """Every module of ours that a file imports anywhere: in functions, under TYPE_CHECKING, and by its name as a text."""
    for node in ast.walk(tree_of(file)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            name = node.value.partition(":")[0]
            # A file names its own package where its tables lie.
            if name in known_modules() and name != "interlock" and not module(file).startswith(f"{name}."):
                yield name, node.lineno
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "interlock":
                    yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}:{node.lineno}: write imports out in full"
            if node.module and node.module.split(".")[0] == "interlock":
                for alias in node.names:
                    whole = f"{node.module}.{alias.name}"
                    yield whole if whole in known_modules() else node.module, node.lineno


def layer(name: str) -> int:
    found = [number for number, names in enumerate(LAYERS) if name in names]
    assert len(found) == 1, f"{name} is in no layer (or in several): add it to docs/architecture.md and here"
    return found[0]


# Words of the applications. What is measured in acres is not among them: a unit is everybody's.
_OF_AN_APPLICATION = re.compile(
    r"(?<![a-z])(trails?|salvage|forest(s|ry)?|timber|burn(s|ed|ing|t)?|wildfires?|ranger|culverts?|nepa|usda|waldo"
    r"|creek|classify_damage)(?![a-z])",
    re.I,
)


def test_the_library_does_not_speak_of_what_an_application_is_about() -> None:
    texts = [file for file in SOURCE.rglob("*") if file.suffix in (".py", ".toml", ".sql", ".md")]
    found = [
        f"{shown(file)}:{number}: {match[0]}"
        for file in sorted(texts)
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        for match in _OF_AN_APPLICATION.finditer(line)
    ]
    assert found == []


def test_every_room_has_a_layer() -> None:
    for name in {unit(file) for file in FILES}:
        assert layer(name) >= 0


def test_imports_point_down() -> None:
    wrong = []
    for file in FILES:
        for target, line in imports(file):
            here = unit(file)
            there = target.split(".")[1] if "." in target else "__init__"
            if here == there:
                continue
            if layer(there) >= layer(here) and (here, there) not in SIDEWAYS:
                wrong.append(f"{file.relative_to(SOURCE)}:{line}: {here} imports {there}")
    assert wrong == []


def test_the_first_half_does_not_import_the_second() -> None:
    gate = {name for names in LAYERS[:6] for name in names} | {"__init__"}
    wrong = [
        f"{file.relative_to(SOURCE)}:{line}: {target}"
        for file in FILES
        if unit(file) in gate
        for target, line in imports(file)
        if target.split(".")[1] in SECOND_HALF
    ]
    assert wrong == []


def test_governed_calls_load_the_first_half_only() -> None:
    code = "import sys; from interlock import Runtime, tool; print(*sorted(m for m in sys.modules if m.startswith('interlock.')))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "interlock.runtime" in loaded
    assert [name for name in loaded if name.split(".")[1] in SECOND_HALF | {"cli", "adapters", "testing"}] == []


def test_the_sideways_edges_are_all_used() -> None:
    used = {(unit(f), t.split(".")[1] if "." in t else "__init__") for f in FILES for t, _ in imports(f)}
    assert used >= SIDEWAYS


def find_cycle(graph: Mapping[str, set[str]]) -> list[str]:
    """Modules that import each other in a circle, one after the other; empty if there are none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_there_are_no_cycles() -> None:
    graph = {module(file): {target for target, _line in imports(file)} - {module(file)} for file in FILES}
    assert find_cycle(graph) == []


def test_files_are_short() -> None:
    long = {shown(f): n for f in ALL if (n := len(f.read_text().splitlines())) > 400}
    assert long == {}


def test_functions_are_short() -> None:
    long = []
    for file in ALL:
        for node in ast.walk(tree_of(file)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or 0) - node.lineno + 1
                if lines > 50:
                    long.append(f"{shown(file)}:{node.lineno}: {node.name} has {lines} lines")
    assert long == []


def test_no_hidden_state() -> None:
    found = []
    for file in FILES:
        tree = tree_of(file)
        for node in ast.walk(tree):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if isinstance(node, ast.Global) or "contextvars" in modules:
                found.append(str(file.relative_to(SOURCE)))
        # A container that is empty when the module is loaded is there to be filled.
        values = [node.value for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign)]
        if any(value is not None and ast.unparse(value) in _EMPTY for value in values):
            found.append(str(file.relative_to(SOURCE)))
    assert set(found) == set(STATE_ALLOWED)


_EMPTY = ("{}", "[]", "dict()", "list()", "set()")


def test_ports_are_small() -> None:
    """A port that is put together from others, as `Store` is, adds no more than one may have."""
    large = []
    for file in ALL:
        for node in ast.walk(tree_of(file)):
            if isinstance(node, ast.ClassDef) and any("Protocol" in ast.unparse(base) for base in node.bases):
                own = [item.name for item in node.body if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)]
                large += [(shown(file), node.name, own)] if len(own) > 12 else []
    assert large == []


def test_no_limit_is_lifted_by_a_comment() -> None:
    lifted = re.compile(r"noqa:[^#\n]*\b(C901|PLR09\d\d|E501)|noqa\s*$", re.MULTILINE)
    assert [shown(file) for file in ALL if lifted.search(file.read_text())] == []


def test_the_environment_is_read_in_one_file() -> None:
    reads = re.compile(r"\benviron\b|\bgetenv\b")
    assert [shown(file) for file in ALL if reads.search(file.read_text())] == ["config.py"]


PUBLIC = [
    "Compensation", "ConfigError", "Context", "ContractError", "Effect", "InDoubt", "InterlockError", "Limits", "Mode", "Outcome", "Permanent",
    "PolicyError", "Result", "RetryRule", "Runtime", "Status", "StoreError", "Tool", "ToolError", "Transient", "Trust",
    "Versioned", "tool",
]  # fmt: skip


def test_the_public_names_are_few_and_pinned() -> None:
    assert sorted(interlock.__all__, key=lambda name: (name.lower(), name)) == sorted(
        PUBLIC, key=lambda n: (n.lower(), n)
    )
    assert len(interlock.__all__) <= 25
    assert all(hasattr(interlock, name) for name in interlock.__all__)


def test_raw_sql_is_in_one_place() -> None:
    statement = re.compile(
        r"\s*(select\s.+\sfrom\s|select\s+\w+\(|insert\s+into\s|update\s+\w+\s+set\s|delete\s+from\s|with\s+\w+\s+as\s*\("
        r"|(create|drop|alter)\s+(unique\s+)?(table|index|sequence|view)\s)",
        re.IGNORECASE | re.DOTALL,
    )
    found = set()
    for file in FILES:
        for node in ast.walk(tree_of(file)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and statement.match(node.value):
                found.add(str(file.relative_to(SOURCE)))
    assert found <= {"stores/statements.py", "stores/postgres.py", "memory/statements.py"}


def test_nothing_is_called_after_nothing() -> None:
    vague = {"util", "utils", "common", "helper", "helpers", "core", "base", "manager", "service", "handler", "misc"}
    assert [shown(f) for f in ALL if vague & {*f.stem.split("_"), *f.parent.name.split("_")}] == []
    classes = [
        f"{shown(file)}: {node.name}"
        for file in ALL
        for node in ast.walk(tree_of(file))
        if isinstance(node, ast.ClassDef) and vague & {word.lower() for word in re.findall(r"[A-Z][a-z]+", node.name)}
    ]
    assert classes == []


def test_no_participle_is_the_name_of_a_function() -> None:
    irregular = (
        "shown told made held known given taken left written met unmet begun done sent kept found lost seen said"
    )
    verbs = {"need", "feed", "seed", "embed", "proceed", "exceed"}
    wrong = [
        f"{shown(file)}:{node.lineno}: {node.name}"
        for file in ALL
        for node in ast.walk(tree_of(file))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and not any("property" in ast.unparse(decorator) for decorator in node.decorator_list)
        and (word := node.name.strip("_")) not in verbs
        and (word in irregular.split() or (word.endswith("ed") and "_" not in word))
    ]
    assert wrong == []


@pytest.mark.parametrize("root", [SOURCE, *sorted(APPS.glob("*/src"))], ids=lambda root: root.parent.name)
def test_a_class_name_has_one_meaning(root: Path) -> None:
    found = Counter(
        node.name
        for file in sorted(root.rglob("*.py"))
        for node in tree_of(file).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert found, f"{root} has no classes"
    assert [name for name, times in found.items() if times > 1] == []


def test_only_its_room_and_the_edges_know_that_a_model_is_small() -> None:
    edges = {"cli/ask.py", "adapters/adk/llm.py"}
    users = {
        str(file.relative_to(SOURCE))
        for file in FILES
        for target, _line in imports(file)
        if target.startswith("interlock.answers.constrained") and "constrained" not in file.parts
    }
    assert users == edges
    asks = {
        str(file.relative_to(SOURCE).parent)
        for file in FILES
        for node in ast.walk(tree_of(file))
        if isinstance(node, ast.Attribute) and node.attr == "instructable" and isinstance(node.ctx, ast.Load)
    }
    assert asks <= {"answers/constrained", "models"}


def test_the_page_of_the_architecture_has_every_room_and_file_that_it_names() -> None:
    page = (APPS.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
    rooms = {
        int(row[1]): set(re.findall(r"`(\w+)`", re.sub(r"\([^)]*\)", "", row[2])))
        for row in re.finditer(r"^\| ([0-7]) \| (.*?) \| (?:first|second)? ?\|$", page, re.MULTILINE)
    }
    assert rooms == {number: {name for name in names if name[0] != "_"} for number, names in enumerate(LAYERS)}
    picture = page.partition("```")[2].partition("```")[0]
    named = set(re.findall(r"(?:engine|perform)(?:/\w+)+", picture))
    assert len(named) > 8
    missing = [name for name in named if not list(SOURCE.glob(f"**/{name}.py")) and not list(SOURCE.glob(f"**/{name}"))]
    assert missing == []
    answers = page.partition("## Answers")[2].partition("## What changes")[0]
    cells = re.findall(r"^\| (`[^|]*) \|", answers, re.MULTILINE)
    listed = {name for cell in cells for name in re.findall(r"`(\w+)/?`", cell)}
    assert listed <= {path.stem for path in (SOURCE / "answers").iterdir()}


def test_the_adapter_of_adk_says_which_extra_it_needs() -> None:
    for missing in ("google", "google.adk"):
        code = f"import sys\nsys.modules[{missing!r}] = None\nimport interlock.adapters.adk"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        said = f"interlock.errors.ConfigError: interlock.adapters.adk needs Google ADK: {install_hint('adk')}"
        assert done.stderr.strip().endswith(said)
