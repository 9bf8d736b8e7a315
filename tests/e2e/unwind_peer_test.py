# SPDX-License-Identifier: Apache-2.0
"""Copied stacks unwound by ours and by elfutils' libdwfl, from the same registers and bytes: the same frames, for as
long as libdwfl goes on. Where it goes wrong itself is told in docs/unwind-differences.md."""
from support_recording import record as perf_record_whole
from support_unwind import *

try:
    need_sampling()
    need("gcc")
    find_perf()
    peer = os.path.join(os.path.dirname(binary), "tests", "dwfl_unwind")
    if not os.path.exists(peer):
        raise Skip("dwfl_unwind is not built: libdw-dev is missing")
except Skip as why:
    print("skipped: %s" % why)
    sys.exit(77)

there = folder()
EQUAL_MIN = 0.999
ENDED_MIN = 0.95


def compare(path, least_frames=500, beyond=0):
    """The totals that dwfl_unwind prints; fails unless the frames are the same. beyond: share of frames that only the peer
    has, such as return addresses in no mapping."""
    done = subprocess.run([peer, path, "20"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith("totals "))
    totals = {key: int(n) for key, n in re.findall(r"(\w+)=(\d+)", line)}
    assert totals["peer_frames"] >= least_frames, line
    n_beyond = min(totals["missing"], beyond * totals["peer_frames"])
    assert totals["equal"] >= EQUAL_MIN * (totals["peer_frames"] - n_beyond), done.stdout
    assert totals["skipped"] == 0, line
    return totals


def recorded(name, *command, words=(), stack=32768, hz=1997):
    path = os.path.join(there, name + ".data")
    perf_record_whole("-q", "-e", "cpu-clock", "-F", str(hz), "-m", "8M", "--call-graph", "dwarf,%d" % stack, *words,
                      "-o", path, command=command)
    return path


def check_whole(name, *command, beyond=0, **how):
    """As compare, and nearly all of ours reach the thread's start."""
    totals = compare(recorded(name, *command, **how), beyond=beyond)
    assert totals["ended"] >= ENDED_MIN * totals["samples"], totals


def test_every_linker_and_kind_of_executable():
    flavours = {
        "bfd": ["-fuse-ld=bfd"], "gold": ["-fuse-ld=gold"], "mold": ["-fuse-ld=mold"], "static": ["-static"],
        "static_pie": ["-static-pie"], "no_pie": ["-no-pie"], "cet": ["-fcf-protection=full"], "small": ["-Os"],
        "debug_frame": ["-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-g"],
    }
    ran = 0
    for name, flags in flavours.items():
        try:
            program = build("recursion_" + name, RECURSION_C, *OPTIMIZED, *flags)
        except Skip as why:
            print("without %s: %s" % (name, why))
            continue
        check_whole("recursion_" + name, program)
        ran += 1
    assert ran >= 5, ran


def test_lld_and_clang():
    check_whole("lld", build("recursion_lld", RECURSION_C, *OPTIMIZED, "--ld-path=/usr/bin/ld.lld-14",
                             compiler="clang-14"))


def test_exceptions_and_templates():
    check_whole("exception", build("exception", EXCEPTION_CC, *OPTIMIZED, compiler="g++", suffix=".cc"))


def test_realigned_and_growing_frames():
    program = build("realigned", REALIGNED_C, *OPTIMIZED, "-mavx2", "-mstackrealign")
    check_whole("realigned", program)


def test_signal_handlers_and_longjmp():
    program = build("signals", SIGNAL_C, *OPTIMIZED)
    check_whole("signals", program)
    # On a stack of its own the handler is all that was copied.
    compare(recorded("signals_apart", program, "apart"))


def test_threads():
    check_whole("threads", build("threads", THREADS_C, *OPTIMIZED, "-pthread"))


def test_musl():
    # Its own functions have no call frame information, which ends the stacks of both.
    program = build("recursion_musl", RECURSION_C, *OPTIMIZED, compiler="musl-gcc")
    compare(recorded("recursion_musl", program))


def test_go():
    program = build("recursion_go", GO, compiler="go build", suffix=".go")
    # Behind the start of a goroutine libdwfl takes a word of the stack for one more frame.
    check_whole("go", program, beyond=0.01)


def test_rust():
    program = build("recursion_rust", RUST, "-O", compiler="rustc", suffix=".rs")
    totals = compare(recorded("rust", program))
    assert totals["ended"] >= ENDED_MIN * totals["samples"], totals


def test_python_xz_and_gcc():
    script = "import json\nfor _ in range(60): json.loads(json.dumps({str(i): [i] * 50 for i in range(300)}))\n"
    check_whole("python", "/usr/bin/python3", "-c", script)
    need("xz")
    check_whole("xz", "sh", "-c", "cat '%s' '%s' | xz -6 > /dev/null" % (binary, binary))
    source = os.path.join(there, "large.c")
    with open(source, "w") as out:
        out.write("".join("int f%d(int x) { switch (x) { case %d: return x * 7; default: return f%d(x - 1); } }\n" %
                          (i, i, max(i - 1, 0)) for i in range(1500)))
    check_whole("gcc", "gcc", "-O2", "-w", "-c", source, "-o", "/dev/null")


def test_git():
    need("git")
    script = r"""set -e
cd "$1"; git init -q repo; cd repo
for i in $(seq 1 25); do seq $((i * 1000)) $((i * 1000 + 2000)) > f$i; git add .
git -c user.name=a -c user.email=a@b commit -q -m c$i; done
git log -p --stat > /dev/null; git gc -q; git clone -q "file://$1/repo" ../clone
git rev-list --objects --all | git pack-objects -q --stdout > /dev/null
"""
    path = recorded("git", "sh", "-c", script, "sh", folder(), stack=65528, hz=997)
    totals = compare(path)
    assert totals["ended"] >= ENDED_MIN * totals["samples"], totals


main(globals())
