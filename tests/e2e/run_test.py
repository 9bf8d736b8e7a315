# SPDX-License-Identifier: Apache-2.0
"""perfpipe run: windows come, nothing is lost through outages and kills, signals do what they should."""
import contextlib, shutil, signal, socket, subprocess, threading, time
from support import *
from support_agent import Agent, free_port
from support_grpc_servers import Answer, Backend, total
from support_live import BURN_SOURCE, compile_c, wait_until

there = folder()
burner = compile_c(BURN_SOURCE, os.path.join(there, "burner"))
spools = 0


def new_spool():
    need_sampling()
    global spools
    spools += 1
    return os.path.join(there, "spool%d" % spools)


@contextlib.contextmanager
def burning():
    process = subprocess.Popen([burner, "100000000"])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def to(server):
    return ["--to", "parca+insecure://" + server.address]


def windows(stored):
    """Begin and length in seconds of each window, in order."""
    return sorted({(p.time_nanos / 1e9, p.duration_nanos / 1e9) for _, p in stored})


def cpu_seconds(pid):
    fields = open("/proc/%d/stat" % pid).read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def types(profile):
    return [profile.string_table[t.type] for t in profile.sample_type]


def test_every_window_arrives_and_every_sample_is_in_it():
    with Backend("parca") as server, Backend("pyroscope") as other, burning() as process:
        there_too = ["--to", "pyroscope+insecure://" + other.address]
        words = [*to(server), *there_too, "--label", "env=test", "--node", "here", "-F", "199"]
        with Agent(*words, spool=new_spool(), window="3s") as agent:
            agent.sampling()
            before = cpu_seconds(process.pid)
            time.sleep(31)
            used = cpu_seconds(process.pid) - before
            assert cpu_seconds(agent.pid) < 0.1 * 31, cpu_seconds(agent.pid)
            assert agent.end() == 0
        samples, delivered = agent.account()
        assert samples["taken"] > 1000 and samples["dropped_before_conversion"] == 0, samples
        assert total(server.stored) == total(other.stored) == samples["taken"], (total(server.stored), samples)
        assert [line["waiting_samples"] for line in delivered] == [0, 0], delivered
        seen = windows(server.stored)
        assert 10 <= len(seen) <= 12, seen
        for (begin, length), (following, _) in zip(seen, seen[1:]):
            assert abs(following - begin - length) < 0.05, seen
        for begin, length in seen[1:-1]:
            # A busy host ends them late, and the next is the shorter for it.
            assert begin % 3 < 1.5 and 1.5 < length < 4.5, seen
        for labels, profile in server.stored:
            assert labels["env"] == "test" and labels["node"] == "here" and labels["__name__"] == "process_cpu", labels
            assert "process" not in profile.string_table
        burnt = [(labels, p) for labels, p in server.stored if labels["service_name"] == "burner"]
        measured = sum(sample.value[1] for _, p in burnt for sample in p.sample) / 1e9
        assert abs(measured - used) < 0.1 * used + 0.2, (measured, used)
        assert any("hot_a" in p.string_table for _, p in burnt)


def test_each_event_has_a_profile_of_its_own():
    with Backend("parca") as server, burning():
        with Agent(*to(server), "-e", "cpu-clock,page-faults", spool=new_spool()) as agent:
            agent.sampling()
            time.sleep(3)
            assert agent.end() == 0
        samples, _ = agent.account()
        assert total(server.stored) == samples["taken"]
        kinds = {tuple(types(p)) for _, p in server.stored}
        assert kinds == {("samples", "cpu"), ("samples", "page_faults")}, kinds
        names = {(labels["__name__"], types(p)[1]) for labels, p in server.stored}
        assert ("process_cpu", "cpu") in names, names


def test_what_an_outage_holds_back_arrives_when_it_is_over():
    port = free_port()
    with burning(), Agent("--to", "parca+insecure://127.0.0.1:%d" % port, spool=new_spool()) as agent:
        agent.sampling()
        agent.wait_for(lambda: agent.waiting_samples() > 200, "a queue")
        assert agent.lines("cannot deliver for now"), agent.lines()
        with Backend("parca", port=port) as server:
            agent.wait_for(lambda: agent.lines("delivering again"), "delivery", 60)
            assert agent.end() == 0
            samples, (delivered,) = agent.account()
            assert delivered["waiting_samples"] == 0, delivered
            assert total(server.stored) == samples["taken"]
            assert len(windows(server.stored)) >= 4


def test_a_killed_agent_loses_nothing_that_was_in_its_spool():
    port, spool = free_port(), new_spool()
    where = ["--to", "parca+insecure://127.0.0.1:%d" % port]
    kept = 0
    with burning():
        for _ in range(3):
            with Agent(*where, spool=spool, window="1s") as agent:
                agent.sampling()
                agent.wait_for(lambda: agent.waiting_samples() > kept + 100, "a queue")
                agent.process.kill()
                agent.process.wait()
                kept = agent.waiting_samples()
        with Backend("parca", port=port) as server, Agent(*where, spool=spool) as agent:
            agent.sampling()
            agent.wait_for(lambda: total(server.stored) >= kept, "delivery", 60)
            assert agent.end() == 0
            samples, (delivered,) = agent.account()
            assert delivered["earlier_samples"] == kept, (delivered, kept)
            assert total(server.stored) == kept + samples["taken"], (total(server.stored), kept, samples)


