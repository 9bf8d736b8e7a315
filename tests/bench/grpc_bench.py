#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Unary calls over TLS 1.3 on loopback: messages for each CPU second of the client, beside libgrpc++
with the same server, and bytes for each CPU second beside bare SSL_write (to a server that throws
them away). The best of several rounds counts: others on the machine only make a run slower.

grpc_bench.py GRPC_CLIENT TLS_FLOOR_BENCH FOLDER. Needs libgrpc++-dev (apt-get install, or skipped)."""
import json, os, subprocess, sys

client, floor, folder = sys.argv[1:4]
here = os.path.dirname(os.path.abspath(__file__))
os.makedirs(folder, exist_ok=True)
peer = os.path.join(folder, "grpc_peer")
ca, key, certificate = (os.path.join(folder, name) for name in ("ca.pem", "key.pem", "cert.pem"))
PARALLEL, ROUNDS = 64, 5


def build_peer():
    source = os.path.join(here, "grpc_peer.cc")
    if os.path.exists(peer) and os.path.getmtime(peer) > os.path.getmtime(source):
        return
    if subprocess.run(["pkg-config", "--exists", "grpc++"]).returncode:
        print("skipped: no libgrpc++-dev (apt-get install libgrpc++-dev)")
        sys.exit(0)
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "grpc++"], capture_output=True, text=True, check=True)
    subprocess.run(["c++", "-std=c++17", "-O2", source, "-o", peer, *flags.stdout.split()], check=True)


def make_certificate():
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
                    key, "-out", certificate, "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
                   check=True, capture_output=True)


def ours(port, n, size):
    return our_seconds(port, n, size) - our_seconds(port, 1, size)


def theirs(port, n, size):
    """Without start, certificates and handshake, as in the other columns."""
    return their_seconds(port, n, size) - their_seconds(port, 1, size)


def our_seconds(port, n, size):
    done = subprocess.run([client, "endpoint=https://localhost:%d" % port, "ca_file=" + certificate, "calls=%d" % n,
                           "size=%d" % size, "parallel=%d" % PARALLEL, "timeout_ms=60000", "quiet=1", "min_version=1.3"],
                          capture_output=True, text=True, check=True)
    total = json.loads(done.stdout)
    assert total["ok"] == n, total
    return total["cpu_s"]


def their_seconds(port, n, size):
    done = subprocess.run([peer, "client", str(port), certificate, str(n), str(size), str(PARALLEL)], capture_output=True,
                          text=True, check=True)
    cpu, fine = done.stdout.split()
    assert int(fine) == n, done.stdout
    return float(cpu)


def bare(n, size):
    return float(subprocess.run([floor, key, certificate, str(n), str(size)], capture_output=True, text=True,
                                check=True).stdout)


build_peer()
make_certificate()
server = subprocess.Popen([peer, "server", key, certificate], stdout=subprocess.PIPE, text=True)
try:
    port = int(server.stdout.readline())
    for n, size in ((50000, 1024), (2000, 256 << 10)):
        runs = [(ours(port, n, size), theirs(port, n, size), bare(n, size)) for _ in range(ROUNDS)]
        us, them, raw = (min(column) for column in zip(*runs))
        print("%7d bytes: %8.0f messages per CPU second, libgrpc++ %8.0f: %.1f x (aim 3)" % (size, n / us, n / them, them / us))
        if size > 100000:
            print("%7d bytes: %8.0f MB per CPU second, SSL_write %8.0f: %.2f x (aim 0.8)" %
                  (size, n * size / us / 1e6, n * size / raw / 1e6, raw / us))
finally:
    server.kill()
    server.wait()
