#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What unwinding copied stacks costs: a frame and a sample beside libdwfl with one cached Dwfl a process, and a whole
perf.data beside `perf script --no-inline`.

usage: unwind_bench.py PERFPIPE DWFL_UNWIND WORK_FOLDER [PERF_DATA]

Without PERF_DATA it makes the recording itself (perf record -F 4999 -a --call-graph dwarf, of git, gcc, xz and python)
and keeps it in WORK_FOLDER for the next time. "first": the copy is cold in the CPU's cache, as in a file; "again": it is
hot, as it is live. Whole processes: medians of user and system time as the kernel accounts them."""
import os, statistics, subprocess, sys

LOAD = """
end=$((SECONDS+15))
one() { while [ $SECONDS -lt $end ]; do
    echo 'int f(int x){int s=0;for(int i=0;i<x;i++)for(int j=0;j<i;j++)s+=i*j;return s;}' | gcc -O2 -S -o /dev/null -x c -
    git -C "$1" log --stat -p 2>/dev/null | head -c 30000000 | xz -1 >/dev/null
    /usr/bin/python3 -c '
import json,random
d=[{"a":random.random(),"b":[str(i) for i in range(20)]} for _ in range(2000)]
json.loads(json.dumps(d))
def r(n): return 1 if n<2 else r(n-1)+r(n-2)
r(22)'
done; }
for i in $(seq $(nproc)); do one "$1" & done; wait
"""
RUNS = 5


def make(path):
    here = os.path.dirname(os.path.abspath(__file__))
    subprocess.run(["perf", "record", "-q", "-N", "-F", "4999", "-a", "-m", "8M", "--call-graph", "dwarf,8192", "-o", path + ".new",
                    "--", "bash", "-c", LOAD, "bash", os.path.join(here, "..", "..")], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.rename(path + ".new", path)


def cpu_seconds(*words):
    times = []
    for _ in range(RUNS):
        child = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        if status:
            raise SystemExit("%s: status %d" % (" ".join(words), status))
        times.append(usage.ru_utime + usage.ru_stime)
    return statistics.median(times)


def main():
    perfpipe, dwfl_unwind, work = sys.argv[1:4]
    os.makedirs(work, exist_ok=True)
    path = sys.argv[4] if len(sys.argv) > 4 else os.path.join(work, "unwind.data")
    if not os.path.exists(path):
        make(path)
    # A store of its own, made once: others may use the usual one meanwhile.
    convert = [perfpipe, "convert", "--symbol-cache", os.path.join(work, "symbols"), path, "-o", os.path.join(work, "unwind.pb.gz")]
    os.makedirs(os.path.join(work, "symbols"), exist_ok=True)
    subprocess.run(convert, check=True, stderr=subprocess.DEVNULL)
    print(subprocess.run([dwfl_unwind, path], check=True, capture_output=True, text=True).stdout.strip())
    ours = cpu_seconds(*convert)
    theirs = cpu_seconds("perf", "script", "--no-inline", "-i", path)
    print("%.0f MB: perfpipe convert (with inlined calls) %.3f s CPU, perf script --no-inline %.3f s: %.1f times less" %
          (os.path.getsize(path) / 1e6, ours, theirs, theirs / ours))


main()
