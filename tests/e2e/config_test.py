# SPDX-License-Identifier: Apache-2.0
"""check-config and relabel: all mistakes at once and at the right places, and the examples."""
import re, socket
from support import *
from support_grpc import authority, certificate, server as echo_server
from support_grpc_servers import Backend, server_credentials

root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
examples = sorted(glob.glob(os.path.join(root, "configs/*.yaml")))
EXPORTER = b"exporters: {file: {directory: /d}}\n"


def clean(**more):
    return {**{k: v for k, v in os.environ.items() if not k.startswith("PERFPIPE_")}, **more}


def config(text, name="perfpipe.yaml"):
    return write(os.path.join(folder(), name), text)


TEN = b"""schema_version: one
receivers:
  perf:
    freqency: 99
    window: 10
processors:
  process: {read_environ: HOME}
  relabel:
    relabel_configs:
      - {source_labels: [comm], regex: "(?=x)", target_label: a}
exporters:
  parca:
    endpoint: ftp://parca.example
    bearer_token: hunter2
    bearer_token_file: /token
  pyroscope/lab: {}
service:
  node: ${env:NOBODY_SETS_THIS}
  pipelines:
    profiles: {receivers: [perf], processors: [process, relabel], exporters: [parca, pyroscope/lob]}
"""

TEN_ERRORS = """\
1:17: error: schema_version is "one", expected a number from 1 to 1 [E202, exit 78]
4:5: error: unknown key "freqency" in receivers.perf; did you mean "frequency"? [E201, exit 78]
5:13: error: receivers.perf.window is "10", expected a duration like 90s or 1h30m, from 1s to 1h [E202, exit 78]
7:27: error: processors.process.read_environ is "HOME", expected a list [E202, exit 78]
10:40: error: rule 1 of relabel: regular expression '(?=x)': look-ahead is not supported at character 1 [E208, exit 78]
13:15: error: exporters.parca: endpoint "ftp://parca.example": unknown scheme "ftp"; give HOST:PORT, https://HOST:PORT, \
http://HOST:PORT (plaintext) or unix:/PATH [E202, exit 78]
15:5: error: exporters.parca has bearer_token and bearer_token_file, of which it can use one [E207, exit 78]
16:3: error: exporters.pyroscope/lab needs endpoint [E207, exit 78]
18:9: error: environment variable NOBODY_SETS_THIS is not set; set it, or give a default: \
${env:NOBODY_SETS_THIS:-default} [E205, exit 78]
20:86: error: exporter "pyroscope/lob" of pipeline profiles is not defined; did you mean "pyroscope/lab"? [E204, exit 78]
"""


def test_ten_mistakes_are_ten_errors_at_their_places():
    path = config(TEN)
    done = run("check-config", path, check=78, env=clean())
    lines = done.stderr.splitlines()
    errors = [line[len(path) + 1:] for line in lines if line.startswith(path + ":")]
    assert "\n".join(errors) + "\n" == TEN_ERRORS, done.stderr
    assert lines[3] == "9 more errors below", done.stderr
    # Under each stands its line, and the caret under the place.
    source = TEN.decode().splitlines()
    rest = [line for i, line in enumerate(lines) if i != 3]
    for error, line, caret in zip(rest[0::3], rest[1::3], rest[2::3]):
        row, column = map(int, re.match(r":(\d+):(\d+):", error[len(path):]).groups())
        assert line == source[row - 1] and caret == " " * (column - 1) + "^", (error, line, caret)
    assert "hunter2" not in done.stderr and not done.stdout


def test_a_typo_reads_as_promised():
    # The key stands in line 27 and column 7.
    text = EXPORTER + b"receivers:\n" + b"#\n" * 23 + b"   perf:\n      freqency: 99\n      window: x\n      kernel: 1\n"
    path = config(text)
    stderr = run("check-config", path, check=78, env=clean()).stderr
    assert stderr.startswith(
        path + ':27:7: error: unknown key "freqency" in receivers.perf; did you mean "frequency"? [E201, exit 78]\n'
        "      freqency: 99\n"
        "      ^\n"
        "2 more errors below\n"), stderr
    one = run("check-config", config(EXPORTER + b"receivers: {perf: {freqency: 99}}\n"), check=78, env=clean()).stderr
    assert "below" not in one, one


def test_errors_as_json():
    done = run("check-config", "--format", "json", config(TEN), check=78, env=clean())
    found = [json.loads(line) for line in done.stderr.splitlines()]
    assert [(e["line"], e["column"]) for e in found] == [
        tuple(map(int, line.split(":")[:2])) for line in TEN_ERRORS.splitlines()]
    assert found[1]["code"] == "E201" and found[1]["fix"] and found[1]["why"]


