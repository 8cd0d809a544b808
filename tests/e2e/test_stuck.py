"""A process that the kernel will not let end: the run ends all the same, says which it is, and gc clears up later."""
# lane: full
import ctypes
import os
import pathlib
import re
import signal
import struct
import subprocess
import threading
import time

import pytest

from cerco import GUARD, Cerco, descendants_of

LIBC = ctypes.CDLL(None, use_errno=True)
HEADER_IN = struct.Struct("<IIQQIIIHH")
LOOKUP, GETATTR, OPEN, READ, STATFS, RELEASE, FLUSH, INIT, OPENDIR, READDIR, RELEASEDIR = 1, 3, 14, 15, 17, 18, 25, 26, 27, 28, 29
FILE_NODE, SIZE = 2, 4096


class StuckFiles:
    """A file system with one file, `stuck`, whose reads are never answered: its reader sleeps in the kernel, and not
    even SIGKILL ends it before `close`."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir()
        self.fd = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        options = f"fd={self.fd},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
        if LIBC.mount(b"cerco-stuck", str(folder).encode(), b"fuse", 6, options) != 0:
            error = ctypes.get_errno()
            os.close(self.fd)
            pytest.skip(f"a file system of its own cannot be mounted here: {os.strerror(error)}")
        self.asked = threading.Event()  # a read that will not be answered
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                request = os.read(self.fd, 1 << 20)
            except OSError:
                return
            size, opcode, unique, node, *_ = HEADER_IN.unpack_from(request)
            body = request[HEADER_IN.size:size]
            if opcode == READ:
                self.asked.set()
                continue
            answer = self.answer(opcode, node, body)
            if answer is None:
                continue
            error, data = answer if isinstance(answer, tuple) else (0, answer)
            try:
                os.write(self.fd, struct.pack("<IiQ", 16 + len(data), -error, unique) + data)
            except OSError:
                return

    def answer(self, opcode, node, body):
        if opcode == INIT:
            return struct.pack("<IIIIHHIIHHI28x", 7, 31, 65536, 0, 12, 9, 65536, 1, 0, 0, 0)
        if opcode == GETATTR:
            return struct.pack("<QII", 3600, 0, 0) + attributes(node)
        if opcode == LOOKUP and body.rstrip(b"\0") == b"stuck":
            return struct.pack("<QQQQII", FILE_NODE, 0, 3600, 3600, 0, 0) + attributes(FILE_NODE)
        if opcode == LOOKUP:
            return 2, b""
        if opcode in (OPEN, OPENDIR):
            return struct.pack("<QII", 1, 0, 0)
        if opcode == STATFS:
            return bytes(80)
        if opcode in (FLUSH, RELEASE, READDIR, RELEASEDIR):
            return b""
        if opcode in (2, 36, 42):  # forget, interrupt, batch forget: not answered
            return None
        return 38, b""

    def close(self):
        """Lets its readers go; again it does nothing."""
        if self.fd < 0:
            return
        LIBC.umount2(str(self.folder).encode(), 1 | 2)
        os.close(self.fd)
        self.fd = -1


def attributes(node):
    mode = 0o100644 if node == FILE_NODE else 0o040755
    return struct.pack("<QQQQQQIIIIIIIIII", node, SIZE, 8, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


@pytest.fixture
def stuck(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root mounts a file system of its own for others")
    files = StuckFiles(tmp_path / "files")
    yield files
    files.close()


def test_a_process_in_uninterruptible_wait_is_named_and_cleared_away_later(tmp_path, stuck):
    cerco = Cerco(tmp_path)
    result = cerco.run("--ro", str(stuck.folder), "--timeout", "2s", "--", "cat", str(stuck.folder / "stuck"), guard=10 * GUARD)
    assert stuck.asked.is_set(), result
    assert result.status == 124 and result.report["ending"]["kind"] == "timed_out", result
    told = [line for line in result.error.splitlines() if "uninterruptible wait" in line]
    assert len(told) == 1 and re.search(r"process \d+ \(cat(, in \w+)?\)", told[0]) and "cerco gc" in told[0], result
    alerts = [event for event in result.of_type("alert") if event["detector"] == "left_over"]
    assert len(alerts) == 1 and "uninterruptible wait" in alerts[0]["text"], alerts
    group = f"cerco-{result.report['run']}"
    assert groups(group)
    # Others go while it stays, and are not refused for it.
    assert cerco.run("--", "true").status == 0
    assert cerco("gc", guard=10 * GUARD).status == 125
    stuck.close()
    until(lambda: cerco("gc", guard=10 * GUARD).status == 0 and not groups(group))


def until(true):
    deadline = time.monotonic() + 10 * GUARD
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def groups(name):
    return [path for path in pathlib.Path("/sys/fs/cgroup").rglob(name)]


def test_a_journal_that_stands_still_does_not_hold_up_the_end(tmp_path):
    cerco = Cerco(tmp_path)
    report = tmp_path / "report.json"
    with cerco.start("run", "--report", report, "--", "sh", "-c", "echo up; read line", stdin=subprocess.PIPE,
                     stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stdout.readline() == b"up\n"
        journal = [pid for pid in descendants_of(run.pid) if pathlib.Path(f"/proc/{pid}/comm").read_text() == "cerco-journal\n"]
        assert len(journal) == 1, journal
        os.kill(journal[0], signal.SIGSTOP)
        _, said = run.communicate(b"on\n", timeout=10 * GUARD)
    assert b"the journal did not say how it ends" in said, said
    assert run.returncode == 125, said
    until(lambda: not pathlib.Path(f"/proc/{journal[0]}").exists())
