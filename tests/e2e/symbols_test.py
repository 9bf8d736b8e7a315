# SPDX-License-Identifier: Apache-2.0
"""Lines and inlined calls in profiles, separate debug files, split DWARF, and the store of symbols."""
import glob, json, os, re, resource, subprocess, time
from support import *

there = folder()

SOURCE = """
#include <vector>
#include <algorithm>
#include <cstdint>

namespace {
template <typename T> inline T mix(T a, T b) { return (a ^ b) * T(0x9e3779b97f4a7c15u); }

struct Table {
	std::vector<uint64_t> items;
	explicit Table(size_t n) : items(n) {
		for (size_t i = 0; i < n; i++)
			items[i] = mix<uint64_t>(i, n);
	}
	inline uint64_t sum() const {
		uint64_t s = 0;
		for (uint64_t v : items)
			s = mix(s, v >> 3);
		return s;
	}
};

__attribute__((noinline)) uint64_t work(Table &table, unsigned seed) {
	table.items[seed % table.items.size()] = seed;
	std::sort(table.items.begin(), table.items.begin() + 512);
	return table.sum();
}
}

int main(int argc, char **argv) {
	Table table(8192);
	uint64_t s = 0;
	for (unsigned i = 0; i < (unsigned)argc * 20000u; i++)
		s += work(table, i);
	return argv[0] && s == 42;
}
"""


def path(name):
    return os.path.join(there, name)


def build(name, *flags):
    need("g++")
    source = write(path("work.cc"), SOURCE.encode())
    subprocess.run(["g++", "-O2", "-g", *flags, "-o", path(name), source], check=True, cwd=there)
    return path(name)


def cache(name):
    return ["--symbol-cache", path(name)]


def stored(name):
    return sorted(glob.glob(path(name) + "/*.sym"))


def plain(name):
    """Without what marks a clone; DWARF gives all of them the name of the function."""
    return re.sub(r"\.(isra|part|constprop|cold)\b.*", "", name)


def referee(program, addresses):
    """{address: [(function, file name, line)]}, the innermost call first."""
    need("llvm-symbolizer-14")
    words = "".join("0x%x\n" % a for a in addresses)
    done = subprocess.run(["llvm-symbolizer-14", "--obj=" + program, "--inlining", "--no-demangle", "--output-style=LLVM"],
                          input=words, capture_output=True, text=True, check=True)
    result = {}
    for address, block in zip(addresses, done.stdout.split("\n\n")):
        lines = block.strip().split("\n")
        frames = []
        for i in range(0, len(lines) - 1, 2):
            place = lines[i + 1].rsplit(":", 2)
            frames.append((plain(lines[i]), os.path.basename(place[0]), int(place[1])))
        result[address] = frames
    return result


def raw_locations(profile, program):
    """The same of a profile, as go tool pprof reads it."""
    text = pprof("-raw", profile)
    mappings = dict(re.findall(r"^(\d+): 0x[0-9a-f]+/0x[0-9a-f]+/0x[0-9a-f]+ (\S+)", text.split("\nMappings\n")[1], re.M))
    result, current = {}, None
    for line in text.split("\nLocations\n")[1].split("\nMappings\n")[0].split("\n"):
        head = re.match(r"\s+\d+: 0x([0-9a-f]+) (?:M=(\d+) )?(.*)", line)
        if head:
            current = None
            if mappings.get(head.group(2)) == program:
                current = result.setdefault(int(head.group(1), 16), [])
        # NAME FILE:LINE[:COLUMN] s=START[(LINKAGE NAME, where it is another)]
        frame = re.fullmatch(r"\s*(.+?) (\S+):(\d+)(?::\d+)? s=\d+(?:\((.+)\))?", head.group(3) if head else line)
        if frame and current is not None:
            current.append((plain(frame.group(4) or frame.group(1)), os.path.basename(frame.group(2)), int(frame.group(3))))
    return result


def shown(program, addresses, *words):
    os.makedirs(words[words.index("--symbol-cache") + 1], 0o700, exist_ok=True)
    text = run("symbols", "show", program, *["0x%x" % a for a in addresses], "--format", "json", *words, check=0).stdout
    return {int(item["address"], 16): [(plain(f["linkage_name"]), os.path.basename(f["file"] or "??"), f["line"]) for f in item["frames"]]
            for item in json.loads(text)["addresses"]}


