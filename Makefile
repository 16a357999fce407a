# One word for each thing. `make` alone lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BENCH := PYTHONPATH=$(CURDIR):$(CURDIR)/tests/pipeline/registry $(BIN)/python bench
ARGS ?=
# Tests and examples start hundreds of Python processes: without bytecode each would compile all of Headgate again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup quickstart cluster lake test test-served clusters pure pure-connectors pure-pipeline pure-runtime pure-tasks pure-others same check format bench bench-producer bench-burst bench-exactly-once profile torture soak docs pins bom audit clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 24

setup: $(VENV)/.ready  ## make .venv with headgate and all that it needs

$(VENV)/.ready: pyproject.toml constraints.txt
	@echo "==> setup: a virtual environment in $(VENV), headgate in it"
	@$(PYTHON) -c 'import sys; sys.exit("Headgate needs Python 3.11 or newer; this is " + sys.version.split()[0] + ": set PYTHON=python3.11") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check --progress-bar off -c constraints.txt -e ".[dev]"
	@# Alone: it asks for a builder of documentation, which nothing of it uses. A test runs one of its data sources.
	$(BIN)/python -m pip install --disable-pip-version-check --progress-bar off --no-deps -c constraints.txt pyspark-data-sources
	@touch $@

quickstart: setup  ## a broker, a worker on Spark, two connectors; ARGS=--stay leaves them running
	@echo "==> quickstart: from a file, through Kafka, to a file"
	@$(BIN)/python examples/quickstart/run.py $(ARGS)

cluster: setup  ## a broker and three workers, one of which is killed; ARGS=--stay leaves them running
	@echo "==> cluster: three workers share two connectors, and do without one of them"
	@$(BIN)/python examples/cluster/run.py $(ARGS)

lake: setup  ## PostgreSQL, Kafka, SQL, Parquet and Delta; the worker is killed, and rows are counted
	@echo "==> lake: a table of PostgreSQL in Parquet and Delta, each row once"
	@$(BIN)/python examples/lake/run.py $(ARGS)

test: setup  ## all tests but those of clusters; ARGS="-k pause" chooses
	@echo "==> test: those with broker and Spark, which wait a lot, in three processes; plain values fill the gaps"
	@$(MAKE) --no-print-directory -j 2 -O PURE_ARGS= PURE_SKIPS= test-served $(PURE_ROOMS)

test-served:
	@$(SOME) -n 3 --dist loadfile --no-loadscope-reorder --durations=20 -m "(broker or spark or process) and not clusters" $(ARGS) $(NONE)

clusters: setup  ## tests of clusters of worker processes, and of all that may happen to them; ARGS="-k faults" chooses
	@echo "==> clusters: three workers, and kills, cuts, stuck processes, a broker that goes away"
	$(BIN)/python -m pytest -m clusters $(ARGS)

pure: setup  ## the quick tests: plain values, no processes, fewer random examples
	@echo "==> pure: tests on plain values, room by room"
	@$(MAKE) --no-print-directory -j 4 -O $(PURE_ROOMS)

