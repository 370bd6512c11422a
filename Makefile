# make book: read the book.  make test: check a change.  Both set up .venv by themselves; see `make help`.
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
PYTHON := .venv/bin/python
SEEDS := 1 2 3 4 5

export UV_SYSTEM_CERTS := 1
export PYTHONUTF8 := 1
unexport VIRTUAL_ENV
unexport PYTHONDONTWRITEBYTECODE # which container images set: every start of Python would compile every module again

.PHONY: help book site serve test test-all durations lint size mutate attack trust renew fidelity stale bench execute lab alone colab canary pdf epub gettext slides release clean set-up set-up-book

help: ## list what can be made
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/make \1\t\2/p' Makefile | expand -t 16

book: set-up-book ## build the site and serve it on this machine
	$(PYTHON) -m web.site book

site: set-up-book ## build the site into _build/html, as it is published; API=1 adds the pages of the API reference
	$(PYTHON) -m web.site build --pictures $(if $(API),--api)

serve: set-up-book ## serve the site as it was last built
	$(PYTHON) -m web.site serve

test: set-up ## check a change in about ten minutes; BASE=commit names the commit to compare with
	@$(PYTHON) -m tools.testing quick

test-all: set-up ## run every test once, in at most 45 minutes
	@$(PYTHON) -m tools.testing all

durations: set-up ## measure every test again and rewrite tests/durations.csv (an hour)
	$(PYTHON) -m tools.testing.durations

lint: set-up ## check style, types and import layers
	$(PYTHON) -m ruff check --quiet .
	$(PYTHON) -m ruff format --quiet --check .
	$(PYTHON) -m pyright --warnings
	.venv/bin/lint-imports --no-cache
	$(PYTHON) -m web.lint
	$(PYTHON) -m tools.phrases --refused
	@for script in tools/*.sh .ci/run; do sh -n $$script || exit 1; done
	@$(PYTHON) -m tools.size --warnings

size: set-up ## report lines of code by package, words of text, and long functions
	@$(PYTHON) -m tools.size

mutate: set-up ## put 500 mistakes into the core one by one and list those that no test finds (hours; resumable)
	nice $(PYTHON) -m tools.trust.mutate

attack: set-up ## try for a quarter of an hour to break the library with random commands, configurations and answers
	nice $(PYTHON) -m tools.trust.attack

trust: set-up ## run every test in random order on a busy machine, once for each of SEEDS (hours)
	$(PYTHON) -m web.site build
	@for seed in $(SEEDS); do \
	  nice $(PYTHON) -m pytest -q -p randomly --randomly-seed=$$seed -n 4 --dist loadfile tests || failed=1; \
	done; [ -z "$$failed" ]

renew: set-up ## after a new JAX release: record and execute again, and report changes; STEMS=rooflines for one
	$(PYTHON) -m tools.renew $(STEMS)

fidelity: set-up ## write the pages on accuracy, with their figures and data files
	$(PYTHON) -m tools.cost_report
	$(PYTHON) -m tools.published

stale: set-up ## list prices and announced specifications older than half a year (DAY=2027-06-01: on that day)
	@$(PYTHON) -m tools.reference.stale $(DAY)

bench: set-up ## measure the built site in a browser, the planner and the simulator
	$(PYTHON) -m web.site vendor
	$(PYTHON) -m benchmarks.page
	$(PYTHON) -m benchmarks.planner
	$(PYTHON) -m benchmarks.serving

execute: set-up ## execute chapters and solutions and write their notebooks; STEMS=rooflines for one
	$(PYTHON) -m tools.notebooks execute $(STEMS)

lab: set-up ## open the notebooks in JupyterLab
	@$(PYTHON) -m tools.trust.notebooks # without trust JupyterLab does not show stored drawings
	.venv/bin/jupyter lab --ServerApp.ip=127.0.0.1

alone: set-up ## run every notebook from an empty folder, on Colab's package versions and on the locked ones
	@echo "==> every notebook alone"
	$(PYTHON) -m tools.isolated_run

colab: set-up ## the same on Colab's package versions only; STEMS=rooflines for one
	$(PYTHON) -m tools.isolated_run --only colab $(STEMS)

canary: set-up ## compare what `pip freeze` printed on Colab with the pinned versions; FILE=freeze.txt
	@$(PYTHON) -m tools.canary $(FILE)

pdf: set-up ## print the built site as a PDF into dist; STEMS="rooflines gpus" prints a volume for each
	@CHROMIUM=$$(tools/chromium.sh) && export CHROMIUM && $(PYTHON) -m web.bound pdf $(STEMS)

epub: set-up ## write the built site as an EPUB into dist
	@CHROMIUM=$$(tools/chromium.sh) && export CHROMIUM && $(PYTHON) -m web.bound epub $(STEMS)

gettext: set-up-book ## write a catalog of each page into _build/gettext, for translators
	$(PYTHON) -m web.site gettext

slides: set-up ## write the figures as slides into dist/slides, a file for each week of the course in teach.md
	$(PYTHON) -m web.slides

release: set-up ## build everything that a release contains into dist: wheel, site, notebooks, PDF, EPUB, digests
	@CHROMIUM=$$(tools/chromium.sh) && export CHROMIUM && $(PYTHON) -m web.release

clean: ## remove what was built and keep the environment
	rm -rf _build .make

set-up:
	@tools/setup.sh test

set-up-book:
	@tools/setup.sh book
