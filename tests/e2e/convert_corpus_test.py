#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""convert gives, for every file of the conformance corpus, the totals of its reference answer in a profile that keeps
the rules of every pprof reader; what cannot be read is refused; and the same file twice gives the same bytes.

usage: convert_corpus_test.py PERFPIPE
"""
import os
import shutil
import subprocess
import sys
import tempfile

import support_corpus
from support_pprof import Malformed, Pprof

GO_EVERY = 8  # every n-th profile also goes through go tool pprof, when there is one


def counts_by_task(profile):
    counting = [i for i, (name, _) in enumerate(profile.types) if name.endswith("samples")]
    found = {}
    for _, values, labels in profile.samples:
        key = (labels.get("comm"), labels.get("pid", 0))
        found[key] = found.get(key, 0) + sum(values[i] for i in counting)
    return found


def check_events(faults, case, profile):
    """Each event's samples and periods stand side by side in the columns, in the file's order."""
    totals = profile.totals()
    events = [e for e in case.want["events"] if e["samples"]]
    pairs = {(totals[i][2], totals[j][2]) for i in range(len(totals)) for j in range(len(totals))
             if totals[i][0].endswith("samples") and j == i + 1}
    for event in events:
        if (event["samples"], event["period_sum"]) not in pairs:
            faults.add(case.name, "%s: %d samples, period sum %d not in %s" % (
                event["name"], event["samples"], event["period_sum"], totals))
    n = sum(total for name, _, total in totals if name.endswith("samples"))
    if n != case.want["samples_total"]:
        faults.add(case.name, "%d samples, expected %d" % (n, case.want["samples_total"]))


def check_members(faults, case, profile):
    """Leader sampling: what the members of a group counted has no samples of its own, and the sum that perf tells. The
    event that fired has the periods of its records, where perf tells what its counter moved."""
    if not case.want.get("why", "").startswith("leader sampling"):
        return
    fired = {e["name"] for e in case.want["events"] if e["samples"]}
    sums = {total for _, _, total in profile.totals()}
    for event in case.want["perf"][0]["events"]:
        if event["name"].split(":")[0] not in fired and event["period_sum"] not in sums:
            faults.add(case.name, "%s: %d not in %s" % (event["name"], event["period_sum"], profile.totals()))


def check_tasks(faults, case, profile):
    found = counts_by_task(profile)
    expected = {(comm, pid): n for comm, pid, n in case.want["samples_per_comm_pid"]}
    for key in sorted(set(found) | set(expected), key=str):
        if found.get(key) != expected.get(key):
            faults.add(case.name, "%s: %s samples, expected %s" % (key, found.get(key), expected.get(key)))


def check_profile(faults, case, path):
    try:
        profile = Pprof(path)
        for rule in profile.broken_rules()[:5]:
            faults.add(case.name, rule)
    except (Malformed, UnicodeDecodeError, EOFError, OSError) as e:
        faults.add(case.name, "unreadable profile: %r" % e)
        return
    check_events(faults, case, profile)
    check_members(faults, case, profile)
    check_tasks(faults, case, profile)


def check_go(faults, case, go, path):
    result = subprocess.run([go, "tool", "pprof", "-raw", path], capture_output=True, text=True, timeout=120,
                            errors="replace", stdin=subprocess.DEVNULL)
    if result.returncode != 0:
        faults.add(case.name, "go tool pprof: %s" % result.stderr[-200:])


def check_refused(faults, case, result, path):
    if result.returncode == 0:
        faults.add(case.name, "accepted")
    if not result.stderr.strip():
        faults.add(case.name, "refused without a word")
    if os.path.exists(path):
        faults.add(case.name, "refused, but there is an output")


def convert(binary, case, path):
    if os.path.exists(path):
        os.unlink(path)
    return support_corpus.run(binary, "convert", "--no-symbols", "-i", case.path, "-o", path)


def check_case(faults, case, binary, folder, go):
    path = os.path.join(folder, "out.pb.gz")
    result = convert(binary, case, path)
    if support_corpus.is_crash(result):
        faults.add(case.name, "crash, exit %d: %s" % (result.returncode, result.stderr[-400:]))
        return
    if case.verdict == "reject" or (case.verdict == "convert-or-reject" and result.returncode):
        check_refused(faults, case, result, path)
        return
    if result.returncode:
        faults.add(case.name, "exit %d: %s" % (result.returncode, result.stderr[:200]))
        return
    if case.verdict in ("convert-with-warning", "no-samples") and "warning" not in result.stderr:
        faults.add(case.name, "no warning")
    check_profile(faults, case, path)
    if go:
        check_go(faults, case, go, path)
    first = open(path, "rb").read()
    if convert(binary, case, path).returncode or open(path, "rb").read() != first:
        faults.add(case.name, "converted twice, the bytes differ")


def main():
    binary = sys.argv[1]
    cases = support_corpus.cases()
    faults = support_corpus.Faults()
    go = shutil.which("go")
    with tempfile.TemporaryDirectory() as folder:
        for n, case in enumerate(cases):
            check_case(faults, case, binary, folder, go if n % GO_EVERY == 0 else None)
        fuzz_files = support_corpus.fuzz_files()
        for path in fuzz_files:
            result = support_corpus.run(binary, "convert", "--no-symbols", "-i", path, "-o",
                                        os.path.join(folder, "fuzz.pb.gz"))
            if support_corpus.is_crash(result):
                faults.add(path, "crash")
    faults.finish("%d files converted, %d fuzz files tried" % (len(cases), len(fuzz_files)))


main()
