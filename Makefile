# Every verb a person needs. What continuous integration runs is `make test`.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
CARGO ?= cargo
# One checkout has one running stack; a second state directory is a second stack.
KEELWAY_STATE ?= $(CURDIR)/.keelway/run
KEELWAY_STACK ?= keelway
# Instruction set of the packages: arm64 or x86-64.
ARCH ?= $(if $(filter arm64 aarch64,$(shell uname -m)),arm64,x86-64)
TARGET := $(or $(CARGO_TARGET_DIR),target)
FUNCTIONS := $(patsubst functions/%/Cargo.toml,keelway-%,$(sort $(wildcard functions/*/Cargo.toml)))
CLOUD := $(PYTHON) infra/local/cloud.py
export KEELWAY_STATE KEELWAY_STACK CARGO

.PHONY: help run test test-fast simulate survey test-keptn test-oracles test-container up down env logs bench lint lock package dist release-check deploy undeploy clean

help: ## Show this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "KEELWAY_PORT=4566   port of the local cloud (a free one)     KEELWAY_STATE=DIR   state directory (.keelway/run)"
	@echo "ARCH=arm64|x86-64   for package, release-check and deploy ($(ARCH))"

run: ## Play the shop example on the local cloud: build, deploy, deliver, watch, approve
	@$(PYTHON) infra/local/run.py run

test: ## Run every test, on a stack of its own
	@$(PYTHON) infra/local/suite.py all

test-fast: ## Run the tests in memory with fewer seeds and without faults after each request: the inner loop
	@$(PYTHON) infra/local/suite.py fast

simulate: ## Play every seed of each simulation, 20,000 of most (an hour); before a release
	@$(PYTHON) infra/local/suite.py simulate

survey: ## Look for every planted fault from the first seed on, and for every mutant of the pure cores (an hour); say what finds it
	@$(PYTHON) infra/local/suite.py survey

test-keptn: ## Run Keptn's own clients against a stack of its own; needs Go, and KEPTN_CHECKOUT or KEPTN_CLI for its command line (tests/README.md)
	@$(PYTHON) infra/local/keptn.py

test-oracles: ## Run octocrab on the strict git host, the suite of the local cloud on AWS's DynamoDB Local, and every event pattern on AWS's event-ruler; needs a JDK and Maven (tests/README.md)
	@$(PYTHON) infra/local/oracles.py

test-container: ## Run the suite of the local cloud with the cloud in a container; needs podman or Docker (tests/container.md)
	@$(PYTHON) infra/local/container.py

up: ## Start the local cloud with the stack deployed
	@$(PYTHON) infra/local/run.py up

down: ## End what up and run started, executors included
	@$(PYTHON) infra/local/run.py down

env: ## Print shell exports of the running stack, keelway on PATH included: eval "$(make env)"
	@$(CLOUD) env --state "$(KEELWAY_STATE)" --stack "$(KEELWAY_STACK)"

logs: ## Print what the functions logged in the last hour
	@$(CLOUD) logs --state "$(KEELWAY_STATE)" --stack "$(KEELWAY_STACK)"

bench: ## Measure release builds on a stack of its own: requests, units, CPU, memory, start, latency; writes target/bench/*.json
	@$(PYTHON) infra/local/run.py build
	@$(PYTHON) infra/local/run.py release
	@python=$$($(CLOUD) venv); KEELWAY_CLOUD_PY="$(CURDIR)/infra/local/cloud.py" KEELWAY_VENV_PYTHON="$$python" \
		"$(TARGET)/debug/keelway-bench"

lint: ## Check format, lints, the width of pages and comments, the template, the policies, and licences if cargo-deny is installed
	@$(PYTHON) infra/local/width.py
	@$(PYTHON) infra/local/features.py
	@$(CARGO) fmt --all --check
	@$(CARGO) clippy --workspace --all-targets -- -D warnings
	@python=$$($(CLOUD) venv lint); "$$(dirname "$$python")/cfn-lint" infra/template.yaml
	@python=$$($(CLOUD) venv lint); "$$python" -W ignore infra/local/policies.py
	@python=$$($(CLOUD) venv scan); "$$(dirname "$$python")/checkov" --config-file infra/local/checkov.yaml --file infra/template.yaml
	@if $(CARGO) deny --version >/dev/null 2>&1; then $(CARGO) deny check; \
		else echo "not run: cargo deny (cargo install cargo-deny)"; fi

lock: ## Make the lock files of the Python environments anew, of infra/local/requirements*.in
	@python=$$($(CLOUD) venv lock); cd infra/local; for file in requirements*.in; do \
		"$$(dirname "$$python")/uv" pip compile --quiet --universal --python-version 3.10 --only-binary :all: --generate-hashes \
			--no-annotate --no-strip-extras --custom-compile-command "make lock" --output-file "$${file%.in}.txt" "$$file"; done

package: ## Build the release packages target/lambda/<function>/bootstrap.zip
	@python=$$($(CLOUD) venv package); PATH="$$(dirname "$$python"):$$PATH" cargo-lambda lambda build --release \
		--$(ARCH) --output-format zip $(addprefix --package ,$(FUNCTIONS))

dist: ## Build a release: the command and the packaged stack for x86-64 and arm64, with checksums; target/dist
	@python=$$($(CLOUD) venv package); "$$python" infra/local/dist.py --tools "$$(dirname "$$python")"

release-check: ## Check the packages: they start, suit the Lambda runtime, and deploy on the local cloud
	@python=$$($(CLOUD) venv); "$$python" infra/local/release.py --arch "$(ARCH)" --lambda "$(TARGET)/lambda" $(FUNCTIONS)

deploy: ## Deploy the packages to AWS (docs/deploy.md)
	@python=$$($(CLOUD) venv deploy); SAM="$$(dirname "$$python")/sam" ARCH="$(ARCH)" infra/deploy.sh deploy

undeploy: ## Delete the stack from AWS; the table stays
	@python=$$($(CLOUD) venv deploy); SAM="$$(dirname "$$python")/sam" infra/deploy.sh undeploy

clean: down ## End the local cloud and remove its state; keeps the build
	@rm -rf .keelway
