# SPDX-License-Identifier: Apache-2.0
"""What the gRPC tests share: the client program, grpcio servers, certificates made at run time."""
import contextlib, functools, json, os, select, subprocess, sys, time
import support
from support import Skip, folder, need

HERE = os.path.dirname(os.path.abspath(__file__))
FAILURES = ["none", "resolve", "connect", "proxy", "tls", "credentials", "not_grpc", "protocol", "lost", "deadline",
            "cancelled"]
PYTHON = "/usr/bin/python3"


def client_program():
    return os.environ.get("PERFPIPE_GRPC_CLIENT") or os.path.join(os.path.dirname(support.binary), "tests/grpc_client")


class Calls(list):
    """One dict for each call; what the program summed up is in .total."""


def words(settings):
    headers = settings.pop("header", [])
    return (["%s=%s" % (key, int(value) if value is True else value) for key, value in settings.items()] +
            ["header=%s:%s" % pair for pair in headers])


def read_calls(text):
    lines = [json.loads(line) for line in text.splitlines()]
    calls = Calls(lines[:-1])
    calls.total = lines[-1]
    for call in calls:
        if "failure" in call:
            call["failure"] = FAILURES[call["failure"]]
    return calls


def call(endpoint, env=None, limit=30, check=0, **settings):
    """Runs the client; the calls it made, or with check=64 the error text."""
    done = subprocess.run([client_program(), "endpoint=" + endpoint, *words(settings)], capture_output=True, text=True,
                          timeout=limit, env=dict(os.environ, **(env or {})), stdin=subprocess.DEVNULL)
    assert done.returncode == check, (done.returncode, done.stdout, done.stderr)
    return done.stderr if check else read_calls(done.stdout)


def call_one(endpoint, **settings):
    calls = call(endpoint, **settings)
    assert len(calls) == 1, calls
    return calls[0]


class Interactive:
    """A client that stays: each call is asked for."""

    def __init__(self, endpoint, env=None, **settings):
        self.process = subprocess.Popen([client_program(), "endpoint=" + endpoint, "interactive=1", *words(settings)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
                                        env=dict(os.environ, **(env or {})))

    def start(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def read(self, limit=20):
        ready, _, _ = select.select([self.process.stdout], [], [], limit)
        assert ready, "no answer of the client within %d s" % limit
        line = self.process.stdout.readline()
        assert line, "the client ended: %s" % self.process.wait()
        result = json.loads(line)
        result["failure"] = FAILURES[result["failure"]]
        return result

    def call(self):
        self.start()
        return self.read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise


@contextlib.contextmanager
def server(address="127.0.0.1:0", **settings):
    """A grpcio server; gives its port."""
    process = subprocess.Popen([PYTHON, os.path.join(HERE, "support_grpc_server.py"),
                                json.dumps(dict(settings, address=address))],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, stdin=subprocess.DEVNULL)
    try:
        line = process.stdout.readline()
        if not line:
            raise AssertionError("the server did not start (python3-grpcio)")
        port = int(line)
        server.last = process
        yield port
    finally:
        process.kill()
        process.wait()


def openssl(*arguments, input=None):
    subprocess.run(["openssl", *arguments], check=True, capture_output=True, input=input)


@functools.lru_cache(None)
def authority(name):
    """A certificate authority: (certificate file, key file)."""
    need("openssl")
    at = folder()
    cert, key = os.path.join(at, "ca.pem"), os.path.join(at, "ca.key")
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key,
            "-out", cert, "-subj", "/CN=" + name, "-days", "30")
    return cert, key


def certificate(name="localhost", names="DNS:localhost,IP:127.0.0.1,IP:::1", ca="Test CA", at=None, dates=None):
    """A certificate of that authority: {"cert": file, "key": file}. dates: (begin, end) as YYYYMMDDHHMMSSZ."""
    ca_cert, ca_key = authority(ca)
    at = at or folder()
    file = lambda suffix: os.path.join(at, name.replace("/", "_") + suffix)
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", file(".key"),
            "-out", file(".csr"), "-subj", "/CN=" + name)
    with open(file(".ext"), "w") as out:
        out.write("subjectAltName=%s\n" % names if names else "basicConstraints=CA:FALSE\n")
    if dates:
        with open(file(".db"), "w"):
            pass
        with open(file(".cnf"), "w") as out:
            out.write("[ca]\ndefault_ca=d\n[d]\ndatabase=%s\nnew_certs_dir=%s\npolicy=p\ndefault_md=sha256\n"
                      "rand_serial=yes\nunique_subject=no\n[p]\ncommonName=supplied\n" % (file(".db"), at))
        openssl("ca", "-batch", "-config", file(".cnf"), "-cert", ca_cert, "-keyfile", ca_key, "-in", file(".csr"),
                "-out", file(".pem"), "-extfile", file(".ext"), "-startdate", dates[0], "-enddate", dates[1], "-notext")
    else:
        openssl("x509", "-req", "-in", file(".csr"), "-CA", ca_cert, "-CAkey", ca_key, "-CAcreateserial", "-days", "30",
                "-extfile", file(".ext"), "-out", file(".pem"))
    return {"cert": file(".pem"), "key": file(".key")}


def pattern(size):
    """The message that the client makes of that size."""
    return bytes((i * 7 + i // 251) & 255 for i in range(size))
