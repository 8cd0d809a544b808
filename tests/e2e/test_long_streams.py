"""Amounts: streams of gigabytes through a bounded memory, hundreds of commands, terminals and connections that leave nothing."""
# lane: long
import hashlib
import json
import os
import pathlib
import re
import socket
import subprocess
import threading

import pytest

from cerco import descendants_of, status_of, wait_until

GUARD = 900
AMOUNT = 2 << 30
BLOCK = 1 << 20
MOST = 32 << 20  # bytes of ours


def ours(pid):
    """A process and those of ours that it started; what runs inside is not ours but for init."""
    return [p for p in [pid, *descendants_of(pid)] if (status_of(p) or ("",))[0].startswith(("cerco", "memfd:cerco"))]


def memory(pids):
    total = 0
    for pid in pids:
        try:
            total += int(re.search(r"^Pss:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text(), re.M)[1]) << 10
        except (OSError, TypeError):
            pass
    return total


def blocks(seed):
    """AMOUNT of bytes that do not repeat, made quickly."""
    block = bytearray(hashlib.shake_256(seed).digest(BLOCK))
    for number in range(AMOUNT // BLOCK):
        block[0:8] = number.to_bytes(8, "little")
        yield bytes(block)


def carry(process):
    """Writes all that there is, reads until the end; the digests of both, and the most memory that our processes had."""
    sent, received, peak = hashlib.sha256(), hashlib.sha256(), 0

    def write():
        for block in blocks(b"cerco"):
            sent.update(block)
            process.stdin.write(block)
        process.stdin.close()
    writer = threading.Thread(target=write)
    writer.start()
    amount = 0
    pids = wait_until(lambda: len(ours(process.pid)) >= 3 and ours(process.pid), what="the processes")
    while data := process.stdout.read(BLOCK):
        received.update(data)
        amount += len(data)
        if amount % (64 << 20) < BLOCK:
            peak = max(peak, memory(pids))
    writer.join()
    assert process.wait(GUARD) == 0 and amount == AMOUNT
    return sent.hexdigest(), received.hexdigest(), peak


def test_two_gibibytes_in_and_out(cerco):
    process = cerco.start("run", "--", "cat", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    sent, received, peak = carry(process)
    assert sent == received
    print(f"peak of our processes: {peak >> 10} KiB")
    assert 0 < peak < MOST


@pytest.fixture
def session(cerco):
    run = cerco("start").text.strip()
    yield run
    cerco("rm", run)


def test_two_gibibytes_through_a_command_of_a_session(cerco, session):
    process = cerco.start("exec", session, "--", "cat", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    sent, received = hashlib.sha256(), hashlib.sha256()

    def write():
        for block in blocks(b"exec"):
            sent.update(block)
            process.stdin.write(block)
        process.stdin.close()
    writer = threading.Thread(target=write)
    writer.start()
    peak = 0
    while data := process.stdout.read(BLOCK):
        received.update(data)
        peak = max(peak, memory([process.pid])) if len(data) < BLOCK else peak
    writer.join()
    assert process.wait(GUARD) == 0 and sent.hexdigest() == received.hexdigest()


def supervisor_of(cerco, run):
    inode = str((cerco.state / "runs" / run / "live").stat().st_ino)
    return next(int(line.split()[4]) for line in open("/proc/locks") if "FLOCK" in line and line.split()[5].split(":")[-1] == inode)


def held(cerco, run):
    """What the processes of a session hold: processes, descriptors, groups."""
    pids = ours(supervisor_of(cerco, run))
    groups = 0
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        fields = line.split()
        if fields[fields.index("-") + 1] in ("cgroup", "cgroup2"):
            groups += sum(1 for _ in pathlib.Path(fields[4]).glob(f"**/cerco-{run}*/**/command-*"))
    return {"processes": len(pids), "descriptors": sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in pids), "groups": groups}


def settled(cerco, run, wanted):
    wait_until(lambda: held(cerco, run) == wanted, what=lambda: f"{wanted}, there is {held(cerco, run)}")


def test_three_hundred_commands_leave_nothing(cerco, session):
    for _ in range(10):
        assert cerco("exec", session, "--", "true").status == 0
    before = held(cerco, session)
    pids = ours(supervisor_of(cerco, session))
    memory_before = memory(pids)
    for number in range(300):
        result = cerco("exec", session, "--", "sh", "-c", f"echo {number}; exit {number % 3}")
        assert (result.status, result.text) == (number % 3, f"{number}\n")
    settled(cerco, session, before)
    grown = memory(pids) - memory_before
    print(f"grown by {grown >> 10} KiB")
    assert grown < 4 << 20
    lines = (cerco.state / "journal" / f"{session}.jsonl").read_text().splitlines()
    assert sum(json.loads(line)["type"] == "command.ended" for line in lines) == 310


def test_hundreds_of_connections_leave_nothing(cerco, session):
    server = cerco.start("exec", session, "--", "python3", "-u", "-c",
                         "import socket\ns = socket.create_server(('127.0.0.1', 8000), backlog=128)\nprint('up')\n"
                         "while True:\n  c = s.accept()[0]\n  c.sendall(c.recv(65536)); c.close()\n", stdout=subprocess.PIPE)
    assert server.stdout.readline() == b"up\n"
    port = int(cerco("publish", session, "8000").text.rpartition(":")[2])

    def ask(data):
        with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
            client.sendall(data)
            return client.recv(65536)
    assert ask(b"first") == b"first"
    wait_until(lambda: held(cerco, session) == held(cerco, session), what="rest")
    before = held(cerco, session)
    for number in range(500):
        assert ask(b"%d" % number) == b"%d" % number
    settled(cerco, session, before)
    server.kill()
    server.wait()
    server.stdout.close()


def test_hundreds_of_terminals_leave_nothing(cerco, session):
    import pty

    def at_a_terminal(*words):
        near, far = pty.openpty()
        process = subprocess.Popen(cerco.command("exec", "-t", session, "--", *words), stdin=far, stdout=far, stderr=far, env=cerco.env({"TERM": "vt100"}),
                                   start_new_session=True)
        os.close(far)
        shown = b""
        try:
            while data := os.read(near, 65536):
                shown += data
        except OSError:
            pass
        os.close(near)
        return process.wait(GUARD), shown
    assert at_a_terminal("echo", "first") == (0, b"first\r\n")
    before = held(cerco, session)
    for number in range(150):  # more than the sandbox may have at once
        assert at_a_terminal("echo", str(number)) == (0, b"%d\r\n" % number)
    settled(cerco, session, before)
