"""What it costs to start: CPU time of whole processes, in one run, beside `import pydantic`.

    python benchmarks/start.py [RUNS]

Every program is run once to warm the disk and to write its bytecode, as an installed library has it, then RUNS times
(default 7) in turn with the others; the median counts. CPU time, not time on the clock; still, a busy machine inflates
it, so that only the ratios of one run are worth comparing.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile

PYTHON = "python, nothing else"
PYDANTIC = "import pydantic"
INTERLOCK = "from interlock import Runtime, tool"
OPEN = f"""{INTERLOCK}
@tool(effect="read")
def look(place: str) -> str:
    return place
Runtime.open("memory://", policy={{"version": 1}}, tools=look)
"""
PROGRAMS = {
    PYTHON: ("-c", "pass"),
    PYDANTIC: ("-c", PYDANTIC),
    INTERLOCK: ("-c", INTERLOCK),
    "… one tool, and a runtime opened": ("-c", OPEN),
    "interlock --help": ("-m", "interlock", "--help"),
    "interlock --version": ("-m", "interlock", "--version"),
}


def measure_cpu_ms(arguments: tuple[str, ...], bytecode: str) -> float:
    """User and system time of one run of Python."""
    settings = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *arguments],
        stdout=subprocess.DEVNULL,
        check=True,
        env={**settings, "PYTHONPYCACHEPREFIX": bytecode},
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


def measure(runs: int = 7) -> dict[str, float]:
    """The median CPU milliseconds of every program."""
    taken: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    with tempfile.TemporaryDirectory(prefix="interlock-bytecode-") as bytecode:
        for arguments in PROGRAMS.values():
            measure_cpu_ms(arguments, bytecode)
        for _ in range(runs):
            for name, arguments in PROGRAMS.items():
                taken[name].append(measure_cpu_ms(arguments, bytecode))
    return {name: statistics.median(times) for name, times in taken.items()}


def main() -> None:
    """Measure every program, and print the medians."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    medians = measure(runs)
    print(f"{'program':<38}{'CPU ms':>8}{'beside ' + PYDANTIC:>24}   (median of {runs} runs)")
    for name, ms in medians.items():
        print(f"{name:<38}{ms:>8.0f}{ms / medians[PYDANTIC]:>24.2f}")


if __name__ == "__main__":
    main()
