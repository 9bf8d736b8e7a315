# SPDX-License-Identifier: Apache-2.0
"""perfpipe record on pids, a cgroup, a command and the whole host: threads, forks, exec chains, names,
idle CPUs, conservation, CPUs that come and go."""
from support_live import *

there = folder()
try:
    need_sampling()
    need("gcc")
except Skip as why:
    print("skipped: %s" % why)
    sys.exit(77)

HZ = 499


def out(name):
    return os.path.join(there, name)


def expect(n, cpu_s, what, hz=HZ):
    """A sample stands for 1/hz of CPU time: the count may differ by edges, and by the interrupts and
    stolen time that the scheduler's books leave out while a clock runs on."""
    want = cpu_s * hz
    assert abs(n - want) <= 0.05 * want + 8, "%s: %d samples for %.3f s of CPU, expected %.0f" % (what, n, cpu_s, want)


# Threads that each burn the CPU time given after their own word; prints what each used.
THREADS_SOURCE = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static pthread_barrier_t start;
static double seconds;
struct worker { pthread_t thread; int number, tid; double used; };
static double cpu_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}
__attribute__((noinline)) static void spin(void)
{
	volatile long sink = 0;
	for (long i = 0; i < 200000; i++)
		sink += i;
	__asm__ volatile("");
}
static void *work(void *arg)
{
	struct worker *w = arg;
	char name[16];
	snprintf(name, sizeof name, "wrk %d", w->number);
	prctl(PR_SET_NAME, name);
	w->tid = syscall(SYS_gettid);
	pthread_barrier_wait(&start);
	double begin = cpu_s();
	while (cpu_s() - begin < seconds)
		spin();
	w->used = cpu_s() - begin;
	return NULL;
}
int main(int argc, char **argv)
{
	int early = atoi(argv[1]), late = atoi(argv[2]);
	seconds = atof(argv[3]);
	struct worker w[16] = {0};
	pthread_barrier_init(&start, NULL, early + late);
	for (int i = 0; i < early; i++) {
		w[i].number = i;
		pthread_create(&w[i].thread, NULL, work, &w[i]);
	}
	puts("ready");
	fflush(stdout);
	getchar();
	for (int i = early; i < early + late; i++) {
		w[i].number = i;
		pthread_create(&w[i].thread, NULL, work, &w[i]);
	}
	for (int i = 0; i < early + late; i++) {
		pthread_join(w[i].thread, NULL);
		printf("%d %f\n", w[i].tid, w[i].used);
	}
}
"""

# Forks children that burn the CPU time given, one by one or at once, then burns some itself.
FORKS_SOURCE = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static double cpu_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}
__attribute__((noinline)) static void burn(double seconds)
{
	volatile long sink = 0;
	for (double begin = cpu_s(); cpu_s() - begin < seconds;)
		for (long i = 0; i < 50000; i++)
			sink += i;
}
int main(int argc, char **argv)
{
	int n = atoi(argv[1]);
	double seconds = atof(argv[2]);
	puts("ready");
	fflush(stdout);
	getchar();
	for (int i = 0; i < n; i++) {
		int pid = fork();
		if (!pid) {
			if (fork() == 0) { /* a grandchild too */
				burn(seconds / 2);
				_exit(0);
			}
			burn(seconds / 2);
			wait(NULL);
			_exit(0);
		}
	}
	for (int i = 0; i < n; i++)
		wait(NULL);
	struct rusage u;
	getrusage(RUSAGE_CHILDREN, &u);
	printf("%f\n", u.ru_utime.tv_sec + u.ru_stime.tv_sec + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6);
}
"""


def test_threads_from_before_and_after_the_attach_weigh_the_same():  # FR-66
    program = compile_c(THREADS_SOURCE, out("threads"))
    target = Workload(program, "2", "1", "1.0")
    try:
        assert target.line() == "ready"
        recorder = Recorder("record", "-p", str(target.pid), "-F", str(HZ), "--labels", "comm,pid,tid,thread,process",
                            "-o", out("t.pb.gz")).ready()
        target.go()
        used = {int(line.split()[0]): float(line.split()[1]) for line in target.wait().splitlines()}
    except BaseException:
        target.kill()
        raise
    recorder.wait()  # ends with its target
    recording = Recording(out("t.pb.gz"))
    recording.check_conservation()
    assert len(used) == 3
    for number, (tid, seconds) in enumerate(sorted(used.items())):
        stacks = recording.of(tid=tid)
        expect(sum(v[0] for _, v, _ in stacks), seconds, "thread %d" % number)
        # The thread has its own name, the process keeps its own (FR-65).
        busy = [l for f, _, l in stacks if shown(f[0]) == "spin"]
        assert {l["thread"] for l in busy} == {"wrk %d" % number}, busy
        assert {l["process"] for l in busy} == {"threads"} and {l["pid"] for l in busy} == {target.pid}, busy


