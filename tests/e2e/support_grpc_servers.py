# SPDX-License-Identifier: Apache-2.0
"""Profiling backends as grpcio servers, for tests of what pushes to them.

    with Backend("parca", folder=DIR) as server:
        ... push to server.address ...
        server.stored      [(labels, perftools.profiles.Profile)] of requests that were accepted
        server.calls       [Call]: path, metadata, message, code, of everything that came

kind: "parca" (profile store and debuginfo), "pyroscope", "otlp"; all have gRPC's health service. Each judges requests by
the rules of the server it stands for and refuses them with that server's status. What came is written to folder as
NNNN-METHOD.bin, profiles as NNNN-K.pb with their labels in NNNN-K.json.

Answers can be scripted: server.answer(Answer(...), ...) says what the next calls get instead of a judgement; Answer(delay=2)
judges after a while. Servers listen on 127.0.0.1, with the certificates of support_grpc. Messages come from our .proto
files, compiled here by protoc, so the paths are the ones that the real servers have."""
import collections, concurrent.futures, glob, gzip, json, os, re, shutil, subprocess, sys, tempfile, threading, time

import grpc

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MIB = 1 << 20


class Schemas:
    """The modules that protoc makes of proto/*.proto: schemas.parca_profilestore and so on."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="perfpipe-schemas-")
        files = sorted(glob.glob(os.path.join(ROOT, "proto", "*.proto")))
        subprocess.run(["protoc", "--proto_path=" + ROOT, "--python_out=" + self.folder, *files], check=True)
        sys.path.insert(0, self.folder)
        try:
            for path in files:
                stem = os.path.basename(path)[:-len(".proto")]
                module = __import__("proto.%s_pb2" % stem, fromlist=["*"])
                setattr(self, stem, module)
        finally:
            sys.path.remove(self.folder)
            shutil.rmtree(self.folder)


schemas = Schemas()


class Refused(Exception):
    """A request that the server does not take."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code = code
        self.text = text


def invalid(text):
    return Refused(grpc.StatusCode.INVALID_ARGUMENT, text)


def unknown(text):
    return Refused(grpc.StatusCode.UNKNOWN, text)


class Answer:
    """code None = judge the request. retry_after: seconds for a RetryInfo; trailers: [(key, value)]; response: bytes to
    answer OK with; delay: seconds to wait first."""

    def __init__(self, code=None, text="", retry_after=None, trailers=(), response=None, delay=0):
        self.code, self.text, self.retry_after = code, text, retry_after
        self.trailers, self.response, self.delay = list(trailers), response, delay

    def all_trailers(self):
        if self.retry_after is None:
            return self.trailers
        rpc = schemas.rpc_status
        seconds = int(self.retry_after)
        info = rpc.RetryInfo(retry_delay=rpc.Duration(seconds=seconds, nanos=round((self.retry_after - seconds) * 1e9)))
        status = rpc.Status(code=self.code.value[0], message=self.text)
        status.details.add(type_url="type.googleapis.com/google.rpc.RetryInfo", value=info.SerializeToString())
        return self.trailers + [("grpc-status-details-bin", status.SerializeToString())]


Call = collections.namedtuple("Call", "time path metadata message code text")


def parse(kind, message, refuse):
    try:
        return kind.FromString(message)
    except Exception as e:
        raise refuse("failed to parse %s: %s" % (kind.__name__, e))


def parse_pprof(raw, max_bytes=None):
    """(Profile, uncompressed size)."""
    if raw[:2] == b"\x1f\x8b":
        try:
            raw = gzip.decompress(raw)
        except Exception as e:
            raise unknown("failed to decompress profile: %s" % e)
    if max_bytes is not None and len(raw) > max_bytes:
        raise invalid("the profile with labels '{}' exceeds the size limit (max_profile_size_byte, actual: %d, limit: %d)" %
                      (len(raw), max_bytes))
    return parse(schemas.profile.Profile, raw, invalid), len(raw)


