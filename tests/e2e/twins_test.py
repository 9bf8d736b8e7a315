# SPDX-License-Identifier: Apache-2.0
"""One recording in every form that perf.data takes gives one profile, and the same bytes however the run is disturbed."""
import random
from support import *
import support_perf_data as perf
import support_profile_text as profile_text
import support_swap
from support_pprof import Pprof
from support_recording import record

there = folder()
SCRIPT = ("i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; for k in 1 2 3 4 5 6; do /bin/true; (:) ; done; "
          "cat /proc/kallsyms >/dev/null 2>&1; i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done")
_cache = {}


def out(name):
    return os.path.join(there, name)


def perf_record(*words, stdout=None):
    """A system-wide recording with stacks of a few processes."""
    record("-F", "999", "-a", "-g", *words, command=["sh", "-c", SCRIPT], stdout=stdout)


def original():
    """(path, Recording) of the file form that the twins are made from."""
    if "original" not in _cache:
        perf_record("-o", out("original.data"))
        _cache["original"] = perf.read(out("original.data"))
        assert len(_cache["original"].records) > 100
    return out("original.data"), _cache["original"]


def text_of(path):
    name = out(os.path.basename(path) + ".pb.gz")
    done = run("convert", "-i", path, "-o", name, check=0)
    assert "warning" not in done.stderr, done.stderr
    return profile_text.lines(name)


def original_text():
    if "text" not in _cache:
        _cache["text"] = text_of(original()[0])
        names = sum(1 for line in _cache["text"] if "|" in line)
        assert names > 50, names
    return _cache["text"]


def check_twin(name, content):
    check_path(write(out(name), content), name)


def check_path(path, what):
    if text_of(path) != original_text():
        # A binary of the whole host may have gone or come since; both once more, side by side.
        del _cache["text"]
        profile_text.assert_same(text_of(path), original_text(), what)


def chunk_sizes(seed):
    rng = random.Random(seed)
    return lambda: rng.choice([1, 7, 30, 1000, rng.randint(1, 40000), 40000])


def perf_script(path):
    return subprocess.run(["perf", "script", "-i", path, "-F", "comm,pid,tid,time,ip,event,period"], capture_output=True,
                          timeout=120).stdout


def test_the_command_of_the_manual_works_and_tee_keeps_its_twin():
    need_sampling()
    find_perf()
    command = ("perf record -F 999 -a -g -o - -- sleep 1.5 2>%s | tee %s | '%s' convert -i - -o %s" %
               (out("perf.err"), out("tee.data"), binary, out("piped.pb.gz")))
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "error" not in done.stderr, done.stderr
    piped = profile_text.lines(out("piped.pb.gz"))
    profile_text.assert_same(text_of(out("tee.data")), piped, "tee")
    recording = perf.read(out("tee.data"))
    # Pipe form becomes file form.
    profile_text.assert_same(text_of(write(out("tee-file.data"), perf.pack(recording))), piped, "file form of tee")
    assert sum(1 for r in recording.records if r.kind == perf.SAMPLE) == Profile(out("piped.pb.gz")).total()


def test_packing_again_changes_nothing():
    check_twin("repacked.data", perf.pack(original()[1]))
    assert perf_script(out("repacked.data")) == perf_script(out("original.data")), "the packer of this test is wrong"


def test_pipe_form_with_build_id_records_is_the_twin_of_file_form():
    check_twin("pipe.data", perf.pack_pipe(original()[1]))
    piped = run("convert", "-i", "-", "-o", out("stdin.pb.gz"), input=perf.pack_pipe(original()[1]), check=0)
    assert "warning" not in piped.stderr
    profile_text.assert_same(profile_text.lines(out("stdin.pb.gz")), original_text(), "standard input")


def test_pipe_form_made_by_perf_inject_is_the_twin_of_file_form():
    path, recording = original()
    with open(out("injected.data"), "wb") as stdout:
        done = subprocess.run(["perf", "inject", "-i", path, "-o", "-"], stdout=stdout, stderr=subprocess.PIPE)
    if done.returncode:
        raise Skip("perf inject: " + done.stderr.decode("utf-8", "replace")[-200:])
    # perf 6.1 drops the build-ids on the way, and with them what identifies kernel and replaced files.
    kept = perf.read(out("injected.data"))
    features = dict(recording.features)
    if not [r for r in kept.records if r.kind == perf.BUILD_ID]:
        del features[perf.FEATURE_BUILD_ID]
    theirs = text_of(write(out("uninjected.data"), perf.pack(recording.with_features(features))))
    profile_text.assert_same(text_of(out("injected.data")), theirs, "perf inject")


def test_file_form_made_by_perf_inject_is_the_twin_of_pipe_form():
    perf_record("-o", "-", stdout=open(out("stream.data"), "wb"))
    done = subprocess.run(["perf", "inject", "-i", out("stream.data"), "-o", out("stream-file.data")],
                          capture_output=True, timeout=120)
    check = subprocess.run(["perf", "script", "-i", out("stream-file.data")], capture_output=True, timeout=120)
    if done.returncode or check.returncode or not check.stdout:
        # perf 6.1 writes the attrs over the first records. Such a file is refused, and clearly.
        refused = run("convert", "-i", out("stream-file.data"), "-o", out("stream-file.pb.gz"))
        assert refused.returncode in (0, 65) and "E601" in refused.stderr + "E601" * (refused.returncode == 0)
        raise Skip("this perf inject writes a file that perf script does not read either: " +
                   check.stderr.decode("utf-8", "replace").strip()[:120])
    profile_text.assert_same(text_of(out("stream-file.data")), text_of(out("stream.data")), "perf inject to a file")


def test_zstd_records_of_both_types_are_twins_wherever_chunks_are_cut():
    if not perf.has_zstd():
        raise Skip("no libzstd to pack with")
    for seed, kind in ((1, perf.COMPRESSED), (2, perf.COMPRESSED2), (3, perf.COMPRESSED)):
        packed = perf.compress(original()[1], kind, chunk_sizes(seed))
        assert not [r for r in packed.records if r.kind == perf.SAMPLE]
        check_twin("zstd-%d.data" % seed, perf.pack(packed))
        check_twin("zstd-pipe-%d.data" % seed, perf.pack_pipe(packed))
    tiny = perf.compress(original()[1], perf.COMPRESSED2, lambda: 5)
    check_twin("zstd-tiny.data", perf.pack(tiny))


def test_compression_that_is_not_known_is_an_error():
    if not perf.has_zstd():
        raise Skip("no libzstd to pack with")
    packed = perf.compress(original()[1], perf.COMPRESSED, chunk_sizes(4))
    packed.features[perf.FEATURE_COMPRESSED] = struct.pack("<5I", 1, 9, 1, 4, 512 << 10)
    for content in (perf.pack(packed), perf.pack_pipe(packed)):
        done = run("convert", "-i", write(out("unknown.data"), content), "-o", out("unknown.pb.gz"), "--strict")
        assert done.returncode == 65 and "compress" in done.stderr, (done.returncode, done.stderr)
        done = run("convert", "-i", out("unknown.data"), "-o", out("unknown.pb.gz"))
        assert "compress" in done.stderr, (done.returncode, done.stderr)


def test_byte_swapped_twins_in_file_and_pipe_form():
    swapped = support_swap.swap(original()[1])
    check_twin("big-endian.data", perf.pack(swapped, ">"))
    check_twin("big-endian-pipe.data", perf.pack_pipe(swapped, ">"))
    info = json.loads(run("inspect", out("big-endian.data"), "--format", "json", check=0).stdout)
    theirs = json.loads(run("inspect", original()[0], "--format", "json", check=0).stdout)
    for key in ("events", "samples_total", "time_ns", "samples_per_comm_pid", "callchain", "build_ids", "top_leaf"):
        assert info[key] == theirs[key], (key, info[key], theirs[key])


