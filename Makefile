# `make up` runs Muster on this machine; `make test` runs the tests. Both make what they need and need no root.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
FRAMEWORKS := .venv-frameworks
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet --retries 5
# `muster`, the command line, and `muster_delivery`, which pods of the embedded cluster import: all
# that they need is installed already, so nothing is fetched for them.
INSTALL_OWN := $(PIP) install --no-index --no-deps --no-build-isolation --no-compile --editable ./cli --editable ./delivery
WORKERS ?= auto
# Files are given out in the order of tests/conftest.py, not by how many tests they have: one of the longest has a single test.
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m "not long"

# What works on the database, without what holds views against tables; the rest of the suite would do the same again on another one.
ON_A_DATABASE := tests/console tests/projects tests/clusters tests/environments tests/workloads tests/api tests/deploy/test_backup.py \
  --ignore-glob 'tests/console/test_permission_*' --ignore-glob 'tests/console/test_security_pages*' --only-with-database
# How many cases of each test ask that database, as most of them ask alike: CASES=1000 takes all.
CASES ?= 1
# Of the sweeps over all pages and addresses, and of the files that ask another database, one part of three: the next one at each commit.
# PART=2 takes that one, PART=all takes all.
PART ?= commit

# Processes by the dozen start in `make up`, and by the thousand in tests: without bytecode that is kept, each would compile all it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: up test test-database test-long test-frameworks test-localkube check bench lock clean

up: $(VENV)/.runtime
	@exec $(BIN)/python -m console up

test: $(VENV)/.development
	$(PYTEST) --part $(PART)

# The embedded cluster alone, as a package of its own.
test-localkube: $(VENV)/.development
	$(PYTEST) tests/localkube tests/conformance tests/examples

# On the database that MUSTER_DATABASE_URL names, which may create others beside it.
test-database: $(VENV)/.development
	$(PYTEST) $(ON_A_DATABASE) --cases $(CASES) --part $(PART)

test-long: $(VENV)/.development
	$(PYTEST) -m "sweep and not long"
	$(BIN)/python -m pytest -n 0 -m long --timeout 3600

# Real runs of every framework on an embedded cluster. They have an environment of their own: it takes a minute and 3 GB.
test-frameworks: $(VENV)/.development $(FRAMEWORKS)/.installed
	MUSTER_FRAMEWORKS_PYTHON=$(abspath $(FRAMEWORKS))/bin/python $(BIN)/python -m pytest -n 0 -s -rA -m frameworks tests/localkube

# Django says nothing without keys; these sign nothing.
check: export MUSTER_SECRET_KEY := only-to-look-at-the-code-not-to-sign
check: export MUSTER_ENCRYPTION_KEYS := b25seS10by1sb29rLWF0LXRoZS1jb2RlLW5vdC1rZXk=
check: export MUSTER_DATA_DIR := $(VENV)/check
check: export PYTHONPATH := cli/src:delivery/src
check: $(VENV)/.development
	@mkdir -p $(MUSTER_DATA_DIR)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python scripts/names.py
	$(BIN)/python scripts/house.py
	$(BIN)/python scripts/command_line.py --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/djlint --lint --quiet templates
	$(BIN)/python manage.py check
	$(BIN)/python manage.py makemigrations --check --dry-run

bench: $(VENV)/.development
	$(BIN)/python benchmarks/localkube.py
	$(BIN)/python benchmarks/scheduling.py
	$(BIN)/python benchmarks/forecast.py
	$(BIN)/python benchmarks/console.py
	MUSTER_POSTGRES_DURABLE=on .ci/with-postgres sh -c '$(BIN)/python benchmarks/console.py --database-url "$$MUSTER_DATABASE_URL"'
	$(BIN)/python benchmarks/lists.py
	$(BIN)/python benchmarks/metrics.py
	$(BIN)/python benchmarks/time_machine.py
	MUSTER_POSTGRES_DURABLE=on .ci/with-postgres sh -c '$(BIN)/python benchmarks/metrics.py --database-url "$$MUSTER_DATABASE_URL"'
	$(BIN)/python benchmarks/cli.py
	$(BIN)/python benchmarks/elastic.py
	$(BIN)/python benchmarks/scale.py
	MUSTER_POSTGRES_DURABLE=on .ci/with-postgres sh -c '$(BIN)/python benchmarks/scale.py --database-url "$$MUSTER_DATABASE_URL"'

# Pins what requirements*.txt allow, with hashes, for every Python from 3.11 on. uv does not read pip's configuration: hand the index over.
lock: $(BIN)/python
	$(PIP) install uv
	for set in requirements requirements-postgres requirements-s3 requirements-otel requirements-dev; do \
	  case $$set in requirements) beside=;; *) beside="-c requirements.lock";; esac; \
	  UV_DEFAULT_INDEX="$${UV_DEFAULT_INDEX:-$$($(BIN)/python -m pip config get global.index-url 2>/dev/null)}" \
	  $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --upgrade $$beside $$set.txt -o $$set.lock; \
	done

$(VENV)/.runtime: requirements.lock cli/pyproject.toml delivery/pyproject.toml | $(BIN)/python
	@echo "Installing what requirements.lock pins; this takes about half a minute."
	@$(PIP) install --no-compile --require-hashes -r requirements.lock
	@$(INSTALL_OWN)
	@touch $@

$(VENV)/.development: requirements-dev.lock cli/pyproject.toml delivery/pyproject.toml | $(BIN)/python
	$(PIP) install --no-compile --require-hashes -r requirements-dev.lock
	@$(INSTALL_OWN)
	@touch $@ $(VENV)/.runtime

$(FRAMEWORKS)/.installed: requirements-frameworks.txt | $(BIN)/python
	$(PYTHON) -m venv $(FRAMEWORKS)
	$(FRAMEWORKS)/bin/python -m pip --disable-pip-version-check --quiet --retries 5 install -r requirements-frameworks.txt
	@touch $@

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "Python is missing: install the package python3 (3.11 or later)"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "$$($(PYTHON) --version) is too old: Muster needs 3.11 or later"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "Python's venv is missing: install the package python3-venv"; exit 1; }
	@$(PYTHON) -m venv $(VENV)

clean:
	rm -rf $(VENV) $(FRAMEWORKS)
