# SPDX-License-Identifier: Apache-2.0
"""What the live tests share: C programs built on the spot, recorders that are known to sample before
the workload is let go, stacks with addresses, and perf as a second pair of eyes."""
import re
from support import *
from support_pprof import Pprof


# --- programs ---

# Each function burns a given number of rounds. The empty asm keeps the calls from becoming jumps; the
# volatile local makes even a leaf have a frame.
BURN_C = r"""
#define WORK __attribute__((noinline))
#define SPIN volatile long sink = 0; for (long i = 0; i < n; i++) sink += i; __asm__ volatile("")
static WORK void hot_%(a)s(long n) { SPIN; }
static WORK void hot_%(b)s(long n) { SPIN; }
static WORK void mid_%(m)s(long n) { hot_%(a)s(2 * n); hot_%(b)s(n); __asm__ volatile(""); }
#include <stdlib.h>
int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 100;
	for (long i = 0; i < rounds; i++)
		mid_%(m)s(100000);
	__asm__ volatile("");
	return 0;
}
"""
BURN_SOURCE = BURN_C % {"a": "a", "b": "b", "m": "one"}
BURN2_SOURCE = BURN_C % {"a": "c", "b": "d", "m": "two"}
BURN_NAMES = {"hot_a", "hot_b", "mid_one"}
BURN2_NAMES = {"hot_c", "hot_d", "mid_two"}


def compile_c(source, path, *flags, compiler="gcc"):
    """Builds source into path, with frame pointers; the file appears whole or not at all."""
    need(compiler)
    text = os.path.join(folder(), os.path.basename(path) + ".c")
    with open(text, "w") as out:
        out.write(source)
    whole = path + ".new"
    words = [compiler, "-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", *flags, "-o", whole, text, "-pthread"]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise AssertionError("%s: %s" % (" ".join(words), done.stderr))
    os.rename(whole, path)
    return path


# --- recorders ---

def _samples_now(pid):
    """Whether the process holds perf events and sleeps, as a recorder does that waits for records."""
    try:
        links = os.listdir("/proc/%d/fd" % pid)
        held = [fd for fd in links if "perf_event" in os.readlink("/proc/%d/fd/%s" % (pid, fd))]
        state = open("/proc/%d/stat" % pid).read().rpartition(")")[2].split()[0]
    except OSError:
        return 0
    return len(held) if state == "S" else 0


def wait_until(condition, what, seconds=30):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError("%s did not come about in %d s" % (what, seconds))
        time.sleep(0.01)


class Recorder:
    """perfpipe record or perf record in the background. ready() returns when it samples."""

    def __init__(self, *words, program=None, **how):
        self.words = [program or binary, *words]
        self.process = subprocess.Popen(self.words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, **how)

    def ready(self):
        seen = []
        deadline = time.monotonic() + 30
        while len(seen) < 8 or len(set(seen[-8:])) > 1 or not seen[-1]:
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError("%s does not sample: %s" % (" ".join(self.words), self.end(signal.SIGTERM)))
            time.sleep(0.02)
            seen.append(_samples_now(self.process.pid))
        return self

    def end(self, number=signal.SIGINT):
        """Stops it; its messages."""
        if self.process.poll() is None and number:
            self.process.send_signal(number)
        return self.wait()

    def wait(self, seconds=90):
        try:
            text = self.process.communicate(timeout=seconds)[1]
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError("%s does not end" % " ".join(self.words))
        self.messages = text.decode("utf-8", "replace")
        return self.messages


class Workload:
    """A program that waits for a line on its stdin before it works."""

    def __init__(self, *words, **how):
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **how)
        self.pid = self.process.pid

    def line(self):
        return self.process.stdout.readline().decode().strip()

    def go(self, text="go"):
        self.process.stdin.write((text + "\n").encode())
        self.process.stdin.flush()

    def wait(self, seconds=90):
        rest = self.process.communicate(timeout=seconds)[0].decode()
        if self.process.returncode:
            raise AssertionError("the workload ended with %d" % self.process.returncode)
        return rest

    def kill(self):
        self.process.kill()
        self.process.communicate()


# --- profiles with addresses ---

class Frame:
    __slots__ = ("name", "address", "mapping", "build_id", "start")

    def __init__(self, name, address, mapping, build_id, start):
        self.name, self.address, self.mapping, self.build_id, self.start = name, address, mapping, build_id, start


