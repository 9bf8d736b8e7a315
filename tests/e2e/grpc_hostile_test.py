# SPDX-License-Identifier: Apache-2.0
"""Servers that break HTTP/2 or gRPC, or mean harm: each call ends in time, in little memory, and its
message says what happened."""
import gzip, os, struct, time, zlib
from support import *
from support_grpc import *
from support_h2_server import *

DEADLINE_MS = 700       # of calls that nothing but their deadline can end
PATIENCE_MS = 5000      # of the others, on a busy machine
MEMORY = 2 << 20
BIG = 1 << 20


@functools.lru_cache(None)
def normal_memory():
    with serve(lambda peer, _: peer.answer(peer.request())) as (port, _):
        calls = call("http://127.0.0.1:%d" % port)
        assert calls[0]["code"] == "OK", calls
        return calls.total["max_rss"]


def expect(script, code, failure, text="", ends_by_deadline=False, unprocessed=None, n_connections=None, size=100,
           **settings):
    normal = normal_memory()
    with serve(script) as (port, peers):
        calls = call("http://127.0.0.1:%d" % port, timeout_ms=DEADLINE_MS if ends_by_deadline else PATIENCE_MS, max_response=65536, size=size, **settings)
        one = calls[0]
        assert (one["code"], one["failure"]) == (code, failure), one
        assert text in one["message"], (text, one)
        assert one["ms"] < (DEADLINE_MS + 500 if ends_by_deadline else 1500), one
        assert ends_by_deadline == (one["code"] == "DEADLINE_EXCEEDED"), one
        if not calls.total["is_sanitized"]:
            assert calls.total["max_rss"] - normal < MEMORY, (calls.total["max_rss"], normal)
        if unprocessed is not None:
            assert one["unprocessed"] == unprocessed, one
        if n_connections is not None:
            assert len(peers) == n_connections, len(peers)
        return one


# --- what is no HTTP/2 ---

def test_silence():
    one = expect(lambda peer, _: None, "DEADLINE_EXCEEDED", "deadline", "waited for the server's SETTINGS", True, 1)
    assert "no answer from 127.0.0.1:" in one["message"] and "within 0.7 s" in one["message"], one


def test_connection_closed_at_once():
    def script(peer, _):
        peer.preface()
        peer.socket.close()
    expect(script, "UNAVAILABLE", "lost", "does it expect TLS?", unprocessed=1)


def test_http_1():
    answer = b"HTTP/1.1 400 Bad Request\r\nServer: x\r\nConnection: close\r\n\r\n<html>"
    expect(lambda peer, _: peer.send(answer), "UNAVAILABLE", "protocol",
           'the server speaks HTTP/1, not HTTP/2 as gRPC needs; it answered "HTTP/1.1 400 Bad Request"', unprocessed=1)


def test_tls_alert():
    expect(lambda peer, _: peer.send(b"\x15\x03\x01\x00\x02\x02\x16ABCDEFG"), "UNAVAILABLE", "protocol",
           "the server speaks TLS, and plaintext was asked for")


def test_another_protocol():
    expect(lambda peer, _: peer.send(b"SSH-2.0-OpenSSH_9.2\r\n"), "UNAVAILABLE", "protocol",
           'the server does not speak HTTP/2; it sent "SSH-2.0-OpenSSH_9.2"')


def test_noise():
    expect(lambda peer, _: peer.send(bytes(range(256)) * 64), "UNAVAILABLE", "protocol", "does not speak HTTP/2")


def test_first_frame_is_not_settings():
    expect(lambda peer, _: peer.send(frame(PING, 0, 0, b"12345678")), "UNAVAILABLE", "protocol", "does not speak HTTP/2")


# --- floods ---

def flood(chunk):
    def script(peer, _):
        peer.request()
        peer.forever(chunk)
    return script


def test_ping_flood():
    expect(flood(frame(PING, 0, 0, b"12345678") * 1000), "INTERNAL", "protocol", "floods the connection")


