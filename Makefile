# `make up` runs what there is on this machine; `make test` passes the tests. Both make what they need and need no root.
PYTHON ?= python3
MUSTER_DATA_DIR ?= var
LOCALKUBE_PORT ?= 6443
LOCALKUBE_ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
WORKERS ?= auto

.PHONY: up test test-long check bench lock clean

up: $(VENV)/.runtime
	@exec $(BIN)/python -m localkube --data "$(MUSTER_DATA_DIR)/localkube" --port $(LOCALKUBE_PORT) $(LOCALKUBE_ARGS)

test: $(VENV)/.development
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m "not long"

test-long: $(VENV)/.development
	$(BIN)/python -m pytest -n 0 -m long --timeout 3600

check: $(VENV)/.development
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.development
	$(BIN)/python benchmarks/localkube.py

# Pins what requirements*.txt allow, with hashes, for every Python from 3.11 on. uv does not read pip's configuration: hand the index over.
lock: $(BIN)/python
	$(PIP) install uv
	for set in requirements requirements-postgres requirements-dev; do \
	  UV_DEFAULT_INDEX="$${UV_DEFAULT_INDEX:-$$($(BIN)/python -m pip config get global.index-url 2>/dev/null)}" \
	  $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --upgrade $$set.txt -o $$set.lock; \
	done

$(VENV)/.runtime: requirements.lock | $(BIN)/python
	$(PIP) install --no-compile --require-hashes -r requirements.lock
	@touch $@

$(VENV)/.development: requirements-dev.lock | $(BIN)/python
	$(PIP) install --no-compile --require-hashes -r requirements-dev.lock
	@touch $@ $(VENV)/.runtime

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "Python is missing: install the package python3 (3.11 or later)"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "$$($(PYTHON) --version) is too old: Muster needs 3.11 or later"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "Python's venv is missing: install the package python3-venv"; exit 1; }
	$(PYTHON) -m venv $(VENV)

clean:
	rm -rf $(VENV)