def test_memory_and_descriptors_stay_as_they_are():
    with Backend("parca") as server, burning(), Agent(*to(server), "-F", "999", spool=new_spool()) as agent:
        agent.sampling()
        stop = threading.Event()

        def work():
            while not stop.is_set():
                subprocess.run(["true"])
        worker = threading.Thread(target=work)
        worker.start()
        try:
            time.sleep(8)
            fds, kib = len(agent.fds()), agent.anonymous_kib()
            for _ in range(12):
                time.sleep(1)
                agent.send(signal.SIGHUP)
            assert abs(len(agent.fds()) - fds) <= 3, agent.fds()
            assert agent.anonymous_kib() < kib * 1.25 + 4096, (kib, agent.anonymous_kib())
        finally:
            stop.set()
            worker.join()
        assert agent.end() == 0
        samples, _ = agent.account()
        assert total(server.stored) == samples["taken"]


def test_the_end_waits_for_slow_servers_but_not_for_dead_ones():
    with Backend("parca") as server, burning():
        server.answer(*[Answer(delay=2)] * 400)
        with Agent(*to(server), spool=new_spool(), window="5s") as agent:
            agent.sampling()
            time.sleep(1)
            assert agent.end() == 0
        _, (delivered,) = agent.account()
        assert delivered["waiting_samples"] == 0, delivered
    with burning(), Agent("--to", "parca+insecure://127.0.0.1:%d" % free_port(), spool=new_spool()) as agent:
        agent.sampling()
        agent.wait_for(lambda: agent.lines("cannot deliver for now"), "a failure")
        begin = time.monotonic()
        assert agent.end() == 0
        assert time.monotonic() - begin < 5
        _, (delivered,) = agent.account()
        assert delivered["waiting_samples"] == agent.waiting_samples() > 0


def test_a_second_signal_ends_it_at_once_and_the_spool_has_what_it_had():
    with Backend("parca") as server, burning():
        server.answer(*[Answer(delay=30)] * 400)
        with Agent(*to(server), spool=new_spool()) as agent:
            agent.sampling()
            agent.wait_for(lambda: agent.waiting_samples() > 0, "a queue")
            agent.send(signal.SIGTERM)
            agent.wait_for(lambda: agent.lines("ending"), "the end")
            time.sleep(0.5)
            begin = time.monotonic()
            assert agent.end() == 128 + signal.SIGTERM
            assert time.monotonic() - begin < 1
            assert agent.waiting_samples() > 0


def test_a_cgroup_that_comes_later_is_waited_for_and_may_go_and_come_again():
    root = "/sys/fs/cgroup" if os.path.exists("/sys/fs/cgroup/cgroup.procs") else "/sys/fs/cgroup/unified"
    name = "perfpipe-test-%d" % os.getpid()
    path = os.path.join(root, name)
    try:
        os.mkdir(path)
        os.rmdir(path)
    except OSError as e:
        raise Skip("no cgroup can be made: %s" % e)
    with Backend("parca") as server, Agent(*to(server), "-G", name, spool=new_spool()) as agent:
        agent.wait_for(lambda: agent.lines("waiting for the target"), "waiting")
        for turn in 1, 2:
            os.mkdir(path)
            with burning() as process:
                open(os.path.join(path, "cgroup.procs"), "w").write(str(process.pid))
                agent.wait_for(lambda: len(agent.lines("sampling")) == turn, "sampling")
                before = total(server.stored)
                agent.wait_for(lambda: total(server.stored) > before + 50, "samples")
            wait_until(lambda: not open(os.path.join(path, "cgroup.procs")).read(), "the group's end")
            os.rmdir(path)
            agent.wait_for(lambda: len(agent.lines("waiting for the target")) == turn + 1, "waiting again")
        assert agent.end() == 0
        samples, _ = agent.account()
        assert total(server.stored) == samples["taken"]
        assert {labels["service_name"] for labels, _ in server.stored} == {"burner"}


def test_a_hangup_makes_it_read_the_token_again():
    with Backend("parca") as server, burning():
        token = write(os.path.join(there, "token"), b"first\n")
        with Agent(*to(server), "--token-file", token, spool=new_spool()) as agent:
            agent.wait_for(lambda: server.calls, "a call")
            assert {call.metadata["authorization"] for call in server.calls} == {"Bearer first"}
            write(token, b"second\n")
            agent.send(signal.SIGHUP)
            agent.wait_for(lambda: server.calls[-1].metadata["authorization"] == "Bearer second", "the new token")
            assert agent.end() == 0
        assert "second" not in open(agent.log_path).read()
        assert total(server.stored) == agent.account()[0]["taken"]


