# SPDX-License-Identifier: Apache-2.0
"""Recordings of event groups (perf record -e '{a,b}:S'): each member counts as perf script says."""
import re
from support import *

there = folder()
try:
    need_sampling()
    perf = find_perf()
except Skip as why:
    print("skipped: %s" % why)
    sys.exit(77)

WORK = "for i in 1 2 3 4 5 6; do %s; /bin/true; done" % (BURN % 20000)


def out(name):
    return os.path.join(there, name)


def told_by_perf(path):
    """{event: (samples, sum of periods)}"""
    text = subprocess.run([perf, "script", "-i", path, "-F", "event,period"], capture_output=True, text=True, check=True,
                          stdin=subprocess.DEVNULL).stdout
    told = {}
    for period, event in re.findall(r"^\s*(\d+)\s+(\S+?):\s*$", text, re.M):
        n, total = told.get(event, (0, 0))
        told[event] = n + 1, total + int(period)
    return told


def told_by_us(data):
    profile = Profile(data)
    kinds = [kind for kind, _ in profile.types]
    sums = [sum(values[i] for _, values, _ in profile.samples) for i in range(len(kinds))]
    return {kinds[i + 1].replace("_", "-"): (sums[i], sums[i + 1]) for i in range(0, len(kinds), 2) if sums[i]}


def test_members_count_as_perf_script_says():
    for events, words in (("{cpu-clock,page-faults}:S", []), ("{cpu-clock,page-faults,context-switches}:S", ["-g"]),
                          ("{cpu-clock,page-faults}:S", ["-a", "-g"]), ("{task-clock,minor-faults}:S,cpu-migrations", [])):
        done = subprocess.run([perf, "record", "-q", "-e", events, "-F", "999", "-o", out("g.data"), *words, "--", "sh",
                               "-c", WORK], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, done.stderr
        wanted = told_by_perf(out("g.data"))
        assert len(wanted) > 1 and wanted["page-faults" if "page" in events else "minor-faults"][1] > 50, wanted
        run("convert", "-i", out("g.data"), "-o", out("g.pb"), check=0)
        assert told_by_us(out("g.pb")) == wanted, (events, words, told_by_us(out("g.pb")), wanted)


def test_members_count_the_same_through_a_pipe():
    done = subprocess.run([perf, "record", "-q", "-e", "{cpu-clock,page-faults}:S", "-F", "999", "-o", "-", "--", "sh", "-c",
                           WORK], capture_output=True, stdin=subprocess.DEVNULL)
    path = write(out("pipe.data"), done.stdout)
    piped = run("convert", "-i", "-", "-o", "-", input=done.stdout, check=0).stdout
    assert told_by_us(piped) == told_by_perf(path)


main(globals())
