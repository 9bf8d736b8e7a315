# SPDX-License-Identifier: Apache-2.0
"""Symbols fetched from debuginfod servers, good ones and bad ones, and files that lie in caches by build-id."""
import glob, json, os, shutil, signal, subprocess, threading, time
from support import *
from support_debuginfod import *
from support_live import build_id, need_root, wait_until

there = folder()

SOURCE = """
__attribute__((noinline)) static unsigned long hot(unsigned long n) {
	unsigned long s = 0;
	for (unsigned long i = 0; i < n; i++)
		s = (s ^ i) * %dul + 7;
	return s;
}

int main(int argc, char **argv) {
	unsigned long s = 0;
	for (int i = 0; i < 4000 * argc; i++)
		s += hot(100000 + s %% 7);
	return argv[0] && s == 42;
}
"""


def path(name):
    return os.path.join(there, name)


class Program:
    """whole: with DWARF; stripped: without any symbols; debug: the DWARF alone."""

    def __init__(self, name, number=31):
        need("gcc", "objcopy", "strip")
        self.whole, self.stripped, self.debug = path(name + ".whole"), path(name), path(name + ".debug")
        source = write(path("program.c"), (SOURCE % number).encode())
        subprocess.run(["gcc", "-O1", "-g", "-Wl,--build-id=sha1", "-o", self.whole, source], check=True)
        subprocess.run(["strip", "-s", "-o", self.stripped, self.whole], check=True)
        subprocess.run(["objcopy", "--only-keep-debug", self.whole, self.debug], check=True)
        self.id = build_id(self.whole)
        self.hot = int(subprocess.run(["nm", self.whole], capture_output=True, text=True, check=True)
                       .stdout.split(" t hot")[0].split()[-1], 16)

    def give(self, rogue, *kinds):
        for kind in kinds or ("debuginfo", "executable"):
            content = open(self.debug if kind == "debuginfo" else self.stripped, "rb").read()
            rogue.files[(self.id, kind)] = content


def store(name):
    return path("store/" + name)


def cache(name):
    return ["--symbol-cache", store(name)]


def fetched(name):
    return sorted(os.listdir(store(name) + "/fetched")) if os.path.isdir(store(name) + "/fetched") else []


def quality(name):
    done = run("symbols", "ls", *cache(name), "--format", "json", check=0)
    return {entry["build_id"]: entry.get("quality") for entry in json.loads(done.stdout)["entries"]}


def perf_record(program, name):
    """With build-ids in the records, and nothing put into perf's cache."""
    need_sampling()
    data = path(name)
    subprocess.run([find_perf(), "record", "-q", "-N", "--buildid-mmap", "-F", "999", "-e", "cpu-clock", "-o", data, "--",
                    program.stripped], check=True, capture_output=True)
    return data


def warnings(done):
    return [line for line in done.stderr.splitlines() if "warning: " in line]


def fetch(name, url, *words, check=0, env=None, timeout=120):
    return run("symbols", "fetch", *cache(name), "--debuginfod=" + url, *words, check=check, env=env, timeout=timeout)


def frames_at(name, program, *words, env=None):
    done = run("symbols", "show", program.id, hex(program.hot + 4), *cache(name), *words, "--format", "json", check=0,
               env=env)
    return [(f["name"], os.path.basename(f["file"] or "")) for f in json.loads(done.stdout)["addresses"][0]["frames"]]


