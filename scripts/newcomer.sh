#!/usr/bin/env bash
# Times the path of somebody who has just found this project: clone, `make demo`, `make test`.
# Works on the last commit of this repository, in a folder of its own that is removed at the end.
#
#   scripts/newcomer.sh            the whole path
#   scripts/newcomer.sh --dry-run  clone only, and say what would be run
#   scripts/newcomer.sh --cold     with an empty cache of the kubelet harness, as on a new machine
#
# Crates and Go modules come from their usual caches; a machine without them downloads them first.
set -euo pipefail

dry=0
cold=0
for word in "$@"; do
    case $word in
    --dry-run) dry=1 ;;
    --cold) cold=1 ;;
    -h | --help)
        sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"
        exit 0
        ;;
    *)
        echo "newcomer: unknown option $word; known are --dry-run, --cold and --help" >&2
        exit 2
        ;;
    esac
done

repository=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
# Short: the tests make unix sockets, whose paths have at most 107 bytes, in folders of their own.
place=$(mktemp -d "${TMPDIR:-/tmp}/newcomer-XXXXXX")
trap 'rm -rf -- "$place"' EXIT
trap 'exit 130' INT TERM

# A target folder or harness from elsewhere would spare what a newcomer has to wait for.
unset CARGO_TARGET_DIR ASCEND_TEST_KUBELET_HARNESS
if ((cold)); then
    export ASCEND_TEST_CACHE=$place/cache
fi

timings=()
failed=0
step() {
    local name=$1 start=$SECONDS
    shift
    echo "=== $name: $*"
    if "$@"; then
        timings+=("$(printf '%6d s  %s' $((SECONDS - start)) "$name")")
    else
        timings+=("$(printf '%6d s  %s FAILED' $((SECONDS - start)) "$name")")
        failed=1
    fi
}

if [[ -n $(git -C "$repository" status --porcelain) ]]; then
    echo "newcomer: changes that are not committed are not part of this" >&2
fi
began=$SECONDS
# --no-hardlinks: a real copy, as over a network.
step clone git clone --quiet --no-hardlinks "$repository" "$place/ascend-agent"
for target in demo test; do
    if ((failed)); then
        break
    elif ((dry)); then
        step "$target (dry run)" make -C "$place/ascend-agent" --dry-run --silent --no-print-directory \
            "$target" >/dev/null
    else
        step "$target" make -C "$place/ascend-agent" --no-print-directory "$target"
    fi
done

echo "--- seconds, commit $(git -C "$repository" rev-parse --short HEAD), $(nproc) processors"
printf '%s\n' "${timings[@]}" "$(printf '%6d s  all' $((SECONDS - began)))"
exit "$failed"
