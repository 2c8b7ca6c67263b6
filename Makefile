# make demo             start the demo site on http://127.0.0.1:8000
# make demo PORT=8001   on another port

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

# A stamp says that an extra was installed from the pyproject.toml of its time.
$(VENV)/%.stamp: pyproject.toml | $(BIN)/python
	@echo "Installing the packages of \"$*\" into $(VENV)"
	@$(PIP) install --editable ".[$*]"
	@touch $@

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "There is no $(PYTHON). Install python3" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "$(PYTHON) is older than Python 3.11. Install python3 of Debian 12 or later, or name another one: make demo PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "$(PYTHON) cannot make virtual environments. Install python3-venv" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }


# make test             the suite on SQLite, what asks databases on two more, other kinds of sites
# make test -j2 -O      the same, two stages at a time
# make lint             style, types, layers, migrations and the demo's deployment checks
# make bench            what a call costs beside the same query without MCP
# make bench-streams    what a thousand open streams cost, and a change that all of them hear of

PYTEST := $(BIN)/python -W error::ResourceWarning -m coverage run -m pytest

.PHONY: test
test: test-sqlite test-databases test-sites
	@$(BIN)/python -m coverage combine --quiet
	@$(BIN)/python -m coverage report

.PHONY: test-sqlite
test-sqlite: forget-coverage
	$(PYTEST)

.PHONY: test-databases
test-databases: forget-coverage
	MCP_TEST_DB=postgresql $(PYTEST) tests/exposure tests/auth tests/stores tests/subscriptions tests/transports tests/handlers tests/upgrade tests/test_checks_environment.py
	MCP_TEST_DB=mariadb $(PYTEST) tests/exposure tests/stores tests/upgrade

.PHONY: test-sites
test-sites: forget-coverage
	COVERAGE=1 $(BIN)/python -W error::ResourceWarning -m tests.sites

.PHONY: forget-coverage
forget-coverage: $(VENV)/dev.stamp
	@$(BIN)/python -m coverage erase

.PHONY: lint
lint: $(VENV)/dev.stamp
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy mcp_django tests/typing
	$(BIN)/mypy --config-file demo_project/mypy.ini demo_project manage.py
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m django makemigrations --check --dry-run --settings tests.settings mcp_django
	$(BIN)/python manage.py makemigrations --check --dry-run
	DEMO_DEBUG=0 $(BIN)/python manage.py check --deploy --fail-level WARNING

.PHONY: bench
bench: $(VENV)/dev.stamp
	$(BIN)/python -m benchmarks.run

.PHONY: bench-streams
bench-streams: $(VENV)/dev.stamp
	$(BIN)/python -m benchmarks.streams

# make faults           thirty faults in the protocol layer, one at a time: do the tests notice?

.PHONY: faults
faults: $(VENV)/dev.stamp
	$(BIN)/python -m tests.spec.plant

# make conformance              the official suite against a site of fixtures, over each transport (needs npm)
# make conformance-site PORT=   only that site

.PHONY: conformance
conformance: $(VENV)/dev.stamp
	$(BIN)/python -m tests.conformance_site.run

.PHONY: conformance-site
conformance-site: $(VENV)/dev.stamp
	$(BIN)/python -m tests.conformance_site.serve $(PORT)

# make docs             the pages of docs/ as HTML, in docs/_build

.PHONY: docs
docs: $(VENV)/dev.stamp
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build
