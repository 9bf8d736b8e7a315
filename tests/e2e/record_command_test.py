# SPDX-License-Identifier: Apache-2.0
"""perfpipe record: targets, exit status, signals, outputs."""
import json, re
from support import *

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
    assert len(known) >= 8 and all(argv[:2] == ["/bin/true", "word"] for argv in known), known


def test_targets_that_are_missing_exit_66():
    assert "E104" in run("record", "-G", "no/such/group", "-d", "1", "-o", out("g.pb.gz"), check=66).stderr
    assert "E105" in run("record", "-a", "-e", "no-such-event", "-d", "1", "-o", out("g.pb.gz"), check=2).stderr
    assert not os.path.exists(out("g.pb.gz"))


def test_nothing_temporary_is_left():
    assert not [name for name in os.listdir(there) if name.endswith(".tmp")], os.listdir(there)


main(globals())