def test_settings_flood():
    expect(flood(settings((3, 100)) * 1000), "INTERNAL", "protocol", "floods the connection")


def test_window_update_flood():
    expect(flood(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1)) * 1000), "INTERNAL", "protocol", "floods the connection")


def test_unknown_frame_flood():
    expect(flood(frame(0xfa, 0, 0, b"x" * 50) * 1000), "INTERNAL", "protocol", "floods the connection")


def test_priority_flood():
    expect(flood(frame(PRIORITY, 0, 3, b"\0\0\0\0\x10") * 1000), "INTERNAL", "protocol", "floods the connection")


def test_empty_data_flood():
    def script(peer, _):
        stream = peer.request()
        peer.headers(stream)
        peer.forever(frame(DATA, 0, stream) * 1000)
    expect(script, "INTERNAL", "protocol", "floods the connection")


def test_interim_answer_flood():
    def script(peer, _):
        stream = peer.request()
        peer.forever(frame(HEADERS, END_HEADERS, stream, block((":status", "103"))) * 1000)
    expect(script, "INTERNAL", "protocol", "floods the connection")


def test_continuation_flood():
    def script(peer, _):
        stream = peer.request()
        peer.send(frame(HEADERS, 0, stream, block(*OK_HEADERS)))
        peer.forever(frame(CONTINUATION, 0, stream) * 1000)
    expect(script, "INTERNAL", "protocol", "Too many CONTINUATION frames")


def test_endless_header_block():
    def script(peer, _):
        stream = peer.request()
        peer.send(frame(HEADERS, 0, stream, block(*OK_HEADERS)))
        peer.forever(frame(CONTINUATION, 0, stream, block(*[("x-%d" % i, "v" * 100) for i in range(100)])))
    expect(script, "INTERNAL", "protocol", "")


def test_header_bomb():
    """One byte each, 4000 bytes unpacked."""
    def script(peer, _):
        stream = peer.request()
        bomb = block(*OK_HEADERS) + literal("x", "v" * 3900, first=0x40) + b"\xbe" * 15000
        peer.send(frame(HEADERS, 0, stream, bomb[:16384]))
        peer.send(frame(CONTINUATION, END_HEADERS, stream, bomb[16384:]))
    expect(script, "INTERNAL", "protocol", "more than 65536 bytes of headers")


def test_rapid_reset():
    """Each stream is reset as soon as it opens: calls end, and none is tried for ever."""
    def script(peer, _):
        peer.preface()
        peer.send(settings())
        while True:
            stream = peer.wait(HEADERS)[2]
            peer.send(frame(RST_STREAM, 0, stream, struct.pack(">I", 2)))
    with serve(script) as (port, _):
        calls = call("http://127.0.0.1:%d" % port, calls=500, parallel=50, timeout_ms=3000)
        assert len(calls) == 500 and {one["code"] for one in calls} == {"INTERNAL"}
        assert all(one["message"] == "the server reset the stream with INTERNAL_ERROR" for one in calls), calls[0]


def test_resets_nobody_asked_for():
    """RST_STREAM over and over for a stream that is long closed."""
    def script(peer, _):
        stream = peer.request()
        peer.forever(frame(RST_STREAM, 0, stream, struct.pack(">I", 8)) * 1000)
    expect(script, "CANCELLED", "protocol", "the server reset the stream with CANCEL")


# --- refusals ---

def reset(code):
    def script(peer, _):
        peer.preface()
        peer.send(settings())
        while True:
            stream = peer.wait(HEADERS)[2]
            peer.send(frame(RST_STREAM, 0, stream, struct.pack(">I", code)))
    return script


def test_refused_stream_is_tried_once_more():
    expect(reset(7), "UNAVAILABLE", "lost", "refused the stream", unprocessed=1, n_connections=1)

    def once(peer, _):
        peer.preface()
        peer.send(settings())
        stream = peer.wait(HEADERS)[2]
        peer.send(frame(RST_STREAM, 0, stream, struct.pack(">I", 7)))
        peer.answer(peer.next_request(), b"second")
    assert expect(once, "OK", "none")["response"] == b"second".hex()


