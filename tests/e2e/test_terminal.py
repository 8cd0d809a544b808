"""`-t`: a terminal of the sandbox's own behind the caller's, what each does to the other, and what neither can."""
# lane: full
# sanitized
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

import pytest

from cerco import GUARD, children_of, find_below, status_of, wait_until


class Person:
    """Somebody at a terminal, in front of a started cerco: `type`, `until`, `rest`."""

    def __init__(self, cerco, *args, size=(24, 80), env=None, program="cerco"):
        words = list(args)
        if "run" in words[:2]:
            words.insert(words.index("run") + 1, "--quiet")
        self.near, self.far = pty.openpty()
        self.resize(*size)
        self.modes = termios.tcgetattr(self.far)
        far = self.far

        def sit_down():
            os.setsid()
            fcntl.ioctl(far, termios.TIOCSCTTY, 0)
        self.process = subprocess.Popen(cerco.command(*words, program=program), stdin=far, stdout=far, stderr=far, cwd=cerco.folder,
                                        env=cerco.env({"TERM": "vt220", **(env or {})}), preexec_fn=sit_down)
        self.seen = b""

    def resize(self, rows, columns):
        fcntl.ioctl(self.near, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys):
        os.write(self.near, keys)

    def read(self, seconds=0.05):
        readable = bool(select.select([self.near], [], [], seconds)[0])
        if readable:
            self.seen += os.read(self.near, 65536)
        return readable

    def until(self, pattern):
        """Waits until that is shown, and gives what was shown up to it; the rest stays for later."""
        end = time.monotonic() + GUARD
        while not (found := re.search(pattern, self.seen, re.S)):
            assert time.monotonic() < end, (pattern, self.seen)
            self.read()
        shown, self.seen = self.seen[:found.end()], self.seen[found.end():]
        return shown

    def end(self):
        """Waits for its end; the status, and what is still shown."""
        end = time.monotonic() + GUARD
        while self.process.poll() is None:
            assert time.monotonic() < end, self.seen
            self.read()
        while self.read():
            pass  # all that was written before lies in the terminal
        return self.process.returncode, self.seen

    def is_raw(self):
        return not termios.tcgetattr(self.far)[3] & (termios.ICANON | termios.ECHO | termios.ISIG)

    def is_as_before(self):
        return termios.tcgetattr(self.far) == self.modes

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.near)
        if self.far >= 0:
            os.close(self.far)


@pytest.fixture
def sit(cerco):
    people = []

    def sit(*args, **kwargs):
        people.append(Person(cerco, *args, **kwargs))
        return people[-1]
    yield sit
    for person in people:
        person.close()
    for run in json.loads(cerco("ps", "--json").text):
        cerco("rm", run["run"])


def test_a_terminal_of_its_own(sit):
    person = sit("run", "-t", "--", "sh", "-c", "tty; stty size; echo $TERM; test -t 0 && test -t 1 && test -t 2 && echo all; ls -1 /dev/pts; "
                 "echo over >/dev/tty; stat -c '%U %a' $(tty); exit 5", size=(41, 123))
    status, shown = person.end()
    assert status == 5
    assert shown == b"/dev/pts/0\r\n41 123\r\nvt220\r\nall\r\n0\r\nptmx\r\nover\r\nagent 620\r\n"
    assert person.is_as_before()


def test_without_it_there_is_none(cerco):
    result = cerco.run("--", "sh", "-c", "tty; test -e /dev/tty && (: </dev/tty) 2>/dev/null || echo none; echo \"<$TERM>\"")
    assert result.out == b"not a tty\nnone\n<>\n", result


@pytest.mark.parametrize("args", [("run", "-t", "--", "true"), ("run", "-it", "--", "true")])
def test_it_needs_one_outside(cerco, args):
    result = cerco(*args)
    assert result.status == 125 and "-t: standard input is no terminal" in result.error, result


def test_typing_interrupts_and_the_end_of_input(sit):
    person = sit("run", "-t", "--", "sh", "-c", "trap 'echo caught' INT; echo ready; read -r x; read -r a; echo \"<$a>\"; read -r b; echo \"<$b>\"; cat; echo out")
    person.until(b"ready\r\n")
    assert person.is_raw()
    person.type(b"\x03")
    person.until(b"caught\r\n")
    person.type(b"one\rt\xc3\xa4\x7fwo\r")  # what is erased is a whole character
    person.until(b"<one>.*<two>\r\n")
    person.type(b"line\r\x04")
    person.until(b"line\r\nline\r\nout\r\n")
    assert person.end()[0] == 0 and person.is_as_before()


def test_job_control_and_a_shell(sit):
    person = sit("run", "-t", "--", "sh", "-i")
    person.until(rb"\$ $")
    person.type(b"sleep 600\r")
    person.until(b"sleep 600\r\n")
    time.sleep(0.2)
    person.type(b"\x1a")
    person.until(rb"Stopped.*\$ $")
    person.type(b"fg\r")
    person.until(b"fg\r\nsleep 600\r\n")
    time.sleep(0.2)
    person.type(b"\x03")
    person.until(rb"\$ $")
    person.type(b"exit 3\r")
    assert person.end()[0] == 3


