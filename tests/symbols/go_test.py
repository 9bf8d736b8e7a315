# SPDX-License-Identifier: Apache-2.0
"""
Go programs without symbols and DWARF, named from their run time's tables: functions and lines against
`go tool addr2line`, inlined calls against the DWARF of the same program as llvm-symbolizer reads it.
"""
import os, re, subprocess, tempfile
from agreement_support import *
import go_tables

PROGRAM = """package main

import (
	"fmt"
	"os"
	"sort"
	"strings"
)

type number interface{ ~int | ~float64 }
type shape interface{ area() float64 }
type square struct{ side float64 }

func (s square) area() float64 { return times(s.side, s.side) }

func times[T number](a, b T) T { return a * b }
func plus(a, b int) int       { return deep(a) + b }
func deep(a int) int          { return a*7 + len(os.Args) }

//go:noinline
func work(n int) (sum int) {
	defer func() { sum++ }()
	for i := 0; i < n; i++ {
		sum += plus(i, n)
		if sum%3 == 0 {
			sum -= times(i, 2)
		}
	}
	return sum
}

func main() {
	words := strings.Fields("some words to be sorted by their length")
	sort.Slice(words, func(i, j int) bool { return len(words[i]) < len(words[j]) })
	var s shape = square{float64(work(100))}
	fmt.Println(words, s.area())
}
"""
SAMPLE = 5000


def plain(name):
    """The run time's table has no type arguments, and no mark of the calling convention."""
    return re.sub(r"\[.*\]", "[...]", re.sub(r"\.abi(0|internal)$", "", name))


def addr2line(go, program, addresses):
    """[(function, "file:line")]"""
    done = subprocess.run([go, "tool", "addr2line", program], input="".join("0x%x\n" % a for a in addresses),
                          capture_output=True, text=True, check=True)
    lines = done.stdout.split("\n")
    return [(plain(lines[2 * i]), lines[2 * i + 1]) for i in range(len(addresses))]


def compare_tables(go, program, addresses):
    ours = resolve(program, addresses, "")
    n_named = 0
    theirs = addr2line(go, program, addresses)
    if theirs[0][0] == "?":
        print("%s: of a layout that this go does not know" % os.path.basename(program))
        return
    for address, frames, wanted in zip(addresses, ours, theirs):
        if not frames:  # padding; go gives it to the function before
            continue
        n_named += 1
        found = (plain(frames[-1].name), "%s:%d" % (frames[0].file, frames[0].line))
        if not frames[0].line:
            found, wanted = found[0], wanted[0]
        expect(found == wanted, "%s %#x: %s, go says %s" % (program, address, found, wanted))
    expect(n_named * 10 > len(addresses) * 9, "%s: %d of %d named" % (program, n_named, len(addresses)))


def go_frame(frame):
    # Linkers put the compilation's folder, ".", before names of what has no file.
    return plain(frame.name), re.sub(r"^(\./)*<", "<", frame.file or ""), frame.line


def compare_chains(full, stripped, addresses):
    ours, theirs = resolve(stripped, addresses, ""), llvm(full, addresses)
    n_inlined, n_other = 0, 0
    for a, b in zip(ours, theirs):
        a, b = [go_frame(f) for f in a], [go_frame(f) for f in b]
        # DWARF of newer versions has no lines where the compiler made the code up.
        b = [x if x[2] else y for x, y in zip(b, a)] if len(a) == len(b) else b
        n_inlined += len(a) > 1
        n_other += a != b
    expect(n_inlined * 10 > len(addresses), "%s: %d inlined" % (full, n_inlined))
    expect(n_other * 1000 <= len(addresses), "%s: %d of %d chains differ" % (full, n_other, len(addresses)))
    print("%s: %d addresses, %d inlined, %d chains differ" % (os.path.basename(full), len(addresses), n_inlined, n_other))


def build(go, folder, machine, mode):
    environment = dict(os.environ, GOARCH=machine, CGO_ENABLED="0", GOFLAGS="-mod=mod", GO111MODULE="on",
                       GOCACHE=os.path.join(folder, "cache"), HOME=folder, GOTOOLCHAIN="local")
    names = []
    for name, flags in (("full", ""), ("stripped", "-s -w")):
        names.append(os.path.join(folder, "%s-%s-%s" % (name, machine, mode)))
        done = subprocess.run([go, "build", "-buildmode=" + mode, "-ldflags=" + flags, "-o", names[-1], "."], cwd=folder,
                              env=environment, capture_output=True, text=True)
        if done.returncode:
            print("not built: %s %s: %s" % (machine, mode, done.stderr.strip()[-200:]))
            return None
    return names


def main():
    go = "/usr/bin/go"
    need(go), need("llvm-symbolizer-14")
    with tempfile.TemporaryDirectory() as folder:
        for _, path in go_tables.write_all(folder):
            start, size = text_of(path)
            compare_tables(go, path, range(start, start + size))
        with open(os.path.join(folder, "main.go"), "w") as file:
            file.write(PROGRAM)
        with open(os.path.join(folder, "go.mod"), "w") as file:
            file.write("module example.org/p\ngo 1.18\n")
        n_built = 0
        for machine, mode in (("amd64", "exe"), ("amd64", "pie"), ("s390x", "exe")):
            names = build(go, folder, machine, mode)
            if names:
                n_built += 1
                addresses = sample(names[0], SAMPLE)
                compare_tables(go, names[1], addresses)
                compare_chains(names[0], names[1], addresses)
        expect(n_built > 0, "no program was built")
    finish()


main()
