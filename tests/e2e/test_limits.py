"""Limits in depth: what programs inside read of them, processor time, and what neighbours notice."""
# lane: full
import os
import pathlib
import shutil
import subprocess

import pytest

from cerco import GUARD

READ = """
import os, re
info = dict(re.findall(r"^(\\w+): +(\\d+) kB$", open("/proc/meminfo").read(), re.M))
print(len(os.sched_getaffinity(0)), info["MemTotal"], info["MemAvailable"], info["SwapTotal"])
def group(*names):
    for name in names:
        try: return open("/sys/fs/cgroup/" + name).read().split()
        except FileNotFoundError: pass
print(*group("memory/memory.limit_in_bytes", "memory.max"), *group("pids/pids.max", "pids.max"), group("cpu/cpu.cfs_quota_us", "cpu.max")[0])
print({line.split(":")[2] for line in open("/proc/self/cgroup").read().split() if "systemd" not in line})
"""
SMALL = ("--set", "limits.cpus=0.5", "--set", "limits.memory=96MiB", "--set", "limits.processes=50")


def test_what_programs_read_agrees_with_the_limits(cerco):
    result = cerco.run(*SMALL, "--", "python3", "-c", READ)
    assert result.status == 0, result
    first, second, groups = result.text.splitlines()
    assert first == "1 98304 98304 0"
    assert second == f"{96 << 20} 51 50000"
    assert groups == "{'/'}", "the own group is the top"


def test_other_limits_read_otherwise(cerco):
    """The control of the above: the numbers are the policy's, not the host's nor constants."""
    result = cerco.run("--set", "limits.cpus=2", "--set", "limits.memory=112MiB", "--set", "limits.processes=60", "--", "python3", "-c", READ)
    assert result.status == 0, result
    first, second, _ = result.text.splitlines()
    assert first == f"{min(2, len(os.sched_getaffinity(0)))} {112 << 10} {112 << 10} 0"
    assert second.split()[:2] == [str(112 << 20), "61"]


def test_the_own_groups_cannot_be_changed(cerco):
    """E93, E39: read-only, whatever the file is."""
    script = ("for file in $(find /sys/fs/cgroup -type f); do (echo 1 > $file) 2>/dev/null && echo wrote $file; done; "
              "mkdir $(find /sys/fs/cgroup -name 'pids.max' -printf '%h\\n')/x 2>&1 | grep -c 'Read-only'")
    result = cerco.run("--", "sh", "-c", script)
    assert result.text == "1\n", result


@pytest.mark.skipif(shutil.which("node", path="/usr/bin") is None, reason="no Node.js in /usr/bin")
def test_node_sizes_itself_by_the_limits(cerco):
    program = "console.log(require('os').availableParallelism(), process.constrainedMemory?.() ?? 0, require('os').totalmem())"
    result = cerco.run("--set", "limits.cpus=1", "--set", "limits.memory=512MiB", "--", "node", "-e", program)
    assert result.status == 0, result
    processors, constrained, total = map(int, result.text.split())
    assert processors == 1
    assert 512 << 20 in (constrained, total), result


def test_e98_spinners_get_the_processors_of_the_limit_and_no_more(cerco):
    """64 loops with the highest priority that they can have: the kernel throttles all of them together."""
    spin = ("import os, time\n"
            "for _ in range(63):\n"
            "    if os.fork() == 0: break\n"
            "try: os.setpriority(os.PRIO_PROCESS, 0, -20)\n"
            "except OSError: pass\n"
            "end = time.monotonic() + 3\n"
            "while time.monotonic() < end: os.sched_yield()\n")
    result = cerco.run("--set", "limits.cpus=0.5", "--", "python3", "-c", spin)
    assert result.status == 0, result
    used, wall = result.report["usage"]["cpu_ms"], result.report["usage"]["wall_ms"]
    # Each period of 100 ms gives 50; one may have begun before, and each processor may overdraw a slice.
    assert used <= 0.5 * (wall + 100) * 1.05 + 50, (used, wall)
    throttled = ("sh", "-c", "(while :; do :; done) & (while :; do :; done) & sleep 2; "
                 "cat /sys/fs/cgroup/cpu/cpu.stat /sys/fs/cgroup/cpu.stat 2>/dev/null | grep nr_throttled")
    held = cerco.run("--set", "limits.cpus=0.1", "--", *throttled)
    free = cerco.run("--set", "limits.cpus=0.1", "--", *throttled, without=["cpu_limit"])
    assert int(held.text.split()[1]) > 0, held
    assert int(free.text.split()[1]) == 0, free


