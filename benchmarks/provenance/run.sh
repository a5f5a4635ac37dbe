#!/bin/sh
# AgentDojo in an environment of its own, as it brings the SDKs of many providers; the suites are named behind it.
set -eu
cd "$(dirname "$0")/../.."
if [ ! -x .bench-provenance/bin/python ]; then
  python3 -m venv .bench-provenance
  .bench-provenance/bin/pip install --quiet --editable '.[schema]' 'agentdojo==0.1.35'
fi
exec .bench-provenance/bin/python benchmarks/provenance/replay.py "$@"
