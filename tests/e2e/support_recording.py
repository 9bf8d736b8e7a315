# SPDX-License-Identifier: Apache-2.0
"""Recordings made by perf on this host, for tests that need real ones."""
import subprocess
import time

from support import Skip, find_perf, need_sampling


def record(*words, command, stdout=None, env=None):
    """perf record WORDS -- COMMAND, outside perf's own build-id cache; stdout: a file for -o -."""
    need_sampling()
    line = [find_perf(), "record", "-N", *words, "--", *command]
    for attempt in range(8):  # perf 6.1 itself dies now and then ("stack smashing detected")
        time.sleep(attempt and 1)
        done = subprocess.run(line, stdout=stdout or subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                              timeout=120, env=env)
        if done.returncode == 0:
            return
        if stdout:
            stdout.seek(0), stdout.truncate()
    raise Skip("perf record %s: %s" % (" ".join(words), done.stderr.decode("utf-8", "replace")[-200:]))


def script(path, fields, *words):
    """Lines of perf script."""
    done = subprocess.run(["perf", "script", "-i", path, "-F", fields, *words], capture_output=True, text=True,
                          errors="replace", timeout=120)
    return done.stdout.splitlines()
