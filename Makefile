# Plain `make` lists the targets. Python runs in .venv, which is created when it is needed.
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
.PHONY: help demo cluster node recording run lint format test test-unit test-integration test-node databases browser node-packages \
	bench bench-reviews bench-controller bench-audit manifests helm install docker-build wheel package-chart images \
	deploy undeploy clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.venv/ready: pyproject.toml
	@echo "Creating .venv with the dependencies of pyproject.toml"
	@$(PYTHON) -m venv .venv
	@$(BIN)/pip install --quiet --editable '.[dev]'
	@touch $@

demo: .venv/ready ## show denials and defaults of the real webhook, without a cluster
	@$(BIN)/gatewright demo

cluster: .venv/ready ## a real control plane with webhook, policies and controller, until Ctrl-C
	@$(BIN)/python -m tests.controlplane.cluster .cluster/kubeconfig

node: .venv/ready node-packages ## a real node whose pods are the chart, until Ctrl-C (Debian, as root; docs/running.md)
	@$(BIN)/python -m tests.node.cluster .cluster/kubeconfig

recording: .venv/ready ## draw the README's picture from a real run
	@$(BIN)/python -m tests.recording docs/denial.svg

run: .venv/ready ## webhook and controller in one process, against the cluster of your kubeconfig
	@$(BIN)/gatewright run --policies config/policies/production.yaml

lint: .venv/ready ## ruff, mypy and the import contracts
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/mypy --config-file tests/mypy.ini --package tests --package benchmarks
	$(BIN)/lint-imports

format: .venv/ready ## let ruff format and sort
	$(BIN)/ruff format
	$(BIN)/ruff check --fix
	$(BIN)/ruff format --quiet

test: test-unit test-integration test-node ## every test

test-unit: .venv/ready ## the fast tests: no control plane, no databases
	$(BIN)/pytest -m "not controlplane and not databases and not long and not node" --numprocesses auto

# Three on two cores: half of their time is waiting. In the order of the files: those of a package share a cluster.
test-integration: .venv/ready ## the tests on a real control plane (built once by Go: 5 to 10 minutes) and databases
	$(BIN)/pytest -m "(controlplane or databases or long) and not node" --numprocesses 3 --dist loadfile --no-loadscope-reorder

test-node: .venv/ready ## the tests on a real node, where root can make one (its programs are built once: 5 minutes)
	$(BIN)/pytest -m node tests/node

node-packages: ## install what a real node is made of (apt-get, as root)
	@tests/node/install.sh

browser: ## install the browser that tests of HTML start (apt-get, as root)
	@tests/gatewright/outputs/install.sh

databases: ## install the database servers that tests start (apt-get, as root)
	@tests/databases/install.sh

bench: bench-reviews bench-controller bench-audit ## run every benchmark, each with a baseline

bench-reviews: .venv/ready ## cost of one review, compared with webhooks in Go (15 minutes; docs/performance.md)
	@$(BIN)/python -m benchmarks.reviews

bench-controller: .venv/ready ## CPU and requests that WebApps cost the controller, on a real API server (9 minutes)
	@$(BIN)/python -m benchmarks.controller

bench-audit: .venv/ready ## cost of one audit of 10,000 Deployments (2 minutes)
	@$(BIN)/python -m benchmarks.audit

manifests: .venv/ready ## generate CRDs, rights, the chart's files, config/manager (with helm) and reference pages
	$(BIN)/python -m tests.config.regenerate

helm: .venv/ready ## build helm for `make manifests`, where none is installed (Go; 4 to 12 minutes, once)
	@$(BIN)/python -c "from tests.controlplane.binaries import helm_binary; print(helm_binary())"

install: .venv/ready ## install the CRDs into the cluster of your kubeconfig
	$(BIN)/gatewright crds | $(KUBECTL) apply -f -

docker-build: ## build the image IMG; a version is tagged both 0.1.0 and v0.1.0
	docker build --tag $(IMG) $(if $(filter $(VERSION),$(TAG)),--tag $(IMG:%:$(VERSION)=%:v$(VERSION)) ).

images: ## build the images of Backups' CronJobs and of PostgreSQL with Patroni, for REGISTRY where it is set; UPGRADE_FROM=15 adds the programs of that version
	@tag=$$(sed -n 's/^TAG = "\(.*\)".*/\1/p' controller/reconcilers/backup_cronjob.py); \
	for type in postgresql mysql mongodb; do \
		docker build --target $$type --tag $(REGISTRY:%=%/)gatewright-backup-$$type:$$tag images/backup || exit; \
	done
	@for version in 12 13 14 15 16 17 18; do \
		docker build --build-arg VERSION=$$version --build-arg UPGRADE_FROM=$(UPGRADE_FROM) --tag $(REGISTRY:%=%/)gatewright-postgresql:$$version \
			images/postgresql || exit; \
	done

wheel: .venv/ready ## build the wheel, into dist/
	$(BIN)/pip wheel --quiet --no-deps --wheel-dir dist .

package-chart: ## package the chart for the repository of IMG, and for the project at URL, into dist/
	@rm -rf dist/chart && mkdir -p dist && cp -r charts/gatewright dist/chart
	@sed -i -e 's|^  repository: gatewright$$|  repository: $(IMG:%:$(TAG)=%)|' \
		-e 's|^  runbook: docs/|  runbook: $(URL)/blob/v$(VERSION)/docs/|' dist/chart/values.yaml
	@printf 'home: %s\nsources: [%s]\n' $(URL) $(URL) >> dist/chart/Chart.yaml
	$(HELM) package dist/chart --destination dist

deploy: ## install or upgrade the chart with the image IMG; the CRDs of `make install` become the chart's
	$(HELM) upgrade --install gatewright charts/gatewright --namespace gatewright-system --create-namespace \
		--take-ownership --set image.repository=$(IMG:%:$(TAG)=%) --set-string image.tag=$(TAG)

undeploy: ## uninstall the chart; its CRDs and all custom resources stay
	$(HELM) uninstall gatewright --namespace gatewright-system

clean: ## remove .venv, .cluster, dist and caches
	rm -rf .venv .cluster dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
