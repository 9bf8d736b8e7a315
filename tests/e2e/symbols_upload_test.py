# SPDX-License-Identifier: Apache-2.0
"""perfpipe symbols upload, against a server with the rules of Parca's debuginfo store (FR-100, FR-104)."""
import http.server, json, socket, threading, time
from support import *
from support_grpc import authority, certificate
from support_grpc_servers import Answer, Backend, server_credentials
import grpc

ID = "0102030405060708090a0b0c0d0e0f1011121314"
there = folder()


def build(name, build_id=ID, *words):
    need("gcc")
    source = write(os.path.join(there, name + ".c"), b"int work(int a)\n{\n\treturn a * 3;\n}\nint main(void)\n{\n\treturn work(2);\n}\n"
                   b"char filler[100000] = {1};\n")
    program = os.path.join(there, name)
    subprocess.run(["gcc", "-g", "-o", program, source, "-Wl,--build-id=" + ("0x" + build_id if build_id else "none"), *words],
                   check=True)
    return program


def upload(server, *words, check=0, env=None, secure=False):
    done = run("symbols", "upload", "--format", "json", "--to", "parca%s://%s" % ("" if secure else "+insecure", server), *words,
               check=check, env=env)
    # Errors are JSON too then.
    return [json.loads(line) for line in done.stdout.decode().splitlines()], done.stderr


def methods(server):
    return [call.path.rsplit("/", 1)[1] for call in server.calls]


def test_a_binary_is_uploaded_once_and_names_addresses_there():
    program = build("program")
    with Backend("parca") as server:
        (v,), _ = upload(server.address, program)
        assert v["verdict"] == "uploaded" and v["build_id"] == ID and v["source"] == program, v
        assert methods(server) == ["ShouldInitiateUpload", "InitiateUpload", "Upload", "MarkUploadFinished"], methods(server)
        data = server.debuginfo.uploads[ID]
        assert len(data) == v["uploaded_bytes"]
        arrived = write(os.path.join(there, "arrived"), data)
        names = subprocess.run(["nm", arrived], capture_output=True, text=True, check=True).stdout
        assert " T work" in names, names
        # The server knows: AlreadyExists and "not wanted" are the same to us.
        (v,), _ = upload(server.address, program)
        assert v["verdict"] == "known" and len(server.calls) == 5, v
        server.answer(Answer(grpc.StatusCode.ALREADY_EXISTS, "debuginfo already exists"))
        (v,), _ = upload(server.address, program)
        assert v["verdict"] == "known" and v["trouble"] == "debuginfo already exists", v
    text = run("symbols", "upload", program, "--to", "parca+insecure://%s" % server.address, check=75)
    assert b"program: later: not uploaded to parca+insecure://" in text.stdout and "E307" in text.stderr, text


def test_the_debug_file_of_a_stripped_binary_goes_by_path_and_by_build_id():
    other = "aa" * 20
    program = build("stripped", other)
    roots = os.path.join(there, "debug")
    debug = os.path.join(roots, ".build-id", other[:2], other[2:] + ".debug")
    os.makedirs(os.path.dirname(debug))
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    subprocess.run(["strip", program], check=True)
    with Backend("parca") as server:
        (v,), _ = upload(server.address, program, "--debug-root", roots)
        assert v["verdict"] == "uploaded" and v["source"] == debug and v["build_id"] == other, v
        with open(debug, "rb") as f:
            assert b"work" in server.debuginfo.uploads[other] and b"work" in f.read()
    with Backend("parca") as server:
        (v,), _ = upload(server.address, other, "--debug-root", roots)
        assert v["verdict"] == "uploaded" and v["source"] == debug and v["file"] == other, v
        assert list(server.debuginfo.uploads) == [other]


class Store(http.server.BaseHTTPRequestHandler):
    """An object store with signed URLs."""

    def do_PUT(self):
        data = self.rfile.read(int(self.headers["content-length"]))
        status = self.server.statuses.pop(0) if self.server.statuses else 200
        if status == 200:
            self.server.backend.debuginfo.received[self.path.rsplit("/", 1)[1]] = data
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *words):
        pass


def test_signed_urls_are_put_to_and_a_failing_store_is_tried_again():
    program = build("program")
    with Backend("parca") as server:
        store = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Store)
        store.backend, store.statuses = server, [503]
        threading.Thread(target=store.serve_forever, daemon=True).start()
        server.debuginfo.signed_url = "http://127.0.0.1:%d/bucket/" % store.server_port
        (v,), error = upload(server.address, program, check=75)
        assert v["verdict"] == "later" and "HTTP 503" in v["trouble"] and server.debuginfo.uploads == {}, (v, error)
        store.statuses = [500]
        (v,), _ = upload(server.address, program, "--wait")
        assert v["verdict"] == "uploaded" and v["trouble"] is None, v
        assert len(server.debuginfo.uploads[ID]) == v["uploaded_bytes"]
        assert "Upload" not in methods(server)
        store.shutdown()
        store.server_close()