def test_the_service_manager_hears_how_it_is():
    path = os.path.join(there, "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager, Backend("parca") as server:
        manager.bind(path)
        manager.settimeout(20)

        def hear(want):
            while True:
                text = manager.recv(4096).decode()
                if want in text:
                    return text
        env = {"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "900000"}
        with Agent(*to(server), spool=new_spool(), env=env) as agent:
            assert "STATUS=sampling" in hear("READY=1")
            for _ in range(3):
                hear("WATCHDOG=1")
            agent.send(signal.SIGHUP)
            assert "MONOTONIC_USEC=" in hear("RELOADING=1")
            hear("READY=1")
            agent.send(signal.SIGTERM)
            hear("STOPPING=1")
            assert agent.process.wait(25) == 0


def test_usr2_tells_the_state_and_quit_aborts_with_it():
    with Backend("parca") as server, burning(), Agent(*to(server), spool=new_spool()) as agent:
        agent.wait_for(lambda: server.stored, "a window")
        agent.send(signal.SIGPIPE)
        agent.send(signal.SIGUSR2)
        agent.wait_for(lambda: agent.lines("exporter"), "the state")
        (exporter,) = agent.lines("exporter")
        assert int(exporter["sent_samples"]) > 0 and int(agent.lines("state")[0]["samples_taken"]) > 0
        assert agent.end(signal.SIGQUIT) == -signal.SIGQUIT
        text = open(agent.log_path).read()
        assert "aborted by SIGQUIT" in text and "samples_taken=" in text


CAPABILITIES = {2: "DAC_READ_SEARCH", 14: "IPC_LOCK", 19: "SYS_PTRACE", 34: "SYSLOG", 38: "PERFMON", 40: "CHECKPOINT_RESTORE"}
READING = {"DAC_READ_SEARCH", "SYS_PTRACE", "SYSLOG", "CHECKPOINT_RESTORE"}


def privileges(pid):
    """{thread: (permitted capabilities, whether an exec may gain some)}"""
    found = {}
    for tid in os.listdir("/proc/%d/task" % pid):
        status = dict(line.split(":\t", 1) for line in open("/proc/%d/task/%s/status" % (pid, tid)).read().splitlines()
                      if ":\t" in line)
        assert status["CapEff"] == status["CapPrm"], status
        mask = int(status["CapPrm"], 16)
        names = {CAPABILITIES.get(bit, bit) for bit in range(64) if mask >> bit & 1}
        found[status["Name"]] = names, status["NoNewPrivs"] == "0"
    return found


def test_each_thread_has_the_capabilities_that_it_needs():
    if os.geteuid():
        raise Skip("not root, so there is nothing to give up")
    other = "127.0.0.1:%d" % free_port()
    with Backend("parca") as server, burning(), Agent(*to(server), spool=new_spool(), http=other) as agent:
        agent.wait_for(lambda: server.stored, "a window")
        threads = privileges(agent.pid)
        assert threads == {
            "perfpipe": (READING | {"PERFMON", "IPC_LOCK"}, False), "convert": (READING, False),
            "forward": (set(), False), "http": (set(), False)}, threads
        assert agent.end() == 0


def test_binaries_of_other_users_have_names():
    if os.geteuid():
        raise Skip("not root, so other users' files are theirs")
    os.chmod(there, 0o755)
    private = os.path.join(there, "private")
    os.mkdir(private)
    shutil.copy(burner, os.path.join(private, "theirs"))
    for path in private, os.path.join(private, "theirs"):
        os.chown(path, 65534, 65534)
        os.chmod(path, 0o700)
    process = subprocess.Popen([os.path.join(private, "theirs"), "100000000"], user=65534, group=65534, extra_groups=[])
    try:
        with Backend("parca") as server, Agent(*to(server), spool=new_spool()) as agent:
            agent.sampling()
            time.sleep(3)
            assert agent.end() == 0
            names = {text for labels, p in server.stored if labels["service_name"] == "theirs" for text in p.string_table}
            assert "hot_a" in names, names
    finally:
        process.kill()
        process.wait()


def test_what_keeps_it_from_beginning_is_an_error():
    done = run("run", check=2)
    assert "--to" in done.stderr, done.stderr
    for words in (["--to", "parca://h", "--window", "10ms"], ["--to", "parca://h", "x"], ["--to", "parca://h", "--label", "x"],
                  ["--to", "parca://h", "--to", "parca://h"], ["--to", "parca://h", "--log-format", "xml"]):
        assert "exit 2]" in run("run", *words, check=2).stderr, words
    done = run("run", "--to", "parca+insecure://127.0.0.1:1", "-e", "no-such-event", "--spool", new_spool(), check=2)
    assert "E105" in done.stderr, done.stderr
    spool = new_spool()
    where = ["--to", "parca+insecure://127.0.0.1:%d" % free_port()]
    with Agent(*where, spool=spool) as agent:
        agent.sampling()
        done = run("run", *where, "--spool", spool)
        assert done.returncode != 0 and "E401" in done.stderr, done.stderr
        assert agent.end() == 0


main(globals())
