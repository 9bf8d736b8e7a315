# SPDX-License-Identifier: Apache-2.0
"""The peak of convert stays below four times the input and 64 MiB, whatever the input has many of: processes, threads,
names, maps, labels, events, addresses, stacks."""
import array, random
from support import *
import support_limits as limits
import support_perf_data as perf

there = folder()
if limits.is_sanitized(binary):
    print("SKIP: a sanitizer's memory is not ours")
    sys.exit(77)

PERIOD, CGROUP = perf.PERIOD, 1 << 21
PLAIN = perf.IP | perf.TID | perf.TIME | PERIOD
CHAINS = PLAIN | perf.CALLCHAIN


def attr(sample_type, config=0):
    """cpu-clock by period, sample_id_all."""
    return struct.pack("<IIQQQQQIIQ", 1, 64, config, 1000003, sample_type, 0, 1 << 18, 0, 0, 0)


def path(name):
    return os.path.join(there, name)


def write_pipe(attrs, blocks):
    """attrs: [(attr, [ids])]; blocks: bytes of records."""
    with open(path("many.data"), "wb") as target:
        target.write(perf.pack_pipe(perf.Recording(attrs, {}, [])))
        for block in blocks:
            target.write(block)
    return path("many.data")


def blocks_of(n, make):
    """Records made one by one."""
    for first in range(0, n, 5000):
        yield b"".join(make(i) for i in range(first, min(n, first + 5000)))


def record(kind, misc, body):
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def sample(ip, pid, tid, time=1, chain=None, misc=2, cpu=None, extra=b""):
    """cpu: with that field."""
    body = struct.pack("<QIIQ", ip, pid, tid, time)
    body += struct.pack("<II", cpu, 0) if cpu is not None else b""
    body += struct.pack("<Q", 1)
    if chain is not None:
        body += struct.pack("<Q", len(chain)) + array.array("Q", chain).tobytes()
    return record(perf.SAMPLE, misc, body + extra)


TRAILER = struct.pack("<IIQ", 1, 1, 1)


def name16(i):
    return b"%015d\0" % i


def comm(i, pid=None):
    return record(perf.COMM, 0, struct.pack("<II", pid or i, i) + name16(i) + TRAILER)


def task(kind, pid, parent, tid):
    return record(kind, 0, struct.pack("<IIIIQ", pid, parent, tid, parent, 1) + TRAILER)


def mmap2(pid, start, length, name, inode=1, offset=0):
    name += b"\0" * (8 - len(name) % 8)
    body = struct.pack("<IIQQQIIQQII", pid, pid, start, length, offset, 8, 1, inode, 0, 5, 2)
    return record(perf.MMAP2, 2, body + name + TRAILER)


def judge(what, source, *words):
    """Converts to .pb and checks time and memory."""
    size = os.path.getsize(source)
    outcome = limits.measure(binary, "convert", "-q", "-i", source, "-o", path("out.pb"), *words)
    print("        %s: input %.1f MiB, peak %.1f of %.1f MiB, output %.1f MiB" % (
        what, size / limits.MIB, outcome.peak_bytes / limits.MIB, (4 * size + limits.FREE_BYTES) / limits.MIB,
        os.path.getsize(path("out.pb")) / limits.MIB))
    faults = outcome.faults(size)
    assert outcome.code == 0 and not faults, (what, outcome.code, faults, outcome.stderr)


def test_a_process_for_each_sample():
    n = 400000
    source = write_pipe([(attr(PLAIN), [])], blocks_of(n, lambda i: sample(i * 16, i + 1, i + 1)))
    judge("samples of 400,000 pids", source)
    judge("the same with all labels", source, "--labels", "comm,pid,tid,thread,process,cpu,cgroup,cmdline")


