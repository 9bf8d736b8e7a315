# SPDX-License-Identifier: Apache-2.0
"""What the end-to-end tests share: running the binary, skipping with a reason, and profiles by name.

A test file defines functions whose names begin with test_ and calls main(globals())."""
import functools, glob, json, os, shutil, signal, struct, subprocess, sys, tempfile, time, traceback
from support_pprof import Pprof, fields, message

binary = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else None


class Skip(Exception):
    """This machine cannot run the test; the text says why."""


def run(*words, check=None, input=None, timeout=120, env=None, cwd=None, preexec_fn=None, program=None):
    """Runs perfpipe; stdout is bytes, stderr text. check: the exit code that must come."""
    stdin = {"input": input} if input is not None else {"stdin": subprocess.DEVNULL}
    done = subprocess.run([program or binary, *words], capture_output=True, timeout=timeout, env=env, cwd=cwd,
                          preexec_fn=preexec_fn, **stdin)
    done.stderr = done.stderr.decode("utf-8", "replace")
    if check is not None and done.returncode != check:
        raise AssertionError("%s: exit %d, expected %d\n%s" % (" ".join(words), done.returncode, check, done.stderr))
    return done


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            raise Skip("no " + program)


def need_sampling():
    """The whole host, as this user."""
    checks = {c["name"]: c for c in json.loads(run("doctor", "--json").stdout)["checks"]}
    if not checks["sampling"]["text"].startswith("the whole host"):
        raise Skip("not permitted to sample: " + checks["sampling"]["text"])


def find_perf():
    """A perf that runs (Debian's wrapper looks for one that fits the kernel)."""
    need("perf")
    probe = subprocess.run(["perf", "--version"], capture_output=True, text=True)
    if probe.returncode:
        raise Skip("perf does not run: " + probe.stderr.strip()[:200])
    return "perf"


@functools.lru_cache(None)
def find_pprof():
    """The words that start go's pprof, and an environment in which it asks no network. Debian's go
    has the program ready; newer ones compile it once, into a cache that is kept."""
    home = folder()
    cache = os.path.join(os.path.dirname(binary), "go-cache")
    env = dict(os.environ, HOME=home, GOFLAGS="-mod=mod", GOPROXY="off", GOTOOLCHAIN="local", GOCACHE=cache,
               PPROF_BINARY_PATH="/nonexistent", PPROF_TMPDIR=home)
    ready = glob.glob("/usr/lib/go*/pkg/tool/*/pprof")
    go = shutil.which("go") or "/usr/bin/go"
    if ready:
        words = [sorted(ready)[-1]]
    elif os.path.exists(go):
        words = [go, "tool", "pprof"]
    else:
        raise Skip("no go")
    probe = subprocess.run([*words, "-h"], capture_output=True, text=True, env=env, timeout=500)
    if "Output formats" not in probe.stdout + probe.stderr:
        raise Skip("go tool pprof does not run: " + probe.stderr.strip()[:200])
    return words, env


def pprof(*words, path_first=None):
    """Output of go tool pprof, which must succeed."""
    program, env = find_pprof()
    if path_first:
        env = dict(env, PATH=path_first + ":" + env["PATH"])
    done = subprocess.run([*program, *words], capture_output=True, text=True, env=env, timeout=300)
    if done.returncode:
        raise AssertionError("go tool pprof %s: %s" % (" ".join(words), done.stderr))
    return done.stdout


_folders = []


def folder():
    _folders.append(tempfile.mkdtemp(prefix="perfpipe-e2e-"))
    return _folders[-1]


BURN = "i=0; while [ $i -lt %d ]; do i=$((i+1)); done"


def burn_command(rounds=200000):
    """A command that uses CPU time for a moment, and nothing else."""
    return ["sh", "-c", BURN % rounds]


def burner(seconds=60):
    """A process of ours that uses one CPU; the caller kills it."""
    return subprocess.Popen(["timeout", str(seconds), "sh", "-c", "while :; do :; done"],
                            start_new_session=True, stdin=subprocess.DEVNULL)


