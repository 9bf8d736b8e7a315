#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every error number that the code gives stands in the table of pipeline/explain.c, once for each
# severity, and every entry of the table is given somewhere: error_codes.sh ROOT
set -eu
/usr/bin/python3 - "$1" <<'PYTHON'
import glob, re, sys

root = sys.argv[1]
table = set()
for severity, number in re.findall(r"\{'([EW])',\s*(\d+),", open(root + "/pipeline/explain.c").read()):
    if (severity, int(number)) in table:
        sys.exit("pipeline/explain.c: %s%s stands there twice" % (severity, number))
    table.add((severity, int(number)))
numbers = {number for _, number in table}

def arguments(text, start):
    """The top-level arguments of the call whose '(' is at start."""
    depth, begin, found, quoted = 0, start + 1, [], False
    i = start
    while i < len(text):
        c = text[i]
        if quoted:
            if c == "\\":
                i += 1
            elif c == '"':
                quoted = False
        elif c == '"':
            quoted = True
        elif c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
            if depth == 0:
                return found + [text[begin:i].strip()]
        elif c == "," and depth == 1:
            found.append(text[begin:i].strip())
            begin = i + 1
        i += 1
    return found

used, faults = set(), []
for folder in "base proto collector symcache converter forwarder pipeline".split():
    for path in sorted(glob.glob("%s/%s/*.c" % (root, folder))):
        text = open(path, encoding="utf-8").read()
        for call in re.finditer(r"\b(error_number|\w*warn\w*|\w*numbered\w*|\w*note_damage\w*|corrupt)\(", text):
            # error_number(error, NUMBER); others have the number anywhere, by itself.
            given = arguments(text, call.end() - 1)
            if call.group(1) == "error_number":
                found = re.findall(r"\b\d{1,3}\b", given[-1]) if len(given) == 2 else []
            else:
                found = [argument for argument in given if re.fullmatch(r"[1-9]\d\d", argument)]
            for number in found:
                if int(number):
                    used.add(int(number))
                    if int(number) not in numbers:
                        faults.append("%s: %s is not in pipeline/explain.c" % (path[len(root) + 1:], number))
        for number in re.findall(r"(?:\.number = |\bERROR_(?:CANNOT_CREATE|DISK_FULL) = |[A-Z_]+_NUMBER = |NO_CYCLES = )(\d+)", text):
            used.add(int(number))
            if int(number) not in numbers:
                faults.append("%s: %s is not in pipeline/explain.c" % (path[len(root) + 1:], number))
for fault in faults:
    print(fault)
unused = sorted(numbers - used)
if unused:
    print("in the table, but nobody gives them:", unused)
print("%d numbers given, %d in the table" % (len(used), len(numbers)))
sys.exit(1 if faults else 0)
PYTHON