def test_secrets_are_not_shown():
    text = (b"exporters:\n  parca:\n    endpoint: h\n    headers: {x-key: geheim1}\n"
            b"    basic_auth: {username: u, password: geheim2}\n")
    printed = run("check-config", "--print", config(text), check=0, env=clean()).stdout
    assert b"geheim" not in printed and printed.count(b"<redacted>") == 2, printed
    wrong = (b"exporters: {parca: {endpoint: h, frob: 1, headers: {x-key: geheim1}, bearer_token: [geheim2],"
             b" bearertoken: geheim3, basic_auth: {passwort: geheim4}}}\n")
    done = run("check-config", config(wrong), check=78, env=clean())
    assert "geheim" not in done.stderr and "********" in done.stderr, done.stderr
    # Of a long line only the part around the place is shown, masked all the same.
    text = ("exporters: {parca: {endpoint: h, %s bearer_token: geheim%s, frob: 1, headers: {a: geheim%s}}}\n"
            % (" " * 150, "x" * 40, "y" * 100))
    done = run("check-config", config(text.encode()), check=78, env=clean())
    shown, caret = done.stderr.splitlines()[1:3]
    assert len(shown) == 120 and "geheim" not in shown and shown[caret.index("^"):].startswith("frob: *, headers: {a: *"), shown


def test_control_characters_of_a_file_reach_no_terminal():
    for text in (EXPORTER + b'"\\e[31mred": 1\n', EXPORTER + "\u009b31m: 1\n".encode(), b"a: \x1b[31m\n"):
        done = run("check-config", config(text), check=78, env=clean())
        assert "\x1b" not in done.stderr and "\u009b" not in done.stderr, done.stderr


def test_examples_are_good():
    assert [os.path.basename(path) for path in examples] == [
        "full.yaml", "gitaly.yaml", "kubernetes.yaml", "minimal.yaml"]
    for path in examples:
        done = run("check-config", path, check=0, env=clean(CREDENTIALS_DIRECTORY="/run/credentials/x"))
        assert not done.stderr, done.stderr
        assert run("check-config", "--quiet", path, check=0,
                   env=clean(CREDENTIALS_DIRECTORY="/run/credentials/x")).stdout == b""


def test_print_shows_origins():
    path = config(EXPORTER + b"receivers:\n  perf: {frequency: 19}\nservice: {node: 'n-${env:WHERE}'}\n")
    out = run("check-config", "--print", path, check=0, env=clean(WHERE="x", PERFPIPE_LOG_LEVEL="warn")).stdout.decode()
    for line in (r"    frequency: 19 +# %s:3" % path, r"    kernel: true +# default",
                 r"  node: n-x +# %s:4, environment WHERE" % path,
                 r"      level: warn +# environment PERFPIPE_LOG_LEVEL",
                 r"      processors: \[process, gitaly, symbols, limits\] +# default"):
        assert re.search("^" + line + "$", out, re.M), (line, out)


def test_conf_d_is_merged():
    path = config(EXPORTER + b"service: {node: a}\n")
    os.mkdir(os.path.join(os.path.dirname(path), "conf.d"))
    more = write(os.path.join(os.path.dirname(path), "conf.d/more.yaml"), b"receivers: {perf: {frequency: 7}}\n")
    out = run("check-config", "--print", path, check=0, env=clean()).stdout.decode()
    assert re.search(r"frequency: 7 +# %s:1" % more, out), out
    write(more, b"service: {node: b}\n")
    stderr = run("check-config", path, check=78, env=clean()).stderr
    assert stderr.startswith("%s:1:11: error: service.node is set twice: here and in %s:2 [E203" % (more, path)), stderr


def test_tests_of_a_file_are_run():
    path = config(EXPORTER + b"""processors:
  relabel:
    relabel_configs: [{source_labels: [comm], target_label: who}]
tests:
  - {name: good, input: {comm: git}, expect: {who: git}}
  - {name: bad, input: {comm: git}, expect: {who: gut}}
""")
    stderr = run("check-config", path, check=78, env=clean()).stderr
    assert stderr.startswith(path + ':7:51: error: test "bad": who is "git", expected "gut" [E209, exit 78]\n'), stderr


def test_a_missing_file_is_exit_78():
    stderr = run("check-config", "/nonexistent/p.yaml", check=78, env=clean()).stderr
    assert stderr == ("perfpipe: error: cannot read the configuration: /nonexistent/p.yaml: No such file or directory "
                      "[E210, exit 78]\n"), stderr
    # PERFPIPE_CONFIG stands in for the usual place.
    run("check-config", check=0, env=clean(PERFPIPE_CONFIG=config(EXPORTER)))


