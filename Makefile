# Plain `make` lists the targets.
PYTHON ?= python3
BIN := .venv/bin

.venv/ready: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --editable '.[dev]'
	@touch $@
