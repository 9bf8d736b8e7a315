# SPDX-License-Identifier: Apache-2.0
"""Names and places of live recordings, each case one that other tools got wrong: linkers, split and
replaced mappings, deleted, rebuilt and short-lived binaries, hidden kernel addresses, pids used again."""
from support_live import *

there = folder()
try:
    need_sampling()
    need("gcc", "nm", "readelf")
except Skip as why:
    print("skipped: %s" % why)
    sys.exit(77)

HZ = "1999"


def out(name):
    return os.path.join(there, name)


def fresh(name):
    path = out(name)
    os.makedirs(path, exist_ok=True)
    return path


def check_named(recording, path, names, stacks=None, share=0.97):
    """Leaves in the file are the two hot functions under mid under main; each address lies in its
    function as nm has it, and the mapping is the file's executable segment."""
    file = os.path.basename(path)
    functions = {name: (start, end) for start, end, name in nm(path)}
    offset, vaddr, size = exec_segment(path)
    leaves = good = 0
    for frames, values, _ in recording.stacks if stacks is None else stacks:
        for frame in frames:
            if os.path.basename(frame.mapping.replace(" (deleted)", "")) != file or frame.name is None:
                continue
            # A caller's address is a return address: one past its call.
            if frame.name in functions:
                start, end = functions[frame.name]
                assert start <= frame.address <= end, (frame.name, hex(frame.address), hex(start), hex(end))
        own = [f.name for f in frames if os.path.basename(f.mapping.replace(" (deleted)", "")) == file]
        if own and os.path.basename(frames[0].mapping.replace(" (deleted)", "")) == file:
            leaves += values[0]
            good += values[0] if own[:3] in [[hot, mid, "main"] for hot in names if hot.startswith("hot")
                                             for mid in names if mid.startswith("mid")] else 0
    assert leaves > 30, (file, leaves)
    assert good >= share * leaves, (file, good, leaves, recording.flat())
    for mapping in recording.mappings:
        if os.path.basename(recording.text(mapping.get(5, 0))) == file:
            assert (mapping.get(2, 0), mapping.get(4, 0)) == (vaddr, offset), (file, mapping, offset, vaddr)
            assert mapping.get(3, 0) - vaddr >= size, (file, mapping, size)
            assert recording.text(mapping.get(6, 0)) == build_id(path), (file, mapping)


def pprof_flat(profile, binary_path):
    """{function: samples} as go tool pprof names them by itself, given files to look at."""
    words, env = find_pprof()
    env = dict(env, PPROF_BINARY_PATH=binary_path)
    done = subprocess.run([*words, "-top", "-symbolize=force:local", "-nodecount=100000", "-sample_index=samples",
                           profile], capture_output=True, text=True, env=env, timeout=300)
    assert done.returncode == 0, done.stderr
    found = {}
    for line in done.stdout.splitlines():
        row = re.match(r"\s*(\d+)\s+[\d.]+%\s+[\d.]+%\s+\d+\s+[\d.]+%\s+(\S+)", line)
        if row:
            found[row.group(2)] = int(row.group(1))
    return found


BUILDS = [("bfd-pie", "gcc", ["-pie", "-fuse-ld=bfd"]), ("bfd-exec", "gcc", ["-no-pie", "-fuse-ld=bfd"]),
          ("gold-pie", "gcc", ["-pie", "-fuse-ld=gold"]), ("gold-exec", "gcc", ["-no-pie", "-fuse-ld=gold"]),
          ("lld-pie", "clang-14", ["-pie", "-fPIE", "-fuse-ld=lld"]), ("lld-exec", "clang-14", ["-no-pie", "-fuse-ld=lld"])]


def build_all(*more):
    """The builds whose compiler and linker are here, and what is not."""
    built, missing = {}, []
    for name, compiler, flags in BUILDS:
        linker = flags[-1].rpartition("=")[2]
        if not shutil.which(compiler) or not any(shutil.which(l) for l in ("ld." + linker, "ld.%s-14" % linker)):
            missing.append(name)
            continue
        # Functions off the first page, so that a wrong offset meets another function or none.
        built[name] = compile_c(BURN_SOURCE, out(name), "-g", "-Wl,--build-id", *flags, *more, compiler=compiler)
    if missing:
        print("  not built, as compiler or linker is missing: %s" % ", ".join(missing))
    return built


