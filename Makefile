# The command that a newcomer needs is `make sync`. Everything else is listed by `make help`.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: help setup extras dev lock coverage sync test test-slow test-night test-services check ui notebook notebook-edit bench attack lint clean docs dist fixture
.PHONY: image image-smoke release sbom
.DEFAULT_GOAL := help
VERSION := $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' marketing_api/__init__.py)

help: ## what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 12

# Locks are complete and have hashes; what is imported is compiled when it is.
INSTALL := install --quiet --disable-pip-version-check --no-deps --no-compile

.venv/installed: requirements.lock pyproject.toml
	@echo "setting up, once: packages into .venv, under a minute on a usual line and 500 MB" >&2
	@$(PYTHON) -m venv .venv
	@$(BIN)/pip $(INSTALL) --require-hashes --requirement requirements.lock
	@$(BIN)/pip $(INSTALL) --no-build-isolation --editable .
	@touch $@

.venv/extras .venv/dev: .venv/%: requirements-%.lock .venv/installed
	@echo "setting up $*, once: more packages into .venv" >&2
	@$(BIN)/pip $(INSTALL) --require-hashes --requirement $<
	@touch $@

setup: .venv/installed ## what a sync needs, into .venv

extras: .venv/extras ## also what notebooks need

dev: .venv/dev ## also what changing the code needs

# A clone without any settings has chosen the sandbox; one with some may have lost its key, and the command says so.
SETTINGS := $(wildcard .env accounts.toml)$(MARKETING_API_URL)$(MARKETING_API_KEY)$(MARKETING_API_KEY_FILE)
sync: .venv/installed ## the nightly sync, against the sandbox in a clone without settings
	@$(BIN)/marketing-sync sync$(if $(SETTINGS),, --sandbox)

ui: .venv/installed ## the Dagster UI on 127.0.0.1:3000
	@$(BIN)/marketing-sync ui

notebook: .venv/extras ## the analysts' notebooks as pages in the browser; notebook-edit opens them to be changed
	@$(BIN)/marimo run --host 127.0.0.1 --token --include-code notebooks

notebook-edit: .venv/extras
	@$(BIN)/marimo edit --host 127.0.0.1 notebooks

test test-slow test-night: export PYTHONDONTWRITEBYTECODE = # empty: hundreds of processes would compile the packages anew
test: .venv/dev ## the tests in minutes, three files at a time: some wait, and two cores stay busy
	$(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder -m "not slow and not attack and not services"

coverage: .venv/dev ## the tests in minutes once more, with what no test runs, and a floor
	$(BIN)/pytest --cov -n 3 --dist loadfile --no-loadscope-reorder -m "not slow and not attack and not services"

test-slow: .venv/dev ## those that take seconds each: whole nights, kills, models of large accounts
	$(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder -m "slow and not attack and not services"

test-night: .venv/dev ## the cases that are too many for every commit
	$(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder -m "attack and not services" --ignore tests/attack

test-services: .venv/dev ## the tests that need PostgreSQL and Redis on this machine; object storage is simulated
	$(BIN)/pytest -m services -n 2 --dist loadfile tests/services

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@git ls-files '*.sql' '*.toml' '*.yml' '*.jinja' '*.html' | grep -v '^docs\|^tests' | \
		xargs awk 'length > 160 { print FILENAME ":" FNR ": over 160 columns"; wide = 1 } END { exit wide }'

check: lint test test-slow ## what CI runs: lint, types, import rules, all tests

bench: .venv/dev ## what pages claim, measured: pacing, the crawl plan, publishing, a night, fleets
	$(BIN)/python -m tests.benchmarks

attack: .venv/dev ## hours of attack: every place fails once, and what else tests/attack holds; ARGS="NAME… --minutes M --seed S"
	$(BIN)/python -m tests.attack $(ARGS)

build/mkdocs/installed: docs/requirements.lock
	@$(PYTHON) -m venv build/mkdocs
	@build/mkdocs/bin/pip $(INSTALL) --require-hashes --requirement docs/requirements.lock
	@touch $@

docs: .venv/dev build/mkdocs/installed ## write the generated pages anew, and the site from all pages
	$(BIN)/python -m docs.models
	$(BIN)/python -m tests.warehouse.test_lineage
	$(BIN)/python -m docs.generate
	@NO_MKDOCS_2_WARNING=1 build/mkdocs/bin/mkdocs build --strict
	@echo "the site: build/site/index.html; its search needs a server: $(PYTHON) -m http.server -b 127.0.0.1 -d build/site"

dist: .venv/installed ## a wheel in dist/, for pip, pipx or uvx
	@rm -f dist/*.whl
	$(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist .

ENGINE ?= docker
LOCK ?= requirements.lock
image: dist ## the container image; LOCK=requirements-kubernetes.lock with what starts pods, ENGINE=podman, ARGS for the build
	$(ENGINE) build -f deploy/Dockerfile --build-arg LOCK=$(LOCK) --build-arg REVISION=$$(git rev-parse HEAD) \
		--build-arg VERSION=$(VERSION) -t marketing-sync:$(VERSION) $(ARGS) .

image-smoke: image ## the image, and a night of the sandbox in it
	ENGINE=$(ENGINE) deploy/smoke marketing-sync:$(VERSION)

release: .venv/installed build/release-tools/installed ## what TAG (or, as a rehearsal, HEAD) is made of, checked, in dist/
	@deploy/release $(or $(TAG),HEAD)

sbom: build/release-tools/installed dist ## what the image has beside the wheel, as CycloneDX: dist/sbom.json
	@PYTHONWARNINGS=ignore build/release-tools/bin/cyclonedx-py requirements --output-reproducible --pyproject pyproject.toml -o dist/sbom.json deploy/$(LOCK)

build/release-tools/installed:
	@$(PYTHON) -m venv build/release-tools
	@build/release-tools/bin/pip install --quiet --disable-pip-version-check check-wheel-contents cyclonedx-bom pip-licenses twine
	@touch $@

fixture: .venv/dev ## at a release: a small home of this version and the names that are public, for the tests of later ones
	@$(BIN)/python -m tests.pipelines.homes
	@$(BIN)/python -m tests.test_released

build/uv/bin/uv:
	@$(PYTHON) -m venv build/uv
	@build/uv/bin/pip install --quiet --disable-pip-version-check uv

COMPILE = build/uv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate $(ARGS)
EXTRAS := --extra notebooks
SERVICES := --extra postgres --extra redis --extra s3
lock: build/uv/bin/uv ## the locks anew from pyproject.toml; ARGS="--upgrade" or "--upgrade-package NAME" for newer versions
	$(COMPILE) pyproject.toml --group clone -o requirements.lock
	$(COMPILE) pyproject.toml --group clone -c requirements.lock $(EXTRAS) -o requirements-extras.lock
	$(COMPILE) pyproject.toml --group clone --group dev -c requirements-extras.lock $(EXTRAS) $(SERVICES) -o requirements-dev.lock
	$(COMPILE) pyproject.toml -c requirements-dev.lock $(SERVICES) -o deploy/requirements.lock
	$(COMPILE) pyproject.toml -c deploy/requirements.lock $(SERVICES) --extra kubernetes -o deploy/requirements-kubernetes.lock
	$(COMPILE) --group docs -o docs/requirements.lock

clean: ## remove what was installed and cached; data/ stays
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache build dist