def text_addresses(program, n):
    """n addresses of its own functions."""
    need("nm")
    found = subprocess.run(["nm", "-S", "--defined-only", program], capture_output=True, text=True, check=True).stdout
    result = []
    for start, size in re.findall(r"^([0-9a-f]+) ([0-9a-f]+) [tTW] (?:main|_ZN?\S+)$", found, re.M):
        result += range(int(start, 16), int(start, 16) + int(size, 16), 3)
    return result[::max(1, len(result) // n)][:n]


def agreement(ours, theirs):
    assert ours
    wrong = {a: (ours[a], theirs[a]) for a in ours if ours[a] != theirs[a]}
    assert len(wrong) <= len(ours) // 100, (len(wrong), len(ours), sorted(wrong.items())[:3])
    return ours


def test_lines_and_inlined_calls_of_a_recording_are_those_of_llvm_symbolizer():
    need_sampling()
    program = build("app")
    run("record", "-F", "2000", "--demangle", "none", *cache("c1"), "-o", path("app.pb.gz"), "--", program, check=0)
    ours = raw_locations(path("app.pb.gz"), program)
    # Frames of start-up code have no lines.
    ours = {a: frames for a, frames in ours.items() if frames}
    agreement(ours, referee(program, sorted(ours)))
    assert any(len(frames) > 1 for frames in ours.values()), "nothing inlined was sampled"
    assert stored("c1")


def test_every_address_of_a_program_is_as_llvm_symbolizer_says():
    program = build("all")
    addresses = text_addresses(program, 250)
    agreement(shown(program, addresses, *cache("c2")), referee(program, addresses))


def test_stripped_program_is_named_by_its_debug_file_when_it_comes():
    need("objcopy", "strip", "readelf")
    program = build("whole", "-Wl,--build-id=sha1")
    addresses = text_addresses(program, 250)
    want = referee(program, addresses)
    stripped = path("stripped")
    subprocess.run(["strip", "-o", stripped, program], check=True)
    words = cache("c3") + ["--debug-root", path("debug")]
    poor = shown(stripped, addresses, *words)
    assert not any(line for frames in poor.values() for _, _, line in frames)
    before = json.loads(run("symbols", "ls", *cache("c3"), "--format", "json", check=0).stdout)["entries"]
    assert [e["quality"] for e in before] == ["dynsym"], before
    build_id = before[0]["build_id"]
    debug = path("debug/.build-id/%s/%s.debug" % (build_id[:2], build_id[2:]))
    os.makedirs(os.path.dirname(debug))
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    agreement(shown(stripped, addresses, *words), want)
    after = json.loads(run("symbols", "ls", *cache("c3"), "--format", "json", check=0).stdout)["entries"]
    assert [(e["build_id"], e["quality"]) for e in after] == [(build_id, "dwarf")], after
    # What is kept is better than what is there once the debug file is gone.
    os.unlink(debug)
    agreement(shown(stripped, addresses, *words), want)


def test_split_units_are_asked_for_and_read():
    program = build("split", "-gsplit-dwarf")
    assert glob.glob(path("*.dwo"))
    addresses = text_addresses(program, 250)
    agreement(shown(program, addresses, *cache("c4")), referee(program, addresses))


def test_second_run_takes_what_is_kept():
    program = build("kept")
    run("symbols", "add", program, *cache("c5"), check=0)
    files = stored("c5")
    assert len(files) == 1
    made = os.stat(files[0]).st_ino
    addresses = text_addresses(program, 20)
    shown(program, addresses, *cache("c5"))
    assert [os.stat(f).st_ino for f in stored("c5")] == [made]
    assert open(files[0], "rb").read() == fresh(program, "c6")


def fresh(program, name):
    run("symbols", "add", program, *cache(name), check=0)
    return open(stored(name)[0], "rb").read()


def test_processes_that_build_the_same_at_once_make_one_file():
    program = build("shared")
    want = fresh(program, "c9")
    started = [subprocess.Popen([binary, "symbols", "add", program, *cache("c10")], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
               for _ in range(6)]
    for process in started:
        _, stderr = process.communicate(timeout=100)
        assert process.returncode == 0, stderr
    assert len(stored("c10")) == 1
    assert open(stored("c10")[0], "rb").read() == want


def test_killed_commands_leave_no_wrong_file_and_no_process():
    program = os.path.realpath(binary)
    want = fresh(program, "c11")
    for i in range(12):
        process = subprocess.Popen([binary, "symbols", "add", program, *cache("c12")], stdout=subprocess.DEVNULL)
        time.sleep(i * 0.02)
        process.kill()
        process.wait()
        for name in stored("c12"):
            assert open(name, "rb").read() == want
            os.unlink(name)
    deadline = time.monotonic() + 10
    while builders_of(path("c12")) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not builders_of(path("c12"))
    assert fresh(program, "c12") == want


def builders_of(word):
    """Processes that were forked by a command with that word; they keep its command line."""
    found = []
    for name in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            if word.encode() in open(name, "rb").read():
                found.append(name)
        except OSError:
            pass
    return found


def test_nothing_is_kept_on_request():
    need_sampling()
    env = dict(os.environ, XDG_CACHE_HOME=path("xdg"), HOME=path("home"))
    run("record", "--no-symbol-cache", "-o", path("n.pb.gz"), "--", *burn_command(50000), check=0, env=env)
    assert not os.path.exists(path("xdg")) and not os.path.exists(path("home"))
    run("record", "-o", path("n.pb.gz"), "--", *burn_command(50000), check=0, env=env)
    assert glob.glob(path("xdg/perfpipe/symbols/*.sym"))


def test_damaged_files_are_removed_and_old_ones_dropped():
    program = build("tended")
    run("symbols", "add", program, *cache("c7"), check=0)
    name = stored("c7")[0]
    with open(name, "r+b") as f:
        f.seek(-100, 2)
        f.write(b"\xa5" * 50)
    summary = json.loads(run("symbols", "verify", *cache("c7"), "--format", "json", check=0).stdout)
    assert summary["removed"] == 1 and summary["files"] == 0, summary
    (removed,) = summary["removed_files"]
    assert removed["name"] == os.path.basename(name) and removed["reason"], removed
    run("symbols", "add", program, *cache("c7"), check=0)
    summary = json.loads(run("symbols", "gc", "--max-size", "1K", *cache("c7"), "--format", "json", check=0).stdout)
    assert summary["files"] == 0 and not stored("c7")
    assert [f["name"] for f in summary["removed_files"]] == [os.path.basename(name)], summary
    run("symbols", "add", program, *cache("c7"), check=0)
    os.chmod(name, 0o666)
    text = run("symbols", "verify", *cache("c7"), check=0).stdout.decode()
    assert "removed   %s: " % os.path.basename(name) in text and not stored("c7"), text


def test_a_mistyped_cache_is_told_and_not_made():
    program = build("mistyped-of")
    for words in (["ls"], ["verify"], ["gc"], ["show", "abcd"], ["show", program]):
        done = run("symbols", *words, *cache("mistyped/symbols"), check=66)
        assert "E624" in done.stderr and "mistyped/symbols" in done.stderr, done.stderr
        assert not done.stdout and not os.path.exists(path("mistyped")), words


def test_what_cannot_be_read_is_told_and_remembered():
    need("readelf")
    program = build("cut")
    whole = open(program, "rb").read()
    cut = write(path("cut.elf"), whole[:len(whole) // 3])
    run("symbols", "add", cut, *cache("c8"))  # with or without names, but it ends
    script = write(path("script"), b"#!/bin/sh\n")
    done = run("symbols", "add", script, *cache("c8"), check=65)
    assert "[E622, exit 65]" in done.stderr
    assert "[E613, exit 66]" in run("symbols", "add", path("missing"), *cache("c8"), check=66).stderr
    assert "[E620, exit 66]" in run("symbols", "show", "abcdef", *cache("c8"), check=66).stderr
    os.makedirs(path("open"))
    os.chmod(path("open"), 0o777)
    assert "[E621, exit 73]" in run("symbols", "ls", *cache("open"), check=73).stderr
    for words in ([], ["frob"], ["show"], ["add"], ["ls", "x"], ["show", program, "zz"]):
        run("symbols", *words, *cache("c8"), check=2)


def test_a_borrowed_build_id_of_another_user_names_nothing_of_ours():
    """Anybody can link a program with any build-id; root's names must not come from it."""
    if os.getuid():
        raise Skip("only root can give a file away")
    victim = build("victim", "-Wl,--build-id=0x" + "ab" * 20)
    subprocess.run(["strip", victim], check=True)
    run("symbols", "add", victim, *cache("kept-borrowed"), check=0)
    before = {name: open(name, "rb").read() for name in stored("kept-borrowed")}
    assert len(before) == 1, before
    forged = build("forged", "-Wl,--build-id=0x" + "ab" * 20)  # better: it has DWARF
    os.chown(forged, 65534, 65534)
    run("symbols", "add", forged, *cache("kept-borrowed"), check=0)
    assert len(stored("kept-borrowed")) == 2, stored("kept-borrowed")
    for name, content in before.items():
        assert open(name, "rb").read() == content, "the victim's names changed"


def test_limits_of_the_caller_are_not_remembered():
    """A build that our own ulimit broke says nothing of the file."""
    program = build("limited")

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (2048, resource.RLIM_INFINITY))

    recorded = ("record", "-F", "499", *cache("kept-limited"), "-o", path("limited.pb"), "--", program)
    run("symbols", "add", program, *cache("kept-limited"), preexec_fn=limit)
    run(*recorded, check=0)
    entries = json.loads(run("symbols", "ls", *cache("kept-limited"), "--format", "json", check=0).stdout)["entries"]
    assert "dwarf" in [e["quality"] for e in entries], entries


def test_what_is_asked_for_by_name_is_tried_again():
    program = build("again", "-gsplit-dwarf")
    beside = glob.glob(path("*again*.dwo")) or glob.glob(path("work.dwo"))
    for name in beside:
        os.rename(name, name + ".away")
    run("symbols", "add", program, *cache("kept-again"), check=0)
    for name in beside:
        os.rename(name + ".away", name)
    run("symbols", "add", program, *cache("kept-again"), check=0)
    addresses = text_addresses(program, 100)
    agreement(shown(program, addresses, *cache("kept-again")), referee(program, addresses))


def in_read_only_cache(folder, *words):
    """The command in a mount namespace where the cache cannot be written."""
    os.makedirs(folder, exist_ok=True)
    done = subprocess.run(["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o ro,mode=755 none "$0" && exec "$@"', folder, binary,
                           "symbols", *words], capture_output=True, text=True)
    if "unshare" in done.stderr or "mount:" in done.stderr:
        raise Skip("no mount namespace: " + done.stderr.strip())
    return done


def test_a_cache_that_cannot_be_written_costs_add_its_success_and_show_nothing():
    need("unshare", "mount")
    program = build("kept-not")
    fresh(program, "kept-nowhere")
    address = "%x" % text_addresses(program, 1)[0]
    wanted = json.loads(run("symbols", "show", program, address, "--format", "json", *cache("kept-nowhere"), check=0).stdout)
    done = in_read_only_cache(path("read-only"), "add", program, *cache("read-only"))
    assert done.returncode == 73 and "[E621, exit 73]" in done.stderr, done.stderr
    done = in_read_only_cache(path("read-only"), "show", program, address, "--format", "json", *cache("read-only"))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["addresses"] == wanted["addresses"], done.stdout
    # Nor is a folder needed at all.
    env = {k: v for k, v in os.environ.items() if k not in ("HOME", "XDG_CACHE_HOME")}
    done = run("symbols", "show", program, address, "--format", "json", env=env, check=0)
    assert json.loads(done.stdout)["addresses"] == wanted["addresses"], done.stdout


def test_words_that_look_like_build_ids_are_files_when_nothing_is_kept_of_them():
    folder = path("hexadecimal")
    os.makedirs(folder)
    os.rename(build("hexadecimal-name"), folder + "/c4")
    fresh(build("another"), "kept-hexadecimal")
    done = run("symbols", "show", "c4", "1000", "--format", "json", *cache("kept-hexadecimal"), check=0, cwd=folder)
    assert json.loads(done.stdout)["addresses"], done.stdout
    done = run("symbols", "show", "c5", *cache("kept-hexadecimal"), check=66, cwd=folder)
    assert "[E620, exit 66]" in done.stderr, done.stderr


def test_a_damaged_file_is_told_by_its_id():
    fresh(build("to-damage"), "kept-damaged")
    (kept,) = stored("kept-damaged")
    with open(kept, "r+b") as f:
        f.seek(200)
        f.write(b"\xff" * 64)
    name = os.path.basename(kept)[:-len(".sym")]
    done = run("symbols", "show", name, *cache("kept-damaged"), check=66)
    assert "[E620, exit 66]" in done.stderr and "damaged" in done.stderr, done.stderr
    assert not os.path.exists(kept)


def test_what_an_action_would_ignore_is_refused():
    program = build("named")
    for words in (("ls", "--debug-root", there), ("gc", "--debuginfod=http://127.0.0.1:1"), ("add", program, "--max-size", "1G"),
                  ("verify", "--to", "parca://localhost:1"), ("show", program, "--wait"),
                  ("upload", program, "--to", "parca://localhost:1", *cache("c1")), ("ls", "--token-file", "x")):
        done = run("symbols", *words, check=2)
        assert "[E001, exit 2]" in done.stderr, (words, done.stderr)
    for address in ("-1", "+1", " 1", "", "0x", "1g"):
        assert "not an address" in run("symbols", "show", program, "--", address, check=2).stderr, address


def test_a_file_of_the_current_folder_needs_no_slash():
    build("nearby")
    run("symbols", "add", "nearby", *cache("kept-nearby"), check=0, cwd=there)
    done = run("symbols", "show", "nearby", *cache("kept-nearby"), check=0, cwd=there)
    assert "inlined calls" in done.stdout.decode(), done.stdout


def test_a_named_cache_that_cannot_be_used_is_an_error():
    for name in ("/proc/nothing", write(path("a_file"), b"x")):
        done = run("record", "--symbol-cache", name, "-o", path("n.pb"), "--", "true", check=73)
        assert "E621" in done.stderr, done.stderr


main(globals())