class Recording(Pprof):
    """stacks: [(frames from the leaf, values, labels)]; a frame without a function has the name None."""

    def __init__(self, path):
        super().__init__(path)
        broken = self.broken_rules()
        if broken:
            raise AssertionError("%s: %s" % (path, "; ".join(broken[:5])))
        mappings = {m[1]: m for m in self.mappings}
        functions = {f[1]: self.text(f.get(2, 0)) for f in self.functions}
        frames = {}
        for location in self.locations:
            mapping = mappings.get(location.get(2, 0), {})
            about = (location.get(3, 0), self.text(mapping.get(5, 0)), self.text(mapping.get(6, 0)), mapping.get(2, 0))
            names = [functions[dict(fields(line))[1]] for line in location[4]]
            frames[location[1]] = [Frame(name, *about) for name in names or [None]]
        self.stacks = [([f for i in ids for f in frames[i]], values, labels) for ids, values, labels in self.samples]

    def count(self, keep=lambda frames, labels: True):
        """Samples that keep() accepts."""
        return sum(values[0] for frames, values, labels in self.stacks if keep(frames, labels))

    def of(self, **labels):
        """The stacks with these labels."""
        return [s for s in self.stacks if all(s[2].get(k) == v for k, v in labels.items())]

    def values_of(self, label):
        return {labels[label] for _, _, labels in self.stacks if label in labels}

    def names_in(self, file, stacks=None):
        """Names of frames in the mapping whose base name is that, None for nameless ones."""
        return {f.name for frames, _, _ in (self.stacks if stacks is None else stacks) for f in frames
                if os.path.basename(f.mapping.replace(" (deleted)", "")) == file}

    def flat(self):
        """{leaf name: samples}"""
        found = {}
        for frames, values, _ in self.stacks:
            name = shown(frames[0])
            found[name] = found.get(name, 0) + values[0]
        return found

    def comment(self, key):
        """The number in the comment `key: N`, 0 without it."""
        for text in self.comments:
            if text.startswith(key + ": "):
                return int(text.split()[1])
        return 0

    def taken_and_written(self):
        for text in self.comments:
            found = re.match(r"samples: (\d+) taken, (\d+) written", text)
            if found:
                return int(found.group(1)), int(found.group(2))
        raise AssertionError("no comment counts the samples: %s" % self.comments)

    def check_conservation(self):
        """Taken = written + each counted loss between them; the column sums to written."""
        taken, written = self.taken_and_written()
        counted = sum(self.comment(key) for key in ("dropped_malformed", "dropped_no_event", "left_out"))
        assert taken == written + counted, self.comments
        assert self.count() == written, (self.count(), self.comments)
        return taken


def shown(frame):
    return frame.name or "%s+%#x" % (os.path.basename(frame.mapping), frame.address)


# --- perf as a referee ---

def perf_stacks(path, want="comm,tid,ip,sym,dso"):
    """perf script's samples: [(comm, tid, [(symbol or None, file) from the leaf])]"""
    done = subprocess.run([find_perf(), "script", "--no-inline", "-i", path, "-F", want], capture_output=True,
                          stdin=subprocess.DEVNULL)
    if done.returncode:
        raise AssertionError("perf script: " + done.stderr.decode("utf-8", "replace"))
    samples = []
    for line in done.stdout.decode("utf-8", "replace").splitlines():
        frame = re.match(r"\s+[0-9a-f]+ (.*) \((.*)\)$", line)
        if frame and samples:
            name = frame.group(1)
            samples[-1][2].append((None if name == "[unknown]" else re.sub(r"\+0x[0-9a-f]+$", "", name), frame.group(2)))
        elif line.strip():
            head = re.match(r"(.*\S)\s+(\d+)\s*$", line)
            if head:
                samples.append((head.group(1).strip(), int(head.group(2)), []))
    return samples


def perf_record(*words, **how):
    """perf record, keeping no copies of binaries; PATH of the output is the caller's -o."""
    return Recorder("record", "-N", "-q", "-e", "cpu-clock", *words, program=find_perf(), **how)


def perf_recorded(path, *words):
    """perf record of a command, to its end. This perf now and then dies while it writes its header."""
    for _ in range(5):
        recorder = perf_record("-g", "-o", path, *words)
        messages = recorder.wait()
        if recorder.process.returncode >= 0:
            return path
    raise Skip("perf record dies: " + messages.strip()[-200:])


def nm(path):
    """[(start, end, name)] of the functions in a file, by address."""
    need("nm")
    text = subprocess.run(["nm", "-S", "--defined-only", path], capture_output=True, text=True).stdout
    rows = [line.split() for line in text.splitlines()]
    return sorted((int(r[0], 16), int(r[0], 16) + int(r[1], 16), r[3]) for r in rows if len(r) == 4 and r[2] in "tTwW")


def build_id(path):
    need("readelf")
    text = subprocess.run(["readelf", "-n", path], capture_output=True, text=True).stdout
    found = re.search(r"Build ID: ([0-9a-f]+)", text)
    return found.group(1) if found else ""


def exec_segment(path):
    """(offset, vaddr, size in memory) of the executable LOAD."""
    need("readelf")
    text = subprocess.run(["readelf", "-lW", path], capture_output=True, text=True).stdout
    for line in text.splitlines():
        word = line.split()
        if word[:1] == ["LOAD"] and "E" in "".join(word[6:-1]):
            return int(word[1], 16), int(word[2], 16), int(word[5], 16)
    raise AssertionError("%s has no executable segment" % path)


# --- the host ---

def need_root():
    if os.getuid() != 0:
        raise Skip("only root can do this")


def need_tracefs():
    """exec watch needs the id of a tracepoint; root may mount tracefs."""
    if not os.path.exists("/sys/kernel/tracing/events/sched/sched_process_exec/id"):
        if os.getuid() == 0:
            subprocess.run(["mount", "-t", "tracefs", "nodev", "/sys/kernel/tracing"], capture_output=True)
        if not os.path.exists("/sys/kernel/tracing/events/sched/sched_process_exec/id"):
            raise Skip("no tracefs: sched_process_exec has no id")


class setting:
    """A file under /proc/sys or /sys with another value for a while."""

    def __init__(self, path, value):
        self.path, self.value = path, str(value)

    def __enter__(self):
        try:
            self.before = open(self.path).read().strip()
            with open(self.path, "w") as f:
                f.write(self.value)
            if open(self.path).read().strip() != self.value:
                raise OSError("it keeps its value")
        except OSError as why:
            raise Skip("%s cannot be set: %s" % (self.path, why))

    def __exit__(self, *_):
        with open(self.path, "w") as f:
            f.write(self.before)
