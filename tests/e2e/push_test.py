# SPDX-License-Identifier: Apache-2.0
"""perfpipe push and perfpipe spool, against servers that judge as Parca, Pyroscope and OTLP receivers do."""
import json, time
from support import *
from support_grpc import authority, certificate
from support_grpc_servers import Answer, Backend, server_credentials, total
from support_push import *
import grpc

N_SAMPLES = 500
profile_file = made("p.pb.gz", N_SAMPLES)


def samples_of(path):
    return Profile(path).total()


def test_all_kinds_of_servers_get_every_sample():
    want = samples_of(profile_file)
    assert want == N_SAMPLES
    for kind in ("parca", "pyroscope"):
        with Backend(kind) as server:
            (v,) = Spool().verdicts(profile_file, "--to", "%s+insecure://%s" % (kind, server.address), "--label", "env=test")
            assert v["verdict"] == "delivered" and v["delivered_samples"] == want, v
            assert total(server.stored) == want, (kind, total(server.stored))
            for labels, _ in server.stored:
                assert labels["env"] == "test" and labels["__name__"] == "process_cpu" and labels["service_name"], labels
            if kind == "parca":
                assert {labels["comm"] for labels, _ in server.stored} == {"made"}
    with Backend("otlp") as server:
        (v,) = Spool().verdicts(profile_file, "--to", "otlp+insecure://" + server.address)
        assert v["verdict"] == "delivered" and v["delivered_samples"] == want, v
        assert server.stored


def test_a_perf_data_file_is_converted_on_the_way_and_pprof_reads_what_arrived():
    data = write(os.path.join(there, "x.data"), perf_data(n_samples=77))
    received = os.path.join(there, "received")
    with Backend("parca", folder=received) as server:
        done = Spool().push(data, "--to", "parca+insecure://" + server.address, "--labels", "none")
        assert b"delivered to parca+insecure://" in done.stdout and b"77 samples in 1 request\n" in done.stdout, done.stdout
        assert total(server.stored) == 77
    text = pprof("-raw", os.path.join(received, "profile-0000.pb"))
    assert "samples/count" in text, text[:500]


def test_tls_token_tenant_and_headers():
    pair, ca = certificate(), authority("Test CA")
    with Backend("pyroscope", credentials=server_credentials(pair), token="Bearer s3cret", tenant="team") as server:
        token = write(os.path.join(there, "token"), b"s3cret\n")
        spool = Spool()
        where = ["--to", "pyroscope://" + server.address]
        done = spool.push(profile_file, *where, check=75)
        assert "E301" in done.stderr and "not trusted" in done.stderr, done.stderr
        trust = ["--ca-file", ca[0]]
        done = spool.push(profile_file, *where, *trust, check=77)
        assert "E302" in done.stderr and "wrong or missing token" in done.stderr, done.stderr
        assert len(spool.files()) == 2
        done = spool.push(profile_file, *where, *trust, "--token-file", token, "--tenant", "team", "--header", "X-Extra=yes")
        assert "2 requests of earlier runs" in done.stderr, done.stderr
        assert server.calls[-1].metadata["x-extra"] == "yes"
        assert total(server.stored) == 3 * N_SAMPLES
        assert spool.files() == []
        assert "s3cret" not in done.stderr + done.stdout.decode()


def test_an_unreachable_server_leaves_it_in_the_spool_and_a_later_push_delivers_it():
    spool, port = Spool(), free_port()
    to = ["--to", "parca+insecure://127.0.0.1:%d" % port]
    begin = time.monotonic()
    done = spool.push(profile_file, *to, check=75)
    assert time.monotonic() - begin < 5
    assert b"p.pb.gz: spooled for" in done.stdout and "E305" in done.stderr, done
    assert "Connection refused" in done.stderr, done.stderr
    (f,) = spool.files()
    assert f["state"] == "waiting" and f["samples"] == N_SAMPLES and f["waiting_requests"] == 1, f
    with Backend("parca", port=port) as server:
        done = spool.push(made("q.pb.gz", 30), *to)
        assert "1 request of earlier runs was delivered" in done.stderr, done.stderr
        assert total(server.stored) == N_SAMPLES + 30
    assert spool.files() == []


