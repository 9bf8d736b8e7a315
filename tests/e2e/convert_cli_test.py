# SPDX-License-Identifier: Apache-2.0
"""perfpipe convert from files, pipes and damaged input; perf_to_profile."""
import json, re
from support import *

there = folder()
whole = write(os.path.join(there, "whole.data"), perf_data(10))
cut = write(os.path.join(there, "cut.data"), perf_data(10, cut=-60))


def out(name):
    return os.path.join(there, name)


def test_a_file_becomes_a_profile():
    done = run("convert", "-i", whole, "-o", out("p.pb.gz"), check=0)
    assert not done.stdout and "wrote " in done.stderr
    profile = Profile(out("p.pb.gz"))
    assert profile.is_gzip and profile.total() == 10
    assert profile.label_values("comm") == {"made"} and profile.label_values("pid") == {4711}


def test_the_name_decides_compression_and_the_default_name_is_derived():
    run("convert", whole, "-o", out("p.pb"), check=0)
    assert not Profile(out("p.pb")).is_gzip
    os.makedirs(out("cwd"), exist_ok=True)
    run("convert", whole, check=0, cwd=out("cwd"))
    assert os.listdir(out("cwd")) == ["whole.pb.gz"]
    assert Profile(out("cwd/whole.pb.gz")).total() == 10


def test_standard_input_and_output_carry_the_same_bytes():
    run("convert", whole, "-o", out("file.pb.gz"), check=0)
    done = run("convert", "-i", "-", "-o", "-", input=open(whole, "rb").read(), check=0)
    piped, filed = Profile(done.stdout), Profile(out("file.pb.gz"))
    assert piped.samples == filed.samples and piped.types == filed.types
    again = run("convert", whole, "-o", "-", check=0)
    assert again.stdout == open(out("file.pb.gz"), "rb").read()


def test_labels_are_as_asked_for():
    for labels, keys in (("none", set()), ("comm", {"comm"}), ("tid,pid", {"pid", "tid"})):
        done = run("convert", whole, "-o", "-", "--labels", labels, check=0)
        assert {key for _, _, l in Profile(done.stdout).samples for key in l} == keys, labels


def test_damage_is_a_warning_and_an_error_only_when_strict():
    done = run("convert", cut, "-o", out("cut.pb.gz"), check=0)
    assert re.search(r"warning: .*cut\.data: .*\[W601\]", done.stderr), done.stderr
    assert 0 < Profile(out("cut.pb.gz")).total() < 10
    done = run("convert", cut, "-o", out("strict.pb.gz"), "--strict", check=65)
    assert "[E601, exit 65]" in done.stderr
    assert not os.path.exists(out("strict.pb.gz"))
    run("convert", whole, "-o", out("strict.pb.gz"), "--strict", check=0)


def test_what_is_no_perf_data_is_refused_by_name():
    for content, code, word in ((b"", "E604", "empty"), (b"hello, this is text\n" * 20, "E603", "text"),
                                (b"\x1f\x8b\x08\0" + bytes(100), "E603", "gzip"),
                                (b"\x7fELF\2\1\1" + bytes(100), "E603", "ELF")):
        bad = write(out("bad"), content)
        done = run("convert", bad, "-o", out("bad.pb.gz"), check=65)
        assert code in done.stderr and word.lower() in done.stderr.lower(), done.stderr
        assert not os.path.exists(out("bad.pb.gz"))
        done = run("convert", "-i", "-", "-o", out("bad.pb.gz"), input=content, check=65)
        assert code in done.stderr, done.stderr
    assert not [name for name in os.listdir(there) if "tmp" in name]


def test_outputs_that_cannot_be_written_exit_73_or_74():
    assert "E701" in run("convert", whole, "-o", "/nonexistent/x.pb.gz", check=73).stderr
    assert "E701" in run("convert", whole, "-o", there, check=73).stderr
    if os.path.exists("/dev/full"):
        assert "E702" in run("convert", whole, "-o", "/dev/full", check=74).stderr
    run("convert", whole, "-o", whole, check=2)
    assert open(whole, "rb").read() == perf_data(10)


def test_a_file_without_samples_is_said_and_still_a_profile():
    empty = write(out("empty.data"), perf_data(0))
    done = run("convert", empty, "-o", out("empty.pb.gz"), check=0)
    assert "W114" in done.stderr
    profile = Profile(out("empty.pb.gz"))
    assert profile.samples == [] and profile.types


def test_an_unknown_event_is_refused_and_the_known_ones_are_listed():
    done = run("convert", whole, "-o", out("event.pb.gz"), "--event", "nosuch", check=65)
    assert "E612" in done.stderr and "cpu-clock" in done.stderr, done.stderr
    run("convert", whole, "-o", out("event.pb.gz"), "--event", "cpu-clock", check=0)


def test_every_cut_gives_a_result_or_a_clear_error():
    data = perf_data(20)
    for size in range(0, len(data), 37):
        piece = write(out("piece"), data[:size])
        done = run("convert", piece, "-o", out("piece.pb.gz"))
        assert done.returncode in (0, 65), (size, done.returncode, done.stderr)
        assert done.stderr.strip(), size


def perf_to_profile():
    link = out("perf_to_profile")
    if not os.path.exists(link):
        os.symlink(binary, link)
    return link


def test_perf_to_profile_takes_its_calling_form():
    program = perf_to_profile()
    done = run("-i", whole, "-o", out("legacy"), program=program, check=0)
    assert Profile(out("legacy")).total() == 10
    assert "E701" in run("-i", whole, "-o", out("legacy"), program=program, check=73).stderr
    run("-i", whole, "-o", out("legacy"), "-f", "-j", program=program, check=0)
    run("-i", whole, program=program, check=2)


