"""`cerco run` as an ordinary user: the same policy, what is held otherwise, and hosts that refuse it."""
# lane: full
# sanitized
import errno
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

import pytest

from cerco import BUILD, GUARD, ROOT, Cerco, descendants_of, find_below, status_of, wait_until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="takes root, to be another user")
UNHELD = ("--set", 'limits.not_required=["memory", "cpus", "io"]')
SHARED = '[limits]\nnot_required = ["memory", "cpus", "io"]\n'


def free_uid():
    """A number that no account, no range of subordinate ids and no process has."""
    taken = {int(line.split(":")[2]) for line in pathlib.Path("/etc/passwd").read_text().splitlines()}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        taken.add((status_of(folder.name) or ("", 0, 0))[1])
    return next(number for number in range(52000, 60000) if number not in taken)


class User(Cerco):
    """A cerco that an ordinary user runs, with a home of its own that goes with it."""

    def __init__(self, groups=()):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="cerco-user-"))
        self.uid = free_uid()
        self.groups = groups
        os.chown(self.home, self.uid, self.uid)
        super().__init__(self.home, self.as_user())
        self.environment = {"XDG_STATE_HOME": ""}
        self.state = self.home / ".local/state/cerco"

    def as_user(self):
        groups = f"--groups={','.join(map(str, self.groups))}" if self.groups else "--clear-groups"
        return ["setpriv", f"--reuid={self.uid}", f"--regid={self.uid}", groups]

    def env(self, more=None):
        env = super().env(more)
        env.pop("CERCO_STATE_DIR")
        return env

    def left(self):
        """What of this user still runs, and which folders of its are still in use."""
        found = [folder.name for folder in pathlib.Path("/proc").glob("[0-9]*")
                 if (status_of(folder.name) or ("", 0, 0))[1] == self.uid]
        return found

    def close(self):
        for pid in self.left():
            os.kill(int(pid), signal.SIGKILL)
        shutil.rmtree(self.home, ignore_errors=True)


@pytest.fixture
def user():
    made = User()
    reachable = subprocess.run([*made.prefix, "test", "-x", str(BUILD / "cerco")]).returncode == 0
    if not reachable:
        made.close()
        pytest.skip(f"an ordinary user cannot reach {BUILD}")
    yield made
    made.close()


def test_what_cannot_be_held_is_refused_in_one_line(user):
    result = user.run("--", "true")
    assert result.status == 125, result
    assert len(result.error.splitlines()) == 1
    for part in ("limits.memory", "limits.cpus", "limits.not_required"):
        assert part in result.error, result
    assert result.report["ending"]["kind"] == "start_failed"


def test_runs_as_agent_without_any_right(user):
    result = user.run(*UNHELD, "--", "sh", "-c", "id -u; id -g; hostname; pwd; grep -E '^(Cap|NoNew|Seccomp:)' /proc/self/status; echo $HOME")
    assert result.status == 0, result
    lines = result.text.split()
    assert lines[:4] == ["1000", "1000", "sandbox", "/workspace"], result
    assert lines[4:-1] == ["CapInh:", "0" * 16, "CapPrm:", "0" * 16, "CapEff:", "0" * 16, "CapBnd:", "0" * 16,
                           "CapAmb:", "0" * 16, "NoNewPrivs:", "1", "Seccomp:", "2"]
    assert result.report["unheld"] == ["memory", "cpus"]
    assert any(entry.startswith("rootless: ") for entry in result.report["below_advice"]), result.report
    assert user.state.joinpath("journal", f"{result.report['run']}.jsonl").stat().st_uid == user.uid
    assert user("log", "verify").status == 0


