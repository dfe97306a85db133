# Plain `make` lists the targets. Everything Python runs in .venv, which is made when it is needed.
PYTHON ?= python3
BIN := .venv/bin
VERSION := $(shell sed -n 's/__version__ = "\(.*\)"/\1/p' gatewright/__init__.py)
IMG ?= gatewright:$(VERSION)
TAG = $(lastword $(subst :, ,$(IMG)))
KUBECTL ?= kubectl
HELM ?= helm
export PYTHONUNBUFFERED := 1
unexport PYTHONDONTWRITEBYTECODE  # the tests start many processes: modules are compiled for all of them once

.DEFAULT_GOAL := help
.PHONY: help demo cluster run lint format test test-unit test-integration databases bench bench-reviews \
	bench-controller manifests install docker-build backup-images deploy undeploy clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.venv/ready: pyproject.toml
	@echo "Making .venv with what pyproject.toml asks for"
	@$(PYTHON) -m venv .venv
	@$(BIN)/pip install --quiet --editable '.[dev]'
	@touch $@

demo: .venv/ready ## show denials and defaults by the real webhook, with no cluster
	@$(BIN)/gatewright demo

cluster: .venv/ready ## a real control plane with webhook, policies and controller, until Ctrl-C
	@$(BIN)/python -m tests.controlplane.cluster .cluster/kubeconfig

run: .venv/ready ## webhook and controller in one process, against the cluster of your kubeconfig
	@$(BIN)/gatewright run --policies config/policies/production.yaml

lint: .venv/ready ## ruff, mypy and the import contracts
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/ready ## let ruff format and sort
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

test: test-unit test-integration ## every test

test-unit: .venv/ready ## the tests that need no control plane, no database and little time
	$(BIN)/pytest -m "not controlplane and not databases and not long" --numprocesses auto

# In the order of the files, so that those of a package, which share a cluster, come one after the other.
test-integration: .venv/ready ## the tests on a real control plane (built once by Go: 5 to 10 minutes) and databases
	$(BIN)/pytest -m "controlplane or databases or long" --numprocesses 2 --dist loadfile --no-loadscope-reorder

databases: ## install the database servers that tests start (apt-get, as root; else those tests are skipped)
	@tests/databases/install.sh

bench: bench-reviews bench-controller ## every benchmark, each beside a floor

bench-reviews: .venv/ready ## what one review costs, beside webhooks in Go (15 minutes; docs/performance.md)
	@$(BIN)/python -m benchmarks.reviews

bench-controller: .venv/ready ## what WebApps cost the controller, on a real API server (9 minutes)
	@$(BIN)/python -m benchmarks.controller

manifests: .venv/ready ## generate CRDs, rights, the chart's files, config/manager and pages of docs
	$(BIN)/python -m tests.config.regenerate

install: .venv/ready ## install the CRDs into the cluster of your kubeconfig
	$(BIN)/gatewright crds | $(KUBECTL) apply -f -

docker-build: ## build the image IMG; a version is tagged both 0.1.0 and v0.1.0
	docker build --tag $(IMG) $(if $(filter $(VERSION),$(TAG)),--tag $(IMG:%:$(VERSION)=%:v$(VERSION)) ).

backup-images: ## build the images of Backups' CronJobs, under REGISTRY where it is set
	@tag=$$(sed -n 's/^TAG = "\(.*\)".*/\1/p' controller/reconcilers/backup_cronjob.py); \
	for type in postgresql mysql mongodb; do \
		docker build --target $$type --tag $(REGISTRY:%=%/)gatewright-backup-$$type:$$tag images/backup || exit; \
	done

deploy: ## install or upgrade the chart with the image IMG; the CRDs of `make install` become the chart's
	$(HELM) upgrade --install gatewright charts/gatewright --namespace gatewright-system --create-namespace \
		--take-ownership --set image.repository=$(IMG:%:$(TAG)=%) --set-string image.tag=$(TAG)

undeploy: ## stop judging first, then remove the chart
	$(KUBECTL) delete validatingwebhookconfiguration,mutatingwebhookconfiguration gatewright --ignore-not-found
	$(HELM) uninstall gatewright --namespace gatewright-system

clean: ## remove .venv, .cluster and caches
	rm -rf .venv .cluster .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
