# SPDX-License-Identifier: Apache-2.0
"""Names of code that JIT compilers make: perf maps and jitdumps of a program of ours, of node and of
CPython, live and recorded, in namespaces, and files that are not to be believed."""
from support_jit import *

try:
    need_sampling()
    need("gcc")
except Skip as why:
    print("skipped: %s" % why)
    sys.exit(77)

HZ = ["-F", "499"]


def out(name="p.pb.gz"):
    return os.path.join(folder(), name)


def need_namespaces():
    """Where / is no mount point, as after chroot, unshare cannot make it private."""
    probe = subprocess.run(["unshare", "-mpf", "--mount-proc", "true"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if probe.returncode:
        raise Skip("no namespaces here: " + probe.stderr.strip())


def record(*command, words=(), cwd=None, check=0):
    """A recording of the command, and perfpipe's messages."""
    path = out()
    done = run("record", *HZ, *words, "-o", path, "--", *command, check=check, cwd=cwd)
    return Recording(path), done.stderr


def check_named(recording, shares, slack=0.15):
    """The program's leaves have these names, each with about its share of the samples."""
    flat = recording.flat()
    of_code = {name: n for name, n in flat.items() if name in shares or name == "[anon]"}
    total = sum(of_code.values())
    assert total > 20, flat
    for name, share in shares.items():
        found = of_code.get(name, 0) / total
        assert abs(found - share) < slack, (name, found, share, of_code)
    assert of_code.get("[anon]", 0) <= 0.02 * total, of_code


def function_files(path):
    """{(name, file, start line)} and {(name, line)} of a profile."""
    raw = Pprof(path)
    functions = {f[1]: (raw.text(f.get(2, 0)), raw.text(f.get(4, 0)), f.get(5, 0)) for f in raw.functions}
    lines = {(functions[m[1]][0], m.get(2, 0)) for l in raw.locations for m in (message(line) for line in l[4])}
    return set(functions.values()), lines


# --- perf maps ---

def test_map_names_change_over_time():  # FR-51
    recording, messages = record(jit_program(), "map:first name", "spin:700", "map:second name", "spin:700")
    check_named(recording, {"first name": 0.5, "second name": 0.5}, 0.25)
    assert {f.mapping for frames, _, _ in recording.stacks for f in frames if f.name == "second name"} == {"[jit]"}
    assert "W617" not in messages, messages


def test_a_half_written_line_waits_and_odd_ones_do_no_harm():
    recording, _ = record(jit_program(), "raw:garbage\n0x10 0x\n", "map:whole", "raw:%s" % "0 fffffffffffff hal",
                          "spin:500")
    check_named(recording, {"whole": 1})
    assert recording.comment("jit_names_malformed") == 2, recording.comments


def test_map_that_grows_while_it_is_read():
    recording, _ = record(jit_program(), "map:steady", "flood:1500", "spin:100")
    check_named(recording, {"steady": 1})


def test_without_symbols_there_are_none():
    recording, _ = record(jit_program(), "map:name", "spin:300", words=["--no-symbols"])
    assert "[anon]" in recording.flat() and "name" not in recording.flat()


def test_child_has_the_names_of_its_parent():  # FR-55
    recording, _ = record(jit_program(), "map:inherited", "spin:100", "fork", "spin:600")
    check_named(recording, {"inherited": 1})
    assert len({labels["pid"] for frames, _, labels in recording.stacks if frames[0].name == "inherited"}) == 2


def test_map_of_a_pid_namespace():  # FR-50
    need_namespaces()
    need_root()
    need("unshare")
    recording, _ = record("unshare", "-pf", "--mount-proc", jit_program(), "map:inside", "spin:500")
    check_named(recording, {"inside": 1})


def test_map_in_a_tmp_that_goes_with_its_process():  # FR-50
    need_namespaces()
    need_root()
    need("unshare", "mount")
    place = tempfile.mkdtemp(dir="/var/tmp", prefix="perfpipe-e2e-")
    try:
        program = shutil.copy(jit_program(), place)
        recording, _ = record("unshare", "-mpf", "--mount-proc", "sh", "-c",
                              "mount -t tmpfs tmpfs /tmp && exec %s map:private spin:500" % program)
        check_named(recording, {"private": 1})
    finally:
        shutil.rmtree(place)


# --- files that are not to be believed ---

def record_hostile(prepare):
    """Samples the program while something else stands where its map would be."""
    workload = Workload(jit_program(), "wait", "spin:600")
    map_path = "/tmp/perf-%s.map" % workload.line()
    code = b"1000 7fffffffffff wrong\n"
    path = out()
    try:
        prepare(map_path, code)
        recorder = Recorder("record", *HZ, "-o", path, "-p", str(workload.pid)).ready()
        workload.go()
        workload.wait()
        messages = recorder.wait(30)
    finally:
        workload.kill()
        if os.path.isdir(map_path):
            os.rmdir(map_path)
        elif os.path.lexists(map_path):
            os.unlink(map_path)
    recording = Recording(path)
    assert recording.check_conservation() > 20
    return recording, messages


def check_refused(prepare, why):
    recording, messages = record_hostile(prepare)
    assert "wrong" not in recording.flat() and "[anon]" in recording.flat(), recording.flat()
    assert "W617" in messages and why in messages, messages
    assert any(text.startswith("JIT map not used: 1 (") and why in text for text in recording.comments), recording.comments


def write_with(path, content, mode=0o644, owner=None, size=None):
    write(path, content)
    os.chmod(path, mode)
    if owner is not None:
        os.chown(path, owner, -1)
    if size:
        os.truncate(path, size)


def test_map_that_is_believed():
    recording, messages = record_hostile(lambda path, code: write_with(path, code))
    check_named(recording, {"wrong": 1})
    assert "W617" not in messages, messages


def test_map_of_another_user_is_refused():
    need_root()
    check_refused(lambda path, code: write_with(path, code, owner=12345), "owned by another user")


def test_map_that_others_may_write_to_is_refused():
    check_refused(lambda path, code: write_with(path, code, mode=0o666), "other users may write to it")


def test_map_that_is_a_link_is_refused():
    check_refused(lambda path, code: os.symlink("/etc/shadow", path), "a link")


def test_map_that_is_a_fifo_stops_nothing():
    check_refused(lambda path, code: os.mkfifo(path), "not a regular file")


def test_map_of_a_gibibyte_is_refused():
    check_refused(lambda path, code: write_with(path, code, size=1 << 30), "too large")


# --- jitdumps ---

def test_dump_code_replaced_at_its_address():
    where = folder()
    recording, _ = record(jit_program(), "lines:7:/src/a.kt", "load:first", "spin:600", "lines:9:/src/b.kt", "load:second",
                          "spin:600", cwd=where)
    check_named(recording, {"first": 0.5, "second": 0.5}, 0.1)


def test_dump_written_late():
    recording, _ = record(jit_program(), "load:first", "spin:500", "late:second", "spin:500", "late:third", "spin:500",
                          cwd=folder())
    check_named(recording, {"first": 1 / 3, "second": 1 / 3, "third": 1 / 3}, 0.1)


def test_dump_lines_reach_the_profile():
    where, path = folder(), out()
    run("record", *HZ, "-o", path, "--", jit_program(), "lines:7:/src/a.kt", "load:first", "spin:300", check=0, cwd=where)
    functions, lines = function_files(path)
    assert ("first", "/src/a.kt", 0) in functions, functions
    assert ("first", 7) in lines, lines


def test_dump_code_stays_under_a_later_mapping():  # FR-54
    recording, _ = record(jit_program(), "load:kept", "remap", "spin:400", cwd=folder())
    check_named(recording, {"kept": 1})


def recorded(*command, words=("-k", "mono"), where=None):
    where = where or folder()
    path = os.path.join(where, "perf.data")
    recorder = perf_record(*words, "-g", "-F", "499", "-o", path, "--", *command, cwd=where)
    messages = recorder.wait()
    if recorder.process.returncode != 0:
        raise Skip("perf record: " + messages.strip()[-200:])
    return path


def convert(path, *words):
    target = out()
    return target, run("convert", *words, "-i", path, "-o", target, check=0).stderr


def test_dump_of_a_recording():
    path = recorded(jit_program(), "load:first", "spin:600", "late:second", "spin:600")
    target, messages = convert(path)
    check_named(Recording(target), {"first": 0.5, "second": 0.5}, 0.1)
    again, _ = convert(path)
    assert open(target, "rb").read() == open(again, "rb").read()
    assert "W617" not in messages, messages


def test_dump_on_another_clock_is_refused():  # FR-53
    path = recorded(jit_program(), "load:first", "spin:400", words=())
    target, messages = convert(path)
    recording = Recording(target)
    assert "first" not in recording.flat() and "[anon]" in recording.flat(), recording.flat()
    assert "W617" in messages and "perf record -k mono" in messages, messages


def test_map_of_a_recording():
    path = recorded(jit_program(), "map:early", "map:latest", "spin:400", words=())
    target, messages = convert(path)
    check_named(Recording(target), {"latest": 1})
    assert "W617" not in messages, messages
    again, _ = convert(path)
    assert open(target, "rb").read() == open(again, "rb").read()


def test_map_of_a_recording_in_a_container_that_runs_on():  # FR-50
    need_namespaces()
    need_root()
    need("unshare")
    workload = Workload("unshare", "-pf", "--mount-proc", jit_program(), "map:inside", "wait", "spin:500", "wait")
    inner = "/tmp/perf-%s.map" % workload.line()
    path = out("perf.data")
    try:
        pid = open("/proc/%d/task/%d/children" % (workload.pid, workload.pid)).read().split()[0]
        assert inner != "/tmp/perf-%s.map" % pid
        recorder = perf_record("-g", "-F", "499", "-o", path, "-p", pid).ready()
        workload.go()
        workload.line()  # it has worked and waits
        recorder.end()
        target, _ = convert(path)
        workload.go()
        workload.wait()
        gone, _ = convert(path)
    finally:
        workload.kill()
        if os.path.exists(inner):
            os.unlink(inner)
    check_named(Recording(target), {"inside": 1})
    assert "inside" not in Recording(gone).flat()


def test_binaries_of_perf_inject():
    where = folder()
    path = recorded(jit_program(), "load:injected", "spin:400", where=where)
    done = subprocess.run([find_perf(), "inject", "--jit", "-i", path, "-o", path + ".jit"], capture_output=True, cwd=where)
    made = glob.glob(os.path.join(where, "jitted-*.so"))
    if done.returncode or not made:
        raise Skip("this perf cannot inject: " + done.stderr.decode()[-200:])
    target, _ = convert(path + ".jit")
    recording = Recording(target)
    check_named(recording, {"injected": 1})
    assert {f.mapping for frames, _, _ in recording.stacks for f in frames if f.name == "injected"} == set(made)


# --- real runtimes ---

FIB_JS = """
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
const end = Date.now() + 1200; let t = 0;
while (Date.now() < end) t += fib(20);
"""


def node_script():
    need("node")
    return write(os.path.join(folder(), "fib.js"), FIB_JS.encode())


def check_node(recording, script, path=None):
    hot = {name: n for name, n in recording.flat().items() if "fib " + script in name}
    assert sum(hot.values()) > 0.6 * recording.count(), recording.flat()
    assert recording.flat().get("[anon]", 0) < 0.01 * recording.count(), recording.flat()


def test_node_with_a_map():  # FR-09
    script, path = node_script(), out()
    run("record", *HZ, "-o", path, "--", "node", "--perf-basic-prof", script, check=0, cwd=folder())
    check_node(Recording(path), script)
    functions, _ = function_files(path)
    assert any("fib " in name and (file, line) == (script, 2) for name, file, line in functions), functions


def test_node_with_a_map_in_a_container():  # FR-50
    need_namespaces()
    need_root()
    script, place = node_script(), tempfile.mkdtemp(dir="/var/tmp", prefix="perfpipe-e2e-")
    try:
        script = shutil.copy(script, place)
        recording, _ = record("unshare", "-mpf", "--mount-proc", "sh", "-c",
                              "mount -t tmpfs tmpfs /tmp && exec node --perf-basic-prof " + script, cwd=place)
        check_node(recording, script)
    finally:
        shutil.rmtree(place)


def test_node_with_a_dump():
    script = node_script()
    recording, _ = record("node", "--perf-prof", script, cwd=folder())
    check_node(recording, script)


def find_python():
    """An interpreter with -X perf."""
    found = glob.glob(os.path.expanduser("~/.pyenv/versions/3.1[2-9]*/bin/python3")) + \
        [shutil.which(name) for name in ("python3.12", "python3.13", "python3.14") if shutil.which(name)]
    for program in found:
        probe = subprocess.run([program, "-X", "perf", "-c", "import sys; print(sys.is_stack_trampoline_active())"],
                               capture_output=True, text=True)
        if probe.stdout.strip() == "True":
            return program
    raise Skip("no CPython with -X perf")


def test_python_with_a_map():  # FR-55
    script = write(os.path.join(folder(), "spin.py"),
                   b"import time\ndef leaf():\n    return sum(i * i for i in range(9000))\n"
                   b"end = time.monotonic() + 1\nwhile time.monotonic() < end:\n    leaf()\n")
    path = out()
    run("record", *HZ, "-o", path, "--", find_python(), "-X", "perf", script, check=0)
    functions, _ = function_files(path)
    of_script = [name for name, file, _ in functions if name.startswith("py::") and file == script]
    if of_script:
        assert any(name.startswith(("py::leaf", "py::<module>")) for name in of_script), of_script
    else:  # built without frame pointers, so no chain gets as far as that: told
        comments = Recording(path).comments
        assert any(text.startswith("JIT map without frames: 1 (") for text in comments), comments


main(globals())