def test_check_tells_what_is_weaker(user):
    result = user("check", *UNHELD, "--", "true")
    assert result.status == 0, result
    for part in ("rootless: ", "NOT HELD on this host: memory", "NOT HELD on this host: cpus", "disk in memory of",
                 "map_users 1000 to the caller's own uid"):
        assert part in result.text, result
    assert user("check", "--strict", *UNHELD, "--", "true").status == 1
    accepted = ("--set", 'isolation.accept=["rootless", "shared-kernel"]')
    assert user("check", "--strict", *UNHELD, *accepted, "--", "true").status == 0


def test_files_go_in_and_come_out_as_the_callers(user):
    source = user.home / "in.txt"
    source.write_text("hello\n")
    os.chown(source, user.uid, user.uid)
    result = user.run(*UNHELD, "--in", source, "--out", user.home / "out", "--", "sh", "-c", "tr a-z A-Z < in.txt > made.txt")
    assert result.status == 0, result
    made = user.home / "out/made.txt"
    assert made.read_text() == "HELLO\n"
    assert made.stat().st_uid == user.uid
    assert result.report["changes"] == 1


def test_the_home_of_the_caller_is_not_there(user):
    secret = user.home / "secret"
    secret.write_text("s3cret")
    os.chown(secret, user.uid, user.uid)
    secret.chmod(0o600)
    result = user.run(*UNHELD, "--", "sh", "-c", f"cat {secret}; ls -A /home /root /var/lib 2>/dev/null; touch /x /usr/x /etc/passwd")
    assert b"s3cret" not in result.out + result.err
    assert result.out.split() == [b"/home:", b"agent"], result
    assert result.status == 1
    # The control: the same user reads it outside, and inside where the caller brings it in.
    assert subprocess.run([*user.prefix, "cat", str(secret)], capture_output=True).stdout == b"s3cret"
    named = user.run(*UNHELD, "--in", secret, "--", "cat", "secret")
    assert named.out == b"s3cret", named


BOMB = """
import os, sys, time
made = 0
try:
    for _ in range(60):
        if os.fork() == 0:
            time.sleep(600)
        made += 1
except BlockingIOError:
    pass
print(made, flush=True)
"""


def test_processes_are_limited_by_the_namespace(user):
    """The process limit without a cgroup: this program is one of the 20, and others of the user count for nothing."""
    other = subprocess.Popen([*user.prefix, "sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 600 & done; wait"])
    try:
        result = user.run(*UNHELD, "--set", "limits.processes=20", "--", "python3", "-c", BOMB)
        assert (result.status, result.out) == (0, b"19\n"), result
        free = user.run(*UNHELD, "--set", "limits.processes=20", "--", "python3", "-c", BOMB, without=["process_limit"])
        assert (free.status, free.out) == (0, b"60\n"), free
    finally:
        for pid in [*descendants_of(other.pid), other.pid]:
            os.kill(pid, signal.SIGKILL)
        other.wait()
    assert wait_until(lambda: not user.left(), what="the end of every process") is True


def test_the_disk_is_limited_and_in_memory(user):
    fill = "dd if=/dev/zero of=/tmp/x bs=1M count=40 2>&1 | grep -o 'No space left'; stat -f -c %T /workspace"
    result = user.run(*UNHELD, "--set", "limits.disk=8MiB", "--", "sh", "-c", fill)
    assert result.out == b"No space left\ntmpfs\n", result
    assert result.report["limits_hit"] == ["disk"]
    small = user.run(*UNHELD, "--set", "limits.memory=16MiB", "--", "sh", "-c", fill)
    assert small.out == b"No space left\ntmpfs\n", "half of limits.memory"
    free = user.run(*UNHELD, "--set", "limits.disk=8MiB", "--", "sh", "-c", fill, without=["disk_limit"])
    assert free.out == b"tmpfs\n", free


