"""As an ordinary user under systemd: the user manager is asked for a cgroup, and its limits hold; a small bus stands in for it."""
# lane: full
import contextlib
import os
import pathlib
import re
import shutil
import socket
import struct
import threading

import pytest

from cerco import GUARD, wait_until
from test_rootless import User, user  # noqa: F401 (a fixture)

pytestmark = [pytest.mark.skipif(os.geteuid() != 0, reason="takes root, to be another user"),
              pytest.mark.skipif(not shutil.which("busctl"), reason="no busctl on this host")]
CONTROLLERS = ("memory", "cpu", "cpuacct", "pids", "unified")


def mounted():
    """Where each controller is mounted as version 1, and `unified`."""
    found = {}
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        fields = line.split()
        kind, _, options = fields[fields.index("-") + 1:][:3]
        if kind == "cgroup" and "name=" not in options:
            found.update({name: pathlib.Path(fields[4]) for name in options.split(",")})
        elif kind == "cgroup2":
            found["unified"] = pathlib.Path(fields[4])
    return found


def message(kind, serial, reply_to, signature, body):
    """A D-Bus message, little-endian: its fields are the serial that it answers, its sender and its signature."""
    fields = b"\x05\x01u\0" + struct.pack("<I", reply_to)
    for code, form, text in ((7, b"s", b"org.freedesktop.DBus"), (8, b"g", signature)):
        fields += b"\0" * (-len(fields) % 8) + bytes([code]) + b"\x01" + form + b"\0"
        fields += bytes([len(text)]) + text + b"\0" if form == b"g" else struct.pack("<I", len(text)) + text + b"\0"
    head = struct.pack("<cBBBII", b"l", kind, 0, 1, len(body), serial) + struct.pack("<I", len(fields)) + fields
    return head + b"\0" * (-len(head) % 8) + body


def string(text):
    return struct.pack("<I", len(text)) + text + b"\0"


class Manager:
    """A bus with one name on it: a user manager that puts who asks for a scope into groups of the user's own."""

    def __init__(self, user, answers=True):
        self.user, self.answers, self.calls, self.made = user, answers, [], []
        self.runtime = user.home / "run"
        (self.runtime / "systemd").mkdir(parents=True)
        self.private = socket.socket(socket.AF_UNIX)
        self.private.bind(str(self.runtime / "systemd/private"))
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(str(self.runtime / "bus"))
        self.server.listen()
        for path in [self.runtime, *self.runtime.rglob("*")]:
            os.chown(path, user.uid, user.uid)
        user.environment["XDG_RUNTIME_DIR"] = str(self.runtime)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                client = self.server.accept()[0]
            except OSError:
                return
            with client, contextlib.suppress(OSError, EOFError):
                self.talk(client)

    def talk(self, client):
        data = b""
        while b"BEGIN\r\n" not in data:
            more = client.recv(4096)
            if not more:
                raise EOFError
            data += more
        words, _, data = data.partition(b"BEGIN\r\n")
        answer = b"DATA\r\n" if b"AUTH EXTERNAL\r\n" in words else b""
        client.sendall(answer + b"OK 0123456789abcdef0123456789abcdef\r\n" + (b"AGREE_UNIX_FD\r\n" if b"NEGOTIATE" in words else b""))
        serial = 0
        while True:
            while len(data) < 16 or len(data) < self.length(data):
                more = client.recv(65536)
                if not more:
                    raise EOFError
                data += more
            length = self.length(data)
            whole, data = data[:length], data[length:]
            serial += 1
            asked = struct.unpack("<I", whole[8:12])[0]
            if b"Hello\0" in whole:
                client.sendall(message(2, serial, asked, b"s", string(b":1.1")))
            elif b"StartTransientUnit\0" in whole:
                body = whole[length - struct.unpack("<I", whole[4:8])[0]:]
                client.sendall(self.start(serial, asked, body))

    @staticmethod
    def length(data):
        body, _, fields = struct.unpack("<III", data[4:16])
        return 16 + fields + -fields % 8 + body

    def start(self, serial, asked, body):
        size = struct.unpack("<I", body[:4])[0]
        name = body[4:4 + size].decode()
        at = body.index(b"PIDs\0") + 5
        at += body[at] + 2  # the variant's signature
        at += -at % 4
        size, pid = struct.unpack("<II", body[at:at + 8])
        delegate = b"Delegate\0\x01b\0" in body
        self.calls.append((name, size // 4, pid, delegate))
        if not self.answers:
            return message(3, serial, asked, b"s", string(b"no"))
        mounts = mounted()
        for top in sorted({mounts[controller] for controller in CONTROLLERS if controller in mounts}):
            folder = top / name
            folder.mkdir()
            self.made.append(folder)
            for path in (folder, *folder.glob("cgroup.procs"), *folder.glob("tasks"), *folder.glob("cgroup.subtree_control")):
                os.chown(path, self.user.uid, self.user.uid)
            (folder / "cgroup.procs").write_text(str(pid))
        return message(2, serial, asked, b"o", string(b"/org/freedesktop/systemd1/job/1"))

    def left(self):
        return [path for folder in self.made for path in folder.rglob("cerco-*") if path.is_dir()]

    def close(self):
        self.server.close()
        self.private.close()

        def gone(folder):
            for path in [*sorted(folder.rglob("*"), reverse=True), folder]:
                with contextlib.suppress(OSError):
                    if path.is_dir():
                        path.rmdir()
            return not folder.exists()
        wait_until(lambda: all([gone(folder) for folder in self.made]), what="the end of the scopes")


@pytest.fixture
def manager(user):  # noqa: F811
    if not {"memory", "cpu", "cpuacct", "pids"} <= set(mounted()):
        pytest.skip("the controllers are not mounted as version 1 here, where this stands in for systemd")
    made = Manager(user)
    yield made
    made.close()


def test_a_scope_is_asked_for_and_its_limits_hold(user, manager):  # noqa: F811
    result = user.run("--set", "limits.memory=64MiB", "--", "python3", "-c", "x = bytearray(1 << 28)")
    assert result.status == 137, (result, manager.calls)
    assert (result.report["ending"]["kind"], result.report["unheld"]) == ("out_of_memory", []), result.report
    (name, count, _, delegate), = manager.calls
    assert re.fullmatch(r"cerco-[a-z2-7]{12}\.scope", name) and count == 1 and delegate
    assert manager.left() == []


def test_a_session_lives_in_its_scope(user, manager):  # noqa: F811
    run = user("start").text.strip()
    assert run, manager.calls
    assert user("exec", run, "--", "echo", "on").out == b"on\n"
    assert user("rm", run).status == 0
    checked = user("check", "--json")
    assert checked.status == 0, (checked, manager.calls, manager.made)


def test_a_manager_that_refuses_leaves_the_refusal_as_it_was(user, manager, cerco):  # noqa: F811
    manager.answers = False
    result = user.run("--", "true")
    assert result.status == 125 and len(result.error.splitlines()) == 1 and "limits.memory" in result.error, result
    assert len(manager.calls) == 1
    # Nobody is asked where nothing is lacking: root has its groups.
    assert cerco.run("--", "true", env={"XDG_RUNTIME_DIR": str(manager.runtime)}).status == 0
    assert len(manager.calls) == 1


def test_without_a_manager_nobody_is_asked(user):  # noqa: F811
    user.environment["XDG_RUNTIME_DIR"] = str(user.home / "none")
    result = user.run("--", "true", guard=GUARD)
    assert result.status == 125 and "limits.memory" in result.error, result
