"""What the conformance run needs: Node and the suite from npm, and two files out of the SDK's source distribution.

Everything lies in `build/conformance`, which git does not see, and is installed when it is missing; npm and pip use
what the machine has set for them.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / "build" / "conformance"
NODE, SDK = "22.23.3", version("mcp")
OLD, NEW = "0.1.16", "0.2.0-alpha.12"
"""Two releases of the suite: the last one that had no lists of what is required, and one that has."""
SERVERS = ("server-filesystem", "server-memory", "server-everything")
"""Servers that people use, for `tests/test_mcp_deliveries.py`."""
PYTHON_SERVERS = {
    "mcp-server-git": ("mcp-server-git==2026.10.19",),
    "mcp-server-fetch": ("mcp-server-fetch==2026.10.24",),
    "mcp-server-sqlite": ("mcp-server-sqlite==2025.4.25", "mcp<2"),  # it knows the SDK of before
}
"""The same from PyPI, each in an environment of its own, for `tests/test_mcp_profiles.py`."""
SERVERS_RELEASE = "2026.8.31"
EXAMPLE, CLIENT = "examples/servers/everything-server/mcp_everything_server/server.py", "conformance/client.py"
"""The server and the client of the SDK that the suite is run against."""


class CannotRunError(Exception):
    """Something that the run needs is not there; the sentence says what."""


def say(text: str) -> None:
    """Print a line at once."""
    print(text, flush=True)


def do(command: list[str], folder: Path) -> None:
    """Run a step of the installation; where it fails, its last words are the reason."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        said = "\n".join((done.stdout + done.stderr).strip().splitlines()[-8:])
        raise CannotRunError(f"{shlex.join(command)} has failed:\n{said}")


def install_everything() -> None:
    """Install what is missing."""
    install_package("node", f"node@{NODE}")
    for release in (OLD, NEW):
        install_package(f"suite-{release}", f"@modelcontextprotocol/conformance@{release}")
    for server in SERVERS:
        install_package(server, f"@modelcontextprotocol/{server}@{SERVERS_RELEASE}")
    for server, packages in PYTHON_SERVERS.items():
        install_environment(server, packages)
    install_examples()


def install_environment(name: str, packages: Sequence[str]) -> None:
    """Install packages of PyPI into an environment of their own, unless that was done before."""
    folder = CACHE / name
    stamp, wanted = folder / ".installed", " ".join(packages)
    if stamp.exists() and stamp.read_text("utf-8") == wanted:
        return
    say(f"installing {wanted} into {folder.relative_to(ROOT)}")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    do([sys.executable, "-m", "venv", "."], folder)
    do([str(folder / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", *packages], folder)
    stamp.write_text(wanted, "utf-8")


def install_package(name: str, package: str) -> None:
    """Install a package of npm into a folder of its own, unless that was done before."""
    folder = CACHE / name
    stamp = folder / ".installed"
    if stamp.exists() and stamp.read_text("utf-8") == package:
        return
    npm = shutil.which("npm")
    if npm is None:
        raise CannotRunError("The conformance suite comes from npm, and there is no npm here; install Node.js first.")
    say(f"installing {package} into {folder.relative_to(ROOT)}")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "package.json").write_text('{"private": true}\n', "utf-8")
    do([npm, "install", "--no-audit", "--no-fund", "--no-package-lock", package], folder)
    stamp.write_text(package, "utf-8")


def example_file(end: str) -> Path:
    """Where a file of the source distribution lies here."""
    return CACHE / f"mcp-{SDK}" / end.replace("/", "-")


def install_examples() -> None:
    """Take the server and the client out of the source distribution of the SDK: the wheel does not have them."""
    if all(example_file(end).exists() for end in (EXAMPLE, CLIENT)):
        return
    folder = example_file(EXAMPLE).parent
    say(f"taking the examples of mcp {SDK} into {folder.relative_to(ROOT)}")
    folder.mkdir(parents=True, exist_ok=True)
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    do([*pip, "--no-binary", "mcp", f"mcp=={SDK}", "-d", "."], folder)
    with tarfile.open(folder / f"mcp-{SDK}.tar.gz") as archive:
        for end in (EXAMPLE, CLIENT):
            member = next((one for one in archive.getmembers() if one.name.endswith(f"/{end}")), None)
            found = None if member is None else archive.extractfile(member)
            if found is None:
                raise CannotRunError(f"the source distribution of mcp {SDK} has no {end}")
            example_file(end).write_bytes(found.read())