ATTACKS = """
import ctypes, os, resource, sys
libc = ctypes.CDLL(None, use_errno=True)
def attempt(name, act):
    try:
        act()
        print(name, "GOT", flush=True)
    except OSError as error:
        print(name, os.strerror(error.errno), flush=True)
def call(*args):
    if libc.syscall(*args) < 0: raise OSError(ctypes.get_errno(), "")
attempt("prlimit", lambda: resource.prlimit(1, resource.RLIMIT_NOFILE, (3, 3)))
attempt("affinity", lambda: os.sched_setaffinity(1, {0}))
attempt("scheduler", lambda: os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0)))
attempt("nice", lambda: os.setpriority(os.PRIO_PROCESS, 1, 19))
attempt("nice of all", lambda: os.setpriority(os.PRIO_USER, 0, 19))
attempt("ioprio", lambda: call(251, 1, 1, 3 << 13))
attempt("ioprio of all", lambda: call(251, 3, 1000, 3 << 13))
attempt("memory", lambda: open("/proc/1/mem", "rb"))
attempt("environment", lambda: open("/proc/1/environ", "rb").read())
attempt("root", lambda: os.listdir("/proc/1/root"))
attempt("descriptors", lambda: os.listdir("/proc/1/fd"))
os.kill(1, 9); os.kill(1, 19)
print("alive", flush=True)
"""
NOT_PERMITTED = {"prlimit", "affinity", "scheduler", "nice", "nice of all", "ioprio", "ioprio of all"}


def attack(result):
    return dict(line.rsplit(" ", 1) if line.endswith("GOT") else line.split(" ", 1) if " all " not in line
                else (line[:line.index(" all ") + 4], line[line.index(" all ") + 5:])
                for line in result.text.splitlines() if line != "alive")


def test_init_is_not_the_workloads_although_it_has_its_uid(user):
    """What the kernel would allow to one uid is refused by seccomp, or by init's own being undumpable."""
    result = user.run(*UNHELD, "--", "python3", "-c", ATTACKS)
    assert result.status == 0 and result.text.splitlines()[-1] == "alive", result
    got = attack(result)
    assert {name for name, answer in got.items() if answer == "GOT"} == set(), result
    assert {name for name, answer in got.items() if answer == "Operation not permitted"} == NOT_PERMITTED, result
    free = attack(user.run(*UNHELD, "--", "python3", "-c", ATTACKS, without=["seccomp"]))
    assert {name for name, answer in free.items() if answer == "GOT"} == NOT_PERMITTED, free


def test_no_lease_makes_a_program_of_the_host_wait(user):
    """E79: a file that is shared to be read is the workload's own to the kernel, and a lease would hold up who opens it to write."""
    shared = user.home / "shared"
    shared.mkdir()
    (shared / "file").write_text("x")
    for path in (shared, shared / "file"):
        os.chown(path, user.uid, user.uid)
    script = (f"import fcntl\nwith open('{shared}/file') as file:\n    try:\n        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)\n"
              "        print('GOT')\n    except OSError as error:\n        print(error.errno)\n    print(fcntl.fcntl(file, fcntl.F_GETLEASE) == fcntl.F_UNLCK)")
    held = user.run(*UNHELD, "--ro", shared, "--", "python3", "-c", script)
    assert held.text.split() == [str(errno.EPERM), "True"], held
    free = user.run(*UNHELD, "--ro", shared, "--", "python3", "-c", script, without=["seccomp"])
    assert free.text.split() == ["GOT", "False"], free


def test_nothing_reaches_the_network_and_the_gateway_answers(user):
    ask = ("python3", "-c", "import socket\n"
           "for at in (('127.0.0.1', 9), ('169.254.169.254', 80), ('192.0.2.1', 443)):\n"
           "    try: socket.create_connection(at, 5); print('GOT')\n"
           "    except OSError as error: print(error.errno)\n"
           "try: print(socket.getaddrinfo('x.test', 80))\n"
           "except OSError as error: print(error.errno)")
    result = user.run(*UNHELD, "--", *ask)
    assert result.out.split() == [b"111", b"111", b"111", b"-2"], result
    assert {row["host"] for row in result.report["refused"]} >= {"x.test"}, result.report


