"""`cerco run`: streams, statuses, endings, limits; what a person sees first."""
# lane: quick
# sanitized
import hashlib
import json
import os
import signal
import subprocess

import pytest

from cerco import GUARD, Traces, wait_until


def test_prints_what_the_command_prints(cerco):
    result = cerco.run("--", "python3", "-c", "print(1)")
    assert (result.status, result.out) == (0, b"1\n"), result
    assert result.report["ending"]["kind"] == "exited"
    assert result.report["tier"] == "container"
    assert result.report["below_advice"], "unreviewed code in a container stands below the advice"


def test_status_is_the_commands_own(cerco):
    result = cerco.run("--", "sh", "-c", "exit 7")
    assert result.status == 7
    assert result.report["ending"] == {"kind": "exited", "code": 7, "signal": "", "by": "", "step": "", "errno": ""}


@pytest.mark.parametrize("status", [124, 125, 126, 127])
def test_a_command_may_return_cercos_own_numbers_and_the_report_tells_them_apart(cerco, status):
    result = cerco.run("--", "sh", "-c", f"exit {status}")
    assert result.status == status
    assert (result.report["ending"]["kind"], result.report["ending"]["code"]) == ("exited", status)


def test_a_signal_is_128_and_its_number(cerco):
    result = cerco.run("--", "sh", "-c", "kill -SEGV $$")
    assert result.status == 128 + signal.SIGSEGV
    assert result.report["ending"]["kind"] == "signalled"
    assert result.report["ending"]["signal"] == "SIGSEGV"


def test_time_limit_is_124(cerco):
    result = cerco.run("--timeout", "1s", "--", "sleep", "30")
    assert result.status == 124
    assert result.report["ending"]["kind"] == "timed_out"
    assert result.report["limits_hit"] == ["wall"]


def test_time_limit_holds_for_who_ignores_it(cerco):
    """E104, F80: SIGTERM ignored, double fork, new session."""
    result = cerco.run("--timeout", "1s", "--", "sh", "-c", "trap '' TERM; setsid sh -c 'trap \"\" TERM; sleep 600' & sleep 600")
    assert result.status == 124
    assert result.report["ending"]["kind"] == "timed_out"


def test_without_the_time_limit_the_command_ends_by_itself(cerco):
    """The control of the two above."""
    result = cerco.run("--timeout", "1s", "--", "sleep", "3", without=["wall_limit"])
    assert result.status == 0


def test_nothing_survives_the_end(cerco):
    """E101: setsid, double fork, ignored signals, a stopped process."""
    traces = Traces(cerco.state)
    result = cerco.run("--", "sh", "-c",
                       "setsid sh -c '(trap \"\" TERM HUP INT; sleep 600 & sleep 600 & kill -STOP $!) &' ; echo done")
    assert (result.status, result.out) == (0, b"done\n"), result
    assert traces.since() == []


def test_memory_limit_ends_the_sandbox(cerco):
    """E91."""
    result = cerco.run("--set", "limits.memory=64MiB", "--", "python3", "-c", "x = bytearray(1 << 28); print(len(x))")
    assert result.status == 137, result
    assert result.report["ending"]["kind"] == "out_of_memory"
    assert "memory" in result.report["limits_hit"]
    assert result.out == b""


def test_without_the_memory_limit_the_hog_succeeds(cerco):
    result = cerco.run("--set", "limits.memory=64MiB", "--", "python3", "-c",
                       "x = bytearray(1 << 28); print(len(x))", without=["memory_limit"])
    assert (result.status, result.out) == (0, b"268435456\n"), result


QUEUE = """
import socket, sys
kind, queued, kept = sys.argv[1], 0, []
def full(sender, piece):
    global queued
    try:
        while queued < 200 << 20: queued += sender.send(piece)
    except OSError: pass
if kind == "tcp":
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
    listener.bind(("127.0.0.1", 0))
    listener.listen(200)
    for _ in range(160):
        sender = socket.create_connection(listener.getsockname())
        kept += [sender, listener.accept()[0]]
        sender.setblocking(False)
        full(sender, b"x" * 65536)
else:
    piece, most, sender = b"x" * 60000, 60, socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for _ in range(400):
        kept.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        kept[-1].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        kept[-1].bind(("127.0.0.1", 0))
        kept[-1].setblocking(False)
        try:
            for _ in range(most): sender.sendto(piece, kept[-1].getsockname())
        except OSError: pass
    for receiver in kept:
        try:
            while True: queued += len(receiver.recv(65536))
        except OSError: pass
print(queued >> 20)
"""


