"""The ready-made rules: each hazard in the spellings that attackers use."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from interlock import ConfigError, PolicyError, Runtime, tool
from interlock.addresses import as_address, is_public_host, plain_host, split_url
from interlock.cli.main import main
from interlock.policy import Pack, PackRule, Use, compile_policy, load_policy, parse_policy
from interlock.policy.lists import Lists
from interlock.policy.model import ListSpec, Place
from interlock.tools.egress import Egress
from tests.conftest import expect, install_distribution
from tests.test_policy import facts, judge_call

WEB = Egress(hosts=("*.usda.gov",))


@tool(effect="read", egress=WEB)
async def fetch(
    url: str = "https://example.org/",
    path: str = "/srv/a",
    query: str = "q",
    top_k: int = 5,
    space: str = "n",
    to: list[str] = [],
    one: str = "",
) -> str:
    return url


@tool(effect="read")
async def bare(url: str) -> str:
    return url


def decided(
    use: str, lists: str = "", file: str = "policy.toml", given: Any = None, **arguments: Any
) -> tuple[str, dict[str, Any]]:
    text = f'version = 1\n[[rule]]\nid = "open"\ntools = ["*"]\ndecision = "allow"\n{lists}\n[[use]]\ntools = ["fetch"]\n{use}\n'
    ruleset = compile_policy(parse_policy(text, file), [fetch], given)
    found, changed = judge_call(ruleset.rules("fetch"), facts(arguments, fetch), fetch)
    return found.rule, changed


INSIDE = [
    "https://127.0.0.1/",
    "https://127.1/",
    "https://2130706433/",
    "https://0x7f000001/",
    "https://0x7f.1/",
    "https://0177.0.0.1/",
    "https://017700000001/",
    "https://[::1]/",
    "https://[::]/",
    "https://0.0.0.0/",
    "https://[::ffff:127.0.0.1]/",
    "https://[::ffff:7f00:1]/",
    "https://[::127.0.0.1]/",
    "https://[64:ff9b::7f00:1]/",
    "https://[64:ff9b::a9fe:a9fe]/",
    "https://[2002:7f00:1::]/",
    "https://[fe80::1]/",
    "https://[fc00::1]/",
    "https://[fd00:ec2::254]/",
    "https://[ff02::1]/",
    "https://10.0.0.8/",
    "https://172.16.3.4/",
    "https://192.168.1.1/",
    "https://169.254.169.254/latest/meta-data/",
    "https://100.64.0.1/",
    "https://224.0.0.1/",
    "https://255.255.255.255/",
    "https://localhost/",
    "https://LOCALHOST./",
    "https://x.localhost/",
    "https://printer.local/",
    "https://metadata.google.internal/",
    "https://intranet/",
    "https://①②⑦.⓪.⓪.①/",
    "https://127。0。0。1/",
    "https://１２７.0.0.1/",
    "https://user@127.0.0.1/",
    "https://example.org@127.0.0.1/",
    "https://127.0.0.1:443/",
    "https:\\\\127.0.0.1/",
    "https://exa mple.org/",
    "https:///path",
    "https://example.org%2f@127.0.0.1/",
    "https://example.org:port/",
    "https://[::1",
    "https://%31%32%37.0.0.1/",
]


@pytest.mark.parametrize("url", INSIDE)
def test_addresses_that_lead_inside_are_denied(url: str) -> None:
    rule, _ = decided('pack = "public-url"\nfield = "url"', url=url)
    assert rule.startswith("public-url:url:")


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/a?b=c#d",
        "https://8.8.8.8/",
        "https://[2606:4700::1111]/",
        "HTTPS://Example.ORG./",
        "https://bücher.example/",
    ],
)
def test_public_addresses_pass(url: str) -> None:
    assert decided('pack = "public-url"\nfield = "url"', url=url)[0] == "open"


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("https://www.fs.usda.gov/x", "open"),
        ("https://usda.gov/", "public-url:url:host"),
        ("https://evilusda.gov/", "public-url:url:host"),
        ("https://www.usda.gov.evil.org/", "public-url:url:host"),
        ("http://www.usda.gov/", "public-url:url:scheme"),
        ("file:///etc/passwd", "public-url:url:scheme"),
        ("gopher://www.usda.gov/", "public-url:url:scheme"),
    ],
)
def test_schemes_and_hosts_are_allow_lists(url: str, rule: str) -> None:
    assert decided('pack = "public-url"\nfield = "url"\nhosts = ["*.usda.gov"]', url=url)[0] == rule


def test_the_pack_is_refused_on_a_tool_that_does_not_fetch_through_the_transport() -> None:
    text = 'version = 1\n[[use]]\npack = "public-url"\ntools = ["bare"]\nfield = "url"\n'
    with pytest.raises(PolicyError, match=r"only if it fetches through interlock\.tools\.egress"):
        compile_policy(parse_policy(text), [bare])


def test_names_and_addresses_are_read_in_one_plain_form() -> None:
    assert split_url("HTTPS://Example.ORG.:443/a") == ("https", "example.org")
    assert str(as_address("0x7f.1")) == "127.0.0.1"
    assert as_address("example.org") is None
    assert not is_public_host("fe80::1%eth0")
    with pytest.raises(ValueError, match="is not a host name"):
        plain_host("")


@pytest.mark.parametrize(
    ("path", "allowed"),
    [("{root}/a.txt", True), ("{root}", True), ("{root}/sub/../a", True), ("{root}/../x", False), ("/etc/passwd", False),
     ("{root}x/a", False), ("~/a", False), ("{root}/link/a", False), ("../etc", False)],
)  # fmt: skip
def test_paths_stay_below_their_roots_with_links_followed(tmp_path: Path, path: str, allowed: bool) -> None:
    root = tmp_path / "root"
    root.mkdir()
    os.symlink("/etc", root / "link")
    rule, _ = decided(f'pack = "roots"\nfield = "path"\nroots = ["{root}"]', path=path.format(root=root))
    assert (rule == "open") is allowed


@pytest.mark.parametrize(
    ("query", "rule"), [("abc", "open"), ("a", "bounds:query:min"), ("a" * 11, "bounds:query:max")]
)
def test_text_has_bounds(query: str, rule: str) -> None:
    assert decided('pack = "bounds"\nfield = "query"\nmin = 2\nmax = 10', query=query)[0] == rule


def test_top_k_is_clamped() -> None:
    rule, changed = decided('pack = "top-k"\nfield = "top_k"\nmax = 20', top_k=500)
    assert (rule, changed["top_k"]) == ("open", 20)
    assert decided('pack = "top-k"\nfield = "top_k"\nmax = 20', top_k=3)[1]["top_k"] == 3


def test_namespaces_are_an_allow_list() -> None:
    use = 'pack = "namespaces"\nfield = "space"\nallow = ["a", "b\'c"]'
    assert [decided(use, space=name)[0] for name in ("a", "b'c", "d")] == [
        "open",
        "open",
        "namespaces:space:namespace",
    ]


def test_namespaces_may_come_from_the_policy_a_file_a_query_or_the_application(tmp_path: Path, postgres: str) -> None:
    import psycopg

    (tmp_path / "names.txt").write_text("a\n\nb\n")
    with sqlite3.connect(tmp_path / "names.db") as connection:
        connection.execute("CREATE TABLE names (name TEXT)")
        connection.execute("INSERT INTO names VALUES ('a')")
    connection.close()
    with psycopg.connect(postgres, autocommit=True) as server:
        server.execute("CREATE TABLE names AS SELECT 'a' AS name")
    use = 'pack = "namespaces"\nfield = "space"\nlist = "names"'
    file = str(tmp_path / "policy.toml")
    for lists in (
        '[lists]\nnames = ["a"]',
        '[lists.names]\nfile = "names.txt"',
        '[lists.names]\ndatabase = "sqlite:///names.db"\nquery = "SELECT name FROM names"',
        f'[lists.names]\ndatabase = "{postgres}"\nquery = "SELECT name FROM names"',
    ):
        assert [decided(use, lists, file, space=name)[0] for name in ("a", "z")] == [
            "open",
            "namespaces:space:namespace",
        ]
    given = {"names": lambda: {"q"}}
    assert [decided(use, "", given=given, space=name)[0] for name in ("q", "a")] == [
        "open",
        "namespaces:space:namespace",
    ]


def test_a_list_that_can_change_is_read_again_after_its_time_and_a_failing_one_denies(tmp_path: Path) -> None:
    held: list[Any] = ["a"]

    def source() -> list[str]:
        if held[0] is None:
            raise OSError("gone")
        return list(held)

    text = 'version = 1\n[[rule]]\nid = "open"\ntools = ["*"]\ndecision = "allow"\n[lists.names]\nvalues = ["x"]\nttl_s = 0.000001\n[[use]]\npack = "namespaces"\nid = "ns"\ntools = ["fetch"]\nfield = "space"\nlist = "names"\n'
    rules = compile_policy(parse_policy(text), [fetch], {"names": source}).rules("fetch")

    def rule(space: str) -> str:
        return judge_call(rules, facts({"space": space}, fetch), fetch)[0].rule

    assert [rule("a"), rule("b")] == ["open", "ns:namespace"]
    held[0] = "b"
    assert [rule("a"), rule("b")] == ["ns:namespace", "open"]
    held[0] = None
    assert "could not be evaluated" in judge_call(rules, facts({"space": "b"}, fetch), fetch)[0].reason


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_the_first_name_of_a_file_is_on_its_list_with_a_byte_order_mark_or_without(
    encoding: str, tmp_path: Path
) -> None:
    (tmp_path / "blocked.txt").write_bytes("mallory\r\neve\r\n".encode(encoding))
    spec = ListSpec("blocked", Place("p.toml", 1), file="blocked.txt")
    lists = Lists({"blocked": spec}, {}, tmp_path)
    assert [lists.holds("blocked", name) for name in ("mallory", "eve", "bob")] == [True, True, False]


def test_a_database_that_does_not_answer_denies_in_time_and_is_asked_again_when_it_does(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "names.db", isolation_level=None)
    database.execute("CREATE TABLE names (name)")
    database.execute("INSERT INTO names VALUES ('bob')")
    database.execute("BEGIN EXCLUSIVE")
    query = "SELECT name FROM names"
    spec = ListSpec("names", Place("p.toml", 1), database="sqlite:///names.db", query=query)
    lists = Lists({"names": spec}, {}, tmp_path)
    before = time.monotonic()
    with pytest.raises(TimeoutError, match="no answer in 1 s"):
        lists.holds("names", "bob")
    with pytest.raises(TimeoutError, match="has not come back yet"):
        lists.holds("names", "bob")
    assert time.monotonic() - before < 4
    database.execute("ROLLBACK")
    for thread in threading.enumerate():
        if thread.name == "interlock-list":
            thread.join(30)
    assert lists.holds("names", "bob")
    database.close()


@pytest.mark.parametrize(
    ("to", "allowed"),
    [(["ann@usda.gov"], True), (["Ann <ann@USDA.gov>", "bob@partner.org"], True), (["ann@usda.gov", "eve@evil.org"], False),
     ([], False), (["ann@usda.gov, eve@evil.org"], False), (["ann@usda.gov\nBcc: eve@evil.org"], False), (["usda.gov"], False),
     (["eve@evil.org@usda.gov"], False), (["x@usda.gov <y@evil.org>"], False), (["<x@usda.gov> <y@evil.org>"], False),
     (["x@usda.gov>y@evil.org"], False), (["<@evil.org:x@usda.gov>"], False), (["y%evil.org@usda.gov"], False),
     (["-oQ/tmp@usda.gov"], False), (["carl@partner.org"], False), (["ann@notusda.gov"], False)],
)  # fmt: skip
def test_recipients_are_in_allowed_domains_or_named(to: list[str], allowed: bool) -> None:
    use = 'pack = "recipients"\nfield = "to"\ndomains = ["usda.gov"]\naddresses = ["bob@partner.org"]'
    assert (decided(use, to=to)[0] == "open") is allowed


def test_a_single_recipient_may_be_text() -> None:
    use = 'pack = "recipients"\nfield = "one"\ndomains = ["usda.gov"]'
    assert decided(use, one="ann@usda.gov")[0] == "open"
    assert decided(use, one="ann@evil.org")[0] != "open"


@pytest.mark.parametrize(
    ("use", "sentence"),
    [
        ('pack = "bounds"\nfield = "query"', "bounds needs min or max"),
        ('pack = "top-k"\nfield = "top_k"\nmax = "9"', "top-k needs max"),
        ('pack = "recipients"\nfield = "to"', "recipients needs domains or addresses"),
        ('pack = "roots"\nfield = "path"\nroot = ["/"]', "unknown key 'root'; did you mean 'roots'?"),
        (
            'pack = "roots"\nfield = "paths"\nroots = ["/"]',
            "has no parameter 'paths'; did you mean 'args.path'?",
        ),
        ('pack = "roots"\nroots = ["/"]', "field is missing"),
    ],
)
def test_a_pack_that_is_used_wrongly_is_refused(use: str, sentence: str) -> None:
    with pytest.raises(PolicyError) as error:
        decided(use)
    assert sentence in str(error.value)


def _build_shift(use: Use) -> list[PackRule]:
    most = use.number("max")
    if most is None:
        use.refuse("shift needs max")
        return []
    return [
        PackRule(id="long", when=f"{use.field} > {most:g}", reason=f"longer than {most:g} hours"),
        PackRule(id="short", when=f"{use.field} < 1", set={use.argument: 1}, reason="at least an hour"),
    ]


SHIFT = Pack(name="shift", keys=("max",), build=_build_shift)
NIGHT = Pack(
    name="night",
    looks_at_field=False,
    build=lambda _use: [PackRule(when="actor == 'night'", reason="not at night")],
)
USE = 'version = 1\n[[rule]]\nid = "open"\ntools = ["*"]\ndecision = "allow"\n[[use]]\ntools = ["fetch"]\n'


@pytest.mark.parametrize(("top_k", "rule", "becomes"), [(4, "open", 4), (9, "shift:top_k:long", 9), (0, "open", 1)])
def test_a_pack_of_ones_own_denies_and_clamps_as_the_built_in_ones_do(top_k: int, rule: str, becomes: int) -> None:
    policy = parse_policy(USE + 'pack = "shift"\nfield = "top_k"\nmax = 8\n', packs=[SHIFT])
    rules = compile_policy(policy, [fetch]).rules("fetch")
    found, changed = judge_call(rules, facts({"top_k": top_k}, fetch), fetch)
    assert (found.rule, changed["top_k"]) == (rule, becomes)


async def test_the_runtime_takes_packs_and_a_pack_need_not_look_at_an_argument() -> None:
    policy = {"version": 1, "rule": [{"id": "open", "tools": ["*"], "decision": "allow"}]}
    policy["use"] = [{"pack": "night", "tools": ["fetch"]}]
    runtime = Runtime.open("memory://", policy=policy, tools=fetch, packs=NIGHT)
    denied = await runtime.call("fetch", {}, actor="night")
    verdict = expect(denied.verdict)
    assert (verdict.rule, verdict.reason) == ("night", "not at night")
    assert (await runtime.call("fetch", {}, actor="day")).ok
    await runtime.close()


def _broken(name: str, *rules: Any) -> Pack:
    return Pack(name=name, build=lambda _use: rules)


def _failing(_use: Use) -> list[PackRule]:
    raise LookupError("no such thing")


@pytest.mark.parametrize(
    ("pack", "use", "sentence"),
    [
        (SHIFT, 'pack = "shift"\nfield = "top_k"', "[[use]]: shift needs max"),
        (SHIFT, 'pack = "shift"\nfield = "top_k"\nmaxx = 8', "unknown key 'maxx'; did you mean 'max'?"),
        (SHIFT, 'pack = "shift"\nmax = 8', "field is missing or not text"),
        (SHIFT, 'pack = "shif"\nfield = "top_k"\nmax = 8', "there is no pack 'shif'; did you mean 'shift'? packs are bounds,"),
        (SHIFT, 'pack = "shift"\nfield = "query"\nmax = 8', "rule 'shift:query:long' for 'fetch'"),
        (NIGHT, 'pack = "night"\nfield = "query"', "unknown key 'field'"),
        (_broken("odd", 3), 'pack = "odd"\nfield = "query"', "the pack 'odd' makes int where a PackRule is expected"),
        (_broken("odd", PackRule(when="", reason="")), 'pack = "odd"\nfield = "query"', "a rule without a condition"),
        (_broken("odd", PackRule(when="args.x", reason="")), 'pack = "odd"\nfield = "query"', "has no parameter 'x'"),
        (Pack(name="odd", build=_failing), 'pack = "odd"\nfield = "query"', "the pack 'odd' failed: LookupError: no such thing"),
    ],
)  # fmt: skip
def test_a_pack_of_ones_own_is_checked_like_the_built_in_ones(pack: Pack, use: str, sentence: str) -> None:
    with pytest.raises(PolicyError) as error:
        compile_policy(parse_policy(USE + use, packs=[pack]), [fetch])
    assert sentence in str(error.value)


@pytest.mark.parametrize(
    ("packs", "sentence"),
    [
        ([Pack(name="roots", build=_failing)], "there are two packs called 'roots'"),
        ([SHIFT, SHIFT], "there are two packs called 'shift'"),
        (["shift"], "packs= takes interlock.policy.Pack values, not str"),
    ],
)
def test_packs_that_cannot_be_taken_are_refused(packs: Any, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        parse_policy("version = 1", packs=packs)


def test_packs_for_a_policy_that_was_read_already_are_refused() -> None:
    with pytest.raises(ConfigError, match="packs= has no effect"):
        load_policy(parse_policy("version = 1"), packs=[SHIFT])


MODULE = """
from interlock.cli.main import main
from interlock.policy import Pack, PackRule

