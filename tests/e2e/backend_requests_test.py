# SPDX-License-Identifier: Apache-2.0
"""The requests of each backend meet servers of ours that judge as the real ones do, over grpcio: whatever goes in (profiles
of perfpipe, of Go, with hostile labels, of 20 MB) is accepted, nothing of it is lost, and go's pprof reads what arrived."""
import collections, functools, glob, gzip, os, subprocess, sys, time
import support
from support import Skip, folder, main, need, pprof, run, perf_data, write

try:
    import grpc
    import support_grpc_servers as servers
    from support_grpc import authority, certificate
except ImportError as e:
    print("skipped: %s" % e)
    sys.exit(77)

KINDS = "parca", "pyroscope", "otlp"
PATHS = {"parca": "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw", "pyroscope": "/push.v1.PusherService/Push",
         "otlp": "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"}
pb = servers.schemas.profile


def program():
    return os.path.join(os.path.dirname(support.binary), "tests/backend_requests")


def requests(kind, path, *words):
    """The messages, and the sums of the summaries: samples, profiles."""
    out = folder()
    done = subprocess.run([program(), kind, path, out, "service_name=test", "node=host-1", *words], capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    sums = [[int(x) for x in line.split()] for line in done.stdout.splitlines()]
    return ([open(f, "rb").read() for f in sorted(glob.glob(out + "/*.bin"))],
            [sum(column) for column in zip(*sums)] if sums else [0, 0])


def call(server, path, message, credentials=None, metadata=(), timeout=20):
    """(code, text or response, trailers)"""
    channel = grpc.secure_channel("localhost:%d" % server.port, credentials) if credentials else \
        grpc.insecure_channel(server.address)
    with channel:
        method = channel.unary_unary(path)
        try:
            response, done = method.with_call(message, timeout=timeout, metadata=metadata)
            return grpc.StatusCode.OK, response, dict(done.trailing_metadata())
        except grpc.RpcError as e:
            return e.code(), e.details(), dict(e.trailing_metadata() or ())


def send_all(kind, messages, **settings):
    """Everything accepted; what is stored."""
    with servers.Backend(kind, **settings) as server:
        for message in messages:
            code, text, _ = call(server, PATHS[kind], message)
            assert code == grpc.StatusCode.OK, (code, text)
        return server.stored


class Maker:
    """A pprof message piece by piece."""

    def __init__(self, *types):
        self.p, self.strings = pb.Profile(string_table=[""]), {"": 0}
        for kind, unit in types or (("samples", "count"), ("cpu", "nanoseconds")):
            self.p.sample_type.add(type=self.s(kind), unit=self.s(unit))
        self.p.period_type.CopyFrom(self.p.sample_type[-1])
        self.p.period, self.p.duration_nanos, self.p.time_nanos = 10000000, 10 ** 10, time.time_ns()
        self.p.mapping.add(id=1, memory_start=0x400000, memory_limit=0x800000, filename=self.s("/bin/made"))
        self.locations = {}

    def s(self, text):
        if text not in self.strings:
            self.strings[text] = len(self.p.string_table)
            self.p.string_table.append(text)
        return self.strings[text]

    def location(self, name):
        if name not in self.locations:
            n = len(self.locations) + 1
            self.p.function.add(id=n, name=self.s(name), system_name=self.s(name), filename=self.s("made.c"))
            self.p.location.add(id=n, mapping_id=1, address=0x400000 + n).line.add(function_id=n, line=n)
            self.locations[name] = n
        return self.locations[name]

    def sample(self, stack, values, labels=()):
        sample = self.p.sample.add(location_id=[self.location(f) for f in stack], value=values)
        for key, value in labels:
            if isinstance(value, int):
                sample.label.add(key=self.s(key), num=value)
            else:
                sample.label.add(key=self.s(key), str=self.s(value))

    def write(self):
        return write(os.path.join(folder(), "made.pb.gz"), gzip.compress(self.p.SerializeToString()))


def nonzero(rows):
    rows = {key: {c: v for c, v in row.items() if v} for key, row in rows.items()}
    return {key: row for key, row in rows.items() if row}


def flat(profile):
    """{(frames, labels): values} of a pprof message; frames leaf first, labels without numbers."""
    text = profile.string_table
    functions = {f.id: text[f.name] for f in profile.function}
    names = {l.id: tuple(functions[line.function_id] for line in l.line) or (l.address,) for l in profile.location}
    out = collections.defaultdict(lambda: [0] * len(profile.sample_type))
    for sample in profile.sample:
        labels = tuple(sorted((text[l.key], text[l.str] if l.str else l.num) for l in sample.label))
        row = out[tuple(names[i] for i in sample.location_id), labels]
        for i, value in enumerate(sample.value):
            row[i] += value
    return out


def arrived(kind, stored):
    """The same of what a server got: labels of the series that are not ours, and of the samples."""
    ours = {"__name__", "service_name", "node", "service.name", "host.name"}
    out = collections.defaultdict(lambda: collections.defaultdict(int))
    for item in stored:
        labels = [(k, v) for k, v in item[0].items() if k not in ours]
        if kind == "otlp":
            for (frames, own), value in item[3].items():
                out[tuple(names or (address,) for _, address, names in frames), tuple(sorted(labels + list(own)))][
                    item[1][:2]] += value
            continue
        text = item[1].string_table
        types = [(text[t.type], text[t.unit]) for t in item[1].sample_type]
        for (frames, own), values in flat(item[1]).items():
            for column, value in zip(types, values):
                out[frames, tuple(sorted(labels + list(own)))][column] += value
    return nonzero(out)


def expected(profile, rename=lambda label: label):
    text = profile.string_table
    types = [(text[t.type], text[t.unit]) for t in profile.sample_type]
    out = collections.defaultdict(lambda: collections.defaultdict(int))
    for (frames, labels), values in flat(profile).items():
        labels = tuple(sorted(filter(None, map(rename, labels))))
        for column, value in zip(types, values):
            out[frames, labels][column] += value
    return nonzero(out)


@functools.lru_cache(None)
def large():
    """(profile, path): 6 MB of names."""
    made = Maker()
    for i in range(12000):
        made.sample(["leaf_%d" % (i % 997), "%d_" % (i % 8009) + "a_function_with_a_long_name" * 26, "main"],
                    [1 + i % 3, 10 ** 7 * (i % 5)], [("comm", "comm-%d" % (i % 40))])
    return made.p, made.write()


def text_of_numbers(label):
    return label[0], str(label[1])


def without_pid(label):
    return None if label[0] == "pid" else text_of_numbers(label)


def otlp_names(label):
    return {"pid": "process.pid"}.get(label[0], label[0]), label[1]


RENAME = {"parca": text_of_numbers, "pyroscope": without_pid, "otlp": otlp_names}


def test_everything_arrives_and_is_what_went_in():
    made = Maker()
    for i in range(300):
        made.sample(["f%d" % (i % 17), "g%d" % (i % 5), "main"], [i, i * 1000], [("comm", "c%d" % (i % 3)), ("pid", i % 7 + 1)])
    made.sample(["f1", "main"], [5, 6])
    for kind in KINDS:
        messages, sums = requests(kind, made.write(), "gzip=1")
        assert sums[0] == sum(s.value[0] for s in made.p.sample), (kind, sums)
        got = arrived(kind, send_all(kind, messages))
        assert got == expected(made.p, RENAME[kind]), kind


def test_20_mb_reach_receivers_of_4_mib():
    profile, path = large()
    windows = (20 << 20) // profile.ByteSize() + 1
    assert profile.ByteSize() > 4 << 20
    for kind in KINDS:
        words = ["gzip=1"] + (["max_bytes=%d" % (4 << 20)] if kind == "parca" else [])
        messages, sums = requests(kind, path, *words)
        assert max(map(len, messages)) <= 4 << 20
        stored = []
        with servers.Backend(kind, max_message_bytes=4 << 20) as server:
            for _ in range(windows):
                for message in messages:
                    code, text, _ = call(server, PATHS[kind], message)
                    assert code == grpc.StatusCode.OK, (kind, code, text)
            stored = server.stored
        one = stored[:len(stored) // windows]
        assert arrived(kind, one) == expected(profile, RENAME[kind]), kind


def test_split_requests_hold_the_same():
    profile, path = large()
    for kind in KINDS:
        whole, sums = requests(kind, path, "gzip=1")
        halves, split_sums = requests(kind, path, "gzip=1", "split=1")
        assert len(halves) >= 2 * len(whole) and split_sums[0] == sums[0]
        assert arrived(kind, send_all(kind, halves)) == expected(profile, RENAME[kind]), kind


def test_hostile_labels_cost_no_profile():
    made = Maker(("cpu-clock:u", "count"), ("cpu.clock:u", "count"), ("sched:sched_switch", "events/s"))
    names = ["", "span id", "output-level", "9", "service_name", "node", "__name__", "__meta_x", "a" * 3000, "caf\u00e9", "pprof::x",
             "job", "job"] + ["l%d" % i for i in range(60)]
    for i in range(50):
        made.sample(["f%d" % i, "main"], [1, 2, 3], [(n or "empty", "v\u00e9" * (i * 200)) for n in names] + [("n", i)])
    made.sample(["f", "main"], [1, 1, 1], [("", "no key")])
    path = made.write()
    for kind in KINDS:
        messages, _ = requests(kind, path, "service_name=again", "b\u00e4d-name=x", "__hidden=y", "empty=")
        stored = send_all(kind, messages)
        sums = collections.Counter()
        for row in arrived(kind, stored).values():
            for column, value in row.items():
                sums[column] += value
        assert sums == {("cpu_clock_u", "count"): 51, ("cpu_clock_u_2", "count"): 101, ("sched_sched_switch", "events_s"): 151}, sums
        assert all(item[0].get("service_name", item[0].get("service.name")) == "test" for item in stored)
        assert not any("hidden" in key for item in stored for key in item[0])


def test_pyroscope_would_lose_nothing_without_a_word():
    made = Maker()
    made.p.mapping[0].has_functions = True  # and one location of it without a name
    made.p.location.add(id=900001, mapping_id=1, address=0x400123)
    made.p.location.add(id=900002)
    made.sample(["main"], [1, 2])
    made.sample(["f%d" % i for i in range(1500)], [1, 2])
    made.sample(["x" * 70000], [1, 2], [("cpu", 3), ("bytes", 64)])
    for i in 900001, 900002:
        made.p.sample.add(location_id=[i, made.location("main")], value=[1, 2])
    messages, _ = requests("pyroscope", made.write())
    stored = send_all("pyroscope", messages)
    lost = [why for _, profile in stored for why in servers.lost_by_pyroscope(profile, servers.PYROSCOPE_LIMITS)]
    assert lost == [], lost
    assert servers.total(stored) == 5 and servers.total(stored, 1) == 10


def test_profiles_of_perfpipe_arrive_and_pprof_reads_them():
    at = folder()
    write(os.path.join(at, "perf.data"), perf_data(500))
    out = os.path.join(at, "out.pb.gz")
    run("convert", os.path.join(at, "perf.data"), "-o", out, check=0)
    whole = pb.Profile.FromString(gzip.decompress(open(out, "rb").read()))
    for kind in KINDS:
        where = folder()
        messages, _ = requests(kind, out)
        # Made at boot time by a clock that is not this one: Pyroscope would find it too old.
        limits = servers.PYROSCOPE_LIMITS._replace(age=1 << 40)
        with servers.Backend(kind, folder=where, limits=limits) as server:
            for message in messages:
                code, text, _ = call(server, PATHS[kind], message)
                assert code == grpc.StatusCode.OK, (kind, code, text)
            assert arrived(kind, server.stored) == expected(whole, RENAME[kind]), kind
            assert b"".join(messages) == b"".join(open(f, "rb").read() for f in sorted(glob.glob(where + "/*.bin")))
        if kind != "otlp":
            raw = "".join(pprof("-raw", f) for f in sorted(glob.glob(where + "/*.pb")))
            assert "Mappings" in raw and "samples/count" in raw


# The servers themselves: each rule refuses what breaks it.


def refused(kind, message, code, text, **settings):
    with servers.Backend(kind, **settings) as server:
        got, why, _ = call(server, PATHS[kind], message)
        assert got == code and text in why, (got, why)
        assert server.stored == [] and server.calls[0].code == code


def raw(kind, profile, labels=(("__name__", "process_cpu"),), compress=False):
    data = profile.SerializeToString() if not isinstance(profile, bytes) else profile
    data = gzip.compress(data) if compress else data
    if kind == "parca":
        request = servers.schemas.parca_profilestore.WriteRawRequest()
        series = request.series.add()
        series.labels.SetInParent()
        for name, value in labels:
            series.labels.labels.add(name=name, value=value)
    else:
        request = servers.schemas.pyroscope_push.PushRequest()
        series = request.series.add()
        for name, value in labels:
            series.labels.add(name=name, value=value)
    series.samples.add(raw_profile=data)
    return request.SerializeToString()


def good():
    made = Maker()
    made.sample(["f", "main"], [1, 2])
    return made.p


def test_the_parca_server_keeps_its_rules():
    code = grpc.StatusCode
    refused("parca", b"\xff", code.INVALID_ARGUMENT, "failed to parse")
    refused("parca", raw("parca", good(), ()), code.INVALID_ARGUMENT, "__name__")
    refused("parca", raw("parca", good(), [("__name__", "x"), ("bad-name", "x")]), code.INVALID_ARGUMENT, "label name")
    refused("parca", raw("parca", good(), [("__name__", "x"), ("a", "x"), ("a", "y")]), code.INVALID_ARGUMENT, "duplicate")
    refused("parca", raw("parca", good(), [("__name__", "a:b")]), code.UNKNOWN, "profile type")
    refused("parca", raw("parca", b"\x1f\x8bgarbage"), code.UNKNOWN, "decompress")
    for field, change in {
            "not sequential": lambda p: setattr(p.location[0], "id", 7),
            "mapping id": lambda p: setattr(p.location[0], "mapping_id", 9),
            "function id": lambda p: setattr(p.location[0].line[0], "function_id", 9),
            "location id": lambda p: p.sample[0].location_id.append(99),
            "value count": lambda p: p.sample[0].value.append(1),
            "string index": lambda p: setattr(p.function[0], "name", 999),
            "string_table[0]": lambda p: p.string_table.__setitem__(0, "x"),
    }.items():
        profile = good()
        change(profile)
        refused("parca", raw("parca", profile), code.INVALID_ARGUMENT, field)
    profile = good()
    profile.ClearField("period_type")
    refused("parca", raw("parca", profile), code.INTERNAL, "period_type")
    refused("parca", servers.schemas.parca_profilestore.WriteRawRequest(series=[{}]).SerializeToString(), code.INTERNAL, "labels")
    assert len(send_all("parca", [raw("parca", good(), compress=True)])) == 1


def test_the_pyroscope_server_keeps_its_rules():
    code = grpc.StatusCode.INVALID_ARGUMENT
    labels = [("__name__", "process_cpu"), ("service_name", "x")]
    for text, change, more in (
            ("sample type contains -", lambda p: p.string_table.__setitem__(p.sample_type[0].type, "cpu-clock"), []),
            ("ingestion window", lambda p: setattr(p, "time_nanos", time.time_ns() - 3700 * 10 ** 9), []),
            ("ingestion window", lambda p: setattr(p, "time_nanos", time.time_ns() + 700 * 10 ** 9), []),
            ("samples count limit", lambda p: [p.sample.add(value=[1, 2]) for _ in range(16000)], []),
            ("size limit", lambda p: p.string_table.append("x" * (4 << 20)), []),
            ("id 0", lambda p: setattr(p.function[0], "id", 0), []),
            ("label names; limit", lambda p: None, [("l%d" % i, "x") for i in range(29)]),
            ("duplicate", lambda p: None, [("service_name", "y")]),
            ("invalid label names", lambda p: None, [("span id", "y")]),
            ("too long", lambda p: None, [("a", "y" * 2049)])):
        profile = good()
        change(profile)
        refused("pyroscope", raw("pyroscope", profile, labels + more, compress=True), code, text)
    assert len(send_all("pyroscope", [raw("pyroscope", good(), labels)])) == 1


def test_the_otlp_server_keeps_its_rules():
    made = Maker()
    made.sample(["f", "main"], [1, 2], [("comm", "x")])
    messages, _ = requests("otlp", made.write())
    kind = servers.schemas.otlp_collector_profiles.ExportProfilesServiceRequest
    assert len(send_all("otlp", messages)) == 2
    first = lambda r: r.resource_profiles[0].scope_profiles[0].profiles[0]
    for text, code, change in (
            ("missing", "INVALID_ARGUMENT", lambda r: r.ClearField("dictionary")),
            ("link_table is empty", "UNKNOWN", lambda r: r.dictionary.ClearField("link_table")),
            ("stack_table[0]", "UNKNOWN", lambda r: r.dictionary.stack_table[0].location_indices.append(1)),
            ("string_table[0]", "UNKNOWN", lambda r: r.dictionary.string_table.__setitem__(0, "x")),
            ("duplicates", "UNKNOWN", lambda r: r.dictionary.string_table.append("main")),
            ("orphans", "UNKNOWN", lambda r: r.dictionary.string_table.append("never used")),
            ("without samples", "UNKNOWN", lambda r: first(r).ClearField("samples")),
            ("period_type", "UNKNOWN", lambda r: first(r).ClearField("period_type")),
            ("one value", "UNKNOWN", lambda r: first(r).samples[0].values.append(3)),
            ("past its table", "UNKNOWN", lambda r: setattr(first(r).samples[0], "stack_index", 99)),
            ("resource is nil", "INTERNAL", lambda r: r.resource_profiles[0].ClearField("resource"))):
        request = kind.FromString(messages[0])
        change(request)
        refused("otlp", request.SerializeToString(), getattr(grpc.StatusCode, code), text)


def test_servers_answer_as_told():
    message = raw("parca", good())
    with servers.Backend("parca", token="Bearer secret", tenant="t") as server:
        headers = [("authorization", "Bearer secret"), ("x-scope-orgid", "t")]
        assert call(server, PATHS["parca"], message)[0] == grpc.StatusCode.UNAUTHENTICATED
        assert call(server, PATHS["parca"], message, metadata=headers[:1])[1] == "no org id"
        server.answer(servers.Answer(grpc.StatusCode.UNAVAILABLE, "later", retry_after=1.5),
                      servers.Answer(delay=0.3), servers.Answer(response=b"\x0a\x02hi"))
        code, text, trailers = call(server, PATHS["parca"], message, metadata=headers)
        assert (code, text) == (grpc.StatusCode.UNAVAILABLE, "later")
        status = servers.schemas.rpc_status.Status.FromString(trailers["grpc-status-details-bin"])
        delay = servers.schemas.rpc_status.RetryInfo.FromString(status.details[0].value).retry_delay
        assert (delay.seconds, delay.nanos) == (1, 500000000)
        begin = time.monotonic()
        assert call(server, PATHS["parca"], message, metadata=headers)[0] == grpc.StatusCode.OK
        assert time.monotonic() - begin >= 0.3
        assert call(server, PATHS["parca"], message, metadata=headers)[1] == b"\x0a\x02hi"
        assert len(server.stored) == 2 and len(server.calls) == 5
        assert call(server, PATHS["otlp"], message)[0] == grpc.StatusCode.UNIMPLEMENTED
        health = call(server, "/grpc.health.v1.Health/Check", b"", metadata=headers)[1]
        assert servers.schemas.grpc_health.HealthCheckResponse.FromString(health).status == 1
    with servers.Backend("otlp", max_message_bytes=1000) as server:
        code, text, _ = call(server, PATHS["otlp"], b"x" * 2000)
        assert code == grpc.StatusCode.RESOURCE_EXHAUSTED and "larger than max" in text, text


def test_servers_speak_tls_and_ask_for_certificates():
    need("openssl")
    read = lambda path: open(path, "rb").read()
    ca, pair, own = authority("Test CA"), certificate(), certificate("client", None)
    plain = grpc.ssl_channel_credentials(read(ca[0]))
    known = grpc.ssl_channel_credentials(read(ca[0]), read(own["key"]), read(own["cert"]))
    message = raw("parca", good())
    with servers.Backend("parca", credentials=servers.server_credentials(pair)) as server:
        assert call(server, PATHS["parca"], message, plain)[0] == grpc.StatusCode.OK
    with servers.Backend("parca", credentials=servers.server_credentials(pair, client_ca=ca)) as server:
        assert call(server, PATHS["parca"], message, known)[0] == grpc.StatusCode.OK
        assert call(server, PATHS["parca"], message, plain, timeout=5)[0] == grpc.StatusCode.UNAVAILABLE


def test_the_debuginfo_server_keeps_its_rules():
    m, base = servers.schemas.parca_debuginfo, "/parca.debuginfo.v1alpha1.DebuginfoService/"
    with servers.Backend("parca") as server:
        def ask(method, request, kind):
            code, out, _ = call(server, base + method, request.SerializeToString())
            return kind.FromString(out) if code == grpc.StatusCode.OK else code
        data = os.urandom(3000)
        should = lambda: ask("ShouldInitiateUpload", m.ShouldInitiateUploadRequest(build_id="abcd"), m.ShouldInitiateUploadResponse)
        assert should().should_initiate_upload
        assert ask("InitiateUpload", m.InitiateUploadRequest(build_id="abcd", size=5), m.InitiateUploadResponse) == \
            grpc.StatusCode.INVALID_ARGUMENT
        started = ask("InitiateUpload", m.InitiateUploadRequest(build_id="abcd", size=3000, hash="h"),
                      m.InitiateUploadResponse).upload_instructions
        info = m.UploadRequest(info=m.UploadInfo(build_id="abcd", upload_id=started.upload_id))
        chunks = [m.UploadRequest(chunk_data=data[i:i + 1000]) for i in range(0, 3000, 1000)]
        with grpc.insecure_channel(server.address) as channel:
            upload = channel.stream_unary(base + "Upload", request_serializer=lambda x: x.SerializeToString())
            for messages, code in (chunks, "INTERNAL"), ([info, m.UploadRequest(chunk_data=b"")], "INVALID_ARGUMENT"), ([info] + chunks, "OK"):
                try:
                    got = m.UploadResponse.FromString(upload(iter(messages), timeout=10)).size
                    assert code == "OK" and got == 3000
                except grpc.RpcError as e:
                    assert e.code().name == code, e
        finish = m.MarkUploadFinishedRequest(build_id="abcd", upload_id="other")
        assert ask("MarkUploadFinished", finish, m.MarkUploadFinishedResponse) == grpc.StatusCode.INVALID_ARGUMENT
        finish.upload_id = started.upload_id
        assert ask("MarkUploadFinished", finish, m.MarkUploadFinishedResponse) == m.MarkUploadFinishedResponse()
        assert server.debuginfo.uploads == {"abcd": data} and not should().should_initiate_upload


main(globals())
