# SPDX-License-Identifier: Apache-2.0
"""The surface: help, suggestions, exit codes, messages, explain, doctor."""
import json, os, re, subprocess
from support import *

COMMANDS = ["record", "convert", "report", "inspect", "symbols", "doctor", "explain", "version", "help"]


def test_no_command_shows_short_help_on_stderr_and_exits_2():
    done = run(check=2)
    assert not done.stdout
    assert "Commands:" in done.stderr and "perfpipe record" in done.stderr


def test_help_of_every_command_begins_with_examples():
    overview = run("--help", check=0).stdout.decode()
    assert run("help", check=0).stdout.decode() == overview
    for command in COMMANDS:
        assert re.search(r"^  %s " % command, overview, re.M), command
        text = run(command, "--help", check=0).stdout.decode()
        assert run(command, "-h", check=0).stdout.decode() == text
        assert run("help", command, check=0).stdout.decode() == text
        assert 0 < text.index("Examples:\n  perfpipe " + command) < text.index("Usage: perfpipe " + command)
        assert max(map(len, text.splitlines())) <= 100, command


def test_unknown_words_get_the_nearest_one():
    for words, part in [
            (["recrod"], 'unknown command "recrod"; did you mean "record"?'),
            (["help", "convrt"], 'did you mean "convert"?'),
            (["record", "--frequncy", "9"], 'did you mean "--frequency"?'),
            (["convert", "--labels", "comm,pdi", "x"], 'did you mean "pid"?'),
            (["report", "--fokus", "x"], 'did you mean "--focus"?')]:
        done = run(*words, check=2)
        assert part in done.stderr, done.stderr
        assert not done.stdout
        assert done.stderr.startswith("perfpipe: error: ") and "[E001, exit 2]" in done.stderr.splitlines()[0]


def test_bad_usage_exits_2_and_names_the_help():
    for words in (["record"], ["record", "-a", "-p", "1"], ["record", "-F", "0", "true"], ["record", "-d", "-3", "-a"],
                  ["record", "-p", "abc"], ["record", "-F", "9", "-c", "9", "true"], ["record", "-m", "x", "-a"],
                  ["convert"], ["convert", "a", "b"], ["convert", "-o"], ["convert", "--demangle", "some", "a"],
                  ["report"], ["report", "--nodecount", "x", "f"], ["report", "--tagfocus", "comm", "f"],
                  ["doctor", "now"], ["version", "now"], ["explain", "E999"], ["explain", "cheese"],
                  ["doctor", "--format", "csv"], ["--frobnicate"], ["version", "--color", "maybe"]):
        done = run(*words, check=2)
        assert "see: perfpipe " in done.stderr, (words, done.stderr)


def test_options_of_all_commands_stand_before_or_behind_the_name():
    before = run("--format", "json", "version", check=0).stdout
    behind = run("version", "--format=json", check=0).stdout
    assert before == behind == run("version", "--json", check=0).stdout
    assert json.loads(before)["name"] == "perfpipe"
    assert run("--version", check=0).stdout == run("version", check=0).stdout


def test_errors_have_the_agreed_form():
    done = run("convert", "/nonexistent/perf.data", check=66)
    lines = done.stderr.splitlines()
    assert re.fullmatch(r"perfpipe: error: .*/nonexistent/perf\.data.* \[E613, exit 66\]", lines[0]), lines
    assert [line.split(":")[0] for line in lines[1:]] == ["  why", "  fix", "  see"]
    assert lines[3] == "  see: perfpipe explain E613"
    done = run("convert", "/nonexistent/perf.data", "--format", "json", check=66)
    error = json.loads(done.stderr)
    assert sorted(error) == ["code", "fix", "message", "why"] and error["code"] == "E613"


def test_explain_knows_every_code_it_lists():
    codes = [line.split()[0] for line in run("explain", check=0).stdout.decode().splitlines()]
    assert len(codes) == len(set(codes)) > 20
    for code in codes:
        text = run("explain", code, check=0).stdout.decode()
        assert text.startswith(code + " ") and "why: " in text and "fix: " in text
        entry = json.loads(run("explain", code.lower(), "--format", "json", check=0).stdout)
        assert entry["code"] == code and entry["schema_version"] == 1
    both = run("explain", "601", check=0).stdout.decode()
    assert "E601 error" in both and "W601 warning" in both


def test_doctor_gives_each_check_a_verdict_and_a_fix():
    done = run("doctor", "--json")
    result = json.loads(done.stdout)
    assert done.returncode == (1 if result["status"] == "fail" else 0)
    names = [check["name"] for check in result["checks"]]
    for name in ("paranoid", "kernel_names", "capabilities", "cycles", "mlock", "cgroup", "tracefs", "max_rate"):
        assert name in names
    for check in result["checks"]:
        assert check["status"] in ("ok", "warn", "fail")
        assert (check["fix"] is None) == (check["status"] == "ok"), check
    assert json.loads(run("doctor", "--format", "json").stdout)["checks"]
    text = run("doctor").stdout.decode()
    assert all(name in text for name in names) and "\x1b" not in text
    hints = run("doctor", "--fix-hints").stdout.decode().splitlines()
    assert sorted(hints) == sorted({check["fix"] for check in result["checks"] if check["fix"]})


def test_colour_follows_the_switch_and_the_environment():
    env = dict(os.environ, TERM="xterm")
    env.pop("NO_COLOR", None)
    assert "\x1b[" not in run("nonsense", env=env).stderr
    assert "\x1b[" in run("convert", "--color=always", "/nonexistent", env=env).stderr
    assert "\x1b[" in run("convert", "/nonexistent", env=dict(env, CLICOLOR_FORCE="1")).stderr
    assert "\x1b[" not in run("convert", "/nonexistent", env=dict(env, CLICOLOR_FORCE="1", NO_COLOR="1")).stderr


def test_a_reader_that_leaves_ends_quietly_and_a_full_disk_is_told():
    line = subprocess.run("'%s' explain | head -n 1" % binary, shell=True, capture_output=True, text=True)
    assert line.returncode == 0 and "\n" in line.stdout
    if not os.path.exists("/dev/full"):
        raise Skip("no /dev/full")
    with open("/dev/full", "wb") as full:
        done = subprocess.run([binary, "explain"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 74 and "E702" in done.stderr, done


main(globals())