@pytest.mark.parametrize("kind", ["tcp", "udp"])
def test_the_memory_limit_holds_what_sockets_queue(cerco, kind):
    """Buffers that are never read are memory of the host as any other."""
    result = cerco.run("--set", "limits.memory=64MiB", "--", "python3", "-c", QUEUE, kind)
    assert result.status == 0, result
    assert int(result.out) <= 64, result


@pytest.mark.parametrize("kind", ["tcp", "udp"])
def test_without_the_memory_limit_sockets_queue_what_they_like(cerco, kind):
    result = cerco.run("--set", "limits.memory=64MiB", "--", "python3", "-c", QUEUE, kind, without=["memory_limit"])
    assert result.status == 0, result
    assert int(result.out) > 100, result


def test_a_full_disk_is_enospc_and_never_out_of_memory(cerco):
    """E93."""
    result = cerco.run("--set", "limits.disk=64MiB", "--set", "limits.memory=64MiB", "--", "sh", "-c",
                       "dd if=/dev/zero of=big bs=1M count=200 2>err; status=$?; tail -n 1 err >/dev/null; grep -o 'No space left on device' err; exit $status")
    assert result.status == 1, result
    assert result.out == b"No space left on device\n"
    assert result.report["ending"]["kind"] == "disk_full"


def test_without_the_disk_limit_the_filler_succeeds(cerco):
    result = cerco.run("--set", "limits.disk=64MiB", "--", "sh", "-c",
                       "dd if=/dev/zero of=/tmp/big bs=1M count=100 2>/dev/null && echo written", without=["disk_limit"])
    assert result.out == b"written\n", result


def test_process_limit(cerco):
    """E89: the bomb is refused by the kernel; E90: so are threads, which count as processes."""
    fork = "import os, time\nfor made in range(300):\n    if os.fork() == 0: time.sleep(60); os._exit(0)"
    thread = "import threading, time\nfor made in range(300): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()"
    for bomb, error in ((fork, "BlockingIOError"), (thread, "RuntimeError")):
        program = f"try: exec({bomb!r})\nexcept {error}:\n    print('refused', made < 64)\n    raise SystemExit(3)\nprint('no limit')"
        result = cerco.run("--set", "limits.processes=64", "--", "python3", "-c", program)
        assert (result.status, result.out) == (3, b"refused True\n"), result
        assert result.report["ending"]["kind"] == "process_limit"
        free = cerco.run("--set", "limits.processes=64", "--", "python3", "-c", program, without=["process_limit"])
        assert free.out == b"no limit\n", free


def test_open_files_are_limited(cerco):
    """E95."""
    program = "import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE))"
    assert cerco.run("--set", "limits.files=77", "--", "python3", "-c", program).out == b"(77, 77)\n"


def test_output_limit(cerco):
    """E66."""
    result = cerco.run("--set", "limits.output=1MiB", "--", "yes")
    assert result.status == 137
    assert result.report["ending"]["kind"] == "output_limit"
    assert len(result.out) <= 1 << 20


def test_streams_are_byte_exact(cerco):
    """F92, F93: binary input, blank lines, no newline at the end, separate streams."""
    blob = hashlib.sha512(b"seed").digest() * 50000
    assert cerco.run("--", "cat", input=blob).out == blob
    assert cerco.run("--", "printf", "a\\n\\n\\nb").out == b"a\n\n\nb"
    result = cerco.run("--", "sh", "-c", "echo out; echo err >&2")
    assert (result.out, result.err.splitlines()[:1]) == (b"out\n", [b"err"]), result


def test_arguments_arrive_as_they_are(cerco):
    arguments = ["a b", "line\nbreak", "$HOME;`id`", "-rf", "", "\u00fc"]
    result = cerco.run("--", "python3", "-c", "import sys, json; print(json.dumps(sys.argv[1:]))", *arguments)
    assert json.loads(result.out) == arguments