def test_symbols_are_fetched_from_debians_server():
    program = Program("debian")
    files = path("served")
    os.makedirs(files)
    shutil.copy(program.debug, files)
    shutil.copy(program.stripped, files)
    with Debuginfod(files, 2) as server:
        done = fetch("debian.cache", server.url, program.stripped)
        assert not warnings(done), done.stderr
        assert "dwarf" in done.stdout.decode() and program.id in done.stdout.decode()
        assert fetched("debian.cache") == [program.id + ".debuginfo"]
        # By its build-id alone: the executable tells where its segments are.
        done = fetch("debian.id", server.url, program.id, "--format", "json")
        entries = json.loads(done.stdout)["entries"]
        assert [(e["build_id"], e["quality"]) for e in entries] == [(program.id, "dwarf")], entries
        assert fetched("debian.id") == [program.id + ".debuginfo", program.id + ".executable"]
        done = fetch("debian.id", server.url, "00112233445566778899", check=69)
        assert "[E507, exit 69]" in done.stderr, done.stderr
        assert fetched("debian.id")[0] == "00112233445566778899.executable.absent"
    # What was fetched is there without the server, and so are its symbols.
    assert frames_at("debian.cache", program) == [("hot", "program.c")]
    for name in glob.glob(store("debian.id") + "/*.sym"):
        os.unlink(name)
    done = fetch("debian.id", server.url, program.id)
    assert "dwarf" in done.stdout.decode() and not warnings(done), done.stderr


# mode: (part of the warning, seconds that it may take); None: no server failed
BAD = {
    "absent": (None, 5),
    "gone": (None, 5),
    "error": ("returned error: 500", 5),
    "busy": ("returned error: 503", 5),
    "forbidden": ("returned error: 403", 5),
    "page": ("it sent a web page", 5),
    "half": ("bytes remaining", 5),
    "halfstated": ("it sent half a file", 5),
    "halfunstated": ("it sent half a file", 5),
    "headonly": ("it sent a damaged ELF file", 5),
    "empty": ("it sent nothing", 5),
    "other": ("it sent a file of another build-id", 5),
    "trickle": ("was too slow", 40),
    "loop": ("failed: ", 20),
    "file": ("failed: ", 5),
    "huge": ("too large to fetch", 5),
    "hang": ("did not answer in 5s", 10),
    "garbage": ("failed: ", 5),
}


def check_bad(program, url, mode, want, seconds, failures):
    try:
        started = time.monotonic()
        name = "bad." + mode
        done = fetch(name, url, program.stripped, check=69 if want and mode != "huge" else 0)
        took = time.monotonic() - started
        assert took < seconds, "%.1f s" % took
        assert quality(name) == {program.id: "dynsym"}, quality(name)
        files = fetched(name)
        assert not [f for f in files if not f.endswith(".absent") and f != "paused"], files
        is_absent = program.id + ".debuginfo.absent" in files
        if want is None:
            assert is_absent and not warnings(done), (files, done.stderr)
        else:
            assert not is_absent, files
            assert len(warnings(done)) == 1 and want in warnings(done)[0], done.stderr
            assert mode == "huge" or "[W501]" in done.stderr, done.stderr
    except Exception as error:
        failures.append("%s: %s" % (mode, error))


