# make book: read it.  make test: prove it.  Both set up .venv by themselves; see `make help`.
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
PYTHON := .venv/bin/python
PYTEST := $(PYTHON) -m pytest
BARE := .make/bare/bin/python -m pytest -q -p no:cacheprovider --ignore-glob='*test_fuzz_*'
NOTEBOOKS := chapters solutions exercises
# `bare` runs the rest of the core's
TESTS := tests/lab tests/book tests/web tests/trust tests/viz tests/cli $(wildcard tests/core/*/test_fuzz_*.py)

export UV_SYSTEM_CERTS := 1
export PYTHONUTF8 := 1
unexport VIRTUAL_ENV

.PHONY: help book site serve test lint bare bare-environment bare-chapters bare-rooms tests site-for-tests browser quick mutate attack trust renew fidelity stale bench execute lab alone colab pdf epub slides release clean set-up set-up-book

help: ## say what can be made
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/make \1\t\2/p' Makefile | expand -t 16

book: set-up-book ## build the site and serve it on this machine
	$(PYTHON) -m web.site book

site: set-up-book ## build the site into _build/html
	$(PYTHON) -m web.site build

serve: set-up-book ## serve the site as it was last built
	$(PYTHON) -m web.site serve

test: set-up ## run every check there is
	@$(PYTHON) -m web.site vendor
	@$(MAKE) --jobs=2 --output-sync=target site-for-tests bare-chapters bare-rooms lint # each keeps a core busy
	@$(MAKE) tests alone browser

lint: set-up ## style, types and floors
	@echo "==> style, types and floors"
	$(PYTHON) -m ruff check --quiet .
	$(PYTHON) -m ruff format --quiet --check .
	$(PYTHON) -m pyright --warnings
	.venv/bin/lint-imports --no-cache
	$(PYTHON) -m web.lint
	@for script in tools/*.sh .ci/run; do sh -n $$script || exit 1; done

bare: set-up ## the core's tests where nothing but pytest is installed
	@$(MAKE) --jobs=2 --output-sync=target bare-chapters bare-rooms

bare-environment: set-up
	UV_PROJECT_ENVIRONMENT=.make/bare .venv/bin/uv sync --quiet --frozen --no-install-project --only-group bare --python $(PYTHON)

bare-chapters: bare-environment
	@echo "==> the core's chapters, with nothing but pytest beside it"
	@$(BARE) tests/core/chapters

bare-rooms: bare-environment
	@echo "==> the core, with nothing but pytest beside it"
	@$(BARE) --ignore=tests/core/chapters tests/core

tests: set-up ## the library, the laboratory, the tools and every cell of every notebook
	@echo "==> the library, and every cell of every notebook"
	$(PYTEST) -q -n 2 --nbval $(NOTEBOOKS) $(TESTS)

site-for-tests: set-up
	@echo "==> the site"
	$(PYTHON) -m web.site build

browser: set-up ## every page in a real browser (needs the site)
	@echo "==> the site in a browser"
	$(PYTHON) -m web.site vendor
	CHROMIUM=$$(tools/chromium.sh) && export CHROMIUM && $(PYTEST) -q -n 2 --dist worksteal tests/browser

quick: set-up ## what a day's change touches, in three minutes; BASE=commit to compare with another
	@$(PYTHON) -m tools.quick $(BASE)

mutate: set-up ## put 500 mistakes into the core, one by one, and tell which the tests do not find; hours, resumed
	nice $(PYTHON) -m tools.trust.mutate

attack: set-up ## try for a quarter of an hour to break it: lines, configurations, notations, answers, interrupts
	nice $(PYTHON) -m tools.trust.attack

trust: set-up ## run the suite in random order under load, again and again; hours, resumed
	nice $(PYTHON) -m tools.trust.again

renew: set-up ## after a new JAX: record and execute anew, and report what changed; STEMS=rooflines for one
	$(PYTHON) -m tools.renew $(STEMS)

fidelity: set-up ## write the pages on how right the library is, from its own score
	$(PYTHON) -m tools.bills
	$(PYTHON) -m tools.published

stale: set-up ## list prices and announced figures that are older than half a year (DAY=2027-06-01: on that day)
	@$(PYTHON) -m tools.reference.stale $(DAY)

bench: set-up ## measure the built site in a browser (paints, start, weight), the planner and the simulator
	$(PYTHON) -m web.site vendor
	$(PYTHON) -m benchmarks.page
	$(PYTHON) -m benchmarks.planner
	$(PYTHON) -m benchmarks.serving

execute: set-up ## run the chapters and solutions and write their notebooks; STEMS=rooflines for one
	$(PYTHON) -m tools.notebooks execute $(STEMS)

lab: set-up ## open the notebooks in JupyterLab
	@$(PYTHON) -m tools.trust.notebooks # else it shows no drawing that is stored
	.venv/bin/jupyter lab --ServerApp.ip=127.0.0.1

alone: set-up ## run every notebook copied into an empty folder, on Colab's versions and on these
	@echo "==> every notebook alone"
	$(PYTHON) -m tools.alone

colab: set-up ## the same on Colab's versions only; STEMS=rooflines for one
	$(PYTHON) -m tools.alone --only colab $(STEMS)

pdf: set-up ## print the site as it was last built: the book, or STEMS="rooflines gpus" a volume each; into dist
	@CHROMIUM=$$(tools/chromium.sh) && export CHROMIUM && $(PYTHON) -m web.bound pdf $(STEMS)

epub: set-up ## the same as an e-book
	@CHROMIUM=$$(tools/chromium.sh) && export CHROMIUM && $(PYTHON) -m web.bound epub $(STEMS)

slides: set-up ## the figures as slides, a file for each week of the course in teach.md; into dist/slides
	$(PYTHON) -m web.slides

release: set-up ## all that is handed out, into dist: wheel, site, notebooks, PDF, EPUB, digests
	@CHROMIUM=$$(tools/chromium.sh) && export CHROMIUM && $(PYTHON) -m web.release

clean: ## remove what was built (the environment stays)
	rm -rf _build .make

set-up:
	@tools/setup.sh test

set-up-book:
	@tools/setup.sh book
