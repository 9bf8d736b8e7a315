# SPDX-License-Identifier: Apache-2.0
"""A grpcio server as a process of its own, told by JSON in its one argument; prints its port.

{"address": "127.0.0.1:0", "tls": {"key": …, "cert": …, "ca": …}, "options": [[name, value], …]}"""
import json, signal, sys, time
from concurrent import futures
import grpc


def echo(request, context):
    return request


def total(requests, context):
    sizes = [len(request) for request in requests]
    return json.dumps({"n": len(sizes), "bytes": sum(sizes)}).encode()


def metadata(request, context):
    """What was sent, and two pieces of it back, as the interop case custom_metadata wants it."""
    sent = {key: value for key, value in context.invocation_metadata()}
    if "x-grpc-test-echo-initial" in sent:
        context.send_initial_metadata((("x-grpc-test-echo-initial", sent["x-grpc-test-echo-initial"]),))
    if "x-grpc-test-echo-trailing-bin" in sent:
        context.set_trailing_metadata((("x-grpc-test-echo-trailing-bin", sent["x-grpc-test-echo-trailing-bin"]),))
    shown = {key: value if isinstance(value, str) else value.hex() for key, value in sent.items()}
    shown[":peer"] = context.peer()
    shown[":auth"] = {key: [v.decode() for v in values] for key, values in context.auth_context().items()
                      if key in ("x509_common_name", "ssl_session_reused")}
    shown[":time"] = context.time_remaining()
    return json.dumps(shown).encode()


def status(request, context):
    """{"code": number, "message": text, "trailers": [[key, value or hex for -bin], …]}"""
    wanted = json.loads(request)
    trailers = [(k, bytes.fromhex(v) if k.endswith("-bin") else v) for k, v in wanted.get("trailers", [])]
    if trailers:
        context.set_trailing_metadata(tuple(trailers))
    code = [c for c in grpc.StatusCode if c.value[0] == wanted["code"]][0]
    context.abort(code, wanted["message"])


def early(requests, context):
    """Ends the call at the first message, while the client still sends."""
    next(iter(requests))
    context.abort(grpc.StatusCode.FAILED_PRECONDITION, "seen enough")


def sleep(request, context):
    time.sleep(int(request or b"0") / 1000)
    return b"slept"


class Handler(grpc.GenericRpcHandler):
    METHODS = {
        "/test.Echo/Unary": grpc.unary_unary_rpc_method_handler(echo),
        "/test.Echo/Total": grpc.stream_unary_rpc_method_handler(total),
        "/test.Echo/Metadata": grpc.unary_unary_rpc_method_handler(metadata),
        "/test.Echo/Status": grpc.unary_unary_rpc_method_handler(status),
        "/test.Echo/Early": grpc.stream_unary_rpc_method_handler(early),
        "/test.Echo/Sleep": grpc.unary_unary_rpc_method_handler(sleep),
    }

    def service(self, details):
        return self.METHODS.get(details.method)


def main():
    wanted = json.loads(sys.argv[1])
    options = [tuple(option) for option in wanted.get("options", [])]
    server = grpc.server(futures.ThreadPoolExecutor(8), options=options,
                         compression=grpc.Compression.Gzip if wanted.get("gzip") else None)
    server.add_generic_rpc_handlers((Handler(),))
    tls = wanted.get("tls")
    if tls:
        read = lambda name: open(tls[name], "rb").read() if tls.get(name) else None
        credentials = grpc.ssl_server_credentials([(read("key"), read("cert"))], read("ca"), bool(tls.get("ca")))
        port = server.add_secure_port(wanted["address"], credentials)
    else:
        port = server.add_insecure_port(wanted["address"])
    server.start()
    print(port, flush=True)
    signal.signal(signal.SIGTERM, lambda *_: server.stop(0.2))
    server.wait_for_termination()


if __name__ == "__main__":
    main()
