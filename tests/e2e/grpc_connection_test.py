# SPDX-License-Identifier: Apache-2.0
"""How the gRPC client connects: socket files, IPv6, several addresses, proxies; how it goes on when
connections end; what it says when it cannot connect; and that secrets stay secret."""
import base64, http.server, json, shutil, socket, socketserver, stat, struct, threading, time
from support import *
from support_grpc import *
from support_h2_server import *


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


# --- where to ---

def test_socket_files():
    path = os.path.join(folder(), "s.sock")
    with server(address="unix:" + path):
        for endpoint in ("unix:" + path, "unix://" + path):
            assert call_one(endpoint)["code"] == "OK"
    name = "perfpipe-test-%d" % os.getpid()
    with server(address="unix-abstract:" + name):
        assert call_one("unix:@" + name)["code"] == "OK"
    one = call_one("unix:/nonexistent/s.sock")
    assert (one["code"], one["failure"], one["number"]) == ("UNAVAILABLE", "connect", 305), one
    assert one["message"] == "cannot connect to /nonexistent/s.sock: No such file or directory", one


def test_ipv6():
    with server(address="[::1]:0") as port:
        assert call_one("http://[::1]:%d" % port)["code"] == "OK"
    with server(address="[::1]:0", tls=certificate()) as port:
        assert call_one("https://[::1]:%d" % port, ca_file=authority("Test CA")[0])["code"] == "OK"


def test_names_with_several_addresses():
    """localhost is ::1 and 127.0.0.1; the server listens on one of them."""
    with server(address="127.0.0.1:0") as port:
        assert call_one("http://localhost:%d" % port)["code"] == "OK"
    if ("::1", 0) in [info[4][:2] for info in socket.getaddrinfo("localhost", 0)]:
        with server(address="[::1]:0") as port:
            assert call_one("http://localhost:%d" % port)["code"] == "OK"


def test_nobody_there():
    port = free_port()
    one = call_one("http://127.0.0.1:%d" % port)
    assert (one["code"], one["failure"], one["unprocessed"], one["number"]) == ("UNAVAILABLE", "connect", 1, 305), one
    assert one["message"] == "cannot connect to 127.0.0.1:%d: Connection refused (127.0.0.1)" % port, one


def test_no_such_name():
    one = call_one("http://no-such-host.invalid:1", timeout_ms=20000)
    assert one["code"] == "UNAVAILABLE" and one["failure"] == "resolve", one
    assert one["message"].startswith('cannot resolve "no-such-host.invalid": '), one


def test_an_address_that_does_not_answer():
    """A full backlog drops SYNs; the deadline says what was waited for."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(0)
    port = listener.getsockname()[1]
    fillers = []
    for _ in range(8):
        filler = socket.socket()
        filler.setblocking(False)
        filler.connect_ex(("127.0.0.1", port))
        fillers.append(filler)
    one = call_one("http://127.0.0.1:%d" % port, timeout_ms=500)
    assert one["code"] == "DEADLINE_EXCEEDED" and one["unprocessed"] == 1, one
    assert "waited for the connection" in one["message"] or "SETTINGS" in one["message"], one


def test_endpoints_that_make_no_sense_are_refused_at_once():
    for endpoint, text in [("grpc://a:1", 'unknown scheme "grpc"'), ("a:0", "1 to 65535"), ("a:x", 'port "x"'),
                           ("https://a:1/path", 'no path; leave out "/path"'), ("http://user:pw@a:1", "password"),
                           ("[::1", '"[" without "]"'), ("[abc]:1", "IPv6"), ("a b:1", "host name"), ("", "missing"),
                           ("unix:relative", "absolute path")]:
        error = call(endpoint, check=64)
        assert text in error and "pw" not in error.replace("password", ""), (endpoint, error)


# --- proxies ---

class Tunnel(socketserver.StreamRequestHandler):
    """CONNECT, and bytes both ways; refuses whom the server's password does not let in."""

    def handle(self):
        head = b""
        while b"\r\n\r\n" not in head:
            more = self.connection.recv(4096)
            if not more:
                return
            head += more
        lines = head.decode().split("\r\n")
        self.server.seen.append(lines)
        wanted = self.server.password
        if wanted and "Proxy-Authorization: Basic " + base64.b64encode(wanted).decode() not in lines:
            self.connection.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            return
        if self.server.answer:
            self.connection.sendall(self.server.answer)
            return
        host, _, port = lines[0].split()[1].rpartition(":")
        with socket.create_connection((host.strip("[]"), int(port))) as upstream:
            self.connection.sendall(b"HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\n")
            threading.Thread(target=self.pump, args=(upstream, self.connection), daemon=True).start()
            self.pump(self.connection, upstream)

    @staticmethod
    def pump(source, sink):
        try:
            while True:
                some = source.recv(65536)
                if not some:
                    break
                sink.sendall(some)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass


