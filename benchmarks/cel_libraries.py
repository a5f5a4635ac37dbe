"""`make bench-cel`: two CEL libraries side by side, each probe in a process of its own, as a crash is an answer too."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

CONDITIONS = [f"args.n > {100 + i} && args.name.startsWith('w{i}')" for i in range(9)] + ["args.n > 0 && actor == 'a'"]
DATA = {"args": {"n": 5, "name": "waldo", "any": {}}, "actor": "a"}


def google(expression: str) -> Callable[[dict[str, Any]], Any]:
    """cel-expr-python, each argument declared as a variable with its type."""
    from cel_expr_python import cel

    kinds = {
        "args.n": cel.Type.INT,
        "args.name": cel.Type.STRING,
        "args.any": cel.Type.Map(cel.Type.STRING, cel.Type.DYN),
        "args.many": cel.Type.List(cel.Type.INT),
        "actor": cel.Type.STRING,
    }
    program = cel.NewEnv(variables=kinds).compile(expression)

    def run(data: dict[str, Any]) -> Any:
        flat = {f"args.{key}": value for key, value in data["args"].items()} | {"actor": data["actor"]}
        value = program.eval(data=flat)
        if value.type() == cel.Type.ERROR:
            raise ValueError(str(value.value()))
        return value.plain_value()

    return run


def rust(expression: str) -> Callable[[dict[str, Any]], Any]:
    """common-expression-language."""
    import cel

    return cel.compile(expression).execute  # type: ignore[no-any-return]


def deep(levels: int) -> dict[str, Any]:
    """A value nested so many levels."""
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


PROBES: dict[str, Callable[[Any], Any]] = {
    "unknown field at compile": lambda make: make("args.nmae == 'x'") and "accepted",
    "wrong type at compile": lambda make: make("args.n == 'x'") and "accepted",
    "bad regex": lambda make: make("args.name.matches('(')")(DATA),
    "regex bomb, 50,000 characters": lambda make: make("args.name.matches('(a+)+$')")(_with(name="a" * 50_000 + "!")),
    "10^9 nested iterations": lambda make: make("args.many.all(a, args.many.all(b, args.many.all(c, a + b + c >= 0)))")(
        _with(many=list(range(1000)))
    ),
    "100,000 parentheses": lambda make: make("(" * 100_000 + "true" + ")" * 100_000) and "accepted",
    "integer over 64 bits": lambda make: make("args.n > 0")(_with(n=2**70)),
    "lone surrogate": lambda make: make("size(args.name) > 0")(_with(name="\ud800")),
    "NUL inside a text": lambda make: make("args.name == 'waldo'")(_with(name="waldo\0evil")),
    "value nested 1,000 deep": lambda make: make("args.any.a != null")(_with(any=deep(1000))),
    "value nested 100,000 deep": lambda make: make("args.any.a != null")(_with(any=deep(100_000))),
}


def _with(**arguments: Any) -> dict[str, Any]:
    return {"args": {**DATA["args"], **arguments}, "actor": "a"}  # type: ignore[dict-item]


def probe(library: str, name: str) -> str:
    """What one probe gives, in words."""
    command = [sys.executable, __file__, library, name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except subprocess.TimeoutExpired:
        return "runs on (ended after 20 s)"
    return done.stdout.strip() if done.returncode == 0 else f"the process dies ({-done.returncode})"


def speed(make: Any) -> tuple[float, float, float]:
    """CPU microseconds: ten conditions joined in one program, one by one, and a single one."""
    joined = make(" + ".join(f"(({text}) ? {1 << bit} : 0)" for bit, text in enumerate(CONDITIONS)))
    each = [make(text) for text in CONDITIONS]
    return _time(lambda: joined(DATA)), _time(lambda: [one(DATA) for one in each]), _time(lambda: each[-1](DATA))


def _time(work: Callable[[], Any], count: int = 5000) -> float:
    work()
    started = time.process_time()
    for _ in range(count):
        work()
    return (time.process_time() - started) / count * 1e6


def main() -> int:
    """Print the table, or run one probe."""
    libraries = {"cel-expr-python": google, "common-expression-language": rust}
    if len(sys.argv) == 3:
        try:
            print(str(PROBES[sys.argv[2]](libraries[sys.argv[1]]))[:60])
        except Exception as error:
            print(f"refused ({type(error).__name__})")
        return 0
    print("| probe | " + " | ".join(libraries) + " |\n|---|---|---|")
    for name in PROBES:
        print(f"| {name} | " + " | ".join(probe(library, name) for library in libraries) + " |")
    times = [speed(make) for make in libraries.values()]
    for place, name in enumerate(("ten conditions joined, µs", "ten one by one, µs", "a single one, µs")):
        print(f"| {name} | " + " | ".join(f"{found[place]:.0f}" for found in times) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
