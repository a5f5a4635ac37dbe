"""What the documents promise: their programs run and print what they say, their policies load, their links and names exist."""

from __future__ import annotations

import ast
import json
import re
import shlex
import subprocess
import sys
import tomllib
from argparse import REMAINDER, Action
from collections.abc import Iterator
from inspect import signature
from pathlib import Path
from typing import NamedTuple

import pytest

from interlock import Context, errors
from interlock.adapters.mcp.servers import check_terms
from interlock.answers.answers import TurnDetails
from interlock.cli.main import OWN_COMMANDS, _find_command, main
from interlock.cli.options import add_common
from interlock.cli.parser import CommandParser, parse_command
from interlock.config import HELP, load_settings
from interlock.errors import ConfigError, ToolError
from interlock.operations import Operations
from interlock.operations.operations import Changes
from interlock.policy import parse_policy
from interlock.policy.functions import FUNCTIONS
from interlock.policy.packs import PACKS
from interlock.resources import HttpClient, HttpDocuments
from interlock.resources.client import AnswerBytes, RequestOptions
from interlock.runtime import CallDetails, Parts, Runtime
from interlock.tools.egress import Egress

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")), *sorted(ROOT.glob("apps/*/*.md"))]
SAYS = "# → "
"""What a block prints, line by line, stands behind this sign, below the statement that prints it."""
ONE_PROGRAM = "The blocks of this page are one program"
OLD_NAMES = (
    r"runtime\.(turn|hold|answer|journal|undo|replay|recover|decide|resume|halt|shadow)\(",
    r"interlock\.(turn|modes|egress|intents|grounding|standing|schema|mending)\b",
    r"interlock\.models\.(written|choose|direct|formats|recorded|kinds)\b",
    r"\b(WorkMode|Which\(|Recording\(|Replayed|TurnHost)",
    r"\b(planset|ask_when|candidates=|untaken|why_not)\b",
    r"\bdrive\(",
    r"(holds=|within=)",
    r"`(follows|within|Hold|hold|candidates|drive|Desk|World|Image)`",
    r"Model\.follows",
    r"changes/(landing|images|names)",
    r"operations/(carry|decisions)",
    r"(enable --off|`agreement`|`repairs\b)",
    r"test_(readme|candidates|trust|normalising|changes_refused|library)\b",
)
"""Names that things had before; a page that has one leads nowhere."""
DRIVER = """
import ast, asyncio, contextlib, inspect, io, json, sys

async def run(blocks):
    said = []
    for code, place in blocks:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            made = eval(compile(code, place, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), globals())
            if inspect.iscoroutine(made):
                await made
        said.append(out.getvalue().splitlines())
    return said

sys.path.insert(0, "")
print(json.dumps(asyncio.run(run(json.load(sys.stdin)))))
"""
"""Runs blocks one after another in one namespace, as `python -m asyncio` does: `await` may stand outside a function."""


class Block(NamedTuple):
    """One fenced block of a page."""

    language: str
    code: str
    place: str

    @property
    def file(self) -> str:
        """The name under which a reader saves it, where its first line says one."""
        found = re.match(r"# ([\w.]+\.(?:py|toml))\n", self.code)
        return found[1] if found else ""

    @property
    def says(self) -> list[str]:
        return [line.strip().removeprefix(SAYS) for line in self.code.splitlines() if line.strip().startswith(SAYS)]


def blocks(page: Path, *languages: str) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(found[1], found[2], f"{page.relative_to(ROOT)}:{text.count(chr(10), 0, found.start()) + 1}")
        for found in re.finditer(r"^```(\w*)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
        if found[1] in languages
    ]


def write_files(page: Path, folder: Path) -> None:
    """What the reader has in the folder: files of the page, and those that a comment of it sets up."""
    for name, content in re.findall(r"<!-- setup: (\S+)\n(.*?)-->", page.read_text(encoding="utf-8"), re.DOTALL):
        (folder / name).write_text(content, encoding="utf-8")
    for block in blocks(page, "python", "toml"):
        if block.file:
            (folder / block.file).write_text(block.code, encoding="utf-8")


def run_python(arguments: list[str], folder: Path, given: str = "") -> str:
    done = subprocess.run(
        [sys.executable, *arguments], input=given, capture_output=True, text=True, timeout=600, check=False, cwd=folder
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


FENCE = re.compile(r"^([ \t]*)(`{3,}|~{3,})(.*)$", re.MULTILINE)
LANGUAGES = ("", "python", "toml", "console", "json", "text", "mermaid", "yaml")


def test_every_block_is_one_that_these_tests_see() -> None:
    """A fence in another spelling would hide a program from the tests that run it."""
    odd = [
        f"{page.relative_to(ROOT)}: {found[0]!r}"
        for page in PAGES
        for found in FENCE.finditer(page.read_text(encoding="utf-8"))
        if found[1] or found[2] != "```" or found[3] not in LANGUAGES
    ]
    assert odd == []


def typed_commands(page: Path) -> list[str]:
    """What a reader is told to type: `$ interlock …` in a console."""
    lines = [line for block in blocks(page, "console") for line in block.code.splitlines()]
    return [line.removeprefix("$ ").partition("  #")[0] for line in lines if line.startswith("$ interlock ")]


@pytest.mark.parametrize(
    "typed", sorted({typed for page in PAGES for typed in typed_commands(page)}), ids=lambda typed: typed[:60]
)
def test_every_command_that_a_page_types_can_be_parsed(typed: str) -> None:
    words = shlex.split(typed.partition(" | ")[0].partition(" > ")[0])[1:]
    top = CommandParser(prog="interlock")
    _find_command(words[0])(top.add_subparsers(dest="command"), add_common)
    assert parse_command(top, words).run is not None


@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: str(page.relative_to(ROOT))
)
@pytest.mark.slow
def test_the_programs_of_a_page_run_and_print_what_it_says(page: Path, tmp_path: Path) -> None:
    write_files(page, tmp_path)
    found = blocks(page, "python")
    for block in found:
        if block.file.startswith("test_"):
            run_python(["-m", "pytest", "-q", "-p", "no:cacheprovider", block.file], tmp_path)
        elif block.file:
            for _time in ("first", "second"):  # what a reader has run once is run again
                assert run_python([block.file], tmp_path).splitlines() == block.says, block.place
    loose = [block for block in found if not block.file]
    together = (
        [loose] if ONE_PROGRAM in " ".join(page.read_text(encoding="utf-8").split()) else [[block] for block in loose]
    )
    for program in together:
        given = json.dumps([[block.code, block.place] for block in program])
        for block, said in zip(program, json.loads(run_python(["-c", DRIVER], tmp_path, given)), strict=True):
            assert said == block.says, block.place


def test_programs_of_the_pages_import_what_the_surface_states_and_it_states_a_name_once() -> None:
    stated: set[tuple[str, str]] = set()
    module = ""
    for line in (ROOT / "docs" / "surface.md").read_text(encoding="utf-8").splitlines():
        module = found[1] if (found := re.match(r"## `([\w.]+)`", line)) else module
        if found := re.match(r"\| `(\w+)` \| \S", line):
            assert found[1] not in {name for _module, name in stated}, found[1]
            stated.add((module, found[1]))
    used = {
        (node.module, alias.name)
        for page in PAGES
        for block in blocks(page, "python")
        for node in ast.walk(ast.parse(block.code))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "interlock"
        for alias in node.names
    }
    assert used - stated == set()


@pytest.mark.slow
def test_the_application_of_the_page_on_python_answers(tmp_path: Path) -> None:
    page = ROOT / "docs" / "python.md"
    write_files(page, tmp_path)
    (command,) = re.findall(r"^\$ interlock ask (\w+) \"(.*)\"", page.read_text(encoding="utf-8"), re.MULTILINE)
    said = json.loads(run_python(["-m", "interlock", "ask", *command, "--json"], tmp_path))
    assert (said["outcome"], said["answer"]) == ("PASSED", "It is class 3.0.")


@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page, "toml")], ids=lambda page: str(page.relative_to(ROOT))
)
def test_the_policies_and_settings_of_a_page_load(page: Path, tmp_path: Path) -> None:
    for block in blocks(page, "toml"):
        if block.file == "interlock.toml":
            (tmp_path / block.file).write_text(block.code, encoding="utf-8")
            check_terms(load_settings(tmp_path / block.file, environment={}).servers)
        elif block.file in ("", "policy.toml"):
            whole = block.code if "version = " in block.code else f"version = 1\n{block.code}"
            assert parse_policy(whole, block.place)
        else:
            assert tomllib.loads(block.code)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target, _, heading in re.findall(r"\]\(([^)#:]+)(#([^)]+))?\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target
        if heading:
            found = re.findall(r"^#+ (.*)", (page.parent / target).read_text(encoding="utf-8"), re.MULTILINE)
            assert heading in [re.sub(r"[^\w -]", "", text).lower().replace(" ", "-") for text in found], heading


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_tests_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    folders = [ROOT / "tests", *sorted(ROOT.glob("apps/*/tests"))]
    names = {path.name for folder in folders for path in folder.glob("*.py")}
    written = "\n".join(path.read_text(encoding="utf-8") for folder in folders for path in folder.glob("test_*.py"))
    for path in re.findall(r"`((?:apps/\w+/)?(?:tests|benchmarks|examples)/[\w/.]+)`", text):
        assert any((root / path).exists() for root in (ROOT, *ROOT.glob("apps/*"))), path
    for name in re.findall(r"`(test_\w+\.py)`", text):
        assert name in names, name
    for name in re.findall(r"`(test_\w+|Test\w+)`", text):
        assert re.search(rf"(def|class) {name}\b|^{name} = ", written, re.MULTILINE), name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_nothing_goes_by_an_old_name(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert [found[0] for name in OLD_NAMES for found in re.finditer(name, text)] == []


def test_the_first_screen_of_the_readme_names_both_commands() -> None:
    first = "\n".join(README.splitlines()[:12])
    assert "make demo" in first
    assert "make test" in first


def shown_commands(page: Path) -> list[str]:
    """What a page shows of the command line: lines of its blocks, also of bare ones, and code inside a sentence."""
    lines = [line for block in blocks(page, "", "console") for line in block.code.splitlines()]
    typed = [found[1] for line in lines if (found := re.match(r"(?:\$ )?(?:[\w./]+/)?(interlock .*)", line))]
    return typed + re.findall(r"`(interlock [^`]+)`", page.read_text(encoding="utf-8").replace("```", ""))


def split_shown(shown: str) -> Iterator[list[str]]:
    """The words of each command of a line; the options that its comment names go with the last one."""
    line, _, comment = shown.replace(" | ", "|").partition("  #")
    commands = [shlex.split(part)[1:] for part in re.split(r"\s{2,}| > ", line)[0].split("; ")]
    commands[-1] += re.findall(r"--[a-z-]+", comment)
    for words in commands:
        yield [word.strip("[]") for word in words]


def find_leaves(words: list[str]) -> tuple[dict[str, CommandParser], list[str]]:
    """The commands that words such as `turns list|show ID` name, each by its own words, and the words behind them."""
    rest, found = list(words), {"": CommandParser(prog="interlock")}
    found[""].add_subparsers(dest="command")
    while rest and all(parser.group is not None for parser in found.values()):
        below, names = {}, rest.pop(0).split("|")
        for before, parser in found.items():
            for name in names:
                assert parser.group is not None
                if not before and name not in parser.group.choices:  # one module may bring several
                    _find_command(name)(parser.group, add_common)
                assert name in parser.group.choices, f"there is no command interlock {before} {name}"
                below[f"{before} {name}".strip()] = parser.group.choices[name]
        found = below
    return found, rest


def check_arguments(parser: CommandParser, words: list[str]) -> None:
    """Every option is one of the command's; a value or positional that has choices is one of them; none is too many."""
    options = parser._option_string_actions
    positionals = [action for action in parser._actions if not action.option_strings]
    takes: Action | None = None
    for word in words:
        for part in word.split("|"):
            if part.startswith("--"):
                assert part in options, f"{parser.prog} has no option {part}"
                takes = None if options[part].nargs == 0 else options[part]
                continue
            if takes is None:
                assert positionals, f"{parser.prog} does not take {part}"
                takes = positionals[0] if positionals[0].nargs in ("*", "+", REMAINDER) else positionals.pop(0)
            assert takes.choices is None or part in takes.choices, f"{parser.prog} does not know {part}"
        takes = takes if word.rpartition("|")[2].startswith("--") else None


def check_shown(shown: str) -> list[str]:
    """The commands that a line shows, by their words, after what stands behind them was held against each of them."""
    names = []
    for words in split_shown(shown):
        leaves, rest = find_leaves([] if words[0] in ("--help", "--version") else words)
        for name, parser in leaves.items():
            # What stands behind `--` is another program's.
            own = rest.index("--") if parser.after_dashes and "--" in rest else len(rest)
            check_arguments(parser, rest[:own])
            names.append(name)
    return names


@pytest.mark.parametrize(
    "shown", sorted({shown for page in PAGES for shown in shown_commands(page)}), ids=lambda shown: shown[:60]
)
def test_every_command_and_option_that_a_page_shows_exists(shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    for name in check_shown(shown):
        with pytest.raises(SystemExit) as stop:
            main([*name.split(), "--help"])
        assert stop.value.code == 0
        assert capsys.readouterr().out.startswith(f"usage: interlock {name}".strip())


@pytest.mark.parametrize(
    "shown",
    [
        "interlock nonsense",
        "interlock undo|nonsense",
        "interlock turns list|nonsense",
        "interlock turns list_all          questions",
        "interlock metrics nonsense        what the records add up to",
        "interlock metrics [--json|--nonsense]",
        "interlock halt|unhalt --tool|--nonsense",
        "interlock call TOOL --mode nonsense",
        "interlock config show EVERYTHING",
        "interlock catalog run --apply   # [--nonsense]",
        "interlock catalog runs; interlock catalog nonsense",
    ],
)
def test_a_command_that_does_not_exist_is_found_however_it_is_shown(shown: str) -> None:
    with pytest.raises((AssertionError, ConfigError), match=r"nonsense|list_all|EVERYTHING"):
        check_shown(shown)


def test_the_table_of_the_readme_and_the_overview_name_every_command() -> None:
    (table,) = [block for block in blocks(ROOT / "README.md", "") if block.code.startswith("interlock ask APP")]
    named = {name for line in table.code.splitlines() for name in check_shown(line)}
    there = set()
    for command in OWN_COMMANDS:
        group = find_leaves([command.name])[0][command.name].group
        actions = [] if group is None else list(group.choices)
        there |= {f"{command.name} {action}" for action in actions} or {command.name}
        assert [action for action in actions if action not in re.findall(r"[\w-]+", command.help)] == []
    assert named == there


def test_every_make_target_that_a_page_names_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for page in PAGES:
        for target in re.findall(r"`make ([a-z-]+)`", page.read_text(encoding="utf-8")):
            assert target in targets, f"{page.name}: {target}"


def test_settings_packs_and_functions_are_all_documented() -> None:
    settings = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    policy = (ROOT / "docs" / "policy.md").read_text(encoding="utf-8")
    assert [name for name in HELP if f"`{name}`" not in settings] == []
    assert [name for name in PACKS if f"`{name}`" not in policy] == []
    assert [name for name in FUNCTIONS if name not in policy] == []


def test_what_python_callers_use_is_all_documented() -> None:
    text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    details = {
        *CallDetails.__annotations__,
        *Parts.__annotations__,
        *Changes.__annotations__,
        *TurnDetails.__annotations__,
    }
    assert [name for name in sorted(details) if f"`{name}`" not in text] == []
    for kind in (Runtime, Operations):
        methods = [name for name in vars(kind) if not name.startswith("_")]
        assert [name for name in methods if not re.search(rf"[`.]{name}[`(]", text)] == []


def test_no_committed_file_names_an_index() -> None:
    for name in ("constraints.txt", "pyproject.toml", "Makefile", "benchmarks/requirements.txt"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert "index-url" not in text
        assert "http://" not in text
        assert "https://" not in text


def test_what_is_missing_is_named_for_a_clone_and_for_a_release_by_one_sentence() -> None:
    said = re.compile(r"pip install [^\n]*interlock\[")
    found = [path for path in (ROOT / "src").rglob("*.py") if said.search(path.read_text(encoding="utf-8"))]
    assert [path.name for path in found] == ["errors.py"]
    pages = [
        page.name
        for page in PAGES
        for line in page.read_text(encoding="utf-8").splitlines()
        if said.search(line) and "in a clone" not in line
    ]
    assert pages == []


def test_the_surface_lists_what_a_context_holds_and_every_error_that_a_tool_may_raise() -> None:
    page = (ROOT / "docs" / "surface.md").read_text(encoding="utf-8")
    held = re.search(r"A `Context` has (.+?)\n\n", page, re.DOTALL)
    assert held is not None
    assert set(re.findall(r"`(\w+)`", held[1])) == set(Context.__struct_fields__)
    raised = {kind.__name__ for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, ToolError)}
    missing = raised - set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    assert missing <= {"ToolError", "Transient", "Retriable"}


def test_the_signatures_on_the_page_about_http_are_those_of_the_code() -> None:
    found = dict[str, list[str]]()
    for block in blocks(ROOT / "docs" / "http.md", "text"):
        for line in block.code.splitlines():
            name, _, rest = line.partition("(")
            found[name] = re.findall(r"\w+", rest)
    for name, parameters in found.items():
        owner, _, method = name.partition(".")
        kind = {"Egress": Egress, "HttpClient": HttpClient, "HttpDocuments": HttpDocuments}[owner]
        said = [each for each in signature(getattr(kind, method or "__init__")).parameters if each != "self"]
        if owner == "HttpClient":
            options = RequestOptions if method else AnswerBytes
            said = [*said[:-1], *options.__annotations__]
        assert parameters == said, name