def test_failed_precondition_is_tried_later():
    """FR-104: who lost a race asks again some other time, and never believes that it is done."""
    program = build("program")
    with Backend("parca") as server:
        server.answer(Answer(), Answer(grpc.StatusCode.FAILED_PRECONDITION, "somebody uploads it"))
        (v,), error = upload(server.address, program, check=75)
        assert v["verdict"] == "later" and v["trouble"] == "somebody uploads it" and "307" in error, (v, error)
        (v,), _ = upload(server.address, program)
        assert v["verdict"] == "uploaded", v


def test_an_outage_ends_with_75_and_wait_outlives_it():
    program = build("program")
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    (v,), error = upload("127.0.0.1:%d" % port, program, check=75)
    assert v["verdict"] == "later" and "Connection refused" in v["trouble"], v
    words = [binary, "symbols", "upload", program, "--wait", "--to", "parca+insecure://127.0.0.1:%d" % port]
    waiting = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(1)
    with Backend("parca", port=port) as server:
        out, err = waiting.communicate(timeout=60)
        assert waiting.returncode == 0 and b": uploaded to" in out, (out, err)
        assert list(server.debuginfo.uploads) == [ID]
    waiting = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(1)
    waiting.send_signal(signal.SIGINT)
    out, err = waiting.communicate(timeout=10)
    assert waiting.returncode == 75 and b": later: not uploaded" in out, (waiting.returncode, out, err)


def test_trust_and_credentials():
    program = build("program")
    pair, ca = certificate(), authority("Test CA")
    token = write(os.path.join(there, "token"), b"s3cret\n")
    with Backend("parca", credentials=server_credentials(pair), token="Bearer s3cret") as server:
        (v,), error = upload(server.address, program, check=75, secure=True)
        assert v["verdict"] == "later" and "not trusted" in v["trouble"] and "301" in error, (v, error)
        (v,), error = upload(server.address, program, "--ca-file", ca[0], check=77, secure=True)
        assert v["verdict"] == "later" and "wrong or missing token" in v["trouble"] and "302" in error, (v, error)
        (v,), error = upload(server.address, program, "--ca-file", ca[0], "--token-file", token, secure=True)
        assert v["verdict"] == "uploaded" and "s3cret" not in error, (v, error)


def test_each_file_has_a_verdict_of_its_own():
    program, bare = build("program"), build("bare", "bb" * 20)
    again = shutil.copy(program, os.path.join(there, "again"))
    subprocess.run(["strip", bare], check=True)
    text = write(os.path.join(there, "text"), b"no program at all")
    with Backend("parca") as server:
        server.debuginfo.wanted = lambda build_id: True
        verdicts, error = upload(server.address, program, again, text, "/nonexistent", "cc" * 20, check=65)
        assert [v["verdict"] for v in verdicts] == ["uploaded", "uploaded", "missing", "missing", "missing"], verdicts
        assert "no file of it is on this host" in verdicts[4]["trouble"], verdicts
        assert methods(server).count("Upload") == 1
        server.answer(Answer(grpc.StatusCode.INVALID_ARGUMENT, "we take no such thing"))
        (v,), error = upload(server.address, bare, check=1)
        assert v["verdict"] == "refused" and "we take no such thing" in v["trouble"] and "306" in error, (v, error)


def test_many_files_do_not_stampede():
    """FR-100: a few at a time, each once."""
    programs = [build("many%d" % i, "%02x" % (0xc0 + i) * 20) for i in range(20)]
    running, most, lock = [0], [0], threading.Lock()

    with Backend("parca", workers=16) as server:
        handle = server._handle

        def counted(*words):
            with lock:
                running[0] += 1
                most[0] = max(most[0], running[0])
            time.sleep(0.02)
            try:
                return handle(*words)
            finally:
                with lock:
                    running[0] -= 1
        server._handle = counted
        verdicts, _ = upload(server.address, *programs)
        assert {v["verdict"] for v in verdicts} == {"uploaded"} and len(server.debuginfo.uploads) == 20
        assert most[0] <= 2, most
        assert methods(server).count("ShouldInitiateUpload") == 20


def test_bad_words():
    for words, text in (((), "what of?"), (("x",), "--to parca://"), (("x", "--to", "otlp://h:1"), "debug information goes to parca"),
                        (("x", "--to", "http://h"), "no URL of a kind"), (("x", "--to", "parca://"), "names no host")):
        assert text in run("symbols", "upload", *words, check=2).stderr, words
    token = write(os.path.join(there, "token2"), b"s3cret\n")
    done = run("symbols", "upload", build("program"), "--to", "parca+insecure://192.0.2.1:7070", "--token-file", token, check=2)
    assert "would travel in clear" in done.stderr, done.stderr


main(globals())
