# Needs Python 3.11 or newer, make and a C compiler; everything else is installed into .venv.
PYTHON ?= python3
UV_VERSION := 0.13.9
# How many tests run at once, and which: make test TESTS=tests/unit ARGS="-k lease"
TEST_PROCESSES ?= 2
TESTS ?=
ARGS ?=
# The chaos run: how long the load lasts, operations a second, and what decides which fault comes when.
SECONDS ?= 900
RATE ?= 60
SEED ?= 1

BIN := .venv/bin
INSTALLED := .venv/.installed
SOURCES := models outbox destinations worker notes operate
export UV_PROJECT_ENVIRONMENT := .venv

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-docker proof chaos check format

help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(INSTALLED) ## Make .venv with all that development needs

demo: $(INSTALLED) ## Watch notes arrive exactly once while everything breaks, for a minute (ARGS="--seed 7")
	$(BIN)/oncebox demo $(ARGS)

test: $(INSTALLED) ## Run the tests (TESTS=path, ARGS="-k name", TEST_PROCESSES=2)
	$(BIN)/python -m pytest -n $(TEST_PROCESSES) --dist loadfile $(ARGS) $(TESTS)

test-docker: $(INSTALLED) ## Run the tests that need a Docker engine: compose and pytest-celery (ARGS="-k name")
	$(BIN)/python -m pytest -p celery -p docker_tools --durations=8 $(ARGS) tests/docker tests/celery

proof: $(INSTALLED) ## Break everything on purpose: crash matrix, model, mutations, properties, security, a minute of chaos
	$(BIN)/python -m pytest -n $(TEST_PROCESSES) --dist worksteal --durations=12 $(ARGS) $(or $(TESTS),tests/proof --ignore=tests/proof/chaos/test_ci_chaos.py)
	$(BIN)/python -m tests.proof.mutations --jobs $(TEST_PROCESSES)
	$(BIN)/python -m tests.proof.chaos --seconds 60 --rate $(RATE) --seed $(SEED)

chaos: $(INSTALLED) ## A steady load while everything is killed, paused, cut off and slowed (SECONDS=900 RATE=60 SEED=1)
	$(BIN)/python -m tests.proof.chaos --seconds $(SECONDS) --rate $(RATE) --seed $(SEED) $(ARGS)

check: $(INSTALLED) ## Lint, format, types, import directions, dependencies and their audit, wheel, a stranger's program
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/basedpyright
	$(BIN)/lint-imports --no-cache
	$(BIN)/deptry $(SOURCES)
	$(BIN)/python scripts/audit_dependencies.py
	$(BIN)/python scripts/check_wheel.py
	$(BIN)/python scripts/check_stranger.py

format: $(INSTALLED) ## Format the code and fix what ruff can fix
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

$(INSTALLED): uv.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and \
	"oncebox needs Python 3.11 or newer, and $(PYTHON) is %d.%d: make $(MAKECMDGOALS) PYTHON=python3.12" % sys.version_info[:2])'
	@test -x $(BIN)/uv || { $(PYTHON) -m venv .venv && $(BIN)/python -m pip install --quiet uv==$(UV_VERSION); }
	$(BIN)/uv sync --frozen --all-extras --all-groups --compile-bytecode
	@touch $@