def test_a_new_size_is_passed_on(sit):
    person = sit("run", "-t", "--", "sh", "-c", "trap 'stty size' WINCH; echo ready; while :; do sleep 0.05; done")
    person.until(b"ready")
    person.resize(50, 200)
    person.until(b"50 200\r\n")
    person.process.send_signal(signal.SIGTERM)
    assert person.end()[0] == 143 and person.is_as_before()


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGALRM, signal.SIGABRT])
def test_signals_that_end_us_give_the_modes_back(sit, number):
    person = sit("run", "-t", "--", "sh", "-c", "echo ready; sleep 600")
    person.until(b"ready")
    assert person.is_raw()
    person.process.send_signal(number)
    assert person.end()[0] == -number and person.is_as_before()


def test_stopped_and_continued(sit):
    person = sit("run", "-t", "--", "sh", "-c", "echo ready; read -r a; echo \"<$a>\"")
    person.until(b"ready")
    person.process.send_signal(signal.SIGTSTP)
    wait_until(lambda: "T" in open(f"/proc/{person.process.pid}/stat").read().rsplit(")")[1].split()[0] and person.is_as_before(), what="the stop")
    person.process.send_signal(signal.SIGCONT)
    wait_until(person.is_raw, what="raw modes")
    person.type(b"on\r")
    person.until(b"<on>")
    assert person.end()[0] == 0


def test_the_end_of_the_supervisor_gives_the_modes_back(sit):
    person = sit("run", "-t", "--", "sh", "-c", "echo ready; sleep 600")
    person.until(b"ready")
    os.kill(next(pid for pid in children_of(person.process.pid) if status_of(pid)[0] == "cerco"), signal.SIGKILL)
    status, shown = person.end()
    assert status == 125 and b"cerco: supervisor: ended before the run was over" in shown and person.is_as_before()


def test_a_terminal_that_goes_ends_the_command(sit, cerco):
    """Its window was closed: the command is hung up, and nothing of the run is left."""
    person = sit("run", "-t", "--", "sh", "-c", "echo ready; sleep 600")
    person.until(b"ready")
    os.close(person.far)
    person.far = -1
    os.close(person.near)
    person.near = os.open("/dev/null", os.O_RDWR)
    person.process.wait(GUARD)
    wait_until(lambda: json.loads(cerco("ps", "--json").text) == [], what="the end of the run")


def test_all_that_is_shown_arrives(sit):
    person = sit("run", "-t", "--", "sh", "-c", "stty -opost; seq 1 200000")
    status, shown = person.end()
    assert (status, shown) == (0, b"".join(b"%d\n" % i for i in range(1, 200001)))


def test_output_limit_holds(sit):
    person = sit("run", "-t", "--set", "limits.output=64KiB", "--", "yes")
    status, shown = person.end()
    assert status == 137 and len(shown) < 200_000 and person.is_as_before()


def test_commands_of_a_session(sit, cerco):
    run = cerco("start").text.strip()
    first = sit("exec", "-t", run, "--", "sh", "-c", "tty; echo $TERM; read -r a; echo \"<$a>\"; exit 4", size=(30, 90))
    first.until(b"/dev/pts/0\r\nvt220\r\n")
    second = sit("exec", "-t", "--env", "TERM=dumb", run, "--", "sh", "-c", "tty; echo $TERM; stty size")
    assert second.end() == (0, b"/dev/pts/1\r\ndumb\r\n24 80\r\n")
    first.type(b"x\r")
    first.until(b"<x>\r\n")
    assert first.end()[0] == 4 and first.is_as_before()
    assert cerco("exec", run, "--", "tty").out == b"not a tty\n"
    limited = sit("exec", "-t", "--timeout", "1s", run, "--", "sh", "-c", "trap '' TERM HUP; echo up; while :; do sleep 1; done")
    assert limited.end()[0] == 124 and limited.is_as_before()
    refused = cerco("exec", "-t", run, "--", "true")
    assert refused.status == 125 and "-t: standard input is no terminal" in refused.error


def test_whoever_asked_for_a_command_and_goes_hangs_it_up(sit, cerco):
    run = cerco("start").text.strip()
    person = sit("exec", "-t", run, "--", "sh", "-c", "echo ready; exec sleep 600")
    person.until(b"ready")
    person.process.kill()
    wait_until(lambda: b"sleep" not in cerco("exec", run, "--", "sh", "-c", "cat /proc/[0-9]*/comm").out, what="the end of the command")


