"""The gVisor tier: the container's own tests, run with --tier gvisor, and what is this tier's alone."""
# lane: full
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import time

import pytest

from cerco import GUARD, Cerco, Traces, children_of, descendants_of, status_of, wait_until
from test_files import (test_a_destination_outside_the_working_folder_is_refused, test_a_reader_that_leaves_ends_the_command,
                        test_large_input_and_output, test_links_that_leave_bring_nothing_out)
from test_run import (test_a_file_is_copied_in_and_started, test_a_full_disk_is_enospc_and_never_out_of_memory,
                      test_a_signal_is_128_and_its_number, test_arguments_arrive_as_they_are,
                      test_environment_is_the_contracts, test_files_go_in_and_come_out, test_memory_limit_ends_the_sandbox,
                      test_nothing_survives_the_end, test_open_files_are_limited, test_out_comes_after_a_time_out_too,
                      test_output_limit, test_sigint_goes_to_the_command, test_status_is_the_commands_own,
                      test_streams_are_byte_exact, test_the_caller_killed_takes_everything_with_it,
                      test_time_limit_holds_for_who_ignores_it, test_time_limit_is_124)

pytestmark = pytest.mark.skipif(shutil.which("runsc", path="/usr/local/bin:/usr/bin:/usr/sbin") is None or os.getuid() != 0,
                                reason="takes root and gVisor's runsc (tools/install-packages test)")


@pytest.fixture
def cerco(tmp_path):
    return Cerco(tmp_path, tier="gvisor")


def test_it_stands_on_another_kernel_and_says_so(cerco):
    """The control is the container, which shows the host's."""
    result = cerco.run("--", "uname", "-rv")
    own = os.uname()
    assert result.status == 0 and own.release not in result.text, result
    assert result.report["tier"] == "gvisor" and result.report["below_advice"] == []
    assert own.release in cerco.run("--tier", "container", "--", "uname", "-rv").text
    told = cerco("check", "--tier", "gvisor")
    assert re.search(r"run_gvisor \S+ \(runsc \S+\), platform (systrap|ptrace)", told.text), told


def test_auto_takes_it_where_it_is_advised_and_quick(tmp_path):
    free = Cerco(tmp_path, tier=None)
    # By ptrace each system call takes hundreds of times as long: for who asks for it by name.
    quick = "platform systrap" in free("check", "--tier", "gvisor").text
    assert free.run("--", "true").report["tier"] == ("gvisor" if quick else "container")
    assert free.run("--set", "code=reviewed", "--", "true").report["tier"] == "container"


def test_what_it_cannot_do_yet_says_so(cerco):
    for words in (("start",), ("run", "--detach", "--", "sleep", "60")):
        result = cerco(*words)
        assert result.status == 125 and "not carried out yet" in result.error, result


SEEN = """
import os
def look(path):
    try: return repr(open(path, 'rb').read(4096))
    except OSError as e: return type(e).__name__
for path in ('/proc/1/environ', '/proc/2/environ', '/proc/cmdline', '/proc/kallsyms', '/proc/kcore', '/proc/mounts',
             '/dev/shm/bundle/config.json', '/dev/shm/state', '/run/cerco-init', '/etc/shadow', '/proc/self/mountinfo'):
    print(path, look(path))
print(sorted(os.listdir('/dev/shm')), sorted(os.listdir('/dev')))
"""


def test_what_runsc_needs_is_not_there_inside(cerco):
    """E8, E38: its bundle, its state and the paths of the host."""
    result = cerco.run("--", "python3", "-c", SEEN)
    assert result.status == 0, result
    lines = dict(line.split(" ", 1) for line in result.text.splitlines()[:-1])
    assert lines["/dev/shm/bundle/config.json"] == lines["/dev/shm/state"] == "FileNotFoundError"
    assert lines["/run/cerco-init"] == "PermissionError"
    assert lines["/etc/shadow"] == "FileNotFoundError"
    assert str(cerco.state) not in result.text and "runsc" not in result.text, result
    assert result.text.splitlines()[-1].startswith("[] ")


def test_cerco_init_and_the_tunnel_are_out_of_reach(cerco):
    """E41, E100: signals, tracing and memory of processes 1 and 2; the run goes on and ends as it should."""
    program = ("import os, ctypes, signal\n"
               "libc = ctypes.CDLL(None, use_errno=True)\n"
               "for pid in (1, 2):\n"
               "    for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM):\n"
               "        try: os.kill(pid, number); print('sent')\n"
               "        except PermissionError: print('refused')\n"
               "    print('traced' if libc.ptrace(16, pid, 0, 0) == 0 else 'refused')\n"
               "    try: open(f'/proc/{pid}/mem', 'rb+').read(1); print('read')\n"
               "    except OSError: print('refused')\n")
    result = cerco.run("--", "python3", "-c", program)
    assert (result.status, result.text.split()) == (0, ["refused"] * 10), result


def test_a_script_that_names_the_first_program_runs_nothing_of_ours(cerco):
    """E4: /run/cerco-init is the sandbox's root's alone."""
    result = cerco.run("--", "sh", "-c", "printf '#!/run/cerco-init\\n' > x; chmod 755 x; ./x; echo $?; /run/cerco-init tunnel; echo $?")
    assert result.text.split() == ["126", "126"], result


