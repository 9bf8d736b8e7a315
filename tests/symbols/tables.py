# SPDX-License-Identifier: Apache-2.0
"""
By hand: names from symbol tables alone, of stripped giants such as libLLVM, against readelf(1), with time and memory.

    tables.py build/release/tests/symbols_resolve FILE...

DWARF is taken away first. Each sized function of the table at its first and last byte, and the first byte of each gap behind a function, which must
have no name.
"""
import bisect, os, re, resource, subprocess, sys, tempfile, time
from agreement_support import *


def functions(path):
    """[(start, size, name)] of functions with a size in .symtab and .dynsym; data in code is none."""
    found = set()
    done = subprocess.run(["readelf", "-sW", path], capture_output=True, text=True)
    for words in re.findall(r"^ *\d+: ([0-9a-f]+) +(\w+) (?:FUNC|IFUNC) +\w+ +\w+ +(?:\[.*?\] +)?\d+ (\S+)", done.stdout, re.M):
        if int(words[1], 0):
            found.add((int(words[0], 16), int(words[1], 0), words[2].split("@")[0]))
    return sorted(found)


def check(path):
    table = functions(path)
    starts = sorted({start for start, _, _ in table})
    # Names of all functions that begin where the innermost one that covers an address does.
    names, ends, reach = {}, {}, []
    for start, size, name in table:
        names.setdefault(start, set()).add(name)
        ends[start] = max(ends.get(start, 0), start + size)
    for start in starts:
        reach.append(max(ends[start], reach[-1] if reach else 0))
    text_start, text_size = text_of(path)
    addresses = []
    for i, start in enumerate(starts):
        addresses += [start, min(ends[start], starts[i + 1] if i + 1 < len(starts) else ends[start]) - 1]
        if i + 1 < len(starts) and reach[i] < starts[i + 1] and text_start <= reach[i] < text_start + text_size:
            addresses.append(reach[i])
    begin = time.monotonic()
    answers = resolve(path, addresses, "")
    seconds = time.monotonic() - begin
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    n_gaps = n_right = n_wrong = n_missed = n_unsized = 0
    for address, frames in zip(addresses, answers):
        i = bisect.bisect_right(starts, address) - 1
        covering = next((s for s in reversed(starts[max(0, i - 64):i + 1]) if ends[s] > address), None)
        if covering is None:
            n_gaps += 1
            # .symtab has functions of no size too, which reach over gaps.
            n_unsized += bool(frames)
        elif not frames:
            n_missed += 1
            expect(n_missed > 5, "%s %#x: no name, readelf says %s" % (path, address, sorted(names[covering])[:3]))
        elif frames[-1].name in names[covering]:
            n_right += 1
        else:
            n_wrong += 1
            expect(n_wrong > 5, "%s %#x: %s, readelf says %s" % (path, address, frames[-1].name, sorted(names[covering])[:3]))
    print("%s: %.0f MiB, %d functions, %d addresses: %d right, %d wrong, %d missed; %d gaps, %d of them named; %.2f s, peak %d MiB" % (
        os.path.basename(path), os.path.getsize(path) / 2**20, len(table), len(addresses), n_right, n_wrong, n_missed, n_gaps,
        n_unsized, seconds, peak))
    expect(n_wrong * 1000 <= len(addresses), "%s: %d wrong" % (path, n_wrong))


with tempfile.TemporaryDirectory() as folder:
    for one in sys.argv[2:]:
        bare = os.path.join(folder, os.path.basename(one))
        subprocess.run(["objcopy", "--strip-debug", one, bare], check=True)
        check(bare)
finish()
