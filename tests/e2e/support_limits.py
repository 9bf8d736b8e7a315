# SPDX-License-Identifier: Apache-2.0
"""Runs perfpipe inside limits of time and address space and measures its peak memory."""
import os
import re
import resource
import signal
import subprocess
import tempfile
import threading

MIB = 1 << 20
FREE_BYTES = 64 * MIB  # allowed beside four times the input
CPU_S = 20
WALL_S = 60
ADDRESS_SPACE = 2 << 30
CODES = (0, 65, 66, 74)


class Outcome:
    def __init__(self, status, stderr, peak_bytes, is_late, stdout):
        self.code = os.waitstatus_to_exitcode(status)
        self.stderr, self.peak_bytes, self.is_late, self.stdout = stderr, peak_bytes, is_late, stdout

    def faults(self, input_bytes, is_memory_checked=True):
        """What must not happen with any input, as texts."""
        found = []
        if self.is_late:
            found.append("still running after %d s" % WALL_S)
        elif self.code < 0:
            found.append("killed by %s" % signal.Signals(-self.code).name)
        elif self.code not in CODES:
            found.append("exit %d" % self.code)
        if "Sanitizer" in self.stderr or "runtime error" in self.stderr:
            found.append("sanitizer: " + self.stderr[:1500])
        if self.code > 0 and not re.search(r'^(perfpipe: error: |\{"code":"E\d+",)', self.stderr, re.M):
            found.append("exit %d without an error line: %r" % (self.code, self.stderr[:200]))
        limit = 4 * input_bytes + FREE_BYTES
        if is_memory_checked and self.peak_bytes > limit:
            found.append("peak of %.1f MiB, allowed %.1f" % (self.peak_bytes / MIB, limit / MIB))
        return found


def is_sanitized(binary):
    with open(binary, "rb") as f:
        return b"__asan_init" in f.read()


def measure(binary, *words, is_limited=True, stdin_path=None):
    """is_limited: not for sanitizers, which reserve terabytes. The peak includes this Python's own at the fork, so the
    caller keeps that small."""

    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S + 1))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if is_limited:
            resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))

    late = threading.Event()
    with tempfile.TemporaryFile() as err, tempfile.TemporaryFile() as out, open(stdin_path or os.devnull, "rb") as stdin:
        process = subprocess.Popen([binary, *words], stdin=stdin, stdout=out, stderr=err, preexec_fn=limit)

        def stop():
            late.set()
            process.kill()

        timer = threading.Timer(WALL_S, stop)
        timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        timer.cancel()
        err.seek(0), out.seek(0)
        return Outcome(status, err.read(20000).decode("utf-8", "replace"), usage.ru_maxrss * 1024, late.is_set(),
                       out.read(1 << 20))