def named(process, word):
    """The processes below one whose first word is `word`: runsc gives its own names of their own."""
    found = []
    for pid in descendants_of(process.pid):
        try:
            first = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]
        except OSError:
            continue
        if os.path.basename(first).decode() == word:
            found.append(pid)
    return found


def start_and_stay(cerco):
    process = cerco.start("run", "--report", "report.json", "--", "sh", "-c", "echo up; sleep 600", stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    assert process.stdout.readline() == b"up\n", process.stderr.read()
    return process


@pytest.mark.parametrize("whom", ["supervisor", "runsc", "runsc-sandbox", "cerco-tunnel"])
def test_whoever_is_killed_ends_the_run_and_leaves_nothing(cerco, whom):
    """E103, F91: the supervisor, runsc itself, its kernel or the tunnel."""
    traces = Traces(cerco.state)
    process = start_and_stay(cerco)
    victims = children_of(process.pid) if whom == "supervisor" else named(process, whom)
    assert victims, [status_of(pid) for pid in descendants_of(process.pid)]
    for victim in victims:
        os.kill(victim, signal.SIGKILL)
    assert process.wait(GUARD) != 0
    if whom != "supervisor":
        report = json.loads((cerco.folder / "report.json").read_text())
        assert report["ending"]["kind"] in ("killed", "signalled", "exited") and report["status"] != 0, report
    process.stdout.close()
    process.stderr.close()
    wait_until(lambda: not [t for t in traces.now() if t.startswith(("process", "mount", "loop"))], what=lambda: str(traces.now()))
    assert cerco("gc").status == 0
    assert traces.since() == []


def stubs_of(process):
    """The processes that the sandbox's code runs in: gVisor's kernel traces them."""
    kernel = named(process, "runsc-sandbox")[0]
    return [pid for pid in descendants_of(kernel)
            if "TracerPid:\t0\n" not in pathlib.Path(f"/proc/{pid}/status").read_text()]


def test_code_whose_process_somebody_killed_does_not_wait_for_the_wall_limit(cerco):
    """F91: what gVisor's kernel runs code in was killed by the host; the run is over, as killed, and leaves nothing."""
    if "platform ptrace" not in cerco("check", "--tier", "gvisor").text:
        pytest.skip("only by ptrace does gVisor's kernel wait for such a process for ever")
    traces = Traces(cerco.state)
    process = start_and_stay(cerco)
    # The first one is where the others come from: nothing runs in it.
    os.kill(stubs_of(process)[-1], signal.SIGKILL)
    assert process.wait(GUARD) == 137
    report = json.loads((cerco.folder / "report.json").read_text())
    assert (report["ending"]["kind"], report["ending"]["by"]) == ("killed", "host"), report
    process.stdout.close()
    process.stderr.close()
    assert traces.since() == []


@pytest.mark.parametrize("whom", ["runsc", "runsc-sandbox", "runsc-gofer", "cerco-tunnel"])
def test_whoever_hangs_is_ended_by_the_wall_limit(cerco, whom):
    """E104: a stopped part of gVisor's is no way around the time limit, and the report is true."""
    traces = Traces(cerco.state)
    process = cerco.start("run", "--timeout", "3s", "--report", "report.json", "--", "sh", "-c", "echo up; sleep 600",
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    assert process.stdout.readline() == b"up\n", process.stderr.read()
    for pid in named(process, whom):
        os.kill(pid, signal.SIGSTOP)
    assert process.wait(GUARD) == 124
    assert json.loads((cerco.folder / "report.json").read_text())["ending"]["kind"] == "timed_out"
    process.stdout.close()
    process.stderr.close()
    assert traces.since() == []


@pytest.mark.skipif(os.environ.get("CERCO_LANE") != "long", reason="many runs: in the long lane")
def test_sandboxes_killed_at_any_moment_leave_nothing(cerco):
    """E103: 200 of them; one of all that takes part, the caller included, at any moment of start and run."""
    traces = Traces(cerco.state)
    chance = random.Random(7)
    for i in range(200):
        process = cerco.start("run", "--timeout", "20s", "--", "sh", "-c", "echo up; while :; do sleep 0.05; done",
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        wait_until(lambda: children_of(process.pid) or process.poll() is not None, what="the supervisor")
        time.sleep(chance.random())
        try:
            os.kill(chance.choice([process.pid, *descendants_of(process.pid)]), signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.stdout.close()
        assert process.wait(GUARD) != 0, i
        wait_until(lambda: not [t for t in traces.now() if t.startswith(("process", "mount", "loop"))],
                   what=lambda: f"run {i}: nothing alive; there is {traces.now()}")
    assert cerco("gc").status == 0
    assert traces.since() == []


def test_a_process_bomb_is_held_by_the_limit(cerco):
    """E89: threads of its kernel count too, so the limit is higher and may end the sandbox; the host has room."""
    fork = "import os, time\nfor made in range(4000):\n    if os.fork() == 0: time.sleep(600); os._exit(0)\nprint('no limit')"
    result = cerco.run("--set", "limits.processes=64", "--timeout", "60s", "--", "python3", "-c", fork)
    assert (result.status, result.report["ending"]["kind"]) in ((137, "process_limit"), (1, "process_limit")), result
    assert "no limit" not in result.text
