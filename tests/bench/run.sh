#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# All benchmarks, each beside its peer in the same run where it has one. usage: run.sh BUILD_FOLDER
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=$1
ninja -C "$build" perfpipe floor_bench pprof_codec_bench replay_bench converter_bench symbol_file_bench grpc_client tls_floor_bench spool_bench
echo "== perf.data to pprof, beside perf script and the bare walk of the records"
/usr/bin/python3 "$here/convert_bench.py" "$build/perfpipe" "$build/tests/floor_bench" "$build/bench"
echo "== reading and ordering alone"
"$build/tests/replay_bench"
echo "== the converter alone, 1.1 M distinct chains"
"$build/tests/converter_bench"
echo "== profile store and pprof codecs"
"$build/tests/pprof_codec_bench"
echo "== symbol files, beside llvm-gsymutil-14"
libc=$(readelf -n "$(ldconfig -p | awk '/libc.so.6 .*x86-64/ {print $NF; exit}')" | awk '/Build ID/ {print $3}')
debug=/usr/lib/debug/.build-id/$(echo "$libc" | cut -c1-2)/$(echo "$libc" | cut -c3-).debug
[ -e "$debug" ] || debug=$build/perfpipe # without libc6-dbg
"$build/tests/symbol_file_bench" "$debug"
echo "== gRPC over TLS, beside libgrpc++ and bare SSL_write"
/usr/bin/python3 "$here/grpc_bench.py" "$build/tests/grpc_client" "$build/tests/tls_floor_bench" "$build/bench"
echo "== the spool, beside the same system calls done bare"
"$build/tests/spool_bench" "$build/bench"
