#!/bin/sh
# make bench: an environment of its own for the peers, then every measurement in one run.
set -eu
cd "$(dirname "$0")/.."
PYTHON="${PYTHON:-python3}"
if [ ! -x .bench/bin/python ]; then "$PYTHON" -m venv .bench; fi
echo "installing Interlock and its peers into .bench (a minute or two, once)"
.bench/bin/python -m pip install --quiet --disable-pip-version-check -e '.[postgres]' -r benchmarks/requirements.txt
exec .bench/bin/python benchmarks/bench.py "$@"
