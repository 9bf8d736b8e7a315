# SPDX-License-Identifier: Apache-2.0
"""What the tests of perfpipe push share: profiles to send, a spool of its own for each test, ports where nobody listens."""
import json, os, socket
from support import *
from support_pprof_maker import Maker, field

there = folder()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def made(name, n=500):
    """A pprof file of n samples."""
    path = os.path.join(there, name)
    if not os.path.exists(path):
        data = write(path + ".data", perf_data(n_samples=n))
        run("convert", "-i", data, "-o", path, check=0)
    return path


def profile_bytes(n, size, text=lambda size: "x" * size):
    """A pprof file of n samples, each of a function of its own with a name of that size."""
    maker = Maker([("samples", "count"), ("cpu", "nanoseconds")])
    for i in range(n):
        maker.add(["f%d_" % i + text(size), "main"], [1, 7])
    maker.body += field(11, field(1, maker._text("cpu")) + field(2, maker._text("nanoseconds")))
    return maker.bytes()


class Spool:
    count = 0

    def __init__(self, path=None):
        Spool.count += 1
        self.path = path or os.path.join(there, "spool%d" % Spool.count)

    def push(self, *words, check=0, env=None):
        return run("push", "--spool", self.path, *words, check=check, env=env)

    def start(self, *words):
        """A push that goes on meanwhile."""
        return subprocess.Popen([binary, "push", "--spool", self.path, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def verdicts(self, *words, check=0):
        done = self.push("--format", "json", *words, check=check)
        return [json.loads(line) for line in done.stdout.decode().splitlines()]

    def files(self, *words):
        return json.loads(run("spool", "ls", "--spool", self.path, "--format", "json", *words, check=0).stdout)["files"]