def check_indices(profile):
    """String indices of everything, and that every string is text."""
    n = len(profile.string_table)
    if not n or profile.string_table[0]:
        raise invalid("invalid profile: string_table[0] is not empty")
    used = [i for t in [*profile.sample_type, profile.period_type] for i in (t.type, t.unit)]
    used += [i for f in profile.function for i in (f.name, f.system_name, f.filename)]
    used += [i for m in profile.mapping for i in (m.filename, m.build_id)]
    used += [i for s in profile.sample for l in s.label for i in (l.key, l.str, l.num_unit)]
    used += [*profile.comment, profile.default_sample_type, profile.doc_url, profile.drop_frames, profile.keep_frames]
    if used and (min(used) < 0 or max(used) >= n):
        raise invalid("invalid profile: string index out of range")


# Parca


def check_parca_profile(profile):
    """What pkg/normalizer and pkg/profilestore ask for."""
    check_indices(profile)
    for what, items in ("mapping", profile.mapping), ("function", profile.function), ("location", profile.location):
        for i, item in enumerate(items):
            if item.id != i + 1:
                raise invalid("invalid profile: %s id is not sequential" % what)
    if profile.sample and not profile.sample_type:
        raise invalid("invalid profile: no sample type")
    if not profile.HasField("period_type"):
        raise Refused(grpc.StatusCode.INTERNAL, "panic: period_type is nil")
    for location in profile.location:
        if location.mapping_id > len(profile.mapping):
            raise invalid("invalid profile: mapping id out of range")
        if any(line.function_id > len(profile.function) for line in location.line):
            raise invalid("invalid profile: function id out of range")
    for sample in profile.sample:
        if len(sample.value) != len(profile.sample_type):
            raise invalid("invalid profile: value count")
        if any(not 0 < i <= len(profile.location) for i in sample.location_id):
            raise invalid("invalid profile: location id out of range")
        if any(not label.key for label in sample.label):
            raise invalid("invalid profile: label without key")


def check_parca_type(name, profile):
    text = profile.string_table
    parts = [text[i] for t in [*profile.sample_type, profile.period_type] for i in (t.type, t.unit)]
    if not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", name) or not all(re.fullmatch(r"[a-zA-Z0-9_]*", p) for p in parts):
        raise unknown("invalid profile type at row 0: %s %s" % (name, parts))


def judge_parca(message):
    """The profiles of a WriteRawRequest: [(labels, profile)]."""
    request = parse(schemas.parca_profilestore.WriteRawRequest, message, invalid)
    stored = []
    for series in request.series:
        if not series.HasField("labels"):
            raise Refused(grpc.StatusCode.INTERNAL, "panic: labels are nil")
        labels = {}
        for label in series.labels.labels:
            if not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", label.name):
                raise invalid("invalid label name: %s" % label.name)
            if label.name in labels and label.name != "__name__":
                raise invalid("duplicate label name: %s" % label.name)
            labels[label.name] = label.value
        if not labels.get("__name__"):
            raise invalid("no __name__ label")
        for sample in series.samples:
            profile, _ = parse_pprof(sample.raw_profile)
            check_parca_profile(profile)
            check_parca_type(labels["__name__"], profile)
            if sample.executable_info and len(sample.executable_info) != len(profile.mapping):
                raise invalid("executable info count")
            stored.append((labels, profile))
    return stored


# Pyroscope

Limits = collections.namedtuple("Limits", "profile_bytes samples age depth labels")
PYROSCOPE_LIMITS = Limits(4 * MIB, 16000, 3600, 1000, 30)


def check_pyroscope_labels(pairs, limits):
    labels = {}
    for pair in pairs:
        if not pair.name or not re.fullmatch(r"[a-zA-Z0-9_.]+", pair.name):
            raise invalid("profile with labels '{}' has invalid label names: '%s'" % pair.name)
        if len(pair.name) > 1024 or len(pair.value.encode()) > 2048:
            raise invalid("profile with labels '{}' has label too long: '%s'" % pair.name)
        if pair.name in labels:
            raise invalid("profile with labels '{}' has duplicate label name: '%s'" % pair.name)
        labels[pair.name] = pair.value
    if len(labels) > limits.labels:
        raise invalid("profile series '{}' has %d label names; limit %d" % (len(labels), limits.labels))
    if not labels.get("__name__"):
        raise invalid("no __name__ label")
    return labels


