# SPDX-License-Identifier: Apache-2.0
"""Debug information goes to a grpcio server with Parca's rules over a real channel, once, and what arrives there resolves
addresses like the program does."""
import http.server, os, subprocess, sys, threading
import support
from support import folder, main, need, write

try:
    import grpc
    import support_grpc_servers as servers
except ImportError as e:
    print("skipped: %s" % e)
    sys.exit(77)

ID = "0102030405060708090a0b0c0d0e0f1011121314"


def upload(server, state, *pairs):
    """(states by build-id, counts, last error)"""
    program = os.path.join(os.path.dirname(support.binary), "tests/debuginfo_client")
    done = subprocess.run([program, server.address, state, *[word for pair in pairs for word in pair]], capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    return (dict(line.split() for line in lines[:len(pairs)]),
            {k: int(v) for k, v in (word.split("=") for word in lines[len(pairs)].split())}, "".join(lines[len(pairs) + 1:]))


def made(size=6 << 20):
    """A program of that many bytes of debug information with our build-id, and its code."""
    need("gcc")
    at = folder()
    write(at + "/a.c", b"int work(int a)\n{\n\treturn a * 3;\n}\nchar code[300000] = {1};\nint main(void)\n{\n\treturn work(2);\n}\n")
    write(at + "/notes", os.urandom(size))
    program = at + "/program"
    subprocess.run(["gcc", "-g", "-o", program, at + "/a.c", "-Wl,--build-id=0x" + ID], check=True)
    subprocess.run(["objcopy", "--add-section", ".debug_filler=" + at + "/notes", program], check=True)
    return program


def addresses(path):
    symbols = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout.split("\n")
    return [line.split()[0] for line in symbols if line.endswith((" work", " main"))]


def test_a_program_is_uploaded_once_and_resolves():
    program, state = made(), folder() + "/state"
    with servers.Backend("parca") as server:
        states, counts, error = upload(server, state, (program, ID))
        assert states == {ID: "done"} and counts["uploaded"] == 1 and counts["failures"] == 0, (states, counts, error)
        data = server.debuginfo.uploads[ID]
        assert len(data) == counts["bytes"] and 6 << 20 < len(data) < os.path.getsize(program) - 290000
        paths = [call.path.rsplit("/", 1)[1] for call in server.calls]
        assert paths == ["ShouldInitiateUpload", "InitiateUpload", "Upload", "MarkUploadFinished"], paths
        assert max(map(len, server.calls[2].message)) < 4 << 20 and len(server.calls[2].message) >= 7
        where = write(folder() + "/arrived", data)
        for tool in (["addr2line", "-f", "-e"], ["eu-addr2line", "-f", "-e"]):
            need(tool[0])
            got, want = (subprocess.run([*tool, path, *["0x" + a for a in addresses(program)]], capture_output=True, text=True,
                                        check=True).stdout for path in (where, program))
            assert got == want and "work" in want and "a.c:" in want, (got, want)
        # A restart asks no more.
        assert upload(server, state, (program, ID))[0] == {ID: "done"} and len(server.calls) == 4


class Store(http.server.BaseHTTPRequestHandler):
    """An object store with signed URLs."""

    def do_PUT(self):
        build_id = self.path.rsplit("/", 1)[1]
        self.server.backend.debuginfo.received[build_id] = self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *words):
        pass


def test_signed_urls_get_the_same_bytes():
    program = made(3 << 20)
    with servers.Backend("parca") as streamed, servers.Backend("parca") as server:
        upload(streamed, folder() + "/s", (program, ID))
        store = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Store)
        store.backend = server
        threading.Thread(target=store.serve_forever, daemon=True).start()
        server.debuginfo.signed_url = "http://127.0.0.1:%d/bucket/" % store.server_port
        states, counts, error = upload(server, folder() + "/s", (program, ID))
        store.shutdown()
        store.server_close()
        assert states == {ID: "done"} and counts["uploaded"] == 1, (states, counts, error)
        assert server.debuginfo.uploads == streamed.debuginfo.uploads and len(server.debuginfo.uploads[ID]) > 3 << 20
        assert [c.path.rsplit("/", 1)[1] for c in server.calls] == ["ShouldInitiateUpload", "InitiateUpload", "MarkUploadFinished"]


def test_what_fails_or_is_not_wanted_is_not_called_done():
    program = made(1000)
    other = "ff" * 20
    with servers.Backend("parca") as server:
        states, counts, error = upload(server, folder() + "/s", (program, other))
        assert states == {other: "refused"} and "another build-id" in error, (states, error)
        server.debuginfo.wanted = lambda build_id: False
        states, counts, _ = upload(server, folder() + "/s", (program, ID))
        assert states == {ID: "done"} and counts["known"] == 1 and server.debuginfo.uploads == {}
        server.debuginfo.wanted = lambda build_id: True
        server.answer(servers.Answer(grpc.StatusCode.INVALID_ARGUMENT, "never"))
        state = folder() + "/s"
        states, _, error = upload(server, state, (program, ID))
        assert states == {ID: "refused"} and "never" in error
        assert upload(server, state, (program, ID))[0] == {ID: "refused"}  # remembered
        server.debuginfo.signed_url = "ftp://store.example/"
        states, _, error = upload(server, folder() + "/s", (program, ID))
        assert states == {ID: "refused"} and "neither https" in error, (states, error)
    states, _, _ = upload(servers.Backend("otlp"), folder() + "/s", (program, ID))
    assert states == {ID: "refused"}  # UNIMPLEMENTED


main(globals())
