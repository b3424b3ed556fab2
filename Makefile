# Two commands do everything: `make demo` and `make test`. Both set the project up first, from a bare checkout.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
EXTRAS ?= server,worker,ray,demo,dev

.PHONY: install demo serve capabilities test check bench
.DEFAULT_GOAL := demo

# Everything into .venv, and STUMPY's kernels compiled once; nothing to do the second time.
install: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml constraints.txt
	@echo "== Setting up $(VENV): a few minutes the first time"
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@$(PY) -c 'import sys; sys.exit("Tidemill needs Python 3.11 to 3.13, and $(PYTHON) is " + sys.version.split()[0]) if not (3, 11) <= sys.version_info[:2] <= (3, 13) else None'
	$(PY) -m pip install --disable-pip-version-check -c constraints.txt -e '.[$(EXTRAS)]'
	$(PY) -m workers.compile
	@touch $@

demo: install
	@$(PY) -m app.demo

serve: install
	@$(PY) -m app

# What this machine has been proved to do: kinds × backends, with the evidence.
capabilities: install
	@$(PY) -m app.capabilities.table

bench: install $(VENV)/peers
	@$(PY) -m tests.bench

# What the bench compares with, and nothing else needs.
$(VENV)/peers:
	FORCE_NO_CUDA=1 $(PY) -m pip install --disable-pip-version-check --no-deps --target $@ pyscamp==4.0.3 quickmp==0.3.0

# The linters first, since they are quick, then the suite, in two processes with servers of their own: much of it is waiting. Which files
# share a process, and in which order: tests/conftest.py.
test: check
	$(PY) -m pytest -n 2 --dist loadfile

check: install
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports
