# SPDX-License-Identifier: Apache-2.0
"""perfpipe push through outages, kills, full disks and servers that refuse, delay or are none. What holds by any means: what
was acknowledged arrives, unaltered, and twice only when its answer was lost."""
import collections, contextlib, http.server, json, random, socket, threading, time
from support import *
from support_grpc import authority, certificate
from support_grpc_servers import Answer, Backend, schemas, server_credentials, total
from support_push import *
import grpc

profile_file = made("p.pb.gz")


@contextlib.contextmanager
def hanging_server():
    """Takes connections and never says a word."""
    listener = socket.create_server(("127.0.0.1", 0))
    try:
        yield listener.getsockname()[1]
    finally:
        listener.close()


def numbered(count):
    """{number of samples: file}: each profile is known by its total."""
    return {100 + i: made("n%d.pb.gz" % i, 100 + i) for i in range(count)}


def received(server):
    return collections.Counter(sum(s.value[0] for s in profile.sample) for _, profile in server.stored)


def until(true, seconds=30):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "not within %d s" % seconds
        time.sleep(0.02)


def test_a_slow_server_is_kept_up_with_and_one_that_hangs_delays_nobody():
    """FR-99: 128 profiles within their 15 s although each answer takes 0.5 s; another exporter hangs meanwhile."""
    files = [made("p.pb.gz")] * 128
    with Backend("pyroscope", workers=32) as slow, hanging_server() as port:
        slow.answer(*[Answer(delay=0.5) for _ in files])
        begin = time.monotonic()
        hanging = "parca+insecure://127.0.0.1:%d" % port
        pushing = Spool().start("--format", "json", "--timeout", "9", *files, "--to", "pyroscope+insecure://" + slow.address,
                                "--to", hanging)
        slow.wait_for(128, 15)
        took = time.monotonic() - begin
        assert took < 15, took
        out, err = pushing.communicate(timeout=60)
        verdicts = [json.loads(line) for line in out.decode().splitlines()]
        of = collections.Counter((v["to"] == hanging, v["verdict"]) for v in verdicts)
        assert of == {(False, "delivered"): 128, (True, "spooled"): 128}, (of, err)
        assert pushing.returncode == 75, (pushing.returncode, err)


def test_killed_and_restarted_through_an_outage_it_loses_nothing():
    """Server down, 40 profiles spooled; server up; push killed in the middle; server down and up again."""
    files, port, spool = numbered(40), free_port(), Spool()
    to = ["--to", "parca+insecure://127.0.0.1:%d" % port]
    got, n_incidents = collections.Counter(), 0
    first = spool.start("--wait", *files.values(), *to)
    until(lambda: os.path.isdir(spool.path) and len(spool.files()) == 40)
    with Backend("parca", port=port, workers=16) as server:
        server.answer(*[Answer(delay=0.3) for _ in range(1000)])
        server.wait_for(10, 30)
        first.send_signal(signal.SIGKILL)
        first.communicate()
        n_incidents += 1
        time.sleep(0.5)  # what was under way
        got += received(server)
    assert 10 <= sum(got.values()) < 40, got
    second = spool.start("--wait", made("last.pb.gz", 99), *to)
    time.sleep(1)
    with Backend("parca", port=port, workers=16) as server:
        server.answer(*[Answer(delay=0.3) for _ in range(1000)])
        server.wait_for(8, 30)
        server.stop()
        n_incidents += 1
        got += received(server)
    time.sleep(1)
    with Backend("parca", port=port) as server:
        out, err = second.communicate(timeout=60)
        assert second.returncode == 0 and b": delivered" in out, (second.returncode, out, err)
        got += received(server)
    assert set(got) == set(files) | {99}, sorted(set(files) - set(got))
    assert sum(got.values()) - 41 <= 8 * n_incidents, got
    assert spool.files() == []


@contextlib.contextmanager
def small_disk(size):
    at = folder()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%d" % size, "tmpfs", at], capture_output=True).returncode:
        raise Skip("may not mount a tmpfs")
    try:
        yield at
    finally:
        subprocess.run(["umount", "-l", at], check=True)


