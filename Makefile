# The two commands of the README are `make demo` and `make test`.
# TORCH_INDEX: an extra package index for torch, for example one with CPU-only builds.

PYTHON ?= $(if $(wildcard /usr/bin/python3),/usr/bin/python3,python3)
TORCH_INDEX ?=
export TORCH_INDEX
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest
WITHOUT :=
# Tests at once. A guest keeps one core busy, and its virtual clock does not care what others do.
WORKERS ?= 2
# Plain `docker compose up` runs in real time and has not yet been timed on an idle machine: `make
# test` leaves it out, `make test-containers` does not.

.PHONY: help setup setup-containers demo test check test-unit test-repo test-lab test-containers test-gpu \
	style clean

help: ## say what there is
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 18

setup: ## prepare this machine (system packages as root), .venv and the lab kernel
	@$(PYTHON) -m testbed.host.setup

setup-containers: ## the same, and a container engine and Compose for --lab compose
	@$(PYTHON) -m testbed.host.setup --with-containers

demo: setup ## the main job: the connection-pool study of the paper
	$(BIN)/testbed reproduce table2

test: ## everything: style, types, rooms, all lanes that this machine can run
	@$(PYTHON) -m testbed.host.setup --with-tests
	@$(MAKE) --no-print-directory check
	@$(MAKE) --no-print-directory test-lab
	@$(MAKE) --no-print-directory test-containers WITHOUT="--ignore=tests/containers/test_compose_up.py"

check: style test-unit test-repo ## what CI runs before the lab lane

style: ## ruff, mypy and import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

test-unit: ## tests that need nothing but Python
	@echo "lane: unit"
	$(PYTEST) tests/unit -n $(WORKERS)

test-repo: ## the repository tests itself
	@echo "lane: repo"
	$(PYTEST) tests/repo -n $(WORKERS)

test-lab: ## tests that boot the lab guest
	@echo "lane: lab"
	$(PYTEST) tests/lab -m "not alone" -n $(WORKERS) --dist loadfile
	$(PYTEST) tests/lab -m alone

test-containers: ## tests that need a container engine
	@echo "lane: containers"
	$(PYTEST) tests/containers $(WITHOUT)

test-gpu: ## tests that need a GPU
	@echo "lane: gpu"
	$(PYTEST) tests/gpu

clean: ## remove .venv and caches of this checkout; runs/ and the built kernel stay
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist
