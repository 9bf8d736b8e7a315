# SPDX-License-Identifier: Apache-2.0
"""Kinds of recordings that other tools are known to stumble over, each with the values that are right. FR numbers are
those of the project's list of field reports."""
import random, re
from support import *
import support_limits as limits
import support_perf_data as perf
import support_profile_text as profile_text
from support_pprof import Pprof
from support_recording import record, script

there = folder()
WORKLOAD = ("i=0; while [ $i -lt 120000 ]; do i=$((i+1)); done; for k in 1 2 3; do /bin/true; done; "
            "cat /proc/kallsyms >/dev/null 2>&1; i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done")
_cache = {}


def out(name):
    return os.path.join(there, name)


def convert(path, *words, code=0):
    """(Pprof, stderr)"""
    target = out(os.path.basename(path) + ".pb.gz")
    done = run("convert", "-i", path, "-o", target, *words, check=code)
    return Pprof(target), done.stderr


def recorded(name, *words):
    """A recording of one process tree; made once."""
    if name not in _cache:
        record("-F", "999", *words, "-o", out(name), command=["sh", "-c", WORKLOAD])
        _cache[name] = out(name)
    return _cache[name]


def base():
    path = recorded("base.data", "-g")
    return path, perf.read(path)


def total(profile, column=0):
    return sum(values[column] for _, values, _ in profile.samples)


def samples_of(recording):
    return sum(1 for r in recording.records if r.kind == perf.SAMPLE)


def names(profile):
    return {profile.text(f.get(2, 0)) for f in profile.functions}


