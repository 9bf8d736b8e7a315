# SPDX-License-Identifier: Apache-2.0
"""perfpipe run in the background, and its log as data."""
import json, os, signal, socket, subprocess, time
from support import *


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Agent:
    """with Agent("--to", url, spool=DIR) as agent: … agent.end(). Its log is JSON unless words say otherwise."""

    def __init__(self, *words, spool, window="1s", http="none", env=None, **how):
        self.spool = spool
        self.log_path = os.path.join(folder(), "agent-%d-%d.log" % (os.getpid(), time.monotonic_ns()))
        log = open(self.log_path, "wb")
        words = [binary, "run", "--window", window, "--spool", spool, "--http", http, "--log-format", "json", *words]
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log,
                                        env={**os.environ, **(env or {})}, **how)
        log.close()
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *what):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def lines(self, msg=None):
        lines = [json.loads(line) for line in open(self.log_path, encoding="utf-8").read().splitlines()]
        return [line for line in lines if msg is None or line.get("msg") == msg]

    def wait_for(self, condition, what, seconds=30):
        deadline = time.monotonic() + seconds
        while not condition():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError("%s did not come about; the log: %s" % (what, open(self.log_path).read()))
            time.sleep(0.05)

    def sampling(self):
        self.wait_for(lambda: self.lines("sampling"), "sampling")
        return self

    def send(self, number):
        self.process.send_signal(number)

    def end(self, number=signal.SIGTERM, seconds=25):
        """Ends it; its exit status."""
        self.send(number)
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError("it does not end; the log: %s" % open(self.log_path).read())

    def account(self):
        """What the log says at the end: (samples, delivered by exporter), numbers as such; nothing is missing."""
        (samples,) = self.lines("samples")
        numbers = {key: int(value) for key, value in samples.items() if value.lstrip("-").isdigit()}
        delivered = [{key: int(v) if v.lstrip("-").isdigit() else v for key, v in line.items()}
                     for line in self.lines("delivered")]
        assert numbers["missing"] == 0, samples
        assert all(line["missing"] == 0 for line in delivered), delivered
        return numbers, delivered

    def waiting_samples(self):
        files = json.loads(run("spool", "ls", "--spool", self.spool, "--format", "json", check=0).stdout)["files"]
        return sum(f["samples"] for f in files if f["state"] == "waiting")

    def fds(self):
        """What it holds, without the binaries of whatever runs on this host."""
        links = []
        for fd in os.listdir("/proc/%d/fd" % self.pid):
            try:
                links.append(os.readlink("/proc/%d/fd/%s" % (self.pid, fd)))
            except FileNotFoundError:
                continue
        return sorted(link for link in links if not link.startswith("/") or link.startswith(self.spool))

    def anonymous_kib(self):
        status = open("/proc/%d/status" % self.pid).read()
        return int(status.split("RssAnon:")[1].split()[0])
