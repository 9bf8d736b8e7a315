# SPDX-License-Identifier: Apache-2.0
"""Writes a little-endian recording as a big-endian machine would have written it: header, attrs with the bit-field
rule, ids, records field by field, and the feature sections that are known here (others are left out)."""
import struct

import support_perf_data as perf

ATTR_FIELDS = "IIQQQQBIIQQQQIiQIHHIIQQ"  # B: the bit field of 8 bytes
# Of the attr's bit field, from the first bit: those that take more than one bit.
WIDE_BITS = {15: 2}
TEXT_FEATURES = {3, 4, 5, 6, 8, 9}  # HOSTNAME, OSRELEASE, VERSION, ARCH, CPUDESC, CPUID: one string each
TRAILER = (perf.TID, perf.TIME, perf.ID, perf.STREAM_ID, perf.CPU, perf.IDENTIFIER)


class Walker:
    """Reads little-endian fields one after another and writes each big-endian."""

    def __init__(self, data):
        self.data, self.at, self.out = data, 0, bytearray()

    def _number(self, form, size):
        value = struct.unpack_from("<" + form, self.data, self.at)[0]
        self.out += struct.pack(">" + form, value)
        self.at += size
        return value

    def u16(self):
        return self._number("H", 2)

    def u32(self):
        return self._number("I", 4)

    def u64(self):
        return self._number("Q", 8)

    def u32s(self, n):
        return [self.u32() for _ in range(n)]

    def u64s(self, n):
        return [self.u64() for _ in range(n)]

    def bytes(self, n):
        self.out += self.data[self.at:self.at + n]
        self.at += n

    def text(self):
        """A string with its size before it, as features have them."""
        self.bytes(self.u32())

    def left(self):
        return len(self.data) - self.at

    def rest(self):
        self.bytes(self.left())
        return bytes(self.out)


def swap_bit_field(data):
    """Big-endian compilers count bits from the other end of the 8 bytes, but a field of several bits keeps its value."""
    bits = struct.unpack("<Q", data)[0]
    swapped, at = 0, 0
    while at < 64:
        width = WIDE_BITS.get(at, 1)
        swapped |= (bits >> at & (1 << width) - 1) << 64 - at - width
        at += width
    return struct.pack(">Q", swapped)


def swap_attr(data):
    walker = Walker(data)
    for form in ATTR_FIELDS:
        if not walker.left():
            break
        if form == "B":
            walker.out += swap_bit_field(data[walker.at:walker.at + 8])
            walker.at += 8
        else:
            walker._number(form, struct.calcsize("<" + form))
    return walker.rest()


class Layout:
    """What the fields of samples and trailers depend on."""

    def __init__(self, attr):
        self.sample_type, self.read_format = struct.unpack_from("<QQ", attr, 24)
        self.has_trailer = struct.unpack_from("<Q", attr, 40)[0] >> 18 & 1


def _swap_read(walker, read_format):
    extra = bin(read_format & 3).count("1")  # enabled, running
    if read_format & 8:
        n = walker.u64()
        walker.u64s(extra + n * (1 + bin(read_format & 0x14).count("1")))
    else:
        walker.u64s(1 + extra + bin(read_format & 0x14).count("1"))


def _swap_sample(walker, layout):
    has = lambda bit: layout.sample_type & bit
    for bit in (perf.IDENTIFIER, perf.IP):
        if has(bit):
            walker.u64()
    if has(perf.TID):
        walker.u32s(2)
    for bit in (perf.TIME, perf.ADDR, perf.ID, perf.STREAM_ID):
        if has(bit):
            walker.u64()
    if has(perf.CPU):
        walker.u32s(2)
    if has(perf.PERIOD):
        walker.u64()
    if has(perf.READ_FIELD):
        _swap_read(walker, layout.read_format)
    if has(perf.CALLCHAIN):
        walker.u64s(walker.u64())
    if has(perf.RAW):
        walker.bytes(walker.u32())
    assert layout.sample_type >> 11 & ~(1 << 5) == 0, "a sample field that is not swapped here"
    assert walker.left() == 0, "%d bytes left in a sample" % walker.left()


def _swap_cpu_map(walker):
    kind = walker.u16()
    if kind == 0:
        for _ in range(walker.u16()):
            walker.u16()
    elif kind == 1:
        n, size = walker.u16(), walker.u16()
        walker.bytes(-walker.at % size)
        for _ in range(n):
            walker.u64() if size == 8 else walker.u32()
    else:
        walker.bytes(2)
        walker.u16(), walker.u16()


