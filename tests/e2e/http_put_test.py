# SPDX-License-Identifier: Apache-2.0
"""PUT to signed URLs, as debug files are uploaded to object stores."""
import hashlib, socket, ssl, threading, time
from support import *
from support_grpc import *


def program():
    return os.environ.get("PERFPIPE_HTTP_PUT") or os.path.join(os.path.dirname(support.binary), "tests/http_put_client")


def put(url, n, ca="", proxy="", timeout_ms=20000, check=0):
    done = subprocess.run([program(), url, str(n), ca, proxy, str(timeout_ms)], capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL)
    assert done.returncode == check, done
    return done.stderr if check else done.stdout.rstrip("\n")


@contextlib.contextmanager
def store(answer, tls=None, reads=True):
    """A server that takes one PUT for each connection: (port, [(head, body)])."""
    listener = socket.create_server(("127.0.0.1", 0))
    got = []
    context = None
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tls["cert"], tls["key"])

    def serve():
        while True:
            try:
                peer, _ = listener.accept()
                if context:
                    peer = context.wrap_socket(peer, server_side=True)
                peer.settimeout(10)
                data = b""
                while b"\r\n\r\n" not in data:
                    data += peer.recv(65536)
                head, _, body = data.partition(b"\r\n\r\n")
                length = int([l for l in head.split(b"\r\n") if l.lower().startswith(b"content-length")][0].split(b":")[1])
                while reads and len(body) < length:
                    body += peer.recv(65536)
                got.append((head.decode(), body))
                for piece in answer if isinstance(answer, list) else [answer]:
                    peer.sendall(piece)
                    time.sleep(0.01)
                if not reads:
                    time.sleep(1)
                peer.close()
            except (OSError, IndexError):
                if listener.fileno() < 0:
                    return

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield listener.getsockname()[1], got
    finally:
        listener.close()


def wanted(n):
    return bytes(i * 7 & 255 for i in range(n))


def test_bytes_arrive_whole():
    for tls in (None, certificate()):
        with store(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", tls) as (port, got):
            for n in (0, 1, 65536, 3000001):
                url = "%s://localhost:%d/bucket/key?X-Sig=abc%%2F" % ("https" if tls else "http", port)
                assert put(url, n, authority("Test CA")[0]) == "200 "
                head, body = got[-1]
                lines = head.split("\r\n")
                assert lines[0] == "PUT /bucket/key?X-Sig=abc%2F HTTP/1.1" and "Host: localhost:%d" % port in lines, head
                assert "Content-Length: %d" % n in lines
                assert hashlib.sha256(body).digest() == hashlib.sha256(wanted(n)).digest()


def test_answers_of_all_shapes():
    for answer, text in [
            (b"HTTP/1.1 403 Forbidden\r\nContent-Length: 22\r\n\r\n<Error>\nexpired</Error>", "403 <Error> expired</Error"),
            (b"HTTP/1.0 500 Oops\r\n\r\nbroken", "500 broken"),
            ([b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n"], "201 "),
            (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\ncontent-length:0\r\n\r\n", "204 "),
            ([b"HTT", b"P/1.1 2", b"00 OK\r", b"\n\r", b"\n"], "200 "),
            (b"HTTP/1.1 302 Found\r\nLocation: http://elsewhere/\r\nContent-Length: 0\r\n\r\n", "302 "),
            (b"HTTP/1.1 200 OK\r\n\r\n" + b"A" * 100000, "200 " + "A" * 400),
            (b"SSH-2.0-x\r\n", "0 the answer is not HTTP/1"),
            (b"HTTP/1.1 abc\r\n\r\n", "0 the answer has no HTTP status"),
            (b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 30000, "0 "),
            (b"", "0 127.0.0.1:")]:
        with store(answer) as (port, _):
            got = put("http://127.0.0.1:%d/k" % port, 1000)
            assert got.startswith(text), (answer[:40], got)


def test_an_answer_before_all_is_sent():
    with store(b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig", reads=False) as (port, _):
        assert put("http://127.0.0.1:%d/k" % port, 100 << 20) == "413 big"


def test_a_store_that_stops():
    with store(b"", reads=False) as (port, _):
        listener = socket.create_server(("127.0.0.1", 0))
        started = time.monotonic()
        got = put("http://127.0.0.1:%d/k?sig=S3cret" % listener.getsockname()[1], 100 << 20, timeout_ms=500)
        assert "nothing moved for too long" in got and "S3cret" not in got and time.monotonic() - started < 5, got


def test_what_cannot_be_reached():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert put("http://127.0.0.1:%d/k" % port, 1).startswith("0 cannot connect to 127.0.0.1:%d" % port)
    with store(b"HTTP/1.1 200 OK\r\n\r\n", certificate()) as (port, _):
        got = put("https://localhost:%d/k" % port, 1)
        assert got == '0 certificate of localhost:%d is not trusted: issuer "Test CA" unknown' % port, got


def test_urls_that_make_no_sense():
    for url in ("ftp://a/b", "https://", "https://a b/", "https://h:x/?sig=S3cret", "https://h/%s" % ("x" * 9000), "http://u:S3cret@h/"):
        error = put(url, 1, check=64)
        assert "S3cret" not in error and error, (url, error)


main(globals())