def test_credentials_are_checked_by_systemd_only():
    path = config(b"exporters: {parca: {endpoint: h, bearer_token_file: '${credential:tok}'}}\n")
    done = run("check-config", path, check=0, env={k: v for k, v in clean().items() if k != "CREDENTIALS_DIRECTORY"})
    assert "[W221]" in done.stderr, done.stderr


# --- the schema ---

def keys_of(node, path=""):
    """All keys of a JSON Schema, as paths."""
    found = []
    for name, inner in {**node.get("properties", {}), **node.get("patternProperties", {})}.items():
        name = re.sub(r"^\^(\w+)\(.*", r"\1", name)
        found += [(path + name, inner["description"])] + keys_of(inner, path + name + ".")
    for inner in ([node["items"]] if "items" in node else []) + node.get("anyOf", []):
        found += keys_of(inner, path)
    return found


def schema():
    return json.loads(run("check-config", "--schema", check=0).stdout)


def test_the_schema_describes_every_key_as_the_man_page_does():
    page = open(os.path.join(root, "docs/perfpipe.yaml.5")).read().replace("\\e", "\\")
    keys = keys_of(schema())
    assert len(keys) > 120, len(keys)
    for key, what in keys:
        assert what, key
        section = re.match(r"(?:receivers|processors|exporters)\.\w+\.(?:relabel_configs\.)?(.*)", key)
        if section:
            name = section.group(1)
            assert re.search(r"^\.It Ic (\w+\.)?%s$" % re.escape(name), page, re.M), "not in the man page: " + key
            assert what in page, "described otherwise in the man page: %s: %s" % (key, what)


def test_examples_fit_the_schema():
    try:
        import yaml
    except ImportError:
        raise Skip("no python3-yaml")
    top = schema()
    for path in examples:
        fits(yaml.safe_load(open(path)), top, os.path.basename(path))
    for text in ("receivers: {perf: {freqency: 1}}", "receivers: {perf: {frequency: 0}}", "service: {node: [1]}",
                 "exporters: {parca: {}}", "receivers: {perf: {window: 10x}}", "receivers: {perf: {kernel: maybe}}"):
        try:
            fits(yaml.safe_load(text), top, "text")
        except AssertionError:
            continue
        raise AssertionError("the schema takes " + text)


TYPES = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool,
         "null": type(None)}


def is_type(value, name):
    return isinstance(value, TYPES[name]) and not (isinstance(value, bool) and name in ("integer", "number"))


def fits(value, node, path):
    """The part of JSON Schema that ours uses."""
    for key in node:
        assert key in ("$schema", "title", "description", "default", "type", "properties", "patternProperties", "items",
                       "additionalProperties", "required", "anyOf", "enum", "const", "pattern", "minimum", "maximum",
                       "minProperties", "maxProperties"), key
    if "anyOf" in node:
        for inner in node["anyOf"]:
            try:
                return fits(value, inner, path)
            except AssertionError:
                pass
        raise AssertionError("%s: %r fits nothing" % (path, value))
    if "type" in node:
        names = node["type"] if isinstance(node["type"], list) else [node["type"]]
        assert any(is_type(value, name) for name in names), "%s: %r is no %s" % (path, value, names)
    if "enum" in node:
        assert value in node["enum"], "%s: %r" % (path, value)
    if "const" in node:
        assert value == node["const"] and not isinstance(value, bool), "%s: %r" % (path, value)
    if "pattern" in node:
        assert re.search(node["pattern"], value), "%s: %r does not match %s" % (path, value, node["pattern"])
    if "minimum" in node:
        assert node["minimum"] <= value, "%s: %r" % (path, value)
    if "maximum" in node:
        assert value <= node["maximum"], "%s: %r" % (path, value)
    if isinstance(value, list) and "items" in node:
        for i, element in enumerate(value):
            fits(element, node["items"], "%s[%d]" % (path, i))
    if not isinstance(value, dict):
        return
    assert node.get("minProperties", 0) <= len(value) <= node.get("maxProperties", 1000), path
    assert not set(node.get("required", [])) - set(value), path
    for key, inner in value.items():
        patterns = [p for p in node.get("patternProperties", {}) if re.search(p, key)]
        if key in node.get("properties", {}):
            fits(inner, node["properties"][key], path + "." + key)
        elif patterns:
            fits(inner, node["patternProperties"][patterns[0]], path + "." + key)
        else:
            assert node.get("additionalProperties", True), "%s has no %s" % (path, key)
            if isinstance(node.get("additionalProperties"), dict):
                fits(inner, node["additionalProperties"], path + "." + key)


# --- connections ---

def remote(port, settings=""):
    return config(("exporters: {parca: {endpoint: 'localhost:%d'%s}}\n" % (port, settings)).encode())