def test_wait_keeps_trying_until_the_server_is_back():
    spool, port = Spool(), free_port()
    pushing = subprocess.Popen([binary, "push", profile_file, "--wait", "--spool", spool.path, "--to",
                                "parca+insecure://127.0.0.1:%d" % port], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(1)
    with Backend("parca", port=port) as server:
        out, err = pushing.communicate(timeout=30)
        assert pushing.returncode == 0, (out, err)
        assert total(server.stored) == N_SAMPLES
    assert b"delivered" in out


def test_interrupted_it_says_what_is_left_in_the_spool():
    spool, port = Spool(), free_port()
    pushing = subprocess.Popen([binary, "push", profile_file, "--wait", "--spool", spool.path, "--to",
                                "parca+insecure://127.0.0.1:%d" % port], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(1)
    pushing.send_signal(signal.SIGINT)
    out, err = pushing.communicate(timeout=10)
    assert pushing.returncode == 75, (pushing.returncode, out, err)
    assert b"spooled" in out and len(spool.files()) == 1


def test_interrupted_while_it_reads_it_sends_no_further_file():
    with Backend("parca") as server:
        words = [binary, "push", profile_file, "-", made("q.pb.gz", 30), "--spool", Spool().path, "--to",
                 "parca+insecure://" + server.address]
        pushing = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(0.5)
        pushing.send_signal(signal.SIGINT)
        time.sleep(0.5)
        with open(made("r.pb.gz", 20), "rb") as f:
            out, err = pushing.communicate(f.read(), timeout=10)
        assert b"q.pb.gz: unread: nothing was sent" in out, (out, err)
        assert pushing.returncode == 75 and b"E305" in err, (pushing.returncode, out, err)
        # ThreadSanitizer holds signals back until a read ends that was begun anew after the one before.
        with open(binary, "rb") as f:
            if b"__tsan_init" in f.read():
                return
        pushing = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2):  # the second one ends it at once
            time.sleep(0.5)
            pushing.send_signal(signal.SIGINT)
        assert pushing.wait(5) in (130, -signal.SIGINT), pushing.returncode
        pushing.communicate()


def test_what_is_refused_is_kept_with_the_reason_and_sent_again_when_asked():
    spool = Spool()
    with Backend("parca") as server:
        to = ["--to", "parca+insecure://" + server.address]
        server.answer(Answer(grpc.StatusCode.INVALID_ARGUMENT, "no label may be named so"))
        done = spool.push(profile_file, *to, check=1)
        assert "E303" in done.stderr and "no label may be named so" in done.stderr, done.stderr
        (f,) = spool.files("--refused")
        assert f["reason"] == "INVALID_ARGUMENT: no label may be named so", f
        cat = run("spool", "cat", "--spool", spool.path, f["id"], check=0).stdout.decode()
        assert "parca WriteRawRequest" in cat and "process_cpu" in cat, cat
        out = os.path.join(there, "cat.pb.gz")
        run("spool", "cat", "--spool", spool.path, f["id"], "-o", out, check=0)
        assert samples_of(out) == N_SAMPLES
        run("spool", "retry", "--spool", spool.path, f["id"], check=0)
        done = spool.push(made("q.pb.gz", 30), *to)
        assert total(server.stored) == N_SAMPLES + 30
        assert spool.files() == []
        run("spool", "retry", "--spool", spool.path, "77", check=66)


def test_twenty_megabytes_reach_a_receiver_of_four_whole():
    """FR-96: split before sending, and when the server says that it is still too large."""
    n = 5200
    # Names of 4 KiB: large for us, quickly judged by servers in Python.
    content = profile_bytes(n, 4090)
    assert len(content) > 20 << 20, len(content)
    name = write(os.path.join(there, "large.pb"), content)
    for kind, limit in (("parca", 4 << 20), ("otlp", None), ("pyroscope", None)):
        with Backend(kind, max_message_bytes=limit, workers=4) as server:
            words = ["--max-message", "4M"] if kind == "parca" else []
            (v,) = Spool().verdicts(name, "--to", "%s+insecure://%s" % (kind, server.address), *words)
            assert v["verdict"] == "delivered" and v["delivered_samples"] == n, v
            assert len(server.calls) >= 5
            if kind != "otlp":
                assert total(server.stored) == n
    # Without being told, it finds out from the refusals.
    with Backend("parca", max_message_bytes=4 << 20, workers=4) as server:
        (v,) = Spool().verdicts(name, "--to", "parca+insecure://" + server.address)
        assert v["verdict"] == "delivered" and v["delivered_samples"] == n, v
        assert total(server.stored) == n


def test_several_targets_get_it_each_and_one_that_fails_keeps_no_other():
    spool = Spool()
    with Backend("parca") as parca, Backend("otlp") as otlp:
        dead = "pyroscope+insecure://127.0.0.1:%d" % free_port()
        verdicts = spool.verdicts(profile_file, "--to", "parca+insecure://" + parca.address, "--to", dead, "--to",
                                  "otlp+insecure://" + otlp.address, "--to", "file://" + os.path.join(there, "out"), check=75)
        assert [v["verdict"] for v in verdicts] == ["delivered", "spooled", "delivered", "delivered"], verdicts
        assert total(parca.stored) == N_SAMPLES
    assert samples_of(os.path.join(there, "out", "latest")) == N_SAMPLES


def test_what_a_second_push_left_the_next_one_delivers():
    spool, port = Spool(), free_port()
    to = ["--to", "parca+insecure://127.0.0.1:%d" % port]
    first = spool.start("--wait", profile_file, *to)
    while not os.path.isdir(spool.path) or len(spool.files()) < 1:
        time.sleep(0.05)
    spool.push(made("q.pb.gz", 30), *to, check=75)
    assert len({f["exporter"] for f in spool.files()}) == 2, spool.files()
    first.send_signal(signal.SIGKILL)
    first.communicate()
    with Backend("parca", port=port) as server:
        done = spool.push(made("r.pb.gz", 20), *to)
        assert "2 requests of earlier runs were delivered" in done.stderr, done.stderr
        assert total(server.stored) == N_SAMPLES + 30 + 20
    assert spool.files() == []


def test_two_pushes_to_one_place_at_a_time_both_deliver():
    spool = Spool()
    with Backend("parca") as server:
        server.answer(Answer(delay=2))
        words = [binary, "push", profile_file, "--spool", spool.path, "--to", "parca+insecure://" + server.address]
        both = [subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
        for process in both:
            out, err = process.communicate(timeout=20)
            assert process.returncode == 0, (out, err)
        assert total(server.stored) == 2 * N_SAMPLES


def test_bad_words_and_bad_files():
    """FR-103: a token goes out in clear to nobody but this host."""
    spool = Spool()
    for words, text in (((profile_file,), "--to URL"), (("--to", "parca://h:1"), "takes the files"),
                        ((profile_file, "--to", "http://h:1"), "no URL of a kind"),
                        ((profile_file, "--to", "parca://"), "names no host"),
                        ((profile_file, "--to", "file://x"), "whole path"),
                        ((profile_file, "--to", "parca://h:99999"), "port"),
                        ((profile_file, "--to", "parca://h:1", "--to", "parca://h:1/"), "given twice"),
                        ((profile_file, "--to", "parca://h:1", "--label", "x"), "KEY=VALUE")):
        done = spool.push(*words, check=2)
        assert text in done.stderr, (words, done.stderr)
    token = write(os.path.join(there, "token2"), b"s3cret\n")
    done = spool.push(profile_file, "--to", "parca+insecure://192.0.2.1:7070", "--token-file", token, check=2)
    assert "s3cret" not in done.stderr and "would travel in clear" in done.stderr, done.stderr
    with Backend("parca") as server:
        to = ["--to", "parca+insecure://" + server.address]
        bad = write(os.path.join(there, "bad.pb.gz"), b"not a profile")
        done = spool.push(bad, os.path.join(there, "none"), profile_file, *to, check=65)
        assert total(server.stored) == N_SAMPLES and b"p.pb.gz: delivered" in done.stdout, done
    done = run("push", profile_file, "--spool", "/proc/nowhere", "--to", "parca+insecure://127.0.0.1:1", check=73)
    assert "E401" in done.stderr, done.stderr
    assert "E402" in run("spool", "ls", "--spool", os.path.join(there, "nospool"), check=66).stderr


main(globals())
