# SPDX-License-Identifier: Apache-2.0
"""Damaged, hostile and absurd input ends in a clear error or a partial result, in bounded time and memory."""
import gzip, random
from support import *
import support_limits as limits
import support_perf_data as perf
from support_pprof_maker import field as proto, varint
from support_recording import record

there = folder()
is_plain = not limits.is_sanitized(binary)
SEED = int(os.environ.get("PERFPIPE_SEED", "20240229"))
COMMANDS = {
    "convert": lambda path: ("convert", "-q", "--no-symbols", "-i", path, "-o", out("bad.pb.gz")),
    "inspect": lambda path: ("inspect", path, "--format", "json"),
    "report": lambda path: ("report", path, "--no-symbols", "--format", "csv"),
}
STDIN = {
    "convert": ("convert", "-q", "--no-symbols", "-i", "-", "-o", "-"),
    "report": ("report", "-", "--no-symbols"),
}


def out(name):
    return os.path.join(there, name)


class Trial:
    """Runs commands on inputs and gathers all faults, so that one run shows them."""

    def __init__(self):
        self.found, self.codes, self.peak = [], {}, 0

    def file(self, what, path, commands=("convert", "inspect", "report"), input_bytes=None):
        size = input_bytes if input_bytes is not None else os.path.getsize(path)
        outcomes = []
        for command in commands:
            outcomes.append(self._note("%s, %s" % (command, what), size, COMMANDS[command](path), None))
        return outcomes

    def stdin(self, what, path, commands=("convert",)):
        for command in commands:
            self._note("%s -, %s" % (command, what), os.path.getsize(path), STDIN[command], path)

    def bytes(self, what, content, **how):
        return self.file(what, write(out("bad.data"), content), **how)

    def _note(self, what, size, words, stdin_path):
        outcome = limits.measure(binary, *words, is_limited=is_plain, stdin_path=stdin_path)
        self.codes[outcome.code] = self.codes.get(outcome.code, 0) + 1
        self.peak = max(self.peak, outcome.peak_bytes)
        self.found += ["%s: %s" % (what, fault) for fault in outcome.faults(size, is_plain)]
        return outcome

    def finish(self):
        print("        exit codes %s, peak %.1f MiB%s" % (self.codes, self.peak / limits.MIB,
                                                          "" if is_plain else " (sanitizer: not judged)"))
        assert not self.found, "%d faults:\n%s" % (len(self.found), "\n".join(self.found[:10]))


def recording():
    """A small recording of the real thing when the machine allows it, else a made one."""
    if "real" not in _cache:
        _cache["real"] = write(out("small.data"), perf_data(40))
        try:
            record("-F", "499", "-g", "-o", out("real.data"), command=burn_command(20000))
            _cache["real"] = write(out("small.data"), perf.pack(smaller(perf.read(out("real.data")))))
        except Skip as why:
            print("        made input only: %s" % why)
    return perf.read(_cache["real"])


def smaller(whole):
    """Enough of each kind of record, and no features but the small ones."""
    counts, records = {}, []
    for record in whole.records:
        counts[record.kind] = counts.get(record.kind, 0) + 1
        if counts[record.kind] <= 12 and len(record.body) < 2000:
            records.append(record)
    features = {n: data for n, data in whole.features.items() if len(data) < 1000}
    return perf.Recording(whole.attrs, features, records)


_cache = {}


def test_empty_text_and_other_formats():
    trial = Trial()
    rng = random.Random(SEED)
    inputs = {
        "empty": b"", "one byte": b"P", "text": b"hello, this is text\n" * 50, "zeros": bytes(5000),
        "noise": rng.randbytes(5000), "magic only": b"PERFILE2", "other magic only": b"2ELIFREP",
        "pipe head": b"PERFILE2" + struct.pack("<Q", 16), "version 1": b"PERFFILE" + bytes(200),
        "gzip of nothing": gzip.compress(b""), "gzip of text": gzip.compress(b"text" * 100),
        "gzip of noise": gzip.compress(rng.randbytes(3000)), "cut gzip": gzip.compress(rng.randbytes(3000))[:500],
        "long line": b"x" * 100000, "json": b"{}", "newlines": b"\n" * 4096,
    }
    for what, content in inputs.items():
        for outcome in trial.bytes(what, content):
            # A profile of nothing (protobuf knows no magic) and a head without records are all that may pass.
            if outcome.code == 0 and what not in ("gzip of nothing", "pipe head"):
                trial.found.append("%s: accepted" % what)
        trial.stdin(what, out("bad.data"), commands=("convert", "report"))
    trial.finish()