# Nine thousand tests of a millisecond: processes that share them would spend as long on talking about them. Half of them
# wait for a thread now and then, so there are more processes than cores. None of them hangs where Python cannot end it.
PURE_ROOMS := pure-pipeline pure-connectors pure-runtime pure-tasks pure-others
PURE_ARGS = -p no:schemathesis --hypothesis-profile=quick
PURE_SKIPS = end_to_end distributed rest/test_rest_schemathesis.py pipeline/registry
pure-pipeline: WHERE := java pipeline
pure-runtime: WHERE := runtime
pure-tasks: WHERE := api kafka producer tasks
pure-connectors: WHERE := connectors
pure-others: WHERE := $(filter-out java pipeline runtime api connectors kafka producer tasks plugins conftest.py __pycache__,$(notdir $(wildcard tests/*)))

SOME := $(BIN)/python -m pytest
NONE := || [ $$? = 5 ]  # 5: ARGS chose none of these
$(PURE_ROOMS):
	@$(SOME) -q -p no:xdist -o faulthandler_timeout=0 -m "not broker and not spark and not process and not clusters" \
		$(PURE_ARGS) $(addprefix --ignore=tests/,$(PURE_SKIPS)) $(addprefix tests/,$(WHERE)) $(ARGS) $(NONE)

same: setup  ## a million random batches by columns and record by record; ARGS="--batches 10000 --seed 1" is shorter
	@echo "==> same: columns are held to the record path"
	PYTHONPATH=tests/pipeline:tests/pipeline/registry:tests/pipeline/transforms:tests/pipeline/converters \
		$(BIN)/python tests/pipeline/long_run.py $(ARGS)

check: setup  ## formatting, lint and types
	@echo "==> check: ruff and mypy"
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	@for each in $$(find tests -mindepth 2 -name conftest.py); do $(BIN)/mypy --no-error-summary $$each || exit 1; done

format: setup  ## write the code as ruff wants it
	@echo "==> format: ruff"
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup  ## one table beside Apache Kafka Connect; ARGS="latency start" chooses rows; see docs/performance.md
	@echo "==> bench: by turns on one broker; nothing else should run on this machine"
	$(BENCH)/table.py $(ARGS)

bench-producer: setup  ## transactions of our producer beside a bare confluent-kafka loop
	@echo "==> bench-producer: records per second in transactions of 10,000 and 100,000"
	$(BENCH)/transactions.py $(ARGS)

bench-burst: setup  ## two hundred connectors at once, beside Apache Kafka Connect
	@echo "==> bench-burst: until every connector and task of a burst runs"
	$(BENCH)/table.py burst $(ARGS)

bench-exactly-once: setup  ## exactly-once lines per second, beside Apache Kafka Connect
	@echo "==> bench-exactly-once: file to Kafka, records and offsets in one transaction"
	$(BENCH)/table.py once $(ARGS)

profile: setup  ## a flame graph of Headgate at one workload; ARGS=json-sink names it
	@echo "==> profile: py-spy looks at the worker and at the Python workers of Spark"
	$(BENCH)/flames.py $(ARGS)

torture: setup  ## breaks a cluster for 15 minutes while it delivers exactly once; ARGS="--seconds 60 --faults 8" is shorter
	@echo "==> torture: kills, restarts, time-outs, rebalances; then every line is counted"
	PYTHONPATH=tests/distributed $(BIN)/python tests/torture/run.py $(ARGS)

soak: setup  ## 200 connectors, all faults and bad clients for 30 minutes; ARGS="--seconds 300 --connectors 60" is shorter
	@echo "==> soak: all that may fail fails in turn; then records are counted, and memory, threads and files compared"
	PYTHONPATH=tests/distributed:tests/cluster:tests/end_to_end:tests/torture:bench $(BIN)/python -m tests.soak.run $(ARGS)

docs: setup  ## regenerate the parts of docs/ that are made from code
	@echo "==> docs: diagrams from the state tables, the map from the modules, tables of generators"
	$(BIN)/python docs/diagrams.py
	$(BIN)/python docs/map.py
	$(BIN)/python docs/datagen.py

pins: setup  ## regenerate the SHA-256 of the jars that are fetched; needs Maven Central
	@echo "==> pins: headgate/jars/sha256.txt from a fresh download; read its difference before it is committed"
	$(BIN)/python scripts/pins.py

bom: setup  ## the bill of materials, in CycloneDX's JSON
	@echo "==> bom: what is installed for Headgate, and the jars that it fetches"
	$(BIN)/python scripts/bom.py dist/headgate.cdx.json

audit: setup  ## what is known against the pins of packages and jars; needs the internet, and is no part of the tests
	@echo "==> audit: osv.dev is asked about constraints.txt and headgate/jars/sha256.txt"
	$(BIN)/python scripts/audit.py

clean:  ## remove what the other targets made
	@echo "==> clean: virtual environment, caches, data of the examples"
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis quickstart-data cluster-data lake-data headgate-data
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
