# SPDX-License-Identifier: Apache-2.0
"""The gRPC client against grpcio: the cases of gRPC's interop suite that a unary or client-streaming
client can play, over plaintext and over TLS."""
import json
from support import *
from support_grpc import *


def each_way():
    """(endpoint, settings of the client) of one plaintext and one TLS server."""
    with server(options=[["grpc.max_receive_message_length", 64 << 20]]) as port:
        yield "http://127.0.0.1:%d" % port, {}
    with server(tls=certificate(), options=[["grpc.max_receive_message_length", 64 << 20]]) as port:
        yield "https://localhost:%d" % port, {"ca_file": authority("Test CA")[0]}


def test_empty_unary():
    for endpoint, settings in each_way():
        one = call_one(endpoint, **settings)
        assert (one["code"], one["n_response"], one["http"], one["failure"]) == ("OK", 0, 200, "none"), one


def test_large_unary_comes_back_whole():
    for endpoint, settings in each_way():
        for size in (1, 271828, 3 << 20):
            one = call_one(endpoint, size=size, **settings)
            assert one["code"] == "OK" and one["n_response"] == size, one
            assert one["response"] == pattern(min(size, 64)).hex(), one


def test_a_message_larger_than_the_receiver_takes():
    with server() as port:
        assert call_one("http://127.0.0.1:%d" % port, size=4194304, max_response=8 << 20)["code"] == "OK"
        one = call_one("http://127.0.0.1:%d" % port, size=4194305)
        assert one["code"] == "RESOURCE_EXHAUSTED" and one["failure"] == "none", one
        assert "4194305" in one["message"] and "4194304" in one["message"], one


def test_an_answer_larger_than_allowed():
    with server() as port:
        one = call_one("http://127.0.0.1:%d" % port, size=100000, max_response=99999)
        assert one["code"] == "RESOURCE_EXHAUSTED" and one["failure"] == "protocol", one
        assert "100000" in one["message"], one
        assert call_one("http://127.0.0.1:%d" % port, size=100000, max_response=100000)["code"] == "OK"


def test_client_streaming():
    for endpoint, settings in each_way():
        one = call_one(endpoint, path="/test.Echo/Total", messages=4, size=27182, **settings)
        assert json.loads(bytes.fromhex(one["response"])) == {"n": 4, "bytes": 4 * 27182}, one
        one = call_one(endpoint, path="/test.Echo/Total", messages=0, **settings)
        assert json.loads(bytes.fromhex(one["response"])) == {"n": 0, "bytes": 0}, one
        one = call_one(endpoint, path="/test.Echo/Total", messages=300, size=100000, **settings)
        assert json.loads(bytes.fromhex(one["response"])) == {"n": 300, "bytes": 30000000}, one


def test_a_server_that_ends_a_stream_early():
    for endpoint, settings in each_way():
        one = call_one(endpoint, path="/test.Echo/Early", messages=1000, size=100000, **settings)
        assert (one["code"], one["message"]) == ("FAILED_PRECONDITION", "seen enough"), one
        assert one["failure"] == "none" and one["ms"] < 5000, one


def test_compressed_unary_both_ways():
    with server(gzip=True) as port:
        for size in (0, 1, 1000, 1000000):
            one = call_one("http://127.0.0.1:%d" % port, gzip=True, size=size)
            assert one["code"] == "OK" and one["n_response"] == size, one
            assert one["response"] == pattern(min(size, 64)).hex(), one
        one = call_one("http://127.0.0.1:%d" % port, gzip=True, path="/test.Echo/Total", messages=20, size=50000)
        assert json.loads(bytes.fromhex(one["response"])) == {"n": 20, "bytes": 1000000}, one


def sent_metadata(endpoint, **settings):
    """The whole answer of /Metadata: the client prints its first 64 bytes, so it is asked in pieces."""
    import grpc
    from concurrent import futures
    seen = []

    class Handler(grpc.GenericRpcHandler):
        def service(self, details):
            seen.append((details.method, list(details.invocation_metadata)))
            def answer(request, context):
                context.send_initial_metadata((("x-grpc-test-echo-initial", "test_initial_metadata_value"),))
                context.set_trailing_metadata((("x-grpc-test-echo-trailing-bin", b"\xab\xab\xab"),))
                seen.append(context.time_remaining())
                return b""
            return grpc.unary_unary_rpc_method_handler(answer)

    served = grpc.server(futures.ThreadPoolExecutor(2))
    served.add_generic_rpc_handlers((Handler(),))
    port = served.add_insecure_port("127.0.0.1:0")
    served.start()
    one = call_one("http://127.0.0.1:%d" % port, **settings)
    served.stop(0)
    assert one["code"] == "OK", one
    return seen[0][0], seen[0][1], seen[1]


