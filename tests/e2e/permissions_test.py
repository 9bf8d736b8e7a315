# SPDX-License-Identifier: Apache-2.0
"""Limits and gates (what nobody may do at all is in unprivileged_test): ring memory, descriptors,
capabilities one by one, each said with its name."""
import ctypes, pwd, resource
from support_live import *

if os.getuid() != 0:
    print("skipped: only root can give rights away")
    sys.exit(77)
try:
    nobody = pwd.getpwnam("nobody")
    need_sampling()
except (KeyError, Skip) as why:
    print("skipped: %s" % why)
    sys.exit(77)

there = folder()
os.chmod(there, 0o777)
program = shutil.copy(binary, os.path.join(there, "perfpipe"))
os.chmod(program, 0o755)
PARANOID = int(open("/proc/sys/kernel/perf_event_paranoid").read())
libc = ctypes.CDLL(None, use_errno=True)


def out(name):
    return os.path.join(there, name)


def become_nobody():
    os.setgroups([])
    os.setgid(nobody.pw_gid)
    os.setuid(nobody.pw_uid)


def as_nobody(*words, limits=(), **how):
    """limits: (resource, soft, hard)"""
    def prepare():
        for kind, soft, hard in limits:
            resource.setrlimit(kind, (soft, hard))
        become_nobody()
    return run(*words, program=program, cwd=there, preexec_fn=prepare, **how)


def as_root(*words, limits=(), **how):
    def prepare():
        for kind, soft, hard in limits:
            resource.setrlimit(kind, (soft, hard))
    return run(*words, preexec_fn=prepare, **how)


def ring_bytes(messages):
    """KiB of each ring, as --verbose has it."""
    found = re.search(r"(\d+) rings of (\d+) KiB", messages)
    assert found, messages
    return int(found.group(2))


def n_lines(text, number):
    return len([line for line in text.splitlines() if "[%s]" % number in line])


def need_own_processes():
    if PARANOID > 2:
        raise Skip("perf_event_paranoid is %d: nobody may sample nothing" % PARANOID)


def test_rings_shrink_to_what_the_mlock_limit_allows():  # FR-116, FR-118
    need_own_processes()
    tight = [(resource.RLIMIT_MEMLOCK, 64 << 10, 64 << 10)]
    done = as_nobody("record", "-v", "-F", "499", "-m", "8192", "-o", out("m.pb.gz"), "--", *burn_command(200000),
                     limits=tight, check=0)
    kib = ring_bytes(done.stderr)
    assert kib < 8192 * 4, done.stderr
    assert n_lines(done.stderr, "W112") == 1, done.stderr
    [line] = [l for l in done.stderr.splitlines() if "[W112]" in l]
    assert "rings of %d KiB instead of 32768" % kib in line and "perf_event_mlock_kb" in line and "RLIMIT_MEMLOCK 64 KiB" in line
    Recording(out("m.pb.gz")).check_conservation()
    # Its own default must fit without any word.
    done = as_nobody("record", "-F", "499", "-o", out("m2.pb.gz"), "--", *burn_command(100000), limits=tight, check=0)
    assert Profile(out("m2.pb.gz")).total() > 0


def test_a_ring_beyond_the_largest_is_told():
    need_own_processes()
    done = as_nobody("record", "-m", "100G", "-o", out("m3.pb.gz"), "--", *burn_command(50000),
                     limits=[(resource.RLIMIT_MEMLOCK, 64 << 10, 64 << 10)], check=0)
    [line] = [l for l in done.stderr.splitlines() if "[W112]" in l]
    assert "instead of 104857600" in line, line


def test_a_warning_has_its_remedy_under_fix():
    need_own_processes()
    with setting("/proc/sys/kernel/kptr_restrict", 2):
        done = as_nobody("record", "-F", "900000", "-m", "8192", "--processes", out("w.json"), "-o", out("w.pb.gz"), "--",
                         "true", limits=[(resource.RLIMIT_MEMLOCK, 64 << 10, 64 << 10)], check=0)
    for line in done.stderr.splitlines():
        if line.startswith("  why:"):
            assert not re.search("sudo|sysctl|setcap|mount|ulimit", line), line
    assert "fix: sudo sysctl kernel.perf_event_max_sample_rate=900000" in done.stderr, done.stderr


