#!/bin/sh
# Stands in for the agent's program. Called by a link; what lies beside the link decides how the agent
# runs:
#   agent      the program itself
#   tmpfs      size of a file system of its own for the state folder, in a private mount namespace
#   readonly   that file system is read-only from the start
#   faults.so  preloaded; it looks for the file "faults"
#   untrusted  a library folder: searched for the driver instead of the trusted library
here=${0%/*}
[ "$1" = run ] || exec "$here/agent" "$@"
state=$3

if [ -e "$here/untrusted" ]; then
    count=$#
    while [ "$count" -gt 0 ]; do
        case $1 in
            --trusted-library) shift 2; count=$((count - 2)) ;;
            *) set -- "$@" "$1"; shift; count=$((count - 1)) ;;
        esac
    done
    LD_LIBRARY_PATH=$(readlink "$here/untrusted")
    export LD_LIBRARY_PATH
fi
if [ -e "$here/faults.so" ]; then
    ASCEND_TEST_FAULTS=$here/faults
    LD_PRELOAD=$here/faults.so
    export ASCEND_TEST_FAULTS LD_PRELOAD
fi
if [ -e "$here/tmpfs" ]; then
    rights=
    [ "$(id -u)" = 0 ] || rights=--map-root-user
    mkdir -p -m 0700 "$state"
    # shellcheck disable=SC2016,SC2086
    exec unshare --mount $rights sh -c '
        here=$1 state=$2
        shift 2
        mount -t tmpfs -o "mode=0700,size=$(cat "$here/tmpfs")" ascend-test "$state" || exit 125
        [ ! -e "$here/readonly" ] || mount -o remount,ro "$state" || exit 125
        exec "$here/agent" "$@"
    ' sh "$here" "$state" "$@"
fi
exec "$here/agent" "$@"
