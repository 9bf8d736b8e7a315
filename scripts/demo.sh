#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Samples this host for ten seconds while something runs, and prints where the time went.
# usage: demo.sh PERFPIPE; leaves demo/demo.pb.gz
set -eu

perfpipe=$1
seconds=${SECONDS_TO_SAMPLE:-10}
cd "$(dirname "$0")/.."
mkdir -p demo

# Long-running work, and a stream of short programs as a build or a git server has.
workload() {
	gzip -9 </dev/zero >/dev/null &
	sha256sum /dev/zero >/dev/null &
	while :; do
		ls -lR /usr/include/linux | sort | md5sum >/dev/null
	done
}

export -f workload
setsid bash -c workload &
trap 'kill -- -$! 2>/dev/null || true' EXIT
trap 'exit 130' INT TERM

status=0
"$perfpipe" record -a -d "$seconds" -o demo/demo.pb.gz || status=$?
if [ "$status" = 77 ]; then
	echo "demo: without the right to sample the whole host, the workload alone is sampled" >&2
	"$perfpipe" record -o demo/demo.pb.gz -- timeout "$seconds" bash -c workload || true
elif [ "$status" != 0 ]; then
	exit "$status"
fi
"$perfpipe" report demo/demo.pb.gz --nodecount 25
echo
echo "The profile is demo/demo.pb.gz; go tool pprof -http=: demo/demo.pb.gz shows it as a graph."
