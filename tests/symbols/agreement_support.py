# SPDX-License-Identifier: Apache-2.0
"""What symcache and other tools say of addresses, in one form: for each address a list of frames, the innermost first."""
import collections, os, random, re, shutil, subprocess, sys

Frame = collections.namedtuple("Frame", "name file line column")

RESOLVE = sys.argv[1] if len(sys.argv) > 1 else None
failures = []


def need(program):
    if not shutil.which(program):
        print("skipped: %s is not installed" % program)
        sys.exit(77)


def expect(condition, text):
    if not condition:
        failures.append(text)
        if len(failures) <= 10:
            print("FAILED", text)


def finish():
    if failures:
        print("%d failures" % len(failures))
    sys.exit(1 if failures else 0)


def text_of(path):
    """(start, size) of .text"""
    done = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True, check=True)
    found = re.search(r"\s\.text\s+\w+\s+([0-9a-f]+)\s+[0-9a-f]+\s+([0-9a-f]+)", done.stdout)
    return int(found[1], 16), int(found[2], 16)


def sample(path, n, seed=1):
    start, size = text_of(path)
    if n >= size:
        return range(start, start + size)
    return sorted(random.Random(seed).sample(range(start, start + size), n))


def _place(text):
    file, line, column = text.rsplit(":", 2)
    line, column = line if line.isdigit() else "0", column if column.isdigit() else "0"
    return ("" if file == "??" else file), int(line), int(column)


def _parse(text, n):
    """Blocks of NAME, FILE:LINE:COLUMN, each ended by an empty line."""
    blocks = text.split("\n\n")[:n]
    result = []
    for block in blocks:
        lines = block.strip("\n").split("\n")
        frames = [Frame(lines[i], *_place(lines[i + 1])) for i in range(0, len(lines) - 1, 2)]
        result.append([] if len(frames) == 1 and frames[0].name == "??" and not frames[0].file else frames)
    assert len(result) == n, "%d answers to %d questions" % (len(result), n)
    return result


def resolve(path, addresses, debug_root=None):
    """Ours. debug_root "": the file alone."""
    done = subprocess.run([RESOLVE, path] + ([] if debug_root is None else [debug_root]),
                          input="".join("%x\n" % a for a in addresses), capture_output=True, text=True, check=True)
    if done.stderr:
        print(done.stderr.strip())
    return _parse(done.stdout, len(addresses))


def llvm(path, addresses):
    done = subprocess.run(["llvm-symbolizer-14", "--obj=" + path, "--inlines", "--no-demangle", "--functions=linkage"],
                          input="".join("0x%x\n" % a for a in addresses), capture_output=True, text=True, check=True)
    return _parse(done.stdout, len(addresses))


def _by_address(program, path, addresses):
    """addr2line of binutils or elfutils: 0xADDRESS, then NAME, FILE:LINE for each frame."""
    result = []
    for begin in range(0, len(addresses), 4000):
        part = ["%#x" % a for a in addresses[begin:begin + 4000]]
        done = subprocess.run([program, "-a", "-f", "-i", "-e", path] + part, capture_output=True, text=True, check=True)
        for line in done.stdout.split("\n"):
            if re.fullmatch(r"0x[0-9a-f]{16}", line):
                result.append([])
            elif line and result:
                result[-1].append(line)
    frames = []
    for lines in result:
        lines = [re.sub(r" inlined at .*", "", line) for line in lines]
        lines = [re.sub(r" \(discriminator \d+\)$", "", line) for line in lines]
        block = []
        for name, place in zip(lines[::2], lines[1::2]):
            place = place.replace(":?", ":0") if place.count(":") else place + ":0"
            file, line = re.match(r"(.*?):(\d+)", place).groups()
            block.append(Frame(name, "" if file == "??" else file, int(line), 0))
        frames.append([] if block and block[0].name == "??" and not block[0].file else block)
    assert len(frames) == len(addresses), "%s: %d answers to %d questions" % (program, len(frames), len(addresses))
    return frames


def elfutils(path, addresses):
    return _by_address("eu-addr2line", path, addresses)


def binutils(path, addresses):
    return _by_address("addr2line", path, addresses)
