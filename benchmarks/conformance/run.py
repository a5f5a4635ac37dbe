"""The conformance suite of MCP, directly against a server and through the gateway; and its client side likewise.

The suite and Node come from npm, the server and the client that it is held against from the source distribution of the
SDK; all of it lies in `build/conformance` and is installed when it is missing. A scenario passes if at least one of its
checks succeeded, none failed and none warned. The script ends with 1 if a scenario is lost (it passes directly, or with
the client of the SDK, and not with Interlock) or if the ledger does not verify, and with 2 if it cannot be run.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple, NoReturn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from conformance.installing import (
    CACHE,
    CLIENT,
    EXAMPLE,
    NEW,
    NODE,
    OLD,
    ROOT,
    SDK,
    CannotRunError,
    example_file,
    install_everything,
    say,
)

PAGE = ROOT / "docs" / "conformance.md"
BEGIN, END = "<!-- conformance: written by the script -->", "<!-- conformance: end -->"
SENSITIVE = "server-stateless"
"""A scenario that measures time: on a busy machine it may fail, so it is run once more by itself before it counts."""
OWN_CLIENT = Path(__file__).with_name("client.py")
AUTHORIZATION = "auth/"
"""What these scenarios begin with. They are not ours: Interlock brings headers from variables, and no login."""
REAL = ("tests/test_mcp_deliveries.py", "tests/test_mcp_profiles.py")
"""Sessions of many calls with the filesystem, memory and everything servers from npm; profiles of servers of PyPI."""
START_S, SUITE_S, CLIENT_S = 60, 900, 60
FINE = (0, 4)
"""Exit codes of `audit verify`: 4 says that nothing is wrong, and that no key was given to check signatures against."""
SETTINGS = """store = "sqlite:///ledger.db"
policy = "policy.toml"
audit_key = "audit.key"
payload_key = "payloads.key"
heads = "heads"
"""
TERMS = '\n[mcp.every.tools."*"]\nrepeatable = true\neffect = "send"\n'
POLICY = """version = 1
mode = "apply"

[[rule]]
id = "all"
tools = ["*"]
decision = "allow"
"""


class Suite(NamedTuple):
    """A release of the suite, and the revision of the protocol that it is run for."""

    release: str
    revision: str

    @property
    def package(self) -> Path:
        """Where npm has put it."""
        return CACHE / f"suite-{self.release}" / "node_modules" / "@modelcontextprotocol" / "conformance"

    @property
    def scored(self) -> frozenset[str] | None:
        """What the revision requires; None where the release has no such list, and everything counts."""
        file = self.package / "requirements" / f"{self.revision}.yaml"
        if not file.exists():
            return None
        return frozenset(re.findall(r"^\s*- (\S+)\s*$", file.read_text("utf-8").split("not_scored:")[0], re.MULTILINE))


SUITES = (Suite(OLD, "2025-11-25"), Suite(NEW, "2025-11-25"), Suite(NEW, "2026-07-28"))


class Compared(NamedTuple):
    """The scenarios of a suite that were run, and which of them pass without Interlock and with it."""

    suite: Suite
    ran: tuple[str, ...]
    without: frozenset[str]
    through: frozenset[str]

    @property
    def lost(self) -> list[str]:
        """What passes without Interlock only."""
        return [name for name in self.ran if name in self.without - self.through]

    def rows(self) -> Iterator[str]:
        """The lines of the table: what counts, and what the suite runs without counting it."""
        scored = self.suite.scored
        kinds = {"all count": list(self.ran)}
        if scored is not None:
            kinds = {"required": [name for name in self.ran if name in scored]}
            kinds["not scored"] = [name for name in self.ran if name not in scored]
        for kind, names in kinds.items():
            if names:
                lost = ", ".join(f"`{name}`" for name in names if name in self.lost) or "none"
                counts = [len(names), *(len(passed & set(names)) for passed in (self.without, self.through))]
                cells = [self.suite.release, self.suite.revision, kind, *map(str, counts), lost]
                yield f"| {' | '.join(cells)} |"


def free_port() -> int:
    """A port of the loopback interface that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def tail(file: Path) -> str:
    """The end of a log."""
    return "\n".join(file.read_text("utf-8", errors="replace").splitlines()[-8:])


