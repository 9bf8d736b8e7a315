# SPDX-License-Identifier: Apache-2.0
"""perfpipe record and perf record side by side on one run of a steady program: the shares of every
function and of every call path are the same by a two-proportion test at 99.9 %, and the same test
finds an error of two points that is planted.

Both recorders watch the same run. The program stays in one function for slices of random length
around 2 ms, several samples long, so what is left to chance is far below what two independent
samples of that size would show: a difference that the test finds has a cause."""
import math
from support_live import *

there = folder()
try:
    need_sampling()
    find_perf()
    need("gcc")
except Skip as why:
    print("skipped: %s" % why)
    sys.exit(77)

HZ = 3000
CPU_SECONDS = 5
Z = 3.2905  # two-sided, 99.9 %
SHARE_MIN = 0.01

# name of the leaf, its caller, weight in percent
LEAVES = [("w20", "left", 20), ("w16", "left", 16), ("w14", "right", 14), ("w12", "right", 12), ("w10", "deep", 10),
          ("w8", "deep", 8), ("w6", "left", 6), ("w5", "right", 5), ("w4", "deep", 4), ("w3", "left", 3), ("w2", "deep", 2)]


def source():
    """Threads that burn the asked CPU time each, drawing the next leaf by weight."""
    text = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#define WORK __attribute__((noinline, noclone)) static
static double cpu_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}
static double seconds;
static long rounds_per_ms;
#define SPIN volatile long sink = 0; for (long i = 0; i < n; i++) sink += i; __asm__ volatile("")
WORK void calibrate(long n) { SPIN; }
"""
    for name, _, _ in LEAVES:
        text += "WORK void %s(long n) { SPIN; }\n" % name
    for caller in ("left", "right", "deep"):
        text += "WORK void %s(int leaf, long n)\n{\n\tswitch (leaf) {\n" % caller
        for i, (name, of, _) in enumerate(LEAVES):
            if of == caller:
                text += "\tcase %d: %s(n); break;\n" % (i, name)
        text += "\t}\n\t__asm__ volatile(\"\");\n}\n"
    text += "WORK void middle(int leaf, long n) { deep(leaf, n); __asm__ volatile(\"\"); }\n"
    text += "WORK void slice(int leaf, long n)\n{\n\tswitch (leaf) {\n"
    for i, (_, of, _) in enumerate(LEAVES):
        text += "\tcase %d: %s(leaf, n); break;\n" % (i, "middle" if of == "deep" else of)
    text += "\t}\n\t__asm__ volatile(\"\");\n}\n"
    text += "static const int weight[] = {%s};\n" % ", ".join(str(w) for _, _, w in LEAVES)
    text += r"""
static void *work(void *arg)
{
	unsigned short seed[3] = {7, 9, (unsigned short)(long)arg};
	while (cpu_s() < seconds) {
		int at = erand48(seed) * 100, leaf = 0;
		while (at >= weight[leaf])
			at -= weight[leaf++];
		slice(leaf, rounds_per_ms * (1 + 2 * erand48(seed)));
	}
	return NULL;
}
int main(int argc, char **argv)
{
	int n_threads = atoi(argv[1]);
	seconds = atof(argv[2]) / n_threads;
	double before = cpu_s();
	calibrate(20000000);
	rounds_per_ms = 20000000 / ((cpu_s() - before) * 1000);
	puts("ready");
	fflush(stdout);
	getchar();
	pthread_t thread[8];
	for (long i = 0; i < n_threads; i++)
		pthread_create(&thread[i], NULL, work, (void *)i);
	for (long i = 0; i < n_threads; i++)
		pthread_join(thread[i], NULL);
}
"""
    return text


def by_key(stacks, key):
    """{key: samples} over [(names from the leaf, samples)]; key() gives the keys of one stack."""
    found = {}
    for names, n in stacks:
        for k in key(names):
            found[k] = found.get(k, 0) + n
    return found


def flat(names):
    return names[:1]


def cum(names):
    return set(names)


def path(names):
    """The calls from the thread's function down; what lies above it, perf may not name."""
    known = [n for n in names if n in KNOWN]
    return ["/".join(reversed(known))]