def end(process):
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


# --- perf.data, as small as it can be ---

SAMPLE_IP, SAMPLE_TID, SAMPLE_TIME, SAMPLE_PERIOD = 1, 2, 4, 256


def perf_data(n_samples=10, pid=4711, comm=b"made", cut=None):
    """A perf.data file with one software event; cut: its first bytes only."""
    attr_size, ids_size = 64, 16
    header_size = 104
    attr = struct.pack("<IIQQQQQIIQ", 1, attr_size, 0, 1000003, SAMPLE_IP | SAMPLE_TID | SAMPLE_TIME | SAMPLE_PERIOD,
                       0, 1 << 18, 0, 0, 0)
    attrs_at = header_size
    data_at = attrs_at + attr_size + ids_size
    tail = struct.pack("<IIQ", pid, pid, 1000)  # sample_id: TID, TIME
    records = b""
    text = comm + b"\0" * (16 - len(comm))
    records += struct.pack("<IHH", 3, 0, 8 + 8 + 16 + 16) + struct.pack("<II", pid, pid) + text + tail
    for i in range(n_samples):
        body = struct.pack("<QIIQQ", 0x401000 + 16 * i, pid, pid, 2000 + i, 1000003)
        records += struct.pack("<IHH", 9, 2, 8 + len(body)) + body
    header = b"PERFILE2" + struct.pack("<QQQQQQQQQQ", header_size, attr_size + ids_size, attrs_at, attr_size + ids_size,
                                       data_at, len(records), 0, 0, 0, 0)
    header += b"\0" * (header_size - len(header))
    whole = header + attr + b"\0" * ids_size + records
    return whole if cut is None else whole[:cut]


def write(path, content):
    with open(path, "wb") as out:
        out.write(content)
    return path


# --- reading pprof ---

class Profile:
    """What most tests ask of a profile. types: [(type, unit)]; samples: [(names from the leaf, values, labels)];
    locations: {id: names}; mappings: [path]; comments. source: a path or the bytes."""

    def __init__(self, source):
        raw = Pprof(source)
        self.is_gzip, self.types, self.comments = raw.is_gzip, raw.types, raw.comments
        self.time_nanos, self.duration_nanos = raw.time_nanos, raw.duration_nanos
        functions = {f[1]: raw.text(f.get(2, 0)) for f in raw.functions}
        self.locations = {l[1]: [functions[message(line)[1]] for line in l[4]] for l in raw.locations}
        self.mappings = [raw.text(m.get(5, 0)) for m in raw.mappings]
        self.samples = [([name for i in ids for name in self.locations[i]], values, labels)
                        for ids, values, labels in raw.samples]

    def column(self, name):
        return [kind for kind, _ in self.types].index(name)

    def total(self, name="samples"):
        column = self.column(name)
        return sum(values[column] for _, values, _ in self.samples)

    def names(self):
        return {name for stack, _, _ in self.samples for name in stack}

    def label_values(self, key):
        return {labels[key] for _, _, labels in self.samples if key in labels}


# --- running ---

def main(namespace):
    tests = [(name, f) for name, f in namespace.items() if name.startswith("test_") and callable(f)]
    failed = skipped = 0
    for name, test in tests:
        started = time.monotonic()
        try:
            test()
            print("ok      %s (%.1f s)" % (name, time.monotonic() - started), flush=True)
        except Skip as why:
            skipped += 1
            print("skipped %s: %s" % (name, why), flush=True)
        except Exception:
            failed += 1
            print("FAILED  %s" % name, flush=True)
            traceback.print_exc(file=sys.stdout)
    for path in _folders:
        shutil.rmtree(path, ignore_errors=True)
    print("%d tests, %d failed, %d skipped" % (len(tests), failed, skipped))
    sys.exit(1 if failed else 77 if skipped == len(tests) else 0)
