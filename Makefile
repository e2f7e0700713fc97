# Everything a user or a developer types. `make` alone lists it.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help install demo lesson-soak chaos test check format lock clean

help: ## list the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

install: $(STAMP) ## install into .venv what is missing

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; name one with PYTHON=" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' || { echo "Python's venv module is missing: apt-get install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

demo: install ## the lesson's arrangements, live on a broker, beside the model
	@$(BIN)/convoy lesson

lesson-soak: install ## repeat the live runs that must agree with the models (RUNS=10)
	@$(BIN)/convoy soak --runs $(or $(RUNS),10)

chaos: install ## break everything on a real broker, judged after each drain (CHAOS_MINUTES=15, CHAOS_SEED)
	@PYTHONPATH=tests $(BIN)/python -m chaos

test: check ## the whole test suite: unit, integration on a real broker, acceptance
	$(BIN)/pytest

check: install ## the fast check: style, types, no broker
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: install ## put the code into the project's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock: ## write requirements.lock anew from pyproject.toml
	$(PYTHON) -m venv $(VENV)-lock
	$(VENV)-lock/bin/pip install --quiet uv
	$(VENV)-lock/bin/uv pip compile --universal --no-emit-index-url --no-emit-find-links --python-version 3.11 \
	  --extra dev --custom-compile-command 'make lock' pyproject.toml --output-file requirements.lock
	rm -rf $(VENV)-lock

clean: ## remove what the commands made in this folder
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .broker *.egg-info