def run_builds(built):
    return "; ".join("%s 400" % path for path in built.values())


def test_each_linker_s_layout_is_understood():  # FR-01, FR-06, FR-08
    built = build_all()
    run("record", "-F", HZ, "-o", out("linkers.data"), "--", "sh", "-c", run_builds(built), check=0)
    run("convert", out("linkers.data"), "-o", out("linkers.pb.gz"), check=0)
    run("convert", out("linkers.data"), "--no-symbols", "-o", out("bare.pb.gz"), check=0)
    recording, bare = Recording(out("linkers.pb.gz")), Recording(out("bare.pb.gz"))
    recording.check_conservation()
    for name, path in built.items():
        check_named(recording, path, BURN_NAMES)
        assert bare.names_in(name) == {None}
    # What has no names yet leads everybody else to the same functions.
    theirs, ours = pprof_flat(out("bare.pb.gz"), "/nonexistent"), recording.flat()
    for name in ("hot_a", "hot_b"):
        assert theirs.get(name) == ours[name] > 100, (name, theirs, ours)
    need("eu-addr2line")
    for name, path in built.items():
        addresses = {f.address: f.name for frames, _, _ in recording.stacks for f in frames[:1]
                     if os.path.basename(f.mapping) == name and f.name}
        told = subprocess.run(["eu-addr2line", "-f", "-e", path, *map(hex, addresses)], capture_output=True, text=True).stdout
        assert told.splitlines()[::2] == list(addresses.values()), (name, told)


def test_perf_s_recordings_of_each_linker_too():  # FR-01, FR-06
    built = build_all()
    perf_recorded(out("perf.data"), "-F", HZ, "--", "sh", "-c", run_builds(built))
    run("convert", out("perf.data"), "-o", out("perf.pb.gz"), check=0)
    recording = Recording(out("perf.pb.gz"))
    for path in built.values():
        check_named(recording, path, BURN_NAMES)
    n = sum(1 for _, _, frames in perf_stacks(out("perf.data")))
    assert recording.check_conservation() == n, (recording.comments, n)


def test_debug_files_alone_name_a_profile_later():  # FR-07
    need("objcopy", "eu-addr2line")
    built = build_all()
    run("record", "-F", HZ, "--no-symbols", "-o", out("later.pb.gz"), "--", "sh", "-c", run_builds(built), check=0)
    tree = fresh("symbols")
    kept = {}
    for name, path in built.items():
        ident = build_id(path)
        kept[name] = os.path.join(tree, ident[:2], ident[2:] + ".debug")
        os.makedirs(os.path.dirname(kept[name]), exist_ok=True)
        subprocess.run(["objcopy", "--only-keep-debug", path, kept[name]], check=True)
        os.unlink(path)
    recording = Recording(out("later.pb.gz"))
    for name, debug in kept.items():
        leaves = {f.address for frames, _, _ in recording.stacks for f in frames[:1] if os.path.basename(f.mapping) == name}
        assert leaves, name
        told = subprocess.run(["eu-addr2line", "-f", "-e", debug, *map(hex, leaves)], capture_output=True, text=True).stdout
        assert set(told.splitlines()[::2]) <= BURN_NAMES, (name, told)


SPLIT_SOURCE = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#define PAGE(name) __attribute__((noinline, aligned(4096))) static void name(long n) \
	{ volatile long sink = 0; for (long i = 0; i < n; i++) sink += i; __asm__ volatile(""); }