def test_connect_reaches_servers_without_sending():
    with Backend("parca") as server:
        done = run("check-config", "--connect", remote(server.port, ", tls: {insecure: true}"), check=0, env=clean())
        assert b"parca: localhost:%d: reached, and serving\n" % server.port in done.stdout, done.stdout
        assert not server.stored
    pair = certificate()
    with Backend("parca", credentials=server_credentials(pair)) as server:
        run("check-config", "--connect", remote(server.port, ", tls: {ca_file: %s}" % authority("Test CA")[0]), check=0,
            env=clean())
        done = run("check-config", "--connect", remote(server.port), check=75, env=clean())
        assert ('error: parca: certificate of localhost:%d is not trusted: issuer "Test CA" unknown [E301, exit 75]'
                % server.port) in done.stderr, done.stderr


def test_connect_tells_credentials_and_missing_health_services():
    with Backend("parca", token="Bearer right") as server:
        plain = ", tls: {insecure: true}, bearer_token: "
        run("check-config", "--connect", remote(server.port, plain + "right"), check=0, env=clean())
        done = run("check-config", "--connect", remote(server.port, plain + "geheim"), check=77, env=clean())
        assert "[E302, exit 77]" in done.stderr and "geheim" not in done.stderr, done.stderr
    with echo_server() as port:
        done = run("check-config", "--connect", remote(port, ", tls: {insecure: true}"), check=0, env=clean())
        assert done.stdout.endswith(b": reached\n"), done.stdout


def test_connect_says_why_it_cannot():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    done = run("check-config", "--connect", remote(port, ", tls: {insecure: true}"), check=75, env=clean())
    assert "error: parca: " in done.stderr and "[E305, exit 75]" in done.stderr, done.stderr
    at = folder()
    good = config(b"exporters: {file: {directory: %s/new}}\n" % at.encode())
    assert b"can be written" in run("check-config", "--connect", good, check=0, env=clean()).stdout
    bad = config(b"exporters: {file: {directory: /nonexistent/a/b}}\n")
    assert "[E701" in run("check-config", "--connect", bad, check=73, env=clean()).stderr


# --- relabel ---

GITALY = os.path.join(root, "configs/gitaly.yaml")


def test_relabel_explains_each_rule():
    out = run("relabel", "--explain", "-c", GITALY, "--input", "comm=git", "__meta_gitaly_role=gitaly-git",
              "__meta_gitaly_cgroup=repos-17", check=0, env=clean()).stdout.decode().replace(GITALY, "FILE")
    assert re.sub(r"FILE:\d+", "FILE", out) == """\
input
    __meta_gitaly_cgroup="repos-17"
    __meta_gitaly_role="gitaly-git"
    comm="git"
relabel rule 1 (FILE): drop source_labels=[comm] regex="swapper.*"
    no change
relabel rule 2 (FILE): replace source_labels=[__meta_gitaly_role] regex="(.+)" target_label="service_name"
    + service_name="gitaly-git"
relabel rule 3 (FILE): replace source_labels=[__meta_gitaly_cgroup] regex="(repos-\\\\d+)" target_label="cgroup"
    + cgroup="repos-17"
result
    cgroup="repos-17"
    comm="git"
    service_name="gitaly-git"
""", out


def test_relabel_shows_drops_and_changes():
    out = run("relabel", "--explain", "-c", GITALY, "--input", "comm=swapper/1", check=0, env=clean()).stdout.decode()
    assert out.endswith("    dropped\nresult\n    dropped\n"), out
    assert run("relabel", "-c", GITALY, "--input", "comm=swapper/1", check=0, env=clean()).stdout == b""
    path = config(EXPORTER + b"processors: {relabel: {relabel_configs: [{target_label: a, replacement: y},"
                  b" {regex: b, action: labeldrop}]}}\n")
    out = run("relabel", "--explain", "-c", path, "--input", "a=x", "b=z", check=0, env=clean()).stdout.decode()
    assert '    ~ a="x" → "y"\n' in out and '    - b="z"\n' in out, out
    found = json.loads(run("relabel", "--explain", "--format", "json", "-c", path, "--input", "a=x", "--input", "b=z",
                           check=0, env=clean()).stdout)
    assert [rule["labels"] for rule in found["rules"]] == [{"a": "y", "b": "z"}, {"a": "y"}], found
    assert found["verdict"] == "kept" and found["labels"] == {"a": "y"}


def test_relabel_refuses_bad_words_and_files():
    run("relabel", "-c", GITALY, "--input", "9=x", check=2, env=clean())
    run("relabel", "-c", GITALY, "--input", "x", check=2, env=clean())
    run("relabel", "-c", GITALY, "--pipeline", "nope", "--input", "a=b", check=2, env=clean())
    run("relabel", "-c", config(TEN), "--input", "a=b", check=78, env=clean())


main(globals())