def test_children_of_an_attached_process_are_followed():
    program = compile_c(FORKS_SOURCE, out("forks"))
    other = burner()
    target = Workload(program, "4", "0.5")
    try:
        assert target.line() == "ready"
        recorder = Recorder("record", "-p", str(target.pid), "-F", str(HZ), "-o", out("f.pb.gz")).ready()
        target.go()
        used = float(target.wait())
    finally:
        end(other)
        if target.process.poll() is None:
            target.kill()
    recorder.wait()
    recording = Recording(out("f.pb.gz"))
    recording.check_conservation()
    expect(recording.count(lambda _, l: l["pid"] != target.pid), used, "children")
    assert recording.values_of("comm") == {"forks"}, recording.values_of("comm")
    children = [pid for pid in recording.values_of("pid") if pid != target.pid]
    assert len(children) == 8, children
    weights = [sum(v[0] for _, v, _ in recording.of(pid=pid)) for pid in children]
    burnt = [sum(v[0] for f, v, _ in recording.of(pid=pid) if "burn" in [x.name for x in f]) for pid in children]
    assert min(burnt) > 0.8 * max(burnt), (burnt, weights, recording.flat())


def test_only_the_cgroup_and_what_lies_below_is_sampled():
    need_root()
    roots = [path for path, kind in ((line.split()[1], line.split()) for line in open("/proc/mounts"))
             if kind[2] == "cgroup2" or (kind[2] == "cgroup" and "perf_event" in kind[3].split(","))]
    if not roots:
        raise Skip("no cgroup hierarchy that counts perf events is mounted")
    name = "perfpipe-e2e-%d" % os.getpid()
    top = os.path.join(roots[0], name)
    program = compile_c(FORKS_SOURCE, out("grouped"))
    targets = []
    try:
        try:
            os.makedirs(os.path.join(top, "below"))
        except OSError as why:
            raise Skip("cgroups cannot be made: %s" % why)

        def join(group):
            if group:
                with open(os.path.join(group, "cgroup.procs"), "w") as f:
                    f.write("0")

        def start(group):
            targets.append(Workload(program, "1", "0.8", preexec_fn=lambda: join(group)))
            assert targets[-1].line() == "ready"

        for group in (top, os.path.join(top, "below"), None):
            start(group)
        recorder = Recorder("record", "-G", name, "-F", str(HZ), "--labels", "comm,pid,cgroup", "-o", out("g.pb.gz"),
                            "--processes", out("g.jsonl")).ready()
        subprocess.run(["/bin/true"])
        subprocess.run(["/bin/echo", "of the group"], stdout=subprocess.DEVNULL, preexec_fn=lambda: join(top))
        for target in targets:
            target.go()
        used = [float(target.wait()) for target in targets]
        recorder.end()
    finally:
        for target in targets:
            if target.process.poll() is None:
                target.kill()
        for path in (os.path.join(top, "below"), top):
            if os.path.isdir(path):
                wait_until(lambda: not open(os.path.join(path, "cgroup.procs")).read(), "an empty group", 10)
                os.rmdir(path)
    assert recorder.process.returncode == 0, recorder.messages
    recording = Recording(out("g.pb.gz"))
    recording.check_conservation()
    children = recording.count(lambda _, l: l["pid"] not in [t.pid for t in targets])
    expect(children, used[0] + used[1], "the group")
    assert targets[2].pid not in recording.values_of("pid")
    groups = recording.values_of("cgroup")
    assert groups and all(("/" + name) in g for g in groups), groups
    programs = [json.loads(line) for line in open(out("g.jsonl"))]
    assert [p["comm"] for p in programs] == ["echo"], programs
    # Without the tracepoint argv is read from /proc, if that is in time.
    has_tracepoint = os.path.exists("/sys/kernel/tracing/events/sched")
    assert programs[0]["argv"] == ["/bin/echo", "of the group"] or (
        not has_tracepoint and programs[0]["source"] == "none"), programs
    below = recording.count(lambda _, l: l.get("cgroup", "").endswith("/below") and l["pid"] not in [t.pid for t in targets])
    expect(below, used[1], "the group below")


