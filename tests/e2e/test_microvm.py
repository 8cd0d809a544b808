"""The microVM tier: the same run, in a guest of its own. Boots are few here, since this host may have to emulate them."""
# lane: full
import contextlib
import os
import pathlib
import random
import shutil
import signal
import subprocess
import time

import pytest

import small_base
from cerco import BUILD, Traces, children_of, descendants_of, find_below, wait_until
from world import DNS

LONG = os.environ.get("CERCO_LANE") == "long"
VMM = "qemu-system-x86"  # as the kernel cuts it
GUARD = 240


def lacking():
    if os.geteuid() != 0:
        return "a microVM needs root, for its tap"
    if not shutil.which("qemu-system-x86_64"):
        return "no qemu-system-x86_64 (tools/install-packages test)"
    if not shutil.which("mkfs.erofs"):
        return "no mkfs.erofs (tools/install-packages test)"
    if not (BUILD / "guest" / "vmlinuz").exists():
        return f"no guest kernel (tools/guest-kernel {BUILD}/guest)"
    if not os.access("/dev/net/tun", os.W_OK):
        return "no /dev/net/tun"
    return None


pytestmark = pytest.mark.skipif(lacking() is not None, reason=lacking() or "")


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return small_base.make(tmp_path_factory.mktemp("base"))


class Boxed:
    """Runs in the microVM tier with the small base."""

    def __init__(self, cerco, base):
        cerco.tier = "microvm"
        self.cerco, self.state = cerco, cerco.state
        self.flags = ["--set", "isolation.allow_emulation=true", "--set", f"filesystem.base=dir:{base}",
                      "--set", "limits.memory=512MiB"]

    def run(self, *args, **kwargs):
        return self.cerco.run(*self.flags, *args, guard=GUARD, **kwargs)

    def start(self, *args, **kwargs):
        return self.cerco.start("run", *self.flags, *args, **kwargs)


@pytest.fixture
def vm(cerco, base):
    return Boxed(cerco, base)


LOOK = """
uname -r; id -u; hostname; pwd; cat; echo err >&2
cat in.txt > out.txt
for f in /sys/kernel /dev/kvm /dev/vda /dev/vport0p1 /proc/kcore /base; do [ -s $f ] && echo "there: $f"; done
grep -c . /proc/modules; ls /dev; cat /sys/fs/cgroup/memory.max; grep Seccomp: /proc/self/status
touch /usr/x 2>/dev/null && echo "the base can be written"
exit 7
"""


def test_a_command_has_all_that_it_has_in_a_container(vm, tmp_path):
    """Streams, status, files both ways, report; E109: no /dev/kvm; no device of the machine; its own kernel."""
    (tmp_path / "in.txt").write_text("from the host")
    out = tmp_path / "out"
    result = vm.run("--in", tmp_path / "in.txt", "--out", out, "--", "sh", "-c", LOOK, input=b"input\n")
    assert result.status == 7, result
    lines = result.text.splitlines()
    assert lines[0] != os.uname().release and "cloud" in lines[0], lines
    assert lines[1:5] == ["1000", "sandbox", "/workspace", "input"], lines
    assert "there:" not in result.text and "can be written" not in result.text, result
    assert str(512 << 20) in lines and "Seccomp:\t2" in lines, lines
    assert result.err.endswith(b"err\n"), result
    assert (out / "out.txt").read_text() == "from the host"
    report = result.report
    assert report["tier"] == "microvm" and report["ending"]["kind"] == "exited", report
    assert report["usage"]["cpu_ms"] > 0 and report["usage"]["memory_peak_bytes"] > 0, report
    emulated = [entry for entry in report["below_advice"] if entry.startswith("emulated:")]
    checked = vm.cerco("check", "--tier", "microvm", *vm.flags, "--", "true")
    assert ("emulated" in checked.text) == bool(emulated), checked
    assert [event["type"] for event in result.of_type("run.started", "command.ended", "run.ended")] == [
        "run.started", "command.ended", "run.ended"]


def test_limits_hold_and_are_told_truly(vm):
    """The guest's own groups hold memory, processes and time; the report says which it was."""
    traces = Traces(vm.state)
    grab = "b = []\nwhile True: b.append(bytearray(16 << 20))"
    result = vm.run("--set", "limits.memory=256MiB", "--", "python3", "-c", grab)
    assert result.status == 137, result
    assert result.report["ending"]["kind"] == "out_of_memory", result
    result = vm.run("--timeout", "2s", "--", "sh", "-c", "trap '' TERM; while :; do sleep 1; done")
    assert result.status == 124 and result.report["ending"]["kind"] == "timed_out", result
    assert traces.since() == []


def test_the_network_has_one_door(vm, base, world):
    """Names and requests go through the gateway as in a container; E114: nothing else leaves, whatever its source."""
    world.web = world.https(["api.test", "evil.test"])
    world.names()
    box = Boxed(world.cerco(), base)
    policy = f"""
version = 1
[network]
resolvers = ["{DNS}"]
[[egress]]
host = "api.test"
methods = ["GET"]
paths = ["/v1/**"]
"""
    script = """
curl -sS -m 20 -o /dev/null -w '%{http_code}\\n' https://api.test/v1/me
curl -sS -m 20 -o /dev/null -w '%{http_code}\\n' https://api.test/v2/no
curl -sS -m 20 https://evil.test/ 2>&1 | grep -c 'Could not resolve'
curl -sS -m 20 http://169.254.169.254/ 2>&1 | grep -c 'Failed to connect'
curl -sS -m 20 http://10.0.0.1:8080/ 2>&1 | grep -c 'Failed to connect'
exit 0
"""
    result = box.run("--", "sh", "-c", script, policy=policy)
    assert result.text.split() == ["200", "403", "1", "1", "1"], result
    kinds = {(entry["kind"], entry["host"] or "-") for entry in result.report["refused"]}
    assert ("range", "169.254.169.254") in kinds and any(kind == "path" for kind, _ in kinds), result.report
    decisions = [event for event in result.of_type("egress.decision") if event["verdict"] == "allow"]
    assert [event["path"] if "path" in event else event["url"] for event in decisions], decisions


