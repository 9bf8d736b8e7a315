# SPDX-License-Identifier: Apache-2.0
"""
Function, file, line and the whole chain of inlined calls at random addresses, ours against a referee that is named for
each class of files. By hand, for a million addresses (Debian's libc6-dbg, python3.11-dbg, openjdk-17-dbg installed):

    agreement.py build/release/tests/symbols_resolve [--programs N] [--system N] [--few] [FILE...]

Differences that docs/dwarf-differences.md explains are counted apart, by its numbers, and only where a rule here can
tell them; all else counts as different. Fails below 99.9 % in any class.
"""
import bisect, os, re, subprocess, sys, tempfile, time
from agreement_support import *
import agreement_programs

SYSTEM = [
    ("libc6-dbg", "/lib/x86_64-linux-gnu/libc.so.6"),
    ("python3.11-dbg", "/usr/bin/python3.11"),
    ("openjdk-17-dbg, libjvm", "/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so"),
]
CLONE = re.compile(r"\.(isra|part|constprop|cold|lto_priv|llvm|localalias)\b.*")


class Symbols:
    """Names of the symbol tables, and where they stand."""

    def __init__(self, *paths):
        self.by_name = {}
        starts = set()
        for path in paths:
            for options in ([], ["-D"]):
                done = subprocess.run(["nm", "-S", "--defined-only"] + options + [path], capture_output=True, text=True)
                for line in done.stdout.split("\n"):
                    words = re.fullmatch(r"([0-9a-f]{8,16}) (?:([0-9a-f]{8,16}) )?[tTwWi] (.*)", line)
                    if words:
                        start = int(words[1], 16)
                        starts.add(start)
                        size = int(words[2] or "0", 16)
                        self.by_name.setdefault(words[3].split("@")[0], []).append((start, size))
        self.starts = sorted(starts)
        self.reach = []
        ends = sorted((at, at + size) for places in self.by_name.values() for at, size in places)
        for start, end in ends:
            self.reach.append((start, max(end, self.reach[-1][1] if self.reach else 0)))

    def is_gap(self, address):
        """No function with a size covers it."""
        before = bisect.bisect_right(self.reach, (address, sys.maxsize))
        return not before or self.reach[before - 1][1] <= address

    def covers(self, name, address):
        """A symbol without a size reaches to the next."""
        before = bisect.bisect_right(self.starts, address)
        last = self.starts[before - 1] if before else None
        places = self.by_name.get(name.removesuffix("@plt"), ())
        return any(start <= address < start + size or (not size and start == last) for start, size in places)

    def are_aliases(self, a, b):
        starts = {start for start, _ in self.by_name.get(a, ())}
        return any(start in starts for start, _ in self.by_name.get(b, ()))


def same_file(ours, theirs):
    """0 equal, 1 a relative folder that the other tool put in front once more, else None."""
    if ours == theirs:
        return 0
    ours, theirs = (re.sub(r"(?<=/)\./", "", re.sub(r"^(\./)+", "", p)) for p in (ours, theirs))
    folder = theirs[:-len(ours)].rstrip("/") if theirs.endswith(ours) else None
    return 1 if ours == theirs or folder and (ours + "/").startswith(folder + "/") else None


def same_name(ours, theirs, is_outermost, symbols, address):
    if ours == theirs:
        return 0
    # DWARF has the plain name; or the symbol table another one for the very place.
    plain = theirs.split("<")[0].lstrip("~")
    is_mangled_from = ours.startswith("_Z") and (plain in ours or plain.startswith("operator"))
    is_alias = CLONE.sub("", ours) == CLONE.sub("", theirs) or symbols.covers(ours, address) or symbols.are_aliases(ours, theirs)
    return 2 if is_mangled_from or (is_outermost and is_alias) else None


def judge(ours, theirs, symbols, address, has_columns):
    """(equal?, numbers of the classes that explain the difference)"""
    classes = set()
    if not ours:
        # Padding: theirs is a line without a function, or the function before, past its end.
        is_padding = len(theirs) == 1 and (theirs[0].name == "??" or symbols.is_gap(address))
        return not theirs or is_padding, {5} if is_padding else classes
    if not theirs or theirs[0].name == "??":
        # Assembly and the like, which only the symbol table names.
        is_known = symbols.covers(ours[-1].name, address) and len(ours) == 1
        if is_known and theirs and (ours[0].line, theirs[0].line) != (0, 0):
            is_known = ours[0].line == theirs[0].line and same_file(ours[0].file, theirs[0].file) is not None
        return is_known, {2} if is_known else classes
    if len(ours) != len(theirs):
        return False, classes
    for i, (a, b) in enumerate(zip(ours, theirs)):
        name = same_name(a.name, b.name, i == len(ours) - 1, symbols, address)
        has_no_line = a.line == b.line == 0
        file = 0 if a.file == b.file else 12 if has_no_line else same_file(a.file, b.file)
        has_other_column = has_columns and a.column != b.column and not has_no_line
        if name is None or file is None or a.line != b.line or has_other_column:
            return False, classes
        if has_no_line and a.column != b.column:
            classes.add(12)
        classes |= {c for c in (name, file) if c}
    return True, classes


