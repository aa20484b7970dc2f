# Two commands set everything up: `make demo` and `make test`.
PYTHON ?= python3.11
BIN := .venv/bin
# Tests pass wrong things on purpose; that what they call is there, and takes what it is given, is checked all the same.
LAX := $(foreach code,arg-type call-overload func-returns-value import-not-found import-untyped misc no-untyped-call type-var unused-ignore var-annotated,--disable-error-code=$(code))

# Tests start hundreds of processes: what these import is compiled once, whatever the environment says.
COMPILED := PYTHONDONTWRITEBYTECODE=

.PHONY: demo test test-slow check format schemas lock clean bench-live bench-latency bench-kill bench-templates bench-stacks bench-window bench-metrics bench-drift

.venv/run: requirements.lock pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

demo: .venv/run ## stream a recorded faulty job through the whole pipeline
	$(BIN)/rankwatch demo

test: .venv/run ## run every test but the slow ones
	$(COMPILED) $(BIN)/python -m pytest -n 2 --dist loadgroup -m "not slow"

test-slow: .venv/run ## outages and standstills of a real Kafka, and its live clock
	$(COMPILED) RANKWATCH_REQUIRE_KAFKA=1 $(BIN)/python -m pytest -m slow

check: .venv/run ## format, lint, types, architecture
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	MYPYPATH=tests $(BIN)/mypy --explicit-package-bases $(LAX) tests
	$(BIN)/lint-imports
	$(BIN)/python -m schemas.generate --check

bench-live: .venv/run ## events a second from topics to rows, beside plain and batched Faust pipelines
	$(BIN)/python tests/benchmarks/live.py

bench-latency: .venv/run ## from a fatal line to its early notice, and from the last evidence to a name, live over Kafka
	$(BIN)/python tests/benchmarks/latency.py

bench-kill: .venv/run ## kill workers and sink again and again; prints what was lost and what came twice
	$(BIN)/python tests/benchmarks/kill.py

bench-templates: .venv/run ## lines a second and grouping accuracy beside drain3
	$(BIN)/python tests/benchmarks/templates.py

bench-stacks: .venv/run ## what a hang of 1,024 to 10,240 ranks costs both stages, and how that grows
	$(BIN)/python tests/benchmarks/stacks.py

bench-window: .venv/run ## what a window of a healthy job of 1,024 and 10,240 ranks costs the job stage, part by part
	$(BIN)/python tests/benchmarks/window.py

bench-metrics: .venv/run ## average precision of the per-rank metric score beside EWMA and PCA
	$(BIN)/python tests/benchmarks/metrics.py

bench-drift: .venv/run ## what is said of 606 healthy series of step times and losses, and of shifts planted into them
	$(BIN)/python tests/benchmarks/drift.py

format: .venv/run
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

schemas: .venv/run ## write the JSON Schemas anew
	$(BIN)/python -m schemas.generate

lock: .venv/run ## resolve the dependencies anew
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --python-version 3.11 --extra test --extra dev pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --python-version 3.11 -c requirements.lock pyproject.toml -o deploy/runtime.lock

clean:
	rm -rf .venv build dist
