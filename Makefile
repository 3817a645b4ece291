# Start with `make sync`. `make help` lists everything else.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: help setup extras dev lock coverage sync test test-slow test-all test-night test-services check ui notebook notebook-edit bench attack lint clean docs dist fixture
.PHONY: image image-smoke release sbom
.DEFAULT_GOAL := help
VERSION := $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' marketing_api/__init__.py)

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 12

# Locks are complete and have hashes. Python compiles modules when it imports them.
INSTALL := install --quiet --disable-pip-version-check --no-deps --no-compile

.venv/installed: requirements.lock pyproject.toml
	@echo "installing packages into .venv, once: about a minute, 500 MB" >&2
	@$(PYTHON) -m venv .venv
	@$(BIN)/pip $(INSTALL) --require-hashes --requirement requirements.lock
	@$(BIN)/pip $(INSTALL) --no-build-isolation --editable .
	@touch $@

.venv/extras .venv/dev: .venv/%: requirements-%.lock .venv/installed
	@echo "installing more packages into .venv for $*, once" >&2
	@$(BIN)/pip $(INSTALL) --require-hashes --requirement $<
	@touch $@

setup: .venv/installed ## install the packages that a sync needs into .venv

extras: .venv/extras ## also install the packages for notebooks

dev: .venv/dev ## also install the packages for changing the code

# A clone without settings uses the sandbox. A clone with settings may lack a key; the command reports that.
SETTINGS := $(wildcard .env accounts.toml)$(MARKETING_API_URL)$(MARKETING_API_KEY)$(MARKETING_API_KEY_FILE)
sync: .venv/installed ## run the nightly sync; a clone without settings uses the sandbox
	@$(BIN)/marketing-sync sync$(if $(SETTINGS),, --sandbox)

ui: .venv/installed ## serve the Dagster UI on 127.0.0.1:3000
	@$(BIN)/marketing-sync ui$(if $(SETTINGS),, --sandbox)

notebook: .venv/extras ## serve the analysts' notebooks as pages; notebook-edit opens them for editing
	@$(BIN)/marimo run --host 127.0.0.1 --token --include-code notebooks

notebook-edit: .venv/extras
	@$(BIN)/marimo edit --host 127.0.0.1 notebooks

# Three files at a time: some tests wait, so two cores stay busy.
PYTEST := $(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder
test coverage test-slow test-all test-night: export PYTHONDONTWRITEBYTECODE = # empty: else hundreds of processes would each compile the packages
test: .venv/dev ## run the quick tests
	$(PYTEST) -m "not slow and not attack and not services"

coverage: .venv/dev ## run the quick tests and measure coverage; fail below its minimum
	$(PYTEST) --cov -m "not slow and not attack and not services"

test-slow: .venv/dev ## run the tests that take seconds each: whole nights, kills, models of large accounts
	$(PYTEST) -m "slow and not attack and not services"

test-all: .venv/dev ## run the quick and the slow tests together: they share what takes long to make
	$(PYTEST) -m "not attack and not services"

test-night: .venv/dev ## run the cases that are too many for every commit
	$(PYTEST) -m "attack and not services" --ignore tests/attack

test-services: .venv/dev ## run the tests that need PostgreSQL and Redis on this machine; object storage is simulated
	$(BIN)/pytest -m services -n 2 --dist loadfile tests/services

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@git ls-files '*.sql' '*.toml' '*.yml' '*.jinja' '*.html' | grep -v '^docs\|^tests' | \
		xargs awk 'length > 160 { print FILENAME ":" FNR ": over 160 columns"; wide = 1 } END { exit wide }'

check: lint test-all ## lint, and run the quick and the slow tests

bench: .venv/dev ## measure the figures in the docs: pacing, the crawl plan, publishing, a night, fleets
	$(BIN)/python -m tests.benchmarks

attack: .venv/dev ## run tests/attack for hours, e.g. let every place fail once; ARGS="NAME… --minutes M --seed S"
	$(BIN)/python -m tests.attack $(ARGS)

build/mkdocs/installed: docs/requirements.lock
	@$(PYTHON) -m venv build/mkdocs
	@build/mkdocs/bin/pip $(INSTALL) --require-hashes --requirement docs/requirements.lock
	@touch $@

docs: .venv/dev build/mkdocs/installed ## regenerate the generated pages, and build the site
	$(BIN)/python -m docs.models
	$(BIN)/python -m tests.warehouse.test_lineage
	$(BIN)/python -m docs.generate
	@NO_MKDOCS_2_WARNING=1 build/mkdocs/bin/mkdocs build --strict
	@echo "the site: build/site/index.html; its search needs a server: $(PYTHON) -m http.server -b 127.0.0.1 -d build/site"

dist: .venv/installed ## build a wheel for pip, pipx or uvx into dist/
	@rm -f dist/*.whl
	$(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist .

ENGINE ?= docker
LOCK ?= requirements.lock
image: dist ## build the container image; LOCK=requirements-kubernetes.lock adds the launcher of pods; ENGINE=podman; ARGS for the build
	$(ENGINE) build -f deploy/Dockerfile --build-arg LOCK=$(LOCK) --build-arg REVISION=$$(git rev-parse HEAD) \
		--build-arg VERSION=$(VERSION) -t marketing-sync:$(VERSION) $(ARGS) .

image-smoke: image ## build the image, and run a night of the sandbox in it
	ENGINE=$(ENGINE) deploy/smoke marketing-sync:$(VERSION)

release: .venv/installed build/release-tools/installed ## build and check a release of TAG in dist/; without TAG, rehearse it with HEAD
	@deploy/release $(or $(TAG),HEAD)

sbom: build/release-tools/installed dist ## list the image's packages besides the wheel, as CycloneDX: dist/sbom.json
	@PYTHONWARNINGS=ignore build/release-tools/bin/cyclonedx-py requirements --output-reproducible --pyproject pyproject.toml -o dist/sbom.json deploy/$(LOCK)

build/release-tools/installed:
	@$(PYTHON) -m venv build/release-tools
	@build/release-tools/bin/pip install --quiet --disable-pip-version-check check-wheel-contents cyclonedx-bom pip-licenses twine
	@touch $@

fixture: .venv/dev ## at a release: store a small home of this version and the public names, for tests of later versions
	@$(BIN)/python -m tests.pipelines.homes
	@$(BIN)/python -m tests.test_released

build/uv/bin/uv:
	@$(PYTHON) -m venv build/uv
	@build/uv/bin/pip install --quiet --disable-pip-version-check uv

COMPILE = build/uv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate $(ARGS)
EXTRAS := --extra notebooks
SERVICES := --extra postgres --extra redis --extra s3
lock: build/uv/bin/uv ## regenerate the locks from pyproject.toml; ARGS="--upgrade" or "--upgrade-package NAME" for newer versions
	$(COMPILE) pyproject.toml --group clone -o requirements.lock
	$(COMPILE) pyproject.toml --group clone -c requirements.lock $(EXTRAS) -o requirements-extras.lock
	$(COMPILE) pyproject.toml --group clone --group dev -c requirements-extras.lock $(EXTRAS) $(SERVICES) -o requirements-dev.lock
	$(COMPILE) pyproject.toml -c requirements-dev.lock $(SERVICES) -o deploy/requirements.lock
	$(COMPILE) pyproject.toml -c deploy/requirements.lock $(SERVICES) --extra kubernetes -o deploy/requirements-kubernetes.lock
	$(COMPILE) --group docs -o docs/requirements.lock

clean: ## remove installed and cached files; data/ stays
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache build dist
