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

# A stamp says that a dependency group was installed from the pyproject.toml of its time.
# The pip of Debian 12 does not know groups, and is replaced in the virtual environment only.
$(VENV)/dev.stamp: EXTRAS := [all]
$(VENV)/%.stamp: pyproject.toml | $(BIN)/python
	@echo "Installing the packages of \"$*\" into $(VENV)"
	@$(PIP) install "pip>=25.1,<27"
	@$(PIP) install --group $* --editable ".$(EXTRAS)"
	@touch $@

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "There is no $(PYTHON). Install python3" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "$(PYTHON) is older than Python 3.11. Install python3 of Debian 12 or later, or name another one: make demo PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "$(PYTHON) cannot make virtual environments. Install python3-venv" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }


# make test             the suite on SQLite; what needs a service that is not there is named at the end
# make test-all         the same on three databases and on other kinds of sites, with coverage
# make test WORKERS=8   with as many workers; as many as there are cores otherwise
# make lint             style, types, layers, words, migrations and the demo's deployment checks
# make bench            what a call costs beside the same query without MCP, and what assistants read
# make bench-streams    what a thousand open streams cost, and a change that all of them hear of

# The suite starts two hundred processes, and each would compile the package again.
export PYTHONDONTWRITEBYTECODE :=

WORKERS ?= auto
# The order is that of tests/workers.py: what takes longest comes first.
PYTEST := -m pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder
UNMEASURED := PYTHONWARNINGS=error::ResourceWarning $(BIN)/python $(PYTEST)
MEASURED := PYTHONWARNINGS=error::ResourceWarning $(BIN)/python -m coverage run $(PYTEST)
# These look at whole sites from outside. To measure them takes as long as the others, and they
# reach no line that the others leave out.
OUTSIDE := $(addprefix tests/,browser demo docs fuzz leaks official)
# The lines that are for one database alone are reached from here.
VENDORS := $(addprefix tests/,exposure/admin_bridge exposure/query stores test_checks_environment.py)

.PHONY: test
test: $(VENV)/dev.stamp
	@$(UNMEASURED) --quiet --durations 10 --durations-min 1

.PHONY: test-all
test-all: test-outside test-sqlite test-databases test-sites
	@$(MAKE) --no-print-directory coverage

.PHONY: test-outside
test-outside: $(VENV)/dev.stamp
	$(UNMEASURED) --quiet $(OUTSIDE)

.PHONY: test-sqlite
test-sqlite: forget-coverage
	$(MEASURED) --quiet $(addprefix --ignore=,$(OUTSIDE))

.PHONY: test-databases
test-databases: test-postgresql test-mariadb

.PHONY: test-postgresql
test-postgresql: export MCP_TEST_DB := postgresql
test-postgresql: forget-coverage
	$(MEASURED) --quiet $(VENDORS); measured=$$?; \
	$(UNMEASURED) --quiet $(addprefix --ignore=,$(VENDORS)) tests/exposure tests/auth tests/subscriptions tests/transports tests/handlers tests/writes tests/hostile tests/upgrade tests/test_emptying.py && exit $$measured

.PHONY: test-mariadb
test-mariadb: export MCP_TEST_DB := mariadb
test-mariadb: forget-coverage
	$(MEASURED) --quiet $(VENDORS); measured=$$?; \
	$(UNMEASURED) --quiet $(addprefix --ignore=,$(VENDORS)) tests/exposure tests/writes tests/upgrade tests/test_emptying.py && exit $$measured

.PHONY: test-sites
test-sites: forget-coverage
	COVERAGE=1 PYTHONWARNINGS=error::ResourceWarning $(BIN)/python -m tests.sites

.PHONY: coverage
coverage: $(VENV)/dev.stamp
	@$(BIN)/python -m coverage combine --quiet
	@$(BIN)/python -m coverage report

# KEEP_COVERAGE=1 adds to what earlier runs have measured.
.PHONY: forget-coverage
forget-coverage: $(VENV)/dev.stamp
	@$(if $(KEEP_COVERAGE),,$(BIN)/python -m coverage erase)

.PHONY: lint
lint: $(VENV)/dev.stamp
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy mcp_django tests/typing
	$(BIN)/mypy --config-file demo_project/mypy.ini demo_project manage.py
	$(BIN)/lint-imports --no-logo
	$(BIN)/codespell README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md docs
	$(BIN)/python -m pytest -q tests/docs/test_words.py
	$(BIN)/python -m django makemigrations --check --dry-run --settings tests.settings mcp_django
	$(BIN)/python manage.py makemigrations --check --dry-run
	DEMO_DEBUG=0 $(BIN)/python manage.py check --deploy --fail-level WARNING

.PHONY: bench
bench: $(VENV)/dev.stamp
	$(BIN)/python -m benchmarks.run
	$(BIN)/python -m benchmarks.sizes

.PHONY: bench-streams
bench-streams: $(VENV)/dev.stamp
	$(BIN)/python -m benchmarks.streams

# make faults           thirty faults in the protocol layer, one at a time: do the tests notice?

.PHONY: faults
faults: $(VENV)/dev.stamp
	$(BIN)/python -m tests.spec.plant

# make fuzz             malformed messages, and pairs of databases that differ in what is hidden
# make fuzz SEED=2      with another seed; MESSAGES=, PAIRS= and JOBS= as well

SEED ?= 1
MESSAGES ?= 500000
PAIRS ?= 20000
JOBS ?= 2

.PHONY: fuzz
fuzz: $(VENV)/dev.stamp
	$(BIN)/python -m tests.fuzz.messages --count $(MESSAGES) --seed $(SEED) --jobs $(JOBS)
	$(BIN)/python -m tests.fuzz.pairs --count $(PAIRS) --seed $(SEED) --jobs $(JOBS)

# make leaks            each question of tests/leaks, of which the suite draws a part

.PHONY: leaks
leaks: $(VENV)/dev.stamp
	MCP_TEST_LEAKS=1 $(UNMEASURED) --quiet tests/leaks

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
docs: $(VENV)/dev.stamp
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build
