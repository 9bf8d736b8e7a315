# SPDX-License-Identifier: Apache-2.0
"""A server that writes whatever frames a test likes: HTTP/2 by hand, on a thread for each connection."""
import contextlib, socket, struct, threading

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS, PADDED = 1, 1, 4, 8
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def settings(*pairs):
    return frame(SETTINGS, 0, 0, b"".join(struct.pack(">HI", *pair) for pair in pairs))


def number(value, bits, first):
    """An HPACK integer (RFC 7541 §5.1)."""
    limit = (1 << bits) - 1
    if value < limit:
        return bytes([first | value])
    out = bytes([first | limit])
    value -= limit
    while value >= 128:
        out += bytes([value % 128 + 128])
        value //= 128
    return out + bytes([value])


def literal(name, value, first=0):
    """A header without an index; first=0x40 puts it into the table."""
    name, value = name.encode(), value if isinstance(value, bytes) else value.encode()
    return bytes([first]) + number(len(name), 7, 0) + name + number(len(value), 7, 0) + value


def block(*pairs):
    return b"".join(literal(name, value) for name, value in pairs)


OK_HEADERS = [(":status", "200"), ("content-type", "application/grpc")]
OK_TRAILERS = [("grpc-status", "0")]


def message(payload=b"", flag=0, length=None):
    return bytes([flag]) + struct.pack(">I", len(payload) if length is None else length) + payload


class Peer:
    """One connection, after the client's preface and SETTINGS."""

    def __init__(self, connection):
        self.socket = connection
        self.socket.settimeout(10)
        self.buffer = b""
        self.frames = []

    def exactly(self, n):
        while len(self.buffer) < n:
            more = self.socket.recv(65536)
            if not more:
                raise ConnectionError
            self.buffer += more
        taken, self.buffer = self.buffer[:n], self.buffer[n:]
        return taken

    def read(self):
        head = self.exactly(9)
        length, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
        got = (kind, flags, int.from_bytes(head[5:], "big"), self.exactly(length))
        self.frames.append(got)
        return got

    def wait(self, kind, stream=None):
        while True:
            got = self.read()
            if got[0] == kind and stream in (None, got[2]):
                return got

    def preface(self):
        assert self.exactly(len(PREFACE)) == PREFACE

    def send(self, *frames):
        self.socket.sendall(b"".join(frames))

    def headers(self, stream, pairs=OK_HEADERS, end=False):
        self.send(frame(HEADERS, END_HEADERS | (END_STREAM if end else 0), stream, block(*pairs)))

    def data(self, stream, payload, end=False):
        self.send(frame(DATA, END_STREAM if end else 0, stream, payload))

    def request(self):
        """SETTINGS out, a request in; its stream."""
        self.preface()
        self.send(settings())
        return self.next_request()

    def next_request(self):
        stream = self.wait(HEADERS)[2]
        while not self.wait(DATA, stream)[1] & END_STREAM:
            pass
        return stream

    def answer(self, stream, payload=b""):
        self.headers(stream)
        self.data(stream, message(payload))
        self.headers(stream, OK_TRAILERS, end=True)

    def forever(self, chunk):
        """Writes until the client has had enough."""
        while True:
            self.socket.sendall(chunk)

    def drain(self):
        """Reads until the client hangs up."""
        while self.socket.recv(65536):
            pass


@contextlib.contextmanager
def serve(script, family=socket.AF_INET):
    """script(peer, number of the connection) runs for each connection; gives (port, list of peers)."""
    listener = socket.create_server(("127.0.0.1", 0))
    peers, faults = [], []

    def run(connection, index):
        peer = Peer(connection)
        peers.append(peer)
        try:
            script(peer, index)
            peer.drain()
        except (OSError, ConnectionError):
            pass
        except Exception as fault:  # a mistake of the test itself
            faults.append(fault)
        finally:
            connection.close()

    def accept():
        index = 0
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=run, args=(connection, index), daemon=True).start()
            index += 1

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listener.getsockname()[1], peers
    finally:
        listener.close()
    if faults:
        raise faults[0]
