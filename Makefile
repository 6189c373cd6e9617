# lanjobs: build, test, measure. `make help` lists the targets.
VERSION ?= 0.1.0-dev
GO      ?= go
GOFLAGS_BUILD = -trimpath -ldflags "-s -w -X main.version=$(VERSION)"
TARGETS = linux/amd64 linux/arm64 linux/arm darwin/arm64 darwin/amd64 windows/amd64
INPUTS  ?= 20000
export CGO_ENABLED ?= 0

.PHONY: help build test race sim fuzz e2e lint cross bench mutants clean

help: ## list the targets
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## bin/lanjobs for this machine, static
	$(GO) build $(GOFLAGS_BUILD) -o bin/lanjobs .

test: ## all tests that need no root and no long time
	$(GO) test ./...

race: ## the same with the race detector (needs a C compiler)
	CGO_ENABLED=1 $(GO) test -race ./...

sim: ## many more seeds of the clusters in virtual time (SEEDS=200)
	LANJOBS_SEEDS=$${SEEDS:-200} $(GO) test ./node/clustertest ./node/plan ./node/worker -timeout 30m

fuzz: ## every fuzz target for so many inputs (INPUTS=20000)
	bash .ci/fuzz.sh $(INPUTS)

e2e: ## real processes and, as root, network namespaces
	$(GO) test -tags e2e ./cli -timeout 40m -parallel 4

lint: ## gofmt, vet, staticcheck, import rules
	@test -z "$$(gofmt -l . | tee /dev/stderr)"
	$(GO) vet ./...
	$(GO) vet -tags e2e ./cli
	$(GO) tool staticcheck ./...

cross: ## build for every supported system
	@for t in $(TARGETS); do echo "  $$t"; GOOS=$${t%/*} GOARCH=$${t#*/} $(GO) build -trimpath -o /dev/null . || exit 1; done

bench: ## the table of ratios
	bash .ci/bench.sh

mutants: ## break the code on purpose: each mutant must turn its test red
	bash .ci/mutants.sh

clean: ## remove what was built
	rm -rf bin