KNOWN = {"work", "slice", "middle", "left", "right", "deep"} | {name for name, _, _ in LEAVES}


def differences(ours, theirs, n_ours, n_theirs):
    """{key: z} of all with a share above the minimum that differ at 99.9 %."""
    found = {}
    for key in set(ours) | set(theirs):
        a, b = ours.get(key, 0), theirs.get(key, 0)
        if max(a / n_ours, b / n_theirs) <= SHARE_MIN:
            continue
        pooled = (a + b) / (n_ours + n_theirs)
        deviation = math.sqrt(pooled * (1 - pooled) * (1 / n_ours + 1 / n_theirs))
        z = (a / n_ours - b / n_theirs) / deviation if deviation else 0.0
        if abs(z) > Z:
            found[key] = round(z, 2)
    return found


def compare(n_threads):
    program = compile_c(source(), os.path.join(there, "steady"))
    data, profile = os.path.join(there, "steady.data"), os.path.join(there, "steady.pb.gz")
    target = Workload(program, str(n_threads), str(CPU_SECONDS))
    try:
        assert target.line() == "ready"
        perf = perf_record("-g", "-F", str(HZ), "-p", str(target.pid), "-o", data).ready()
        perfpipe = Recorder("record", "-F", str(HZ), "-p", str(target.pid), "-o", profile).ready()
        target.go()
        target.wait()
    except BaseException:
        target.kill()
        raise
    perfpipe.wait()
    perf.wait()
    recording = Recording(profile)
    recording.check_conservation()
    assert not recording.comment("lost_samples"), recording.comments
    theirs = [([name or "?" for name, _ in frames], 1) for _, _, frames in perf_stacks(data)]
    ours = [([f.name or "?" for f in frames], values[0]) for frames, values, _ in recording.stacks]
    # A stripped libc has names for one of the two alone (separate debug files, perf's own cache); the
    # program's functions have to be known to both.
    both = {name for names, _ in ours for name in names} & {name for names, _ in theirs for name in names} | KNOWN
    ours = [([name if name in both else "?" for name in names], n) for names, n in ours]
    theirs = [([name if name in both else "?" for name in names], n) for names, n in theirs]
    n_ours, n_theirs = sum(n for _, n in ours), len(theirs)
    print("  %d thread(s): perfpipe %d samples, perf %d" % (n_threads, n_ours, n_theirs))
    assert n_ours >= 10000 and n_theirs >= 10000, (n_ours, n_theirs)
    # Both stand for the same CPU seconds at the same rate.
    assert abs(n_ours / n_theirs - 1) < 0.02, (n_ours, n_theirs)
    for what, key in (("flat", flat), ("cum", cum), ("path", path)):
        a, b = by_key(ours, key), by_key(theirs, key)
        found = differences(a, b, n_ours, n_theirs)
        assert not found, (what, {k: (z, a.get(k, 0) / n_ours, b.get(k, 0) / n_theirs) for k, z in found.items()})
    a, b = by_key(ours, flat), by_key(theirs, flat)
    for name, _, _ in LEAVES:  # a planted error is found, whichever function has it and whichever way
        assert a.get(name, 0) > 0 and b.get(name, 0) > 0, name
        for points in (0.02, -0.02) if a[name] / n_ours > 0.021 else (0.02,):
            wrong = dict(a)
            wrong[name] = a[name] + round(points * n_ours)
            assert name in differences(wrong, b, n_ours, n_theirs), (name, points, a[name] / n_ours)
    shares = [a[name] / n_ours for name, _, _ in LEAVES]
    assert sum(shares) > 0.97, shares
    # The paths are the program's: the leaf under its caller under slice under work.
    paths = by_key(ours, path)
    whole = sum(paths.get("work/slice/%s/%s" % ("middle/deep" if of == "deep" else of, name), 0) for name, of, _ in LEAVES)
    assert whole > 0.97 * n_ours, sorted(paths.items(), key=lambda p: -p[1])[:15]


def test_one_thread():
    compare(1)


def test_two_threads():
    compare(2)


main(globals())
