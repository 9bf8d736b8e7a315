# SPDX-License-Identifier: Apache-2.0
"""A Go program recorded by perfpipe gives a profile in the form that go build -pgo= takes, and go takes it (FR-90)."""
import gzip, re
from support import *
from support_pprof import Pprof, message
from support_pprof_maker import field

there = folder()
SOURCE = """package main

import (
	"fmt"
	"strings"
	"time"
)

type shape interface{ area(n int) int }
type square struct{ side int }
type circle struct{ radius int }

func (s square) area(n int) int { return s.side*s.side + n }
func (c circle) area(n int) int { return 3*c.radius*c.radius - n }

//go:noinline
func sumAreas(shapes []shape, n int) int {
	sum := 0
	for _, s := range shapes {
		sum += s.area(n)
	}
	return sum
}

//go:noinline
func countWords(text string) int { return len(strings.Fields(text)) }

func main() {
	shapes := []shape{square{2}, square{3}, square{4}, circle{1}}
	text := strings.Repeat("some words of text ", 200)
	sum := 0
	for end := time.Now().Add(1200 * time.Millisecond); time.Now().Before(end); {
		for n := 0; n < 20000; n++ {
			sum += sumAreas(shapes, n)
		}
		sum += countWords(text)
	}
	fmt.Println(sum)
}
"""
_cache = {}


def out(name):
    return os.path.join(there, name)


def go_run(*words, cwd=None):
    """go without network, and with a cache that outlives this run: its library takes long to compile."""
    go = shutil.which("go")
    if not go:
        raise Skip("no go")
    env = dict(os.environ, HOME=there, GOFLAGS="-mod=mod", GOPROXY="off", GOTOOLCHAIN="local", GOWORK="off", CGO_ENABLED="0",
               GOCACHE=os.path.join(os.path.dirname(binary), "go-cache"))
    return subprocess.run([go, *words], capture_output=True, text=True, env=env, timeout=500, cwd=cwd)


def program():
    if "program" not in _cache:
        os.makedirs(out("module"), exist_ok=True)
        write(out("module/main.go"), SOURCE.encode())
        write(out("module/go.mod"), b"module example.test/shapes\n\ngo 1.19\n")
        done = go_run("build", "-o", out("shapes"), ".", cwd=out("module"))
        if done.returncode:
            raise Skip("go build: " + done.stderr[-300:])
        _cache["program"] = out("shapes")
    return _cache["program"]


def profile():
    if "profile" not in _cache:
        need_sampling()
        run("record", "-F", "999", "-o", out("go.pb.gz"), "--", program(), check=0)
        _cache["profile"] = Pprof(out("go.pb.gz"))
    return _cache["profile"]


def function_names():
    return {profile().text(f.get(2, 0)) for f in profile().functions}


def go_version():
    found = re.search(r"go(\d+)\.(\d+)", go_run("version").stdout)
    return (int(found.group(1)), int(found.group(2))) if found else (0, 0)


def test_columns_are_those_that_go_looks_for():
    assert profile().types == [("samples", "count"), ("cpu", "nanoseconds")], profile().types
    totals = {name: total for name, _, total in profile().totals()}
    assert totals["samples"] > 200 and totals["cpu"] > 0.2e9, totals
    assert not profile().broken_rules(), profile().broken_rules()


def test_functions_have_the_names_of_their_package():
    names = function_names()
    assert {"main.main", "main.sumAreas", "main.countWords", "strings.Fields"} <= names, sorted(names)[:40]
    assert "main.square.area" in names or "main.(*square).area" in names, sorted(n for n in names if "main." in n)


def test_stacks_go_through_the_callers():
    p = profile()
    functions = {f[1]: p.text(f.get(2, 0)) for f in p.functions}
    names = {l[1]: [functions[message(line)[1]] for line in l[4]] for l in p.locations}
    chains = [[name for place in stack for name in names[place]] for stack, _, _ in p.samples]
    assert any("main.sumAreas" in chain and "main.main" in chain[chain.index("main.sumAreas"):] for chain in chains)


def test_functions_have_start_lines():
    if not any(f.get(5) for f in profile().functions):
        raise Skip("start lines come from DWARF, which is not read yet")
    starts = {profile().text(f.get(2, 0)): f.get(5, 0) for f in profile().functions}
    line = SOURCE.split("\n").index("func sumAreas(shapes []shape, n int) int {") + 1
    assert starts["main.sumAreas"] == line, (starts["main.sumAreas"], line)


def with_start_lines(path):
    """The profile with a start line in each function and a line in each frame, where they are missing."""
    made = b""
    for number, value in fields(gzip.decompress(open(path, "rb").read())):
        if number == 4:
            parts = [(k, v + field(2, 1) if k == 4 and 2 not in dict(fields(v)) else v) for k, v in fields(value)]
            value = b"".join(field(k, v) for k, v in parts)
        elif number == 5 and 5 not in dict(fields(value)):
            value += field(5, 1)
        made += field(number, value)
    return write(out("with-lines.pb"), made)


def build_with(path):
    if go_version() < (1, 21):
        raise Skip("go %d.%d has no -pgo" % go_version())
    done = go_run("build", "-pgo=" + path, "-o", out("shapes-pgo"), ".", cwd=out("module"))
    if done.returncode == 0:
        assert re.search(r"build\s+-pgo=", go_run("version", "-m", out("shapes-pgo")).stdout)
        assert subprocess.run([out("shapes-pgo")], capture_output=True, timeout=60).returncode == 0
    return done


def test_go_build_takes_the_profile():
    has_lines = any(f.get(5) for f in profile().functions)
    done = build_with(out("go.pb.gz"))
    if done.returncode and "start_line" in done.stderr and not has_lines:
        raise Skip("go build wants start lines, which come from DWARF, which is not read yet: " +
                   done.stderr.strip().splitlines()[-1][:200])
    assert done.returncode == 0, done.stderr


def test_nothing_but_start_lines_keeps_go_build_from_taking_it():
    profile()
    done = build_with(with_start_lines(out("go.pb.gz")))
    assert done.returncode == 0, done.stderr
    done = go_run("build", "-pgo=" + out("with-lines.pb"), "-gcflags=-d=pgodebug=1", "-o", out("shapes-pgo"), ".",
                  cwd=out("module"))
    hot = done.stdout + done.stderr
    assert done.returncode == 0 and re.search(r"hot-.*main\.", hot), hot[-500:]


def test_a_converted_recording_of_perf_has_the_same_form():
    from support_recording import record
    record("-F", "999", "-g", "-o", out("perf.data"), command=[program()])
    run("convert", "-i", out("perf.data"), "-o", out("perf.pb.gz"), check=0)
    converted = Pprof(out("perf.pb.gz"))
    assert converted.types == [("samples", "count"), ("cpu", "nanoseconds")]
    names = {converted.text(f.get(2, 0)) for f in converted.functions}
    assert {"main.main", "main.sumAreas", "main.countWords"} <= names
    assert converted.text(converted.mappings[0].get(5, 0)) == os.path.realpath(program())


main(globals())