def test_a_vmm_that_is_killed_or_hangs_is_a_true_ending(vm):
    """E111: the run ends, says so, and leaves nothing."""
    traces = Traces(vm.state)
    process = vm.start("--", "sh", "-c", "echo up; sleep 600", stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       stdin=subprocess.DEVNULL)
    assert process.stdout.readline() == b"up\n"
    os.kill(find_below(process, VMM), signal.SIGKILL)
    process.communicate(timeout=GUARD)
    assert process.returncode not in (0, 124), process.returncode
    process = vm.start("--timeout", "4s", "--", "sh", "-c", "echo up; sleep 600", stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    assert process.stdout.readline() == b"up\n"
    os.kill(find_below(process, VMM), signal.SIGSTOP)
    process.communicate(timeout=GUARD)
    assert process.returncode == 124, process.returncode
    assert traces.since() == []


def test_the_vmm_stands_in_a_box_with_nothing_in_it(vm):
    """An escape from the guest lands there: another uid, no capability, filtered calls, no file but the VMM's own."""
    process = vm.start("--", "sh", "-c", "echo up; cat", stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       stdin=subprocess.PIPE)
    assert process.stdout.readline() == b"up\n"
    pid = find_below(process, VMM)
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    assert "CapEff:\t0000000000000000" in status and "CapBnd:\t0000000000000000" in status
    assert "Seccomp:\t2" in status and "NoNewPrivs:\t1" in status
    assert int(status.split("Uid:\t")[1].split()[0]) >= 1879000000
    root = pathlib.Path(f"/proc/{pid}/root")
    assert sorted(p.name for p in root.iterdir()) == sorted(
        {"dev", "lib64", "usr", "vmlinuz", "archive"} | ({"lib"} if (root / "lib").exists() else set()))
    assert not (root / "usr/bin/sh").exists() and not (root / "etc").exists()
    assert sorted(p.name for p in (root / "usr/bin").iterdir()) == ["qemu-system-x86_64"]
    for space in ("net", "pid", "mnt", "ipc", "uts", "user", "cgroup"):
        assert os.readlink(f"/proc/{pid}/ns/{space}") != os.readlink(f"/proc/self/ns/{space}"), space
    process.stdin.close()
    process.wait(GUARD)


def test_commands_of_a_session(vm, tmp_path):
    """start, exec, cp, rm: each command has its ending, and one that is ended takes its processes with it."""
    started = vm.cerco("start", *vm.flags, guard=GUARD)
    assert started.status == 0, started
    run = started.text.strip()
    try:
        assert vm.cerco("exec", run, "--", "sh", "-c", "echo out; exit 3").status == 3
        late = vm.cerco("exec", "--timeout", "1s", run, "--", "sh", "-c", "(setsid sleep 600 &) ; sleep 600")
        assert late.status == 124, late
        left = vm.cerco("exec", run, "--", "sh", "-c", "cat /proc/[0-9]*/comm")
        assert "sleep" not in left.text, left
        (tmp_path / "f").write_text("there and back")
        assert vm.cerco("cp", tmp_path / "f", f"{run}:g").status == 0
        assert vm.cerco("exec", run, "--", "cat", "g").out == b"there and back"
    finally:
        assert vm.cerco("rm", run, guard=GUARD).status == 0


def test_what_is_missing_is_one_message_and_no_weaker_tier(cerco, base, tmp_path):
    cerco.tier = "microvm"
    result = cerco.run("--set", f"filesystem.base=dir:{base}", "--", "true")
    if result.status != 0:
        assert result.status == 125 and "allow_emulation" in result.error, result
    result = cerco.run("--set", "isolation.allow_emulation=true", "--", "true")
    assert result.status == 125 and "cerco image warm host" in result.error, result
    result = cerco.run("--set", "isolation.allow_emulation=true", "--set", f"filesystem.base=dir:{tmp_path}", "--", "true")
    assert result.status == 125 and "usr" in result.error, result


@pytest.mark.skipif(not LONG, reason="many boots: in the long lane")
def test_microvms_killed_at_any_moment_leave_nothing(vm):
    traces = Traces(vm.state)
    chance = random.Random(11)
    for i in range(200):
        process = vm.start("--timeout", "60s", "--", "sh", "-c", "echo up; sleep 600", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                           stdin=subprocess.DEVNULL)
        wait_until(lambda: children_of(process.pid) or process.poll() is not None, what="the supervisor")
        time.sleep(chance.random() * 4)
        # The supervisor half the time; else the caller, the VMM, its box or a helper.
        victims = children_of(process.pid) if i % 2 else [chance.choice([process.pid, *descendants_of(process.pid)])]
        for victim in victims:
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
        process.stdout.close()
        assert process.wait(GUARD) != 0, i
        wait_until(lambda: not [t for t in traces.now() if t.startswith(("process", "mount", "loop"))],
                   what=lambda: f"run {i}: nothing alive; there is {traces.now()}")
    assert vm.cerco("gc").status == 0
    assert traces.since() == []