PAGE(first) PAGE(second) PAGE(third)
__attribute__((aligned(4096))) int main(int argc, char **argv)
{
	if (mprotect((void *)second, 4096, PROT_READ | PROT_WRITE | PROT_EXEC))
		return 1;
	puts("ready");
	fflush(stdout);
	if (argc > 1)
		getchar();
	for (int i = 0; i < 200; i++) {
		first(300000);
		second(300000);
		third(300000);
	}
	return 0;
}
"""


def check_split(recording, path, source):
    flat = recording.flat()
    shares = [flat.get(name, 0) for name in ("first", "second", "third")]
    assert min(shares) > 0.2 * sum(shares) > 20, (source, flat)
    mappings = [m for m in recording.mappings if os.path.basename(recording.text(m.get(5, 0))) == os.path.basename(path)]
    assert len(mappings) == 1, (source, mappings)
    assert recording.text(mappings[0].get(6, 0)) == build_id(path), (source, mappings)


def test_a_segment_in_pieces_is_one_place():  # FR-02
    path = compile_c(SPLIT_SOURCE, out("split"), "-Wl,--build-id")
    run("record", "-F", HZ, "-o", out("split.pb.gz"), "--", path, check=0)
    check_split(Recording(out("split.pb.gz")), path, "records")
    target = Workload(path, "wait")
    try:
        assert target.line() == "ready"
        recorder = Recorder("record", "-F", HZ, "-p", str(target.pid), "-o", out("split2.pb.gz")).ready()
        target.go()
        target.wait()
    except BaseException:
        target.kill()
        raise
    recorder.wait()
    check_split(Recording(out("split2.pb.gz")), path, "/proc/PID/maps")


PLUGIN_SOURCE = r"""
__attribute__((noinline)) void hot_in_%s(long n) { volatile long sink = 0; for (long i = 0; i < n; i++) sink += i; __asm__ volatile(""); }
void plugin(long n) { for (int i = 0; i < 100; i++) hot_in_%s(n); __asm__ volatile(""); }
"""
LOADER_SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <time.h>
static double cpu_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}
int main(int argc, char **argv)
{
	double used[2] = {0};
	for (int i = 0; i < 8; i++) {
		void *library = dlopen(argv[1 + i % 2], RTLD_NOW);
		Dl_info info;
		void (*plugin)(long) = (void (*)(long))dlsym(library, "plugin");
		dladdr((void *)plugin, &info);
		double begin = cpu_s();
		plugin(i % 2 ? 200000 : 400000);
		used[i % 2] += cpu_s() - begin;
		printf("%p\n", info.dli_fbase);
		dlclose(library);
	}
	printf("%f %f\n", used[0], used[1]);
}
"""


def test_libraries_that_follow_each_other_at_one_address():  # FR-04
    libraries = [compile_c(PLUGIN_SOURCE % (x, x), out("lib%s.so" % x), "-shared", "-fPIC") for x in ("a", "b")]
    loader = compile_c(LOADER_SOURCE, out("loader"), "-ldl")
    data = out("dl.data")
    perf_recorded(data, "-F", HZ, "--", loader, *libraries)
    run("convert", data, "-o", out("dl-perf.pb.gz"), check=0)
    done = run("record", "-F", HZ, "-o", out("dl.pb.gz"), "--", loader, *libraries, check=0)
    lines = done.stdout.decode().split()
    if len(set(lines[:8])) > 1:
        print("  the libraries did not load at one address: %s" % lines[:8])
    used_a, used_b = float(lines[8]), float(lines[9])
    for profile in ("dl.pb.gz", "dl-perf.pb.gz"):
        recording = Recording(out(profile))
        a, b = (recording.names_in("lib%s.so" % x) - {None} for x in ("a", "b"))
        assert "hot_in_a" in a and "hot_in_b" in b and not a & {"hot_in_b"} and not b & {"hot_in_a"}, (profile, a, b)
        flat = recording.flat()
        share = flat["hot_in_a"] / (flat["hot_in_a"] + flat["hot_in_b"])
        assert abs(share - used_a / (used_a + used_b)) < 0.07, (profile, share, used_a, used_b)


THREADED_SOURCE = BURN_SOURCE.replace("int main(", "static int work(").replace("#include <stdlib.h>", "#include <stdlib.h>\n"
    "#include <stdio.h>\n#include <pthread.h>\nstatic char *words[] = {\"x\", \"150\"};") + r"""
static pthread_barrier_t start;
static void *run(void *arg) { pthread_barrier_wait(&start); return (void *)(long)work(2, words); }
int main(void)
{
	pthread_t thread[3];
	pthread_barrier_init(&start, NULL, 4);
	for (int i = 0; i < 3; i++)
		pthread_create(&thread[i], NULL, run, NULL);
	puts("ready");
	fflush(stdout);
	getchar();
	pthread_barrier_wait(&start);
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
}
"""


