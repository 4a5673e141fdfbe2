# Each verb installs what it needs into .venv by itself. Bare `make` prints the verbs.
# pypaimon, a referee of the tests, has pins that clash with ours: it lives in .venv-pypaimon, and only there.
# .venv-pyspark40 has the oldest PySpark that we run with, and finds all other packages in .venv.
# Tests run in three processes, also on two cores: those of Spark wait for a third of their time.
# Bytecode is written, whatever the environment says: tests start hundreds of processes, and each would compile all modules.
SHELL := /bin/bash
export PYTHONDONTWRITEBYTECODE :=
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help install demo test soak quick check fix bench proto clean referee

VENV   := .venv
PYTHON := $(VENV)/bin/python
# Tests write a hundred thousand small files: in memory, where 12 GB are free; their directory is removed at the end.
PYTEST = room=$$(awk '/^MemAvailable/ { print $$2 }' /proc/meminfo 2>/dev/null || true); \
  if [ "$${room:-0}" -gt 12582912 ] && [ -w /dev/shm ]; then \
    export TMPDIR=$$(mktemp -d /dev/shm/tests-XXXXXX); chmod 755 "$$TMPDIR"; trap 'rm -rf "$$TMPDIR"' EXIT; \
  fi; \
  $(PYTHON) -m pytest -q -n 3 --dist loadscope --no-loadscope-reorder --max-worker-restart=0
STAMP  := $(VENV)/.installed-$(shell cat pyproject.toml constraints.txt | cksum | cut -d' ' -f1)

PYPAIMON       := .venv-pypaimon
PYPAIMON_STAMP := $(PYPAIMON)/.installed-$(shell cksum < constraints-pypaimon.txt | cut -d' ' -f1)

PYSPARK40       := .venv-pyspark40
PYSPARK40_STAMP := $(PYSPARK40)/.installed-$(shell cksum < constraints-pyspark40.txt | cut -d' ' -f1)
REFEREES        := $(PYPAIMON_STAMP) $(PYSPARK40_STAMP)

help: ## print the verbs
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(STAMP) ## what everything needs, into .venv

referee: $(REFEREES) ## pypaimon, which judges the Paimon tests, and the oldest PySpark, into environments of their own

demo: $(STAMP) ## the life of a table on embedded Spark, in a minute: written, merged by SQL, compacted under a writer, cleaned
	@$(PYTHON) examples/demo.py

test: $(STAMP) $(REFEREES) ## all tests, Spark included
	@$(PYTEST)

soak: $(STAMP) $(REFEREES) ## all tests at the promised numbers of examples and races, new examples in every run
	@export TABLEWRIGHT_HYPOTHESIS=$${TABLEWRIGHT_HYPOTHESIS:-search} TABLEWRIGHT_DEPTH=inf; $(PYTEST)

quick: $(STAMP) ## unit and property tests: no JVM, no pylance as a referee, no slow ones; in two or three minutes
	@export TABLEWRIGHT_HYPOTHESIS=brief; $(PYTEST) -m "not spark and not slow" tests/unit tests/property src

check: $(STAMP) ## ruff, mypy --strict, imports between the layers, the one import of lance, rules of structure, tests that are found
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports --no-cache
	@$(PYTHON) tools/lance_imports.py
	@$(PYTHON) tools/structure.py
	@$(PYTHON) tools/found_tests.py

fix: $(STAMP) ## let ruff mend and format what it can
	@$(VENV)/bin/ruff check --fix .
	@$(VENV)/bin/ruff format .

bench: $(STAMP) ## the named workloads beside pylance, as ratios
	@$(PYTHON) -m benchmarks

proto: $(STAMP) ## generate the protobuf modules from our .proto files
	@$(PYTHON) tools/proto.py

clean: ## remove caches and leftovers; the environments stay
	@find . -path './.venv*' -prune -o -type d -name __pycache__ -print0 | xargs -0 rm -rf
	@rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist spark-warehouse metastore_db derby.log

# A Python 3.11 or newer, the first that runs; then the package with everything for development.
$(STAMP): pyproject.toml constraints.txt
	@if [ ! -x $(PYTHON) ]; then \
	  for candidate in python3.11 python3.12 python3.13 python3.14 python3 python; do \
	    if $$candidate -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then found=$$candidate; break; fi; \
	  done; \
	  if [ -z "$${found:-}" ]; then echo "make: Python 3.11 or newer (with the venv module) is needed, and none was found on PATH." >&2; exit 1; fi; \
	  echo "Making $(VENV) with $$found ($$($$found --version))"; \
	  $$found -m venv $(VENV); \
	fi
	@echo "Installing Tablewright and its tools into $(VENV) (once) …"
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@rm -f $(VENV)/.installed-*
	@touch $@

# The referee's environment, with the same Python.
$(PYPAIMON_STAMP): constraints-pypaimon.txt | $(STAMP)
	@echo "Installing pypaimon into $(PYPAIMON) (once) …"
	@rm -rf $(PYPAIMON)
	@$(PYTHON) -m venv $(PYPAIMON)
	@$(PYPAIMON)/bin/python -m pip install --quiet --no-compile --disable-pip-version-check -c constraints-pypaimon.txt 'pypaimon==2.1.*'
	@touch $@

# The oldest PySpark, before .venv on the path of its Python.
$(PYSPARK40_STAMP): constraints-pyspark40.txt | $(STAMP)
	@echo "Installing PySpark 4.0 into $(PYSPARK40) (once) …"
	@rm -rf $(PYSPARK40)
	@$(PYTHON) -m venv $(PYSPARK40)
	@$(PYSPARK40)/bin/python -m pip install --quiet --no-compile --disable-pip-version-check -c constraints-pyspark40.txt 'pyspark==4.0.*'
	@echo "import site; site.addsitedir('$$($(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("purelib"))')')" \
	  > "$$($(PYSPARK40)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/zz_venv.pth"
	@touch $@