def random_text(size):
    return random.randbytes(size // 2).hex()


def test_a_full_disk_loses_nothing_that_was_acknowledged():
    port = free_port()
    to = ["--to", "parca+insecure://127.0.0.1:%d" % port]
    large = write(os.path.join(there, "large.pb"), profile_bytes(600, 4000, random_text))  # 1.2 MB compressed
    with small_disk(1 << 20) as disk:
        spool = Spool(os.path.join(disk, "spool"))
        spool.push(profile_file, *to, check=75)
        done = spool.push(large, *to, check=74)
        assert "E404" in done.stderr and "No space left on device" in done.stderr, done.stderr
        assert "W401" not in done.stderr, done.stderr
        assert b": lost: it could not be kept" in done.stdout, done.stdout
        (f,) = spool.files()
        assert f["samples"] == 500, f
        assert not [n for _, _, names in os.walk(spool.path) for n in names if n.endswith(".tmp")]
        # Others fill the disk: what is new does not fit, and it recovers when they are gone.
        with Backend("parca", port=port) as server:
            spool.push(profile_file, *to)
            assert total(server.stored) == 1000
        filler = os.path.join(disk, "filler")
        with contextlib.suppress(OSError):
            write(filler, bytes(1 << 20))
        done = spool.push(profile_file, *to, check=74)
        assert "no room for" in done.stderr or "No space left" in done.stderr, done.stderr
        os.unlink(filler)
        spool.push(profile_file, *to, check=75)
        with Backend("parca", port=port) as server:
            spool.push(made("q.pb.gz", 30), *to)
            assert total(server.stored) == 530


def test_what_a_full_spool_drops_is_told():
    port = free_port()
    to = ["--to", "parca+insecure://127.0.0.1:%d" % port]
    part = write(os.path.join(there, "part.pb"), profile_bytes(200, 4000, random_text))  # 0.4 MB compressed
    with small_disk(1 << 20) as disk:
        spool = Spool(os.path.join(disk, "spool"))
        for _ in range(2):
            spool.push(part, *to, check=75)
        spool.push(made("q.pb.gz", 30), *to, check=75)
        n_before = len(spool.files())
        # Others leave less free than the 5 % that the spool leaves: the oldest goes.
        free = os.statvfs(disk).f_bavail << 12
        filler = write(os.path.join(disk, "filler"), bytes(free - (20 << 10)))
        done = spool.push(made("r.pb.gz", 40), *to, check=75)
        os.unlink(filler)
        assert "W401" in done.stderr and "1 request of earlier runs was dropped" in done.stderr, done.stderr
        assert len(spool.files()) == n_before == 3, spool.files()
        assert [f["samples"] for f in spool.files()] == [200, 30, 40], spool.files()


def test_a_spooled_file_that_somebody_drops_is_told():
    port, spool = free_port(), Spool()
    pushing = spool.start("--wait", "--format", "json", profile_file, "--to", "parca+insecure://127.0.0.1:%d" % port)
    until(lambda: os.path.isdir(spool.path) and len(spool.files()) == 1)
    run("spool", "drop", "--all", "--spool", spool.path, check=0)
    out, err = pushing.communicate(timeout=30)
    v = json.loads(out)
    assert (v["verdict"], v["lost_requests"], v["waiting_requests"]) == ("lost", 1, 0) and pushing.returncode == 74, (v, err)
    assert v["trouble"] == "dropped while it waited: removed" and b"E404" in err, (v, err)


def gap_after(answer, **settings):
    """Seconds between the refusal and the next try of a push that waits."""
    with Backend("parca", **settings) as server:
        server.answer(answer)
        pushing = Spool().start("--wait", profile_file, "--to", "parca+insecure://" + server.address)
        out, err = pushing.communicate(timeout=60)
        assert pushing.returncode == 0 and total(server.stored) == 500, (out, err)
        first, second = [call.time for call in server.calls]
        return second - first


def test_servers_say_when_to_come_back():
    """FR-97: RetryInfo and gRPC push-back are waited for, and a limit of rate is no refusal."""
    gaps = {}
    answers = {"info": Answer(grpc.StatusCode.UNAVAILABLE, "later", retry_after=8),
               "push-back": Answer(grpc.StatusCode.UNAVAILABLE, "later", trailers=[("grpc-retry-pushback-ms", "8000")]),
               "rate": Answer(grpc.StatusCode.RESOURCE_EXHAUSTED, "ingestion rate limit (0 B) exceeded", retry_after=8),
               "none": Answer(grpc.StatusCode.UNAVAILABLE, "later")}
    threads = [threading.Thread(target=lambda k=k, a=a: gaps.update({k: gap_after(a)})) for k, a in answers.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for key in ("info", "push-back", "rate"):
        assert 8 <= gaps[key] < 9.5, gaps
    assert 4 <= gaps["none"] < 7, gaps


def test_a_rate_limit_is_said_and_spooled():
    """FR-97."""
    with Backend("pyroscope") as server:
        server.answer(Answer(grpc.StatusCode.RESOURCE_EXHAUSTED, "ingestion rate limit (4 MB) exceeded"))
        (v,) = Spool().verdicts(profile_file, "--to", "pyroscope+insecure://" + server.address, check=75)
        assert v["verdict"] == "spooled" and v["trouble"] == "RESOURCE_EXHAUSTED: ingestion rate limit (4 MB) exceeded", v


def partial_success(n, text):
    m = schemas.otlp_collector_profiles
    return m.ExportProfilesServiceResponse(partial_success=m.ExportProfilesPartialSuccess(
        rejected_profiles=n, error_message=text)).SerializeToString()


def test_partial_success_is_told_and_never_sent_again():
    spool = Spool()
    with Backend("otlp") as server:
        to = ["--to", "otlp+insecure://" + server.address]
        server.answer(Answer(response=partial_success(1, "no such attribute here")))
        (v,) = spool.verdicts(profile_file, *to, check=1)
        assert v["verdict"] == "refused" and v["refused_profiles"] >= 1 and "no such attribute here" in v["trouble"], v
        n = len(server.calls)
        server.answer(*[Answer(response=partial_success(0, "this version goes away"))] * n)
        done = spool.push(profile_file, *to)
        assert b": delivered to otlp" in done.stdout and b"it says: " in done.stdout, done.stdout
        assert b"this version goes away" in done.stdout
        assert len(server.calls) == 2 * n and spool.files() == []


def test_a_token_that_is_replaced_is_used_without_a_restart():
    """FR-103: tokens come from files, which are read again."""
    with Backend("parca", token="Bearer new") as server:
        token = write(os.path.join(there, "rotating"), b"old\n")
        pushing = Spool().start("--wait", profile_file, made("q.pb.gz", 30), "--token-file", token, "--to",
                                "parca+insecure://" + server.address)
        until(lambda: server.calls)
        write(token + ".new", b"new\n")
        os.rename(token + ".new", token)
        out, err = pushing.communicate(timeout=20)
        assert pushing.returncode == 0 and total(server.stored) == 530, (out, err)
        codes = {call.code for call in server.calls}
        assert codes == {grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.OK}, codes


def test_credentials_that_are_refused_end_with_77():
    for code in (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED):
        with Backend("parca") as server:
            server.answer(Answer(code, "not you"))
            spool = Spool()
            done = spool.push(profile_file, "--to", "parca+insecure://" + server.address, check=77)
            assert "E302" in done.stderr and "not you; 1 file is spooled" in done.stderr, done.stderr
            assert len(spool.files()) == 1


def expect(url, number, text, *words, check=75):
    spool = Spool()
    done = spool.push(profile_file, "--to", url, *words, check=check)
    assert "E%d" % number in done.stderr and text in done.stderr, (text, done.stderr)
    assert len(spool.files()) == 1
    return done


def test_certificates_that_do_not_hold_are_named():
    ca = authority("Test CA")[0]
    expired = certificate(dates=("20200101000000Z", "20210203040500Z"))
    with Backend("parca", credentials=server_credentials(expired)) as server:
        expect("parca://localhost:%d" % server.port, 301, "expired 2021-02-03T04:05Z", "--ca-file", ca)
    with Backend("parca", credentials=server_credentials(certificate("a.example", "DNS:a.example"))) as server:
        expect("parca://localhost:%d" % server.port, 301, 'is for "a.example", not for "localhost"', "--ca-file", ca)
    with Backend("parca", credentials=server_credentials(certificate(), authority("Test CA"))) as server:
        expect("parca://localhost:%d" % server.port, 301, "", "--ca-file", ca)  # wants a certificate of ours
        pair = certificate("client")
        Spool().push(profile_file, "--to", "parca://localhost:%d" % server.port, "--ca-file", ca, "--cert", pair["cert"],
                     "--key", pair["key"])
        assert total(server.stored) == 500


@contextlib.contextmanager
def s_server(pair, *words):
    need("openssl")
    port = free_port()
    process = subprocess.Popen(["openssl", "s_server", "-accept", "127.0.0.1:%d" % port, "-cert", pair["cert"], "-key",
                                pair["key"], "-quiet", *words], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    try:
        def is_up():
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                return True
        until(is_up)
        yield port
    finally:
        process.kill()
        process.wait()


def test_a_server_without_http2_is_named():
    with s_server(certificate()) as port:
        expect("parca://localhost:%d" % port, 301, "HTTP/2", "--ca-file", authority("Test CA")[0])


class Page(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass


def test_a_web_server_at_that_port_is_named():
    """FR-102: gRPC to an HTTP/1 port, TLS to a plain one."""
    served = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=served.serve_forever, daemon=True).start()
    try:
        expect("parca+insecure://127.0.0.1:%d" % served.server_port, 304, "does not speak HTTP/2; it sent")
        expect("parca://127.0.0.1:%d" % served.server_port, 301, "")
    finally:
        served.shutdown()
        served.server_close()


def test_profiles_that_are_too_old_for_the_server_are_set_aside_once():
    """FR-105: their times stay what they are, and the refusal is not tried again."""
    maker = profile_bytes(3, 10)
    old = schemas.profile.Profile.FromString(maker)
    old.time_nanos = int((time.time() - 7200) * 1e9)
    name = write(os.path.join(there, "old.pb"), old.SerializeToString())
    spool = Spool()
    with Backend("pyroscope") as server:
        done = spool.push(name, "--to", "pyroscope+insecure://" + server.address, "--wait", check=1)
        assert "E303" in done.stderr and "outside of ingestion window" in done.stderr, done.stderr
        assert len(server.calls) == 1 and str(old.time_nanos) in server.calls[0].text, server.calls
    (f,) = spool.files("--refused")
    out = os.path.join(there, "old-again.pb.gz")
    run("spool", "cat", "--spool", spool.path, f["id"], "-o", out, check=0)
    assert Profile(out).time_nanos == old.time_nanos


def test_a_connection_that_the_server_ages_out_costs_nothing():
    """FR-101: GOAWAY of a server that closes each connection after a second; new calls go to the next one."""
    port = free_port()
    files = list(numbered(20).values())
    options = [("grpc.max_connection_age_ms", 500), ("grpc.max_connection_age_grace_ms", 5000)]
    with aged_backend(port, options) as server:
        server.answer(*[Answer(delay=0.3) for _ in range(1000)])
        verdicts = Spool().verdicts(*files, "--to", "parca+insecure://127.0.0.1:%d" % port)
        assert {v["verdict"] for v in verdicts} == {"delivered"}, verdicts
        assert received(server) == collections.Counter(range(100, 120)), received(server)


@contextlib.contextmanager
def aged_backend(port, options):
    make = grpc.server
    grpc.server = lambda pool, options_=options, **settings: make(pool, options=[*settings["options"], *options_])
    try:
        server = Backend("parca", port=port, workers=16)
    finally:
        grpc.server = make
    with server:
        yield server


main(globals())
