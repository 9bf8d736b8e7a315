# SPDX-License-Identifier: Apache-2.0
"""perfpipe report: the numbers of every option on a made profile whose numbers are known, and on recordings against
go tool pprof -top and a count of our own."""
import gzip, csv, io, re
from support import *
from support_pprof import Pprof, message
from support_pprof_maker import Maker
from support_recording import record

there = folder()
_cache = {}


def out(name):
    return os.path.join(there, name)


def made():
    """main → (work → (leaf, work again), idle); "inner" is inlined into work."""
    maker = Maker([("samples", "count"), ("cpu", "nanoseconds")], default="cpu")
    maker.add(["leaf", "work", "main"], [3, 300], comm="a", pid=1)
    maker.add(["leaf", "work", "work", "main"], [2, 200], comm="a", pid=2)  # recursion counts once
    maker.add([("inner", "work"), "main"], [4, 400], comm="b,\"x\"", pid=3)
    maker.add(["idle", "main"], [1, 100], comm="c")
    return write(out("made.pb"), maker.bytes())


def table(path, *words):
    done = run("report", path, "--format", "json", "--nodecount", "0", *words, check=0)
    return json.loads(done.stdout)


def rows(path, *words):
    return {row["name"]: (row["flat"], row["cum"]) for row in table(path, *words)["rows"]}


def test_flat_and_cum_of_a_made_profile():
    answer = table(made())
    assert (answer["type"], answer["unit"], answer["total"], answer["kept"]) == ("cpu", "nanoseconds", 1000, 1000)
    assert rows(made()) == {"leaf": (500, 500), "inner": (400, 400), "idle": (100, 100), "work": (0, 900),
                            "main": (0, 1000)}
    assert [row["flat"] for row in answer["rows"]][:3] == [500, 400, 100]
    assert [row["sum_percent"] for row in answer["rows"]][:3] == [50, 90, 100]
    assert [row["flat_percent"] for row in answer["rows"]][:3] == [50, 40, 10]


def test_cum_orders_by_cum():
    names = [row["name"] for row in table(made(), "--cum")["rows"]]
    assert names[:2] == ["main", "work"], names


def test_column_chooses_what_is_shown():
    answer = table(made(), "--column", "samples")
    assert (answer["type"], answer["unit"], answer["total"]) == ("samples", "count", 10)
    done = run("report", made(), "--column", "nosuch", check=2)
    assert "samples" in done.stderr and "cpu" in done.stderr, done.stderr


def test_focus_ignore_and_hide():
    assert rows(made(), "--focus", "idle") == {"idle": (100, 100), "main": (0, 100)}
    assert rows(made(), "--focus", "^work$")["main"] == (0, 900)
    assert rows(made(), "--ignore", "work") == {"idle": (100, 100), "main": (0, 100)}
    assert rows(made(), "--hide", "leaf|inner") == {"work": (900, 900), "idle": (100, 100), "main": (0, 1000)}
    answer = table(made(), "--focus", "nothing at all")
    assert answer["rows"] == [] and answer["kept"] == 0 and answer["total"] == 1000


def test_tagfocus_by_text_number_and_range():
    for words, kept in ((["comm=a"], 500), (["comm=^b"], 400), (["pid=2"], 200), (["pid=2:"], 600), (["pid=:1"], 300),
                        (["pid=1:2"], 500), (["comm=a", "pid=2"], 200), (["comm=none"], 0)):
        options = [word for value in words for word in ("--tagfocus", value)]
        assert table(made(), *options)["kept"] == kept, (words, table(made(), *options)["kept"])


def test_sort_by_labels_and_functions():
    answer = table(made(), "--sort", "comm")
    assert [(row["labels"]["comm"], row["flat"]) for row in answer["rows"]] == [("a", 500), ('b,"x"', 400), ("c", 100)]
    assert sum(row["flat"] for row in table(made(), "--sort", "comm,pid")["rows"]) == 1000
    found = {(row["labels"]["comm"], row["name"]): row["flat"] for row in table(made(), "--sort", "comm,function")["rows"]
             if row["flat"]}
    assert found == {("a", "leaf"): 500, ('b,"x"', "inner"): 400, ("c", "idle"): 100}, found


def test_nodecount_cuts_rows_and_says_so():
    done = run("report", made(), "--format", "json", "--nodecount", "2", check=0)
    answer = json.loads(done.stdout)
    assert len(answer["rows"]) == 2 and answer["rows_total"] == 5
    text = run("report", made(), "--nodecount", "2", check=0).stdout.decode()
    assert "2 of 5" in text, text


def test_csv_and_json_say_the_same_and_quote():
    for words in ((), ("--cum",), ("--sort", "comm"), ("--sort", "comm,function"), ("--focus", "work")):
        text = run("report", made(), "--format", "csv", "--nodecount", "0", *words, check=0).stdout.decode()
        found = list(csv.DictReader(io.StringIO(text)))
        theirs = table(made(), *words)["rows"]
        assert [(int(row["flat"]), int(row["cum"])) for row in found] == [(r["flat"], r["cum"]) for r in theirs], words
        if "--sort" in words:
            assert [row["comm"] for row in found] == [r["labels"].get("comm", "") for r in theirs], words


def test_text_for_people_has_units_and_percents():
    text = run("report", made(), check=0).stdout.decode()
    assert re.search(r"500ns\s+50\.00%\s+50\.00%\s+500ns\s+50\.00%\s+leaf", text), text
    assert not re.search(r"\x1b\[", text)


