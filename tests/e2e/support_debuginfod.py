# SPDX-License-Identifier: Apache-2.0
"""Debuginfod servers for tests: Debian's own, and one that behaves as badly as it is told."""
import http.server, os, shutil, socket, subprocess, threading, time
from support import *
from support_live import wait_until


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Debuginfod:
    """Debian's server over a folder of ELF files."""

    def __init__(self, folder_of_files, n_files):
        need("debuginfod")
        self.port = free_port()
        self.log = open(os.path.join(folder(), "log"), "w+b")
        self.process = subprocess.Popen(["debuginfod", "-d", ":memory:", "-p", str(self.port), "-t", "0", "-F",
                                         folder_of_files], stdout=self.log, stderr=self.log, start_new_session=True)
        self.url = "http://127.0.0.1:%d" % self.port
        self._wait(n_files)

    def _wait(self, n_files):
        import urllib.request

        def is_scanned():
            try:
                text = urllib.request.urlopen(self.url + "/metrics", timeout=5).read().decode()
            except OSError:
                return False
            return any(line.startswith("scanned_files_total") and float(line.split()[-1]) >= n_files
                       for line in text.splitlines()) and "groom" in text
        wait_until(is_scanned, "debuginfod has read its files")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        end(self.process)


class Rogue:
    """Files by (build-id, kind) in the first folder of the URL's path, which says how they are served."""

    def __init__(self):
        self.files = {}
        self.requests = []
        self.header_lines = []
        rogue = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.0"

            def log_message(self, *_):
                pass

            def do_GET(self):
                rogue.requests.append(self.path)
                rogue.header_lines.append(dict(self.headers))
                parts = self.path.strip("/").split("/")
                try:
                    getattr(rogue, "serve_" + parts[0])(self, rogue.files.get(tuple(parts[2:4])))
                except (BrokenPipeError, ConnectionResetError):
                    pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, *_):
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        self.is_over = threading.Event()
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.server.shutdown()
        self.server.server_close()

    def url(self, mode):
        return "http://127.0.0.1:%d/%s" % (self.server.server_address[1], mode)

    def asked(self, mode):
        return [path for path in self.requests if path.startswith("/" + mode + "/")]

    @staticmethod
    def start(handler, status, *headers):
        handler.send_response(status)
        for name, value in headers:
            handler.send_header(name, value)
        handler.end_headers()

    def serve_good(self, handler, content):
        if content is None:
            return self.start(handler, 404, ("Content-Length", "0"))
        self.start(handler, 200, ("Content-Length", str(len(content))), ("X-DEBUGINFOD-SIZE", str(len(content))))
        handler.wfile.write(content)

    def serve_late(self, handler, content):
        self.is_over.wait(1.5)
        self.serve_good(handler, content)

    def serve_absent(self, handler, _):
        self.start(handler, 404, ("Content-Length", "0"))

    def serve_gone(self, handler, _):
        self.start(handler, 410, ("Content-Length", "0"))

    def serve_error(self, handler, _):
        self.start(handler, 500, ("Content-Length", "0"))

    def serve_busy(self, handler, _):
        self.start(handler, 503, ("Retry-After", "1"), ("Content-Length", "0"))

    def serve_forbidden(self, handler, _):
        self.start(handler, 403, ("Content-Length", "0"))

    def serve_page(self, handler, _):
        page = b"<!DOCTYPE html><html><body>Please log in</body></html>"
        self.start(handler, 200, ("Content-Type", "text/html"), ("Content-Length", str(len(page))))
        handler.wfile.write(page)

    def serve_half(self, handler, content):
        self.start(handler, 200, ("Content-Length", str(len(content))))
        handler.wfile.write(content[:len(content) // 2])

    def serve_halfstated(self, handler, content):
        """The end of the connection is the end of the file; only debuginfod's own header tells."""
        self.start(handler, 200, ("X-DEBUGINFOD-SIZE", str(len(content))))
        handler.wfile.write(content[:-16])

    def serve_halfunstated(self, handler, content):
        self.start(handler, 200)
        handler.wfile.write(content[:len(content) // 2])

    def serve_headonly(self, handler, content):
        self.start(handler, 200)
        handler.wfile.write(content[:64])

    def serve_empty(self, handler, _):
        self.start(handler, 200, ("Content-Length", "0"))

    def serve_other(self, handler, _):
        self.serve_good(handler, open("/bin/true", "rb").read())

    def serve_trickle(self, handler, content):
        self.start(handler, 200, ("Content-Length", str(len(content))))
        for byte in content:
            handler.wfile.write(bytes([byte]))
            handler.wfile.flush()
            if self.is_over.wait(0.2):
                return

    def serve_endless(self, handler, _):
        self.start(handler, 200)
        while not self.is_over.is_set():
            handler.wfile.write(b"\x7fELF" * 16384)

    def serve_loop(self, handler, _):
        self.start(handler, 302, ("Location", handler.path), ("Content-Length", "0"))

    def serve_file(self, handler, _):
        self.start(handler, 302, ("Location", "file:///etc/passwd"), ("Content-Length", "0"))

    def serve_huge(self, handler, content):
        self.start(handler, 200, ("Content-Length", str(1 << 50)))
        handler.wfile.write(content)
        self.is_over.wait(60)

    def serve_hang(self, handler, _):
        self.is_over.wait(60)

    def serve_garbage(self, handler, _):
        handler.wfile.write(os.urandom(4096))


def shown_processes(name):
    """Pids of live processes of that comm."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                if open("/proc/%s/comm" % entry).read().strip() == name:
                    found.append(int(entry))
            except OSError:
                pass
    return found
