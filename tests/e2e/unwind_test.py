# SPDX-License-Identifier: Apache-2.0
"""Callers of code without frame pointers: by copied stacks, live and out of perf.data, the same as frame pointers find
in the same program built with them; and what is said where a stack could not be unwound to its start."""
from support_unwind import *
from support_corpus import CORPUS

there = folder()
try:
    need_sampling()
    need("gcc")
except Skip as why:
    print("skipped: %s" % why)
    sys.exit(77)


def out(name):
    return os.path.join(there, name)


def test_paths_are_those_of_the_twin_with_frame_pointers():
    # Not through the C library, which has none.
    own = {"leaf", "deep", "main"}
    source = RECURSION_C.replace("\t\tsort(i);\n", "")
    plain = build("plain", source, *OPTIMIZED, "-g")
    twin = build("twin", source, "-O2", "-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer", "-w", "-g")
    ours, said = record(out("plain.pb.gz"), "--", plain, "4000")
    assert said["thread start"] >= 0.99 * said["unwound"], said
    run("record", "-g", "fp", "-F", "1999", "-o", out("twin.pb.gz"), "--", twin, "4000", check=0)
    mine, theirs = paths(ours, own), paths(Recording(out("twin.pb.gz")), own)
    # The twin's prologues miss a caller now and then; what is frequent is the same on both sides.
    frequent = {path for path, share in theirs.items() if share > 0.01}
    assert len(frequent) > 10, theirs
    assert frequent <= set(mine), frequent - set(mine)
    for path, share in mine.items():
        assert share < 0.01 or path in theirs, path
        # One chain without a gap: leaf, some deep, main.
        assert path[-1] == "main" and list(path).count("main") == 1, path


def test_perf_data_gives_what_live_gives():
    program = build("recursion", RECURSION_C, *OPTIMIZED, "-g")
    live, _ = record(out("live.pb.gz"), "--", program)
    run("record", "-g", "dwarf", "-F", "1999", "-o", out("r.data"), "--", program, check=0)
    run("convert", out("r.data"), "-o", out("r.pb.gz"), check=0)
    own = {"leaf", "deep", "compare", "sort", "main"}
    for recording in (live, Recording(out("r.pb.gz"))):
        found = paths(recording, own)
        assert sum(found.get(path, 0) for path in found if path[-1] == "main") > 0.99, found
        through_library = sum(share for path, share in found.items() if path[:2] == ("leaf", "compare"))
        assert through_library > 0.2, found


def svmas_of_perf(path):
    """User parts as perf script unwinds them: [addresses in the ELF, leaf first]."""
    done = subprocess.run([find_perf(), "script", "--no-inline", "-i", path, "-F", "ip,sym,dso"], capture_output=True)
    stacks, frames = [], []
    for line in done.stdout.decode("utf-8", "replace").splitlines() + [""]:
        found = re.match(r"\s+([0-9a-f]+) (.*) \((.*)\)$", line)
        if found and not found.group(3).startswith("[kernel") and found.group(3) != "[unknown]":
            frames.append(int(found.group(1), 16))
        elif not found and frames:
            stacks.append(tuple(frames))
            frames = []
    return stacks


def check_against_perf(path, least, exact_min):
    """Each user stack of perf script is one of ours, as far as perf script unwinds it."""
    run("convert", path, "-o", out("c.pb.gz"), "--trust-paths", check=0)
    ours = set()
    for frames, _, _ in Recording(out("c.pb.gz")).stacks:
        user = []
        for frame in frames:
            if not frame.mapping.startswith("[kernel") and not frame.mapping.startswith("[stack cut") and \
               (not user or user[-1] != frame.address):
                user.append(frame.address)
        ours.update(tuple(user[:n]) for n in range(1, len(user) + 1))
    theirs = svmas_of_perf(path)
    assert len(theirs) >= least, (path, len(theirs))
    same, wrong = 0, []
    for stack in theirs:
        joined = tuple(a for i, a in enumerate(stack) if not i or stack[i - 1] != a)
        if joined in ours:
            same += 1
        else:
            wrong.append(joined)
    assert same >= exact_min * len(theirs), (same, len(theirs), [hex(a) for a in wrong[0]])


def test_perf_script_unwinds_our_file_to_the_same_frames():
    find_perf()
    program = build("recursion_nodebug", RECURSION_C, *OPTIMIZED)
    run("record", "-g", "dwarf,16K", "-F", "499", "-e", "cpu-clock:u", "-o", out("perf.data"), "--", program, check=0)
    check_against_perf(out("perf.data"), 50, 0.99)


