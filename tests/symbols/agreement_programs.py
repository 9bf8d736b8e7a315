# SPDX-License-Identifier: Apache-2.0
"""Programs for the comparison, each with the file that its referee reads. A way that is not possible here is left out."""
import os, shutil, subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
SMALL = os.path.join(HERE, "../unit/symcache/dwarf_programs")

CXX = r"""
#include <algorithm>
#include <iostream>
#include <map>
#include <regex>
#include <stdexcept>
#include <string>
#include <vector>

namespace {
struct Failure : std::runtime_error {
	using std::runtime_error::runtime_error;
};

template <typename K, typename V> struct Table {
	std::map<K, std::vector<V>> rows;
	void add(const K &key, V value)
	{
		if (value < V())
			throw Failure("negative");
		rows[key].push_back(value);
	}
	template <typename F> V fold(F f) const
	{
		V sum = V();
		for (const auto &[key, values] : rows)
			for (V value : values)
				sum = f(sum, value);
		return sum;
	}
};

template <int N> int nest(int n) { return nest<N - 1>(n) * 3 + n; }
template <> int nest<0>(int n) { return n; }

std::vector<std::string> words(const std::string &text)
{
	static const std::regex word("([a-z]+)|([0-9]+(\\.[0-9]*)?)");
	std::vector<std::string> out;
	for (std::sregex_iterator i(text.begin(), text.end(), word), end; i != end; ++i)
		out.push_back(i->str());
	return out;
}
}

int main(int argc, char **argv)
{
	Table<std::string, double> table;
	for (int i = 0; i < argc; i++) {
		try {
			for (const auto &word : words(argv[i]))
				table.add(word, (double)word.size() - nest<7>(i) % 5);
		} catch (const Failure &failure) {
			std::cerr << failure.what() << '\n';
		}
	}
	auto list = words("b 2 a 1.5 c");
	std::sort(list.begin(), list.end(), [](const auto &a, const auto &b) { return a > b; });
	std::cout << table.fold([](double a, double b) { return a + b; }) << list.front() << '\n';
}
"""

RUST = """
use std::collections::HashMap;
use std::fmt::Debug;

#[derive(Debug, Clone)]
struct Row<T> { key: String, value: T }

fn twice<T: Clone + Debug>(row: &Row<T>) -> Vec<Row<T>> { vec![row.clone(), row.clone()] }

fn main() {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for word in std::env::args().flat_map(|a| a.split('-').map(String::from).collect::<Vec<_>>()) {
        *counts.entry(word).or_insert(0) += 1;
    }
    let mut rows: Vec<_> = counts.into_iter().map(|(key, value)| Row { key, value }).collect();
    rows.sort_by(|a, b| b.value.cmp(&a.value).then_with(|| a.key.cmp(&b.key)));
    println!("{:?}", rows.iter().flat_map(twice).collect::<Vec<_>>());
}
"""

GO = """package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
)

type pair[T any] struct{ A, B T }

func swap[T any](p pair[T]) pair[T] { return pair[T]{p.B, p.A} }

func main() {
	out, err := json.Marshal(swap(pair[int]{1, len(os.Args)}))
	fmt.Println(string(out), err, regexp.MustCompile("a+b").MatchString(os.Args[0]))
}
"""


class Program:
    def __init__(self, name, path, referee, referee_path=None):
        self.name, self.path, self.referee = name, path, referee
        self.referee_path = referee_path or path


def run(folder, *command, **more):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, **more)
    if done.returncode:
        print("not possible here: %s: %s" % (" ".join(command[:6]), done.stderr.strip()[-160:]))
    return done.returncode == 0


# (name, compiler and its options)
WAYS = [
    ("C++, gcc, DWARF 5, -O2", "g++ -O2 -gdwarf-5"),
    ("C++, gcc, DWARF 4, -O2, type units", "g++ -O2 -gdwarf-4 -fdebug-types-section"),
    ("C++, gcc, DWARF 5, LTO", "g++ -O2 -gdwarf-5 -flto"),
    ("C++, gcc, sections, --gc-sections", "g++ -O2 -gdwarf-5 -ffunction-sections -Wl,--gc-sections"),
    ("C++, clang, DWARF 5, -O2", "clang++-14 -O2 -gdwarf-5"),
    ("C++, clang, DWARF 4, -O2, lld, icf", "clang++-14 -O2 -gdwarf-4 -ffunction-sections -fuse-ld=lld -Wl,--icf=all"),
    ("C++, clang, DWARF 5, LTO", "clang++-14 -O2 -gdwarf-5 -flto -fuse-ld=lld"),
]