@contextlib.contextmanager
def proxy(password=None, answer=None):
    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
    served = Server(("127.0.0.1", 0), Tunnel)
    served.password, served.answer, served.seen = password, answer, []
    threading.Thread(target=served.serve_forever, daemon=True).start()
    try:
        yield served.server_address[1], served.seen
    finally:
        served.shutdown()
        served.server_close()


def test_proxy_tunnels_tls_and_plaintext():
    ca = authority("Test CA")[0]
    with proxy() as (via, seen):
        with server(tls=certificate()) as port:
            assert call_one("https://localhost:%d" % port, ca_file=ca, size=100000,
                            proxy="http://127.0.0.1:%d" % via)["code"] == "OK"
            assert seen[-1][0] == "CONNECT localhost:%d HTTP/1.1" % port, seen
            assert call_one("https://localhost:%d" % port, ca_file=ca,
                            env={"https_proxy": "http://127.0.0.1:%d" % via, "no_proxy": "other"})["code"] == "OK"
            assert len(seen) == 2
            for name in ("no_proxy", "NO_PROXY"):
                assert call_one("https://localhost:%d" % port, ca_file=ca, env={
                    "HTTPS_PROXY": "http://127.0.0.1:%d" % via, name: "10.0.0.0/8, localhost:%d" % port})["code"] == "OK"
            assert call_one("https://localhost:%d" % port, ca_file=ca, proxy="",
                            env={"https_proxy": "http://127.0.0.1:%d" % via})["code"] == "OK"
            assert len(seen) == 2
        with server() as port:
            assert call_one("http://127.0.0.1:%d" % port, proxy="127.0.0.1:%d" % via)["code"] == "OK"
            assert call_one("http://127.0.0.1:%d" % port, env={"https_proxy": "http://127.0.0.1:1"})["code"] == "OK"


def test_proxy_with_a_password():
    with proxy(password=b"me:p@ss") as (via, seen), server() as port:
        endpoint = "http://127.0.0.1:%d" % port
        assert call_one(endpoint, proxy="http://me:p%%40ss@127.0.0.1:%d" % via)["code"] == "OK"
        one = call_one(endpoint, proxy="http://me:wrong@127.0.0.1:%d" % via)
        assert (one["failure"], one["number"], one["unprocessed"]) == ("proxy", 305, 1), one
        assert "407" in one["message"] and "are wrong" in one["message"] and "wrong@" not in one["message"], one
        one = call_one(endpoint, proxy="http://127.0.0.1:%d" % via)
        assert "wants a user and a password" in one["message"], one


def test_proxies_that_say_no():
    for answer, text in [(b"HTTP/1.1 403 Forbidden\r\n\r\n", 'refused a tunnel to 127.0.0.1:9: "HTTP/1.1 403 Forbidden"'),
                         (b"SSH-2.0-x\r\n\r\n", 'does not speak HTTP; it answered "SSH-2.0-x'),
                         (b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 5000, "longer than 8192 bytes"),
                         (b"HTTP/1.1 200 OK\r\n", "closed the connection when it was asked for a tunnel")]:
        with proxy(answer=answer) as (via, _):
            one = call_one("http://127.0.0.1:9", proxy="http://127.0.0.1:%d" % via)
            assert one["failure"] == "proxy" and text in one["message"], (answer[:20], one)
    one = call_one("http://127.0.0.1:9", proxy="http://127.0.0.1:%d" % free_port())
    assert one["failure"] == "proxy" and "cannot connect to proxy 127.0.0.1:" in one["message"], one
    assert "only http:// proxies" in call("http://127.0.0.1:9", check=64, proxy="socks5://127.0.0.1:1")


# --- how connections end ---

def test_connections_that_are_too_old():
    """max_connection_age: GOAWAY twice; no call is lost on the way."""
    with server(options=[["grpc.max_connection_age_ms", 300], ["grpc.max_connection_age_grace_ms", 5000]]) as port:
        with Interactive("http://127.0.0.1:%d" % port, path="/test.Echo/Sleep", hex=b"30".hex()) as client:
            end = time.monotonic() + 3
            n = 0
            while time.monotonic() < end:
                one = client.call()
                assert one["code"] == "OK", one
                n += 1
            assert n > 15


