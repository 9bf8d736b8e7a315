# SPDX-License-Identifier: Apache-2.0
"""perf.data files taken apart and written again in other forms: file and pipe, zstd-packed, folder. Shares no code with
what it judges. Only little-endian input is read; support_swap writes the other byte order."""
import ctypes
import ctypes.util
import os
import struct

MAGIC = b"PERFILE2"
MMAP, LOST, COMM, EXIT, THROTTLE, UNTHROTTLE, FORK, READ, SAMPLE, MMAP2 = range(1, 11)
USER_START = 64
HEADER_ATTR, EVENT_TYPE, TRACING_DATA, BUILD_ID, FINISHED_ROUND, ID_INDEX, AUXTRACE_INFO, AUXTRACE = range(64, 72)
AUXTRACE_ERROR, THREAD_MAP, CPU_MAP, STAT_CONFIG, STAT, STAT_ROUND, EVENT_UPDATE, TIME_CONV = range(72, 80)
HEADER_FEATURE, COMPRESSED, FINISHED_INIT, COMPRESSED2 = range(80, 84)
FEATURE_BUILD_ID, FEATURE_EVENT_DESC, FEATURE_DIR_FORMAT, FEATURE_COMPRESSED = 2, 12, 24, 27

IP, TID, TIME, ADDR, READ_FIELD, CALLCHAIN, ID, CPU, PERIOD, STREAM_ID, RAW, BRANCH_STACK, REGS_USER, STACK_USER = (
    1 << bit for bit in range(14))
IDENTIFIER = 1 << 16


class Record:
    """payload: what follows the record and is not in its size (AUXTRACE, TRACING_DATA)."""

    def __init__(self, kind, misc, body, payload=b""):
        self.kind, self.misc, self.body, self.payload = kind, misc, body, payload

    def bytes(self, order="<"):
        return struct.pack(order + "IHH", self.kind, self.misc, 8 + len(self.body)) + self.body + self.payload


def cut_records(data, order="<"):
    """The records of a data section or stream."""
    found, at = [], 0
    while at < len(data):
        kind, misc, size = struct.unpack_from(order + "IHH", data, at)
        assert 8 <= size <= len(data) - at, "record at %d" % at
        body, payload = data[at + 8:at + size], b""
        at += size
        if kind in (AUXTRACE, TRACING_DATA):
            n = struct.unpack_from(order + ("Q" if kind == AUXTRACE else "I"), body, 0)[0]
            n = n if kind == AUXTRACE else (n + 7) & ~7
            payload = data[at:at + n]
            at += n
        found.append(Record(kind, misc, body, payload))
    return found


class Recording:
    """attrs: [(attr bytes, [ids])]; features: {number: bytes}; records: without what pipe mode says of attrs and
    features."""

    def __init__(self, attrs, features, records):
        self.attrs, self.features, self.records = attrs, features, records

    def with_records(self, records):
        return Recording(self.attrs, dict(self.features), records)

    def with_features(self, features):
        return Recording(self.attrs, features, self.records)

    def sample_type(self, event=0):
        return struct.unpack_from("<Q", self.attrs[event][0], 24)[0]