def _swap_body(walker, record):
    kind = record.kind
    if kind in (perf.MMAP, perf.MMAP2):
        walker.u32s(2), walker.u64s(3)
        if kind == perf.MMAP2:
            if record.misc & 1 << 14:
                walker.bytes(24)
            else:
                walker.u32s(2), walker.u64s(2)
            walker.u32s(2)
    elif kind == perf.COMM:
        walker.u32s(2)
    elif kind in (perf.EXIT, perf.FORK):
        walker.u32s(4), walker.u64()
    elif kind in (perf.LOST, perf.THROTTLE, perf.UNTHROTTLE, 13, 69, 79):
        walker.u64s(walker.left() // 8)
    elif kind in (14, perf.FINISHED_ROUND, perf.FINISHED_INIT):
        pass
    elif kind == 17:
        walker.u64(), walker.u32(), walker.u16(), walker.u16()
    elif kind == 18:
        walker.u16(), walker.u16(), walker.u32()
    elif kind == 19:
        walker.u64()
    elif kind == perf.BUILD_ID:
        walker.u32()
    elif kind == perf.THREAD_MAP:
        for _ in range(walker.u64()):
            walker.u64(), walker.bytes(16)
    elif kind == perf.CPU_MAP:
        _swap_cpu_map(walker)
    elif kind == perf.EVENT_UPDATE:
        update = walker.u64()
        walker.u64()
        if update == 1:
            walker.u64()
        elif update == 3:
            _swap_cpu_map(walker)
    else:
        raise ValueError("record type %d is not swapped here" % kind)


def swap_record(record, layout):
    if record.kind == perf.SAMPLE:
        walker = Walker(record.body)
        _swap_sample(walker, layout)
        return perf.Record(record.kind, record.misc, bytes(walker.out))
    trailer = 0
    if layout.has_trailer and record.kind < perf.USER_START:
        trailer = 8 * sum(1 for bit in TRAILER if layout.sample_type & bit)
    walker = Walker(record.body[:len(record.body) - trailer])
    _swap_body(walker, record)
    swapped = walker.rest()
    walker = Walker(record.body[len(record.body) - trailer:])
    for bit in TRAILER:
        if trailer and layout.sample_type & bit:
            walker.u32s(2) if bit in (perf.TID, perf.CPU) else walker.u64()
    return perf.Record(record.kind, record.misc, swapped + walker.rest(), record.payload)


def _swap_event_desc(walker):
    n, attr_size = walker.u32s(2)
    for _ in range(n):
        walker.out += swap_attr(walker.data[walker.at:walker.at + attr_size])
        walker.at += attr_size
        n_ids = walker.u32()
        walker.text()
        walker.u64s(n_ids)


def swap_feature(number, data):
    """None when it is not known here."""
    walker = Walker(data)
    if number in TEXT_FEATURES:
        walker.text()
    elif number == 7:
        walker.u32s(2)
    elif number in (10, 21, 23, 24):
        walker.u64s(len(data) // 8)
    elif number == 11:
        for _ in range(walker.u32()):
            walker.text()
    elif number == perf.FEATURE_EVENT_DESC:
        _swap_event_desc(walker)
    elif number == 16:
        for _ in range(walker.u32()):
            walker.u32(), walker.text()
    elif number == 17:
        for _ in range(walker.u32()):
            walker.text(), walker.u32s(2)
    elif number == 27:
        walker.u32s(5)
    elif number == 29:
        walker.u32s(2), walker.u64s(2)
    elif number == perf.FEATURE_BUILD_ID:
        for record in perf.cut_records(data):
            body = Walker(record.body)
            body.u32()
            walker.out += perf.Record(record.kind, record.misc, body.rest()).bytes(">")
        return bytes(walker.out)
    else:
        return None
    return walker.rest()


def swap(recording):
    layout = Layout(recording.attrs[0][0])
    for attr, _ in recording.attrs[1:]:
        other = Layout(attr)
        assert (other.sample_type, other.read_format) == (layout.sample_type, layout.read_format)
    features = {n: swap_feature(n, data) for n, data in recording.features.items()}
    return perf.Recording([(swap_attr(attr), ids) for attr, ids in recording.attrs],
                          {n: data for n, data in features.items() if data is not None},
                          [swap_record(record, layout) for record in recording.records])
