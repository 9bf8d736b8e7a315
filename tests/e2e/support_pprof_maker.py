# SPDX-License-Identifier: Apache-2.0
"""Makes small pprof files, for tests that need to know every number in them."""


def varint(value):
    value &= (1 << 64) - 1
    made = bytearray()
    while value > 127:
        made.append(value & 127 | 128)
        value >>= 7
    made.append(value)
    return bytes(made)


def field(number, value):
    """A protobuf field: an int, or bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


class Maker:
    def __init__(self, types, default=None):
        self.strings, self.functions, self.locations = {"": 0}, {}, {}
        self.body = b"".join(field(1, self._pair(kind)) for kind in types)
        if default:
            self.body += field(14, self._text(default))

    def _text(self, text):
        return self.strings.setdefault(text, len(self.strings))

    def _pair(self, kind):
        return field(1, self._text(kind[0])) + field(2, self._text(kind[1]))

    def _location(self, names):
        """names: one text, or several of which the first is inlined into the next."""
        names = (names,) if isinstance(names, str) else tuple(names)
        for name in names:
            self.functions.setdefault(name, len(self.functions) + 1)
        return self.locations.setdefault(names, len(self.locations) + 1)

    def add(self, stack, values, **labels):
        """stack from the leaf."""
        body = field(1, b"".join(varint(self._location(names)) for names in stack))
        body += field(2, b"".join(varint(value) for value in values))
        for key, value in labels.items():
            kind = 2 if isinstance(value, str) else 3
            body += field(3, field(1, self._text(key)) + field(kind, self._text(value) if kind == 2 else value))
        self.body += field(2, body)
        return self

    def bytes(self):
        body = self.body
        for name, number in self.functions.items():
            body += field(5, field(1, number) + field(2, self._text(name)) + field(3, self._text(name)))
        for names, number in self.locations.items():
            lines = b"".join(field(4, field(1, self.functions[name])) for name in names)
            body += field(4, field(1, number) + field(3, 0x1000 * number) + lines)
        return body + b"".join(field(6, text.encode()) for text in self.strings)