def test_server_that_restarts():
    port = free_port()
    address = "127.0.0.1:%d" % port
    with server(address=address):
        client = Interactive("http://" + address)
        assert client.call()["code"] == "OK"
    with client:
        one = client.call()
        assert one["code"] == "UNAVAILABLE" and one["failure"] in ("connect", "lost"), one
        with server(address=address):
            end = time.monotonic() + 10
            while client.call()["code"] != "OK":
                assert time.monotonic() < end
                time.sleep(0.1)


def test_waiting_for_a_server_that_starts_later():
    port = free_port()
    with Interactive("http://127.0.0.1:%d" % port, wait_for_ready=True, timeout_ms=15000) as client:
        client.start()
        time.sleep(0.5)
        with server(address="127.0.0.1:%d" % port):
            one = client.read()
            assert one["code"] == "OK" and one["ms"] > 500, one
    one = call_one("http://127.0.0.1:%d" % port, wait_for_ready=True, timeout_ms=600)
    assert one["code"] == "DEADLINE_EXCEEDED" and "Connection refused" in one["message"], one
    assert one["unprocessed"] == 1, one


def test_connection_lost_in_the_middle():
    def script(peer, _):
        peer.request()
        peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.socket.close()
    with serve(script) as (port, _):
        one = call_one("http://127.0.0.1:%d" % port)
        assert (one["code"], one["failure"], one["unprocessed"]) == ("UNAVAILABLE", "lost", 0), one
        assert "Connection reset by peer" in one["message"], one


def test_a_dead_path_is_left():
    """A connection on which nothing comes is not used again after a deadline."""
    def script(peer, index):
        stream = peer.request()
        if index == 0:
            time.sleep(5)
        peer.answer(stream, b"%d" % index)
    with serve(script) as (port, peers):
        with Interactive("http://127.0.0.1:%d" % port, timeout_ms=400) as client:
            assert client.call()["code"] == "DEADLINE_EXCEEDED"
            one = client.call()
            assert one["code"] == "OK" and one["response"] == b"1".hex(), one
        assert len(peers) == 2


def test_a_server_that_hangs_up_on_everyone_is_not_hammered():
    """Each connection is closed after SETTINGS: waits grow between them."""
    def script(peer, _):
        peer.preface()
        peer.send(settings((3, 0)))
        time.sleep(0.01)
        peer.socket.close()
    with serve(script) as (port, peers):
        one = call_one("http://127.0.0.1:%d" % port, wait_for_ready=True, timeout_ms=3500)
        assert one["code"] == "DEADLINE_EXCEEDED" and one["failure"] == "lost", one
        assert 2 <= len(peers) <= 4, len(peers)


def test_keepalive():
    """A PING after 10 s of silence while a call is open; none before, and no answer ends it after 20 s
    (that part has a unit test, with time in its hands)."""
    pings = []

    def script(peer, _):
        stream = peer.request()
        started = time.monotonic()
        peer.socket.settimeout(12)
        kind, flags, _, payload = peer.wait(PING)
        pings.append(time.monotonic() - started)
        peer.send(frame(PING, ACK, 0, payload))
        peer.answer(stream)
    with serve(script) as (port, _):
        one = call_one("http://127.0.0.1:%d" % port, keepalive_ms=1, timeout_ms=20000)
        assert one["code"] == "OK" and len(pings) == 1 and 9.5 < pings[0] < 12, (one, pings)


# --- who answers ---

def test_http_1_server():
    served = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    threading.Thread(target=served.serve_forever, daemon=True).start()
    one = call_one("http://127.0.0.1:%d" % served.server_address[1])
    served.shutdown()
    assert one["failure"] in ("protocol", "lost") and one["unprocessed"] == 1, one
    assert "HTTP" in one["message"], one