def check_pyroscope_profile(profile, size, limits):
    check_indices(profile)
    text = profile.string_table
    if len(profile.sample) > limits.samples:
        raise invalid("the profile with labels '{}' exceeds the samples count limit (max_profile_stacktrace_samples, "
                      "actual: %d, limit: %d)" % (len(profile.sample), limits.samples))
    if profile.time_nanos and not -limits.age < profile.time_nanos / 1e9 - time.time() < 600:
        raise invalid("profile with labels '{}' is outside of ingestion window (profile timestamp: %d)" % profile.time_nanos)
    if not profile.sample_type:
        raise invalid("no sample type")
    if any("-" in text[t.type] for t in profile.sample_type):
        raise invalid("sample type contains -")
    if any(not x.id for x in [*profile.location, *profile.function]):
        raise invalid("id 0")
    for sample in profile.sample:
        if len(sample.value) != len(profile.sample_type):
            raise invalid("value count")
        if len(sample.label) > 100:
            raise invalid("the profile with labels '{}' exceeds the sample labels limit")
        if any(not re.fullmatch(r"[a-zA-Z0-9_.]+", text[label.key]) for label in sample.label if label.str):
            raise invalid("profile with labels '{}' has invalid label names")


def lost_by_pyroscope(profile, limits):
    """Why samples would vanish although the answer is OK."""
    text, lost = profile.string_table, []
    functions, mappings = {f.id for f in profile.function}, {m.id for m in profile.mapping}
    for l in profile.location:
        if l.mapping_id not in mappings or any(line.function_id not in functions for line in l.line):
            lost.append("location %d dangles" % l.id)
        if not l.line and not l.address:
            lost.append("location %d has neither name nor address" % l.id)
    flagged = {m.id for m in profile.mapping if m.has_functions}
    lost += ["location %d loses its address" % l.id for l in profile.location if not l.line and l.mapping_id in flagged]
    for sample in profile.sample:
        if len(sample.location_id) > limits.depth:
            lost.append("a stack of %d frames" % len(sample.location_id))
        lost += ["numeric label " + text[label.key] for label in sample.label if label.num]
        if any(v < 0 for v in sample.value):
            lost.append("a negative value")
    lost += ["a string of %d bytes" % len(s) for s in text if len(s.encode()) > 65535]
    return lost


def judge_pyroscope(message, limits=PYROSCOPE_LIMITS):
    request = parse(schemas.pyroscope_push.PushRequest, message, invalid)
    stored = []
    for series in request.series:
        labels = check_pyroscope_labels(series.labels, limits)
        for sample in series.samples:
            profile, size = parse_pprof(sample.raw_profile, limits.profile_bytes)
            check_pyroscope_profile(profile, size, limits)
            # Each label set of samples becomes a series.
            sets = [{profile.string_table[l.key] for l in s.label if l.str} for s in profile.sample]
            most = max(len(keys | set(labels)) for keys in sets) if sets else 0
            if most > limits.labels:
                raise invalid("profile series '{}' has %d label names; limit %d" % (most, limits.labels))
            stored.append((labels, profile))
    return stored


# OTLP


def check_otlp_dictionary(d):
    for table in "mapping", "location", "function", "link", "attribute", "stack":
        items = getattr(d, table + "_table")
        if not items:
            raise unknown("%s_table is empty" % table)
        if items[0].ByteSize():
            raise unknown("%s_table[0] is not the zero value" % table)
        if len({x.SerializeToString(deterministic=True) for x in items}) != len(items):
            raise unknown("%s_table has duplicates" % table)
    if not d.string_table or d.string_table[0]:
        raise unknown("string_table[0] is not empty")
    if len(set(d.string_table)) != len(d.string_table):
        raise unknown("string_table has duplicates")


