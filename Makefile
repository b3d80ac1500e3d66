# One command per habit. Each sets up what it needs: `make demo` and `make test` work on a bare Python with pip.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin
NEEDS = maymust: this needs Python 3.11, 3.12 or 3.13
NAMES = $(NEEDS), and there is no $(PYTHON) here. Name another one: make $(MAKECMDGOALS) PYTHON=/path/to/python3.13
FOUND = command -v $(firstword $(PYTHON)) >/dev/null || { echo "$(NAMES)" >&2; exit 1; }
# The script tells an old Python what it needs, but one that is older still cannot read the script.
READS = { $(FOUND); } && $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 7) and "$(NEEDS): make PYTHON=...")'
SETUP = @$(READS) && MAKECMDGOALS='$(MAKECMDGOALS)' $(PYTHON) scripts/setup_venv.py $(VENV)

# As it was typed, `$` and quotes included; not set at all unless it was given.
ifneq ($(origin QUESTION),undefined)
override QUESTION := $(value QUESTION)
export QUESTION
endif

.PHONY: help demo test test-web screenshots test-adapters test-all-pythons package type-completeness soak setup system lint types docs bench bench-peers eval clean
.DEFAULT_GOAL := help

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

demo:  ## a support desk under rules, on a small local model; QUESTION="..." asks something else
	$(SETUP) local,yaml
	@$(RUN)/python -m examples.support_desk.demo

test:  ## all tests, shared among the processors; JOBS=0 runs them one after another, in one process
	$(SETUP) dev
	@$(RUN)/python -m pytest -n $(or $(JOBS),logical) --maxprocesses=8

test-web:  ## the page, in a browser (chromium; as root on Debian it is installed when it is missing)
	$(SETUP) dev
	@$(PYTHON) scripts/chromium.py --install >/dev/null
	@MAYMUST_WEB_REQUIRED=1 $(RUN)/python -m pytest tests/web tests/views

screenshots:  ## docs/images: the page and the terminal, as a browser draws them
	$(SETUP) dev
	@$(RUN)/python -m scripts.screenshots

test-adapters:  ## the adapters, each in its framework's own virtualenv (kept in the user's cache); ADAPTERS="langchain" tests one
	@$(READS) && $(PYTHON) scripts/check_adapters.py $(or $(ADAPTERS),--all)

test-all-pythons:  ## the tests with every supported Python, each in its own virtualenv (kept in the user's cache); ARGS="..." goes to pytest
	@$(READS) && $(PYTHON) -m scripts.all_pythons $(ARGS)

package:  ## the source archive and the wheel: built, checked, installed into a fresh virtualenv
	$(SETUP) dev
	@$(RUN)/python -m scripts.check_package

type-completeness:  ## how much of the public interface has a known type, by pyright (needs Node.js)
	$(SETUP) dev
	@$(RUN)/python -m scripts.type_completeness

soak:  ## a million runs against a model that does what it likes, 10,000 policies verified twice, and 200 kills for each store; MAYMUST_ATTACK_RUNS=N, MAYMUST_KILLS=N make N
	$(SETUP) dev
	@$(RUN)/python -m tests.durable.soak
	@$(RUN)/python -m tests.durable.dbos.soak
	@$(RUN)/python -m benchmarks.bench_gateway --soak 100000
	@$(RUN)/python -m tests.attack.soak
	@MAYMUST_SOAK=$${MAYMUST_SOAK:-10000} $(RUN)/python -m pytest tests/verify

setup:  ## the virtualenv with all that developing takes
	$(SETUP) dev

system:  ## what the tests need of the machine: chromium and, in CI, Postgres (installed as root on Debian and its like)
	@$(READS) && $(PYTHON) scripts/chromium.py --install
	@$(PYTHON) -m scripts.postgres install || [ -z "$$CI" ]

lint:  ## style, and the direction of imports
	$(SETUP) dev
	@$(RUN)/ruff check .
	@$(RUN)/ruff format --check .
	@$(RUN)/lint-imports

types:  ## the strict type checker
	$(SETUP) dev
	@$(RUN)/mypy

docs:  ## the documentation site, into build/docs; a warning or a dead internal link is an error
	$(SETUP) dev
	@$(RUN)/sphinx-build -W --keep-going -q docs build/docs
	@$(RUN)/python -m scripts.llms build/docs
	@echo "open build/docs/index.html"

bench:  ## what a decision, a step, an import and a prompt cost: a few minutes
	$(SETUP) dev
	@$(RUN)/python -m benchmarks

bench-peers:  ## the same beside other frameworks, each in its own virtualenv, and docs/benchmarks.md: half an hour; FAST=1: six minutes; PARTS="loop many"
	$(SETUP) dev
	@$(RUN)/python -m benchmarks.peers $(PARTS) $(if $(FAST),--fast)

eval:  ## what rules hold against AgentDojo's injections, without a model
	$(SETUP) dev
	@$(RUN)/python -m tests.eval.agentdojo

clean:  ## remove the virtualenv and caches of tools
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