def rewrite(source, target, change):
    """Copies a perf.data file with other records: change(type, pid, record) gives what stands in its place."""
    whole = open(source, "rb").read()
    data_at, data_size = struct.unpack_from("<QQ", whole, 40)
    records, at = [], data_at
    while at < data_at + data_size:
        kind, _, size = struct.unpack_from("<IHH", whole, at)
        records.append(change(kind, struct.unpack_from("<i", whole, at + 8)[0] if size >= 12 else 0, whole[at:at + size]))
        at += size
    data = b"".join(records)
    tail, shift = bytearray(whole[data_at + data_size:]), len(data) - data_size
    bits = int.from_bytes(whole[72:104], "little")
    for i in range(bin(bits).count("1")):  # the table of feature sections begins the tail
        offset, size = struct.unpack_from("<QQ", tail, 16 * i)
        struct.pack_into("<QQ", tail, 16 * i, offset + shift, size)
    head = bytearray(whole[:data_at])
    struct.pack_into("<QQ", head, 40, data_at, len(data))
    with open(target, "wb") as f:
        f.write(bytes(head) + data + bytes(tail))


def sample_set(path):
    """What a profile says, without its comments and ids."""
    return sorted((repr(([(f.name, f.address, f.mapping) for f in frames], values, sorted(labels.items())))
                   for frames, values, labels in Recording(path).stacks))


def test_mappings_told_for_each_thread_count_once():  # FR-10
    path = compile_c(THREADED_SOURCE, out("threaded"), "-Wl,--build-id")
    target = Workload(path)
    try:
        assert target.line() == "ready"
        perf = perf_record("-g", "-F", HZ, "-p", str(target.pid), "-o", out("mt.data")).ready()
        recorder = Recorder("record", "-F", HZ, "-p", str(target.pid), "-o", out("mt.pb.gz")).ready()
        target.go()
        target.wait()
    except BaseException:
        target.kill()
        raise
    recorder.wait()
    perf.wait()
    if perf.process.returncode:
        raise Skip("perf record dies: " + perf.messages.strip()[-200:])
    run("convert", out("mt.data"), "-o", out("mt-perf.pb.gz"), check=0)
    rewrite(out("mt.data"), out("mt-twice.data"), lambda kind, _, record: record * 3 if kind in (1, 10) else record)
    run("convert", out("mt-twice.data"), "-o", out("mt-twice.pb.gz"), check=0)
    for profile in ("mt.pb.gz", "mt-perf.pb.gz"):
        recording = Recording(out(profile))
        check = [name for stack in recording.stacks for name in [shown(f) for f in stack[0][:1]]]
        assert {"hot_a", "hot_b"} <= set(check)
        places = [(m.get(5), m.get(6), m.get(2, 0)) for m in recording.mappings]
        assert len(set(places)) == len(places), (profile, places)
    assert sample_set(out("mt-perf.pb.gz")) == sample_set(out("mt-twice.pb.gz"))


def test_inodes_that_claim_to_be_build_ids_stay_inodes():
    # So the kernel writes them for perf while somebody else records with build-ids.
    path = compile_c(BURN_SOURCE, out("claimed"))
    perf_recorded(out("claimed.data"), "-F", HZ, "--", path, "300")
    def flag(kind, _, record):
        return record[:5] + bytes([record[5] | 0x40]) + record[6:] if kind == 10 else record

    rewrite(out("claimed.data"), out("claimed2.data"), flag)
    for name in ("claimed", "claimed2"):
        run("convert", out(name + ".data"), "-o", out(name + ".pb.gz"), check=0)
    assert {"hot_a", "hot_b"} <= set(Recording(out("claimed.pb.gz")).flat())
    assert sample_set(out("claimed.pb.gz")) == sample_set(out("claimed2.pb.gz"))