def end_all(*processes):
    for process in processes:
        process.kill()
        process.wait()


def record_inside(*unshare):
    """What a recorder in a PID namespace of its own says and gets of the host while a program burns outside."""
    need_root()
    if subprocess.run(["unshare", *unshare, "true"], stderr=subprocess.DEVNULL).returncode:
        raise Skip("no PID namespaces here")
    outside = [subprocess.Popen([compile_c(BURN_SOURCE, out("outside")), "20000"])]
    # New ones too: their names must not go to the others.
    outside.append(subprocess.Popen(["sh", "-c", "while :; do /bin/true; done"]))
    try:
        done = run(*unshare, "sh", "-c", '"$@" & wait $!', "sh", binary, "record", "-a", "-F", str(HZ), "-d", "1",
                   "--labels", "comm,pid", "--processes", out("ns.jsonl"), "-o", out("ns.pb.gz"), program="unshare", check=0)
    finally:
        end_all(*outside)
    recording = Recording(out("ns.pb.gz"))
    assert recording.count(lambda _, l: l["pid"] == 0) > HZ / 2, recording.flat()
    for frames, _, labels in recording.of(pid=0):
        assert labels["comm"] == "[outside]", labels
        assert not {f.name for f in frames} & BURN_NAMES, [f.name for f in frames]
    assert all(json.loads(line)["pid"] for line in open(out("ns.jsonl")))
    return done.stderr, recording


def test_inside_a_pid_namespace_outsiders_are_nobody():
    messages, _ = record_inside("-pf", "--mount-proc")
    assert messages.count("[W115]") == 1 and "pid 0" in messages, messages


def test_the_proc_of_another_pid_namespace_is_not_read():
    messages, recording = record_inside("-pf")
    assert messages.count("[W115]") == 2 and "/proc is of another PID namespace" in messages, messages
    # The pids of the inside are small, and those of the first processes outside.
    comms = {comm for comm in recording.values_of("comm") if not re.fullmatch(r":\d+", comm)}
    assert comms <= {"[outside]", "sh", "perfpipe", "convert"}, comms


def test_a_command_s_threads_forks_and_exec_chains_have_their_names():
    compile_c(BURN_SOURCE, out("burnt"))
    threads, forks = compile_c(THREADS_SOURCE, out("threads")), compile_c(FORKS_SOURCE, out("forks"))
    script = "echo go | %s 2 1 0.2; echo go | %s 2 0.2; exec env X=1 sh -c 'exec %s 1200'" % (threads, forks, out("burnt"))
    done = run("record", "-F", str(HZ), "--labels", "comm,pid,process", "--processes", out("p.jsonl"), "-o", out("c.pb.gz"),
               "--", "sh", "-c", script, check=0)
    recording = Recording(out("c.pb.gz"))
    recording.check_conservation()
    comms = recording.values_of("comm")
    # "threads" itself and env may be too short for a sample.
    assert comms - {"sh", "env", "perfpipe", "threads"} == {"burnt", "forks", "wrk 0", "wrk 1", "wrk 2"}, comms
    # One pid was sh, env, sh and burnt in turn; each sample has the name of its time.
    [pid] = {l["pid"] for _, _, l in recording.stacks if l["comm"] == "burnt"}
    for frames, _, labels in recording.of(pid=pid):
        if labels["comm"] == "burnt":
            assert not {f.mapping for f in frames} & {"/usr/bin/dash", "/bin/sh"}, [f.mapping for f in frames]
        else:
            assert not {f.name for f in frames} & BURN_NAMES, labels
    assert recording.names_in("burnt", recording.of(comm="burnt")) >= BURN_NAMES
    chain = [(p["comm"], p["argv"]) for p in map(json.loads, open(out("p.jsonl"))) if p["pid"] == pid]
    assert [comm for comm, _ in chain] == ["sh", "env", "sh", "burnt"], (chain, done.stderr)
    known = [argv for _, argv in chain if argv]
    assert all(argv in (["sh", "-c", script], ["env", "X=1", "sh", "-c", "exec %s 1200" % out("burnt")],
                        ["sh", "-c", "exec %s 1200" % out("burnt")], [out("burnt"), "1200"]) for argv in known), known


