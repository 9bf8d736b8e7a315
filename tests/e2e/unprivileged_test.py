# SPDX-License-Identifier: Apache-2.0
"""perfpipe as nobody: takes what perf_event_paranoid allows and says what is missing."""
import json, pwd, resource, shutil, stat
from support import *

if os.getuid() != 0:
    print("skipped: only root can become nobody")
    sys.exit(77)
try:
    nobody = pwd.getpwnam("nobody")
except KeyError:
    print("skipped: there is no user nobody")
    sys.exit(77)

# A copy where nobody may reach it.
there = folder()
os.chmod(there, 0o777)
program = shutil.copy(binary, os.path.join(there, "perfpipe"))
os.chmod(program, 0o755)


def become_nobody():
    os.setgroups([])
    os.setgid(nobody.pw_gid)
    os.setuid(nobody.pw_uid)


def as_nobody(*words, **how):
    return run(*words, program=program, cwd=there, preexec_fn=become_nobody, **how)


def paranoid():
    return int(open("/proc/sys/kernel/perf_event_paranoid").read())


def out(name):
    return os.path.join(there, name)


def need_own_processes():
    sampling = [c for c in json.loads(as_nobody("doctor", "--json").stdout)["checks"] if c["name"] == "sampling"][0]
    if sampling["status"] == "fail":
        raise Skip("nobody may sample nothing here: " + sampling["text"])


def test_doctor_tells_what_nobody_lacks():
    result = json.loads(as_nobody("doctor", "--json").stdout)
    checks = {c["name"]: c for c in result["checks"]}
    assert checks["capabilities"]["status"] == "warn"
    assert "perfmon" in checks["capabilities"]["text"]
    if paranoid() > 0:
        assert checks["sampling"]["status"] != "ok"


def test_the_whole_host_is_refused_with_the_gate_and_the_remedy():
    if paranoid() < 1:
        raise Skip("perf_event_paranoid is %d: everybody may" % paranoid())
    done = as_nobody("record", "-a", "-d", "1", "-o", out("a.pb.gz"), check=77)
    first = done.stderr.splitlines()[0]
    assert "[E101, exit 77]" in first and "perf_event_paranoid" in first, done.stderr
    assert "setcap cap_perfmon" in done.stderr
    assert not os.path.exists(out("a.pb.gz"))


def test_an_own_command_is_sampled_and_what_is_missing_is_said_once():
    need_own_processes()
    done = as_nobody("record", "-F", "999", "-o", out("own.pb.gz"), "--", *burn_command(300000), check=0)
    profile = Profile(out("own.pb.gz"))
    assert profile.total() > 50, done.stderr
    assert profile.label_values("comm") <= {"sh", "perfpipe"}
    if paranoid() >= 2:
        assert done.stderr.count("W109") <= 2 and "W109" in done.stderr, done.stderr  # line and `see:`
        assert not [name for name in profile.mappings if "kernel" in name]


def test_an_own_process_is_sampled():
    need_own_processes()
    target = subprocess.Popen(["sh", "-c", "sleep 0.5; " + BURN % 300000], preexec_fn=become_nobody)
    as_nobody("record", "-p", str(target.pid), "-F", "999", "-o", out("pid.pb.gz"), check=0)
    target.wait()
    assert Profile(out("pid.pb.gz")).total() > 20


def test_a_foreign_process_is_refused():
    target = burner()
    try:
        done = as_nobody("record", "-p", str(target.pid), "-d", "1", "-o", out("foreign.pb.gz"))
    finally:
        end(target)
    assert done.returncode == 77 and "E101" in done.stderr, done.stderr


def test_unreadable_input_and_folders_are_told():
    secret = write(out("secret.data"), perf_data())
    os.chmod(secret, 0o600)
    assert "E613" in as_nobody("convert", secret, "-o", out("s.pb.gz"), check=66).stderr
    assert "E701" in as_nobody("convert", secret, "-o", "/etc/s.pb.gz", check=73).stderr


def test_hidden_kernel_names_are_said_once():
    from support_recording import record
    if paranoid() < 2 and open("/proc/sys/kernel/kptr_restrict").read().strip() == "0":
        raise Skip("everybody may see the kernel's addresses")
    record("-a", "-g", "-e", "cpu-clock", "-o", out("kernel.data"), command=["sh", "-c", "ls -R /usr/share >/dev/null"])
    os.chmod(out("kernel.data"), 0o644)
    done = as_nobody("convert", out("kernel.data"), "-o", out("kernel.pb.gz"), check=0)
    assert done.stderr.count("[W103]") == 1, done.stderr
    checks = {c["name"]: c for c in json.loads(as_nobody("doctor", "--json").stdout)["checks"]}
    assert "CAP_SYSLOG" in checks["kernel_names"]["text"] or "everybody" in checks["kernel_names"]["text"]
    for name in checks["capabilities"]["text"].split("missing:")[1].split("(")[0].split():
        assert "cap_" + name in checks["capabilities"]["fix"]


def test_doctor_without_proc_says_so():
    if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode:
        raise Skip("no mount namespaces")
    done = subprocess.run(["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /proc && exec "$0" doctor', binary],
                          capture_output=True, text=True)
    assert done.stdout.count("there is no /proc") == 4 and "is -1" not in done.stdout, done.stdout + done.stderr


LONELY_UID = 61234  # nobody else counts for its RLIMIT_NPROC


def with_processes(n, script):
    def become():
        os.setgroups([])
        os.setgid(LONELY_UID)
        os.setuid(LONELY_UID)
        resource.setrlimit(resource.RLIMIT_NPROC, (n, n))
    done = subprocess.run(["sh", "-c", "exec " + script, program], cwd=there, preexec_fn=become, capture_output=True,
                          text=True, stdin=subprocess.DEVNULL, timeout=60)
    return done.returncode, done.stderr


def test_too_few_processes_are_said():
    need_own_processes()
    # Each process and thread counts: perfpipe, the command, what starts builders, the convert thread.
    for n, script, what in ((1, '"$0" record -o n.pb -- sleep 60', "fork"),
                            (2, '"$0" record -o n.pb -- sleep 60', "convert thread"),
                            (3, '"$0" record -o n.pb -p $$ -- sleep 60', "cannot start sleep")):
        code, text = with_processes(n, script)
        assert code == 1 and "[E117, exit 1]" in text and what in text and "fix:" in text, (n, script, text)
    left = [pid for pid in os.listdir("/proc") if pid.isdigit() and owner_of(pid) == LONELY_UID]
    assert not left, left


def owner_of(pid):
    try:
        return os.stat("/proc/" + pid).st_uid
    except OSError:
        return None


main(globals())