def test_other_resets():
    for number_, code in [(0, "INTERNAL"), (1, "INTERNAL"), (3, "INTERNAL"), (8, "CANCELLED"),
                          (11, "RESOURCE_EXHAUSTED"), (12, "PERMISSION_DENIED"), (99, "INTERNAL")]:
        expect(reset(number_), code, "protocol", "the server reset the stream with", unprocessed=0)


def goaway(last, code=0, debug=b""):
    return frame(GOAWAY, 0, 0, struct.pack(">II", last, code) + debug)


def test_goaway_before_the_call_was_looked_at():
    def script(peer, index):
        stream = peer.request()
        if index == 0:
            peer.send(goaway(0, 0, b"max_age"))
        else:
            peer.answer(stream, b"again")
    assert expect(script, "OK", "none", n_connections=2)["response"] == b"again".hex()


def test_goaway_always():
    def script(peer, _):
        peer.request()
        peer.send(goaway(0, 11, b"go away"))
    expect(script, "UNAVAILABLE", "lost", 'GOAWAY ENHANCE_YOUR_CALM "go away"', unprocessed=1, n_connections=2)


def test_graceful_goaway_lets_calls_end():
    def script(peer, _):
        stream = peer.request()
        peer.send(goaway(0x7fffffff), frame(PING, 0, 0, b"drained?"), goaway(stream))
        peer.answer(stream, b"done")
    assert expect(script, "OK", "none", n_connections=1)["response"] == b"done".hex()


def test_goaway_that_grows():
    def script(peer, _):
        peer.request()
        peer.send(goaway(1), goaway(5))
    expect(script, "INTERNAL", "protocol", "broke HTTP/2")


def test_goaway_with_an_even_number():
    def script(peer, _):
        peer.request()
        peer.send(goaway(2))
    expect(script, "INTERNAL", "protocol", "broke HTTP/2")


# --- broken HTTP/2 ---

def broken(*frames):
    def script(peer, _):
        peer.request()
        peer.send(*frames)
    return script


def test_frames_that_break_the_protocol():
    stream = 1
    for what, frames in {
            "frame larger than allowed": [frame(DATA, 0, stream, b"x" * 16385)],
            "HEADERS on stream 0": [frame(HEADERS, END_HEADERS, 0, block(*OK_HEADERS))],
            "DATA on an idle stream": [frame(DATA, 0, 99, b"x")],
            "HEADERS on a stream of the server": [frame(HEADERS, END_HEADERS, 2, block(*OK_HEADERS))],
            "PUSH_PROMISE": [frame(PUSH_PROMISE, END_HEADERS, stream, struct.pack(">I", 2) + block((":method", "GET")))],
            "WINDOW_UPDATE overflow": [frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 0x7fffffff))],
            "WINDOW_UPDATE of 0": [frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 0))],
            "SETTINGS: window too large": [settings((4, 0x80000000))],
            "SETTINGS: frames too small": [settings((5, 1))],
            "SETTINGS: push 2": [settings((2, 2))],
            "SETTINGS of 5 bytes": [frame(SETTINGS, 0, 0, b"12345")],
            "PING of 7 bytes": [frame(PING, 0, 0, b"1234567")],
            "invalid HPACK": [frame(HEADERS, END_HEADERS, stream, b"\xff\xff\xff\xff\xff\xff")],
            "padding longer than the frame": [frame(HEADERS, END_HEADERS | PADDED, stream, b"\xff" + block(*OK_HEADERS))],
            "CONTINUATION out of the blue": [frame(CONTINUATION, END_HEADERS, stream, block(*OK_HEADERS))],
            "RST_STREAM of an idle stream": [frame(RST_STREAM, 0, 77, struct.pack(">I", 8))],
    }.items():
        one = expect(broken(*frames), "INTERNAL", "protocol", "broke HTTP/2", unprocessed=0)
        assert "no details" not in one["message"], (what, one)


