#!/usr/bin/env bash
# Builds the fuzz targets with the installed stable compiler and runs each for some seconds.
#   fuzz/run.sh [SECONDS] [TARGET...]
# New inputs go to fuzz/target/corpus, findings to fuzz/artifacts; the committed corpus is only read.
# Address sanitizer is left out: it needs an unstable compiler flag, and the code under test is safe
# Rust. `cargo fuzz` works here as well, for whoever has it.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")"

seconds=${1:-30}
shift || true
host=$(rustc -vV | sed -n 's/^host: //p')
if (($# == 0)); then
    set -- $(sed -n 's/^name = "\(.*\)"$/\1/p' Cargo.toml | tail -n +2)
fi

# With --target the flags reach what is fuzzed and not the build scripts.
export RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares"
cargo build --release --locked --target "$host" "${@/#/--bin=}"

for name in "$@"; do
    mkdir -p "target/corpus/$name" "artifacts/$name"
    echo "== fuzz target $name, $seconds s"
    if ! "target/$host/release/$name" "target/corpus/$name" "corpus/$name" \
        -artifact_prefix="artifacts/$name/" -max_total_time="$seconds" -timeout=10 \
        -rss_limit_mb=2048 -verbosity=0 -print_final_stats=1 >"target/$name.log" 2>&1; then
        tail -60 "target/$name.log"
        echo "fuzz target $name failed; its input is in fuzz/artifacts/$name" >&2
        exit 1
    fi
    grep -E '^stat::(number_of_executed_units|average_exec_per_sec|peak_rss_mb)' "target/$name.log"
done
