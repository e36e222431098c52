# `make help` lists what there is. Everything runs in .venv, which is set up when requirements or pyproject change.
.POSIX:
.PHONY: help setup test faults crash powerloss mutants soak check format chat bench generate lock clean

PYTHON ?= python3
BIN = .venv/bin
STAMP = .venv/.installed

help: ## this list
	@grep -E '^[a-z]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(STAMP) ## make .venv with the program and its development tools

$(STAMP): pyproject.toml requirements-dev.txt
	@if command -v uv >/dev/null 2>&1; then \
	  uv venv --quiet --allow-existing --python $(PYTHON) .venv && \
	  uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements-dev.txt && \
	  uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e . ; \
	else \
	  $(PYTHON) -m venv .venv && \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt && \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e . ; \
	fi
	@touch $(STAMP)

test: $(STAMP) ## run the tests
	$(BIN)/python -m pytest $(ARGS)

faults: $(STAMP) ## every system call of a turn fails or kills; disks without room (needs strace, and root for mounts)
	SIDECAR_FAULT_POINTS=1000000 SIDECAR_DAMAGE_PLACES=500 $(BIN)/python -m pytest -n0 -rs -s tests/faults

crash: $(STAMP) ## N kills at random points of random work, three sidecars on one database
	SIDECAR_CRASH_KILLS=$(or $(N),5000) $(BIN)/python -m pytest -n0 -s tests/crash

powerloss: $(STAMP) ## N times the disk loses what it was not told to keep (root and loop devices)
	SIDECAR_POWERLOSS_ROUNDS=$(or $(N),500) $(BIN)/python -m pytest -n0 -rs -s tests/faults/test_power_loss.py

soak: $(STAMP) ## N turns, cancels, faults and reopened chats in one process; memory, handles, threads, log size
	$(BIN)/python -m benchmarks.endurance --turns $(or $(N),5000)

mutants: $(STAMP) ## broken twins of the program, each caught by the suite meant for it
	SIDECAR_MUTANTS=1 $(BIN)/python -m pytest -n0 -rs -v tests/mutants

check: $(STAMP) ## formatter, linter, strict types, import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: $(STAMP) ## format and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

chat: $(STAMP) ## a streaming chat in the terminal; without a key or a model, with a small one that is fetched once
	@[ -n "$$SIDECAR_MODEL$$ANTHROPIC_API_KEY$$OPENAI_API_KEY$$GEMINI_API_KEY$$GOOGLE_API_KEY" ] || \
	  $(BIN)/sidecar models fetch smollm2
	@$(BIN)/sidecar chat $(ARGS)

generate: $(STAMP) ## write protocol/openrpc.json and protocol/README.md anew
	$(BIN)/python -m sidecar_protocol.export

bench: $(STAMP) ## figures beside peers in one run (benchmarks/README.md)
	$(BIN)/python -m compileall -q sidecar protocol/sidecar_protocol .venv/lib || true
	$(BIN)/python -m benchmarks $(ARGS)

lock: $(STAMP) ## pin requirements-dev.txt anew
	$(BIN)/pip-compile --quiet --strip-extras --extra dev --extra local --extra keyring --generate-hashes --allow-unsafe --no-emit-index-url \
	  --no-emit-find-links --no-emit-trusted-host --no-header --no-annotate --output-file requirements-dev.txt pyproject.toml

clean: ## remove .venv and caches
	rm -rf .venv .mypy_cache .ruff_cache .hypothesis
