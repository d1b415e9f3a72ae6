# Everything here works with Go, git and make alone; what else is needed is
# found or installed by scripts/. Variables: RACE=0|1, FUZZTIME=10s, CORPUS=DIR.

.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

FUZZTIME ?= 10s

# A commit goes into the binary where git can name one; elsewhere (an archive,
# somebody else's clone) the build must not fail for want of it.
VCS := $(shell git rev-parse --verify -q HEAD >/dev/null 2>&1 && echo auto || echo false)

# What a user is given; cmd/corpus is for those who work on the gates.
COMMANDS = ./cmd/nexus ./cmd/agents ./cmd/gateway

# Evaluated once, and only by the targets that use it.
PYTHON = $(eval PYTHON := $$(shell scripts/python-tools.sh))$(PYTHON)

# Everything that gofmt answers for; testdata may be ill-formed on purpose.
GO_FILES = $(shell find . -name '*.go' -not -path './.*' -not -path '*/testdata/*')

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

.PHONY: demo
demo: build ## Heal a small broken Python project and show each step
	@NEXUS_PYTHON="$(PYTHON)" scripts/demo.sh

.PHONY: test
test: ## Run all tests
	@NEXUS_PYTHON="$(PYTHON)" scripts/go-test.sh ./...

.PHONY: build
build: ## Build the commands into bin/
	@mkdir -p bin
	go build -trimpath -buildvcs=$(VCS) -o bin/ $(COMMANDS)

.PHONY: fmt
fmt: ## Format all Go files
	@gofmt -w $(GO_FILES)
	@scripts/lint.sh fmt

.PHONY: lint
lint: ## Run go vet and golangci-lint
	go vet ./...
	go vet -tags drill,nexusfault ./...
	@scripts/lint.sh run

.PHONY: check
check: format lint layers tidy generated ## Run every check that is no test: format, vet, lint, layers, tidy, generated files

.PHONY: format
format:
	@files=$$(gofmt -l $(GO_FILES)) && { [ -z "$$files" ] || { echo "$$files"; echo "format: run make fmt"; exit 1; }; }
	@scripts/lint.sh fmt --diff || { echo "format: run make fmt"; exit 1; }

.PHONY: layers
layers:
	go test .

.PHONY: tidy
tidy:
	go mod tidy -diff

.PHONY: generated
generated:
	@scripts/generated.sh

.PHONY: drill
drill: ## Run the long kill drills
	NEXUS_PYTHON="$(PYTHON)" go test -tags drill -run Drill -count=1 -timeout 60m ./...

.PHONY: hostile
hostile: ## Run hostile programs at every sandbox level and print what happened
	@NEXUS_HOSTILE_TABLE=1 NEXUS_HOSTILE_RUNS=500 go test -count=1 -timeout 30m -v -run 'Hostile|Nothing' ./internal/sandbox/sandboxtest \
		| grep -vE '^ *(=== |--- (PASS|SKIP)|PASS)'

.PHONY: bench
bench: ## Measure
	NEXUS_PYTHON="$(PYTHON)" go test -run '^$$' -bench . -benchmem ./...

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (10s)
	@scripts/fuzz.sh $(FUZZTIME)

.PHONY: corpus
corpus: ## Run the gates over the model answers in CORPUS=DIR (layout: go run ./cmd/corpus)
	@NEXUS_PYTHON="$(PYTHON)" go run ./cmd/corpus "$(CORPUS)"

.PHONY: clean
clean: ## Remove what was built
	rm -rf bin coverage.*

.PHONY: distclean
distclean: clean ## Remove the installed tools too
	rm -rf .tools