def test_processor_time_is_limited(cerco):
    """What counts is what all processes used together, however many there are and however short they live."""
    spin = "while :; do /bin/true; done & while :; do :; done"
    result = cerco.run("--set", "limits.cpu=500ms", "--timeout", "50s", "--", "sh", "-c", spin)
    assert result.status == 124, result
    assert result.report["ending"]["kind"] == "timed_out"
    assert result.report["limits_hit"] == ["cpu"]
    assert result.report["usage"]["cpu_ms"] >= 500
    assert [event["limit"] for event in result.of_type("limit.hit")] == ["cpu"]
    asleep = cerco.run("--set", "limits.cpu=500ms", "--", "sleep", "1")
    assert asleep.status == 0, "time that passes is not processor time"
    free = cerco.run("--set", "limits.cpu=500ms", "--timeout", "4s", "--", "sh", "-c", spin, without=["processor_time_limit"])
    assert free.report["limits_hit"] == ["wall"], free


def test_f99_hitting_the_process_limit_is_told(cerco):
    """The default is documented, the task's own number counts, and that it was met is on record."""
    make = "for i in $(seq 40); do sleep 5 & done; wait"
    small = cerco.run("--set", "limits.processes=20", "--", "bash", "-c", make)
    assert small.report["limits_hit"] == ["processes"], small
    assert [event["limit"] for event in small.of_type("limit.hit")] == ["processes"]
    enough = cerco.run("--", "bash", "-c", make.replace("sleep 5", "sleep 0.2"))
    assert (enough.status, enough.report["limits_hit"]) == (0, []), enough
    assert enough.report["usage"]["processes_peak"] in (0, *range(30, 60))


def test_e99_the_hosts_caches_are_not_dropped_and_sync_goes_on(cerco):
    """A loop of fsync(2) and sync(2) is slow for who makes it; what is left of it is told in docs/threats.md."""
    script = ("import os, time\n"
              "for path in ('/proc/sys/vm/drop_caches', '/proc/sys/vm/compact_memory'):\n"
              "    try: open(path, 'w'); print('GOT', path)\n"
              "    except OSError as error: print(error.errno)\n"
              "with open('x', 'wb') as out:\n"
              "    for _ in range(50): out.write(b'x' * 4096); out.flush(); os.fsync(out.fileno())\n"
              "os.sync(); print('done')\n")
    result = cerco.run("--", "python3", "-c", script)
    assert result.text.split()[-1] == "done" and "GOT" not in result.text, result
    assert os.access("/proc/sys/vm/drop_caches", os.W_OK) or os.geteuid() != 0, "the control: the host's root may"


PORTS = """
import resource, socket, sys
held = []
def listen(port):
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.bind(("0.0.0.0", port)); one.listen(8); held.append(one)
listen(22)
for port in range(20000, 23000): listen(port)
flood = 0
for i in range(3000):
    one = socket.socket(); one.setblocking(False)
    try: one.connect((f"198.51.100.{i % 250}", 80))
    except OSError: pass
    flood += 1; held.append(one)
print(len(held), flood, flush=True)
sys.stdin.read()
"""


def listening():
    return {tuple(line.split()[1:2]) for name in ("tcp", "tcp6") for line in pathlib.Path(f"/proc/net/{name}").read_text().splitlines()
            if line.split()[3] == "0A"}


def tracked():
    try:
        return int(pathlib.Path("/proc/sys/net/netfilter/nf_conntrack_count").read_text())
    except OSError:
        return 0


def test_e86_sockets_of_a_sandbox_are_no_neighbours_business(cerco):
    """Port 22, thousands of listeners, a flood of connections: all of it in the own network namespace."""
    before = tracked()
    first = cerco.start("run", "--quiet", "--", "python3", "-c", PORTS, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert first.stdout.readline().split() == [b"6001", b"3000"]
        ours = {f":{port:04X}" for port in (22, *range(20000, 23000))}
        seen = {port for (address,) in listening() for port in ours if address.endswith(port)}
        assert len(seen) < 50, "the host has none of them, but what it had itself"
        assert tracked() <= before + 500
        second = cerco.run("--", "python3", "-c", PORTS)
        assert second.out.split() == [b"6001", b"3000"], second
    finally:
        first.stdin.close()
        assert first.wait(GUARD) == 0