def test_custom_metadata():
    path, metadata, remaining = sent_metadata(
        None, path="/pkg.Service/Some_Method", timeout_ms=7000, tenant="team a", user="me", password="pass:word",
        header=[("X-Grpc-Test-Echo-Initial", "test_initial_metadata_value"), ("x-empty", ""),
                ("X-Grpc-Test-Echo-Trailing-Bin", "q6ur"), ("odd-bin", "AQ==")])
    pairs = dict(metadata)
    assert path == "/pkg.Service/Some_Method"
    assert pairs["x-grpc-test-echo-initial"] == "test_initial_metadata_value"
    assert pairs["x-grpc-test-echo-trailing-bin"] == b"\xab\xab\xab" and pairs["odd-bin"] == b"\x01"
    assert pairs["x-empty"] == "" and pairs["x-scope-orgid"] == "team a"
    assert pairs["authorization"] == "Basic bWU6cGFzczp3b3Jk"
    assert pairs["user-agent"].startswith("grpc-c-perfpipe/")
    assert 5 < remaining <= 7, remaining


def status(endpoint, code, message, trailers=(), **settings):
    body = json.dumps({"code": code, "message": message, "trailers": list(trailers)}).encode()
    return call_one(endpoint, path="/test.Echo/Status", hex=body.hex(), **settings)


def test_status_code_and_message():
    with server() as port:
        endpoint = "http://127.0.0.1:%d" % port
        one = status(endpoint, 2, "test status message")
        assert (one["code"], one["message"], one["failure"]) == ("UNKNOWN", "test status message", "none"), one
        for code, name in enumerate(["OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND",
                                     "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
                                     "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS",
                                     "UNAUTHENTICATED"]):
            if code:
                assert status(endpoint, code, "m")["code"] == name
        assert status(endpoint, 16, "bad token")["number"] == 302
        assert status(endpoint, 7, "not yours")["number"] == 302


def test_special_status_message():
    with server() as port:
        text = "\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n"
        one = status("http://127.0.0.1:%d" % port, 2, text)
        # One line: white space is folded.
        assert one["message"] == "test with whitespace and Unicode BMP ☺ and non-BMP 😈", one


def test_retry_hints():
    from google.protobuf import any_pb2, duration_pb2
    retry_info = any_pb2.Any(type_url="type.googleapis.com/google.rpc.RetryInfo")
    delay = duration_pb2.Duration(seconds=3, nanos=500).SerializeToString()
    retry_info.value = b"\x0a" + bytes([len(delay)]) + delay
    any_bytes = retry_info.SerializeToString()
    details = b"\x08\x0e\x1a" + bytes([len(any_bytes)]) + any_bytes
    with server() as port:
        endpoint = "http://127.0.0.1:%d" % port
        one = status(endpoint, 14, "later", [["grpc-status-details-bin", details.hex()]])
        assert (one["has_retry"], one["retry_ns"], one["n_details"]) == (1, 3000000500, len(details)), one
        one = status(endpoint, 14, "later", [["grpc-retry-pushback-ms", "250"]])
        assert (one["has_retry"], one["retry_ns"], one["must_not_retry"]) == (1, 250000000, 0), one
        one = status(endpoint, 14, "never", [["grpc-retry-pushback-ms", "-1"]])
        assert (one["has_retry"], one["must_not_retry"]) == (0, 1), one


def test_unimplemented_method_and_service():
    with server() as port:
        for path in ("/test.Echo/Missing", "/no.Such/Method"):
            one = call_one("http://127.0.0.1:%d" % port, path=path)
            assert one["code"] == "UNIMPLEMENTED" and one["failure"] == "none", one


def test_cancel_after_begin():
    with server() as port:
        calls = call("http://127.0.0.1:%d" % port, path="/test.Echo/Sleep", hex=b"5000".hex(), cancel_ms=100, limit=5)
        assert calls[0]["code"] == "cancelled by the program" and calls.total["ended"] == 1


def test_timeout_on_sleeping_server():
    with server() as port:
        one = call_one("http://127.0.0.1:%d" % port, path="/test.Echo/Sleep", hex=b"5000".hex(), timeout_ms=300)
        assert one["code"] == "DEADLINE_EXCEEDED" and 250 < one["ms"] < 1300, one


def test_many_calls_at_once():
    for endpoint, settings in each_way():
        calls = call(endpoint, calls=2000, parallel=200, size=3000, quiet=True, **settings)
        assert calls.total["ok"] == 2000, calls.total


main(globals())