SHORT_SOURCE = r"""
#include <time.h>
static long ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_nsec + t.tv_sec * 1000000000L;
}
int main(void)
{
	while (ns() < 3500000)
		;
	return 0;
}
"""


def test_children_that_live_for_less_than_a_period_count_too():
    """At 99 Hz a period is 10 ms; 400 children of 3.5 ms are 1.4 s of CPU."""
    short = compile_c(SHORT_SOURCE, out("short"))
    loop = ["sh", "-c", "i=0; while [ $i -lt 400 ]; do %s; i=$((i+1)); done" % short]
    run("record", "-o", out("short.pb.gz"), "--labels", "comm", "--", *loop, check=0)
    target = subprocess.Popen(["sh", "-c", "sleep 0.5; " + loop[2]], start_new_session=True)
    run("record", "-p", str(target.pid), "-o", out("attached.pb.gz"), "--labels", "comm", check=0)
    target.wait()
    for name in ("short.pb.gz", "attached.pb.gz"):
        profile = Profile(out(name))
        cpu = profile.column("cpu")
        seconds = sum(values[cpu] for _, values, labels in profile.samples if labels["comm"] == "short") / 1e9
        assert 1.0 < seconds < 2.2, (name, seconds)


def test_cpu_seconds_are_those_of_the_kernel():
    program = compile_c(FORKS_SOURCE, out("forks"))
    target = Workload(program, "3", "0.9")
    try:
        assert target.line() == "ready"
        recorder = Recorder("record", "-p", str(target.pid), "-o", out("s.pb.gz"), "-F", "997").ready()
        target.go()
        used = float(target.wait())
    except BaseException:
        target.kill()
        raise
    recorder.wait()
    recording = Recording(out("s.pb.gz"))
    column = [kind for kind, _ in recording.types].index("cpu")
    seconds = sum(v[column] for _, v, l in recording.stacks if l["pid"] != target.pid) / 1e9
    assert abs(seconds / used - 1) < 0.05, (seconds, used)


