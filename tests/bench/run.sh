#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# All benchmarks, each beside its peer in the same run. usage: run.sh BUILD_FOLDER
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=$1
ninja -C "$build" perfpipe floor_bench pprof_codec_bench replay_bench
echo "== perf.data to pprof"
/usr/bin/python3 "$here/convert_bench.py" "$build/perfpipe" "$build/tests/floor_bench" "$build/bench"
