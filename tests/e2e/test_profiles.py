"""The seccomp profiles: what each lets through that the others do not, and what none does."""
# lane: full
# sanitized
import json

import pytest

PROBE = r"""
import ctypes, errno, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *args):
    if libc.syscall(number, *map(ctypes.c_long, args)) < 0: raise OSError(ctypes.get_errno(), "")
def traced():
    pid = os.fork()
    if pid == 0:
        try:
            call(101, 0, 0, 0, 0)  # PTRACE_TRACEME
            os.kill(os.getpid(), 19)
        except OSError as error: os._exit(error.errno)
        os._exit(0)
    _, status = os.waitpid(pid, os.WUNTRACED)
    if os.WIFSTOPPED(status):
        os.kill(pid, 9); os.waitpid(pid, 0)
        return
    raise OSError(os.WEXITSTATUS(status), "")
def forked():
    if os.fork() == 0: os._exit(0)
def written():
    with open("/tmp/x", "w") as out: out.write("x")
def read():
    with open("/etc/passwd") as text: text.read()
ATTEMPTS = {
    "fork": forked, "socket": lambda: socket.socket().close(), "pair": lambda: [s.close() for s in socket.socketpair()],
    "write": written, "read": read, "unlink": lambda: os.rmdir("/tmp/none"), "ptrace": traced,
    "kcmp": lambda: call(312, os.getpid(), os.getpid(), 0, 0, 1), "mount": lambda: call(165, 0, 0, 0, 0, 0),
    "namespace": lambda: call(272, 0x10000000), "ring": lambda: call(425, 0, 0), "bpf": lambda: call(321, 0, 0, 0),
    "memory": lambda: call(310, os.getpid(), 0, 0, 0, 0, 0),
}
for name in sys.argv[1:]:
    try:
        ATTEMPTS[name]()
        print(name, "ok", flush=True)
    except OSError as error:
        print(name, errno.errorcode.get(error.errno, error.errno), flush=True)
"""
NAMES = ("fork", "socket", "pair", "write", "read", "unlink", "ptrace", "kcmp", "memory", "mount", "namespace", "ring", "bpf")
ORDINARY = {"fork": "ok", "socket": "ok", "pair": "ok", "write": "ok", "read": "ok", "unlink": "ENOENT", "mount": "EPERM",
            "namespace": "EPERM", "ring": "ENOSYS", "bpf": "EPERM"}
EXPECTED = {
    "default": {**ORDINARY, "ptrace": "EPERM", "kcmp": "EPERM", "memory": "EPERM"},
    "debug": {**ORDINARY, "ptrace": "ok", "kcmp": "ok", "memory": "ok"},
    "browser": {**ORDINARY, "ptrace": "EPERM", "kcmp": "ok", "memory": "EPERM"},
    "strict": {**dict.fromkeys(NAMES, "EPERM"), "read": "ok", "ring": "ENOSYS"},
}


def answers(result):
    return dict(line.split() for line in result.text.splitlines())


@pytest.mark.parametrize("profile", EXPECTED)
def test_each_profile_lets_through_what_it_is_for(shared_cerco, profile):
    result = shared_cerco.run("--set", f"isolation.seccomp={profile}", "--", "python3", "-c", PROBE, *NAMES)
    assert result.status == 0, result
    assert answers(result) == EXPECTED[profile]


def test_without_seccomp_the_same_calls_reach_the_kernel(shared_cerco):
    """The control: what the profiles refuse and other layers do not."""
    result = shared_cerco.run("--", "python3", "-c", PROBE, *NAMES, without=["seccomp"])
    got = answers(result)
    for name in ("fork", "socket", "pair", "write", "ptrace", "kcmp", "memory"):
        assert got[name] == "ok", result
    assert got["ring"] != "ENOSYS", result


def test_ordinary_commands_run_under_strict_as_far_as_they_are_one_process(shared_cerco):
    for command, out in ((("python3", "-c", "print(sum(range(10)))"), b"45\n"), (("cat", "/etc/hostname"), b"sandbox\n"),
                         (("sh", "-c", "echo $((6 * 7))"), b"42\n"), (("ls", "/"), None)):
        result = shared_cerco.run("--set", "isolation.seccomp=strict", "--", *command)
        assert result.status == 0, result
        assert out is None or result.out == out, result
    several = shared_cerco.run("--set", "isolation.seccomp=strict", "--", "sh", "-c", "ls | cat")
    assert several.status != 0, several


def test_the_plan_names_the_profile(shared_cerco):
    told = shared_cerco("check", "--json", "--set", "isolation.seccomp=debug", "--", "true")
    steps = {step["step"]: step["what"] for step in json.loads(told.out)["steps"]}
    assert steps["seccomp"] == "profile debug"