def test_report_reads_profiles_and_recordings_alike():
    run("convert", whole, "-o", out("r.pb.gz"), check=0)
    tables = [run("report", path, "--format", "csv", "--sort", "comm,pid", check=0).stdout.decode()
              for path in (whole, out("r.pb.gz"))]
    assert tables[0] == tables[1] and "made" in tables[0]
    for path in (whole, out("r.pb.gz")):
        piped = run("report", "-", "--format", "csv", "--sort", "comm,pid", input=open(path, "rb").read(), check=0)
        assert piped.stdout.decode() == tables[0]
    json.loads(run("report", whole, "--format", "json", check=0).stdout)
    assert "E610" in run("report", "/etc/passwd", check=65).stderr
    assert "E613" in run("report", "/nonexistent", check=66).stderr
    run("report", whole, "--focus", "(", check=2)


def test_perf_to_profile_leaves_its_output_alone_until_there_is_something_to_write():
    program = perf_to_profile()
    run("-i", "/etc/passwd", "-o", out("late"), program=program, check=65)
    assert not os.path.exists(out("late"))
    run("-i", whole, "-o", out("late"), program=program, check=0)
    before, inode = open(out("late"), "rb").read(), os.stat(out("late")).st_ino
    run("-i", "/etc/passwd", "-o", out("late"), "-f", program=program, check=65)
    run("-i", "/nonexistent", "-o", out("late"), "-f", program=program, check=66)
    assert open(out("late"), "rb").read() == before
    write(out("late"), b"x" * 100000)  # what pprof lets it write is open, and longer before
    run("-i", whole, "-o", out("late"), "-f", program=program, check=0)
    assert open(out("late"), "rb").read() == before and os.stat(out("late")).st_ino == inode
    assert "see: perf_to_profile --help" in run("-i", whole, program=program, check=2).stderr
    help_text = run("--help", program=program, check=0).stdout.decode()
    assert "Usage: perf_to_profile -i" in help_text and "without effect" in help_text


def test_paths_of_options_that_cannot_be_used_are_errors_before_any_work():
    for option, value in (("--kallsyms", "/nosuch"), ("--vmlinux", "/nosuch"), ("--vmlinux", "/etc/passwd"),
                          ("--debug-root", "/nosuch"), ("--sysroot", "/nosuch")):
        for words in (("convert", whole, "-o", out("never.pb.gz")), ("report", whole)):
            done = run(*words, option, value, check=66)
            assert "E614" in done.stderr and "%s %s" % (option, value) in done.stderr, done.stderr
    assert not os.path.exists(out("never.pb.gz"))
    for option in ("--vmlinux", "--debug-root"):
        assert "E614" in run("record", "-o", out("never.pb.gz"), option, "/nosuch", "--", "true", check=66).stderr


def test_names_and_damage_are_told_with_their_file_and_without_escape_sequences():
    done = run("convert", write(out("zero.data"), perf_data(10).replace(b"\x03\0\0\0\0\0\x30\0", bytes(8))),
               "-o", out("zero.pb.gz"))
    assert "zero.data: " in done.stderr, done.stderr
    hostile = b"a\x1b[31mb\n"
    done = run("convert", write(out("no\x1b[31m"), b"text\n" * 20), "-o", out("x.pb.gz"), check=65)
    assert "\x1b" not in done.stderr and "\\x1b[31m" in done.stderr, done.stderr
    done = run("convert", write(out("comm.data"), perf_data(10, comm=hostile)), "-o", out("x.pb.gz"), check=0)
    assert "\x1b" not in done.stderr


def test_the_default_name_of_a_folder_is_its_own():
    at = out("folder.data")
    os.makedirs(at, exist_ok=True)
    write(os.path.join(at, "data"), perf_data(10))
    done = run("convert", ".", cwd=at)
    if done.returncode == 0:
        assert sorted(os.listdir(at)) == ["data", "folder.pb.gz"], os.listdir(at)
    assert not [name for name in os.listdir(at) if name.startswith(".")], os.listdir(at)


def test_report_refuses_what_it_would_ignore():
    run("convert", whole, "-o", out("r.pb.gz"), check=0)
    for path in (whole, out("r.pb.gz")):
        for words in (("--sort", "nosuch"), ("--sort", "comm,nosuch"), ("--tagfocus", "nosuch=1")):
            done = run("report", path, *words, check=2)
            assert '"nosuch"; there are: comm, pid' in done.stderr, done.stderr
    for words in (("--event", "cpu-clock"), ("--labels", "tid"), ("--demangle", "none")):
        assert words[0] in run("report", out("r.pb.gz"), *words, check=2).stderr
        run("report", whole, *words, check=0)
    run("report", out("r.pb.gz"), "--strict", "--no-symbols", check=0)
    for path in (whole, out("r.pb.gz")):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([binary, "report", path], stdout=full, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 74 and "No space left" in done.stderr, done.stderr
    run("convert", whole, "-o", out("none.pb.gz"), "--labels", "", check=2)


def test_binary_goes_to_no_terminal_by_any_name():
    import pty
    leader, follower = pty.openpty()
    for words in (("convert", whole, "-o", "-"), ("convert", whole, "-o", "/dev/stdout"),
                  ("convert", whole, "-o", os.ttyname(follower)), ("report", "-")):
        done = subprocess.run([binary, *words], stdin=follower, stdout=follower, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 2 and "terminal" in done.stderr, (words, done.stderr)
    os.close(follower)
    os.close(leader)


main(globals())