def test_idle_cpus_give_no_samples():
    def busy_s():
        word = open("/proc/stat").readline().split()[1:]
        ticks = [int(w) for w in word]
        return (sum(ticks[:8]) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")
    before, started = busy_s(), time.monotonic()
    run("record", "-a", "-F", str(HZ), "-d", "2", "-o", out("a.pb.gz"), check=0)
    seconds, busy = time.monotonic() - started, busy_s() - before
    recording = Recording(out("a.pb.gz"))
    taken = recording.check_conservation()
    assert 0 not in recording.values_of("pid"), recording.of(pid=0)[:2]
    assert not [c for c in recording.values_of("comm") if c.startswith("swapper")]
    # Never more than the host was busy while the recorder lived, by the kernel's own books.
    assert taken / HZ <= busy * 1.1 + 0.2, (taken / HZ, busy, seconds)


def test_the_whole_host_is_all_of_it():
    programs = [compile_c(FORKS_SOURCE, out(name)) for name in ("hosta", "hostb")]
    targets = [Workload(program, "2", "0.5") for program in programs]
    try:
        for target in targets:
            assert target.line() == "ready"
        recorder = Recorder("record", "-a", "-F", str(HZ), "-o", out("h.pb.gz")).ready()
        for target in targets:
            target.go()
        used = [float(target.wait()) for target in targets]
        recorder.end()
    except BaseException:
        for target in targets:
            target.kill()
        raise
    recording = Recording(out("h.pb.gz"))
    recording.check_conservation()
    for target, name, seconds in zip(targets, ("hosta", "hostb"), used):
        # On a CPU's clock a tick goes to who runs then: many short slices make it a lottery, so the bound is wider.
        n = recording.count(lambda _, l: l["comm"] == name and l["pid"] != target.pid)
        assert abs(n - seconds * HZ) < 6 * (seconds * HZ) ** 0.5 + 8, (name, n, seconds * HZ)
        assert len({l["pid"] for _, _, l in recording.of(comm=name)} - {target.pid}) == 4


def test_taken_is_what_perf_finds_in_the_file():
    perf = find_perf()
    run("record", "-F", "999", "-o", out("x.data"), "--", *burn_command(200000), check=0)
    script = subprocess.run([perf, "script", "-i", out("x.data"), "-F", "pid,event"], capture_output=True, text=True)
    n_perf = len([line for line in script.stdout.splitlines() if line.strip()])
    run("convert", out("x.data"), "-o", out("x.pb.gz"), check=0)
    recording = Recording(out("x.pb.gz"))
    assert recording.check_conservation() == n_perf > 50
    told = json.loads(run("inspect", out("x.data"), "--format", "json", check=0).stdout)
    assert told["samples_total"] == n_perf, (told["samples_total"], n_perf)


def test_what_a_tiny_ring_loses_is_stated():
    program = compile_c(FORKS_SOURCE, out("forks"))
    target = Workload(program, "4", "0.6")
    try:
        assert target.line() == "ready"
        recorder = Recorder("record", "-a", "-m", "1", "-F", "20000", "-o", out("l.pb.gz")).ready()
        # While the recorder is held up the rings run full.
        os.kill(recorder.process.pid, signal.SIGSTOP)
        target.go()
        target.wait()
        os.kill(recorder.process.pid, signal.SIGCONT)
        recorder.end()
    except BaseException:
        recorder.process.kill()
        target.kill()
        raise
    assert recorder.process.returncode == 0, recorder.messages
    recording = Recording(out("l.pb.gz"))
    recording.check_conservation()
    lost = recording.comment("lost_events") + recording.comment("lost_samples")
    assert lost > 1000, (recording.comments, recorder.messages)
    assert "W606" in recorder.messages, recorder.messages
    if recording.comment("lost_samples"):
        # The kernel counts lost samples for itself: with what was read they are all that a clock of that rate gave.
        assert recording.count() + recording.comment("lost_samples") > 0.5 * 2.4 * 20000, recording.comments


def test_a_cpu_may_go_and_come_back():
    need_root()
    switch = "/sys/devices/system/cpu/cpu1/online"
    if not os.path.exists(switch) or open(switch).read().strip() != "1":
        raise Skip("there is no CPU 1 that could go offline")
    program = compile_c(FORKS_SOURCE, out("forks"))
    target = Workload(program, "2", "0.5")
    target2 = Workload(program, "2", "0.5")
    try:
        assert target.line() == "ready" and target2.line() == "ready"
        recorder = Recorder("record", "-a", "-F", str(HZ), "--labels", "comm,pid,cpu", "-o", out("o.pb.gz")).ready()
        try:
            try:
                with open(switch, "w") as f:
                    f.write("0")
            except OSError as why:
                recorder.end()
                raise Skip("CPU 1 does not go offline: %s" % why)
            target.go()
            used = float(target.wait())
        finally:
            with open(switch, "w") as f:
                f.write("1")
        wait_until(lambda: open(switch).read().strip() == "1", "CPU 1")
        time.sleep(1)  # the recorder may look for it in its own rhythm
        target2.go()
        target2.wait()
        recorder.end()
    finally:
        for t in (target, target2):
            if t.process.poll() is None:
                t.kill()
    assert recorder.process.returncode == 0, recorder.messages
    recording = Recording(out("o.pb.gz"))
    recording.check_conservation()
    n = recording.count(lambda _, l: l["comm"] == "forks")
    assert n > 0.8 * used * HZ, (n, used)
    back = {l.get("cpu") for _, _, l in recording.stacks if l["comm"] == "forks"}
    assert back == {0, 1}, (back, recorder.messages)


def test_endings():
    # -d, and a target that goes, end it without a signal; an interrupt writes what was taken.
    program = compile_c(FORKS_SOURCE, out("forks"))
    started = time.monotonic()
    run("record", "-p", str(os.getpid()), "-d", "0.3", "-o", out("d.pb.gz"), check=0)
    assert time.monotonic() - started < 20
    first, second = Workload(program, "1", "0.1"), Workload(program, "1", "0.1")
    try:
        assert first.line() == "ready" and second.line() == "ready"
        recorder = Recorder("record", "-p", "%d,%d" % (first.pid, second.pid), "-F", "999", "-o", out("e.pb.gz")).ready()
        first.go()
        first.wait()
        time.sleep(0.3)
        assert recorder.process.poll() is None, "it ended with the first of two"
        second.go()
        second.wait()
        recorder.wait()
    finally:
        for t in (first, second):
            if t.process.poll() is None:
                t.kill()
    assert recorder.process.returncode == 0 and "the target is gone" in recorder.messages, recorder.messages
    recording = Recording(out("e.pb.gz"))
    assert {l["comm"] for _, _, l in recording.stacks} == {"forks"} and len(recording.values_of("pid")) >= 4


main(globals())
