# SPDX-License-Identifier: Apache-2.0
"""TLS of the gRPC client: whom it trusts, what it shows, and what it says when something is wrong."""
import json, shutil, socket, threading, time
from support import *
from support_grpc import *

CA = "Test CA"


def refused(one, text):
    """The call failed for TLS, before a byte of it was sent, with that text."""
    assert (one["code"], one["failure"], one["number"], one["unprocessed"]) == ("UNAVAILABLE", "tls", 301, 1), one
    assert text in one["message"], (text, one["message"])


def ca_file(name=CA):
    return authority(name)[0]


def test_trusted_by_ca_file_and_ca_path():
    with server(tls=certificate()) as port:
        assert call_one("https://localhost:%d" % port, ca_file=ca_file())["code"] == "OK"
        assert call_one("https://127.0.0.1:%d" % port, ca_file=ca_file())["code"] == "OK"
        path = folder()
        shutil.copy(ca_file(), os.path.join(path, "ca.pem"))
        openssl("rehash", path)
        assert call_one("localhost:%d" % port, ca_path=path)["code"] == "OK"


def test_unknown_issuer():
    with server(tls=certificate()) as port:
        text = 'certificate of localhost:%d is not trusted: issuer "Test CA" unknown' % port
        refused(call_one("https://localhost:%d" % port), text)
        refused(call_one("https://localhost:%d" % port, ca_file=ca_file("Other CA")), text)
        assert call_one("https://localhost:%d" % port, skip_verify=True)["code"] == "OK"


def test_self_signed():
    at = folder()
    pair = {"cert": at + "/c.pem", "key": at + "/c.key"}
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", pair["key"],
            "-out", pair["cert"], "-subj", "/CN=lonely", "-addext", "subjectAltName=DNS:localhost")
    with server(tls=pair) as port:
        refused(call_one("https://localhost:%d" % port, ca_file=ca_file()),
                'certificate of localhost:%d is not trusted: "lonely" has signed it itself' % port)
        assert call_one("https://localhost:%d" % port, ca_file=pair["cert"])["code"] == "OK"


def test_expired_and_not_yet_valid():
    with server(tls=certificate(dates=("20200101000000Z", "20210203040500Z"))) as port:
        refused(call_one("https://localhost:%d" % port, ca_file=ca_file()),
                "certificate of localhost:%d expired 2021-02-03T04:05Z" % port)
    with server(tls=certificate(dates=("20900101000000Z", "20910101000000Z"))) as port:
        refused(call_one("https://localhost:%d" % port, ca_file=ca_file()),
                "certificate of localhost:%d is not valid before 2090-01-01T00:00Z; is this host's clock right?" % port)


def test_wrong_host_name():
    with server(tls=certificate("a.example", "DNS:a.example,DNS:*.b.example,DNS:c,DNS:d")) as port:
        refused(call_one("https://localhost:%d" % port, ca_file=ca_file()),
                'certificate of localhost:%d is for "a.example", "*.b.example", "c" and 1 more, not for "localhost"'
                % port)
        refused(call_one("https://127.0.0.1:%d" % port, ca_file=ca_file()), 'not for "127.0.0.1"')
        for name, is_fine in [("a.example", True), ("x.b.example", True), ("x.y.b.example", False), ("b.example", False),
                              ("A.Example", True)]:
            one = call_one("https://localhost:%d" % port, ca_file=ca_file(), server_name=name)
            assert (one["code"] == "OK") == is_fine, (name, one)


def test_server_name_is_indicated():
    """SNI for names, none for addresses (RFC 6066)."""
    seen = []
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        for _ in range(2):
            peer, _ = listener.accept()
            seen.append(peer.recv(4096))
            peer.close()

    thread = threading.Thread(target=serve)
    thread.start()
    port = listener.getsockname()[1]
    for host in ("localhost", "127.0.0.1"):
        one = call_one("https://%s:%d" % (host, port), ca_file=ca_file())
        assert one["failure"] == "tls" and "closed the connection during the TLS handshake" in one["message"], one
    thread.join()
    assert b"localhost" in seen[0] and b"\x02h2" in seen[0]
    assert b"127.0.0.1" not in seen[1] and b"\x02h2" in seen[1]


def test_client_certificate():
    tls = dict(certificate(), ca=ca_file())
    mine = certificate("agent 7", None)
    with server(tls=tls) as port:
        endpoint = "https://localhost:%d" % port
        assert call_one(endpoint, ca_file=ca_file(), cert_file=mine["cert"], key_file=mine["key"])["code"] == "OK"
        one = call_one(endpoint, ca_file=ca_file())
        assert (one["code"], one["failure"], one["number"]) == ("UNAVAILABLE", "tls", 301), one
        assert "for a client certificate, and none is configured" in one["message"], one
        other = certificate("agent 8", None, ca="Other CA")
        one = call_one(endpoint, ca_file=ca_file(), cert_file=other["cert"], key_file=other["key"])
        assert one["failure"] == "tls", one
        # grpcio hangs up without the alert that would say why.
        assert "our client certificate" in one["message"], one


def test_alerts_about_the_client_certificate():
    """openssl's server says why it refuses."""
    tls = certificate()
    with s_server(tls, "-alpn", "h2", "-Verify", "1", "-verify_return_error", "-CAfile", ca_file()) as port:
        one = call_one("https://localhost:%d" % port, ca_file=ca_file())
        assert one["failure"] == "tls" and "asks for a client certificate, and none is configured" in one["message"], one
    other = certificate("agent 8", None, ca="Other CA")
    with s_server(tls, "-alpn", "h2", "-Verify", "1", "-verify_return_error", "-CAfile", ca_file()) as port:
        one = call_one("https://localhost:%d" % port, ca_file=ca_file(), cert_file=other["cert"], key_file=other["key"])
        assert one["failure"] == "tls" and "does not trust the issuer of our client certificate" in one["message"], one