def test_a_binary_that_was_rebuilt_lends_no_names():  # FR-13
    for ident in ("sha1", "none"):
        name = "rebuilt-" + ident
        path = compile_c(BURN_SOURCE, out(name), "-Wl,--build-id=" + ident)
        perf_recorded(out("old-perf.data"), "-F", HZ, "--", path, "400")
        run("record", "-F", HZ, "-o", out("old-own.data"), "--", path, "400", check=0)
        for how in ("renamed", "in place"):
            other = compile_c(BURN2_SOURCE, out("other-" + ident), "-Wl,--build-id=" + ident)
            if how == "renamed":
                os.rename(other, path)
            else:  # the inode stays
                compile_c(BURN_SOURCE, path, "-Wl,--build-id=" + ident)
                perf_recorded(out("old-perf.data"), "-F", HZ, "--", path, "400")
                run("record", "-F", HZ, "-o", out("old-own.data"), "--", path, "400", check=0)
                time.sleep(0.05)  # a file's time is as coarse as the kernel's tick
                with open(path, "r+b") as f:
                    f.truncate(0)
                    f.write(open(other, "rb").read())
            for data in ("old-perf.data", "old-own.data"):
                if (ident, how) == ("none", "in place"):
                    continue  # inode and device are all that the record has, and they are the same
                done = run("convert", out(data), "-o", out("old.pb.gz"), check=0)
                recording = Recording(out("old.pb.gz"))
                recording.check_conservation()
                names = recording.names_in(name)
                assert not names & BURN2_NAMES, (ident, how, data, names, done.stderr)
                n = recording.count(lambda frames, _: os.path.basename(frames[0].mapping) == name)
                assert n > 50, (ident, how, data, recording.flat())
                if ident == "sha1":
                    assert build_id(path) not in {f.build_id for frames, _, _ in recording.stacks for f in frames}