@pytest.fixture(scope="module")
def net(world):
    world.plain = world.http("plain.test")
    world.names()
    return world


def test_an_allowed_host_is_reached_through_the_gateway(user, net):
    """The same capture, gateway and decision as root has."""
    user.prefix = ["nsenter", f"--net=/run/netns/{net.host}", *user.as_user()]
    ask = "curl -sS -m 20 -o /dev/null -w '%{http_code}\\n' http://plain.test/a; curl -sS -m 20 http://other.test/"
    result = user.run(*UNHELD, "--allow", "plain.test:80", "--", "sh", "-c", ask, policy=net.policy(""))
    assert result.out == b"200\n", result
    assert [entry["path"] for entry in net.plain.entries() if entry["event"] == "request"] == ["/a"], net.plain.entries()
    verdicts = {(event["host"], event["verdict"]) for event in result.of_type("egress.decision", "dns.decision")}
    assert {("plain.test", "allow"), ("other.test", "deny")} <= verdicts, verdicts


def test_detectors_cut_the_network_and_end_what_they_cannot_freeze(user, net):
    user.prefix = ["nsenter", f"--net=/run/netns/{net.host}", *user.as_user()]
    script = ("curl -sS -o /dev/null -w '%{http_code}\\n' http://plain.test/; curl -s -m 5 http://10.0.0.1/; for i in $(seq 200); do"
              " curl -s -m 5 -o /dev/null http://plain.test/ || { echo cut; exit; }; sleep 0.05; done; echo open")
    endings = {}
    for action in ("cut-network", "freeze"):
        policy = net.policy(f'[alerts]\nblocked_range = "{action}"')
        result = user.run(*UNHELD, "--allow", "plain.test:80", "--", "sh", "-c", script, policy=policy)
        assert [event["action"] for event in result.of_type("containment")] == [action], result
        endings[action] = (result.text.split(), result.report["ending"]["kind"])
    assert endings == {"cut-network": (["200", "cut"], "exited"), "freeze": (["200"], "killed")}


def test_no_session_without_a_group_to_tell_its_commands_apart_by(user):
    refused = user("start", *UNHELD)
    assert refused.status == 125 and "no cgroup to tell their processes apart by" in refused.err.decode(), refused
    wait_until(lambda: not user.left(), what=lambda: f"the end of {user.left()}")


def test_nothing_is_left_when_the_supervisor_is_killed(user):
    process = user.start("run", *UNHELD, "--", "sh", "-c", "setsid sleep 600 & sleep 600")
    # setpriv becomes cerco, whose only child is the supervisor.
    init = wait_until(lambda: find_below(process, "cerco-init") or find_below(process, "memfd:cerco-ini"), what="init")
    wait_until(lambda: len(descendants_of(init)) >= 2, what="the command")
    supervisor = status_of(init)[2]
    os.kill(supervisor, signal.SIGKILL)
    process.wait(GUARD)
    wait_until(lambda: not user.left(), what=lambda: f"the end of {user.left()}")
    assert user("gc").status == 0


def test_supplementary_groups_are_what_the_caller_has_and_it_is_said(user):
    other = User(groups=(54321,))
    try:
        shared = other.home / "shared"
        shared.write_text("of the group")
        os.chown(shared, 0, 54321)
        shared.chmod(0o640)
        result = other.run(*UNHELD, "--ro", shared, "--", "cat", shared)
        assert result.out == b"of the group", "the kernel lets nobody give groups up in a namespace of one id"
        assert "supplementary groups" in "".join(result.report["below_advice"])
    finally:
        other.close()


def test_the_demo_is_right_as_a_user(user):
    if not (ROOT / "build/cerco").exists():
        pytest.skip("the demo runs build/cerco, which is not built")
    # In a network namespace of its own, so that the demo's port is free.
    prefix = ["unshare", "--net", "sh", "-c", 'ip link set lo up; exec "$@"', "sh", *user.as_user()]
    done = subprocess.run([*prefix, str(ROOT / "examples/demo")], env=user.env(), capture_output=True, text=True, timeout=4 * GUARD)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "GOT OUT" not in done.stdout and "not held" in done.stdout
    assert "chart.svg: " in done.stdout and "holds: " in done.stdout


