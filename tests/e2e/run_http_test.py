# SPDX-License-Identifier: Apache-2.0
"""The HTTP server of perfpipe run: metrics that promtool takes, health, state, and profiles as Go's pprof fetches them."""
import concurrent.futures, re, socket, subprocess, time, urllib.error, urllib.request
from support import *
from support_agent import Agent, free_port
from support_grpc_servers import Backend, total
from support_live import BURN_SOURCE, compile_c

there = folder()
burning = compile_c(BURN_SOURCE, os.path.join(there, "burner"))
spools = 0


class Served:
    """An agent with an HTTP server, a backend and something to sample."""

    def __init__(self, *words):
        need_sampling()
        global spools
        spools += 1
        self.address = "127.0.0.1:%d" % free_port()
        self.backend = Backend("parca").__enter__()
        self.workload = subprocess.Popen([burning, "100000000"])
        self.agent = Agent("--to", "parca+insecure://" + self.backend.address, *words,
                           spool=os.path.join(there, "spool%d" % spools), http=self.address)

    def __enter__(self):
        self.agent.wait_for(lambda: self.agent.lines("listening"), "listening")
        return self

    def __exit__(self, *what):
        self.agent.__exit__(*what)
        self.workload.kill()
        self.workload.wait()
        self.backend.__exit__(*what)

    def get(self, path, method="GET"):
        """(status, headers, body)"""
        request = urllib.request.Request("http://%s%s" % (self.address, path), method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return response.status, response.headers, response.read()
        except urllib.error.HTTPError as e:
            with e:
                return e.code, e.headers, e.read()

    def metrics(self):
        """{(name, labels): value}"""
        status, headers, body = self.get("/metrics")
        assert status == 200 and headers["Content-Type"].startswith("text/plain; version=0.0.4"), (status, headers)
        found = {}
        for line in body.decode().splitlines():
            if not line.startswith("#"):
                name, labels, value = re.fullmatch(r"(\w+)(\{.*\})? (\S+)", line).groups()
                assert (name, labels) not in found, line
                found[name, labels] = float(value)
        return found


def sum_of(metrics, name):
    return sum(value for (n, _), value in metrics.items() if n == name)


def test_promtool_has_nothing_to_say_and_the_numbers_add_up():
    need("promtool")
    with Served("-F", "199") as served:
        served.agent.wait_for(lambda: len(served.backend.stored) > 5, "profiles")
        _, _, body = served.get("/metrics")
        done = subprocess.run(["promtool", "check", "metrics"], input=body, capture_output=True)
        assert done.returncode == 0 and not done.stdout + done.stderr, (done.stdout, done.stderr)
        first, second = served.metrics(), served.metrics()
        for name in ("perfpipe_receiver_samples_total", "process_cpu_seconds_total", "perfpipe_windows_total"):
            assert 0 < sum_of(first, name) <= sum_of(second, name), name
        assert abs(sum_of(first, "process_start_time_seconds") - time.time()) < 60
        assert sum_of(first, "process_open_fds") > 10 and sum_of(first, "process_resident_memory_bytes") > 1e6
        given = sum_of(second, "perfpipe_queued_samples_total")
        gone = sum(sum_of(second, "perfpipe_" + name) for name in
                   ("exporter_sent_samples_total", "exporter_lost_samples_total", "queue_samples"))
        assert given == gone > 0, (given, gone)
        name = "perfpipe_exporter_request_duration_seconds"
        buckets = [v for (n, _), v in second.items() if n == name + "_bucket"]
        assert buckets == sorted(buckets) and buckets[-1] == sum_of(second, name + "_count") > 0
        assert served.agent.end() == 0


def test_it_is_healthy_and_ready_when_it_samples_and_says_why_not():
    with Served() as served:
        assert served.get("/-/healthy")[0] == 200 and served.get("/-/ready")[0] == 200
        assert served.get("/-/healthy", "HEAD")[2] == b""
        assert served.get("/-/healthy", "POST")[0] == 405 and served.get("/nothing")[0] == 404
        assert served.agent.end() == 0
    with Served("-G", "no-such-group-of-perfpipe") as served:
        status, _, body = served.get("/-/ready")
        assert status == 503 and b"no-such-group" in body, body
        assert served.get("/-/healthy")[0] == 200
        state = json.loads(served.get("/status")[2])
        assert not state["is_sampling"] and "no-such-group" in state["waits_because"], state
        status, headers, body = served.get("/debug/pprof/profile?seconds=1")
        assert status == 500 and headers["X-Go-Pprof"] == "1" and b"no-such-group" in body, (status, body)
        assert served.agent.end() == 0


def test_status_tells_people_and_programs():
    with Served() as served:
        served.agent.wait_for(lambda: served.backend.stored, "a profile")
        text = run("status", "--http", served.address, check=0).stdout.decode()
        assert "at 99 Hz" in text and "delivering" in text and "samples taken" in text, text
        state = json.loads(run("status", "--http", served.address, "--format", "json", check=0).stdout)
        assert state["schema_version"] == 1 and state["is_sampling"] and state["samples_taken"] > 0, state
        (exporter,) = state["exporters"]
        assert exporter["sent_samples"] > 0 and exporter["missing_samples"] == 0, exporter
        assert "E405" in run("run", "--to", "parca+insecure://127.0.0.1:1", "--http", served.address, "--spool",
                             os.path.join(there, "other"), check=73).stderr
        assert served.agent.end() == 0
        assert "E406" in run("status", "--http", served.address, check=69).stderr
    assert "exit 2]" in run("status", "--http", "nonsense", check=2).stderr


def test_a_profile_of_now_can_be_fetched_while_windows_go_out():
    with Served("-F", "199") as served:
        served.agent.wait_for(lambda: served.backend.stored, "a profile")
        begin = time.monotonic()
        status, headers, body = served.get("/debug/pprof/profile?seconds=3")
        assert status == 200 and 2.9 < time.monotonic() - begin < 8, (status, time.monotonic() - begin)
        assert headers["Content-Type"] == "application/octet-stream" and "Content-Encoding" not in headers, headers
        assert headers["Content-Disposition"] == 'attachment; filename="profile"'
        assert headers["X-Content-Type-Options"] == "nosniff" and body[:2] == b"\x1f\x8b"
        profile = Profile(write(os.path.join(there, "now.pb.gz"), body))
        assert profile.total() > 3 * 99, profile.total()
        text = pprof("-top", os.path.join(there, "now.pb.gz"))
        assert "hot_a" in text and re.search(r"Duration: 3\.?\d*s", text), text[:400]
        assert served.agent.end() == 0
        samples, _ = served.agent.account()
        assert total(served.backend.stored) == samples["taken"]


def test_go_tool_pprof_fetches_from_it():
    with Served() as served:
        served.agent.wait_for(lambda: served.backend.stored, "a profile")
        text = pprof("-top", "http://%s/debug/pprof/profile?seconds=2" % served.address)
        assert "hot_a" in text, text
        assert b"profile" in served.get("/debug/pprof/")[2]
        words = served.get("/debug/pprof/cmdline")[2].split(b"\0")
        assert words[1] == b"run" and served.address.encode() in words, words
        assert served.agent.end() == 0


def test_there_is_one_profile_at_a_time_and_who_leaves_makes_room():
    with Served() as served:
        served.agent.wait_for(lambda: served.backend.stored, "a profile")
        assert served.get("/debug/pprof/profile?seconds=601")[0] == 400
        assert served.get("/debug/pprof/heap")[0] == 404
        with concurrent.futures.ThreadPoolExecutor() as pool:
            first = pool.submit(served.get, "/debug/pprof/profile?seconds=3")
            time.sleep(1)
            status, headers, body = served.get("/debug/pprof/profile?seconds=1")
            assert status == 500 and headers["X-Go-Pprof"] == "1" and b"another" in body, (status, body)
            assert served.get("/metrics")[0] == 200
            assert first.result()[0] == 200
        with socket.create_connection(served.address.rsplit(":", 1)) as s:
            s.sendall(b"GET /debug/pprof/profile?seconds=500 HTTP/1.1\r\nHost: x\r\n\r\n")
            time.sleep(1)
        time.sleep(1)
        assert served.get("/debug/pprof/profile?seconds=1")[0] == 200
        assert served.agent.end() == 0


def test_the_end_does_not_wait_for_who_wants_a_profile():
    with Served() as served:
        served.agent.wait_for(lambda: served.backend.stored, "a profile")
        with concurrent.futures.ThreadPoolExecutor() as pool:
            first = pool.submit(served.get, "/debug/pprof/profile?seconds=300")
            time.sleep(1)
            assert served.agent.end(seconds=15) == 0
            assert first.result()[0] in (500, 503)


main(globals())