def test_web_server_with_http_2():
    need("nghttpd")
    at = folder()
    port = free_port()
    process = subprocess.Popen(["nghttpd", "--no-tls", "-a", "127.0.0.1", "-d", at, str(port)], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    try:
        one = call_one("http://127.0.0.1:%d" % port, wait_for_ready=True, timeout_ms=8000, path="/missing")
        assert one["failure"] == "not_grpc" and one["http"] == 404 and one["code"] == "UNIMPLEMENTED", one
        assert "text/html" in one["message"] and "<html>" in one["message"], one
    finally:
        process.kill()
        process.wait()


def test_through_a_reverse_proxy():
    need("nghttpx")
    pair = certificate()
    with server() as backend:
        port = free_port()
        process = subprocess.Popen(
            ["nghttpx", "--conf=/dev/null", "-f127.0.0.1,%d" % port, "-b127.0.0.1,%d;;proto=h2" % backend, "--workers=1",
             "--errorlog-file=/dev/null", pair["key"], pair["cert"]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            ca = authority("Test CA")[0]
            one = call_one("https://localhost:%d" % port, ca_file=ca, size=1 << 20, wait_for_ready=True, timeout_ms=10000)
            assert one["code"] == "OK" and one["n_response"] == 1 << 20, one
            calls = call("https://localhost:%d" % port, ca_file=ca, calls=300, parallel=50, size=10000, quiet=True)
            assert calls.total["ok"] == 300, calls.total
            server.last.kill()
            server.last.wait()
            one = call_one("https://localhost:%d" % port, ca_file=ca)
            assert one["failure"] == "not_grpc" and one["http"] in (502, 503) and one["code"] == "UNAVAILABLE", one
        finally:
            process.kill()
            process.wait()


# --- secrets ---

SECRET = "s3cr3t-t0ken"


def test_token_file_is_read_again_after_a_refusal():
    path = os.path.join(folder(), "token")
    with open(path, "w") as out:
        out.write("  first\n\n")
    with server() as port:
        with Interactive("http://127.0.0.1:%d" % port, token_file=path, path="/test.Echo/Status",
                         hex=json.dumps({"code": 16, "message": "no"}).encode().hex()) as client:
            one = client.call()
            assert (one["code"], one["number"]) == ("UNAUTHENTICATED", 302), one
            os.unlink(path)
            one = client.call()
            assert one["failure"] == "credentials" and one["number"] == 302 and one["unprocessed"] == 1, one
            assert path in one["message"], one
            with open(path, "w") as out:
                out.write("second")
            assert client.call()["failure"] == "none"


def test_tokens_on_the_wire_and_their_changes():
    import grpc
    from concurrent import futures
    seen = []

    class Handler(grpc.GenericRpcHandler):
        def service(self, details):
            seen.append(dict(details.invocation_metadata).get("authorization"))
            def answer(request, context):
                context.abort(grpc.StatusCode.UNAUTHENTICATED, "no")
            return grpc.unary_unary_rpc_method_handler(answer)

    served = grpc.server(futures.ThreadPoolExecutor(2))
    served.add_generic_rpc_handlers((Handler(),))
    port = served.add_insecure_port("127.0.0.1:0")
    served.start()
    path = os.path.join(folder(), "token")
    with open(path, "w") as out:
        out.write("first\n")
    with Interactive("http://127.0.0.1:%d" % port, token_file=path) as client:
        client.call()
        with open(path, "w") as out:
            out.write("second\n")
        client.call()
    served.stop(0)
    assert seen == ["Bearer first", "Bearer second"], seen


def test_token_files_that_cannot_be_used():
    at = folder()
    for name, content, text in [("empty", b" \n", "empty"), ("two words", b"a b", "contains a blank"),
                                ("binary", b"a\x01b", "not printable"), ("zero", b"a\0b", "zero byte"),
                                ("large", b"x" * 20000, "")]:
        path = os.path.join(at, name)
        with open(path, "wb") as out:
            out.write(content)
        with server() as port:
            one = call_one("http://127.0.0.1:%d" % port, token_file=path)
            assert one["failure"] == "credentials" and one["code"] == "UNAVAILABLE", one
            assert path in one["message"] and text in one["message"], one


def test_secrets_are_not_sent_in_clear_to_others():
    for settings_ in ({"token": SECRET}, {"user": "me", "password": SECRET}, {"header": [("X-Api-Key", SECRET)]},
                      {"header": [("Authorization", SECRET)]}):
        error = call("http://192.0.2.1:1", check=64, **settings_)
        assert "would travel in clear to 192.0.2.1:1" in error and SECRET not in error, error
        assert call_one("http://192.0.2.1:1", clear_token=True, timeout_ms=100, **settings_)["unprocessed"] == 1
        with server() as port:
            assert call_one("http://127.0.0.1:%d" % port, **settings_)["code"] == "OK"


def test_headers_that_cannot_be_sent():
    for header, text in [(("grpc-x", "1"), "reserved"), (("a b", "1"), "characters other than"), (("x", "é"), "printable"),
                         (("x", " a"), "blank"), (("Content-Type", "a"), "set by the protocol"), (("x-bin", "é"), "ASCII"),
                         (("x-bin", "!!"), "base64"), (("", "x"), "name")]:
        error = call("http://127.0.0.1:1", check=64, header=[header])
        assert text in error, (header, error)


main(globals())