# --- Hosts that refuse ------------------------------------------------------------------------------------------------


def within(user, script):
    """`script` in a user namespace of the user's, with every right in it and the user's own number."""
    return [*user.as_user(), "unshare", "--user", "--map-current-user", "--keep-caps", "sh", "-c", f'{script}; exec "$@"', "sh"]


def test_f60_a_host_without_user_namespaces_says_which_setting_would_do(user):
    user.prefix = within(user, "echo 0 > /proc/sys/user/max_user_namespaces")
    for status, result in ((125, user.run(*UNHELD, "--", "true")), (1, user("check", *UNHELD, "--", "true"))):
        assert result.status == status, result
        assert len(result.error.splitlines()) == 1, result
        assert "user.max_user_namespaces=15000" in result.error, result
    user.prefix = within(user, "true")
    assert user.run(*UNHELD, "--", "true").status == 0, "the control: the same without the limit"


def test_f61_a_host_without_network_namespaces_says_so(user):
    user.prefix = within(user, "echo 0 > /proc/sys/user/max_net_namespaces")
    result = user.run(*UNHELD, "--", "true")
    assert result.status == 125, result
    assert "user.max_*_namespaces" in result.error, result


def test_an_outer_container_that_covers_proc_is_named(user):
    hidden = "mount --bind /dev/null /proc/cmdline"
    user.prefix = [*user.as_user(), "unshare", "--user", "--map-current-user", "--mount", "--keep-caps", "sh", "-c",
                   f'{hidden}; exec "$@"', "sh"]
    result = user.run(*UNHELD, "--", "true")
    assert result.status == 125, result
    assert "systempaths=unconfined" in result.error, result


def removed(group):
    """Whether the control group could go: a process that has answered already may still be leaving it."""
    try:
        group.rmdir()
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        return False
    return True


def test_a_delegated_group_holds_the_limits(user):
    """Where a group of every controller belongs to the user nothing has to be given up."""
    made = []
    groups = {}
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        fields = line.split()
        kind, _, options = fields[fields.index("-") + 1:][:3]
        if kind == "cgroup" and "name=" not in options:
            groups.update({name: fields[4] for name in options.split(",")})
        elif kind == "cgroup2":
            groups["unified"] = fields[4]
    if not {"memory", "cpu", "cpuacct", "pids"} <= set(groups):
        pytest.skip("the controllers are not mounted as version 1 here")
    try:
        for top in sorted({groups[name] for name in ("memory", "cpu", "cpuacct", "pids", "unified") if name in groups}):
            folder = pathlib.Path(top) / f"delegated-{user.uid}"
            folder.mkdir()
            made.append(folder)
            for path in (folder, *folder.glob("cgroup.procs"), *folder.glob("tasks"), *folder.glob("cgroup.subtree_control")):
                os.chown(path, user.uid, user.uid)
        enter = "; ".join(f"echo $$ > {folder}/cgroup.procs" for folder in made)
        user.prefix = ["sh", "-c", f'{enter}; exec "$@"', "sh", *user.as_user()]
        result = user.run("--set", "limits.memory=64MiB", "--", "python3", "-c", "x = bytearray(1 << 28)")
        assert result.status == 137, result
        assert (result.report["ending"]["kind"], result.report["unheld"]) == ("out_of_memory", []), result.report
        assert result.report["usage"]["memory_peak_bytes"] > 1 << 20
        assert [name for folder in made for name in folder.glob("cerco-*")] == []
    finally:
        for folder in made:
            for below in folder.glob("cerco-*"):
                below.rmdir()
            wait_until(lambda group=folder: removed(group), what=f"the end of {folder}")
