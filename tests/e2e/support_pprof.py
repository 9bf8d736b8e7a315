# SPDX-License-Identifier: Apache-2.0
"""A small reader of pprof files that shares no code with what it judges, and the rules every reader relies on."""
import gzip

TOP = 1 << 63


class Malformed(Exception):
    pass


def _varint(data, at):
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise Malformed("varint at %d" % at)
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (2 * TOP - 1), at
        shift += 7


def fields(data):
    """(number, value) of each field; value is an int or bytes. Only the wire types that profile.proto needs."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        if number == 0:
            raise Malformed("field number 0")
        if wire == 0:
            value, at = _varint(data, at)
        elif wire == 2:
            size, at = _varint(data, at)
            if size > len(data) - at:
                raise Malformed("field %d is cut" % number)
            value, at = data[at:at + size], at + size
        else:
            raise Malformed("field %d has wire type %d" % (number, wire))
        yield number, value


def message(data, repeated=()):
    """{number: last value}, lists for repeated ones."""
    out = {number: [] for number in repeated}
    for number, value in fields(data):
        if number in repeated:
            out[number].append(value)
        else:
            out[number] = value
    return out


def numbers(values):
    """A repeated number, packed or not."""
    out = []
    for value in values:
        if isinstance(value, int):
            out.append(value)
            continue
        at = 0
        while at < len(value):
            number, at = _varint(value, at)
            out.append(number)
    return out


def _signed(value):
    return value - 2 * TOP if value >= TOP else value


class Pprof:
    """types: (type, unit) of the columns; samples: (location ids, values, labels); the rest by id. source: a path or
    the bytes."""

    def __init__(self, source):
        data = source if isinstance(source, bytes) else open(source, "rb").read()
        self.is_gzip = data[:2] == b"\x1f\x8b"
        if self.is_gzip:
            data = gzip.decompress(data)
        top = message(data, repeated=(1, 2, 3, 4, 5, 6, 9, 13))
        self.strings = [text.decode("utf-8") for text in top[6]]
        self.n_times = len(top[9])
        self.time_nanos = _signed(top[9][-1]) if top[9] else 0
        self.duration_nanos = _signed(top.get(10, 0))
        self.comments = [self.text(i) for i in numbers(top[13])]
        self.period = _signed(top.get(12, 0))
        self.default_type = self.text(top.get(14, 0))
        self.types = [self._value_type(raw) for raw in top[1]]
        self.samples = [self._sample(raw) for raw in top[2]]
        self.mappings = [message(raw) for raw in top[3]]
        self.locations = [message(raw, repeated=(4,)) for raw in top[4]]
        self.functions = [message(raw) for raw in top[5]]

    def text(self, index):
        if index >= len(self.strings):
            raise Malformed("string %d of %d" % (index, len(self.strings)))
        return self.strings[index]

    def _value_type(self, raw):
        parts = message(raw)
        return self.text(parts.get(1, 0)), self.text(parts.get(2, 0))

    def _label(self, raw):
        parts = message(raw)
        if parts.get(2) and parts.get(3):
            raise Malformed("a label with text and number")
        return self.text(parts.get(1, 0)), self.text(parts[2]) if parts.get(2) else _signed(parts.get(3, 0))

    def _sample(self, raw):
        parts = message(raw, repeated=(1, 2, 3))
        labels = [self._label(label) for label in parts[3]]
        if len(dict(labels)) != len(labels):
            raise Malformed("a label twice in one sample")
        return numbers(parts[1]), [_signed(v) for v in numbers(parts[2])], dict(labels)

    def totals(self):
        """[(type, unit, sum)] by column."""
        sums = [0] * len(self.types)
        for _, values, _ in self.samples:
            for i, value in enumerate(values):
                sums[i] += value
        return [(*self.types[i], sums[i]) for i in range(len(sums))]

    def broken_rules(self):
        """What go tool pprof, Parca or Pyroscope would trip over, as texts."""
        broken = []
        if not self.strings or self.strings[0]:
            broken.append("string 0 is not empty")
        if len(set(self.strings)) != len(self.strings):
            broken.append("a string stands twice in the table")
        if self.n_times > 1:
            broken.append("time_nanos stands twice")
        if not self.types:
            broken.append("no sample type")
        if self.default_type and self.default_type not in [t for t, _ in self.types]:
            broken.append("default_sample_type names no column: %s" % self.default_type)
        ids = {}
        for kind, items in (("mapping", self.mappings), ("location", self.locations), ("function", self.functions)):
            ids[kind] = [item.get(1, 0) for item in items]
            if 0 in ids[kind] or len(set(ids[kind])) != len(ids[kind]):
                broken.append("%s ids are 0 or not unique" % kind)
        broken += self._broken_locations(set(ids["mapping"]), set(ids["function"]))
        broken += self._broken_samples(set(ids["location"]))
        return broken

    def _broken_locations(self, mappings, functions):
        broken = []
        by_id = {m.get(1, 0): m for m in self.mappings}
        for mapping in self.mappings:
            for number in (5, 6):
                self.text(mapping.get(number, 0))
            if mapping.get(2, 0) > mapping.get(3, 0) and mapping.get(3, 0):
                broken.append("mapping %d ends before it starts" % mapping.get(1, 0))
        for location in self.locations:
            place = "location %d" % location.get(1, 0)
            if location.get(2, 0) not in mappings | {0}:
                broken.append("%s: no such mapping" % place)
            mapping = by_id.get(location.get(2, 0))
            if mapping and mapping.get(3, 0) and not mapping.get(2, 0) <= location.get(3, 0) < mapping.get(3, 0):
                broken.append("%s: address %#x outside of its mapping" % (place, location.get(3, 0)))
            for line in location[4]:
                if message(line).get(1, 0) not in functions:
                    broken.append("%s: no such function" % place)
            if mapping and mapping.get(7) and not location[4]:
                broken.append("%s: no name in a mapping that has functions" % place)
        for function in self.functions:
            for number in (2, 3, 4):
                self.text(function.get(number, 0))
        return broken

    def _broken_samples(self, locations):
        broken = []
        seen = set()
        for n, (stack, values, labels) in enumerate(self.samples):
            if len(values) != len(self.types):
                broken.append("sample %d has %d values" % (n, len(values)))
            if not set(stack) <= locations:
                broken.append("sample %d: no such location" % n)
            if not stack:
                broken.append("sample %d has no location" % n)
            if not any(values):
                broken.append("sample %d is all zeros" % n)
            if "" in labels or "" in labels.values():
                broken.append("sample %d has an empty label" % n)
            key = (tuple(stack), tuple(sorted(labels.items(), key=str)))
            if key in seen:
                broken.append("sample %d stands there a second time" % n)
            seen.add(key)
        return broken
