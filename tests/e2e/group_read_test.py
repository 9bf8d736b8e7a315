# SPDX-License-Identifier: Apache-2.0
"""Recordings of event groups (perf record -e '{a,b}:S'): the event that fires has samples, and each other member counts
what perf script says."""
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


def check(data, wanted, events):
    """events: as perf record got them; the first one fires for all of its group."""
    profile = Profile(data)
    columns = {kind.replace("_", "-"): sum(values[i] for _, values, _ in profile.samples)
               for i, (kind, _) in enumerate(profile.types)}
    leader = re.match(r"\{([a-z-]+)", events).group(1)
    members = re.match(r"\{(.*)\}", events).group(1).split(",")[1:]
    assert columns[leader + "-samples"] == wanted[leader][0], (events, columns, wanted)
    # A clock fires when its period is over; what it has moved meanwhile, which perf tells, is more on a busy host.
    period = columns[leader] / columns[leader + "-samples"]
    assert abs(period - 1e9 / 999) < 1e6 / 999, (events, columns, wanted)
    for member in members:
        assert columns.get(member + "-samples", 0) == 0, (events, columns)
        assert columns.get(member, 0) == wanted.get(member, (0, 0))[1], (events, columns, wanted)


def test_members_count_as_perf_script_says():
    for events, words in (("{cpu-clock,page-faults}:S", []), ("{cpu-clock,page-faults,context-switches}:S", ["-g"]),
                          ("{cpu-clock,page-faults}:S", ["-a", "-g"]), ("{task-clock,minor-faults}:S,cpu-migrations", [])):
        done = subprocess.run([perf, "record", "-q", "-e", events, "-F", "999", "-o", out("g.data"), *words, "--", "sh",
                               "-c", WORK], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, done.stderr
        wanted = told_by_perf(out("g.data"))
        assert len(wanted) > 1 and wanted["page-faults" if "page" in events else "minor-faults"][1] > 50, wanted
        run("convert", "-i", out("g.data"), "-o", out("g.pb"), check=0)
        check(out("g.pb"), wanted, events)


def test_members_count_the_same_through_a_pipe():
    done = subprocess.run([perf, "record", "-q", "-e", "{cpu-clock,page-faults}:S", "-F", "999", "-o", "-", "--", "sh", "-c",
                           WORK], capture_output=True, stdin=subprocess.DEVNULL)
    path = write(out("pipe.data"), done.stdout)
    piped = run("convert", "-i", "-", "-o", "-", input=done.stdout, check=0).stdout
    check(piped, told_by_perf(path), "{cpu-clock,page-faults}:S")


def test_a_copied_stack_is_unwound_once_for_all_members():
    done = subprocess.run([perf, "record", "-q", "-e", "{cpu-clock,page-faults,minor-faults}:S", "--call-graph", "dwarf,4096",
                           "-F", "499", "-o", out("d.data"), "--", "sh", "-c", WORK], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    run("convert", "-i", out("d.data"), "-o", out("d.pb"), check=0)
    profile = Profile(out("d.pb"))
    counts = dict(re.findall(r"^(user_stacks_\w+): (\d+)$", "\n".join(profile.comments), re.M))
    kinds = [kind.replace("_", "-") for kind, _ in profile.types]
    column, faults = kinds.index("cpu-clock-samples"), kinds.index("page-faults")
    n = sum(values[column] for _, values, _ in profile.samples)
    assert 0 < int(counts["user_stacks_unwound"]) <= n, (counts, n)
    # What the other members count has the unwound stack too.
    assert any(values[faults] and "__libc_start_main" in stack for stack, values, _ in profile.samples), counts


main(globals())
