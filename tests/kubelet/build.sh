#!/usr/bin/env bash
# Builds the kubelet harness into a cache outside the checkout, unless it is there already, and
# prints the path of the binary as the only line on standard output.
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
cd -- "$here"

sources=()
for file in go.mod go.sum *.go *.s; do
    case $file in
        *_test.go) ;;
        *) sources+=("$file") ;;
    esac
done
hash=$(sha256sum -- "${sources[@]}" | sha256sum | cut -c1-16)
cache=${ASCEND_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ascend-agent}
folder=$cache/kubelet-harness-$hash
binary=$folder/kubelet-harness

if [[ ! -x $binary ]]; then
    if ! command -v go >/dev/null; then
        echo "build.sh: the Go toolchain (1.24 or newer) is missing: install it from your distribution (apt-get install golang-go) or from the Go project's downloads" >&2
        exit 1
    fi
    mkdir -p -- "$folder"
    exec 9>"$folder/lock"
    if ! flock -n 9; then
        echo "build.sh: waiting for another build of the kubelet harness" >&2
        flock 9
    fi
    if [[ ! -x $binary ]]; then
        echo "build.sh: building the kubelet harness; the first time takes several minutes" >&2
        # No -trimpath: with it "go test" here would compile all of Kubernetes once more.
        go build -mod=readonly -buildvcs=false -ldflags "-s -w" -o "$folder/unfinished" . >&2
        mv -- "$folder/unfinished" "$binary"
    fi
fi
echo "$binary"