def test_file_of_the_corpus_is_as_perf_script_shows_it():
    find_perf()
    path = os.path.join(CORPUS, "live", "x86_64-perf6.1-dwarf.data")
    if not os.path.exists(path):
        raise Skip("no corpus")
    check_against_perf(path, 10, 1)


def test_git_reaches_the_start_of_its_threads():
    need("git")
    script = r"""cd "$1"; git init -q repo; cd repo
for i in $(seq 1 20); do seq $((i * 1000)) $((i * 1000 + 2000)) > f$i; git add .
git -c user.name=a -c user.email=a@b commit -q -m c$i; done
for i in $(seq 1 25); do git log -p --stat > /dev/null; git gc -q; rm -rf ../clone; git clone -q "file://$1/repo" ../clone; done
"""
    recording, said = record(out("git.pb.gz"), "-a", "-d", "10", "--", "sh", "-c", script, "sh", folder(), hz=1999)
    of_git = recording.of(comm="git")
    user = [(f, v) for f, v, _ in of_git if any(not x.mapping.startswith("[kernel") for x in f)]
    n = sum(v[0] for _, v in user)
    cut = sum(v[0] for f, v in user if f[-1].mapping.startswith("[stack cut"))
    assert n > 100, n
    # 95 % and more once the copies have grown; the first second, and a busy host, have fewer.
    assert n - cut >= 0.9 * n, (cut, n, said)
    assert said["unwound"] >= n and said["thread start"] > 0, said


def test_cut_stack_says_so_in_its_last_frame():
    program = build("deep", RECURSION_C, *OPTIMIZED, "-g")
    recording, said = record(out("cut.pb.gz"), "--", program, "60", "400", stack="1K")
    assert said["copied stack too short"] > 0.5 * said["unwound"], said
    assert recording.comment("user_stacks_unwound") == said["unwound"], recording.comments
    cuts = [text for text in recording.comments if text.startswith("user_stacks_cut, copied stack too short: ")]
    assert [int(text.rsplit(" ", 1)[1]) for text in cuts] == [said["copied stack too short"]], recording.comments
    marked = recording.count(lambda f, _: f[-1].name == "[stack cut: copied stack too short]")
    assert marked == said["copied stack too short"], (marked, said)
    for frames, _, _ in recording.stacks:
        assert not any((f.name or "").startswith("[stack cut") for f in frames[:-1]), [f.name for f in frames]
    # Nothing is lost or doubled by it.
    recording.check_conservation()


def test_copies_grow_until_the_stacks_fit():
    # 300 frames of some 100 bytes do not fit into the first size, but into the second; and no sample is lost by it.
    source = RECURSION_C.replace("unsigned r = n ?", "volatile char room[64]; room[n % 64] = 1; unsigned r = n ?")
    program = build("growing", source.replace("\t\tsort(i);\n", ""), *OPTIMIZED, "-g")
    recording, said = record(out("growing.pb.gz"), "-a", "-d", "6", "--", "timeout", "7", program, "100000", "300", check=124)
    stacks = recording.of(comm="growing")
    deep = [(sum(f.name == "deep" for f in frames), frames[-1].name, values[0]) for frames, values, _ in stacks]
    whole = sum(n for depth, last, n in deep if last == "_start" and depth > 290)
    assert whole > 0, said
    assert said["copied stack too short"] < 0.6 * said["unwound"], said
    recording.check_conservation()


def test_handler_on_its_own_stack_is_told_apart():
    program = build("apart", SIGNAL_C, *OPTIMIZED, "-g")
    recording, said = record(out("apart.pb.gz"), "--", program, "apart")
    assert said["goes on in another stack"] > 0 and "copied stack too short" not in said, said
    same, said = record(out("same.pb.gz"), "--", program)
    assert said["thread start"] == said["unwound"], said
    # The interrupted function stands under the trampoline, at the very instruction.
    through = [[x.name for x in f] for f, _, _ in same.stacks if "handler" in [x.name for x in f]]
    assert through
    for names in through:
        at = names.index("handler")
        assert names[at + 1] is None or "restore_rt" in names[at + 1]  # libc's symbol table names it alone
        assert names[-3:] != names[at:at + 3], names
        assert names[at + 2] in ("burn", "work", "jump", "main") or "time" in (names[at + 2] or "") or \
            names[at + 2] is None or "jmp" in names[at + 2], names