def test_each_program_of_nobody_is_listed_once_with_its_name():
    need_own_processes()
    script = "for i in 1 2 3; do /bin/echo $i; done; sleep 0.2; i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"
    done = as_nobody("record", "-F", "999", "--labels", "comm,cmdline", "--processes", out("p.json"), "-o", out("n.pb.gz"),
                     "--", "sh", "-c", script, check=0)
    lines = [json.loads(line) for line in open(out("p.json"))]
    assert [line["comm"] for line in lines] == ["sh", "echo", "echo", "echo", "sleep"], lines
    # Those that live long enough have their words; of the others nothing is claimed.
    assert lines[0]["argv"] == ["sh", "-c", script] and lines[4]["argv"] == ["sleep", "0.2"], lines
    for i in 1, 2, 3:
        assert lines[i]["argv"] in ([], ["/bin/echo", str(i)]) and bool(lines[i]["argv"]) == (lines[i]["source"] == "proc"), lines
    missing = len([line for line in lines if line["source"] == "none"])
    assert ("arguments of %d programs are missing" % missing in done.stderr) == bool(missing), done.stderr
    recording = Recording(out("n.pb.gz"))
    words = "sh -c " + script
    assert recording.count(lambda _, l: l.get("cmdline") == words) > 0.9 * recording.count(), recording.values_of("cmdline")


def test_a_capability_of_a_user_namespace_is_not_taken_for_the_host_s():
    if PARANOID < 1:
        raise Skip("perf_event_paranoid is %d: everybody may" % PARANOID)
    if subprocess.run(["unshare", "-Ur", "true"], stderr=subprocess.DEVNULL).returncode:
        raise Skip("no user namespaces here")
    done = run("-Ur", binary, "record", "-a", "-d", "0.2", "-o", out("ns.pb.gz"), program="unshare")
    assert done.returncode == 77 and "user namespace" in done.stderr, done.stderr
    assert "security module" not in done.stderr, done.stderr


def test_a_missing_proc_is_named():
    script = 'umount -l /proc && exec "$@"'
    done = run("-m", "sh", "-c", script, "sh", binary, "record", "-a", "-d", "0.2", "-o", out("np.pb.gz"), program="unshare")
    if "unshare" in done.stderr or "umount" in done.stderr:
        raise Skip("no mount namespaces here")
    assert done.returncode == 69 and "/proc is not mounted" in done.stderr and "E116" in done.stderr, done.stderr


def test_a_cgroup_without_a_name_is_no_whole_host():
    done = run("record", "-G", "", "-d", "0.2", "-o", out("g.pb.gz"))
    assert done.returncode == 2 and "no cgroup was named" in done.stderr, done.stderr


def test_ring_memory_that_is_not_there_at_all_is_named():  # FR-118
    need_own_processes()
    with setting("/proc/sys/kernel/perf_event_mlock_kb", 0):
        done = as_nobody("record", "-o", out("z.pb.gz"), "--", "true", limits=[(resource.RLIMIT_MEMLOCK, 0, 0)])
    assert done.returncode not in (0, -6, -11), done
    assert "E106" in done.stderr and "perf_event_mlock_kb" in done.stderr, done.stderr
    assert not os.path.exists(out("z.pb.gz"))


def test_the_soft_descriptor_limit_is_raised():  # FR-119
    done = as_root("record", "-a", "-d", "0.3", "-e", "cpu-clock,page-faults,context-switches,cpu-migrations,minor-faults,major-faults",
                   "-o", out("d.pb.gz"), limits=[(resource.RLIMIT_NOFILE, 20, 4096)], check=0)
    assert Profile(out("d.pb.gz")).types, done.stderr


def test_too_few_descriptors_are_counted_and_named():  # FR-119
    done = as_root("record", "-a", "-d", "0.3", "-e", "cpu-clock,page-faults,context-switches,cpu-migrations,minor-faults,major-faults",
                   "-o", out("f.pb.gz"), limits=[(resource.RLIMIT_NOFILE, 12, 12)])
    assert done.returncode != 0, done
    first = done.stderr.splitlines()[0]
    assert "[E107" in first and re.search(r"\b12\b", done.stderr), done.stderr
    assert "ulimit -n" in done.stderr or "LimitNOFILE" in done.stderr, done.stderr
    assert not os.path.exists(out("f.pb.gz"))


