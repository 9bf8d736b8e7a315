# SPDX-License-Identifier: Apache-2.0
"""The conformance corpus: where it is, its cases, and running perfpipe on them in bounded memory and time."""
import json
import os
import resource
import subprocess
import sys

PROJECT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CORPUS = os.environ.get("PERFPIPE_CORPUS", os.path.join(os.path.dirname(PROJECT), "shared", "corpus"))
SKIP = 77
TIMEOUT_S = 60
# Sanitizers reserve address space by the terabyte, so only builds without them get a limit.
ADDRESS_SPACE_BYTES = 2 << 30


class Case:
    """One file of the corpus with its reference answer."""

    def __init__(self, folder, answer_path):
        with open(answer_path) as f:
            self.want = json.load(f)
        self.name = self.want.get("file", "")
        self.path = os.path.join(folder, self.name)
        self.verdict = self.want.get("verdict")


def cases():
    """All cases with a verdict, by name; skips the whole test when there is no corpus."""
    if not os.path.isdir(CORPUS):
        print("no corpus at %s (PERFPIPE_CORPUS names another place)" % CORPUS)
        sys.exit(SKIP)
    found = []
    for folder in (CORPUS, os.path.join(CORPUS, "live")):
        answers = os.path.join(folder, "expected")
        for name in sorted(os.listdir(answers)):
            if name.endswith(".json") and name != "fuzz.json":
                case = Case(folder, os.path.join(answers, name))
                if case.verdict and os.path.exists(case.path):
                    found.append(case)
    return found


def fuzz_files():
    folder = os.path.join(CORPUS, "fuzz")
    if not os.path.isdir(folder):
        return []
    return [os.path.join(folder, name) for name in sorted(os.listdir(folder))]


def is_sanitized(binary):
    with open(binary, "rb") as f:
        return b"__asan_init" in f.read()


def run(binary, *words):
    """Runs perfpipe; a hang ends the test. Result as of subprocess.run, with text."""

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE_BYTES, ADDRESS_SPACE_BYTES))

    return subprocess.run([binary, *words], capture_output=True, text=True, errors="replace", timeout=TIMEOUT_S,
                          stdin=subprocess.DEVNULL, preexec_fn=None if is_sanitized(binary) else limit)


def is_crash(result):
    return result.returncode < 0 or result.returncode in (70, 134, 139) or "Sanitizer" in result.stderr


class Faults:
    """Collects what is wrong, so that one run shows all of it."""

    def __init__(self):
        self.lines = []

    def add(self, name, text):
        self.lines.append("%s: %s" % (name, text))

    def finish(self, summary):
        for line in self.lines:
            print(line)
        print("%s; %d faults" % (summary, len(self.lines)))
        sys.exit(1 if self.lines else 0)