def read(path):
    """A file or stream of the host's byte order."""
    with open(path, "rb") as source:
        data = source.read()
    assert data[:8] == MAGIC
    if struct.unpack_from("<Q", data, 8)[0] == 16:
        return _read_pipe(data)
    entry_size, attrs_at, attrs_size, data_at, data_size = struct.unpack_from("<5Q", data, 16)
    attrs = []
    for at in range(attrs_at, attrs_at + attrs_size, entry_size):
        ids_at, ids_size = struct.unpack_from("<QQ", data, at + entry_size - 16)
        attrs.append((data[at:at + entry_size - 16], list(struct.unpack_from("<%dQ" % (ids_size // 8), data, ids_at))))
    features, table = {}, data_at + data_size
    for number in range(256):
        if data[72 + number // 8] >> number % 8 & 1:
            at, size = struct.unpack_from("<QQ", data, table)
            features[number] = data[at:at + size]
            table += 16
    return Recording(attrs, features, cut_records(data[data_at:data_at + data_size]))


def _read_pipe(data):
    attrs, features, records = [], {}, []
    for record in cut_records(data[16:]):
        if record.kind == HEADER_ATTR:
            size = struct.unpack_from("<I", record.body, 4)[0]
            ids = record.body[size:]
            attrs.append((record.body[:size], list(struct.unpack("<%dQ" % (len(ids) // 8), ids))))
        elif record.kind == HEADER_FEATURE:
            number = struct.unpack_from("<Q", record.body, 0)[0]
            if len(record.body) > 8:
                features[number] = record.body[8:]
        else:
            records.append(record)
    return Recording(attrs, features, records)


def pack(recording, order="<"):
    """File form; the parts are already of that byte order."""
    ids = b"".join(struct.pack(order + "%dQ" % len(ids), *ids) for _, ids in recording.attrs)
    attrs_at = 104 + len(ids)
    entry_size = len(recording.attrs[0][0]) + 16
    attrs, at = b"", 104
    for attr, own in recording.attrs:
        attrs += attr + struct.pack(order + "QQ", at, 8 * len(own))
        at += 8 * len(own)
    data_at = attrs_at + len(attrs)
    data = b"".join(record.bytes(order) for record in recording.records)
    table_at = data_at + len(data)
    content_at = table_at + 16 * len(recording.features)
    table, content = b"", b""
    for number in sorted(recording.features):
        table += struct.pack(order + "QQ", content_at + len(content), len(recording.features[number]))
        content += recording.features[number]
    bits = sum(1 << number for number in recording.features)
    words = [bits >> 64 * i & (1 << 64) - 1 for i in range(4)]
    header = struct.pack(order + "8s12Q", MAGIC if order == "<" else MAGIC[::-1], 104, entry_size, attrs_at, len(attrs),
                         data_at, len(data), 0, 0, *words)
    return header + ids + attrs + data + table + content


def build_id_records(recording, order="<"):
    """The BUILD_ID feature's entries, which are records already."""
    return cut_records(recording.features.get(FEATURE_BUILD_ID, b""), order)


def pack_pipe(recording, order="<"):
    """Pipe form: attrs, features and build-ids as records before the rest."""
    head = [Record(HEADER_ATTR, 0, attr + struct.pack(order + "%dQ" % len(ids), *ids))
            for attr, ids in recording.attrs]
    for number in sorted(recording.features):
        if number != FEATURE_BUILD_ID:
            body = struct.pack(order + "Q", number) + recording.features[number]
            head.append(Record(HEADER_FEATURE, 0, body))
    head += [Record(BUILD_ID, record.misc, record.body) for record in build_id_records(recording, order)]
    magic = MAGIC if order == "<" else MAGIC[::-1]
    return magic + struct.pack(order + "Q", 16) + b"".join(r.bytes(order) for r in head + recording.records)


# --- zstd ---

class _Buffer(ctypes.Structure):
    _fields_ = [("at", ctypes.c_void_p), ("size", ctypes.c_size_t), ("pos", ctypes.c_size_t)]


class Zstd:
    """One compression stream; each chunk is flushed, as perf does."""

    FLUSH = 1

    def __init__(self):
        self.lib = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
        self.lib.ZSTD_createCCtx.restype = ctypes.c_void_p
        self.lib.ZSTD_compressStream2.restype = ctypes.c_size_t
        self.lib.ZSTD_compressStream2.argtypes = [ctypes.c_void_p, ctypes.POINTER(_Buffer), ctypes.POINTER(_Buffer),
                                                  ctypes.c_int]
        self.context = self.lib.ZSTD_createCCtx()

    def chunk(self, data):
        out = ctypes.create_string_buffer(len(data) + len(data) // 8 + 1024)
        source = ctypes.create_string_buffer(data, len(data))
        output = _Buffer(ctypes.addressof(out), len(out), 0)
        given = _Buffer(ctypes.addressof(source), len(data), 0)
        left = self.lib.ZSTD_compressStream2(self.context, output, given, self.FLUSH)
        assert left == 0 and given.pos == len(data), left
        return out.raw[:output.pos]


def has_zstd():
    try:
        Zstd()
        return True
    except OSError:
        return False


def compressed_record(kind, content):
    """type 81 is as long as its content; type 83 says its size and is padded to 8 bytes."""
    if kind == COMPRESSED:
        return Record(kind, 0, content)
    return Record(kind, 0, struct.pack("<Q", len(content)) + content + b"\0" * (-len(content) % 8))


def compress(recording, kind, next_size):
    """Kernel records go into zstd chunks of next_size() input bytes each, wherever that cuts them; perf's own stand
    between."""
    zstd, records, run = Zstd(), [], b""

    def flush():
        nonlocal run
        while run:
            n = next_size()
            records.append(compressed_record(kind, zstd.chunk(run[:n])))
            run = run[n:]

    for record in recording.records:
        if record.kind < USER_START:
            run += record.bytes()
        else:
            flush()
            records.append(record)
    flush()
    packed = recording.with_records(records)
    packed.features[FEATURE_COMPRESSED] = struct.pack("<5I", 1, 1, 1, 4, 512 << 10)
    return packed


# --- fields of records, little-endian ---

def sample_field_at(sample_type, wanted):
    """Offset in a SAMPLE's body; None when the record lacks it."""
    at = 0
    for bit in (IDENTIFIER, IP, TID, TIME, ADDR, ID, STREAM_ID, CPU, PERIOD):
        if bit == wanted:
            return at if sample_type & bit else None
        if sample_type & bit:
            at += 8
    raise ValueError(wanted)


def trailer_field_at(sample_type, wanted):
    """Offset from the end of a record that is no SAMPLE (sample_id_all)."""
    at = 0
    for bit in (IDENTIFIER, CPU, STREAM_ID, ID, TIME, TID):
        if sample_type & bit:
            at += 8
        if bit == wanted:
            return at if sample_type & bit else None
    raise ValueError(wanted)


def field(record, sample_type, wanted, form="Q"):
    if record.kind == SAMPLE:
        at = sample_field_at(sample_type, wanted)
    else:
        at = len(record.body) - trailer_field_at(sample_type, wanted)
    return struct.unpack_from("<" + form, record.body, at)[0]


def split_folder(recording, folder, part_of, n_parts):
    """Writes the form of perf record --threads. part_of(record): 0 to n_parts - 1, or None for the main file."""
    os.mkdir(folder)
    main, parts = [], [[] for _ in range(n_parts)]
    for record in recording.records:
        part = None if record.kind >= USER_START else part_of(record)
        if record.kind != FINISHED_ROUND:
            (main if part is None else parts[part]).append(record)
    whole = recording.with_records(main)
    whole.features[FEATURE_DIR_FORMAT] = struct.pack("<Q", 1)
    with open(os.path.join(folder, "data"), "wb") as out:
        out.write(pack(whole))
    for i, records in enumerate(parts):
        with open(os.path.join(folder, "data.%d" % i), "wb") as out:
            out.write(b"".join(record.bytes() for record in records))
    return folder