def test_a_thread_for_each_sample():
    source = write_pipe([(attr(PLAIN), [])], blocks_of(400000, lambda i: sample(i * 16, 7, i + 1)))
    judge("samples of 400,000 threads of one process", source, "--labels", "comm,pid,tid")
    source = write_pipe([(attr(PLAIN), [])],
                        blocks_of(400000, lambda i: comm(i // 2 + 1, 7) if i % 2 else sample(16, 7, i // 2 + 1)))
    judge("200,000 named threads", source, "--labels", "comm,pid,tid,thread,process")


def test_labels_of_each_sample():
    source = write_pipe([(attr(PLAIN | perf.CPU), [])],
                        blocks_of(400000, lambda i: sample(16, 7 + i % 99, 7 + i % 9999, cpu=i)))
    judge("each sample on another CPU", source, "--labels", "comm,pid,tid,cpu")


def test_distinct_frames_in_deep_chains():
    rng = random.Random(7)

    def chain(i):
        head = struct.pack("<QIIQQQ", 16, 7, 7, i, 1, 127)
        return record(perf.SAMPLE, 2, head + rng.randbytes(8 * 127))

    def unmapped(i):
        """Distinct addresses below the markers' range; one after another is sampled by itself, not by a call."""
        words = array.array("Q", [0x1000000000 + (i * 127 + k) * 16 for k in range(127)])
        return record(perf.SAMPLE, 2, struct.pack("<QIIQQQ", 16, 7, 7, i, 1, 127) + words.tobytes())

    whole = mmap2(7, 0x1000, 1 << 62, b"/nonexistent/file")
    source = write_pipe([(attr(CHAINS), [])], [whole, *blocks_of(20000, unmapped)])
    judge("2.5 M distinct frames of one file", source)
    source = write_pipe([(attr(CHAINS), [])], [whole, *blocks_of(60000, unmapped)])
    judge("7.6 M distinct frames of one file", source)
    source = write_pipe([(attr(CHAINS), [])], [whole, *blocks_of(20000, chain)])
    judge("2.5 M frames of noise", source)
    source = write_pipe([(attr(CHAINS), [])], blocks_of(20000, unmapped))
    judge("2.5 M frames outside of all maps", source)

    def kernel(i):
        words = array.array("Q", [2**64 - 128] + [0xffffffff81000000 + i * 126 + k for k in range(126)])
        return record(perf.SAMPLE, 1, struct.pack("<QIIQQQ", 16, 7, 7, i, 1, 127) + words.tobytes())

    source = write_pipe([(attr(CHAINS), [])], blocks_of(20000, kernel))
    judge("2.5 M frames of the kernel", source)


def largest_elf():
    paths = ["/usr/bin/perf", "/usr/bin/gdb", "/usr/bin/python3", binary] + glob.glob("/usr/bin/python3.*")
    paths += glob.glob("/usr/bin/perf_*") + glob.glob("/usr/lib/x86_64-linux-gnu/lib*.so*")
    return max((os.path.realpath(p) for p in paths if os.path.exists(p)), key=os.path.getsize)


def test_distinct_frames_with_names():
    for elf in (binary, largest_elf()):
        st = os.stat(elf)
        n = min(20000, st.st_size // 127)

        def chain(i):
            words = array.array("Q", [(1 << 40) + (i * 127 + k) for k in range(127)])
            return record(perf.SAMPLE, 2, struct.pack("<QIIQQQ", (1 << 40) + i * 127, 7, 7, i, 1, 127) +
                          words.tobytes())

        source = write_pipe([(attr(CHAINS), [])], [
            mmap2(7, 1 << 40, (st.st_size + 4095) & ~4095, elf.encode(), st.st_ino), *blocks_of(n, chain)])
        judge("%d frames of %s" % (n * 127, elf), source, "--trust-paths", "--no-symbol-cache")


def test_stacks_that_share_addresses():
    rng = random.Random(8)
    places = [0x400000 + 16 * i for i in range(1000)]
    whole = mmap2(7, 0x1000, 1 << 40, b"/nonexistent/file")
    source = write_pipe([(attr(CHAINS), [])], [whole, *blocks_of(
        20000, lambda i: sample(16, 7, 7, i, rng.choices(places, k=127)))])
    judge("2.5 M distinct nodes of 1000 places", source)
    source = write_pipe([(attr(CHAINS), [])], [whole, *blocks_of(
        400000, lambda i: sample(16, 7, 7, i, [places[i % 1000], places[i // 1000]]))])
    judge("400,000 short stacks", source)


def test_processes_without_samples():
    n = 1000000
    cases = {
        "COMM": lambda i: comm(i + 1),
        "FORK of one parent": lambda i: task(perf.FORK, i + 2, 1, i + 2),
        "FORK of the last child": lambda i: task(perf.FORK, i + 2, i + 1, i + 2),
        "FORK of threads": lambda i: task(perf.FORK, 1, 1, i + 2),
        "EXIT": lambda i: task(perf.EXIT, i + 1, i, i + 1),
        "FORK and EXIT": lambda i: task(perf.EXIT if i % 2 else perf.FORK, i // 2 + 2, 1, i // 2 + 2),
    }
    for what, make in cases.items():
        judge("10^6 %s" % what, write_pipe([(attr(PLAIN), [])], blocks_of(n, make)))


def test_mappings():
    n = 300000
    long = b"/" + b"x" * 4000 + b"/%012d"
    cases = {
        "maps of as many pids": (n, lambda i: mmap2(i + 1, 1 << 20, 4096, b"/bin/x")),
        "maps of as many files": (n, lambda i: mmap2(7, (i + 1) << 20, 4096, b"/bin/%08d" % i, i)),
        "maps of as many pids and files": (n, lambda i: mmap2(i + 1, 1 << 20, 4096, b"/bin/%08d" % i, i)),
        "maps in one process": (n, lambda i: mmap2(7, (i + 1) << 20, 4096, b"/bin/x", 7)),
        "maps that cut each other": (n, lambda i: mmap2(7, (i * 7919 % 65536) << 13, 4096 * (i % 5 + 1), b"/bin/x", 7)),
        "long names": (8000, lambda i: mmap2(7, (i + 1) << 20, 4096, long % i, i)),
        "anonymous maps": (n, lambda i: mmap2(7, (i + 1) << 20, 4096, b"//anon", 0)),
    }
    for what, (count, make) in cases.items():
        judge("%d %s" % (count, what), write_pipe([(attr(PLAIN), [])], blocks_of(count, make)))

    def used(i):
        if i % 2:
            return sample((i // 2 + 1) << 20, i // 2 + 1, i // 2 + 1)
        return mmap2(i // 2 + 1, (i // 2 + 1) << 20, 4096, b"/bin/%08d" % i, i)

    judge("200,000 files, each with a sample", write_pipe([(attr(PLAIN), [])], blocks_of(400000, used)))

    def forked(i):
        """Children of a process with maps each change their copy."""
        if i < 1000:
            return mmap2(1, (i + 1) << 20, 4096, b"/bin/x", 7)
        if i % 2:
            return mmap2(i // 2 + 2, 1 << 50, 4096, b"/bin/x", 7)
        return task(perf.FORK, i // 2 + 2, 1, i // 2 + 2)

    judge("copies of maps", write_pipe([(attr(PLAIN), [])], blocks_of(200000, forked)))


def test_kernel_symbols():
    def ksymbol(i):
        body = struct.pack("<QIHH", 0xffffffffc0000000 + i * 64, 64, 1, 0) + b"bpf_prog_%08d_x\0" % i
        return record(17, 0, body + b"\0" * (-len(body) % 8) + TRAILER)

    judge("300,000 KSYMBOL", write_pipe([(attr(PLAIN), [])], blocks_of(300000, ksymbol)))
    judge("200,000 KSYMBOL, each with a sample", write_pipe([(attr(PLAIN), [])], blocks_of(
        400000, lambda i: sample(0xffffffffc0000000 + i // 2 * 64, 1, 1, misc=1) if i % 2 else ksymbol(i // 2))))


def test_cgroups():
    def cgroup(i):
        text = b"/" + b"g" * 100 + b"/%010d" % i
        return record(19, 0, struct.pack("<Q", i + 1) + text + b"\0" * (8 - len(text) % 8) + TRAILER)

    judge("300,000 CGROUP", write_pipe([(attr(PLAIN), [])], blocks_of(300000, cgroup)))

    def used(i):
        if i % 2:
            return sample(16, 7, 7, extra=struct.pack("<Q", i // 2 + 1))
        return cgroup(i // 2)

    judge("60,000 CGROUP, each with a sample", write_pipe([(attr(PLAIN | CGROUP), [])], blocks_of(120000, used)),
          "--labels", "cgroup,comm")


def test_many_events():
    n = 3000
    wanted = PLAIN | perf.IDENTIFIER
    attrs = [(attr(wanted, i), [i + 1]) for i in range(n)]

    def of_event(i):
        body = struct.pack("<QQIIQQ", i % n + 1, 16 * (i % 70000), 7, 7, 1, 1)
        return record(perf.SAMPLE, 2, body)

    judge("400,000 samples of 3000 events", write_pipe(attrs, blocks_of(400000, of_event)))
    attrs = attrs[:12]
    judge("400,000 samples of 12 events", write_pipe(attrs, blocks_of(
        400000, lambda i: record(perf.SAMPLE, 2, struct.pack("<QQIIQQ", i % 12 + 1, 16 * (i // 6), 7, 7, 1, 1)))))


main(globals())
