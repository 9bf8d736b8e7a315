# SPDX-License-Identifier: Apache-2.0
"""perfpipe record: targets, exit status, signals, outputs."""
import json, re, resource
from support import *
from support_pprof import Pprof

there = folder()
try:
    need_sampling()
except Skip as why:
    print("skipped: %s" % why)
    sys.exit(77)


def out(name):
    return os.path.join(there, name)


def test_the_command_s_own_status_is_returned():
    for script, status in (("exit 0", 0), ("exit 3", 3), ("kill -9 $$", 137), ("kill -TERM $$", 143)):
        done = run("record", "-o", out("s.pb.gz"), "--", "sh", "-c", script)
        assert done.returncode == status, (script, done.returncode, done.stderr)
        assert Profile(out("s.pb.gz")).types
    assert "E111" in run("record", "-o", out("n.pb.gz"), "--", "/nonexistent/command", check=127).stderr
    assert "E111" in run("record", "-o", out("n.pb.gz"), "--", "/etc/passwd", check=126).stderr
    assert "E111" in run("record", "-a", "-o", out("n.pb.gz"), "--", "/nonexistent/command", check=127).stderr
    assert not os.path.exists(out("n.pb.gz"))


def test_a_command_is_sampled_alone_and_its_output_passes_through():
    other = burner()
    try:
        done = run("record", "-F", "999", "-o", out("c.pb.gz"), "--", "sh", "-c", "echo said; " + BURN % 300000, check=0)
    finally:
        end(other)
    assert done.stdout == b"said\n"
    profile = Profile(out("c.pb.gz"))
    assert profile.total() > 50, profile.total()
    assert profile.label_values("comm") <= {"sh", "perfpipe"}, profile.label_values("comm")
    assert len(profile.label_values("pid")) == 1
    assert 0 < profile.duration_nanos < 60e9


def test_signals_and_sigpipe_of_the_command_are_as_without_us():
    for words in (["record", "-o", out("m.pb.gz"), "--"], ["record", "-a", "-o", out("m.pb.gz"), "--"]):
        # The last eight digits are the signals 1 to 32; glibc keeps 32 and 33 to itself.
        look = ["sh", "-c", "grep -E 'SigIgn|SigBlk' /proc/self/status"]
        bare, ours = [[int(line.split()[1], 16) & 0x7fffffff for line in done.stdout.splitlines()]
                      for done in (subprocess.run(look, capture_output=True), run(*words, *look, check=0))]
        assert bare == ours, (words, bare, ours)


def test_interrupting_writes_what_was_taken():
    for number, name in ((signal.SIGINT, "Interrupt"), (signal.SIGTERM, "Terminated")):
        if os.path.exists(out("i.pb.gz")):
            os.unlink(out("i.pb.gz"))
        other = burner()
        try:
            recorder = subprocess.Popen([binary, "record", "-a", "-F", "499", "-o", out("i.pb.gz")],
                                        stderr=subprocess.PIPE, text=True)
            time.sleep(1.5)
            recorder.send_signal(number)
            text = recorder.communicate(timeout=60)[1]
        finally:
            end(other)
        assert recorder.returncode == 0, (recorder.returncode, text)
        assert name in text and "writing what was taken" in text, text
        assert Profile(out("i.pb.gz")).total() > 100


def test_interrupting_ends_the_command_too():
    recorder = subprocess.Popen([binary, "record", "-o", out("k.pb.gz"), "--", "sleep", "600"],
                                stderr=subprocess.PIPE, text=True)
    time.sleep(1)
    recorder.send_signal(signal.SIGTERM)
    text = recorder.communicate(timeout=60)[1]
    assert recorder.returncode == 143, (recorder.returncode, text)
    assert Profile(out("k.pb.gz")).types


def test_a_process_is_followed_until_it_ends():
    target = subprocess.Popen(["sh", "-c", "sleep 0.5; " + BURN % 400000])
    done = run("record", "-p", str(target.pid), "-F", "999", "-o", out("p.pb.gz"), check=0)
    assert target.wait() == 0
    assert "the target is gone" in done.stderr, done.stderr
    profile = Profile(out("p.pb.gz"))
    assert profile.total() > 50 and profile.label_values("pid") == {target.pid}
    assert "E102" in run("record", "-p", str(target.pid), "-o", out("gone.pb.gz"), check=66).stderr