def insert(recording, made, at=None):
    """made stands before the middle sample."""
    places = [i for i, r in enumerate(recording.records) if r.kind == perf.SAMPLE]
    at = places[len(places) // 2] if at is None else at
    return recording.with_records(recording.records[:at] + made + recording.records[at:])


def check_same_as_base(name, content, warning=None):
    profile, stderr = convert(write(out(name), content))
    profile_text.assert_same(profile_text.lines(out(name + ".pb.gz")), profile_text.lines(convert_base()), name)
    if warning:
        lines = [line for line in stderr.splitlines() if "warning" in line]
        assert len(lines) == 1 and warning in lines[0], stderr
    else:
        assert "warning" not in stderr, stderr
    return profile


def convert_base():
    path, recording = base()
    profile, stderr = convert(path)
    assert total(profile) == samples_of(recording) > 100 and "warning" not in stderr, stderr
    return path + ".pb.gz"


def test_output_of_the_workload_before_the_magic_is_named():  # FR-67
    content = b"building...\ndone\n" + perf.pack_pipe(base()[1])
    done = run("convert", "-i", "-", "-o", out("mixed.pb.gz"), input=content, check=65)
    assert "E603" in done.stderr and "output of the recorded command" in done.stderr, done.stderr


def test_metadata_of_a_pipe_may_come_in_any_order():  # FR-67
    recording = base()[1]
    features = [perf.Record(perf.HEADER_FEATURE, 0, struct.pack("<Q", n) + data)
                for n, data in recording.features.items() if n != perf.FEATURE_BUILD_ID]
    build_ids = [perf.Record(perf.BUILD_ID, r.misc, r.body) for r in perf.build_id_records(recording)]
    late = recording.with_features({}).with_records(recording.records[:3] + features + build_ids + recording.records[3:])
    check_same_as_base("late-metadata.data", perf.pack_pipe(late))


def test_unknown_record_types_are_skipped_with_one_line():  # FR-69
    made = [perf.Record(200, 0, bytes(range(n % 200))) for n in range(0, 400, 8)]
    for name, pack in (("unknown.data", perf.pack), ("unknown-pipe.data", perf.pack_pipe)):
        check_same_as_base(name, pack(insert(base()[1], made)), warning="W602")
    done = run("convert", "-i", out("unknown.data"), "-o", out("unknown.pb.gz"), check=0)
    assert "200" in done.stderr and "50" in done.stderr, done.stderr


def test_unknown_features_are_skipped():  # FR-69
    recording = base()[1]
    features = dict(recording.features)
    features[60] = b"new in some later perf" * 5
    features[200] = b"\xff" * 64
    # Features that can be skipped by their size need no word.
    convert_and_compare = perf.pack(recording.with_features(features))
    convert(write(out("features.data"), convert_and_compare))
    profile_text.assert_same(profile_text.lines(out("features.data.pb.gz")), profile_text.lines(convert_base()),
                             "unknown features")


def test_longer_attrs_of_a_later_perf_are_read():  # FR-69
    recording = base()[1]
    longer = [(struct.pack("<II", struct.unpack_from("<I", attr)[0], len(attr) + 32) + attr[8:] + bytes(32), ids)
              for attr, ids in recording.attrs]
    features = {n: data for n, data in recording.features.items() if n != perf.FEATURE_EVENT_DESC}
    for name, pack in (("long-attr.data", perf.pack), ("long-attr-pipe.data", perf.pack_pipe)):
        profile, stderr = convert(write(out(name), pack(perf.Recording(longer, features, recording.records))))
        assert total(profile) == samples_of(recording) and "warning" not in stderr, stderr


def test_dwarf_recordings_keep_every_sample():  # FR-70
    path = recorded("dwarf.data", "--call-graph", "dwarf,4096")
    profile, stderr = convert(path)
    assert total(profile) == len(script(path, "pid", "-G")) > 100
    assert "malformed" not in stderr
    # What the call chain field has is there, and no sample is without a frame.
    assert not profile.broken_rules(), profile.broken_rules()


def test_payload_of_auxtrace_is_no_record():  # FR-73
    noise = random.Random(1).randbytes(1 << 20)
    # Bytes that look like samples must not count either.
    fake = b"".join(r.bytes() for r in base()[1].records if r.kind == perf.SAMPLE)
    fake += bytes(-len(fake) % 8)
    info = perf.Record(perf.AUXTRACE_INFO, 0, struct.pack("<IIQ", 1, 0, 0) + bytes(120))
    for payload in (noise, fake, b""):
        made = perf.Record(perf.AUXTRACE, 0, struct.pack("<QQQIIII", len(payload), 0, 0, 0, 0, 0, 0), payload)
        for name, pack in (("aux.data", perf.pack), ("aux-pipe.data", perf.pack_pipe)):
            check_same_as_base(name, pack(insert(base()[1], [info, made])))


def test_tracing_data_is_skipped_by_its_size():  # FR-73
    made = perf.Record(perf.TRACING_DATA, 0, struct.pack("<II", 100001, 0), random.Random(2).randbytes(100008))
    check_same_as_base("tracing-pipe.data", perf.pack_pipe(insert(base()[1], [made], at=0)))


def as_old_perf(recording):
    """What perf 2.6.34 or so would have written: MMAP for MMAP2, attrs of 64 bytes, no round markers."""
    kind, records = recording.sample_type(), []
    trailer = perf.trailer_field_at(kind, perf.TID)
    for r in recording.records:
        if r.kind == perf.MMAP2:
            fixed, rest = r.body[:32], r.body[64:]
            records.append(perf.Record(perf.MMAP, r.misc & ~(1 << 14), fixed + rest))
        elif r.kind < perf.USER_START:
            records.append(r)
    assert trailer
    attrs = [(struct.pack("<II", struct.unpack_from("<I", attr)[0], 64) + attr[8:64], ids)
             for attr, ids in recording.attrs]
    features = {n: data for n, data in recording.features.items() if n in (2, 3, 4, 5, 6)}
    return perf.Recording(attrs, features, records)


def place_names(path):
    """Samples as (names, mapping, labels, values): what must survive in an old recording."""
    profile = Pprof(path)
    return sorted(line.split(" | ")[0].count("<") for line in profile_text.lines(path) if " | " in line), total(profile)


def test_files_of_old_perf_give_the_same_stacks():  # FR-75
    path, recording = base()
    old = write(out("old.data"), perf.pack(as_old_perf(recording)))
    ours, stderr = convert(old, "--trust-paths")
    assert "warning" not in stderr, stderr
    theirs, _ = convert(path, "--trust-paths")
    assert total(ours) == total(theirs) and total(ours, 1) == total(theirs, 1)
    assert names(ours) == names(theirs), names(ours) ^ names(theirs)
    assert place_names(old + ".pb.gz") == place_names(path + ".pb.gz")
    perf_lines = script(path, "comm,pid,ip,period")
    assert perf_lines and script(old, "comm,pid,ip,period") == perf_lines, "the old form made here is wrong"


def write_repeated(path, recording, n_bytes, with_rounds):
    """The records of recording over and over, each time later; returns the number of samples."""
    kind = recording.sample_type()
    block, places, times = bytearray(), [], []
    for r in recording.records:
        if r.kind >= perf.USER_START and not (r.kind == perf.FINISHED_ROUND and with_rounds):
            continue
        at = len(block) + 8
        if r.kind == perf.SAMPLE:
            at += perf.sample_field_at(kind, perf.TIME)
        else:
            at += len(r.body) - perf.trailer_field_at(kind, perf.TIME)
        block += r.bytes()
        if r.kind < perf.USER_START:
            times.append(struct.unpack_from("<Q", block, at)[0])
            places.append(at)
    if with_rounds:
        block += perf.Record(perf.FINISHED_ROUND, 0, b"").bytes()
    span = max(times) - min(t for t in times if t) + 1000
    n = n_bytes // len(block) + 1
    with open(path, "wb") as target:
        target.write(perf.pack_pipe(recording.with_records([])))
        for i in range(n):
            for at, value in zip(places, times):
                if value:
                    struct.pack_into("<Q", block, at, value + i * span)
            target.write(block)
    return n * samples_of(recording)


def test_big_files_need_memory_for_stacks_not_for_records():  # FR-76
    _, recording = base()
    for with_rounds, n_bytes in ((True, 300 << 20), (False, 60 << 20)):
        n_samples = write_repeated(out("big.data"), recording, n_bytes, with_rounds)
        outcome = limits.measure(binary, "convert", "-q", "-i", out("big.data"), "-o", out("big.pb.gz"),
                                 is_limited=not limits.is_sanitized(binary))
        size = os.path.getsize(out("big.data"))
        os.unlink(out("big.data"))
        assert outcome.code == 0 and not outcome.stderr, (outcome.code, outcome.stderr)
        assert total(Pprof(out("big.pb.gz"))) == n_samples
        print("        %d MiB, rounds %s: peak %.1f MiB" % (size >> 20, with_rounds, outcome.peak_bytes / limits.MIB))
        if not limits.is_sanitized(binary):
            assert outcome.peak_bytes < 128 * limits.MIB, outcome.peak_bytes / limits.MIB


def test_folders_of_perf_record_threads_are_read_whole():  # FR-77
    path = recorded("threads.data", "-a", "--threads")
    if not os.path.isdir(path):
        raise Skip("this perf record --threads writes no folder")
    profile, stderr = convert(path)
    assert total(profile) == len(script(path, "pid", "-G")) > 100 and "warning" not in stderr, stderr
    os.unlink(os.path.join(path, "data.1"))
    profile, stderr = convert(path)  # part of it went: what is left counts
    assert total(profile) > 0


def test_an_existing_output_is_replaced_and_kept_when_conversion_fails():  # FR-78
    path, _ = base()
    target = write(out("there.pb.gz"), b"what stood here")
    run("convert", "-i", write(out("text"), b"no recording\n" * 9), "-o", target, check=65)
    assert open(target, "rb").read() == b"what stood here"
    run("convert", "-i", path, "-o", target, check=0)
    assert total(Pprof(target)) > 100
    descriptor, made = tempfile.mkstemp(dir=there)  # a caller that made the file itself
    os.close(descriptor)
    run("convert", "-i", path, "-o", made, check=0)
    assert total(Pprof(made)) > 100
    link = out("perf_to_profile")
    os.symlink(binary, link)
    run("-i", path, "-o", made, program=link, check=73)
    run("-i", path, "-o", made, "-f", program=link, check=0)
    assert not [name for name in os.listdir(there) if name.startswith((".there", "there.pb.gz."))]


def test_each_event_has_its_own_weight():  # FR-79
    path = out("events.data")
    record("-e", "cpu-clock,page-faults,context-switches", "-F", "499", "-a", "-o", path, command=["sh", "-c", WORKLOAD])
    theirs = {}
    for line in script(path, "event,period"):
        period, event = line.split()
        n, weight = theirs.get(event.rstrip(":"), (0, 0))
        theirs[event.rstrip(":")] = n + 1, weight + int(period)
    profile, _ = convert(path)
    sums = {name: value for name, _, value in profile.totals()}
    units = {name: unit for name, unit, _ in profile.totals()}
    assert len(theirs) == 3, theirs
    for event, (n, weight) in theirs.items():
        name = event.replace("-", "_")
        assert (sums[name + "_samples"], sums[name]) == (n, weight), (event, sums, theirs)
        assert units[name + "_samples"] == "count"
        assert units[name] == ("nanoseconds" if event == "cpu-clock" else "count"), units
    assert profile.default_type == "cpu_clock", profile.default_type
    assert theirs["page-faults"][1] > theirs["page-faults"][0], "the weights of this recording say nothing"
    single, _ = convert(path, "--event", "page-faults")
    assert [value for _, _, value in single.totals()] == list(theirs["page-faults"])


def test_hybrid_twins_of_one_event_stay_apart_and_add_up_on_demand():  # FR-79
    recording = perf.read(recorded("all.data", "-a", "-g"))
    attr, ids = recording.attrs[0]
    kind = recording.sample_type()
    assert kind & perf.ID
    twins = perf.Recording([(attr, ids), (attr, [i + 100000 for i in ids])] + recording.attrs[1:],
                           {n: d for n, d in recording.features.items() if n != perf.FEATURE_EVENT_DESC}, [])
    at, n = perf.sample_field_at(kind, perf.ID), 0
    for r in recording.records:
        body = r.body
        if r.kind == perf.SAMPLE:
            n += 1
            if n % 3 == 0:
                body = body[:at] + struct.pack("<Q", struct.unpack_from("<Q", body, at)[0] + 100000) + body[at + 8:]
        twins.records.append(perf.Record(r.kind, r.misc, body))
    profile, _ = convert(write(out("hybrid.data"), perf.pack(twins)))
    counts = [value for name, _, value in profile.totals() if "samples" in name]
    assert counts == [n - n // 3, n // 3], profile.totals()
    both, _ = convert(out("hybrid.data"), "--event", "cpu-clock")
    assert both.totals()[0][2] == n, both.totals()


BURN_PYTHON = ("import resource, time\nend = time.process_time() + 1.5\nwhile time.process_time() < end: pass\n"
               "u = resource.getrusage(resource.RUSAGE_SELF)\nprint(u.ru_utime + u.ru_stime)")


def test_cpu_seconds_are_the_cpu_time_of_the_process():  # FR-81
    differences = []
    for _ in range(3):  # a busy host may disturb one
        with open(out("time"), "wb") as stdout:
            record("-e", "cpu-clock", "-F", "1999", "-o", out("cpu.data"), command=["/usr/bin/python3", "-c", BURN_PYTHON],
                   stdout=stdout)
        spent = float(open(out("time")).read())
        profile, _ = convert(out("cpu.data"))
        assert profile.types == [("samples", "count"), ("cpu", "nanoseconds")]
        assert profile.period == 1000000000 // 1999
        fields = Profile(out("cpu.data.pb.gz"))
        assert fields.duration_nanos > 1.4e9
        differences.append(total(profile, 1) / 1e9 / spent - 1)
        if abs(differences[-1]) < 0.02:
            return
    raise AssertionError("off by %s" % ", ".join("%.2f %%" % (100 * d) for d in differences))


def test_a_fallback_from_cycles_is_named_what_it_is():  # FR-84
    path = recorded("cycles.data", "-e", "cycles")
    events = json.loads(run("inspect", path, "--format", "json", check=0).stdout)["events"]
    kind = struct.unpack_from("<I", perf.read(path).attrs[0][0])[0]
    profile, _ = convert(path)
    if kind == 0:
        assert profile.types[:2] == [("samples", "count"), ("cycles", "count")], profile.types
    else:
        assert events[0]["name"].startswith("cpu-clock"), events[0]
        assert profile.types == [("samples", "count"), ("cpu", "nanoseconds")], profile.types


def wall_clock(*words):
    """(begin, end, time_nanos, comments) of a recording."""
    path = out("wall.data")
    before = time.time_ns()
    record("-F", "499", *words, "-o", path, command=["sh", "-c", WORKLOAD])
    after = time.time_ns()
    profile, _ = convert(path)
    return before, after, Profile(path + ".pb.gz").time_nanos, " ".join(profile.comments)


def test_time_of_a_default_recording_is_near_and_marked():  # FR-85
    before, after, taken, comments = wall_clock()
    assert before - 2e9 < taken < after + 2e9, (before, taken, after)
    assert "approximate" in comments, comments


def test_time_of_a_recording_with_a_clock_is_exact():  # FR-85
    before, after, taken, comments = wall_clock("-k", "CLOCK_MONOTONIC")
    assert before < taken < after, (before, taken, after)
    assert "approximate" not in comments, comments


def test_time_is_never_1970():  # FR-85
    recording = base()[1]
    for pack in (perf.pack, perf.pack_pipe):
        content = pack(recording.with_features({}))
        done = run("convert", "-i", "-", "-o", out("nowhen.pb.gz"), input=content, check=0)
        taken = Profile(out("nowhen.pb.gz")).time_nanos
        # From a pipe nothing is known: then no time at all, or the time of reading.
        assert taken == 0 or abs(taken - time.time_ns()) < 60e9, (taken, done.stderr)


def test_build_ids_inside_mappings_identify_the_kernel_of_a_pipe():  # FR-67
    with open(out("buildid-mmap.data"), "wb") as stdout:
        record("-F", "999", "-a", "-g", "--buildid-mmap", "-o", "-", stdout=stdout, command=["sh", "-c", WORKLOAD])
    made = perf.read(out("buildid-mmap.data"))
    ids = [r.body[36:36 + r.body[32]].hex() for r in made.records if r.kind == perf.MMAP2 and b"[kernel.kallsyms]" in r.body]
    if not ids or made.features.get(perf.FEATURE_BUILD_ID):
        raise Skip("this perf puts no build-id into the kernel's mapping")
    profile, _ = convert(out("buildid-mmap.data"))
    kernel = next(m for m in profile.mappings if profile.text(m.get(5, 0)) == "[kernel.kallsyms]")
    assert profile.text(kernel.get(6, 0)) == ids[0], (profile.text(kernel.get(6, 0)), ids)
    assert kernel.get(2, 0) >= 1 << 63, "the kernel's mapping reaches into user space: %#x" % kernel.get(2, 0)
    with open("/proc/kallsyms") as source:
        if not any(int(line.split()[0], 16) for line in source if line.split()[2] == "_text"):
            raise Skip("kernel names are hidden on this host")
    assert any(location[4] for location in profile.locations if location.get(2) == kernel[1]), "no kernel names"


def test_a_recording_without_samples_is_said():  # FR-86
    recording = base()[1]
    idle = recording.with_records([r for r in recording.records if r.kind != perf.SAMPLE])
    profile, stderr = convert(write(out("idle.data"), perf.pack(idle)))
    assert "W114" in stderr and profile.samples == [] and profile.types, stderr
    # No sample of zeros either: a period of 0 still counts as one sample.
    kind = recording.sample_type()
    at = perf.sample_field_at(kind, perf.PERIOD)
    zeros = [perf.Record(r.kind, r.misc, r.body[:at] + bytes(8) + r.body[at + 8:] if r.kind == perf.SAMPLE else r.body)
             for r in recording.records]
    profile, _ = convert(write(out("zeros.data"), perf.pack(recording.with_records(zeros))))
    assert total(profile) == samples_of(recording) and not profile.broken_rules(), profile.broken_rules()


def test_ids_are_dense_and_in_table_order():  # FR-87
    profile, _ = convert(base()[0])
    for items in (profile.mappings, profile.locations, profile.functions):
        assert [item[1] for item in items] == list(range(1, len(items) + 1))
    used = {i for stack, _, _ in profile.samples for i in stack}
    assert used == {location[1] for location in profile.locations}, "locations that no sample has"
    assert profile.strings[0] == "" and not profile.broken_rules(), profile.broken_rules()


def test_the_first_mapping_is_the_program_and_flags_are_true():  # FR-88
    record("-F", "1999", "-g", "-o", out("mostly-kernel.data"),
           command=["/usr/bin/python3", "-c", "import os\nfor _ in range(4000): os.getrandom(65536)"])
    profile, _ = convert(out("mostly-kernel.data"))
    program = os.path.realpath("/usr/bin/python3")
    first = profile.mappings[0]
    assert profile.text(first.get(5, 0)) == program, profile.text(first.get(5, 0))
    kernel = [m for m in profile.mappings if profile.text(m.get(5, 0)).startswith("[kernel")]
    by_mapping = {}
    for location in profile.locations:
        by_mapping.setdefault(location.get(2, 0), []).append(bool(location[4]))
    for mapping in profile.mappings:
        flag = bool(mapping.get(7, 0))
        assert flag == all(by_mapping.get(mapping[1], [])), (profile.text(mapping.get(5, 0)), flag)
    leaf = {location[1]: location.get(2, 0) for location in profile.locations}
    in_kernel = sum(values[0] for stack, values, _ in profile.samples if kernel and leaf[stack[0]] == kernel[0][1])
    assert in_kernel * 2 > total(profile), "most of it should be kernel, so that the order is tested"
    try:
        text = pprof("-top", out("mostly-kernel.data.pb.gz"))
    except Skip as why:
        print("        without go tool pprof: %s" % why)
        return
    assert re.search(r"^File: %s$" % os.path.basename(program), text, re.M), text[:300]


def test_the_profile_is_complete_when_the_binaries_are_gone():  # FR-89
    program = out("a-shell-to-go")
    shutil.copy("/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh", program)
    record("-F", "999", "-g", "-o", out("gone.data"), command=[program, "-c", WORKLOAD])
    profile, _ = convert(out("gone.data"))
    before = profile_text.lines(out("gone.data.pb.gz"))
    os.unlink(program)
    mapping = [m for m in profile.mappings if profile.text(m.get(5, 0)) == program]
    named = [location for location in profile.locations if mapping and location.get(2) == mapping[0][1] and location[4]]
    assert len(named) > 5, "no names of the copied shell"
    text = run("report", out("gone.data.pb.gz"), "--format", "csv", "--nodecount", "0", check=0).stdout.decode()
    first = profile.text(profile.functions[0].get(2, 0))
    assert any(row.endswith(first) or first in row for row in text.splitlines()), first
    assert before == profile_text.lines(out("gone.data.pb.gz"))
    # Converted again without the file: same samples, told as unnamed, not wrongly named.
    again, _ = convert(out("gone.data"))
    assert total(again) == total(profile)
    gone = [m for m in again.mappings if profile.text(m.get(5, 0)) == program or again.text(m.get(5, 0)) == program]
    assert gone and not gone[0].get(7, 0), "a file that is gone has names"


main(globals())