SPLIT = [(version, compiler) for version in "45" for compiler in ("g++", "clang++-14")]


def keep_few():
    """Less to compile."""
    WAYS[:] = [WAYS[0], WAYS[2], WAYS[5]]
    SPLIT[:] = SPLIT[-1:]


def build(folder, llvm, elfutils, binutils):
    """Programs, built one by one: each is asked for before the next is made."""
    for name, text in (("p.cc", CXX), ("p.rs", RUST), ("main.go", GO), ("go.mod", "module example.org/p\ngo 1.18\n")):
        with open(os.path.join(folder, name), "w") as file:
            file.write(text)
    path = lambda name: os.path.join(folder, name)
    flags = ["-std=c++17", "p.cc"]
    for i, (name, command) in enumerate(WAYS):
        if run(folder, *command.split(), "-o", "w%d" % i, *flags):
            yield Program(name, path("w%d" % i), llvm)
    for version, compiler in SPLIT:
        one, split = "one%s" % version, "split%s" % version
        base = [compiler, "-O2", "-gdwarf-" + version] + flags
        if run(folder, *base, "-o", one) and run(folder, *base, "-gsplit-dwarf", "-o", split):
            yield Program("C++, %s, DWARF %s, split" % (compiler, version), path(split), llvm, path(one))
    for compiler, tool, version in (("gcc", "dwp", "4"), ("clang-14", "llvm-dwp-14", "5")):
        sources = [os.path.join(SMALL, "main.c"), os.path.join(SMALL, "measure.c")]
        base = [compiler, "-O2", "-gdwarf-" + version] + sources
        if run(folder, *base, "-o", "c-one") and run(folder, *base, "-gsplit-dwarf", "-o", "c-packed") and \
                run(folder, tool, "-e", "c-packed", "-o", "c-packed.dwp"):
            run(folder, "sh", "-c", "rm -f *.dwo")
            yield Program("C, %s, DWARF %s, .dwp" % (compiler, version), path("c-packed"), llvm, path("c-one"))
    if shutil.which("dwz") and os.path.exists(path("w0")):
        for command in (["dwz", "-o", "dwz-one", "w0"], ["sh", "-c", "cp w0 dwz-a && cp w0 dwz-b && dwz -m shared dwz-a dwz-b"]):
            made = "dwz-one" if command[0] == "dwz" else "dwz-a"
            if run(folder, *command):
                yield Program("C++, dwz" + (", shared file" if made == "dwz-a" else ""), path(made), llvm, path("w0"))
    if os.path.exists(path("w0")):
        for kind in ("zlib", "zlib-gnu", "zstd"):
            if run(folder, "objcopy", "--compress-debug-sections=" + kind, "w0", "z-" + kind):
                yield Program("C++, sections packed by " + kind, path("z-" + kind), llvm, path("w0"))
    if run(folder, "gcc", "-O2", "-gdwarf-5", "-o", "c-five", os.path.join(SMALL, "main.c"), os.path.join(SMALL, "measure.c")) and \
            run(folder, "objcopy", "--compress-debug-sections=zstd", "c-five"):
        yield Program("C, gcc, DWARF 5, zstd", path("c-five"), binutils)
    if run(folder, "gcc", "-O2", "-gdwarf-4", "-o", "c-plain", os.path.join(SMALL, "main.c"), os.path.join(SMALL, "measure.c")):
        yield Program("C, gcc, DWARF 4", path("c-plain"), elfutils)
    rustc = shutil.which("rustc", path="/usr/bin:" + os.environ.get("PATH", ""))
    if rustc and run(folder, rustc, "-O", "-g", "-C", "symbol-mangling-version=v0", "-o", "rust", "p.rs"):
        yield Program("Rust", path("rust"), llvm)
    environment = dict(os.environ, CGO_ENABLED="0", GOFLAGS="-mod=mod", GO111MODULE="on", GOTOOLCHAIN="local", HOME=folder,
                       GOCACHE=path("cache"))
    if run(folder, "/usr/bin/go", "build", "-o", "go-program", ".", env=environment):
        yield Program("Go", path("go-program"), llvm)