def test_paths_that_are_no_files():
    for path in (there, "/dev/null", out("missing"), "/proc/self/mem"):
        for command in COMMANDS:
            outcome = limits.measure(binary, *COMMANDS[command](path), is_limited=is_plain)
            # 74: the file is there, reading it fails.
            assert outcome.code in (65, 66, 74) and not outcome.faults(0, is_plain), (path, command, outcome.code,
                                                                                  outcome.stderr)


def cut_everywhere(content, what, stride):
    trial = Trial()
    commands = list(COMMANDS)
    for i, size in enumerate(range(0, len(content), stride)):
        trial.bytes("%s cut at %d" % (what, size), content[:size], commands=commands[i % 3:i % 3 + 1])
    trial.stdin("cut " + what, write(out("bad.data"), content[:len(content) * 2 // 3]))
    trial.finish()


def test_a_file_cut_everywhere():
    content = perf.pack(recording())
    cut_everywhere(content, "file", stride_of(len(content)))


def test_a_pipe_recording_cut_everywhere():
    content = perf.pack_pipe(recording())
    cut_everywhere(content, "pipe", stride_of(len(content)))


def test_a_compressed_recording_cut_everywhere():
    if not perf.has_zstd():
        raise Skip("no libzstd to pack with")
    content = perf.pack(perf.compress(recording(), perf.COMPRESSED2, lambda: 900))
    cut_everywhere(content, "zstd", stride_of(len(content)))


def stride_of(size):
    """97, or the multiple of it that needs at most 200 runs."""
    return 97 * max(1, -(-size // (97 * 200)))


def test_random_flips():
    rng = random.Random(SEED)
    trial = Trial()
    small = recording()
    sources = [perf.pack(small), perf.pack_pipe(small)]
    if perf.has_zstd():
        sources.append(perf.pack_pipe(perf.compress(small, perf.COMPRESSED, lambda: 700)))
    words = [0, 1, 7, 0xff, 0xffff, 0x7fffffff, 0xffffffff, 1 << 63, (1 << 64) - 1, 1 << 32, 0x10000]
    for n in range(400):
        content = bytearray(rng.choice(sources))
        for _ in range(rng.choice([1, 1, 2, 5, 30])):
            # Half of the damage goes where attrs, ids and the first records stand.
            at = rng.randrange(len(content) if rng.random() < 0.5 else min(len(content), 700))
            how = rng.random()
            if how < 0.5:
                content[at] ^= 1 << rng.randrange(8)
            elif how < 0.6:
                del content[at:at + rng.randrange(1, 64)]
            elif how < 0.7:
                content[at:at] = rng.randbytes(rng.randrange(1, 64))
            else:
                size = rng.choice([2, 4, 8])
                content[at & ~7:(at & ~7) + size] = (rng.choice(words) & (1 << 8 * size) - 1).to_bytes(size, "little")
            if len(content) < 16:
                break
        trial.bytes("flips %d of seed %d" % (n, SEED), bytes(content), commands=[list(COMMANDS)[n % 3]])
    trial.finish()


def test_random_flips_with_symbols_from_this_host():
    rng = random.Random(SEED + 1)
    trial = Trial()
    base = perf.pack(recording())
    for n in range(60):
        content = bytearray(base)
        for _ in range(rng.choice([1, 3, 10])):
            content[rng.randrange(104, len(content))] ^= 1 << rng.randrange(8)
        path = write(out("bad.data"), bytes(content))
        words = ("convert", "-q", "--trust-paths", "-i", path, "-o", out("bad.pb.gz"))
        trial._note("symbols, flips %d" % n, len(content), words, None)
    trial.finish()


def test_absurd_header_sections():
    trial = Trial()
    content = perf.pack(recording())
    absurd = [0, 1, 7, 15, 16, 103, len(content), len(content) + 1, 1 << 31, (1 << 32) - 1, 1 << 62, (1 << 63) - 1,
              1 << 63, (1 << 64) - 8, (1 << 64) - 1]
    for at in range(8, 104, 8):
        for value in absurd:
            made = content[:at] + struct.pack("<Q", value) + content[at + 8:]
            trial.bytes("header u64 at %d is %#x" % (at, value), made, commands=[list(COMMANDS)[(at // 8 + value) % 3]])
    attrs_at, attrs_size = struct.unpack_from("<QQ", content, 24)
    for entry in range(2):
        for at in (attrs_at + 4, attrs_at + attrs_size - 16, attrs_at + attrs_size - 8, attrs_at + 24, attrs_at + 40):
            for value in absurd:
                form = "<I" if at == attrs_at + 4 else "<Q"
                packed = struct.pack(form, value & ((1 << 8 * struct.calcsize(form)) - 1))
                made = content[:at] + packed + content[at + len(packed):]
                trial.bytes("attr at %d is %#x" % (at, value), made, commands=[list(COMMANDS)[(at + entry) % 3]])
    trial.finish()


def test_absurd_feature_sections():
    trial = Trial()
    content = perf.pack(recording())
    data_at, data_size, n = *struct.unpack_from("<QQ", content, 40), len(recording().features)
    for i in range(n):
        for at, value in ((0, 1 << 63), (8, 1 << 63), (8, 0), (8, (1 << 64) - 1), (0, len(content) - 1), (8, 3)):
            place = data_at + data_size + 16 * i + at
            made = content[:place] + struct.pack("<Q", value) + content[place + 8:]
            trial.bytes("feature %d, %d is %#x" % (i, at, value), made, commands=[("convert", "inspect")[i % 2]])
    whole = recording()
    for number, data in whole.features.items():
        for value in (0xffffffff, 0x7fffffff, 3000000000, 0):
            features = dict(whole.features)
            features[number] = struct.pack("<I", value) + data[4:]
            changed = whole.with_features(features)
            trial.bytes("feature %d begins with %#x" % (number, value), perf.pack(changed), commands=["inspect"])
            trial.bytes("pipe feature %d begins with %#x" % (number, value), perf.pack_pipe(changed),
                        commands=["convert"])
    trial.finish()


def test_absurd_record_sizes_and_counts():
    trial = Trial()
    whole = recording()
    for pack in (perf.pack, perf.pack_pipe):
        for kind in sorted({r.kind for r in whole.records}) + [81, 83, 71, 66, 67, 64, 80, 200, 0xffffffff]:
            for size in (0, 1, 7, 8, 9, 12, 16, 24, 40, 65535):
                place = sample_words(whole) + 3
                stand_in = perf.Record(kind, 0, b"\xff" * 40)
                content = pack(whole.with_records(whole.records[:place] + [stand_in] + whole.records[place:]))
                at = content.rindex(stand_in.bytes()[:16])
                made = content[:at + 6] + struct.pack("<H", size) + content[at + 8:]
                trial.bytes("%s, record %d of size %d" % (pack.__name__, kind, size), made,
                            commands=[list(COMMANDS)[(kind + size) % 3]])
    trial.finish()


def sample_words(whole):
    return next(i for i, r in enumerate(whole.records) if r.kind == perf.SAMPLE)


def test_absurd_words_inside_samples():
    trial = Trial()
    whole = recording()
    index = sample_words(whole)
    body = whole.records[index].body
    for at in range(0, len(body) - 7, 8):
        for value in (0, (1 << 64) - 1, 1 << 63, 1 << 32, 0x1fff, 100):
            changed = perf.Record(perf.SAMPLE, 2, body[:at] + struct.pack("<Q", value) + body[at + 8:])
            made = whole.with_records(whole.records[:index] + [changed] + whole.records[index + 1:])
            trial.bytes("sample word %d is %#x" % (at, value), perf.pack(made), commands=["convert"])
        if at > 200:
            break
    trial.finish()


def test_names_without_end():
    trial = Trial()
    whole = recording()
    tail = b"\x41" * 8
    made = []
    for kind, fixed in ((perf.COMM, 8), (perf.MMAP, 32), (perf.MMAP2, 64), (17, 16), (19, 8), (18, 8), (67, 28),
                        (65, 8), (78, 16), (73, 16), (16, 16)):
        for n in (0, 1, 15, 4096, 60000):
            body = struct.pack("<II", 77, 77) + bytes(fixed - 8) + b"A" * (n - n % 8) + tail
            made.append(perf.Record(kind, 0, body))
    trial.bytes("names without end", perf.pack(whole.with_records(made + whole.records)))
    trial.bytes("names without end, pipe", perf.pack_pipe(whole.with_records(made + whole.records)))
    names = [perf.Record(perf.COMM, 0, struct.pack("<II", pid, pid) + b"\xff\xfe\x80" * 5 + b"\0" + bytes(32))
             for pid in range(50)]
    trial.bytes("names that are no UTF-8", perf.pack(whole.with_records(names + whole.records)))
    trial.finish()


def test_attr_ids_that_repeat_and_overlap():
    trial = Trial()
    whole = recording()
    attr, ids = whole.attrs[0]
    ids = ids or [1]
    for what, attrs in (("one id many times", [(attr, ids * 1000)]),
                        ("two events with the same ids", [(attr, ids), (attr, ids)]),
                        ("many events with the same ids", [(attr, ids)] * 3000),
                        ("ids of zero", [(attr, [0] * 100), (attr, [0])])):
        changed = perf.Recording(attrs, whole.features, whole.records)
        trial.bytes(what, perf.pack(changed))
        if len(attrs) * len(ids) < 1000 and len(attrs[0][1]) < 5000:
            trial.bytes(what + ", pipe", perf.pack_pipe(changed))
    content = bytearray(perf.pack(perf.Recording([(attr, ids), (attr, ids)], {}, whole.records)))
    entry, attrs_at = struct.unpack_from("<QQ", content, 16)
    # Each id section is the attr section itself, the attr section is the header, and so on in a circle.
    struct.pack_into("<QQ", content, attrs_at + entry - 16, attrs_at, 2 * entry)
    struct.pack_into("<QQ", content, attrs_at + 2 * entry - 16, attrs_at, 2 * entry)
    trial.bytes("id sections inside the attr section", bytes(content))
    struct.pack_into("<QQ", content, 24, 0, len(content) // entry * entry)
    trial.bytes("the whole file is attr section", bytes(content))
    struct.pack_into("<QQ", content, 40, 0, len(content))
    trial.bytes("the whole file is data section", bytes(content))
    updates = [perf.Record(78, 0, struct.pack("<QQ", 2, ids[0]) + b"name%04d" % i + bytes(8)) for i in range(5000)]
    trial.bytes("an event renamed 5000 times", perf.pack(whole.with_records(updates + whole.records)))
    again = [perf.Record(64, 0, attr + struct.pack("<Q", ids[0])) for _ in range(5000)]
    trial.bytes("an attr repeated 5000 times", perf.pack_pipe(whole.with_records(again + whole.records)))
    trial.finish()


def test_numbers_of_ids_that_nobody_has():
    trial = Trial()
    whole = recording()
    content = perf.pack(whole)
    attr = whole.attrs[0][0]
    for n in (1 << 32, (1 << 61) - 1, 1 << 20, 0xffffffff):
        index = perf.Record(69, 0, struct.pack("<Q", n) + bytes(64))
        trial.bytes("ID_INDEX of %d" % n, perf.pack(whole.with_records([index] + whole.records)))
        table = perf.Record(73, 0, struct.pack("<Q", n) + bytes(24))
        trial.bytes("THREAD_MAP of %d" % n, perf.pack(whole.with_records([table] + whole.records)))
    attrs_at = struct.unpack_from("<Q", content, 24)[0]
    padded = content + bytes(9 << 20)
    struct_at = attrs_at + len(attr)
    many = bytearray(padded)
    struct.pack_into("<QQ", many, struct_at, len(content), 9 << 20)
    trial.bytes("an id section of 9 MB", bytes(many), commands=["convert", "inspect"])
    trial.finish()


def test_a_million_tiny_records():
    trial = Trial()
    whole = recording()
    n = 1000000
    for what, record in (("records of a type without body", struct.pack("<IHH", 68, 0, 8)),
                         ("unknown records", struct.pack("<IHH", 200, 0, 8)),
                         ("samples too short", struct.pack("<IHH", 9, 0, 8)),
                         ("names too short", struct.pack("<IHH", 3, 0, 8)),
                         ("compressed records without content", struct.pack("<IHH", 81, 0, 8))):
        content = perf.pack_pipe(whole.with_records([]))
        with open(out("tiny.data"), "wb") as target:
            target.write(content)
            for _ in range(100):
                target.write(record * (n // 100))
        trial.file(what, out("tiny.data"), commands=["convert", "inspect"])
    types = b"".join(struct.pack("<IHH", kind, 0, 8) for kind in range(100, 60100))
    with open(out("tiny.data"), "wb") as target:
        target.write(perf.pack_pipe(whole.with_records([])) + types * 3)
    trial.file("60000 types that nobody knows", out("tiny.data"), commands=["convert", "inspect"])
    os.unlink(out("tiny.data"))
    trial.finish()


def made_records(path, make, n):
    """A pipe recording with records made one by one."""
    with open(path, "wb") as target:
        target.write(perf.pack_pipe(perf.read(write(out("head.data"), perf_data(1))).with_records([])))
        block = []
        for i in range(n):
            block.append(make(i))
            if len(block) == 5000:
                target.write(b"".join(block))
                block = []
        target.write(b"".join(block))
    return path


def test_hundred_thousands_of_processes_names_and_maps():
    trial = Trial()
    tail = struct.pack("<IIQ", 1, 1, 1)

    def comm(i):
        return perf.Record(3, 0, struct.pack("<II", i, i) + b"name%011d\0" % i + tail).bytes()

    def fork(i):
        return perf.Record(7, 0, struct.pack("<IIIIQ", i + 1, i, i + 1, i, i) + tail).bytes()

    def mmap(i):
        return perf.Record(1, 0, struct.pack("<IIQQQ", 7, 7, i * 8192, 4096, 0) + b"/x/%011d\0" % i + tail).bytes()

    def sample(i):
        return perf.Record(9, 2, struct.pack("<QIIQQ", i * 16, i, i, i, 1)).bytes()

    for what, make, n in (("processes", comm, 150000), ("forks in a chain", fork, 150000), ("maps", mmap, 150000),
                          ("samples of as many processes", sample, 100000)):
        trial.file(what, made_records(out("many.data"), make, n), commands=["convert", "inspect"])
    os.unlink(out("many.data"))
    trial.finish()


def bomb(n_bytes, filler):
    """A compressed record whose content unpacks to n_bytes."""
    zstd, parts = perf.Zstd(), []
    while n_bytes > 0:
        n = min(n_bytes, 4 << 20)
        parts.append(zstd.chunk(filler * (n // len(filler))))
        n_bytes -= n
    return parts


def test_zstd_bombs():
    if not perf.has_zstd():
        raise Skip("no libzstd to pack with")
    trial = Trial()
    whole = recording()
    for what, filler, total in (("zeros", bytes(4096), 1 << 30), ("rounds", struct.pack("<IHH", 68, 0, 8) * 512, 1 << 28),
                                ("nothing known", struct.pack("<IHH", 200, 0, 8) * 512, 1 << 28)):
        parts = bomb(total, filler)
        records = [perf.compressed_record(perf.COMPRESSED2, part) for part in parts]
        packed = whole.with_records(records + whole.records)
        packed.features[perf.FEATURE_COMPRESSED] = struct.pack("<5I", 1, 1, 1, 4, 512 << 10)
        path = write(out("bomb.data"), perf.pack_pipe(packed))
        size = os.path.getsize(path)
        for outcome in trial.file("bomb of " + what, path, commands=["convert", "inspect"], input_bytes=size):
            assert outcome.stderr.strip(), "a bomb of %s passes without a word" % what
    trial.finish()


# --- pprof ---

def pprof_profile():
    path = out("good.pb")
    run("convert", "-i", write(out("good.data"), perf.pack(recording())), "-o", path, "--no-symbols")
    with open(path, "rb") as source:
        return source.read()


def test_damaged_pprof():
    trial = Trial()
    rng = random.Random(SEED + 2)
    content = pprof_profile()
    packed = gzip.compress(content)
    for size in range(0, len(content), max(97, len(content) // 60)):
        trial.bytes("pprof cut at %d" % size, content[:size], commands=["report"])
    for size in range(0, len(packed), max(97, len(packed) // 30)):
        trial.bytes("gzip cut at %d" % size, packed[:size], commands=["report"])
    for n in range(120):
        changed = bytearray(content if n % 3 else packed)
        for _ in range(rng.choice([1, 2, 10, 50])):
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
        trial.bytes("pprof flips %d" % n, bytes(changed), commands=["report"])
    trial.finish()


def test_absurd_pprof():
    trial = Trial()
    kind = proto(1, proto(1, 1) + proto(2, 2))
    strings = b"".join(proto(6, text) for text in (b"", b"cpu", b"nanoseconds"))
    location = proto(4, proto(1, 1) + proto(4, proto(1, 1)))
    function = proto(5, proto(1, 1) + proto(2, 1))
    good = kind + strings + location + function
    for what, content in (
            ("no strings", kind), ("string out of range", proto(1, proto(1, 99)) + strings),
            ("ids that nobody has", good + proto(2, proto(1, (1 << 64) - 1) + proto(2, 5))),
            ("id of zero", good + proto(2, proto(1, 0) + proto(2, 5))),
            ("a length of 2^63", good + varint(2 << 3 | 2) + varint(1 << 63) + b"x"),
            ("a varint without end", good + varint(9 << 3) + b"\xff" * 40),
            ("values of 2^63", good + proto(2, proto(1, 1) + proto(2, 1 << 63)) * 3),
            ("overflowing sums", good + proto(2, proto(1, 1) + proto(2, (1 << 63) - 1)) * 3),
            ("too many values", good + proto(2, proto(1, 1) + proto(2, varint(1) * 1000))),
            ("no values", good + proto(2, proto(1, 1))),
            ("a stack of 100000", good + proto(2, proto(1, varint(1) * 100000) + proto(2, 1))),
            ("100000 columns", kind * 100000 + strings),
            ("100000 lines in a location", strings + kind + proto(4, proto(1, 1) + proto(4, proto(1, 1)) * 100000)),
            ("groups", good + varint(1 << 3 | 3) * 100000), ("wire type 7", good + varint(1 << 3 | 7)),
            ("field zero", good + varint(0) + varint(1))):
        trial.bytes(what, content, commands=["report"])
        trial.bytes(what + ", gzip", gzip.compress(content), commands=["report"],
                    input_bytes=len(content))
    trial.finish()


def test_gzip_bombs():
    trial = Trial()
    with gzip.open(out("bomb.pb.gz"), "wb", compresslevel=6) as target:
        for _ in range(600):
            target.write(bytes(1 << 20))
    # Unpacked bytes count as input, as far as the reader's ratio lets them come.
    size = min(600 << 20, (16 << 20) + 256 * os.path.getsize(out("bomb.pb.gz")))
    for outcome in trial.file("600 MB of zeros in gzip", out("bomb.pb.gz"), commands=["report"], input_bytes=size // 4):
        assert outcome.code == 65, (outcome.code, outcome.stderr)
    trial.file("the same for convert", out("bomb.pb.gz"), commands=["convert", "inspect"])
    trial.finish()


main(globals())