def test_a_recording_from_another_root_asks_for_that_root():
    perf = find_perf()
    root = fresh("otherroot")
    path = out("in-both")
    compile_c(BURN2_SOURCE, path, "-Wl,--build-id")
    os.makedirs(root + os.path.dirname(path))
    compile_c(BURN_SOURCE, root + path, "-static", "-Wl,--build-id")
    recorded = subprocess.run([perf, "record", "-e", "cpu-clock", "-F", HZ, "-o", "-", "--", "chroot", root, path, "100"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout
    done = run("convert", "-i", "-", "-o", out("other.pb.gz"), input=recorded, check=0)
    assert "the file at that path is another one" in done.stderr and "with --sysroot" in done.stderr, done.stderr
    assert not (BURN_NAMES | BURN2_NAMES) & {name for name in Recording(out("other.pb.gz")).flat()}
    run("convert", "-i", "-", "--sysroot", root, "-o", out("other.pb.gz"), input=recorded, check=0)
    flat = Recording(out("other.pb.gz")).flat()
    assert {"hot_a", "hot_b"} <= set(flat), flat


def test_a_binary_replaced_while_it_runs_keeps_its_own_names():  # FR-13, FR-61
    path = compile_c(BURN_SOURCE, out("replaced"), "-Wl,--build-id")
    target = Workload("sh", "-c", "echo ready; read x; exec %s 600" % path)
    running = subprocess.Popen([path, "100000"])
    try:
        old_id = build_id(path)
        os.rename(compile_c(BURN2_SOURCE, out("replacing"), "-Wl,--build-id"), path)
        recorder = Recorder("record", "-F", HZ, "-p", "%d,%d" % (running.pid, target.pid), "--labels", "comm,pid",
                            "-o", out("r.pb.gz")).ready()
        assert target.line() == "ready"
        target.go()
        target.wait()
        recorder.end()
    finally:
        running.kill()
        running.wait()
        if target.process.poll() is None:
            target.kill()
    recording = Recording(out("r.pb.gz"))
    old, new = recording.of(pid=running.pid), recording.of(pid=target.pid)
    names = {f.name for frames, _, _ in old for f in frames if f.name}
    assert BURN_NAMES <= names and not names & BURN2_NAMES, names
    assert {f.build_id for frames, _, _ in old for f in frames if f.name == "hot_a"} == {old_id}
    names = {f.name for frames, _, _ in new for f in frames if f.name}
    assert BURN2_NAMES <= names and not names & BURN_NAMES, names


GONE_SOURCE = BURN_SOURCE.replace("int main(int argc, char **argv)\n{", "#include <unistd.h>\n"
                                  "int main(int argc, char **argv)\n{\n\tunlink(argv[0]);")


def test_binaries_that_delete_themselves_have_names():  # FR-61
    master = compile_c(GONE_SOURCE, out("master"))
    paths = [shutil.copy(master, out("gone%d" % i)) for i in range(4)]
    # Long enough for a recorder that looks at its rings ten times a second, on a host that is busy.
    script = "for p in %s; do $p 600; done" % " ".join(paths)
    run("record", "-a", "-F", HZ, "-o", out("gone.pb.gz"), "--", "sh", "-c", script, check=0)
    recording = Recording(out("gone.pb.gz"))
    recording.check_conservation()
    for i in range(4):
        stacks = recording.of(comm="gone%d" % i)
        names = {f.name for frames, _, _ in stacks for f in frames}
        assert "hot_a" in names, (i, names, [(f.mapping, f.name) for frames, _, _ in stacks[:3] for f in frames])


def test_binaries_on_a_file_system_that_goes_have_names():  # FR-61
    need_root()
    place = fresh("tmpfs")
    if subprocess.run(["mount", "-t", "tmpfs", "none", place], capture_output=True).returncode:
        raise Skip("tmpfs cannot be mounted")
    try:
        path = compile_c(BURN_SOURCE, os.path.join(place, "brief"))
        # 300 runs of some milliseconds, then nothing of it is left.
        script = "i=0; while [ $i -lt 300 ]; do %s 5; i=$((i+1)); done; rm %s; umount -l %s" % (path, path, place)
        run("record", "-F", HZ, "-o", out("brief.pb.gz"), "--", "sh", "-c", script, check=0, timeout=60)
    finally:
        while subprocess.run(["umount", "-l", place], capture_output=True).returncode == 0:
            pass
    recording = Recording(out("brief.pb.gz"))
    recording.check_conservation()
    stacks = recording.of(comm="brief")
    pids = {labels["pid"] for _, _, labels in stacks}
    assert len(pids) > 270, len(pids)
    # Counted over user time in the program itself.
    named = sum(v[0] for f, v, _ in stacks if f[0].name in BURN_NAMES)
    bare = sum(v[0] for f, v, _ in stacks if f[0].name is None and os.path.basename(f[0].mapping).startswith("brief"))
    assert named > 300 and bare == 0, (named, bare)


def test_lost_exits_change_nothing():  # FR-62
    path = compile_c(BURN_SOURCE, out("many"))
    script = "i=0; while [ $i -lt 300 ]; do %s 3; i=$((i+1)); done" % path
    perf_recorded(out("many.data"), "-F", HZ, "--", "sh", "-c", script)
    rewrite(out("many.data"), out("undead.data"), lambda kind, _, record: b"" if kind == 4 else record)
    for name in ("many", "undead"):
        run("convert", out(name + ".data"), "-o", out(name + ".pb.gz"), check=0)
    assert len(Recording(out("many.pb.gz")).values_of("pid")) > 250
    assert sample_set(out("many.pb.gz")) == sample_set(out("undead.pb.gz"))


# Runs its arguments in turn, each as a process with one and the same pid.
SAME_PID_SOURCE = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	pid_t wanted = atoi(argv[1]);
	for (int i = 2; i < argc; i++) {
		struct clone_args args = {.exit_signal = SIGCHLD, .set_tid = (uint64_t)&wanted, .set_tid_size = 1};
		long pid = syscall(SYS_clone3, &args, sizeof args);
		if (pid < 0) {
			printf("%s\n", strerror(errno));
			return 0;
		}
		if (pid == 0) {
			execl(argv[i], argv[i], "120", NULL);
			_exit(127);
		}
		waitpid(pid, NULL, 0);
	}
	puts("done");
}
"""


def test_a_pid_that_is_used_again_is_another_process():  # FR-64
    need_root()
    same, burn, burn2 = (compile_c(SAME_PID_SOURCE, out("same")), compile_c(BURN_SOURCE, out("burn")),
                         compile_c(BURN2_SOURCE, out("burn2")))
    pid = int(open("/proc/sys/kernel/pid_max").read()) - 17
    words = [same, str(pid)] + [burn, burn2] * 3
    done = run("record", "-a", "-F", HZ, "-o", out("again.pb.gz"), "--", *words, check=0)
    if b"done" not in done.stdout:
        raise Skip("a pid cannot be chosen: " + done.stdout.decode().strip())
    perf_recorded(out("again.data"), "-F", HZ, "--", *words)
    run("convert", out("again.data"), "-o", out("again-perf.pb.gz"), check=0)
    for profile in ("again.pb.gz", "again-perf.pb.gz"):
        recording = Recording(out(profile))
        for comm, own, foreign in (("burn", BURN_NAMES, BURN2_NAMES), ("burn2", BURN2_NAMES, BURN_NAMES)):
            names = {f.name for frames, _, _ in recording.of(pid=pid, comm=comm) for f in frames}
            assert own <= names and not names & foreign, (profile, comm, names)
            in_file = recording.names_in(comm, recording.of(pid=pid, comm=comm)) - {None}
            assert in_file <= {n for _, _, n in nm(out(comm))}, (profile, in_file)
        a, b = (sum(v[0] for _, v, _ in recording.of(pid=pid, comm=comm)) for comm in ("burn", "burn2"))
        assert a and b and 0.6 < a / b < 1.6, (profile, a, b)


RENAME_SOURCE = BURN_SOURCE.replace("int main(", "static int work(").replace("#include <stdlib.h>", "#include <stdlib.h>\n"
    "#include <pthread.h>\n#include <sys/prctl.h>\nstatic char *words[] = {\"x\", \"300\"};") + r"""
static void *run(void *arg) { prctl(PR_SET_NAME, "wrk one"); return (void *)(long)work(2, words); }
int main(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, run, NULL);
	work(2, words);
	pthread_join(thread, NULL);
}
"""


def test_exec_renames_the_process_and_prctl_only_the_thread():  # FR-65
    path = compile_c(RENAME_SOURCE, out("renamer"))
    command = ["sh", "-c", "exec " + path]
    run("record", "-F", HZ, "--labels", "comm,process,thread,pid,tid", "-o", out("n.pb.gz"), "--", *command, check=0)
    perf_recorded(out("n.data"), "-F", HZ, "--", *command)
    run("convert", out("n.data"), "--labels", "comm,process,thread,pid,tid", "-o", out("n-perf.pb.gz"), check=0)
    for profile in ("n.pb.gz", "n-perf.pb.gz"):
        recording = Recording(out(profile))
        busy = [(l, v[0]) for f, v, l in recording.stacks if f[0].name in BURN_NAMES]
        main = sum(n for l, n in busy if l["tid"] == l["pid"])
        worker = sum(n for l, n in busy if l["tid"] != l["pid"])
        assert min(main, worker) > 50, (profile, main, worker)
        for labels, _ in busy:
            assert labels["process"] == "renamer", (profile, labels)
            assert labels["thread"] == ("renamer" if labels["tid"] == labels["pid"] else "wrk one"), (profile, labels)


# Asks the kernel for work: zeroes copied to user space.
ZEROES = ["dd", "if=/dev/zero", "of=/dev/null", "bs=8k", "count=300000"]


def kernel_leaves(recording):
    return [(f[0], v[0]) for f, v, _ in recording.stacks if f[0].mapping.startswith("[kernel")]


def test_kernel_frames_have_their_names_and_one_mapping():  # FR-45
    names = {}
    for line in open("/proc/kallsyms"):
        word = line.split()
        names.setdefault(int(word[0], 16), set()).add(word[2])
    if set(names) == {0}:
        raise Skip("kernel.kptr_restrict hides the kernel's addresses")
    addresses = sorted(names)
    run("record", "-F", HZ, "-o", out("k.pb.gz"), "--", *ZEROES, check=0)
    perf_recorded(out("k.data"), "-F", HZ, "--", *ZEROES)
    run("convert", out("k.data"), "-o", out("k-perf.pb.gz"), check=0)
    import bisect
    for profile in ("k.pb.gz", "k-perf.pb.gz"):
        recording = Recording(out(profile))
        leaves = kernel_leaves(recording)
        n = sum(count for _, count in leaves)
        assert n > 100 and len({f.name for f, _ in leaves}) >= 3, (profile, recording.flat())
        for frame, _ in leaves:
            at = addresses[bisect.bisect_right(addresses, frame.address) - 1]
            # kallsyms may name one address several times.
            assert frame.name in names[at], (profile, frame.name, hex(frame.address), names[at])
        [kernel] = [m for m in recording.mappings if recording.text(m.get(5, 0)).startswith("[kernel")]
        assert recording.text(kernel.get(5)) == "[kernel.kallsyms]"
        assert kernel[2] <= min(f.address for f, _ in leaves) and max(f.address for f, _ in leaves) < kernel[3]
        if os.path.exists("/sys/kernel/notes"):
            assert recording.text(kernel.get(6, 0)) in open("/sys/kernel/notes", "rb").read().hex(), profile
        top = pprof_flat(out(profile), "/nonexistent")
        ours = {}
        for frame, count in leaves:
            ours[frame.name] = ours.get(frame.name, 0) + count
        name, count = max(ours.items(), key=lambda item: item[1])
        assert top.get(name) == count, (profile, name, count, top)


def test_hidden_kernel_addresses_are_one_honest_group():  # FR-44
    need_root()
    with setting("/proc/sys/kernel/kptr_restrict", 2):
        done = run("record", "-F", HZ, "-o", out("h.pb.gz"), "--", *ZEROES, check=0)
        run("record", "-F", HZ, "-o", out("h.data"), "--", *ZEROES, check=0)
        perf_recorded(out("h-perf.data"), "-F", HZ, "--", *ZEROES)
    assert "W103" in done.stderr and "kptr_restrict" in done.stderr, done.stderr
    hidden = Recording(out("h.pb.gz"))
    hidden.check_conservation()
    leaves = kernel_leaves(hidden)
    assert sum(n for _, n in leaves) > 100, hidden.flat()
    names = {f.name for f, _ in leaves}
    assert len(names) == 1, names
    # Names of later runs are none of these files' business, and zeroes were not kept as symbols.
    for data in ("h.data", "h-perf.data"):
        run("convert", out(data), "-o", out("h2.pb.gz"), check=0)
        Recording(out("h2.pb.gz")).check_conservation()
    run("record", "-F", HZ, "-o", out("shown.pb.gz"), "--", *ZEROES, check=0)
    assert len({f.name for f, _ in kernel_leaves(Recording(out("shown.pb.gz"))) if f.name}) >= 3


def test_kernel_threads_and_idle_are_told_apart():  # FR-48
    threads = {}
    for attempt in range(3):
        script = "dd if=/dev/zero of=%s bs=1M count=200 conv=fsync 2>/dev/null; rm %s; sync" % (out("disk"), out("disk"))
        run("record", "-a", "-F", "4999", "-o", out("kt.pb.gz"), "--", "sh", "-c", script, check=0)
        recording = Recording(out("kt.pb.gz"))
        for pid in os.listdir("/proc"):
            try:
                stat = open("/proc/%s/stat" % pid).read() if pid.isdigit() else ""
            except OSError:
                continue
            if stat and int(stat.rpartition(")")[2].split()[1]) == 2:
                threads[int(pid)] = stat[stat.index("(") + 1:stat.rindex(")")]
        sampled = [(f, l) for f, _, l in recording.stacks if l["pid"] in threads]
        if sampled:
            break
    else:
        raise Skip("no kernel thread ran")
    assert 0 not in recording.values_of("pid")
    for frames, labels in sampled:
        # A worker's name goes on with what it works on.
        assert threads[labels["pid"]].startswith(labels["comm"].split("-")[0].split("+")[0]), (labels, threads[labels["pid"]])
        assert all(f.mapping.startswith("[kernel") for f in frames), [f.mapping for f in frames]
    perf_recorded(out("idle.data"), "-a", "-F", "499", "--", "sleep", "0.7")
    run("convert", out("idle.data"), "-o", out("idle.pb.gz"), check=0)
    idle = Recording(out("idle.pb.gz"))
    n_perf = sum(1 for comm, tid, _ in perf_stacks(out("idle.data")) if tid == 0)
    assert idle.count(lambda _, l: l["pid"] == 0) == n_perf
    if n_perf:
        assert {l["comm"] for _, _, l in idle.of(pid=0)} == {"swapper"}


main(globals())
