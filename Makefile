# make demo             start the demo site on http://127.0.0.1:8000
# make demo PORT=8001   on another port
# make demo DEMO_TODAY=2026-11-18   with the desk's clock on another day than today

PYTHON ?= python3
PORT ?= 8000
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.DEFAULT_GOAL := demo
.DELETE_ON_ERROR:

.PHONY: demo
demo: $(VENV)/demo.stamp
	@$(BIN)/python manage.py demo --port $(PORT)

# A stamp says that a dependency group was installed as pyproject.toml and the lock file had it.
# The pip of Debian 12 knows no groups, and is replaced in the virtual environment only.
LOCKED := --constraint .ci/lock.txt
EXTRAS := [all]
$(VENV)/demo.stamp: EXTRAS :=
$(VENV)/%.stamp: pyproject.toml .ci/lock.txt | $(BIN)/python
	@echo "Installing the packages of \"$*\" into $(VENV): the first time, this takes a minute or two ..."
	@$(PIP) install $(LOCKED) pip
	@$(PIP) install $(LOCKED) --build-constraint .ci/lock.txt --no-compile --group $* --editable ".$(EXTRAS)"
	@touch $@

# The pages import nothing of the package.
$(VENV)/docs.stamp: pyproject.toml .ci/lock.txt | $(BIN)/python
	@echo "Installing the packages of \"docs\" into $(VENV)"
	@$(PIP) install $(LOCKED) pip
	@$(PIP) install $(LOCKED) --group docs
	@touch $@

# make lock             the newest releases of everything into .ci/lock.txt

.PHONY: lock
lock:
	@rm -rf build/lock && $(PYTHON) -m venv build/lock
	@build/lock/bin/python -m pip --quiet install --upgrade "pip>=25.3,<27"
	@build/lock/bin/python -m pip --quiet install --group dev --editable ".[all]"
	@build/lock/bin/python -m pip freeze --all --exclude-editable > .ci/lock.txt
	@rm -rf build/lock

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "There is no $(PYTHON). Install python3" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "$(PYTHON) is older than Python 3.11. Install python3 of Debian 12 or later, or name another one: make demo PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "$(PYTHON) cannot make virtual environments. Install python3-venv" >&2; exit 1; }
	@echo "Making a virtual environment in $(VENV) ..."
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }


# make test             what decides about a change, on SQLite, in a few minutes
# make test WORKERS=8   with as many workers; as many as there are cores otherwise
# make lint             style, types, layers, words, migrations and the demo's deployment checks
# make smoke            the wheel, the tutorial and the demo as a stranger has them
# make gate             all of these as .ci/run does, in a clone of the last commit
# make test-all         everything, in hours: databases, sites, browsers, conformance, old releases
# make test-all PART=postgresql   one part of it; tests/thorough.py has their names
# make coverage         the lines that a change added and the suite does not reach
# make bench            what a call costs beside the same query without MCP, and what assistants read
# make bench-streams    what a thousand open streams cost, and a change that all of them hear of

# The suite starts two hundred processes, and each would compile the package again.
export PYTHONDONTWRITEBYTECODE :=

WORKERS ?= auto
PYTEST := PYTHONWARNINGS=error::ResourceWarning $(BIN)/python -m pytest

.PHONY: test
test: $(VENV)/gate.stamp
	@$(PYTEST) --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder \
	  -m "not thorough" --durations 10 --durations-min 1

.PHONY: smoke
smoke: $(VENV)/gate.stamp
	@$(PYTEST) --quiet --timeout 300 tests/smoke

.PHONY: gate
gate:
	@.ci/gate

.PHONY: test-all
test-all: $(VENV)/dev.stamp
	@$(BIN)/python -m tests.thorough $(PART)

.PHONY: coverage
coverage: $(VENV)/dev.stamp
	@$(BIN)/python -m tests.thorough sqlite
	@$(MAKE) --no-print-directory coverage-report

# Of all runs since `coverage erase`, and of the change since main.
.PHONY: coverage-report
coverage-report: $(VENV)/dev.stamp
	@$(BIN)/python -m coverage combine --quiet --append
	@$(BIN)/python -m coverage report
	@$(BIN)/python -m coverage xml --quiet -o build/coverage.xml
	@$(BIN)/diff-cover build/coverage.xml --compare-branch main --fail-under 100

.PHONY: lint
lint: $(VENV)/gate.stamp
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy mcp_django tests/typing
	$(BIN)/mypy --config-file demo_project/mypy.ini demo_project manage.py
	$(BIN)/lint-imports --no-logo
	$(BIN)/codespell README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md docs
	$(BIN)/python -m pytest -q tests/docs/test_words.py
	$(BIN)/python -m django makemigrations --check --dry-run --settings tests.settings mcp_django mcp_django_oauth
	$(BIN)/python manage.py makemigrations --check --dry-run
	DEMO_DEBUG=0 $(BIN)/python manage.py check --deploy --fail-level WARNING

.PHONY: bench
bench: $(VENV)/dev.stamp
	$(BIN)/python -m benchmarks.run
	$(BIN)/python -m benchmarks.sizes

.PHONY: bench-streams
bench-streams: $(VENV)/dev.stamp
	$(BIN)/python -m benchmarks.streams

# make faults                 faults in each room of the package, one at a time: do the tests notice?
# make faults ROOMS=protocol   those of one room
# make faults GATE=1           do the tests that `make test` runs?

.PHONY: faults
faults: $(VENV)/gate.stamp
	GATE=$(GATE) $(BIN)/python -m tests.faults.plant $(ROOMS)

# make fuzz             malformed messages, pairs of databases that differ in what is hidden, and
#                       writes that a person makes in the admin as well
# make fuzz SEED=2      with another seed; MESSAGES=, PAIRS=, WRITES= and JOBS= as well

SEED ?= 1
MESSAGES ?= 500000
PAIRS ?= 20000
WRITES ?= 20000
JOBS ?= 2

.PHONY: fuzz
fuzz: $(VENV)/dev.stamp
	$(BIN)/python -m tests.fuzz messages --count $(MESSAGES) --seed $(SEED) --jobs $(JOBS)
	$(BIN)/python -m tests.fuzz pairs --count $(PAIRS) --seed $(SEED) --jobs $(JOBS)
	$(BIN)/python -m tests.fuzz pairs --tenants --count $(PAIRS) --seed $(SEED) --jobs $(JOBS)
	$(BIN)/python -m tests.fuzz writes --count $(WRITES) --seed $(SEED) --jobs $(JOBS)

# make leaks            each question of tests/leaks, of which the suite draws a part

.PHONY: leaks
leaks: $(VENV)/dev.stamp
	MCP_TEST_LEAKS=1 $(PYTEST) --quiet --numprocesses $(WORKERS) --timeout 3600 tests/leaks

# make conformance              the official suite against a site of fixtures, over each transport (needs npm)
# make conformance-site PORT=   only that site

.PHONY: conformance
conformance: $(VENV)/dev.stamp
	$(BIN)/python -m tests.conformance_site.run

.PHONY: conformance-site
conformance-site: $(VENV)/dev.stamp
	$(BIN)/python -m tests.conformance_site.serve $(PORT)

# make stacks                   the demo through the stacks of real agents, each in an environment of its own in .stacks

.PHONY: stacks
stacks: $(VENV)/dev.stamp
	$(BIN)/python -m tests.stacks.run

# make docs             the pages of docs/ as HTML, in docs/_build

.PHONY: docs
docs: $(VENV)/docs.stamp
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build
