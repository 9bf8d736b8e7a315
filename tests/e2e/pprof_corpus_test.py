# SPDX-License-Identifier: Apache-2.0
"""perfpipe report reads the pprof files of other producers: totals of every column as in the reference answers."""
import glob, re
from support import *
import support_corpus


def cases():
    place = os.path.join(support_corpus.CORPUS, "pprof")
    if not os.path.isdir(place):
        raise Skip("no corpus at %s (PERFPIPE_CORPUS names another place)" % support_corpus.CORPUS)
    found = []
    for path in sorted(glob.glob(os.path.join(place, "*"))):
        answer = os.path.join(support_corpus.CORPUS, "expected", "pprof_%s.json" % os.path.basename(path))
        if os.path.exists(answer):
            with open(answer) as source:
                found.append((path, json.load(source)))
        else:
            print("        no answer for %s" % os.path.basename(path))
    assert found, "no case in " + place
    return found


def test_totals_of_every_column():
    for path, want in cases():
        for (kind, unit), expected in zip(want["sample_types"], want["value_sums"]):
            done = run("report", path, "--column", kind, "--format", "json", "--nodecount", "0", check=0)
            answer = json.loads(done.stdout)
            assert (answer["type"], answer["unit"], answer["kept"]) == (kind, unit, expected), (path, kind, answer["kept"])
            assert sum(row["flat"] for row in answer["rows"]) == expected, (path, kind)
            # Equal stacks may be counted as one, no sample may be missing.
            assert answer["distinct_samples"] <= want["samples"], (path, answer["distinct_samples"])
            assert answer["rows"], path


def test_every_format_and_order():
    for path, _ in cases():
        for words in ((), ("--cum",), ("--format", "csv"), ("--sort", "function")):
            assert run("report", path, *words, check=0).stdout, (path, words)


def test_totals_are_those_of_go_tool_pprof():
    for path, want in cases():
        if want["go_tool_pprof_raw"]["exit_code"] or any("e" in str(v) for v in want["value_sums"]):
            continue
        kind, unit = want["sample_types"][-1]
        if unit not in ("nanoseconds", "count"):
            continue
        done = run("report", path, "--column", kind, "--format", "json", "--nodecount", "0", check=0)
        answer = json.loads(done.stdout)
        text = pprof("-top", "-symbolize=none", "-nodecount=1000000", "-nodefraction=0", "-sample_index=" + kind,
                     "-unit=" + ("ns" if unit == "nanoseconds" else "count"), path)
        flats = sorted(int(m.group(1)) for m in re.finditer(r"^\s*(-?\d+)(?:ns)?\s+-?[\d.]+%\s+-?[\d.]+%", text, re.M))
        # pprof tells functions of one name in two files apart; the sums agree.
        assert sum(flats) == sum(row["flat"] for row in answer["rows"]), (path, sum(flats))


main(globals())
