#!/usr/bin/env bash
# Builds what is shipped, measures it and writes docs/measurements.md anew, whole. Takes about eight
# minutes after the build. Needs the real kubelet's harness:
#
#     ASCEND_TEST_KUBELET_HARNESS=$(tests/kubelet/build.sh) benches/measure.sh
#
# The node's folders lie below ASCEND_TEST_BENCH_DIR (default /var/tmp), which should be on a disk:
# durable commits are what most of the figures are made of.
set -euo pipefail

cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
cargo=${CARGO:-cargo}
place=${ASCEND_TEST_BENCH_DIR:-/var/tmp}
target=docs/measurements.md

if [[ -z ${ASCEND_TEST_KUBELET_HARNESS:-} || ! -x $ASCEND_TEST_KUBELET_HARNESS ]]; then
    echo "measure.sh: ASCEND_TEST_KUBELET_HARNESS names no program; get it with: export ASCEND_TEST_KUBELET_HARNESS=\$(tests/kubelet/build.sh)" >&2
    exit 1
fi

# The benchmarks come first: building them builds the agent too, with the settings of the tests, and
# what is measured must be what is shipped.
built=$("$cargo" bench --no-run --locked --bench node --bench store --bench ledger --bench topology \
    2>&1 | tee >(cat >&2))
program() { sed -n "s|^ *Executable benches/$1 (\(.*\))\$|\1|p" <<<"$built"; }
"$cargo" build --release --workspace --locked

load=$(cut -d' ' -f1-3 /proc/loadavg)
began=$SECONDS
parts=$(mktemp -d "$place/measure.XXXXXX")
trap 'rm -rf -- "$parts"' EXIT

export TMPDIR=$place ASCEND_TEST_MEASURE=1
"$(program node/main.rs)" --bench >"$parts/node"
for bench in store ledger topology; do
    "$(program "$bench.rs")" --bench --output-format bencher | tee "$parts/$bench" >&2
done
passed=$((SECONDS - began))

# Lines like "test NAME ... bench:      1,234 ns/iter (+/- 56)".
averages() {
    awk '/ bench: / {
        name = $0; sub(/^test /, "", name); sub(/ \.\.\. bench: .*/, "", name)
        number = $0; sub(/.* bench: +/, "", number); sub(/ ns\/iter.*/, "", number)
        gsub(",", "", number); number += 0
        if (number >= 1000000) printf "| %s | %.2f ms |\n", name, number / 1000000
        else if (number >= 1000) printf "| %s | %.2f us |\n", name, number / 1000
        else printf "| %s | %d ns |\n", name, number
    }' "$@"
}

fact() { awk -F': *' -v name="$1" '$1 ~ "^" name "[ \t]*$" { print $2; exit }' "$2"; }

processor=$(fact 'model name' /proc/cpuinfo)
commit=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
if ! git diff --quiet HEAD -- src sim proto migrations Cargo.toml Cargo.lock build.rs 2>/dev/null; then
    commit="$commit and local changes"
fi

{
    cat <<TEXT
# Measurements

Written by \`make bench\`, which measures everything anew and replaces this file; do not edit it.
A target that was missed says so. Times depend on the machine and on what else runs there.

| | |
| --- | --- |
| date | $(date -u +%Y-%m-%dT%H:%MZ), $passed s of measuring |
| commit | $commit |
| processor | ${processor:-of no name}, $(nproc) cores |
| memory | $(($(awk '/^MemTotal/ { print $2 }' /proc/meminfo) / 1024)) MiB |
| system | $(uname -srm) |
| file system of the stores | $(stat -f -c %T "$place") |
| load before the start (1, 5, 15 minutes) | $load |
| compiler | $(rustc --version) |
| kubelet | the device manager of Kubernetes $(awk '$1 == "k8s.io/kubernetes" { print $2; exit }' tests/kubelet/go.mod) |
| build | \`cargo build --release --workspace\` |
| command | \`make bench\`, or \`benches/measure.sh\` with \`ASCEND_TEST_KUBELET_HARNESS\` set |
| one section alone | \`cargo bench --bench node -- grants\` (or \`start\`, \`kubelet\`, \`health\`, \`lists\`, \`footprint\`) |

The node of the first sections has 16 simulated 910B3 chips and the real kubelet device manager.
Calls are timed from outside the agent, as its gRPC client. "pNN" is the time that NN of 100 did not
exceed. The driver behind the agent is a simulator in a process of its own, which is not counted.

TEXT
    cat "$parts/node"
    cat <<TEXT
## Single steps

Averages of repeated runs, by criterion.

| what | each |
| --- | --- |
TEXT
    averages "$parts/store" "$parts/ledger" "$parts/topology"
} >"$parts/text"
mkdir -p docs
cp -- "$parts/text" "$target"
echo "measure.sh: $target is written anew"
