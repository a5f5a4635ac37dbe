"""What it costs to start: CPU time of whole processes, in one run, beside `import pydantic`.

    python benchmarks/start.py [RUNS]

Every program is run once to warm the disk, then RUNS times (default 7) in turn with the others; the median counts.
CPU time, not time on the clock: it is the same on a busy machine.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys

PROGRAMS = {
    "python, nothing else": ("-c", "pass"),
    "import pydantic": ("-c", "import pydantic"),
    "from interlock import Runtime, tool": ("-c", "from interlock import Runtime, tool"),
    "interlock --help": ("-m", "interlock", "--help"),
    "interlock --version": ("-m", "interlock", "--version"),
}
BESIDE = "import pydantic"


def measure_cpu_ms(arguments: tuple[str, ...]) -> float:
    """User and system time of one run of Python."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


def main() -> None:
    """Measure every program, and print the medians."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    for arguments in PROGRAMS.values():
        measure_cpu_ms(arguments)
    taken: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for _ in range(runs):
        for name, arguments in PROGRAMS.items():
            taken[name].append(measure_cpu_ms(arguments))
    medians = {name: statistics.median(times) for name, times in taken.items()}
    print(f"{'program':<38}{'CPU ms':>8}{'beside ' + BESIDE:>24}   (median of {runs} runs)")
    for name, ms in medians.items():
        print(f"{name:<38}{ms:>8.0f}{ms / medians[BESIDE]:>24.2f}")


if __name__ == "__main__":
    main()
