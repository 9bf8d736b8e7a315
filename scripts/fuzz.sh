#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs every fuzz target for FUZZ_SECONDS (60) each, from the seeds in tests/fuzz and from what
# earlier runs found. A crash stops it and names the input. usage: fuzz.sh [TARGET...]
set -euo pipefail

cd "$(dirname "$0")/.."
seconds=${FUZZ_SECONDS:-60}
jobs=$(nproc)
cmake --preset fuzz >/dev/null

for source in tests/fuzz/*/*_fuzz.c; do
	name=$(basename "$source" _fuzz.c)
	if [ $# -gt 0 ] && [[ " $* " != *" $name "* ]]; then
		continue
	fi
	cmake --build build/fuzz -j "$jobs" --target "${name}_fuzz" >build/fuzz/"$name".log || {
		cat build/fuzz/"$name".log
		exit 1
	}
	found=build/fuzz/found/$name
	mkdir -p "$found"
	echo "== $name, $seconds s"
	build/fuzz/tests/"${name}_fuzz" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=10 \
		-print_final_stats=1 -verbosity=0 -artifact_prefix="build/fuzz/$name-" \
		"$found" "${source%_fuzz.c}" 2>&1 | tail -n 8
done
