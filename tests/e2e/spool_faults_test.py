# SPDX-License-Identifier: Apache-2.0
"""The spool killed at every system call, and every system call of it failing once."""
import shutil
from support import *

need("strace")
driver = os.path.join(os.path.dirname(binary), "tests", "spool_driver")
there = folder()
# Those that touch files; what a process does to start is not counted.
CALLS = "openat,write,writev,fsync,renameat,unlinkat,close,pread64,fstat,newfstatat,flock,mkdir,getdents64,statfs,fstatfs"
ERRORS = {"openat": ("EMFILE", "EROFS", "ENOSPC"), "write": ("ENOSPC", "EIO"), "writev": ("ENOSPC", "EIO"),
          "renameat": ("EIO", "EROFS"), "unlinkat": ("EROFS",), "mkdir": ("EROFS",)}


def drive(spool, *words, inject=None):
    """Lines that the driver said, by their first word; and whether it came to its end."""
    command = [driver, spool, *map(str, words)]
    if inject:
        command = ["strace", "-qq", "-o", "/dev/null", "-e", "trace=" + inject.split(":")[0], "-e",
                   "inject=" + inject, *command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    lines = {}
    for line in done.stdout.splitlines():
        word, rest = line.split(" ", 1)
        lines.setdefault(word, []).append(rest)
    # 127: the loader of the driver itself met the fault.
    assert done.returncode in (0, 1, -9, 127, 137), (words, inject, done.returncode, done.stderr)
    return lines, done.returncode


def new_spool():
    spool = os.path.join(there, "spool")
    shutil.rmtree(spool, ignore_errors=True)
    return spool


def waiting(spool):
    lines, code = drive(spool, "list")
    assert code == 0, lines
    found = lines.get("waits", [])
    assert len(found) == len(set(found)), found
    return found


def texts(windows):
    return ["window-%s-request-%d" % (w, r) for w in windows for r in range(3)]


def probe():
    lines, code = drive(new_spool(), "write", 1, inject="fsync:error=EIO:when=1000")
    if code or lines.get("acked") != ["0"]:
        raise Skip("strace cannot inject here")


def kill_everywhere(prepare, words):
    """Runs the driver once for each system call, killed at it: yields the spool and what it said."""
    n_kills = 0
    for call in CALLS.split(","):
        at = 0
        while True:
            at += 1
            spool = new_spool()
            prepare(spool)
            lines, code = drive(spool, *words, inject="%s:signal=KILL:when=%d" % (call, at))
            if code == 0:
                break
            n_kills += 1
            yield spool, lines, (call, at)
    print("%d kills" % n_kills)
    assert n_kills > 40


def test_killed_at_every_call_of_writing_it_keeps_all_that_it_acknowledged():
    probe()
    for spool, lines, where in kill_everywhere(lambda spool: None, ("write", 3)):
        found = waiting(spool)
        acked = lines.get("acked", [])
        wanted = texts(acked)
        # What was not acknowledged may be there, whole; nothing else may.
        assert found[:len(wanted)] == wanted, (where, lines, found)
        assert found[len(wanted):] in ([], texts([len(acked)])), (where, lines, found)
        assert not [f for f in os.listdir(os.path.join(spool, "test")) if f.endswith(".tmp")]


def test_killed_at_every_call_of_delivery_it_loses_nothing_and_repeats_only_the_ambiguous():
    probe()
    for spool, lines, where in kill_everywhere(lambda spool: drive(spool, "write", 2), ("deliver",)):
        found = waiting(spool)
        over = lines.get("over", [])
        unknown = set(lines.get("sending", [])) - set(over)
        left = [t for t in texts("01") if t not in over]
        assert [t for t in found if t not in unknown] == [t for t in left if t not in unknown], (where, lines, found)
        assert len(unknown) <= 1, (where, lines)


def test_any_call_that_fails_once_loses_nothing_acknowledged_and_is_counted():
    probe()
    n_faults = 0
    for call in CALLS.split(","):
        for error in ERRORS.get(call, ("EIO",)):
            for at in range(1, 21):
                spool = new_spool()
                lines, code = drive(spool, "write", 4, inject="%s:error=%s:when=%d" % (call, error, at))
                if "refused" in lines or not lines:
                    continue  # it could not even start, and says so
                acked = lines.get("acked", [])
                kept, lost = map(int, lines["counts"][0].split())
                assert kept == 3 * len(acked), (call, error, at, lines)
                assert kept + lost == 12, (call, error, at, lines)
                # One failure costs one window at most: the rest recovers without a restart.
                assert len(acked) >= 3, (call, error, at, lines)
                assert waiting(spool) == texts(acked), (call, error, at, lines)
                n_faults += 1
    print("%d faults" % n_faults)


def test_a_call_that_fails_once_in_delivery_delivers_all_the_same():
    probe()
    for call in CALLS.split(","):
        for error in ERRORS.get(call, ("EIO",))[:1]:
            for at in range(1, 21):
                spool = new_spool()
                drive(spool, "write", 2)
                lines, code = drive(spool, "deliver", inject="%s:error=%s:when=%d" % (call, error, at))
                if "refused" in lines or not lines:
                    continue
                sent = lines.get("sending", [])
                assert sorted(set(sent)) == texts("01"), (call, error, at, lines)
                assert len(sent) == 6, (call, error, at, lines)


main(globals())
