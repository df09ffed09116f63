# `make` lists the targets. Nothing is written outside this folder but temporary files.

# The first Python that is new enough; override it with `make PYTHON=/path/to/python3.12`.
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo "$$python" && break; done)
VENV := .venv
BIN := $(VENV)/bin
MADE := $(VENV)/.made
READY := $(VENV)/.ready
# What the demo needs: everything if it is there, else the command line alone, in a tenth of the time.
DEMO_READY := $(if $(wildcard $(VENV)/.ready),$(VENV)/.ready,$(VENV)/.demo-ready)
PEERS := $(VENV)/.peers
LIVE := $(VENV)/.live
# Pydantic AI's harness needs another release of Pydantic AI than the rest.
HARNESS := .venv-pydantic-ai-harness
# More arguments for the tool of a target, such as `make test ARGS="-k sqlite"`.
ARGS ?=
# How many processes share the tests; each starts the servers that it needs. `JOBS=0` is one.
JOBS ?= 3

# What `make quick` leaves out besides the tests that are marked: much of it starts processes,
# imports a framework, or goes through a conformance suite once more.
QUICK := $(addprefix --ignore=tests/,cli integrations backends/postgresql backends/redis \
	backends/test_unclosed.py test_examples.py \
	$(addprefix conformance/test_,checked_store.py four_verbs.py wrappers.py))

# Whatever the caller's environment says, modules are compiled once: the tests start hundreds of
# interpreters.
PYTHONDONTWRITEBYTECODE :=
export PYTHONDONTWRITEBYTECODE

PIP_CACHE_DIR ?= $(CURDIR)/.cache/pip
PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_CACHE_DIR PIP_DISABLE_PIP_VERSION_CHECK

.PHONY: help setup demo quick test harness live bench bench-peers coverage lint types docs all clean
.DEFAULT_GOAL := help

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## make .venv and install the package and its tools into it

$(MADE):
	@test -n "$(PYTHON)" && "$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "locus-memory needs Python 3.11 or newer, and there is none on the PATH." \
			"Install one, or name it: make PYTHON=/path/to/python3.12" >&2; exit 1; }
	"$(PYTHON)" -m venv $(VENV)
	-$(BIN)/python -m pip install --quiet --upgrade pip
	@touch $@

$(READY): pyproject.toml | $(MADE)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

$(VENV)/.demo-ready: pyproject.toml | $(MADE)
	$(BIN)/python -m pip install --quiet --editable '.[cli]'
	@touch $@

demo: $(DEMO_READY) ## run `locus-memory demo` in a new, empty folder
	@mkdir -p .demo && folder=$$(mktemp -d .demo/XXXXXX) && cd "$$folder" \
		&& ../../$(BIN)/locus-memory demo \
		&& echo "To go on: cd $$folder && ../../$(BIN)/locus-memory --help"

quick: $(READY) ## run the tests that are fast and start no server
	$(BIN)/python -m pytest --numprocesses $(JOBS) --dist worksteal $(QUICK) \
		-m "not server and not slow" $(ARGS)

test: $(READY) ## run all tests, with the servers that pip installed
	$(BIN)/python -m pytest --numprocesses $(JOBS) --dist worksteal $(ARGS)

harness: $(HARNESS)/.ready ## run the tests of the adapter for Pydantic AI's harness
	$(HARNESS)/bin/python -m pytest tests/integrations/pydantic_ai_harness --noconftest $(ARGS)

live: $(LIVE) ## run the long tests with real processes and servers
	$(BIN)/python -m pytest integration --numprocesses 2 --dist loadfile $(ARGS)

bench: $(READY) ## measure speed and size, in ratios
	$(BIN)/python tests/benchmarks/run.py $(ARGS)

bench-peers: $(PEERS) ## measure ours beside LangGraph's and the Locus SDK's own
	$(BIN)/python tests/benchmarks/peers.py $(ARGS)

$(HARNESS)/.ready: pyproject.toml | $(MADE)
	$(BIN)/python -m venv $(HARNESS)
	$(HARNESS)/bin/python -m pip install --quiet --editable '.[harness-test]'
	@touch $@

$(LIVE): $(READY)
	$(BIN)/python -m pip install --quiet --editable '.[live]'
	@touch $@

$(PEERS): $(READY)
	$(BIN)/python -m pip install --quiet --editable '.[peers]'
	@touch $@

coverage: $(READY) ## run the tests and report branch coverage
	@mkdir -p .cache
	$(BIN)/coverage run -m pytest $(ARGS)
	$(BIN)/coverage report

lint: $(READY) ## check the code's style and format
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(READY) ## check the types, of the public API's use too
	$(BIN)/mypy
	$(BIN)/basedpyright

docs: $(READY) ## build the documentation into build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --config-file .mkdocs.yml

all: lint types docs test harness live bench ## everything but the demo

clean: ## remove everything that was made here
	rm -rf $(VENV) .venv-* .cache .demo build dist .coverage .hypothesis .mypy_cache \
		.pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