@contextlib.contextmanager
def s_server(pair, *words):
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    listener.close()
    process = subprocess.Popen(["openssl", "s_server", "-accept", "127.0.0.1:%d" % port, "-cert", pair["cert"], "-key",
                                pair["key"], *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL)
    try:
        while b"ACCEPT" not in process.stdout.readline():
            assert process.poll() is None
        yield port
    finally:
        process.kill()
        process.wait()


def test_client_certificate_files_that_cannot_be_used():
    mine = certificate("agent 7", None)
    other = certificate("agent 9", None)
    with server(tls=certificate()) as port:
        endpoint = "https://localhost:%d" % port
        refused(call_one(endpoint, cert_file="/nonexistent/c.pem", key_file=mine["key"]),
                "client certificate /nonexistent/c.pem: ")
        refused(call_one(endpoint, cert_file=mine["cert"], key_file=other["key"]),
                "client key %s" % other["key"])
        refused(call_one(endpoint, ca_file="/nonexistent/ca.pem"), "CA file /nonexistent/ca.pem: ")
        refused(call_one(endpoint, ca_path="/nonexistent"), "CA path /nonexistent: not a folder")
        assert "go together" in call(endpoint, check=64, cert_file=mine["cert"])
        assert 'min_version "1.4"' in call(endpoint, check=64, min_version="1.4")


def test_certificates_are_read_again_when_they_change():
    tls = dict(certificate(), ca=ca_file())
    at = folder()
    first = certificate("agent one", None, ca="Other CA", at=at)
    with server(tls=tls) as port:
        with Interactive("https://localhost:%d" % port, ca_file=ca_file(), cert_file=first["cert"],
                         key_file=first["key"]) as client:
            assert client.call()["failure"] == "tls"
            right = certificate("agent two", None)
            os.replace(right["key"], first["key"])
            os.replace(right["cert"], first["cert"])
            time.sleep(1.3)  # back-off
            one = client.call()
            assert one["code"] == "OK", one


def test_no_alpn():
    """A TLS server that knows of no HTTP/2."""
    pair = certificate()
    for words, text in [([], "localhost:%d does not offer HTTP/2 over TLS (ALPN \"h2\")"),
                        (["-alpn", "http/1.1"], "localhost:%d does not offer HTTP/2")]:
        with s_server(pair, *words) as port:
            one = call_one("https://localhost:%d" % port, ca_file=ca_file())
            assert one["failure"] == "tls" and text % port in one["message"], one


def test_old_tls_is_refused():
    pair = certificate()
    with scripted_tls(pair, "TLSv1_1") as port:
        one = call_one("https://localhost:%d" % port, ca_file=ca_file())
        assert one["failure"] == "tls" and one["number"] == 301, one
    with scripted_tls(pair, "TLSv1_2") as port:
        one = call_one("https://localhost:%d" % port, ca_file=ca_file(), min_version="1.3")
        assert "offers no version of TLS that is allowed here" in one["message"], one


@contextlib.contextmanager
def scripted_tls(pair, version):
    """A server that offers that version of TLS only."""
    import ssl, warnings
    warnings.simplefilter("ignore")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair["cert"], pair["key"])
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = context.maximum_version = getattr(ssl.TLSVersion, version)
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        try:
            peer, _ = listener.accept()
            with context.wrap_socket(peer, server_side=True) as tls:
                tls.recv(1)
        except (OSError, ssl.SSLError):
            pass

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.close()


def test_sessions_are_resumed():
    """The second connection costs the server no signature: TLS tickets are kept."""
    import ssl
    pair = certificate()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair["cert"], pair["key"])
    context.set_alpn_protocols(["h2"])
    listener = socket.create_server(("127.0.0.1", 0))
    reused = []

    def serve():
        for _ in range(2):
            peer, _ = listener.accept()
            with context.wrap_socket(peer, server_side=True) as tls:
                tls.recv(4096)
                reused.append(tls.session_reused)
                tls.sendall(b"\0\0\0\4\0\0\0\0\0")                      # SETTINGS
                tls.recv(4096)
                tls.sendall(b"\0\0\x08\7\0\0\0\0\0" + b"\0" * 8)        # GOAWAY: nothing was looked at
                tls.recv(4096)

    thread = threading.Thread(target=serve)
    thread.start()
    one = call_one("https://localhost:%d" % listener.getsockname()[1], ca_file=ca_file(), timeout_ms=3000)
    assert one["code"] == "UNAVAILABLE" and one["unprocessed"] == 1, one
    thread.join()
    assert reused == [False, True], reused


def test_tls_to_a_plain_port_and_back():
    with server() as port:
        one = call_one("https://127.0.0.1:%d" % port, ca_file=ca_file())
        refused(one, "127.0.0.1:%d does not speak TLS" % port)
    with server(tls=certificate()) as port:
        one = call_one("http://127.0.0.1:%d" % port)
        assert (one["code"], one["failure"], one["number"]) == ("UNAVAILABLE", "lost", 305), one
        assert "127.0.0.1:%d said nothing in plaintext; does it expect TLS?" % port in one["message"], one


main(globals())
