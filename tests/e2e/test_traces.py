"""Nothing is left: after many runs, and after the supervisor of a run was killed at any moment."""
# lane: full
import os
import pathlib
import random
import signal
import subprocess
import time

import pytest

from cerco import GUARD, Cerco, Traces, children_of, descendants_of, wait_until

LONG = os.environ.get("CERCO_LANE") == "long"


def test_many_runs_leave_nothing(cerco):
    """E103, E105, F89: 200 runs in a row and side by side."""
    cerco.run("--", "true")
    traces = Traces(cerco.state)
    script = "echo x > f; setsid sleep 100 & exit 0"
    for i in range(200 if not LONG else 1000):
        result = cerco("run", "--name", "again", "--", "sh", "-c", script)
        assert result.status == 0, (i, result)
    side = [cerco.start("run", "--name", f"n{i}", "--", "sh", "-c", script, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for i in range(16)]
    for process in side:
        assert process.wait(GUARD) == 0, process.stderr.read()
    assert traces.since() == []
    journals = [p for p in (cerco.state / "journal").glob("*.jsonl") if p.name != "host.jsonl"]
    assert len(journals) == 217 if not LONG else 1017


def test_the_supervisor_killed_at_any_moment_leaves_nothing(cerco):
    """F91: at once no process, mount, loop device or namespace; after `cerco gc` nothing but the journal."""
    cerco.run("--", "true")
    traces = Traces(cerco.state)
    chance = random.Random(7)
    for i in range(50 if not LONG else 500):
        process = cerco.start("run", "--", "sh", "-c", "setsid sleep 600 & echo up; sleep 600", stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        if i % 2:
            assert process.stdout.readline() == b"up\n"
        else:
            wait_until(lambda: children_of(process.pid) or process.poll() is not None, what="the supervisor")
            time.sleep(chance.random() * 0.1)  # any moment of a start, and a little later
        for child in children_of(process.pid):
            os.kill(child, signal.SIGKILL)
        process.stdout.close()
        process.wait(GUARD)
        gone = wait_until(lambda: not [t for t in traces.now() if t.startswith(("process", "mount", "loop"))],
                          what=lambda: f"run {i}: nothing alive; there is {traces.now()}")
        assert gone
    assert cerco("gc").status == 0
    assert traces.since() == []
    verified = cerco("log", "verify")
    assert verified.status == 0, verified
    assert cerco.run("--", "echo", "well").out == b"well\n"


def namespaces_of(pids):
    found = set()
    for pid in pids:
        for link in pathlib.Path(f"/proc/{pid}/ns").glob("*"):
            try:
                found.add(os.readlink(link))
            except OSError:
                pass
    return found


def start_and_stay(cerco):
    process = cerco.start("run", "--", "sh", "-c", "echo up; read line", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL)
    assert process.stdout.readline() == b"up\n"
    return process


def test_namespaces_are_gone(cerco):
    traces = Traces(cerco.state)
    process = start_and_stay(cerco)
    made = namespaces_of(descendants_of(process.pid)) - namespaces_of(["self"])
    assert len({name.split(":")[0] for name in made}) >= 8, made
    process.communicate(b"go\n", timeout=GUARD)
    assert process.returncode == 0
    # Numbers of namespaces are given anew, so another's processes do not count.
    everyone = [int(p.name) for p in pathlib.Path("/proc").glob("[0-9]*")]
    assert namespaces_of(pid for pid in everyone if traces.is_ours(pid)) & made == set()
    assert subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout.count("cerco") == 0


def test_traces_sees_what_is_there_and_only_its_own(cerco, tmp_path):
    """The control of all that finds nothing."""
    cerco.run("--", "true")
    traces, others = Traces(cerco.state), Traces(Cerco(tmp_path / "other").state)
    process = start_and_stay(cerco)
    seen = traces.now()
    assert {line.split()[0] for line in seen} >= {"process", "loop", "cgroup", "file"}, seen
    processes = [line for line in seen if line.startswith("process")]
    for name in ("cerco-ini", "cerco-journal", " sh "):
        assert [line for line in processes if name in line], processes
    assert others.now() == []
    process.communicate(b"go\n", timeout=GUARD)
    assert traces.since() == []


def test_a_sandbox_is_new_each_time(cerco):
    """E105: files, /tmp and home of one run are not there in the next."""
    cerco.run("--", "sh", "-c", "for d in . ~ /tmp /var/tmp /dev/shm; do echo residue > $d/left; done")
    result = cerco.run("--", "sh", "-c", "ls . ~ /tmp /var/tmp /dev/shm | grep -c left; true")
    assert result.text.strip() == "0"


def test_a_host_without_room_is_a_refusal(cerco):
    """A disk limit that the host cannot keep stops the start, and says so with both numbers."""
    result = cerco.run("--set", 'limits.disk="64TiB"', "--", "true")
    assert result.status == 125 and "disk" in result.error and "64" in result.error, result
