# SPDX-License-Identifier: Apache-2.0
"""A profile as sorted text, in which nothing depends on the order of tables: two profiles that say the same give the
same text."""
from support_pprof import Pprof, message


def lines(path):
    """Every sample with its frames (names, mapping, build-id, address), labels and values, and what stands above them."""
    profile = Pprof(path)
    assert not profile.broken_rules(), profile.broken_rules()[:3]
    mappings = {m[1]: _mapping(profile, m) for m in profile.mappings}
    functions = {f[1]: "%s/%s" % (profile.text(f.get(2, 0)), profile.text(f.get(3, 0))) for f in profile.functions}
    frames = {}
    for location in profile.locations:
        mapping = mappings.get(location.get(2, 0), "-")
        names = [functions[message(line)[1]] for line in location[4]]
        frames[location[1]] = "%x %s %s" % (location.get(3, 0), ";".join(names), mapping)
    found = ["type %s %s" % kind for kind in profile.types]
    found += ["default %s" % profile.default_type, "period %d" % profile.period]
    found += ["mapping %s" % text for text in sorted(mappings.values())]
    found += ["comment %s" % text for text in profile.comments if text.startswith(("samples:", "event:", "host:"))]
    return found + sorted("%s | %s | %s" % (" < ".join(frames[i] for i in stack), sorted(labels.items()), values)
                          for stack, values, labels in profile.samples)


def _mapping(profile, mapping):
    name, build_id = profile.text(mapping.get(5, 0)), profile.text(mapping.get(6, 0))
    flags = [mapping.get(number, 0) for number in (7, 8, 9, 10)]
    return "%s %s %x-%x %x %s" % (name, build_id, mapping.get(2, 0), mapping.get(3, 0), mapping.get(4, 0), flags)


def differences(ours, theirs):
    """The first few lines that only one of them has."""
    only = sorted(set(ours) ^ set(theirs))
    return "%d lines differ: %s" % (len(only), " // ".join(line[:300] for line in only[:4]))


def assert_same(a, b, what):
    if a != b:
        raise AssertionError("%s: %s" % (what, differences(a, b)))