class Otlp:
    """One request: judged, and made into pprof-like profiles: {(stack, labels): values}."""

    def __init__(self, request):
        self.request, self.d = request, request.dictionary
        self.used = collections.defaultdict(lambda: {0})

    def at(self, table, index):
        items = getattr(self.d, table + "_table")
        if not 0 <= index < len(items):
            raise unknown("%s index %d past its table" % (table, index))
        self.used[table].add(index)
        return items[index]

    def attributes(self, indices):
        out = {}
        for i in indices:
            attribute = self.at("attribute", i)
            key = self.at("string", attribute.key_strindex)
            if not key or key in out:
                raise unknown("attribute key %r empty or twice" % key)
            kind = attribute.value.WhichOneof("value")
            if not kind:
                raise unknown("attribute %s has no value" % key)
            out[key] = (getattr(attribute.value, kind), self.at("string", attribute.unit_strindex))
        return out

    def frames(self, index):
        out = []
        for i in self.at("stack", index).location_indices:
            location = self.at("location", i)
            mapping = self.at("mapping", location.mapping_index)
            if not (mapping.memory_start < mapping.memory_limit or mapping.memory_start == mapping.memory_limit == 0):
                raise unknown("mapping without range")
            self.attributes(mapping.attribute_indices), self.attributes(location.attribute_indices)
            names = []
            for line in location.lines:
                function = self.at("function", line.function_index)
                texts = [self.at("string", s) for s in (function.name_strindex, function.system_name_strindex,
                                                        function.filename_strindex)]
                if not any(texts):
                    raise unknown("function without a name")
                names.append(texts[0])
            out.append((self.at("string", mapping.filename_strindex), location.address, tuple(names)))
        return tuple(out)

    def samples(self, profile):
        if not profile.HasField("sample_type") or not profile.HasField("period_type"):
            raise unknown("profile without sample_type or period_type")
        if not profile.samples:
            raise unknown("profile without samples")
        out = {}
        for sample in profile.samples:
            if len(sample.values) != 1 or sample.timestamps_unix_nano:
                raise unknown("a sample without timestamps has one value")
            labels = self.attributes(sample.attribute_indices)
            key = (self.frames(sample.stack_index), tuple(sorted((k, v) for k, (v, _) in labels.items())))
            if key in out:
                raise unknown("equal samples were not added up")
            out[key] = sample.values[0]
        return out

    def judge(self):
        if not self.request.resource_profiles or not self.request.HasField("dictionary"):
            raise invalid("missing resource profiles or dictionary")
        check_otlp_dictionary(self.d)
        stored = []
        for resource in self.request.resource_profiles:
            if not resource.HasField("resource"):
                raise Refused(grpc.StatusCode.INTERNAL, "panic: resource is nil")
            keys = [a.key for a in resource.resource.attributes]
            if len(set(keys)) != len(keys) or "" in keys:
                raise unknown("resource attribute keys empty or twice")
            labels = {a.key: a.value.string_value for a in resource.resource.attributes}
            for scope in resource.scope_profiles:
                if not scope.HasField("scope"):
                    raise Refused(grpc.StatusCode.INTERNAL, "panic: scope is nil")
                for profile in scope.profiles:
                    samples = self.samples(profile)
                    self.attributes(profile.attribute_indices)
                    kind = [self.at("string", i) for t in (profile.sample_type, profile.period_type)
                            for i in (t.type_strindex, t.unit_strindex)]
                    stored.append((dict(labels, __name__=scope.scope.name), tuple(kind), profile, samples))
        for table in "mapping", "location", "function", "attribute", "stack", "string":
            orphans = len(getattr(self.d, table + "_table")) - len(self.used[table])
            if orphans:
                raise unknown("%d orphans in %s_table" % (orphans, table))
        return stored


def judge_otlp(message):
    """[(labels, (type, unit, period type, period unit), Profile, {(frames, labels): value})]"""
    return Otlp(parse(schemas.otlp_collector_profiles.ExportProfilesServiceRequest, message, invalid)).judge()


# Parca debuginfo