def test_wrong_options_are_usage_errors():
    for words in (("--focus", "("), ("--nodecount", "many"), ("--tagfocus", "nothing"), ("--format", "xml"), ("--nosuch",)):
        done = run("report", made(), *words)
        assert done.returncode == 2 and done.stderr.startswith("perfpipe: error:"), (words, done.returncode, done.stderr)
    run("report", check=2)


def test_gzip_and_plain_and_standard_input_are_alike():
    packed = write(out("made.pb.gz"), gzip.compress(open(made(), "rb").read()))
    assert table(packed) == table(made())
    done = run("report", "-", "--format", "json", "--nodecount", "0", input=open(packed, "rb").read(), check=0)
    assert json.loads(done.stdout)["rows"] == table(made())["rows"]


# --- recordings ---

def recording():
    if "recording" not in _cache:
        record("-F", "1999", "-a", "-g", "-o", out("real.data"), command=["sh", "-c", BURN % 60000 + "; cat /proc/kallsyms "
                                                                   ">/dev/null; for k in 1 2 3 4; do /bin/true; done"])
        run("convert", "-i", out("real.data"), "-o", out("real.pb.gz"), check=0)
        _cache["recording"] = out("real.data"), out("real.pb.gz")
    return _cache["recording"]


def count_rows(path, key=None):
    """{name: (flat, cum)}, or by a label, from our own reader."""
    profile = Pprof(path)
    column = [name for name, _ in profile.types].index("cpu")
    functions = {f[1]: profile.text(f.get(2, 0)) for f in profile.functions}
    names = {}
    for location in profile.locations:
        names[location[1]] = [functions[message(line)[1]] for line in location[4]] or ["%#x" % location.get(3, 0)]
    flat, cum = {}, {}
    for stack, values, labels in profile.samples:
        frames = [labels.get(key)] if key else [name for place in stack for name in names[place]]
        flat[frames[0]] = flat.get(frames[0], 0) + values[column]
        for name in set(frames):
            cum[name] = cum.get(name, 0) + values[column]
    return {name: (flat.get(name, 0), cum[name]) for name in cum}


def test_a_recording_and_its_profile_give_the_same_table():
    data, profile = recording()
    for words in ((), ("--cum",), ("--sort", "comm"), ("--sort", "pid,comm,function")):
        ours, theirs = (run("report", path, "--format", "csv", "--nodecount", "0", *words, check=0).stdout
                        for path in (data, profile))
        assert ours == theirs, words


def test_the_table_of_a_recording_is_what_its_samples_say():
    _, profile = recording()
    ours, counted = rows(profile), count_rows(profile)
    assert set(ours) >= {name for name in counted if not name.startswith("0x")}
    for name, value in counted.items():
        if not name.startswith("0x"):
            assert ours[name] == value, (name, ours[name], value)
    by_comm = {row["labels"]["comm"]: row["flat"] for row in table(profile, "--sort", "comm")["rows"]}
    assert by_comm == {name: flat for name, (flat, _) in count_rows(profile, "comm").items()}
    assert sum(flat for flat, _ in ours.values()) == table(profile)["total"]


def pprof_rows(path, *words):
    """(flat, cum) of the functions; what has no name is one row for each binary there, for each address here."""
    text = pprof("-top", "-nodecount=1000000", "-nodefraction=0", "-edgefraction=0", "-unit=ns", "-sample_index=cpu",
                 "-symbolize=none", *words, path)
    found = []
    for line in text.splitlines():
        row = re.match(r"\s*(\d+)(?:ns)?\s+[\d.]+%\s+[\d.]+%\s+(\d+)(?:ns)?\s+[\d.]+%\s+(.*)", line)
        if row and not row.group(3).startswith(("[", "<unknown>")):
            found.append((int(row.group(1)), int(row.group(2))))
    return sorted(found)


def test_tables_are_those_of_go_tool_pprof():
    data, profile = recording()
    comm = max(count_rows(profile, "comm").items(), key=lambda row: row[1][0])[0]
    pid = max(count_rows(profile, "pid").items(), key=lambda row: row[1][0])[0]
    for ours, theirs in ((("--focus", "read|write"), ("-focus=read|write",)),
                         (("--ignore", "syscall"), ("-ignore=syscall",)),
                         (("--tagfocus", "comm=^%s$" % re.escape(comm)), ("-tagfocus=comm=^%s$" % re.escape(comm),)),
                         (("--tagfocus", "pid=%d" % pid), ("-tagfocus=pid=%d" % pid,)),
                         (("--focus", "sys", "--ignore", "page"), ("-focus=sys", "-ignore=page"))):
        answer = table(profile, *ours)
        named = sorted((row["flat"], row["cum"]) for row in answer["rows"]
                       if not row["name"].startswith("[") and not re.search(r"(^|\+)0x[0-9a-f]+$", row["name"]))
        assert named and named == pprof_rows(profile, *theirs), ours
    assert answer["total"]


def test_event_keeps_one_of_several():
    record("-e", "cpu-clock,page-faults", "-F", "499", "-o", out("two.data"), command=burn_command(30000))
    answer = table(out("two.data"), "--event", "page-faults")
    assert (answer["type"], answer["unit"]) == ("page_faults", "count"), answer["type"]
    both = table(out("two.data"), "--column", "page_faults")
    assert both["total"] == answer["total"] > 0
    assert "E612" in run("report", out("two.data"), "--event", "nosuch", check=65).stderr


main(globals())