def test_answers_that_break_http():
    stream = 1
    headers = lambda *pairs, end=0: frame(HEADERS, END_HEADERS | end, stream, block(*pairs))
    for what, frames in {
            "upper-case name": [headers((":status", "200"), ("Content-Type", "application/grpc"))],
            "no status": [headers(("content-type", "application/grpc"))],
            "second block without an end": [headers(*OK_HEADERS), headers(("x", "y"))],
            "content-length lies": [headers(*OK_HEADERS, ("content-length", "3")), frame(DATA, 0, stream, b"12345")],
            "DATA before HEADERS": [frame(DATA, 0, stream, b"12345")],
            "a connection header": [headers(*OK_HEADERS, ("connection", "close"))],
    }.items():
        one = expect(broken(*frames), "INTERNAL", "protocol", "broke HTTP/2", unprocessed=0)
        assert one["http"] in (0, 200), (what, one)


def test_headers_before_the_request():
    def script(peer, _):
        peer.preface()
        peer.send(settings(), frame(HEADERS, END_HEADERS | END_STREAM, 1, block(*OK_HEADERS, ("grpc-status", "0"))))
    expect(script, "UNAVAILABLE", "protocol", "broke HTTP/2", unprocessed=1)


# --- broken or odd gRPC ---

def answer(body=b"", headers=OK_HEADERS, trailers=OK_TRAILERS):
    def script(peer, _):
        stream = peer.request()
        peer.headers(stream, headers, end=body is None and trailers is None)
        if body is not None:
            for i in range(0, len(body), 16000):
                peer.data(stream, body[i:i + 16000], end=trailers is None and i + 16000 >= len(body))
        if trailers is not None:
            peer.headers(stream, trailers, end=True)
    return script


def test_a_page_instead_of_an_answer():
    page = b"<!DOCTYPE html>\n<html><title>Login</title>" + b"x" * 100000
    for status, code, number_ in [("200", "UNKNOWN", 304), ("401", "UNAUTHENTICATED", 302), ("403", "PERMISSION_DENIED", 302),
                                  ("404", "UNIMPLEMENTED", 304), ("502", "UNAVAILABLE", 304), ("418", "UNKNOWN", 304)]:
        one = expect(answer(page, [(":status", status), ("content-type", "text/html; charset=utf-8")], None), code,
                     "not_grpc", 'the answer is not gRPC: HTTP status %s, content-type text/html; charset=utf-8, '
                     'it begins "<!DOCTYPE html> <html><title>Login</title>' % status)
        assert one["number"] == number_ and one["http"] == int(status), one


def test_retry_after_of_a_proxy():
    one = expect(answer(b"busy", [(":status", "503"), ("content-type", "text/plain"), ("retry-after", "17")], None),
                 "UNAVAILABLE", "not_grpc", 'it begins "busy"')
    assert (one["has_retry"], one["retry_ns"]) == (1, 17 * 10**9), one


def test_endless_body():
    def script(peer, _):
        stream = peer.request()
        peer.headers(stream, [(":status", "200"), ("content-type", "application/octet-stream")])
        peer.forever(frame(DATA, 0, stream, b"A" * 16000))
    expect(script, "UNKNOWN", "not_grpc", "application/octet-stream")


def test_message_that_claims_4_gib():
    expect(answer(message(b"x" * 1000, length=0xffffffff)), "RESOURCE_EXHAUSTED", "protocol",
           "message of 4294967295 bytes is larger than 65536")


def test_endless_messages():
    def script(peer, _):
        stream = peer.request()
        peer.headers(stream)
        peer.forever(frame(DATA, 0, stream, message(b"m") * 100))
    expect(script, "INTERNAL", "protocol", "more than one message")