def wait_for(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Wait until a process that was started answers on its port."""
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        if process.poll() is not None:
            raise CannotRunError(f"the {log.stem} has ended:\n{tail(log)}")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise CannotRunError(f"the {log.stem} gives no answer on port {port} after {START_S} s:\n{tail(log)}")


@contextmanager
def running(command: list[str], port: int, folder: Path, log: str) -> Iterator[str]:
    """A server for the time of the block, from when it answers; its address."""
    with (folder / log).open("wb") as out:
        process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=out, env=environment())
        try:
            wait_for(process, port, folder / log)
            yield f"http://localhost:{port}/mcp"
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def environment() -> dict[str, str]:
    """The variables of this process without settings of Interlock: those of the run stand in its folder."""
    return {name: value for name, value in os.environ.items() if not name.startswith("INTERLOCK_")}


def interlock(*words: str) -> list[str]:
    """A command of this Interlock."""
    return [sys.executable, "-m", "interlock", *words]


@contextmanager
def gateway(url: str, folder: Path) -> Iterator[str]:
    """The gateway in front of a server, with a policy, a ledger and pins in a folder; its address."""
    (folder / "policy.toml").write_text(POLICY, "utf-8")
    settings = folder / "interlock.toml"
    settings.write_text(SETTINGS, "utf-8")
    added = subprocess.run(
        interlock("mcp", "add", "every", "--url", url), cwd=folder, capture_output=True, text=True, env=environment()
    )
    if added.returncode:
        raise CannotRunError(f"interlock mcp add has failed:\n{added.stdout}{added.stderr}")
    # The suite asks for tools by their own names, and makes the same call again and means it.
    text = settings.read_text("utf-8").replace("[mcp.every]\n", '[mcp.every]\nprefix = ""\n')
    settings.write_text(text + TERMS, "utf-8")
    port = free_port()
    with running(interlock("mcp", "serve", "--http", f"127.0.0.1:{port}"), port, folder, "gateway.log") as address:
        yield address


def run_suite(suite: Suite, words: Iterable[str], out: Path) -> tuple[int, str]:
    """Run the suite; how it ended, and what it printed."""
    node = CACHE / "node" / "node_modules" / ".bin" / "node"
    command = [str(node), str(suite.package / "dist" / "index.js"), *words]
    try:
        done = subprocess.run(
            command, cwd=out, capture_output=True, text=True, errors="replace", timeout=SUITE_S, env=environment()
        )
    except subprocess.TimeoutExpired:
        raise CannotRunError(f"{shlex.join(command)} has not ended after {SUITE_S} s") from None
    return done.returncode, done.stdout + done.stderr


def passed_in(out: Path) -> frozenset[str]:
    """The scenarios that pass by the checks that the suite has saved in a folder."""
    found = set()
    for file in out.rglob("checks.json"):
        counts = [check["status"] for check in json.loads(file.read_text("utf-8"))]
        name = re.sub(r"-\d{4}-\d\d-\d\dT[\d-]+Z$", "", file.parent.relative_to(out).as_posix())
        if "SUCCESS" in counts and not {"FAILURE", "WARNING"} & set(counts):
            found.add(name)
    return frozenset(found)


def try_server(suite: Suite, url: str, how: str) -> tuple[tuple[str, ...], frozenset[str]]:
    """All scenarios for servers of a suite against an address: those that were run, and those that pass."""
    words = ["server", "--url", url, "--output-dir", "."]
    required = ["--requirements", suite.revision]
    active = ["--suite", "active", "--spec-version", suite.revision]
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="interlock-conformance-") as folder:
        out = Path(folder)
        _code, said = run_suite(suite, [*words, *(active if suite.scored is None else required)], out)
        passed = frozenset(name.removeprefix("server-") for name in passed_in(out))
    ran = tuple(dict.fromkeys(re.findall(r"=== Running scenario: (\S+) ===", said)))
    if not ran:
        raise CannotRunError(f"{suite.release} has run no scenario {how}:\n{said[-800:]}")
    if SENSITIVE in ran and SENSITIVE not in passed:
        say(f"  {SENSITIVE} did not pass {how}; it is run again by itself")
        with tempfile.TemporaryDirectory(prefix="interlock-conformance-") as folder:
            run_suite(suite, [*words, "--scenario", SENSITIVE, "--spec-version", suite.revision], Path(folder))
            passed |= frozenset(name.removeprefix("server-") for name in passed_in(Path(folder)))
    took = time.monotonic() - began
    say(f"server {suite.release} {suite.revision} {how}: {len(passed)} of {len(ran)} pass ({took:.0f} s)")
    return ran, passed


def client_scenarios(suite: Suite) -> list[str]:
    """The scenarios for clients that a suite has for its revision."""
    _code, said = run_suite(suite, ["list", "--client", "--spec-version", suite.revision], CACHE)
    return re.findall(r"^  - (\S+)", said, re.MULTILINE)


def try_client(suite: Suite, file: Path, scenarios: Iterable[str], whose: str) -> frozenset[str]:
    """The scenarios, one after another, with a client: those that pass, and in which it ended well."""
    command, began = shlex.join([sys.executable, str(file)]), time.monotonic()
    passed = set[str]()
    for name in scenarios:
        with tempfile.TemporaryDirectory(prefix="interlock-conformance-") as folder:
            words = ["client", "--command", command, "--scenario", name, "--timeout", str(CLIENT_S * 1000)]
            code, said = run_suite(suite, [*words, "--spec-version", suite.revision, "--output-dir", "."], Path(folder))
            if code == 0 and name in passed_in(Path(folder)):
                passed.add(name)
            else:
                why = [line for line in said.splitlines() if re.search("FAILURE|WARNING|CLIENT|SKIPPED", line)]
                say(f"  {name} does not pass with {whose}: {' '.join(why)[:600]}")
    say(f"client {suite.release} {suite.revision} {whose}: {len(passed)} pass ({time.monotonic() - began:.0f} s)")
    return frozenset(passed)


def compare_servers(folder: Path) -> list[Compared]:
    """Every suite against the server itself, and against the gateway in front of it."""
    port = free_port()
    command = [sys.executable, str(example_file(EXAMPLE)), "--port", str(port), "--log-level", "WARNING"]
    found = []
    with running(command, port, folder, "server.log") as url, gateway(url, folder) as address:
        for suite in SUITES:
            ran, without = try_server(suite, url, "directly")
            again, through = try_server(suite, address, "through the gateway")
            found.append(Compared(suite, tuple(dict.fromkeys([*ran, *again])), without, through))
    return found


def compare_clients() -> tuple[list[Compared], list[str]]:
    """Every suite with the client of the SDK and with ours; and the names of the scenarios that are not run."""
    found, left_out = [], dict[str, None]()
    for suite in SUITES:
        names = client_scenarios(suite)
        left_out |= dict.fromkeys(name for name in names if name.startswith(AUTHORIZATION))
        ran = tuple(name for name in names if not name.startswith(AUTHORIZATION))
        if not ran:
            raise CannotRunError(f"{suite.release} lists no scenario for clients")
        without = try_client(suite, example_file(CLIENT), ran, "the SDK's client")
        found.append(Compared(suite, ran, without, try_client(suite, OWN_CLIENT, ran, "Interlock's client")))
    return found, list(left_out)


def verify(folder: Path) -> tuple[bool, int]:
    """Whether the ledger of the gateway verifies, and how many records it has."""
    done = subprocess.run(
        interlock("audit", "verify", "--json"), cwd=folder, capture_output=True, text=True, env=environment()
    )
    if done.returncode not in FINE:
        say(f"audit verify ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return False, 0
    records = int(json.loads(done.stdout)["records"])
    return records > 0, records


def try_real_servers() -> bool:
    """Whether the sessions with real servers through the gateway end as they must: see the test that is run."""
    say("the filesystem, memory and everything servers through the gateway, killed in between; profiles of others")
    words = ["-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", *REAL]
    done = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, env=environment())
    say(done.stdout[-2_000:])
    return done.returncode == 0 and "skipped" not in done.stdout


def table(first: str, second: str, compared: Iterable[Compared]) -> list[str]:
    """A table of counts."""
    head = ["suite", "revision", "which", "scenarios", first, second, "lost"]
    return [f"| {' | '.join(head)} |", "|---" * len(head) + "|", *(row for one in compared for row in one.rows())]


def list_neither(compared: Iterable[Compared]) -> Iterator[str]:
    """A sentence for each suite in which scenarios pass neither without Interlock nor with it."""
    for one in compared:
        names = [name for name in one.ran if name not in one.without | one.through]
        if names:
            listed = ", ".join(f"`{name}`" for name in names)
            yield f"\nNeither passes in {one.suite.release}, {one.suite.revision}: {listed}."


def report(servers: list[Compared], clients: list[Compared], left_out: list[str], ledger: str) -> str:
    """What is printed, and written into the page."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    with_what = f"Interlock {version('interlock')}, mcp {SDK}, Python {platform.python_version()}, Node {NODE}"
    lines = [f"Run on {today} with {with_what}.", "", "Servers:", ""]
    lines += [*table("directly", "through the gateway", servers), *list_neither(servers), "", ledger, ""]
    lines += ["Clients:", "", *table("the SDK's client", "Interlock's client", clients), *list_neither(clients)]
    ran = dict.fromkeys(name for one in clients for name in one.ran)
    lines += ["", f"Run for clients: {', '.join(f'`{name}`' for name in ran)}."]
    lines += ["", f"Not run ({len(left_out)}, of authorization): {', '.join(f'`{name}`' for name in left_out)}."]
    return "\n".join(lines)


def write_page(text: str) -> None:
    """Put the report between the markers of the page."""
    before, begin, rest = PAGE.read_text("utf-8").partition(BEGIN)
    _old, end, after = rest.partition(END)
    if not begin or not end:
        raise CannotRunError(f"{PAGE.name} has lost its markers, {BEGIN} and {END}")
    PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", "utf-8")


def stop(number: int, _frame: object) -> NoReturn:
    """Whoever ends the script ends the servers that it has started."""
    raise SystemExit(128 + number)


def main() -> int:
    """Install what is missing, run everything, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the tables into docs/conformance.md")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, stop)
    try:
        install_everything()
        with tempfile.TemporaryDirectory(prefix="interlock-conformance-") as folder:
            servers = compare_servers(Path(folder))
            intact, records = verify(Path(folder))
        clients, left_out = compare_clients()
        real = try_real_servers()
        said = f"verifies: {records:,} records" if intact else "does not verify, or is empty"
        sessions = "end as by single delivery, and are undone" if real else "do not end as they must"
        ledger = f"The ledger of the gateway {said}. The sessions with real servers (`{'`, `'.join(REAL)}`) {sessions}."
        text = report(servers, clients, left_out, ledger)
        say(f"\n{text}")
        if given.write:
            write_page(text)
    except CannotRunError as error:
        print(error, file=sys.stderr)
        return 2
    return 0 if intact and real and not any(one.lost for one in (*servers, *clients)) else 1


if __name__ == "__main__":
    raise SystemExit(main())