def test_duration_ends_sampling_but_not_the_command():
    started = time.monotonic()
    done = run("record", "-d", "0.3", "-o", out("d.pb.gz"), "--", "sh", "-c", "sleep 1.5; exit 5", check=5)
    assert time.monotonic() - started >= 1.4
    assert Profile(out("d.pb.gz")).duration_nanos < 1.2e9, done.stderr
    started = time.monotonic()
    run("record", "-a", "-d", "0.5", "-o", out("d.pb.gz"), check=0)
    assert 0.4 < time.monotonic() - started < 20


def test_the_whole_host_while_a_command_runs():
    other = burner()
    try:
        run("record", "-a", "-F", "499", "-o", out("a.pb.gz"), "--", "sleep", "1", check=0)
    finally:
        end(other)
    assert Profile(out("a.pb.gz")).total() > 100


def test_standard_output_gets_the_profile_and_nothing_else():
    done = run("record", "-o", "-", "-F", "999", "--", "sh", "-c", BURN % 100000 + "; exit 4", check=4)
    assert Profile(done.stdout).total() > 0


def test_binary_never_goes_to_a_terminal():
    import pty
    leader, follower = pty.openpty()
    done = subprocess.run([binary, "record", "-o", "-", "--", "true"], stdout=follower, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2 and "terminal" in done.stderr
    os.close(follower)
    os.close(leader)


def test_perf_opens_the_perf_data_that_is_written():
    perf = find_perf()
    run("record", "-F", "999", "-o", out("x.data"), "--", *burn_command(300000), check=0)
    script = subprocess.run([perf, "script", "-i", out("x.data"), "-F", "comm,pid,event,ip,sym"], capture_output=True,
                            text=True, stdin=subprocess.DEVNULL)
    assert script.returncode == 0, script.stderr
    n_perf = len(re.findall(r"^\S+\s+\d+\s+\S+:", script.stdout, re.M))
    assert n_perf > 50, script.stdout[:500]
    run("convert", out("x.data"), "-o", out("x.pb.gz"), check=0)
    assert Profile(out("x.pb.gz")).total() == n_perf


def test_every_program_that_starts_is_listed():
    script = "for i in 1 2 3 4 5 6 7 8 9 10; do /bin/true word $i; done"
    run("record", "-o", out("l.pb.gz"), "--processes", out("l.jsonl"), "--", "sh", "-c", script, check=0)
    lines = [json.loads(line) for line in open(out("l.jsonl"))]
    started = [line for line in lines if line["comm"] == "true"]
    assert len(started) == 10, lines
    for line in lines:
        assert sorted(line) == ["argv", "cgroup", "comm", "exe", "pid", "source", "time_ns"]
        assert line["source"] in ("record", "proc", "none")
    known = [line["argv"] for line in started if line["source"] != "none"]
    # Without the tracepoint argv is read from /proc, if that is in time.
    least = 8 if os.path.exists("/sys/kernel/tracing/events/sched") else 1
    assert len(known) >= least and all(argv[:2] == ["/bin/true", "word"] for argv in known), known


def test_targets_that_are_missing_exit_66():
    assert "E104" in run("record", "-G", "no/such/group", "-d", "1", "-o", out("g.pb.gz"), check=66).stderr
    assert "E105" in run("record", "-a", "-e", "no-such-event", "-d", "1", "-o", out("g.pb.gz"), check=2).stderr
    assert not os.path.exists(out("g.pb.gz"))


def interrupted(name, after, *signals, words=("-a", "-F", "499"), **how):
    """Runs record and sends each (delay, signal) after one another; exit code and messages."""
    if os.path.exists(out(name)):
        os.unlink(out(name))
    recorder = subprocess.Popen([binary, "record", "-o", out(name), *words], stderr=subprocess.PIPE, text=True, **how)
    time.sleep(after)
    for pause, number in signals:
        time.sleep(pause)
        if recorder.poll() is None:
            recorder.send_signal(number)
    text = recorder.communicate(timeout=60)[1]
    return recorder.returncode, text


def test_signals_close_together_are_one_wish():
    for first, second in ((signal.SIGHUP, signal.SIGTERM), (signal.SIGTERM, signal.SIGINT), (signal.SIGINT, signal.SIGINT)):
        for pause in (0, 0.05):
            code, text = interrupted("two.pb.gz", 1.2, (0, first), (pause, second))
            assert code == 0 and "writing what was taken" in text, (first, second, code, text)
            assert Profile(out("two.pb.gz")).types


def test_a_signal_while_names_are_looked_up_or_written_loses_nothing():
    # Time is up after half a second; with many samples, what follows takes a while.
    for after in (0.5, 0.55, 0.6, 0.7, 0.9):
        code, text = interrupted("late.pb.gz", after, (0, signal.SIGTERM), words=("-q", "-a", "-F", "20000", "-d", "0.5"))
        if "nothing is written" in text:  # a slow start: not what this is about
            continue
        assert code == 0, (after, code, text)
        assert Profile(out("late.pb.gz")).total() > 0, (after, text)


def test_a_signal_before_sampling_leaves_the_old_file():
    for after in (0.001, 0.01, 0.03, 0.06):
        kept = write(out("kept.pb.gz"), b"kept")
        recorder = subprocess.Popen([binary, "record", "-a", "-o", kept], stderr=subprocess.PIPE, text=True)
        time.sleep(after)
        recorder.send_signal(signal.SIGTERM)
        text = recorder.communicate(timeout=60)[1]
        if "nothing is written" in text or recorder.returncode == -signal.SIGTERM:
            assert recorder.returncode in (143, -signal.SIGTERM), text
            assert open(kept, "rb").read() == b"kept"
        else:
            assert recorder.returncode == 0 and Profile(kept).types, text


def test_sigusr1_changes_nothing():
    code, text = interrupted("usr.pb.gz", 0.3, (0, signal.SIGUSR1), words=("-a", "-d", "1"))
    assert code == 0 and Profile(out("usr.pb.gz")).duration_nanos > 0.9e9, text


def in_mapping(path, file):
    """Samples with a frame in the file."""
    raw = Pprof(path)
    mappings = {m[1] for m in raw.mappings if raw.text(m.get(5, 0)) == file}
    locations = {l[1] for l in raw.locations if l.get(2, 0) in mappings}
    return sum(values[0] for ids, values, _ in raw.samples if locations & set(ids))


def test_snapshots_and_the_output_are_the_whole():
    """Each sample in one of the files; each file names by itself what runs since before it began."""
    for name, scope in (("snap.pb.gz", ["-p"]), ("snap.data", ["-p"]), ("snap.data", ["-a"]), ("snap.data", ["--"])):
        for path in glob.glob(out(name) + "*"):
            os.unlink(path)
        target = subprocess.Popen(["sh", "-c", "while :; do :; done"], start_new_session=True)
        words = ["timeout", "2.5", "sh", "-c", "while :; do :; done"] if scope == ["--"] else []
        words = scope + ([str(target.pid)] if scope == ["-p"] else words) + ([] if words else ["-d", "2.5"])
        if scope == ["-a"]:
            words += ["--user-only"]
        try:
            recorder = subprocess.Popen([binary, "record", "-F", "999", "-o", out(name), *words], stderr=subprocess.PIPE,
                                        text=True)
            for after in (1, 0.6):
                time.sleep(after)
                recorder.send_signal(signal.SIGUSR2)
            text = recorder.communicate(timeout=60)[1]
        finally:
            end(target)
        assert recorder.returncode == (124 if scope == ["--"] else 0), text
        snapshots = sorted(glob.glob(out(name) + ".*"))
        told = re.findall(r"snapshot: wrote (\S+): (\d+) samples", text)
        assert len(snapshots) == 2 and [path for path, _ in told] == snapshots, (snapshots, text)
        assert all(re.search(r"\.20\d{14}$", path) for path in snapshots), snapshots
        counts = [int(n) for _, n in told] + [int(re.search(r"wrote \S+%s: (\d+) samples" % name, text).group(1))]
        ends = []
        for path, n in zip(snapshots + [out(name)], counts):
            if name.endswith(".data"):
                done = run("convert", path, "-o", out("part.pb.gz"), check=0)
                path = out("part.pb.gz")
            profile = Profile(path)
            assert profile.total() == n and n > 5, (name, scope, counts, profile.total())
            share = 0.03 if scope == ["-a"] else 0.5
            assert in_mapping(path, os.path.realpath(shutil.which("sh"))) > share * n, (name, scope, counts)
            begin = profile.time_nanos
            assert not ends or begin > ends[-1] - 2e8, (begin, ends)
            ends.append(begin + profile.duration_nanos)
        assert (ends[-1] - ends[0]) > 1e9, ends


def test_an_output_without_a_place_beside_it_takes_no_snapshot():
    recorder = subprocess.Popen([binary, "record", "-a", "-d", "1", "-o", "-"], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)
    time.sleep(0.5)
    recorder.send_signal(signal.SIGUSR2)
    data, text = recorder.communicate(timeout=60)
    assert recorder.returncode == 0 and b"W118" in text and Pprof(data).samples, text


def test_an_abort_tells_state_and_leaves_no_command():
    def no_core():
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for trap in ("", "trap '' QUIT; "):
        path = out("quit.pb.gz")
        command = "%s/bin/sleep 60 & echo $!; " % trap + BURN % 10**9
        recorder = subprocess.Popen([binary, "record", "-F", "999", "-o", path, "--", "sh", "-c", command],
                                    preexec_fn=no_core, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                    start_new_session=True)
        sleeper = int(recorder.stdout.readline())
        time.sleep(0.5)
        shell = int(open("/proc/%d/stat" % sleeper).read().split()[3])
        recorder.send_signal(signal.SIGQUIT)
        assert recorder.wait(timeout=10) == -signal.SIGQUIT
        os.kill(sleeper, signal.SIGKILL)
        text = recorder.stderr.read()
        assert "aborted by SIGQUIT" in text and re.search(r"samples_taken=\d+", text), text
        assert "command pid=%d is told to end" % shell in text, text
        for _ in range(100):
            if not os.path.exists("/proc/%d" % shell) or open("/proc/%d/stat" % shell).read().split()[2] == "Z":
                break
            time.sleep(0.05)
        else:
            raise AssertionError("the command goes on")
        assert not os.path.exists(path)


def test_a_hangup_of_the_terminal_writes_what_was_taken():
    import pty
    if os.path.exists(out("hup.pb.gz")):
        os.unlink(out("hup.pb.gz"))
    pid, leader = pty.fork()
    if pid == 0:
        os.execv(binary, [binary, "record", "-a", "-F", "99", "-o", out("hup.pb.gz")])
    time.sleep(1.5)
    os.close(leader)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert Profile(out("hup.pb.gz")).total() > 0


def test_the_command_outlives_a_failed_recording_and_is_waited_for():
    for words in (["-o", "/dev/full"], ["-o", out("full.pb.gz"), "--processes", "/dev/full"]):
        started = time.monotonic()
        done = run("record", *words, "-d", "0.2", "--", "sh", "-c", "/bin/true; sleep 1; exit 3", check=74)
        assert time.monotonic() - started >= 0.9
        assert "cannot write /dev/full: " in done.stderr and "No space left" in done.stderr, done.stderr
        assert "sh ended with status 3" in done.stderr, done.stderr
    assert Profile(out("full.pb.gz")).types  # the list's trouble is not the profile's
    # Not even when there is much to list.
    many = "i=0; while [ $i -lt 300 ]; do i=$((i+1)); /bin/true %s; done" % ("x" * 200)
    run("record", "-o", out("full.pb.gz"), "--processes", "/dev/full", "--", "sh", "-c", many, check=74)
    assert Profile(out("full.pb.gz")).types


def test_a_full_disk_under_perf_data_is_named():
    if os.getuid() != 0 or subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode:
        raise Skip("only root can mount a small file system")
    small = out("small")
    os.makedirs(small, exist_ok=True)
    script = 'mount -t tmpfs -o size=64k none "$1" && exec "$0" record -F 9999 -o "$1/x.data" -- sh -c "$2; exit 3"'
    done = subprocess.run(["unshare", "-m", "sh", "-c", script, binary, small, BURN % 600000], capture_output=True, text=True)
    assert done.returncode == 74 and "cannot write %s/x.data: " % small in done.stderr, done.stderr
    assert "No space left" in done.stderr and "sh ended with status 3" in done.stderr, done.stderr


def test_closed_standard_descriptors_do_not_get_into_the_profile():
    for closing in ("2>&-", "1>&-", "0<&-", "0<&- 1>&- 2>&-"):
        script = '"$0" record -a -d 0.3 -F 999 -o "$1" %s' % closing
        done = subprocess.run(["sh", "-c", script, binary, out("closed.pb.gz")], capture_output=True, text=True)
        assert done.returncode == 0, (closing, done.stderr)
        assert not Pprof(out("closed.pb.gz")).broken_rules(), closing
    done = subprocess.run(["sh", "-c", '"$0" record -a -d 0.2 -o - 1>&-', binary], capture_output=True, text=True)
    assert done.returncode == 74 and "cannot write standard output" in done.stderr, done.stderr


def test_a_profile_on_standard_output_is_not_mixed_with_the_command_s():
    for words in ([], ["-a"]):
        done = run("record", *words, "-F", "999", "-o", "-", "--", "sh", "-c", "echo said; " + BURN % 100000, check=0)
        assert Profile(done.stdout).total() > 0
        assert "said\n" in done.stderr, done.stderr
    done = run("record", "-o", out("mixed.pb.gz"), "--processes", "-", "--", "sh", "-c", "echo said; /bin/true", check=0)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert "true" in [line["comm"] for line in lines] and "said\n" in done.stderr


def test_two_outputs_need_two_places():
    for output, processes in ((out("one"), out("one")), (out("one"), os.path.join(there, ".", "one")), ("-", "-"),
                              ("-", "/dev/stdout")):
        done = run("record", "-a", "-d", "0.1", "-o", output, "--processes", processes, check=2)
        assert "the same file" in done.stderr and not done.stdout, done.stderr
    assert not os.path.exists(out("one"))


def test_a_command_that_is_done_is_no_lost_target():
    assert "target is gone" not in run("record", "-o", out("t.pb.gz"), "--", "true", check=0).stderr


def test_the_command_is_the_profile_s_main_program():
    need("awk")
    script = BURN % 60000 + "; awk 'BEGIN { while (i < 10000000) i++ }'"  # the child is busier
    run("record", "-F", "999", "-o", out("main.pb.gz"), "--", "sh", "-c", script, check=0)
    profile = Profile(out("main.pb.gz"))
    assert profile.mappings[0] == os.path.realpath(shutil.which("sh")), profile.mappings


def test_a_profile_does_not_tell_the_command_s_arguments():
    done = run("record", "-F", "999", "-o", "-", "--", "sh", "-c", BURN % 100000, "token=secret", check=0)
    profile = Pprof(done.stdout)
    assert not [text for text in profile.strings if "secret" in text]
    assert [text for text in profile.comments if text.startswith("command: ") and text.endswith("...")], profile.comments


def test_an_absurd_rate_leaves_time_to_end_in_time():
    clocks = "cpu-clock,cpu-clock:u,cpu-clock:k,task-clock,task-clock:u,task-clock:k"
    target = burner()
    try:
        for rate in ("-F", "900000"), ("-c", "1"):
            done = run("record", *rate, "-a", "-e", clocks, "-m", "64M", "-d", "1", "-o", out("absurd.pb.gz"), check=0)
            profile = Profile(out("absurd.pb.gz"))
            assert profile.samples and profile.duration_nanos < 2.5e9, done.stderr
            assert "W113" in done.stderr, done.stderr
    finally:
        end(target)


def test_a_clock_is_not_counted_below_what_it_can():
    done = run("record", "-c", "1", "-e", "cpu-clock", "-o", out("least.pb.gz"), "--", *burn_command(100000), check=0)
    profile = Profile(out("least.pb.gz"))
    least_ns = int(re.search(r"every (\d+) ns instead of 1 \[W113\]", done.stderr).group(1))
    assert least_ns >= 10000 and profile.total() > 0
    assert profile.total("cpu") == least_ns * profile.total(), (profile.total("cpu"), profile.total())


def test_events_of_several_options_are_one_list():
    run("record", "-e", "cpu-clock", "-e", "page-faults,context-switches", "-F", "999", "-o", out("e.pb.gz"), "--",
        *burn_command(100000), check=0)
    kinds = [kind for kind, _ in Profile(out("e.pb.gz")).types]
    assert [kind for kind in kinds if kind.endswith("_samples")] == [
        "cpu_clock_samples", "page_faults_samples", "context_switches_samples"], kinds
    assert 'event list ",": a name is empty' in run("record", "-e", ",", "--", "true", check=2).stderr


def test_too_few_descriptors_are_said():
    done = subprocess.run(["sh", "-c", 'ulimit -n 10; exec "$0" record -a -d 0.1 -o "$1"', binary, out("few.pb.gz")],
                          capture_output=True, text=True)
    assert done.returncode == 1 and "E107" in done.stderr, done.stderr


def test_descriptors_that_run_out_anywhere_are_said():
    target = burner()
    try:
        for words in (["-a", "-d", "0.1"], ["-p", str(target.pid), "-d", "0.1"], ["-a", "--", "true"], ["--", "true"]):
            n_failed = 0
            for n in range(5, 30):
                done = subprocess.run(["sh", "-c", 'ulimit -n %d; exec "$0" "$@"' % n, binary, "record", "-o", out("f.pb"),
                                       *words], capture_output=True, text=True)
                n_failed += done.returncode == 1
                assert done.returncode == 0 or (done.returncode == 1 and "E107" in done.stderr), (n, words, done.stderr)
            assert n_failed > 1, words
    finally:
        end(target)


def test_nothing_temporary_is_left():
    assert not [name for name in os.listdir(there) if name.endswith(".tmp")], os.listdir(there)


main(globals())