def test_slow_drip():
    def script(peer, _):
        stream = peer.request()
        peer.headers(stream)
        for byte in message(b"x" * 60000):
            peer.data(stream, bytes([byte]))
            time.sleep(0.01)
    expect(script, "DEADLINE_EXCEEDED", "deadline", "waited for the answer", True, 0)


def test_slow_drip_of_frames():
    def script(peer, _):
        stream = peer.request()
        for byte in frame(HEADERS, END_HEADERS, stream, block(*OK_HEADERS, ("x", "y" * 1000))):
            peer.send(bytes([byte]))
            time.sleep(0.01)
    expect(script, "DEADLINE_EXCEEDED", "deadline", "waited for the answer", True, 0)


def test_end_without_status():
    expect(answer(message(b"x"), trailers=None), "UNKNOWN", "protocol", "ended without grpc-status")
    expect(answer(message(b"x"), trailers=[("x", "y")]), "UNKNOWN", "protocol", "ended without grpc-status")


def test_message_cut_short():
    expect(answer(message(b"x" * 10, length=20)), "INTERNAL", "protocol", "in the middle of a message")
    expect(answer(b"\0\0"), "INTERNAL", "protocol", "in the middle of a message")


def test_ok_without_a_message():
    expect(answer(b""), "INTERNAL", "protocol", "without the one message")
    expect(answer(None, OK_HEADERS + OK_TRAILERS, None), "INTERNAL", "protocol", "without the one message")


def test_trailers_only():
    one = expect(answer(None, OK_HEADERS + [("grpc-status", "3"), ("grpc-message", "too old%20%E2%98%BA%zz")], None),
                 "INVALID_ARGUMENT", "none", "too old ☺%zz")
    assert one["number"] == 0 and one["http"] == 200, one


def test_flags_and_encodings():
    expect(answer(message(b"x", flag=2)), "INTERNAL", "protocol", "begins with flag 2")
    expect(answer(message(b"x", flag=1)), "INTERNAL", "protocol", "names no encoding")
    expect(answer(message(b"x", flag=1), OK_HEADERS + [("grpc-encoding", "snappy")]), "INTERNAL", "protocol",
           'compressed with "snappy"')
    gzip_headers = OK_HEADERS + [("grpc-encoding", "gzip")]
    expect(answer(message(b"no gzip", flag=1), gzip_headers), "INTERNAL", "protocol", "compressed message")
    expect(answer(message(gzip.compress(b"x" * 1000)[:-9], flag=1), gzip_headers), "INTERNAL", "protocol",
           "compressed message")
    one = expect(answer(message(gzip.compress(b"fine"), flag=1), gzip_headers), "OK", "none")
    assert one["response"] == b"fine".hex()


def test_gzip_bomb():
    bomb = gzip.compress(b"\0" * (20 << 20))
    assert len(bomb) < 65536
    expect(answer(message(bomb, flag=1), OK_HEADERS + [("grpc-encoding", "gzip")]), "RESOURCE_EXHAUSTED", "protocol",
           "compressed message")


def test_odd_statuses():
    for value in ("abc", "007", "99", "-1", ""):
        expect(answer(message(b"x"), trailers=[("grpc-status", value)]), "UNKNOWN", "none",
               'unknown grpc-status "%s"' % value)


def test_a_message_for_terminals():
    """Escape sequences of a server reach no terminal."""
    one = expect(answer(None, OK_HEADERS + [("grpc-status", "5"), ("grpc-message", "%1B[31mred%00%C2%9B" + "x" * 5000)], None),
                 "NOT_FOUND", "none", "?[31mred??")
    assert len(one["message"].encode()) < 1024 and one["message"].endswith("…"), one


def test_interim_answers_are_skipped():
    def script(peer, _):
        stream = peer.request()
        for status in ("100", "103", "102"):
            peer.headers(stream, [(":status", status), ("grpc-status", "9"), ("content-type", "text/html")])
        peer.answer(stream, b"final")
    assert expect(script, "OK", "none")["response"] == b"final".hex()


