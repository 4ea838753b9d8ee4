# What a contributor runs. Everything goes into .venv; nothing is installed outside this folder but the model
# (in $UQL_HOME, else the user's data folder), which is kept between runs.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
# Processes of the tests. On two cores a fifth of their time is waiting. Each has a stretch of tests, so that most files begin in one of them.
JOBS   ?= 3
SPREAD := -n $(JOBS) --dist worksteal
# The tests start hundreds of processes, and each would compile the modules anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help install model test test-thorough test-all test-oldest test-dbt check demo lint types generated startup soak page-vendor bench-offline bench-long bench-runs bench-check bench-keep docs clean

help:
	@echo 'make demo      fetch a local model and print answers with their truth beside them'
	@echo 'make test      style, types, generated files, tests (a few minutes)'
	@echo 'make test-thorough  the longer tests that make test leaves to CI'
	@echo 'make test-all  the same with the slow tests'
	@echo 'make test-oldest  a part of the tests on the oldest DuckDB that is supported'
	@echo 'make test-dbt  builds the example project of docs/examples/dbt with dbt-duckdb'
	@echo 'make soak      2,000 statements under faults, kills and full disks (for every night)'
	@echo 'make check     what CI runs: test, test-thorough, demo, test-oldest, test-dbt'
	@echo 'make bench-offline  the short form of the benchmarks, labels as the model; writes benchmarks/tables-short.md'
	@echo 'make bench-long  all of the benchmarks with labels as the model; writes benchmarks/tables-long.md'
	@echo 'make bench-check  the runs kept of the last release beside the same runs now; needs the labelled data'
	@echo 'make docs      the documentation as a site in build/site; fails on a broken link'
	@echo 'make clean     remove what the build made; .venv and the model stay'

install: $(STAMP)

$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'setuptools>=77' wheel
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[all,dev]'
	@touch $@

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# An installed copy, from outside the checkout: inside it mypy would see uql/ alone, without the mapped folders.
types: $(STAMP)
	rm -rf build/types build/lib build/bdist.*
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --target build/types .
	cd build/types && ../../$(BIN)/mypy --config-file ../../pyproject.toml --cache-dir ../../.mypy_cache -p uql
	rm -rf build/lib build/bdist.*

generated: $(STAMP)
	$(BIN)/python docs/make_settings.py --check
	$(BIN)/python docs/make_errors.py --check
	$(BIN)/python docs/make_grammar.py --check
	$(BIN)/python -m uql.compiler.make_tables --check

# The local model takes all cores, so its tests run alone; where it cannot be had they are skipped, and say so.
model: $(STAMP)
	$(BIN)/uql models pull || echo 'no local model: its tests are skipped'

test: lint types generated model
	$(BIN)/python -m pytest -q $(SPREAD) -m 'not slow and not thorough and not local_model'
	$(BIN)/python -m pytest -q -m 'local_model and not slow and not thorough'

# The tests of a second or more that are near to others: many seeds, many cases, processes that are started and killed.
test-thorough: model
	$(BIN)/python -m pytest -q $(SPREAD) -m 'thorough and not slow and not local_model'
	$(BIN)/python -m pytest -q -m 'local_model and thorough and not slow'

test-all: lint types generated model
	$(BIN)/python -m pytest -q $(SPREAD) -m 'not local_model'
	$(BIN)/python -m pytest -q -m local_model

# The oldest DuckDB beside the newest one of .venv: what differs between them is in the catalog, the functions, the types. It is also the
# one for which the extension of DuckLake can be had as a package.
OLDEST := 1.4.4
test-oldest: $(STAMP)
	test -d build/duckdb-$(OLDEST) || $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps \
		--target build/duckdb-$(OLDEST) duckdb==$(OLDEST)
	test -d build/duckdb-$(OLDEST)/duckdb_extension_ducklake || $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps \
		--target build/duckdb-$(OLDEST) duckdb-extension-ducklake==$(OLDEST) || echo 'DuckLake is not to be had for this system: not tested'
	PYTHONPATH=$(CURDIR)/build/duckdb-$(OLDEST) $(BIN)/python -c 'import duckdb; assert duckdb.__version__ == "$(OLDEST)", duckdb.__version__'
	PYTHONPATH=$(CURDIR)/build/duckdb-$(OLDEST) $(BIN)/python -m pytest -q $(SPREAD) -m 'not slow and not local_model' \
		tests/uql/test_catalog.py tests/uql/test_python.py tests/uql/test_functions.py tests/uql/test_render.py \
		tests/engine/test_truth.py tests/engine/test_joins.py tests/engine/test_groups.py tests/engine/test_classify.py \
		tests/cluster/test_lakes.py