def build(use):
    yield PackRule(id="odd", when=f"{use.field} % 2 == 1", reason="only even ones")

EVEN = Pack(name="even", build=build)
"""


@pytest.mark.parametrize(
    ("field", "status", "said"),
    [("times", 0, "all can decide"), ("tims", 1, "has no parameter 'tims'; did you mean")],
)
@pytest.mark.slow
def test_an_installed_pack_is_found_by_its_entry_point_and_by_the_commands(
    tmp_path: Path, field: str, status: int, said: str
) -> None:
    install_distribution(tmp_path, "evens", MODULE, "interlock.packs", "even = evens:EVEN")
    use = f'[[use]]\npack = "even"\ntools = ["echo"]\nfield = "{field}"\n'
    (tmp_path / "policy.toml").write_text(USE.partition("[[use]]")[0] + use)
    (tmp_path / "interlock.toml").write_text('tools = ["tests.conftest:echo"]\n')
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    ran = subprocess.run(
        [sys.executable, "-m", "interlock", "policy", "check"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": paths, "COLUMNS": "200"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (said in ran.stdout + ran.stderr, ran.returncode != 0) == (True, bool(status)), ran


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("evens:EVEN", ""),
        ("evens:build", "packs: 'evens:build' is no Pack"),
        ("evens:GONE", "packs: 'evens:GONE' cannot be imported"),
        (None, "there is no pack 'even'"),
    ],
)
@pytest.mark.parametrize(
    "command", [["call", "echo", '{"text": "a", "times": 3}', "--actor", "ann"], ["policy", "check"]]
)
def test_commands_find_the_packs_that_the_settings_name(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: list[str],
    setting: str | None,
    sentence: str,
) -> None:
    (tmp_path / "evens.py").write_text(MODULE)
    use = '[[use]]\npack = "even"\ntools = ["echo"]\nfield = "times"\n'
    (tmp_path / "policy.toml").write_text(USE.partition("[[use]]")[0] + use)
    named = "" if setting is None else f'packs = ["{setting}"]\n'
    (tmp_path / "interlock.toml").write_text(f'tools = ["tests.conftest:echo"]\nstore = "memory://"\n{named}')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "evens", raising=False)
    status, said = main(command), capsys.readouterr()
    if sentence:
        assert (status != 0, sentence in said.err) == (True, True), said
    elif command[0] == "call":
        assert "only even ones" in said.out + said.err, said
    else:
        assert status == 0, said


@pytest.mark.parametrize(
    ("entry_points", "sentence"),
    [
        ("even = gone:EVEN", "the installed pack 'even' (gone:EVEN) cannot be loaded: ModuleNotFoundError"),
        ("even = evens:build", "the installed pack 'even' (evens:build) is no interlock.policy.Pack of that name"),
        ("odd = evens:EVEN", "there is no pack 'even'; packs are bounds, exfiltration, namespaces, odd,"),
    ],
)
def test_an_installed_pack_that_cannot_be_used_is_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry_points: str, sentence: str
) -> None:
    install_distribution(tmp_path, "evens", MODULE, "interlock.packs", entry_points)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(PolicyError) as error:
        parse_policy(USE + 'pack = "even"\nfield = "top_k"\n')
    assert sentence in str(error.value)


def test_two_installed_packs_of_one_name_are_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("evens", "others"):
        install_distribution(tmp_path, name, MODULE, "interlock.packs", f"even = {name}:EVEN")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(PolicyError, match="two installed distributions have a pack 'even'"):
        parse_policy(USE + 'pack = "even"\nfield = "top_k"\n')
