# Set-up on a fresh machine is one of two commands: `make demo` or `make test`.
# Both need cargo, go, a C compiler and make; everything else comes from the package registries.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# The lock file decides; a build never changes it.
CARGO ?= cargo
LOCKED ?= --locked

# Prints the path of the real kubelet's harness; builds it when it is not in the cache.
WITH_HARNESS = ASCEND_TEST_KUBELET_HARNESS=$$(tests/kubelet/build.sh); \
    export ASCEND_TEST_KUBELET_HARNESS;

.PHONY: help
help: ## This list
	@grep -hE '^[a-z]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | expand -t 10

.PHONY: demo
demo: need ## Build everything and show the main job: one simulated node, the real kubelet
	$(CARGO) build --workspace $(LOCKED)
	$(WITH_HARNESS) exec target/debug/ascend-agent demo

.PHONY: test
test: export RUST_TEST_THREADS ?= 4
test: need ## Build everything and run every test
	$(CARGO) build --workspace $(LOCKED)
	harness=$$(tests/kubelet/build.sh); test -x "$$harness"
	cd tests/kubelet && go vet -mod=readonly ./... && go test -mod=readonly ./...
	$(WITH_HARNESS) $(CARGO) test --workspace $(LOCKED)

.PHONY: bench
bench: need ## Measure; writes docs/measurements.md
	$(WITH_HARNESS) benches/measure.sh

.PHONY: soak
soak: need ## The long runs: thousands of kills under pod churn
	$(CARGO) build --workspace $(LOCKED)
	$(WITH_HARNESS) ASCEND_TEST_CHURN_ROUNDS=2000 PROPTEST_CASES=20000 $(CARGO) test --workspace $(LOCKED)

.PHONY: lint
lint: ## Form, lints, and the dependency rules where cargo-deny is installed
	$(CARGO) fmt --all --check
	$(CARGO) fmt --manifest-path fuzz/Cargo.toml --check
	$(CARGO) clippy --workspace --all-targets $(LOCKED) -- -D warnings
	if $(CARGO) deny --version >/dev/null 2>&1; then $(CARGO) deny check bans licenses sources; \
	    else echo "cargo-deny is not installed: dependency rules were not checked" >&2; fi

.PHONY: docs
docs: ## Write docs/configuration.md from the table of keys
	$(CARGO) build $(LOCKED)
	target/debug/ascend-agent config reference > docs/configuration.md.new
	mv docs/configuration.md.new docs/configuration.md

.PHONY: newcomer
newcomer: need ## Time the newcomer's path: clone, demo, test
	scripts/newcomer.sh

.PHONY: clean
clean: ## Remove what was built here; the harness stays in its cache
	$(CARGO) clean
	rm -rf fuzz/target fuzz/artifacts fuzz/coverage

# One line per missing tool, then stop.
.PHONY: need
need:
	@missing=0; \
	lack() { echo "missing: $$1; get it with: $$2" >&2; missing=1; }; \
	command -v $(CARGO) >/dev/null || lack "cargo (Rust 1.90 or newer)" "rustup, or your distribution's rustup package"; \
	command -v go >/dev/null || lack "go (1.24 or newer)" "apt-get install golang-go, or the Go project's download"; \
	command -v cc >/dev/null || command -v gcc >/dev/null || lack "gcc (a C compiler and linker)" "apt-get install gcc libc6-dev"; \
	command -v flock >/dev/null || lack "flock" "apt-get install util-linux"; \
	exit $$missing