MANY_THREADS_SOURCE = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static void *idle(void *arg) { pause(); return arg; }
__attribute__((noinline)) static void crunch_many(void)
{
	struct timespec t;
	volatile long sink = 0;
	do {
		for (long i = 0; i < 200000; i++)
			sink += i;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	} while (t.tv_sec < 30);
}
int main(int argc, char **argv)
{
	pthread_attr_t small;
	pthread_t thread;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	for (int i = 0; i < atoi(argv[1]); i++)
		if (pthread_create(&thread, &small, idle, NULL))
			return 3;
	puts("ready");
	fflush(stdout);
	if (fork() == 0)
		crunch_many();
	crunch_many();
	return argc;
}
"""


def test_a_process_of_more_threads_than_descriptors_is_sampled():  # FR-119
    program = compile_c(MANY_THREADS_SOURCE, out("many"), "-pthread")
    target = subprocess.Popen([program, "600"], stdout=subprocess.PIPE, start_new_session=True)
    other = burner()
    try:
        assert target.stdout.readline() == b"ready\n"
        done = as_root("record", "-p", str(target.pid), "-F", "499", "-d", "1", "--labels", "comm,pid", "-o", out("many.pb.gz"),
                       limits=[(resource.RLIMIT_NOFILE, 300, 300)], check=0)
        refused = run("record", "-p", str(target.pid), "-d", "1", "-o", out("many2.pb.gz"),
                      preexec_fn=lambda: (resource.setrlimit(resource.RLIMIT_NOFILE, (300, 300)), drop(CAP_SYS_ADMIN, CAP_PERFMON)))
    finally:
        os.killpg(target.pid, signal.SIGKILL)
        target.wait()
        target.stdout.close()
        end(other)
    assert "W107" not in done.stderr, done.stderr
    recording = Recording(out("many.pb.gz"))
    recording.check_conservation()
    assert recording.values_of("pid") == {target.pid}, recording.values_of("pid")
    assert recording.values_of("comm") == {"many"}, recording.values_of("comm")
    assert "crunch_many" in {f.name for frames, _, _ in recording.stacks for f in frames}
    assert recording.count() > 50, recording.count()
    if PARANOID >= 1:
        assert refused.returncode == 1 and "E107" in refused.stderr and "descriptors are needed" in refused.stderr, refused.stderr


def test_the_command_has_the_descriptor_limit_of_its_caller():
    look = ["sh", "-c", "ulimit -Sn"]
    done = as_root("record", "-o", out("l.pb.gz"), "--", *look, limits=[(resource.RLIMIT_NOFILE, 64, 4096)], check=0)
    assert done.stdout.strip() == b"64", done.stdout


def test_user_only_sampling_is_said_once_and_is_true():  # FR-117
    need_own_processes()
    if PARANOID < 2:
        raise Skip("perf_event_paranoid is %d: kernel frames are for everybody" % PARANOID)
    done = as_nobody("record", "-F", "999", "-o", out("u.pb.gz"), "--", "dd", "if=/dev/zero", "of=/dev/null", "bs=64k",
                     "count=100000", check=0)
    assert n_lines(done.stderr, "W109") == 1 and done.stderr.count("warning:") == 1, done.stderr
    assert "perf_event_paranoid" in done.stderr and "CAP_PERFMON" in done.stderr, done.stderr
    assert not [m for m in Profile(out("u.pb.gz")).mappings if "kernel" in m]
    # dd's time is the kernel's, so hardly anything is left: the profile must not claim it.
    done = as_nobody("record", "-F", "999", "--user-only", "-o", out("u.pb.gz"), "--", *burn_command(100000), check=0)
    assert "W109" not in done.stderr, done.stderr  # asked for


def drop(*numbers):
    """Takes capabilities out of what a program of root's gets."""
    PR_CAPBSET_DROP = 24
    for number in numbers:
        if libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0):
            raise OSError("prctl")


CAP_SYS_ADMIN, CAP_PERFMON, CAP_SYS_PTRACE, CAP_SYSLOG, CAP_IPC_LOCK = 21, 38, 19, 34, 14


