#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Converts one large frame-pointer recording and prints what it costs beside its peers.

usage: convert_bench.py PERFPIPE FLOOR WORK_FOLDER [PERF_DATA]

Without PERF_DATA it makes the recording itself (perf record -F 25000 -a -g, 40 s of git, gcc, gzip,
sort and python on every CPU, about 250 MB) and keeps it in WORK_FOLDER for the next time. Peers in the same run:
`perf script --no-inline -F comm,pid,tid,ip,sym`, and the floor (walk the records, hash each chain).
Figures are medians of whole processes as the kernel accounts them."""
import os, statistics, subprocess, sys, time

LOAD = """
end=$((SECONDS+40))
one() { while [ $SECONDS -lt $end ]; do
    echo '#include <stdio.h>
#include <math.h>
int f(int x){int s=0;for(int i=0;i<x;i++)for(int j=0;j<i;j++)s+=i*j;return s;}' | gcc -O2 -S -o /dev/null -x c -
    git -C "$1" log --stat -p >/dev/null 2>&1
    head -c 30000000 /usr/lib/locale/C.utf8/LC_CTYPE /dev/zero | gzip -c | sha256sum >/dev/null
    git -C "$1" ls-files | sort -R | xargs -n 50 cat | sort >/dev/null
    /usr/bin/python3 -c '
import json,random
d=[{"a":random.random(),"b":[str(i) for i in range(20)]} for _ in range(2000)]
json.loads(json.dumps(d))
def r(n): return 1 if n<2 else r(n-1)+r(n-2)
r(22)'
done; }
for i in $(seq $(nproc)); do one "$1" & done; wait
"""


def record(path, source):
    print("recording 40 s of load to %s ..." % path, flush=True)
    subprocess.run(["perf", "record", "-F", "25000", "-a", "-g", "-m", "8M", "-o", path + ".part", "--",
                    "bash", "-c", LOAD, "load", source],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.rename(path + ".part", path)


def run(argv, times):
    """(median CPU s, median wall s, peak RSS MiB, last line of output)"""
    cpu, wall, peak, last = [], [], 0, ""
    for _ in range(times):
        start = time.monotonic()
        reader, writer = os.pipe()
        pid = os.posix_spawnp(argv[0], argv, os.environ, file_actions=[
            (os.POSIX_SPAWN_DUP2, writer, 1), (os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_WRONLY, 0),
            (os.POSIX_SPAWN_CLOSE, reader)])
        os.close(writer)
        tail = b""
        while True:
            piece = os.read(reader, 1 << 20)
            if not piece:
                break
            tail = (tail + piece)[-400:]
        os.close(reader)
        _, status, usage = os.wait4(pid, 0)
        if status:
            sys.exit("%s failed with status %d" % (argv[0], status))
        wall.append(time.monotonic() - start)
        cpu.append(usage.ru_utime + usage.ru_stime)
        peak = max(peak, usage.ru_maxrss / 1024)
        last = tail.decode(errors="replace").strip().splitlines()[-1:] or [""]
        last = last[0]
    return statistics.median(cpu), statistics.median(wall), peak, last


def main():
    perfpipe, floor, work = sys.argv[1:4]
    os.makedirs(work, exist_ok=True)
    data = sys.argv[4] if len(sys.argv) > 4 else os.path.join(work, "bench.perf.data")
    if not os.path.exists(data):
        record(data, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    with open(data, "rb") as f:  # warm the page cache for everyone
        while f.read(1 << 22):
            pass
    pb, gz = os.path.join(work, "out.pb"), os.path.join(work, "out.pb.gz")
    rows = [
        ("floor (walk and hash)", [floor, data], 5),
        ("perfpipe to .pb", [perfpipe, "convert", "-q", "-i", data, "-o", pb], 5),
        ("perfpipe to .pb.gz", [perfpipe, "convert", "-q", "-i", data, "-o", gz], 3),
        ("perf script --no-inline", ["perf", "script", "--no-inline", "-F", "comm,pid,tid,ip,sym", "-i", data], 1),
    ]
    result = [(name, *run(argv, times)) for name, argv, times in rows]
    n_samples = int(result[0][4].split()[0])
    print("%s: %.0f MB, %s" % (data, os.path.getsize(data) / 1e6, result[0][4]))
    print("%-26s %9s %9s %10s %12s %9s" % ("", "CPU s", "wall s", "peak MiB", "samples/s", "x floor"))
    for name, cpu, wall, peak, _ in result:
        print("%-26s %9.2f %9.2f %10.0f %12.0f %9.2f" % (name, cpu, wall, peak, n_samples / cpu, cpu / result[0][1]))
    perf = result[3][1]
    print("ratio CPU perf script / perfpipe: %.1f to .pb (aim 20), %.1f to .pb.gz (aim 12)" %
          (perf / result[1][1], perf / result[2][1]))
    print("output: %.1f MB .pb, %.1f MB .pb.gz" % (os.path.getsize(pb) / 1e6, os.path.getsize(gz) / 1e6))


main()