def test_message_over_many_frames():
    def script(peer, _):
        stream = peer.request()
        peer.headers(stream)
        for byte in message(b"one byte at a time"):
            peer.data(stream, bytes([byte]))
        peer.headers(stream, OK_TRAILERS, end=True)
    assert expect(script, "OK", "none")["response"] == b"one byte at a time".hex()


def test_answer_and_reset_before_the_request_is_whole():
    def script(peer, _):
        peer.preface()
        peer.send(settings((4, 1000)))
        stream = peer.wait(HEADERS)[2]
        peer.headers(stream, OK_HEADERS + [("grpc-status", "8"), ("grpc-message", "enough")], end=True)
        got = peer.wait(RST_STREAM)
        assert got[3] == b"\0\0\0\0", got
    expect(script, "RESOURCE_EXHAUSTED", "none", "enough", size=BIG)


# --- flow control ---

def test_a_window_that_stays_shut():
    def script(peer, _):
        peer.preface()
        peer.send(settings((4, 0)))
    expect(script, "DEADLINE_EXCEEDED", "deadline", "flow control", True, 0)


def test_no_streams_allowed():
    def script(peer, _):
        peer.preface()
        peer.send(settings((3, 0)))
    expect(script, "DEADLINE_EXCEEDED", "deadline", "waited for the server to allow another stream", True, 1)


def test_windows_and_frames_of_odd_sizes():
    """The window shrinks below zero while the request is under way, and opens a little at a time."""
    def script(peer, _):
        peer.preface()
        peer.send(settings((4, 40000), (5, 20000)))
        stream = peer.wait(HEADERS)[2]
        body = b""
        while len(body) < 40000:
            body += peer.wait(DATA, stream)[3]
        peer.send(settings((4, 10000)))
        peer.send(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1 << 20)))
        while len(body) < 100005:
            peer.send(frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", 7001)))
            if len(body) > 40000 or peer.frames:
                peer.socket.settimeout(0.05)
                try:
                    while True:
                        body += peer.wait(DATA, stream)[3]
                except TimeoutError:
                    pass
        assert body == message(pattern(100000)), len(body)
        peer.socket.settimeout(10)
        peer.answer(stream, b"whole")
    assert expect(script, "OK", "none", size=100000)["response"] == b"whole".hex()


def test_streams_wait_for_their_turn():
    """MAX_CONCURRENT_STREAMS of 2, 20 calls at once."""
    most = []

    def script(peer, _):
        peer.preface()
        peer.send(settings((3, 2)))
        open_streams = set()
        while True:
            kind, flags, stream, _ = peer.read()
            if kind == HEADERS:
                open_streams.add(stream)
                most.append(len(open_streams))
            if kind == DATA and flags & END_STREAM:
                time.sleep(0.01)
                open_streams.discard(stream)
                peer.answer(stream)
    with serve(script) as (port, _):
        calls = call("http://127.0.0.1:%d" % port, calls=20, parallel=20)
        assert calls.total["ok"] == 20 and max(most) == 2, (calls, most)


def test_peer_that_does_not_read():
    """The kernel's buffers fill; the call ends by its deadline and memory stays small."""
    def script(peer, _):
        peer.preface()
        peer.send(settings((4, 0x7fffffff)), frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 0x7fff0000)))
        time.sleep(3)
    with serve(script) as (port, _):
        calls = call("http://127.0.0.1:%d" % port, timeout_ms=DEADLINE_MS, size=BIG, messages=1000, path="/test.Echo/Total")
        one = calls[0]
        assert one["code"] == "DEADLINE_EXCEEDED" and one["ms"] < DEADLINE_MS + 500, one
        assert "the connection to take more of the request" in one["message"], one
        if not calls.total["is_sanitized"]:
            assert calls.total["max_rss"] - normal_memory() < MEMORY + BIG, calls.total


main(globals())