def test_a_file_is_copied_in_and_started(cerco, tmp_path):
    (tmp_path / "hello.py").write_text("import sys\nprint('hello', sys.argv[1:], __file__)\n")
    result = cerco.run("hello.py", "a", "--b", cwd=tmp_path)
    assert result.status == 0, result
    assert b"hello ['a', '--b'] " in result.out
    (tmp_path / "hello.sh").write_text("#!/bin/sh\necho shebang $1\n")
    assert cerco.run("./hello.sh", "x", cwd=tmp_path).out == b"shebang x\n"


def test_files_go_in_and_come_out(cerco, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "data.csv").write_text("1,2\n")
    (tmp_path / "in" / ".env").write_text("SECRET=1\n")
    result = cerco.run("--in", "in:data", "--out", "out", "--", "sh", "-c",
                       "cat data/data.csv > sum.txt; wc -c < data/.env; mkdir d; echo x > d/y; ln -s /etc/passwd l", cwd=tmp_path)
    assert (result.status, result.out) == (0, b"0\n"), result
    assert (tmp_path / "out" / "sum.txt").read_text() == "1,2\n"
    assert (tmp_path / "out" / "d" / "y").read_text() == "x\n"
    assert not (tmp_path / "out" / "data" / "data.csv").exists(), "unchanged files stay where they are"
    assert os.stat(tmp_path / "out" / "sum.txt").st_uid == os.getuid()
    assert result.report["changes"] >= 3


def test_out_comes_after_a_time_out_too(cerco, tmp_path):
    result = cerco.run("--timeout", "1s", "--out", "out", "--", "sh", "-c", "echo kept > x; sleep 60", cwd=tmp_path)
    assert result.status == 124
    assert (tmp_path / "out" / "x").read_text() == "kept\n"


def test_the_caller_killed_takes_everything_with_it(cerco):
    """F91."""
    traces = Traces(cerco.state)
    process = cerco.start("run", "--", "sh", "-c", "echo up; sleep 600", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout.readline() == b"up\n"
    process.kill()
    process.wait(GUARD)
    assert traces.since() == []


def test_sigint_goes_to_the_command(cerco):
    process = cerco.start("run", "--", "sh", "-c", "trap 'echo got; exit 9' INT; echo up; while :; do sleep 0.05; done",
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout.readline() == b"up\n"
    process.send_signal(signal.SIGINT)
    assert process.stdout.read() == b"got\n"
    assert process.wait(GUARD) == 9


def test_environment_is_the_contracts(cerco):
    """F31 and F51: nothing of the caller's environment comes in, proxies and loaders least of all."""
    hostile = {"LD_PRELOAD": "/x.so", "NO_PROXY": "*", "ALL_PROXY": "http://p", "AWS_SECRET_ACCESS_KEY": "k", "PYTHONPATH": "/x"}
    result = cerco.run("--env", "A=1", "--", "env", env=hostile)
    seen = dict(line.split("=", 1) for line in result.text.splitlines())
    assert seen.pop("CERCO_RUN") == result.report["run"]
    assert seen == {"A": "1", "HOME": "/home/agent", "TMPDIR": "/tmp", "LANG": "C.UTF-8", "USER": "agent", "LOGNAME": "agent",
                    "SHELL": "/bin/sh", "NPM_CONFIG_PREFIX": "/home/agent/.local",
                    "PATH": "/home/agent/.local/bin:/usr/local/bin:/usr/bin:/bin"}


def test_the_working_folder_and_home_are_writable_and_the_base_is_not(cerco):
    script = ("pwd; id -un; hostname; for d in . ~ /tmp /var/tmp /dev/shm; do touch $d/x && echo yes $d; done;"
              " for d in / /usr /etc /bin /proc/sys/kernel; do touch $d/x 2>/dev/null && echo no $d; done; true")
    lines = cerco.run("--", "sh", "-c", script).text.splitlines()
    assert lines == ["/workspace", "agent", "sandbox", "yes .", "yes /home/agent", "yes /tmp", "yes /var/tmp", "yes /dev/shm"]