def test_bad_servers_cost_their_time_and_leave_nothing():
    program = Program("bad")
    failures = []
    with Rogue() as rogue:
        program.give(rogue)
        urls = {mode: rogue.url(mode) for mode in BAD}
        wanted = dict(BAD)
        urls["refused"], wanted["refused"] = "http://127.0.0.1:%d" % free_port(), ("connect", 5)
        urls["noname"], wanted["noname"] = "http://nosuch.invalid", ("nosuch.invalid failed: ", 10)
        # More at a time would make this machine the slow server.
        gate = threading.Semaphore(4)

        def work(mode):
            with gate:
                check_bad(program, urls[mode], mode, *wanted[mode], failures)
        threads = [threading.Thread(target=work, args=(mode,)) for mode in urls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures, "\n".join(failures)
        assert len(rogue.asked("half")) == 1, rogue.asked("half")


def test_file_without_end_stops_at_the_size_that_files_may_have():
    """The limit of the shell stands for 2 GiB."""
    program = Program("endless")
    with Rogue() as rogue:
        program.give(rogue)
        import resource
        limit = 8 << 20
        done = run("symbols", "fetch", *cache("endless.cache"), "--debuginfod=" + rogue.url("endless"), program.stripped,
                   check=69, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        assert "[W501]" in done.stderr, done.stderr
        assert not fetched("endless.cache"), fetched("endless.cache")


def test_one_good_server_among_bad_ones_is_enough():
    program = Program("mixed")
    with Rogue() as rogue:
        program.give(rogue)
        urls = " ".join(rogue.url(mode) for mode in ("error", "absent", "late"))
        done = fetch("mixed.cache", "ima:enforcing " + urls + " " + rogue.url("error") + "/", program.stripped)
        assert quality("mixed.cache") == {program.id: "dwarf"}
        assert len(rogue.asked("error")) == 1 and len(rogue.asked("late")) == 1
        # One says "not here", the other fails: that is no proof.
        done = fetch("unproven", rogue.url("absent") + " " + rogue.url("error"), program.stripped, check=69)
        assert fetched("unproven") == [], fetched("unproven")
        assert "[W501]" in done.stderr and "[E507, exit 69]" in done.stderr, done.stderr


def make_programs(n, prefix):
    return [Program("%s%d" % (prefix, i), 1000 + i) for i in range(n)]


def test_server_that_hangs_is_left_alone():
    need_sampling()
    programs = make_programs(12, "many")
    with Rogue() as rogue:
        for program in programs:
            program.give(rogue)
        started = time.monotonic()
        done = fetch("many.cache", rogue.url("hang"), *[p.stripped for p in programs], check=69)
        took = time.monotonic() - started
        assert 4 < took < 9, took
        assert len(rogue.asked("hang")) == 8, rogue.asked("hang")
        lines = warnings(done)
        assert len(lines) == 1, done.stderr
        assert "did not answer in 5s; paused 10m, using local symbols only (12 build IDs waiting) [W501]" in lines[0], lines
        # A later run remembers, and says so without asking.
        data = path("many.data")
        run("record", "-F", "499", "-o", data, "--", programs[0].stripped, check=0)
        started = time.monotonic()
        done = run("convert", data, "-o", path("many.pb.gz"), "--trust-paths", *cache("many.cache"),
                   "--debuginfod=" + rogue.url("hang"), check=0)
        assert time.monotonic() - started < 4
        assert len(rogue.asked("hang")) == 8
        assert "still paused for" in done.stderr, done.stderr
        # Another server is not paused with it.
        run("convert", data, "-o", path("many.pb.gz"), *cache("many.cache"), "--debuginfod=" + rogue.url("good"), check=0)
        assert quality("many.cache")[programs[0].id] == "dwarf"


def test_what_is_not_there_is_asked_for_once():
    need_sampling()
    program = Program("absent")
    data = path("absent.data")
    run("record", "-F", "499", "-o", data, "--", program.stripped, check=0)
    with Rogue() as rogue:
        def convert(mode="absent"):
            return run("convert", data, "-o", path("absent.pb.gz"), *cache("absent.cache"),
                       "--debuginfod=" + rogue.url(mode), check=0)
        convert()
        asked = len(rogue.asked("absent"))
        assert asked and [p for p in rogue.asked("absent") if program.id in p]
        convert()
        assert len(rogue.asked("absent")) == asked, rogue.asked("absent")[asked:]
        # Another server may know better, and asking by name asks again.
        convert("gone")
        assert len(rogue.asked("gone")) == asked
        fetch("absent.cache", rogue.url("absent"), program.stripped)
        assert len(rogue.asked("absent")) == asked + 1
        # So does time.
        mark = store("absent.cache") + "/fetched/%s.debuginfo.absent" % program.id
        text = open(mark).read().split("\n")
        assert 590 < int(text[1].split()[1]) / 1e9 - time.time() < 601, text
        text[1] = "until %d" % (time.time_ns() - 1)
        write(mark, "\n".join(text).encode())
        convert()
        assert len([p for p in rogue.asked("absent") if program.id in p]) == 3


def test_binary_that_is_gone_is_named_from_servers():
    program = Program("gone")
    data = perf_record(program, "gone.data")
    os.unlink(program.stripped)
    os.rename(program.whole, path("elsewhere"))
    plain = run("convert", data, "-o", path("gone.pb.gz"), *cache("gone.plain"), check=0)
    assert "hot" not in Profile(path("gone.pb.gz")).names()
    with Rogue() as rogue:
        rogue.files[(program.id, "executable")] = open(path("elsewhere"), "rb").read()
        subprocess.run(["strip", "-s", "-o", path("gone.exe"), path("elsewhere")], check=True)
        rogue.files[(program.id, "executable")] = open(path("gone.exe"), "rb").read()
        rogue.files[(program.id, "debuginfo")] = open(program.debug, "rb").read()
        run("convert", data, "-o", path("gone.pb.gz"), *cache("gone.cache"), "--debuginfod=" + rogue.url("good"), check=0)
    profile = Profile(path("gone.pb.gz"))
    share = sum(v[0] for names, v, _ in profile.samples if "hot" in names) / profile.total()
    assert share > 0.8, share
    # The profile says which binary it was, and it can be fetched for from there.
    assert program.stripped in profile.mappings
    for source in (path("gone.pb.gz"), data):
        with Rogue() as rogue:
            program.stripped = path("gone.exe")
            program.give(rogue)
            done = fetch("gone." + os.path.basename(source), rogue.url("good"), source)
            assert program.id in done.stdout.decode(), done.stdout
            assert quality("gone." + os.path.basename(source))[program.id] == "dwarf"


def test_replaced_binary_is_fetched_not_taken():
    program, other = Program("replaced"), Program("other", 77)
    data = perf_record(program, "replaced.data")
    with Rogue() as rogue:
        program.give(rogue)
        shutil.copy(other.stripped, program.stripped)
        run("convert", data, "-o", path("replaced.pb.gz"), *cache("replaced.cache"), "--debuginfod=" + rogue.url("good"),
            check=0)
        assert "hot" in Profile(path("replaced.pb.gz")).names()
        assert not [p for p in rogue.requests if other.id in p]


def test_recording_fetches_at_its_end():
    need_sampling()
    program = Program("live")
    with Rogue() as rogue:
        program.give(rogue)
        run("record", "-F", "999", "-o", path("live.pb.gz"), *cache("live.cache"), "--debuginfod=" + rogue.url("good"),
            "--", program.stripped, check=0)
        assert "hot" in Profile(path("live.pb.gz")).names()
        started = time.monotonic()
        done = run("record", "-F", "999", "-o", path("live.pb.gz"), *cache("live.late"),
                   "--debuginfod=" + rogue.url("hang"), "--debuginfod-wait", "2", "--", program.stripped, check=0)
        assert "[W505]" in done.stderr, done.stderr
        assert "hot" not in Profile(path("live.pb.gz")).names() and Profile(path("live.pb.gz")).total() > 10


def test_signal_ends_fetching_and_keeps_the_recording():
    need_sampling()
    program = Program("signalled")
    with Rogue() as rogue:
        program.give(rogue)
        process = subprocess.Popen([binary, "record", "-F", "999", "-o", path("signalled.pb.gz"), *cache("signalled"),
                                    "--debuginfod=" + rogue.url("hang"), "--", program.stripped],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        try:
            wait_until(lambda: rogue.asked("hang"), "it asks")
            started = time.monotonic()
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=30)
            assert time.monotonic() - started < 3
        finally:
            end(process)
        assert Profile(path("signalled.pb.gz")).total() > 10


def test_nothing_is_sent_unless_it_is_asked_for():
    need_sampling()
    program = Program("private")
    data = path("private.data")
    with Rogue() as rogue:
        program.give(rogue)
        env = dict(os.environ, DEBUGINFOD_URLS=rogue.url("good"))
        run("record", "-F", "499", "-o", data, "--", program.stripped, check=0, env=env)
        run("record", "-F", "499", "-o", path("private.pb.gz"), *cache("private"), "--", program.stripped, check=0, env=env)
        run("convert", data, "-o", path("private.pb.gz"), *cache("private"), check=0, env=env)
        run("report", data, *cache("private"), check=0, env=env)
        run("symbols", "add", program.stripped, *cache("private"), check=0, env=env)
        run("symbols", "show", program.stripped, *cache("private"), check=0, env=env)
        assert rogue.requests == []
        # Asked for, what goes is the build-id and the kind of file.
        run("convert", data, "-o", path("private.pb.gz"), *cache("private"), "--debuginfod", check=0, env=env)
        assert "/good/buildid/%s/debuginfo" % program.id in rogue.requests
        for request, headers in zip(rogue.requests, rogue.header_lines):
            parts = request.split("/")
            assert len(parts) == 5 and parts[4] in ("debuginfo", "executable"), request
            assert set(headers) <= {"Host", "User-Agent", "Accept", "Accept-Encoding", "X-DEBUGINFOD-MAXSIZE"}, headers
        # Ids that are not GNU's stay here.
        before = len(rogue.requests)
        nameless = path("nameless")
        subprocess.run(["gcc", "-O1", "-Wl,--build-id=none", "-o", nameless, path("program.c")], check=True)
        subprocess.run(["strip", "-s", nameless], check=True)
        run("symbols", "fetch", nameless, *cache("private"), check=0, env=env)
        short = path("short")
        subprocess.run(["gcc", "-O1", "-Wl,--build-id=0x12345678", "-o", short, path("program.c")], check=True)
        subprocess.run(["strip", "-s", short], check=True)
        run("symbols", "fetch", short, *cache("private"), check=0, env=env)
        if shutil.which("go"):
            write(path("m.go"), b"package main\nfunc main() { println(1) }\n")
            # Newer linkers write a GNU build-id unless they are told not to, older ones never do.
            built = subprocess.run(["go", "build", "-ldflags=-s -w -B none", "-o", path("m"), path("m.go")], capture_output=True,
                                   env=dict(os.environ, GOCACHE=path("gocache"), HOME=there, GOFLAGS="-mod=mod"))
            if built.returncode == 0:
                run("symbols", "fetch", path("m"), *cache("private"), env=env)
        assert len(rogue.requests) == before, rogue.requests[before:]


def test_missing_library_is_said():
    need_root()
    need("unshare", "mount", "ldconfig")
    program = Program("nolibrary")
    listed = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True).stdout.splitlines()
    library = [line.split("=> ")[1] for line in listed if "libdebuginfod.so.1" in line and "=> " in line]
    if not library:
        raise Skip("no libdebuginfod to hide")
    with Rogue() as rogue:
        program.give(rogue)
        hide = 'mount --bind /dev/null "$0" && exec "$@"'
        done = subprocess.run(["unshare", "-m", "sh", "-c", hide, os.path.realpath(library[0]), binary, "symbols", "fetch",
                               program.stripped, *cache("nolibrary"), "--debuginfod=" + rogue.url("good")],
                              capture_output=True, text=True)
        if "unshare" in done.stderr or "mount:" in done.stderr:
            raise Skip("no mount namespace: " + done.stderr.strip())
        assert done.returncode == 69 and "[W502]" in done.stderr and "libdebuginfod1" in done.stderr, done.stderr
        assert rogue.requests == [] and quality("nolibrary") == {program.id: "dynsym"}


def test_headers_of_the_user_are_sent():
    program = Program("headers")
    secret = write(path("headers.txt"), b"X-Token: abc\n\nX-Other: d e\n")
    os.chmod(secret, 0o600)
    with Rogue() as rogue:
        program.give(rogue)
        fetch("headers.cache", rogue.url("good"), program.stripped, env=dict(os.environ, DEBUGINFOD_HEADERS_FILE=secret))
        assert rogue.header_lines[0].get("X-Token") == "abc" and rogue.header_lines[0].get("X-Other") == "d e"


def test_servers_have_to_be_named():
    env = {k: v for k, v in os.environ.items() if k != "DEBUGINFOD_URLS"}
    program = Program("unnamed")
    for words, variables in ((["--debuginfod"], {}), (["--debuginfod="], {}), (["--debuginfod"], {"DEBUGINFOD_URLS": "  "}),
                             (["--debuginfod=ftp://a.example"], {}), (["--debuginfod=file:///etc"], {}),
                             (["--debuginfod=a.example"], {}), (["--debuginfod=ima:enforcing"], {}),
                             (["--debuginfod=http://"], {})):
        done = run("symbols", "add", program.stripped, *cache("unnamed"), *words, env=dict(env, **variables), check=2)
        assert "[E503, exit 2]" in done.stderr and "fix:" in done.stderr, done.stderr
    done = run("symbols", "fetch", program.stripped, *cache("unnamed"), env=env, check=2)
    assert "[E503, exit 2]" in done.stderr
    checks = {c["name"]: c for c in json.loads(run("doctor", "--json", env=env).stdout)["checks"]}
    assert "debuginfod" not in checks
    for urls, status in (("http://a.example/ ima:ignore https://b.example", "ok"), ("gopher://a", "warn")):
        doctor = run("doctor", "--json", env=dict(env, DEBUGINFOD_URLS=urls))
        checks = {c["name"]: c for c in json.loads(doctor.stdout)["checks"]}
        assert checks["debuginfod"]["status"] == status, checks["debuginfod"]


def workers_of(process):
    children = {}
    for pid in shown_processes("perfpipe-fetch"):
        try:
            children[pid] = int(open("/proc/%d/stat" % pid).read().rsplit(")", 1)[1].split()[1])
        except OSError:
            pass
    houses = [pid for pid, parent in children.items() if parent == process.pid]
    return houses, [pid for pid, parent in children.items() if parent in houses]


def start_fetch(name, url, *words):
    return subprocess.Popen([binary, "symbols", "fetch", *cache(name), "--debuginfod=" + url, *words],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)


def test_fetcher_holds_no_rights():
    program = Program("rights")
    with Rogue() as rogue:
        program.give(rogue)
        process = start_fetch("rights.cache", rogue.url("hang"), program.stripped)
        try:
            wait_until(lambda: rogue.asked("hang") and workers_of(process)[1], "a worker asks")
            houses, workers = workers_of(process)
            for pid in houses + workers:
                status = dict(line.split(":", 1) for line in open("/proc/%d/status" % pid).read().splitlines())
                for set_of in ("CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb"):
                    assert int(status[set_of], 16) == 0 or (os.geteuid() and set_of == "CapBnd"), (set_of, status[set_of])
                assert status["NoNewPrivs"].strip() == "1" and status["Seccomp"].strip() == "2"
                if os.geteuid() == 0:
                    assert set(status["Uid"].split()) == {"65534"}, status["Uid"]
                limits = open("/proc/%d/limits" % pid).read()
                assert "Max core file size        0" in limits
            out, err = process.communicate(timeout=30)
            assert process.returncode == 69, err
        finally:
            end(process)
        assert not [p for p in houses + workers if os.path.exists("/proc/%d" % p)]


def test_killed_fetcher_costs_no_more_than_its_files():
    program = Program("killed")
    with Rogue() as rogue:
        program.give(rogue)
        for target in ("worker", "house"):
            process = start_fetch("killed." + target, rogue.url("hang"), program.stripped)
            try:
                for _ in range(3):
                    if process.poll() is not None:
                        break
                    try:
                        wait_until(lambda: process.poll() is not None or workers_of(process)[1], "a worker", 10)
                    except AssertionError:
                        break
                    houses, workers = workers_of(process)
                    time.sleep(0.2)
                    for pid in (workers if target == "worker" else houses):
                        try:
                            os.kill(pid, signal.SIGKILL)
                        except ProcessLookupError:
                            pass
                out, err = process.communicate(timeout=30)
            finally:
                end(process)
            assert process.returncode == 69, err
            assert quality("killed." + target) == {program.id: "dynsym"}
            assert fetched("killed." + target) == [], fetched("killed." + target)
            assert not workers_of(process)[0]


def test_what_a_killed_run_left_is_swept():
    program = Program("swept")
    with Rogue() as rogue:
        program.give(rogue)
        process = start_fetch("swept.cache", rogue.url("hang"), program.stripped)
        wait_until(lambda: rogue.asked("hang"), "a worker asks")
        left = [name for name in fetched("swept.cache") if name.startswith("work-")]
        assert len(left) == 1, fetched("swept.cache")
        houses, workers = workers_of(process)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        wait_until(lambda: not [p for p in houses + workers if os.path.exists("/proc/%d/exe" % p)], "its helpers are gone")
        old = time.time() - 3600
        os.utime(store("swept.cache") + "/fetched/" + left[0], (old, old))
        write(store("swept.cache") + "/fetched/.new-12345678", b"half")
        os.utime(store("swept.cache") + "/fetched/.new-12345678", (old, old))
        fetch("swept.cache", rogue.url("good"), program.stripped)
        assert fetched("swept.cache") == [program.id + ".debuginfo"], fetched("swept.cache")


def test_two_runs_fetch_the_same_id_at_once():
    program = Program("twice")
    with Rogue() as rogue:
        program.give(rogue)
        runs = [start_fetch("twice.cache", rogue.url("late"), program.stripped, program.id) for _ in range(4)]
        for process in runs:
            out, err = process.communicate(timeout=60)
            assert process.returncode == 0 and not err, err
            assert b"dwarf" in out
        assert fetched("twice.cache") == [program.id + ".debuginfo"], fetched("twice.cache")
        assert os.stat(store("twice.cache") + "/fetched/%s.debuginfo" % program.id).st_size == os.stat(program.debug).st_size


def test_no_cache_leaves_nothing():
    need_sampling()
    program = Program("nocache")
    data, temporary = path("nocache.data"), path("tmp")
    os.makedirs(temporary)
    run("record", "-F", "999", "-o", data, "--", program.stripped, check=0)
    with Rogue() as rogue:
        program.give(rogue)
        env = dict(os.environ, TMPDIR=temporary, XDG_CACHE_HOME=path("xdg"), HOME=path("home"))
        run("convert", data, "-o", path("nocache.pb.gz"), "--no-symbol-cache", "--debuginfod=" + rogue.url("good"), check=0,
            env=env)
    assert "hot" in Profile(path("nocache.pb.gz")).names()
    assert os.listdir(temporary) == [] and not os.path.exists(path("xdg"))


def test_better_file_replaces_poorer_one():
    """FR-28: what is held first, and is poor, keeps nobody from looking further."""
    program = Program("better")
    root = path("better.root")
    link = "%s/.build-id/%s/%s.debug" % (root, program.id[:2], program.id[2:])
    os.makedirs(os.path.dirname(link))
    subprocess.run(["objcopy", "--only-keep-debug", "--strip-debug", program.whole, link], check=True)
    run("symbols", "add", program.stripped, *cache("better"), check=0)
    assert quality("better")[program.id] == "dynsym"
    run("symbols", "add", program.stripped, *cache("better"), "--debug-root", root, check=0)
    assert "symtab" in quality("better").values()
    with Rogue() as rogue:
        program.give(rogue)
        fetch("better", rogue.url("good"), program.stripped, "--debug-root", root)
        assert quality("better")[program.id] == "dwarf"
        # With DWARF at hand nobody is asked.
        asked = len(rogue.requests)
        second = "%s/%s/%s" % (root, program.id[:2], program.id[2:])
        os.makedirs(second)
        shutil.copy(program.debug, second + "/debuginfo")
        done = fetch("better.local", rogue.url("good"), program.stripped, "--debug-root", root)
        assert quality("better.local")[program.id] == "dwarf" and len(rogue.requests) == asked


def test_caches_of_others_are_read():
    program = Program("cached")
    data = perf_record(program, "cached.data")
    executable = open(program.stripped, "rb").read()
    debug = open(program.debug, "rb").read()
    os.unlink(program.stripped)
    home = path("cached.home")
    ab, rest = program.id[:2], program.id[2:]

    def put(*files):
        shutil.rmtree(home, ignore_errors=True)
        for name, content in files:
            os.makedirs(os.path.dirname(os.path.join(home, name)), exist_ok=True)
            write(os.path.join(home, name), content)

    def names(count, **variables):
        env = {k: v for k, v in os.environ.items() if k not in ("XDG_CACHE_HOME", "DEBUGINFOD_CACHE_PATH", "PERF_BUILDID_DIR")}
        env.update(HOME=home, **variables)
        run("convert", data, "-o", path("cached.pb.gz"), *cache("cached.%d" % count), check=0, env=env)
        return Profile(path("cached.pb.gz")).names()
    whole = open(program.whole, "rb").read()
    # perf's cache: a link by build-id to a folder that holds the file.
    put((".debug/app/%s/elf" % program.id, whole))
    os.makedirs(home + "/.debug/.build-id/" + ab)
    os.symlink("../../app/" + program.id, home + "/.debug/.build-id/%s/%s" % (ab, rest))
    assert "hot" in names(1)
    # Its older form: a link to the file.
    put((".debug/app/" + program.id, whole))
    os.makedirs(home + "/.debug/.build-id/" + ab)
    os.symlink("../../app/" + program.id, home + "/.debug/.build-id/%s/%s" % (ab, rest))
    assert "hot" in names(2)
    clients = [(".debuginfod_client_cache", {}), (".cache/debuginfod_client", {}),
               ("xdg/debuginfod_client", {"XDG_CACHE_HOME": home + "/xdg"}), ("mine", {"DEBUGINFOD_CACHE_PATH": home + "/mine"})]
    for i, (folder_name, variables) in enumerate(clients):
        put((folder_name + "/%s/executable" % program.id, executable), (folder_name + "/%s/debuginfo" % program.id, debug))
        assert "hot" in names(10 + i, **variables), folder_name
    # Negative entries of that cache are empty files; another build is never taken.
    put((".debuginfod_client_cache/%s/executable" % program.id, b""), (".cache/debuginfod_client/%s/executable" % program.id,
                                                                       open("/bin/true", "rb").read()))
    assert "hot" not in names(20)
    if os.geteuid() == 0:
        put((".debuginfod_client_cache/%s/executable" % program.id, whole))
        os.chown(home + "/.debuginfod_client_cache/%s/executable" % program.id, 1234, 1234)
        assert "hot" not in names(21)
    # Layout of symbol servers below a debug root.
    shutil.rmtree(home)
    os.makedirs(home + "/root/%s/%s" % (ab, rest))
    write(home + "/root/%s/%s/executable" % (ab, rest), executable)
    write(home + "/root/%s/%s/debuginfo" % (ab, rest), debug)
    run("convert", data, "-o", path("cached.pb.gz"), *cache("cached.30"), "--debug-root", home + "/root", check=0)
    assert "hot" in Profile(path("cached.pb.gz")).names()


def test_shared_debug_file_of_dwz_is_fetched_too():
    need("dwz")
    a, b = Program("dwza", 5), Program("dwzb", 6)
    done = subprocess.run(["dwz", "-m", path("common.dwz"), a.debug, b.debug], capture_output=True, text=True)
    if done.returncode or not os.path.exists(path("common.dwz")):
        # Small programs may share nothing that pays.
        raise Skip("dwz made no common file: " + done.stderr)
    with Rogue() as rogue:
        a.give(rogue)
        common = build_id(path("common.dwz"))
        rogue.files[(common, "debuginfo")] = open(path("common.dwz"), "rb").read()
        os.unlink(path("common.dwz"))
        fetch("dwz.cache", rogue.url("good"), a.stripped)
        assert quality("dwz.cache")[a.id] == "dwarf"
        assert frames_at("dwz.cache", a) == [("hot", "program.c")]
        assert fetched("dwz.cache") == sorted([a.id + ".debuginfo", common + ".debuginfo"]), fetched("dwz.cache")


main(globals())
