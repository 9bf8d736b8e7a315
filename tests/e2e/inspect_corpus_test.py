#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""inspect agrees with the reference answer of every file of the conformance corpus, field by field.

The answers follow perf's rules for maps and names on purpose, and ours differ where an exec drops the maps of the old
program, or where a later file of the same name is another file. Every difference that is right has its line in
ACCEPTED below; no comparison is loosened for it.

usage: inspect_corpus_test.py PERFPIPE
"""
import json
import sys

import support_corpus

# Compared whole. perf_dump, perf, reference … are about how the answer was found, not about the file.
FIELDS = ("records", "build_ids", "samples_total", "time_ns", "samples_per_comm_pid", "callchain", "user_stack",
          "branch_stack", "raw_samples", "mappings_hit", "leaf_distinct", "distinct_stacks", "top_leaf", "leaf_kinds",
          "lost", "deferred_callchains")
FORMAT_FIELDS = ("mode", "byte_order", "header_size", "arch", "perf_version", "os_release", "hostname", "features",
                 "compressed_records", "attr_size", "attr_count")
# Not given by inspect: a check of the answer's own decoder.
EVENT_FIELDS_LEFT_OUT = ("read_lost_sum_of_max_per_id",)

# simpleperf's own records have no names in perf: inspect shows their numbers.
RECORD_NAMES = {"SIMPLE_DSO": "type32769", "SIMPLE_UNWINDING_RESULT": "type32775", "SIMPLE_DEBUG?": "type32777"}

# (file, field) → why the answer is not ours. Empty: today all answers are also ours.
ACCEPTED = {}

# What the error must name, for files that must be refused (the kind in the answer's `why`).
REFUSED = {
    "colemickens_platform2-sommelier__perf.data.piped.powerpc": ("unknown pipe dialect", "69"),
    "google_perf_data_converter__perf.data.piped.corrupted.zero_size_sample-3.2": ("record size", "49104"),
    "openharmony_developtools_hiperf__report_test.data": ("record past end", "2643"),
    "derived-bad-magic-byteswapped-size.data": ("corrupt header",),
    "derived-header-104-bytes-zero.data": ("corrupt header", "attr size is 0"),
    "derived-header-only-8-bytes.data": ("truncated header",),
    "derived-record-size-0.data": ("record size", "6088"),
    "derived-zstd-corrupt.data": ("decompression failed",),
    "not-perf-random.data": ("not a perf.data file",),
    "not-perf-text.data": ("not a perf.data file", "text"),
    "zero-length.data": ("empty",),
    # convert-or-reject, and we reject:
    "KDAB_hotspot__perf.data.true.v1": ("perf.data version 1",),
    "KDAB_hotspot__perf.data.true.v2.gz": ("gzip",),
}

# Warned of, but nothing is missing: --strict takes them.
NOT_DAMAGED = ("derived-unknown-record-types.data", "derived-callchain-nr-overflow.data")


def check_refused(faults, case, binary):
    result = support_corpus.run(binary, "inspect", case.path)
    if result.returncode != 65:
        faults.add(case.name, "exit %d, expected 65: %s" % (result.returncode, result.stderr[:200]))
    for word in REFUSED[case.name]:
        if word not in result.stderr.splitlines()[0]:
            faults.add(case.name, "the error does not name \"%s\": %s" % (word, result.stderr[:200]))
    if result.stdout:
        faults.add(case.name, "refused, but wrote to standard output")


def check_warned(faults, case, binary, stderr):
    if not stderr.strip():
        faults.add(case.name, "no warning")
    want = 0 if case.name in NOT_DAMAGED else 65
    strict = support_corpus.run(binary, "inspect", "--strict", case.path)
    if strict.returncode != want:
        faults.add(case.name, "--strict: exit %d, expected %d" % (strict.returncode, want))


def differences(want, got, path=""):
    """Texts, at most a few per field: where two JSON values differ."""
    if isinstance(want, dict) and isinstance(got, dict):
        out = []
        for key in sorted(set(want) | set(got)):
            out += differences(want.get(key), got.get(key), "%s.%s" % (path, key))
        return out
    if isinstance(want, list) and isinstance(got, list) and len(want) == len(got):
        out = []
        for i, pair in enumerate(zip(want, got)):
            out += differences(*pair, "%s[%d]" % (path, i))
        return out[:5]
    return [] if want == got else ["%s: %.200r, expected %.200r" % (path, got, want)]


def without(event):
    return {key: value for key, value in event.items() if key not in EVENT_FIELDS_LEFT_OUT}


def compare(faults, case, got):
    want = dict(case.want)
    want["records"] = {RECORD_NAMES.get(name, name): n for name, n in want["records"].items()}
    pairs = [(field, want[field], got.get(field)) for field in FIELDS if field in want]
    pairs += [("format." + field, want["format"][field], got["format"].get(field)) for field in FORMAT_FIELDS]
    pairs.append(("events", [without(event) for event in want["events"]], got["events"]))
    stopped = want["format"]["stream_stopped"]
    pairs.append(("format.stream_stopped", stopped and "%s at byte %d" % (stopped["why"], stopped["offset"]),
                  got["format"]["stream_stopped"]))
    for field, expected, found in pairs:
        found_differences = differences(expected, found, field)
        accepted = ACCEPTED.get((case.name, field))
        if accepted and not found_differences:
            faults.add(case.name, "%s is equal now; its exception can go (%s)" % (field, accepted))
        for line in [] if accepted else found_differences:
            faults.add(case.name, line)


def check_case(faults, case, binary):
    result = support_corpus.run(binary, "inspect", case.path, "--format", "json")
    if support_corpus.is_crash(result):
        faults.add(case.name, "crash, exit %d: %s" % (result.returncode, result.stderr[-400:]))
    elif case.name in REFUSED:
        check_refused(faults, case, binary)
    elif result.returncode != 0:
        faults.add(case.name, "exit %d: %s" % (result.returncode, result.stderr[:200]))
    else:
        got = json.loads(result.stdout)
        if got["schema_version"] != 1:
            faults.add(case.name, "schema_version %r" % got["schema_version"])
        compare(faults, case, got)
        if case.verdict == "convert-with-warning":
            check_warned(faults, case, binary, result.stderr)
        if case.verdict == "no-samples" and "no samples" not in result.stderr:
            faults.add(case.name, "does not say that there are no samples")


def check_text(faults, case, binary):
    result = support_corpus.run(binary, "inspect", case.path)
    if result.returncode == 0 and "%d" % case.want["samples_total"] not in result.stdout:
        faults.add(case.name, "the page does not show the number of samples")
    if any(ord(c) < 0x20 and c != "\n" for c in result.stdout):
        faults.add(case.name, "the page has control characters")


def main():
    binary = sys.argv[1]
    cases = support_corpus.cases()
    faults = support_corpus.Faults()
    unlisted = [case.name for case in cases if case.verdict == "reject" and case.name not in REFUSED]
    for name in unlisted:
        faults.add(name, "must be refused, but no words of its error are listed here")
    for case in cases:
        check_case(faults, case, binary)
        if case.want.get("samples_total") is not None:
            check_text(faults, case, binary)
    fuzz_files = support_corpus.fuzz_files()
    for path in fuzz_files:
        if support_corpus.is_crash(support_corpus.run(binary, "inspect", path)):
            faults.add(path, "crash")
    faults.finish("%d files compared, %d fuzz files read" % (len(cases), len(fuzz_files)))


main()