def compare(name, path, referee, referee_path, symbols, n, debug_root, totals):
    addresses = sample(path, n)
    begin = time.monotonic()
    ours = resolve(path, addresses, debug_root)
    middle = time.monotonic()
    theirs = referee(referee_path, addresses)
    end = time.monotonic()
    equal = plain = inlined = 0
    by_class = collections.Counter()
    shown = 0
    for address, a, b in zip(addresses, ours, theirs):
        is_equal, classes = judge(a, b, symbols, address, referee is llvm)
        equal += is_equal
        plain += is_equal and not classes
        inlined += len(a) > 1
        for c in classes if is_equal else ():
            by_class[c] += 1
        if not is_equal and shown < int(os.environ.get("SHOW", "2")):
            shown += 1
            print("  %#x\n    ours   %s\n    theirs %s" % (address, a, b))
    share = 100.0 * equal / len(addresses)
    print("| %s | %s | %d | %d | %.3f %% | %.3f %% | %s | %.1f s, %.1f s |" % (
        name, referee.__name__, len(addresses), inlined, 100.0 * plain / len(addresses), share,
        ", ".join("%d: %.2f %%" % (c, 100.0 * k / len(addresses)) for c, k in sorted(by_class.items())) or "-",
        middle - begin, end - middle), flush=True)
    expect(share >= 99.9, "%s: %.3f %%" % (name, share))
    totals[0] += len(addresses)
    totals[1] += equal


def without_symbols(path, folder):
    """The referee prefers the symbol table's names for outermost functions: it gets a copy without."""
    out = os.path.join(folder, "referee")
    subprocess.run(["llvm-objcopy-14", "--remove-section=.symtab", path, out], check=True)
    return out


def debug_file(path):
    done = subprocess.run(["readelf", "-n", path], capture_output=True, text=True)
    found = re.search(r"Build ID: ([0-9a-f]+)", done.stdout)
    out = "/usr/lib/debug/.build-id/%s/%s.debug" % (found[1][:2], found[1][2:]) if found else ""
    return out if os.path.exists(out) else None


def compare_programs(n, totals):
    with tempfile.TemporaryDirectory() as folder:
        for program in agreement_programs.build(folder, llvm, elfutils, binutils):
            referee_path = program.referee_path
            # llvm-objcopy breaks Go's files; Go has one name for each function anyhow.
            if program.referee is llvm and program.name != "Go":
                referee_path = without_symbols(referee_path, folder)
            compare(program.name, program.path, program.referee, referee_path, Symbols(program.path), n, "", totals)


def compare_system(files, n, totals):
    with tempfile.TemporaryDirectory() as folder:
        for name, path in files:
            debug = debug_file(path) if os.path.exists(path) else None
            if not debug:
                print("not here: %s" % name)
                continue
            compare(name, path, llvm, without_symbols(debug, folder), Symbols(path, debug), n, None, totals)


def main(arguments):
    n_programs, n_system, files, is_few = 40000, 300000, [], False
    while arguments:
        word = arguments.pop(0)
        if word == "--programs":
            n_programs = int(arguments.pop(0))
        elif word == "--system":
            n_system = int(arguments.pop(0))
        elif word == "--few":
            is_few = True
        else:
            files.append((os.path.basename(word), word))
    for program in ("llvm-symbolizer-14", "llvm-objcopy-14", "eu-addr2line", "addr2line", "nm", "readelf", "g++"):
        need(program)
    if is_few:
        agreement_programs.keep_few()
    totals = [0, 0]
    print("| class | referee | addresses | inlined | equal | with what is explained | classes | ours, theirs |")
    print("|---|---|---|---|---|---|---|---|")
    if n_programs:
        compare_programs(n_programs, totals)
    if n_system:
        compare_system(files or SYSTEM, n_system, totals)
    print("%d addresses, %.4f %% agree" % (totals[0], 100.0 * totals[1] / max(totals[0], 1)))
    finish()


if __name__ == "__main__":
    main(sys.argv[2:])