def test_root_without_the_capability_is_told_which():  # FR-117
    if PARANOID < 1:
        raise Skip("perf_event_paranoid is %d: everybody may" % PARANOID)
    done = run("record", "-a", "-d", "0.3", "-o", out("r.pb.gz"), preexec_fn=lambda: drop(CAP_SYS_ADMIN, CAP_PERFMON))
    assert done.returncode == 77, done.stderr
    assert "[E101, exit 77]" in done.stderr.splitlines()[0], done.stderr
    assert "CAP_PERFMON" in done.stderr and "perf_event_paranoid" in done.stderr, done.stderr


def test_perfmon_alone_samples_the_whole_host():  # FR-117: the least privilege
    other = burner()
    try:
        done = run("record", "-a", "-F", "499", "-d", "1", "-o", out("p.pb.gz"), check=0,
                   preexec_fn=lambda: drop(CAP_SYS_ADMIN, CAP_SYS_PTRACE, CAP_SYSLOG, CAP_IPC_LOCK))
    finally:
        end(other)
    assert "E101" not in done.stderr and "W109" not in done.stderr, done.stderr
    recording = Recording(out("p.pb.gz"))
    recording.check_conservation()
    assert recording.count() > 200, done.stderr


# A seccomp filter as container runtimes have it: perf_event_open is refused with EPERM.
SECCOMP_SOURCE = r"""
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {sizeof code / sizeof *code, code};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		return 125;
	execv(argv[1], argv + 1);
	return 127;
}
"""


def test_a_seccomp_filter_is_told_from_missing_rights():  # FR-117
    jail = compile_c(SECCOMP_SOURCE, out("jail"))
    for words in (["-a", "-d", "0.3"], ["--", "true"]):
        at = words.index("--") if "--" in words else len(words)
        done = run(binary, "record", *words[:at], "-o", out("s.pb.gz"), *words[at:], program=jail)
        if done.returncode == 125:
            raise Skip("no seccomp here")
        assert done.returncode == 77, done.stderr
        assert "seccomp" in done.stderr and "E101" in done.stderr, done.stderr
    checks = {c["name"]: c for c in json.loads(run(binary, "doctor", "--json", program=jail).stdout)["checks"]}
    assert checks["sampling"]["status"] == "fail" and "seccomp" in checks["sampling"]["text"], checks["sampling"]


def test_root_with_few_capabilities_still_has_names():
    """As in containers that drop all but a few: the builder cannot change its user then."""
    need("setpriv")
    cache = os.path.join(folder(), "cache")
    run("record", "-F", "999", "-o", out("few.data"), "--", *burn_command(200000), check=0)
    done = run("--bounding-set", "-setuid,-setgid", "--inh-caps", "-all", binary, "convert", out("few.data"), "-o", out("few.pb.gz"),
               "--symbol-cache", cache, program="setpriv", check=0)
    assert "builder" not in done.stderr, done.stderr
    run("convert", out("few.data"), "-o", out("all.pb.gz"), "--no-symbol-cache", check=0)
    assert Profile(out("few.pb.gz")).names() == Profile(out("all.pb.gz")).names()


def test_a_limit_of_one_run_costs_no_names_in_the_next():
    cache = os.path.join(folder(), "cache")
    run("record", "-F", "999", "-o", out("limit.data"), "--", *burn_command(200000), check=0)
    words = ["convert", out("limit.data"), "-o", out("limit.pb.gz"), "--symbol-cache", cache]
    run(*words, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
    run(*words, check=0)
    run("convert", out("limit.data"), "-o", out("all.pb.gz"), "--no-symbol-cache", check=0)
    assert Profile(out("limit.pb.gz")).names() == Profile(out("all.pb.gz")).names()


def test_paranoia_of_three_is_named():  # FR-117, Debian's own patch aside the file takes any number
    with setting("/proc/sys/kernel/perf_event_paranoid", 3):
        done = as_nobody("record", "-o", out("three.pb.gz"), "--", *burn_command(50000))
        whole = as_nobody("record", "-a", "-d", "0.2", "-o", out("three.pb.gz"))
    assert "perf_event_paranoid is 3" in whole.stderr and whole.returncode == 77, whole.stderr
    # Whether 3 forbids own processes too is the distribution's patch.
    assert done.returncode in (0, 77), done.stderr
    assert done.returncode == 0 or "perf_event_paranoid is 3" in done.stderr, done.stderr


main(globals())