class DebuginfoStore:
    """What Parca knows of build-ids. uploads: {build_id: bytes} that are complete; wanted(build_id) may say no."""

    def __init__(self):
        self.uploads, self.started, self.received = {}, {}, {}
        self.wanted = lambda build_id: True
        self.reason = "exists"
        self.signed_url = None  # prefix; then uploads are PUTs there

    def should_initiate(self, request):
        m = schemas.parca_debuginfo
        if len(request.build_id) <= 2:
            raise invalid("build_id is too short")
        want = request.build_id not in self.uploads and self.wanted(request.build_id)
        return m.ShouldInitiateUploadResponse(should_initiate_upload=want, reason="" if want else self.reason)

    def initiate(self, request):
        m = schemas.parca_debuginfo
        if len(request.build_id) <= 2 or not request.hash or request.size <= 0 or request.size > 1000000000:
            raise invalid("build_id, hash or size")
        if request.build_id in self.uploads:
            raise Refused(grpc.StatusCode.FAILED_PRECONDITION, "upload is not wanted")
        upload_id = "upload-%d" % (len(self.started) + 1)
        self.started[request.build_id] = (upload_id, request.size)
        instructions = m.UploadInstructions(build_id=request.build_id, upload_id=upload_id, type=request.type,
                                            upload_strategy=m.UploadInstructions.UPLOAD_STRATEGY_GRPC)
        if self.signed_url:
            instructions.upload_strategy = m.UploadInstructions.UPLOAD_STRATEGY_SIGNED_URL
            instructions.signed_url = self.signed_url + request.build_id
        return m.InitiateUploadResponse(upload_instructions=instructions)

    def upload(self, messages):
        m = schemas.parca_debuginfo
        info, data = None, b""
        for message in messages:
            request = parse(m.UploadRequest, message, invalid)
            if info is None:
                if request.WhichOneof("data") != "info":
                    raise Refused(grpc.StatusCode.INTERNAL, "panic: info is nil")
                info = request.info
            elif not request.chunk_data:
                raise invalid("empty chunk")
            data += request.chunk_data
        if info is None or self.started.get(info.build_id, (None,))[0] != info.upload_id:
            raise Refused(grpc.StatusCode.FAILED_PRECONDITION, "upload was not initiated")
        self.received[info.build_id] = data
        return m.UploadResponse(build_id=info.build_id, size=len(data))

    def finish(self, request):
        upload_id, size = self.started.get(request.build_id, (None, 0))
        if upload_id is None:
            raise Refused(grpc.StatusCode.NOT_FOUND, "no such upload")
        if upload_id != request.upload_id or len(self.received.get(request.build_id, b"")) != size:
            raise invalid("upload_id or size mismatch")
        self.uploads[request.build_id] = self.received[request.build_id]
        return schemas.parca_debuginfo.MarkUploadFinishedResponse()


# TLS


def server_credentials(pair, client_ca=None):
    """pair and client_ca as support_grpc's certificate() and authority() give them; client_ca asks for mTLS."""
    read = lambda path: open(path, "rb").read()
    return grpc.ssl_server_credentials([(read(pair["key"]), read(pair["cert"]))], read(client_ca[0]) if client_ca else None,
                                       client_ca is not None)


# The server


