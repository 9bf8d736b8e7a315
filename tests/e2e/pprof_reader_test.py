# SPDX-License-Identifier: Apache-2.0
"""go tool pprof reads what perfpipe writes, and starts it for perf.data under the name
perf_to_profile."""
import csv, io, re
from support import *

there = folder()


def out(name):
    return os.path.join(there, name)


def test_pprof_raw_accepts_a_converted_file():
    data = write(out("made.data"), perf_data(25))
    for name in ("made.pb.gz", "made.pb"):
        run("convert", data, "-o", out(name), check=0)
        text = pprof("-raw", out(name))
        assert re.search(r"^Samples:\nsamples/count cpu/nanoseconds", text, re.M), text
        assert "comm:[made]" in text and re.search(r"pid:\[4711( pid)?\]", text), text


def test_pprof_top_agrees_with_report():
    need_sampling()
    run("record", "-F", "999", "-o", out("live.pb.gz"), "--", *burn_command(300000), check=0)
    text = pprof("-top", "-nodecount=1000000", "-nodefraction=0", "-edgefraction=0", "-unit=ns", "-sample_index=cpu", out("live.pb.gz"))
    theirs = {}
    for line in text.splitlines():
        row = re.match(r"\s*(\d+)(?:ns)?\s+[\d.]+%\s+[\d.]+%\s+(\d+)(?:ns)?\s+[\d.]+%\s+(.*)", line)
        if row:
            # It marks what was inlined.
            name = re.sub(r" \((partial-)?inline\)$", "", row.group(3))
            theirs[name] = (int(row.group(1)), int(row.group(2)))
    table = run("report", out("live.pb.gz"), "--format", "csv", "--nodecount", "0", check=0).stdout.decode()
    ours = {row["name"]: (int(row["flat"]), int(row["cum"])) for row in csv.DictReader(io.StringIO(table))}
    # What has no name is one row per binary there, and binary+offset here.
    theirs_named = {name: row for name, row in theirs.items() if not name.startswith("[")}
    ours_named = {name: row for name, row in ours.items() if "+0x" not in name and not name.startswith("[")}
    assert theirs_named and theirs_named == ours_named, set(theirs_named.items()) ^ set(ours_named.items())
    assert sum(flat for flat, _ in theirs.values()) == sum(flat for flat, _ in ours.values())


def test_pprof_starts_perf_to_profile_for_perf_data():
    # pprof finds the program on PATH; only the link is there.
    tools = out("bin")
    os.makedirs(tools, exist_ok=True)
    os.symlink(binary, os.path.join(tools, "perf_to_profile"))
    data = write(out("perf.data"), perf_data(25))
    text = pprof("-top", data, path_first=tools)
    assert "Type: cpu" in text, text
    assert re.search(r"25(\.\d+)?ms total|of 25\.\d+ms", text), text


main(globals())