def test_auto_keeps_the_longer_one():
    # 100 frames of 200 bytes do not fit into the copy, but into the kernel's limit of 127 frames.
    source = RECURSION_C.replace("unsigned r = n ?", "volatile char room[200]; room[n % 200] = 1; unsigned r = n ?") \
                        .replace("\t\tsort(i);\n", "")
    with_pointers = build("with_pointers", source, "-O2", "-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer", "-g", "-w")
    without = build("without_pointers", RECURSION_C, *OPTIMIZED, "-g")
    done = run("record", "-v", "-g", "auto,4K", "-F", "1999", "-o", out("a.pb.gz"), "--", with_pointers, "300", "100", check=0)
    contested = re.search(r"(\d+) had a chain of frame pointers as well, which reached further in (\d+)", done.stderr)
    assert contested and int(contested.group(2)) > 0.5 * int(contested.group(1)), done.stderr
    recording = Recording(out("a.pb.gz"))
    assert recording.comment("user_stacks_by_frame_pointers") == int(contested.group(2)), recording.comments
    depth = max(sum(f.name == "deep" for f in frames) for frames, _, _ in recording.stacks)
    assert depth >= 99, depth
    done = run("record", "-v", "-g", "auto", "-F", "1999", "-o", out("b.pb.gz"), "--", without, check=0)
    said = summary(done.stderr)
    assert said["thread start"] >= 0.99 * said["unwound"] and "reached further in 0" in done.stderr, done.stderr


def test_code_made_at_run_time_is_followed_by_its_frame_pointers():
    if os.uname().machine != "x86_64":
        raise Skip("x86-64 code")
    program = build("jit", JIT_C, *OPTIMIZED, "-g")
    recording, said = record(out("jit.pb.gz"), "--", program)
    assert said["thread start"] >= 0.99 * said["unwound"], said
    burn = [[f.name for f in frames] for frames, _, _ in recording.stacks if frames[0].name == "burn"]
    assert burn
    for names in burn:
        assert names[2] == "main" and names[1] not in ("main", "burn"), names


def test_caller_that_ends_in_a_call_is_itself_and_not_its_neighbour():
    program = build("noreturn", NORETURN_C, *OPTIMIZED, "-g", "-fno-toplevel-reorder", "-fno-reorder-functions",
                    "-fno-optimize-sibling-calls", "-fno-ipa-ra")
    recording, _ = record(out("noreturn.pb.gz"), "--", program)
    spins = [[f.name for f in frames] for frames, _, _ in recording.stacks if frames[0].name == "spin"]
    assert spins
    for names in spins:
        assert names[1:3] == ["caller", "main"], names
    assert "innocent" not in {f.name for frames, _, _ in recording.stacks for f in frames}


def test_direct_caller_is_there_for_a_leaf_without_a_frame():
    source = BURN_SOURCE
    program = build("frameless", source, "-O1", "-fno-omit-frame-pointer", "-momit-leaf-frame-pointer", "-w")
    recording, _ = record(out("frameless.pb.gz"), "--", program, "100")
    hot = [[f.name for f in frames] for frames, _, _ in recording.stacks if (frames[0].name or "").startswith("hot_")]
    assert hot
    for names in hot:
        assert names[1:3] == ["mid_one", "main"], names


def test_vdso_is_walked_through():
    source = r"""#include <time.h>
volatile long sink;
__attribute__((noinline)) static void ask(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); sink += t.tv_nsec; }
int main(void) { for (int i = 0; i < 8000000; i++) ask(); return 0; }
"""
    program = build("clock", source, *OPTIMIZED, "-g")
    recording, said = record(out("clock.pb.gz"), "--", program)
    assert said["thread start"] >= 0.99 * said["unwound"], said
    inside = [[f.name for f in frames] for frames, _, _ in recording.stacks if frames[0].mapping.startswith("[vdso")]
    if not inside:
        raise Skip("clock_gettime is not answered by the vdso here")
    for names in inside:
        assert names[-1] == "_start" and "main" in names, names


def test_none_and_bad_sizes():
    program = build("none", RECURSION_C, *OPTIMIZED)
    run("record", "-g", "none", "-o", out("none.pb.gz"), "--", program, "50", check=0)
    assert all(len(frames) == 1 for frames, _, _ in Recording(out("none.pb.gz")).stacks)
    for value in ("dwarf,9", "dwarf,0", "dwarf,65536000", "fp,8K", "dwarf,8K,8K", "gdb", ""):
        done = run("record", "-g", value, "--", "true", check=2)
        assert "--call-graph" in done.stderr, done.stderr


main(globals())
