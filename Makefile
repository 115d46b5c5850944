# Two commands need nothing but Python 3.11+ and pip: `make demo` and `make test`. Both set up .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DATA ?= ../shared/data
SAMPLE ?= 0
START ?= 0
PIP := $(BIN)/python -m pip --disable-pip-version-check
PROJECT := pyproject.toml constraints.txt

.PHONY: demo docs dist installed test test-all browser-test lint audit faults bench papers spark clean help

help:
	@echo "make demo          set up, make a synthetic corpus from a bundled sample, and explain its guarantee"
	@echo "make test          set up and run the fast tests"
	@echo "make test-all      run all tests except those in a browser"
	@echo "make browser-test  run the tests of playground and site in a headless Chromium"
	@echo "make lint          run formatter, linter, type checker and import linter"
	@echo "make audit         audit every mechanism, and known-broken ones that must be refuted"
	@echo "make faults        fail, kill and interrupt runs at file operations (SAMPLE=100: that many of each)"
	@echo "make docs          build the documentation site into site/VERSION"
	@echo "make dist          build the wheel and the source archive into dist/"
	@echo "make bench         compare speed and memory with a peer (benchmarks/README.md)"
	@echo "make papers        run the quick form of the papers' experiments (DATA=FOLDER)"
	@echo "make clean         remove the environment and all build output"

# The environment of the demo is lean; that of the tests contains it.
$(VENV)/demo.stamp: $(PROJECT)
	$(PYTHON) -c "import sys; sys.exit(0 if sys.version_info >= (3, 11) else 'dptext needs Python 3.11 or newer: make PYTHON=python3.11 ...')"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --constraint constraints.txt --editable "."
	touch $@

$(VENV)/dev.stamp: $(VENV)/demo.stamp
	$(PIP) install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@

# pyspark is large and useless without Java, so it is no part of the usual environment.
$(VENV)/spark.stamp: $(VENV)/dev.stamp
	if command -v java; then $(PIP) install --quiet --constraint constraints.txt --editable ".[dev,spark]"; \
	else echo "there is no Java: the tests of Spark will be skipped"; fi
	touch $@

spark: $(VENV)/spark.stamp

$(VENV)/docs.stamp: $(VENV)/dev.stamp
	$(PIP) install --quiet --constraint constraints.txt --editable ".[dev,docs,browser]"
	touch $@

# A folder a version, so that pages of several stand beside one another; site/index.html leads to the newest.
docs: $(VENV)/docs.stamp
	NO_MKDOCS_2_WARNING=1 DISABLE_MKDOCS_2_WARNING=true $(BIN)/mkdocs build --strict --clean

# What an index would get; `make installed` tries it where nothing else is: a command, and a page's example.
dist: $(VENV)/dev.stamp
	rm -rf dist
	$(BIN)/python -m build --outdir dist

INSTALLED := build/installed
installed: dist
	rm -rf $(INSTALLED)
	$(PYTHON) -m venv $(INSTALLED)
	$(INSTALLED)/bin/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt "$$(echo dist/*.whl)[glove]"
	cd $(INSTALLED) && bin/dptext demo --folder tried
	cd $(INSTALLED) && bin/python -m doctest -o ELLIPSIS -o NORMALIZE_WHITESPACE ../../docs/mechanisms/tem.md

demo: $(VENV)/demo.stamp
	$(BIN)/dptext demo

# Each worker of the tests has one core: what BLAS and OpenMP start beside it would wait for the others' cores.
# what was compiled is kept, also where the environment says otherwise: the tests start hundreds of processes
export PYTHONDONTWRITEBYTECODE :=
WORKERS ?= auto
# Spark's Java compiles little: for so few rows that costs more than it saves.
TESTS := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 SPARK_SUBMIT_OPTS="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC" \
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal

test: $(VENV)/dev.stamp
	$(TESTS) -m "not (statistical or papers or slow or spark or browser)"

test-all: $(VENV)/dev.stamp
	$(TESTS) -m "not browser"

# Fails, instead of skipping, where Playwright or Chromium is missing.
browser-test: $(VENV)/docs.stamp
	DPTEXT_BROWSER=required OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q tests/browser

lint: $(VENV)/dev.stamp
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

audit: $(VENV)/dev.stamp
	PYTHONPATH=tests $(BIN)/python -m known_broken

faults: $(VENV)/dev.stamp
	cd tests && ../$(BIN)/python -m faults --sample $(SAMPLE) --start $(START)

bench: $(VENV)/dev.stamp
	$(BIN)/python benchmarks/words.py

# Two at a time, each on one core; stopped and started again, each goes on where it was.
QUICK := $(addprefix quick-,ome.accuracy ome.experiment tem.experiment tem.threshold tem.composed dpugc.experiment dpugc.training \
	dpugc.personal dpnr.experiment dpnr.blogs dpnr.reviews dptext.experiment dptext.table1 synthesis.experiment synthesis.questions \
	summary.experiment summary.phrases sentences.experiment leakage.leakage \
	referee.experiment referee.tab referee.tools collector.experiment)
.PHONY: $(QUICK)

papers: $(VENV)/dev.stamp
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(MAKE) --jobs 2 $(QUICK)

$(QUICK): quick-%: $(VENV)/dev.stamp
	$(BIN)/python -m papers.$* --quick $(if $(filter ome.accuracy,$*),--encoders glove) --data $(DATA)

clean:
	rm -rf $(VENV) .venv-bench-* dptext-demo build dist site
