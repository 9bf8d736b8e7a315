#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# All benchmarks, each beside its peer in the same run where it has one. usage: run.sh BUILD_FOLDER
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=$1
ninja -C "$build" perfpipe floor_bench pprof_codec_bench replay_bench converter_bench symbol_file_bench \
	unwind_table_bench grpc_client tls_floor_bench spool_bench
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
echo "== unwind tables, beside .eh_frame and .eh_frame_hdr"
"$build/tests/unwind_table_bench" $(ls -d /lib/*-linux-gnu/libc.so.6 /usr/lib/*-linux-gnu/libstdc++.so.6 /usr/bin/git \
	/bin/bash 2>/dev/null)
find /usr/bin /usr/sbin /usr/lib -type f -size +20k \( -perm -100 -o -name '*.so*' \) -print0 |
	xargs -0 "$build/tests/unwind_table_bench"
if ninja -C "$build" dwfl_unwind 2>/dev/null; then
	echo "== unwinding copied stacks, beside libdwfl and perf script"
	/usr/bin/python3 "$here/unwind_bench.py" "$build/perfpipe" "$build/tests/dwfl_unwind" "$build/bench"
fi
echo "== gRPC over TLS, beside libgrpc++ and bare SSL_write"
/usr/bin/python3 "$here/grpc_bench.py" "$build/tests/grpc_client" "$build/tests/tls_floor_bench" "$build/bench"
echo "== the spool, beside the same system calls done bare"
"$build/tests/spool_bench" "$build/bench"
