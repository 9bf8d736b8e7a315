# SPDX-License-Identifier: Apache-2.0
"""The same input gives the same file whoever builds it: ten times, on one processor and on two, and by many at once."""
import glob, hashlib, os, shutil, subprocess, tempfile
from agreement_support import *

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../unit/symcache/dwarf_programs/main.cc")


def start(program, store, processors):
    command = [RESOLVE, program, "", store]
    if processors and shutil.which("taskset"):
        command = ["taskset", "-c", processors] + command
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def kept(store):
    """{name: digest} of all that is in the store but its lock."""
    found = {}
    for path in glob.glob(store + "/*"):
        with open(path, "rb") as file:
            found[os.path.basename(path)] = hashlib.sha256(file.read()).hexdigest()
    return {name: digest for name, digest in found.items() if name.endswith(".sym") or "tmp" in name}


def main():
    need("g++")
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "program")
        subprocess.run(["g++", "-std=c++17", "-O2", "-g", "-Wl,--build-id", "-o", program, SOURCE], check=True)
        addresses = "".join("%x\n" % a for a in sample(program, 500))
        answers, files = set(), set()
        last = "0-%d" % ((os.cpu_count() or 1) - 1)
        for i in range(10):
            store = os.path.join(folder, "store%d" % i)
            out, err = start(program, store, "0" if i % 2 else last).communicate(addresses)
            expect(not err, "run %d: %s" % (i, err))
            answers.add(out)
            files.add(tuple(sorted(kept(store).items())))
        expect(len(answers) == 1, "%d different answers" % len(answers))
        expect(len(files) == 1, "%d different files of ten builds" % len(files))
        expect(len(next(iter(files))) == 1, "not one file: %s" % files)
        for i in range(3):
            store = os.path.join(folder, "shared%d" % i)
            builders = [start(program, store, None) for _ in range(6)]
            for builder in builders:
                out, err = builder.communicate(addresses)
                expect(builder.returncode == 0 and not err, "one of many: %s" % err)
                answers.add(out)
            expect(tuple(sorted(kept(store).items())) in files, "many at once left %s" % kept(store))
        expect(len(answers) == 1, "many at once: %d different answers" % len(answers))
    finish()


main()