def test_folder_twins_by_cpu_and_by_thread():
    _, recording = original()
    kind = recording.sample_type()

    def by(bit, n):
        return lambda record: perf.field(record, kind, bit, "I") % n if perf.field(record, kind, perf.TIME) else None

    for name, part_of, n in (("cpu", by(perf.CPU, 4), 4), ("thread", by(perf.TID, 3), 3)):
        path = perf.split_folder(recording, out("folder-" + name), part_of, n)
        check_path(path, "folder by " + name)


def test_a_real_folder_of_perf_record_threads_has_all_samples():
    perf_record("--threads", "-o", out("threads.data"))
    if not os.path.isdir(out("threads.data")):
        raise Skip("this perf record --threads writes no folder")
    check_totals_against_perf("threads.data")


def test_a_real_recording_with_z_has_all_samples():
    perf_record("-z", "-o", out("z.data"))
    assert any(r.kind in (perf.COMPRESSED, perf.COMPRESSED2) for r in perf.read(out("z.data")).records)
    check_totals_against_perf("z.data")
    perf_record("-z", "-o", "-", stdout=open(out("z-pipe.data"), "wb"))
    check_totals_against_perf("z-pipe.data")


def check_totals_against_perf(name):
    """Samples per process as perf script counts them."""
    run("convert", "-i", out(name), "-o", out(name + ".pb.gz"), check=0)
    ours = {}
    for _, values, labels in Pprof(out(name + ".pb.gz")).samples:
        key = labels.get("pid", 0)
        ours[key] = ours.get(key, 0) + values[0]
    theirs = {}
    text = subprocess.run(["perf", "script", "-i", out(name), "-G", "-F", "pid"], capture_output=True, text=True,
                          timeout=120).stdout
    for pid in text.split():
        theirs[int(pid)] = theirs.get(int(pid), 0) + 1
    assert sum(theirs.values()) > 30 and ours == theirs, (ours, theirs)


def converted_bytes(path, *, prefix=(), disturb=None):
    target = out("same.pb.gz")
    process = subprocess.Popen([*prefix, binary, "convert", "-q", "-i", path, "-o", target],
                               stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if disturb:
        disturb(process)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr
    with open(target, "rb") as source:
        return source.read()


def stop_and_continue(seed):
    rng = random.Random(seed)

    def disturb(process):
        # Its whole run takes some 20 ms; most stops fall inside.
        for _ in range(6):
            time.sleep(rng.uniform(0, 0.004))
            if process.poll() is not None:
                return
            process.send_signal(signal.SIGSTOP)
            time.sleep(rng.uniform(0, 0.004))
            process.send_signal(signal.SIGCONT)

    return disturb


def test_the_same_input_gives_the_same_bytes_however_it_is_scheduled():
    path, recording = original()
    kind = recording.sample_type()
    folder_form = perf.split_folder(
        recording, out("folder-same"),
        lambda r: perf.field(r, kind, perf.CPU, "I") % 2 if perf.field(r, kind, perf.TIME) else None, 2)
    for source in (path, folder_form):
        first = converted_bytes(source)
        assert converted_bytes(source) == first, "second run"
        for cpu in sorted(os.sched_getaffinity(0))[:2]:
            assert converted_bytes(source, prefix=["taskset", "-c", str(cpu)]) == first, "on CPU %d" % cpu
        assert converted_bytes(source, prefix=["nice", "-n", "19"]) == first, "nice 19"
        for seed in range(6):
            assert converted_bytes(source, disturb=stop_and_continue(seed)) == first, "stopped, seed %d" % seed


def test_a_slow_pipe_gives_the_same_profile_as_a_fast_one():
    content = perf.pack_pipe(original()[1])
    process = subprocess.Popen([binary, "convert", "-q", "-i", "-", "-o", out("slow.pb.gz")], stdin=subprocess.PIPE)
    rng, at = random.Random(5), 0
    while at < len(content):
        n = rng.choice([1, 3, 8, 100, 5000, 30000])
        process.stdin.write(content[at:at + n])
        process.stdin.flush()
        at += n
    process.stdin.close()
    assert process.wait(timeout=60) == 0
    profile_text.assert_same(profile_text.lines(out("slow.pb.gz")), original_text(), "in small pieces")


main(globals())