# dbt lies beside .venv: it pins versions of what the project uses. Newer versions of dbt-core fetch a part of themselves from elsewhere.
DBT := build/dbt
test-dbt: $(STAMP)
	test -d $(DBT) || $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-warn-conflicts \
		--target $(DBT) 'dbt-core~=1.10.0' dbt-duckdb
	PYTHONPATH=$(CURDIR)/$(DBT) $(BIN)/python -c 'import dbt.adapters.duckdb'  # else the test would be skipped
	PYTHONPATH=$(CURDIR)/$(DBT) $(BIN)/python -m pytest -q -m slow tests/docs/test_dbt.py

demo: $(STAMP)
	$(BIN)/uql models pull
	$(BIN)/python -m uql.benchmarks.demo

# Another seed each night; the statement, the seed and what was broken stand in the failure.
soak: $(STAMP)
	UQL_SOAK=2000 $(BIN)/python -m pytest -q -s -o faulthandler_timeout=3600 --timeout=0 tests/llm/test_soak.py -m slow

# The grid and the editor of the page, bundled from uql/ui/vendor/entry.js; the bundle is committed, and only this target needs node.
# The page's content security policy allows no <style> tag, so CodeMirror's rules go into the document's adopted style sheets.
PAGE := build/page-vendor
page-vendor:
	mkdir -p $(PAGE) && cp uql/ui/vendor/entry.js uql/ui/vendor/package.json $(PAGE)
	cd $(PAGE) && npm install --silent --no-audit --no-fund
	sed -i 's/!root.head && root.adoptedStyleSheets/root.adoptedStyleSheets/' $(PAGE)/node_modules/style-mod/src/style-mod.js
	grep -q 'if (root.adoptedStyleSheets' $(PAGE)/node_modules/style-mod/src/style-mod.js
	cd $(PAGE) && npx esbuild entry.js --bundle --minify --format=esm --legal-comments=none --outfile=$(CURDIR)/uql/ui/static/vendor/vendor.js
	sed 's,/\*# sourceMappingURL.*,,' $(PAGE)/node_modules/tabulator-tables/dist/css/tabulator.min.css > uql/ui/static/vendor/tabulator.css
	for name in tabulator-tables codemirror @codemirror/view @lezer/common style-mod crelt w3c-keyname @marijn/find-cluster-break; do \
		echo "== $$name"; cat $(PAGE)/node_modules/$$name/LICENSE; echo; done > uql/ui/static/vendor/LICENSES.txt

startup: $(STAMP)
	$(BIN)/python -m uql.benchmarks.speed.startup

# Needs the labelled data: $UQL_DATA, default ../shared/data.
bench-offline: $(STAMP)
	$(BIN)/python -m uql.benchmarks.offline

# 200 seeds, 1,000 trials: about a day; it goes on where it was stopped.
bench-long: $(STAMP)
	$(BIN)/python -m uql.benchmarks.long

# The same runs as those kept of the last release: every run asks as many calls as it did, scores and answers stand beside each other, seconds
# as a ratio. NumPy, BLAS and faiss take their AVX2 kernels, so that all processors of x86-64 round alike and draw the same rows; where a
# library or the processor is another one all the same, calls are within a tenth.
# Bounds of scores are twice what other seeds move their means by. `make bench-keep` keeps what a change is meant to change.
CHECKED := build/bench-check.jsonl
AVX2 := OPENBLAS_CORETYPE=Haswell NPY_DISABLE_CPU_FEATURES='X86_V4 AVX512_ICL AVX512_SPR' FAISS_OPT_LEVEL=avx2
bench-runs: $(STAMP)
	rm -rf $(CHECKED) build/bench-work
	$(AVX2) $(BIN)/uql bench run sembench --models labels --seeds 1 --offline --work build/bench-work -o $(CHECKED)
	$(AVX2) $(BIN)/uql bench run uqe --models labels --systems uql --seeds 3 --rows 1500 --queries imdb,abcd_account_access,airdialogue_book \
		--offline --work build/bench-work --resume -o $(CHECKED)

bench-check: bench-runs
	$(BIN)/uql bench compare benchmarks/release.jsonl $(CHECKED) --same calls \
		--fail-if 'calls > 1.1x or calls < 0.9x or F1 < -0.02 or spearman < -0.15 or `relative error` > 0.02'

bench-keep: bench-runs
	cp $(CHECKED) benchmarks/release.jsonl

docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	$(BIN)/python docs/website/build.py

check:
	.ci/run

clean:
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -path ./$(VENV) -prune -o -name __pycache__ -type d -exec rm -rf {} +
