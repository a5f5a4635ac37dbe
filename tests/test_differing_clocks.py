"""Two processes whose clocks are an hour apart, on one store: nobody alive is taken for dead, nothing is paid twice, who
is dead is dead after a lease, and what has an end ends by the clock of the store."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.shifted import LEASE_S

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

APART = [(0, 3600), (60, -3600)]
"""How many seconds the clock of the first worker is off, and that of the second."""
if os.environ.get("TORTURE"):
    APART += [(one, other) for one in (-3600, -60, 0, 60, 3600) for other in (-3600, -60, 0, 60, 3600) if one != other]


class Started:
    """A worker with clocks of its own."""

    def __init__(self, shift_s: int, url: str, file: Path) -> None:
        now = datetime.now(UTC)
        ends = [(now + timedelta(minutes=minutes)).isoformat() for minutes in (30, -30)]
        command = [sys.executable, "-m", "tests.shifted", str(shift_s), url, str(file), *ends]
        root = Path(__file__).parent.parent
        self.process = subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = int(self.hear()["ready"])

    def tell(self, do: str, **given: Any) -> None:
        self._write({"do": do, "given": given})

    def go_on(self) -> None:
        self._write("go on")

    def hear(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the worker has ended"
        return json.loads(line)

    def ask(self, do: str, **given: Any) -> Any:
        self.tell(do, **given)
        return self.hear()["did"]

    def end(self) -> None:
        if self.process.poll() is None:
            self._write(None)
        self.close()

    def kill(self) -> None:
        self.process.kill()  # nothing, where it has ended
        self.close()

    def close(self) -> None:
        self.process.wait(60)
        for end in (self.process.stdin, self.process.stdout):
            if end is not None:
                end.close()

    def _write(self, line: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(line) + "\n")
        self.process.stdin.flush()


Start = Callable[[int], Started]


@pytest.fixture
def paid(tmp_path: Path) -> Path:
    file = tmp_path / "paid"
    file.touch()
    return file


@pytest.fixture
def start(durable_url: str, paid: Path) -> Iterator[Start]:
    with ExitStack() as stack:

        def begin(shift_s: int) -> Started:
            started = Started(shift_s, durable_url, paid)
            stack.callback(started.kill)
            return started

        yield begin


@pytest.mark.parametrize(("one", "other"), APART)
def test_two_workers_whose_clocks_differ(start: Start, paid: Path, one: int, other: int) -> None:
    first, second = start(one), start(other)
    check_approvals(first, second)
    check_approvals(second, first)
    check_that_the_live_are_left_alone(first, second)
    check_that_the_dead_are_not_waited_for(first, second)
    assert sorted(paid.read_text().split()) == sorted([f"asked-{first.pid}", f"asked-{second.pid}", "left", "live"])
    second.end()


def check_approvals(asker: Started, reviewer: Started) -> None:
    """A question is open for ten minutes, an approval good for as long, and a delegation is over when it is over."""
    ticket = asker.ask("ask", order=f"asked-{asker.pid}")
    assert "may not decide this" in reviewer.ask("decide", ticket=ticket, by="user:former")
    assert reviewer.ask("decide", ticket=ticket, by="user:deputy") == "approved"
    assert asker.ask("resume", ticket=ticket)[0] == "ok"


def check_that_the_live_are_left_alone(holder: Started, beside: Started) -> None:
    """Also after its lease would be over, had it not been renewed."""
    holder.tell("pay", order="live", waits=True)
    assert holder.hear() == {"entered": "live"}
    assert beside.ask("recover", during_s=1.5 * LEASE_S) == [], "somebody alive was taken for dead"
    beside.tell("pay", order="live")
    holder.go_on()
    assert (holder.hear(), beside.hear()) == ({"did": "ok"}, {"did": "ok"})


def check_that_the_dead_are_not_waited_for(holder: Started, beside: Started) -> None:
    """Longer than a lease, by the clock of the store."""
    holder.tell("pay", order="left", waits=True)
    assert holder.hear() == {"entered": "left"}
    holder.kill()
    assert beside.ask("recover", during_s=50) == ["failed"], "its probe says that nothing was paid"
    assert beside.ask("pay", order="left") == "ok"