class Backend:
    """max_message_bytes None = gRPC's default of 4 MiB, except for Parca, which takes 64 MiB. token: what an authorization
    header has to be ("Bearer …"), else 16. credentials: server_credentials(…) for TLS."""

    PATHS = {
        "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw": ("parca", "write_raw"),
        "/parca.debuginfo.v1alpha1.DebuginfoService/ShouldInitiateUpload": ("parca", "should_initiate"),
        "/parca.debuginfo.v1alpha1.DebuginfoService/InitiateUpload": ("parca", "initiate"),
        "/parca.debuginfo.v1alpha1.DebuginfoService/MarkUploadFinished": ("parca", "finish"),
        "/parca.debuginfo.v1alpha1.DebuginfoService/Upload": ("parca", "upload"),
        "/push.v1.PusherService/Push": ("pyroscope", "push"),
        "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export": ("otlp", "export"),
        "/grpc.health.v1.Health/Check": (None, "health"),
    }

    def __init__(self, kind, folder=None, credentials=None, max_message_bytes=None, token=None, tenant=None, workers=8,
                 port=0, limits=PYROSCOPE_LIMITS):
        self.kind, self.folder, self.token, self.tenant, self.limits = kind, folder, token, tenant, limits
        self.calls, self.stored, self.debuginfo = [], [], DebuginfoStore()
        self._answers, self._lock = collections.deque(), threading.Lock()
        if folder:
            os.makedirs(folder, exist_ok=True)
        if max_message_bytes is None:
            max_message_bytes = 64 * MIB if kind == "parca" else 4 * MIB
        self._server = grpc.server(concurrent.futures.ThreadPoolExecutor(workers),
                                   options=[("grpc.max_receive_message_length", max_message_bytes), ("grpc.so_reuseport", 0)])
        self._server.add_generic_rpc_handlers((self._Router(self),))
        where = "127.0.0.1:%d" % port
        self.port = (self._server.add_secure_port(where, credentials) if credentials
                     else self._server.add_insecure_port(where))
        self.address = "127.0.0.1:%d" % self.port
        self._server.start()

    class _Router(grpc.GenericRpcHandler):
        def __init__(self, backend):
            self.backend = backend

        def service(self, details):
            kind, name = Backend.PATHS.get(details.method, (None, None))
            if name is None or kind not in (None, self.backend.kind):
                return None

            def handle(request, context):
                return self.backend._handle(details.method, name, request, context)
            if name == "upload":
                return grpc.stream_unary_rpc_method_handler(handle)
            return grpc.unary_unary_rpc_method_handler(handle)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.stop()

    def stop(self):
        self._server.stop(None).wait()

    def answer(self, *answers):
        """What the next calls get, one each."""
        with self._lock:
            self._answers.extend(answers)

    def wait_for(self, n_stored, seconds=10):
        """Until that many profiles are stored."""
        end = time.monotonic() + seconds
        while len(self.stored) < n_stored:
            if time.monotonic() > end:
                raise AssertionError("%d profiles after %s s, wanted %d; calls: %s" % (
                    len(self.stored), seconds, n_stored, [(c.path, c.code, c.text) for c in self.calls]))
            time.sleep(0.02)

    # Methods: bytes in, bytes out.

    def _write_raw(self, message):
        self._store(judge_parca(message))
        return b""

    def _push(self, message):
        self._store(judge_pyroscope(message, self.limits))
        return b""

    def _export(self, message):
        self._store(judge_otlp(message))
        return b""

    def _should_initiate(self, message):
        return self._debuginfo(self.debuginfo.should_initiate, "ShouldInitiateUploadRequest", message)

    def _initiate(self, message):
        return self._debuginfo(self.debuginfo.initiate, "InitiateUploadRequest", message)

    def _finish(self, message):
        return self._debuginfo(self.debuginfo.finish, "MarkUploadFinishedRequest", message)

    def _debuginfo(self, method, kind, message):
        with self._lock:
            return method(parse(getattr(schemas.parca_debuginfo, kind), message, invalid)).SerializeToString()

    def _upload(self, messages):
        return self.debuginfo.upload(messages).SerializeToString()

    def _health(self, message):
        parse(schemas.grpc_health.HealthCheckRequest, message, invalid)
        return schemas.grpc_health.HealthCheckResponse(status="SERVING").SerializeToString()

    def _store(self, profiles):
        with self._lock:
            for item in profiles:
                n = len(self.stored)
                self.stored.append(item)
                if self.folder and self.kind != "otlp":
                    labels, profile = item
                    with open(os.path.join(self.folder, "profile-%04d.pb" % n), "wb") as f:
                        f.write(profile.SerializeToString())
                    with open(os.path.join(self.folder, "profile-%04d.json" % n), "w") as f:
                        json.dump(labels, f, sort_keys=True)

    def _check_credentials(self, metadata):
        if self.token is not None and metadata.get("authorization") != self.token:
            raise Refused(grpc.StatusCode.UNAUTHENTICATED, "wrong or missing token")
        if self.tenant is not None and metadata.get("x-scope-orgid") != self.tenant:
            raise Refused(grpc.StatusCode.UNAUTHENTICATED, "no org id")

    def _judge(self, name, message, metadata, answer):
        if answer and answer.delay:
            time.sleep(answer.delay)
        if answer and answer.code not in (None, grpc.StatusCode.OK):
            raise Refused(answer.code, answer.text)
        self._check_credentials(metadata)
        response = getattr(self, "_" + name)(message)
        return response if not answer or answer.response is None else answer.response

    def _handle(self, path, name, message, context):
        metadata = dict(context.invocation_metadata())
        if name == "upload":
            message = list(message)
        with self._lock:
            answer = self._answers.popleft() if self._answers and name != "health" else None
        code, text, response = grpc.StatusCode.OK, "", None
        try:
            response = self._judge(name, message, metadata, answer)
        except Refused as e:
            code, text = e.code, e.text
        with self._lock:
            n = len(self.calls)
            self.calls.append(Call(time.time(), path, metadata, message, code, text))
        if self.folder:
            with open(os.path.join(self.folder, "%04d-%s.bin" % (n, path.rsplit("/", 1)[1])), "wb") as f:
                f.write(b"".join(message) if name == "upload" else message)
        if answer:
            context.set_trailing_metadata(tuple(answer.all_trailers()))
        if code != grpc.StatusCode.OK:
            context.abort(code, text)
        return response


def total(profiles, column=0):
    """Sum of a column over pprof profiles of (labels, profile)."""
    return sum(sample.value[column] for _, profile in profiles for sample in profile.sample)