def test_attached_to_left_and_attached_to_again(sit, cerco):
    run = cerco("run", "-t", "--detach", "--", "sh", "-c", "echo begun; while read -r a; do stty size; echo \"<$a>\"; done; exit 6").text.strip()
    first = sit("attach", run, size=(33, 99))
    first.until(b"begun\r\n")
    first.type(b"one\r")
    first.until(b"33 99\r\n<one>\r\n")
    first.type(b"\x10\x11")  # Ctrl-P Ctrl-Q
    assert first.end()[0] == 0 and first.is_as_before()
    second = sit("attach", run, size=(44, 111))
    second.until(b"begun.*<one>\r\n")  # what was shown before
    second.type(b"two\r")
    second.until(b"44 111\r\n<two>\r\n")
    looking_on = cerco.start("attach", run, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    while b"<two>" not in looking_on.stdout.readline():
        pass
    second.type(b"\x04")
    assert second.end()[0] == 6 and second.is_as_before()
    looking_on.communicate(timeout=GUARD)
    assert looking_on.returncode == 6


def test_a_stalled_terminal_holds_nobody_up(sit, cerco):
    """E68: whoever does not read stops its own command alone."""
    run = cerco("start").text.strip()
    stalled = sit("exec", "-t", run, "--", "yes")
    stalled.until(b"y\r\n")
    for _ in range(5):
        assert cerco("exec", run, "--", "echo", "on").out == b"on\n"
    stalled.process.kill()
    wait_until(lambda: b"yes" not in cerco("exec", run, "--", "sh", "-c", "cat /proc/[0-9]*/comm").out, what="the end of the command")


# --- What it must not be able to do --------------------------------------------------------------

PUSH = "import fcntl, sys, termios\nfor request in (termios.TIOCSTI, termios.TIOCSTI | 1 << 32, 0x541c):\n" \
       "  try: fcntl.ioctl(0, request, b'x'); print('pushed', flush=True)\n  except OSError as e: print(e.strerror, flush=True)"


def test_input_cannot_be_pushed(sit):
    """E63: TIOCSTI and TIOCLINUX at the command's own terminal, with the upper half of the request set as well (CVE-2019-10063)."""
    whole = sit("run", "-t", "--", "python3", "-c", PUSH)
    status, shown = whole.end()
    assert status == 0 and b"pushed" not in shown and shown.count(b"Operation not permitted") >= 2, shown
    weak = sit("seccomp", "run", "-t", "--", "python3", "-c", PUSH, program="cerco-without")
    shown = weak.end()[1]
    # Without the filter the kernel takes it, where dev.tty.legacy_tiocsti is on.
    legacy = pathlib.Path("/proc/sys/dev/tty/legacy_tiocsti")
    if not legacy.exists() or legacy.read_text().strip() == "1":
        assert b"pushed" in shown, shown


FIND = "import os, sys\nfound = []\nfor name in sorted(os.listdir('/dev/pts')):\n" \
       "  try: fd = os.open('/dev/pts/' + name, os.O_RDWR | os.O_NOCTTY)\n  except OSError: continue\n" \
       "  if name != 'ptmx': found.append(name)\nprint('terminals', *found, flush=True)\n" \
       "print('tty', os.ttyname(0), flush=True)"


def test_terminals_of_others_are_not_there(sit):
    """E14: its own instance has its own terminal alone; the host's shows others, in the control."""
    others = [pty.openpty() for _ in range(2)]
    try:
        whole = sit("run", "-t", "--", "python3", "-c", FIND)
        assert whole.end() == (0, b"terminals 0\r\ntty /dev/pts/0\r\n")
        weak = sit("minimal_dev", "run", "-t", "--", "python3", "-c", "import os; print('terminals', len(os.listdir('/dev/pts')) > 3)",
                   program="cerco-without")
        assert b"terminals True" in weak.end()[1]
    finally:
        for ends in others:
            for end in ends:
                os.close(end)


def test_terminals_are_limited(cerco):
    """All sandboxes share the kernel's number of terminals."""
    result = cerco.run("--", "python3", "-c", "import os\nheld = []\ntry:\n  while True: held.append(os.openpty())\nexcept OSError as e: print(len(held), e.strerror)")
    assert result.out == b"128 No space left on device\n", result


def test_programs_make_terminals_of_their_own(cerco):
    result = cerco.run("--", "python3", "-c", "import pty; pty.spawn(['sh', '-c', 'tty; stty size'])")
    assert result.text.splitlines()[0].startswith("/dev/pts/"), result


def test_the_command_holds_no_end_of_the_hosts(sit):
    """E1: no pipe, no other side of the terminal, and init cannot be looked into for them."""
    person = sit("run", "-t", "--", "sh", "-c", "for i in 0 1 2 3 4 5 6 7 8 9; do readlink /proc/self/fd/$i; done; ls /proc/1/fd")
    shown = person.end()[1]
    assert shown.count(b"/dev/pts/0\r\n") == 3 and re.fullmatch(rb"(/dev/pts/0\r\n){3}ls: .*/proc/1/fd.*Permission denied\r\n", shown), shown


def test_profiles_take_it(sit):
    for profile in ("strict", "default", "debug", "browser"):
        person = sit("run", "-t", "--set", f"isolation.seccomp={profile}", "--", "/usr/bin/tty")
        assert person.end() == (0, b"/dev/pts/0\r\n"), profile
