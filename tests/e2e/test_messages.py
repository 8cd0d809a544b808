"""What people are told: the limit that ended a run, what is missing, and how a hint is typed."""
# lane: full
import json
import shlex

import pytest

from cerco import wait_until

ENDED = [(("--timeout", "1s", "--", "sleep", "60"), 124, "ended by limits.wall"),
         (("--set", "limits.cpu=200ms", "--", "sh", "-c", "while :; do :; done"), 124, "ended by limits.cpu"),
         (("--set", "limits.output=1KiB", "--", "yes"), 137, "ended by limits.output"),
         (("--set", "limits.memory=64MiB", "--", "python3", "-c", "bytearray(1 << 28)"), 137, "ended by limits.memory")]


@pytest.mark.parametrize("args, status, line", ENDED)
def test_the_limit_that_ended_a_run_is_named(cerco, args, status, line):
    result = cerco("run", *args)
    assert result.status == status and f"cerco: {line}\n" in result.error, result
    assert line not in cerco("run", "--quiet", *args).error


def test_of_commands_in_a_session_too(cerco):
    run = cerco("start").text.strip()
    try:
        result = cerco("exec", "--timeout", "1s", run, "--", "sleep", "60")
        assert (result.status, result.error) == (124, "cerco: ended by limits.wall\n")
        assert cerco("exec", "--quiet", "--timeout", "1s", run, "--", "sleep", "60").error == ""
        client = cerco.start("exec", run, "--", "sleep", "60", stderr=-1)
        wait_until(lambda: b"sleep" in cerco("exec", run, "--", "sh", "-c", "cat /proc/[0-9]*/comm").out, what="the command")
        assert cerco("kill", run).status == 0
        assert client.communicate(timeout=60)[1] == b"cerco: killed by operator\n" and client.returncode == 137
    finally:
        cerco("rm", run)


def test_a_missing_program_is_told_alike(cerco):
    run = cerco("start").text.strip()
    try:
        for name, status in (("no-such-program", 127), ("/no/such/program", 127), ("/etc/passwd", 126)):
            words = ["--", name]
            alone, inside = cerco("run", *words), cerco("exec", run, *words)
            assert alone.status == inside.status == status, (alone, inside)
            assert alone.error.replace("cerco: run: ", "cerco: ").split(",")[0].strip() == inside.error.split(",")[0].strip(), (alone, inside)
    finally:
        cerco("rm", run)


def test_a_place_inside_that_takes_no_file(cerco):
    run = cerco("start").text.strip()
    (cerco.folder / "file").write_text("x")
    try:
        for place in ("/usr/bin", "/usr/bin/env", "/etc/passwd"):
            refused = cerco("cp", "file", f"{run}:{place}")
            assert refused.status == 1 and ("EROFS" in refused.error or "EACCES" in refused.error), refused
    finally:
        cerco("rm", run)


def test_signals_need_a_command(cerco):
    run = cerco("start").text.strip()
    try:
        nothing = cerco("kill", "-s", "TERM", run)
        assert nothing.status == 1 and "no command that runs" in nothing.error, nothing
    finally:
        cerco("rm", run)


def test_several_runs_are_removed_at_once(cerco):
    runs = [cerco("start").text.strip() for _ in range(3)]
    removed = cerco("rm", runs[0], "nobody", runs[1], runs[2])
    assert removed.status == 3 and removed.text.split() == runs and "nobody: no such run" in removed.error, removed
    assert json.loads(cerco("ps", "-a", "--json").text) == []
    assert cerco("rm").status == 2


def test_events_are_shown_by_the_name_of_their_run(cerco):
    run = cerco("start", "--name", "box").text.strip()
    try:
        assert json.loads(cerco("log", "show", "--json", "box:1").text)["id"] == f"{run}:1"
        assert cerco("log", "show", "nobody:1").status == 3
    finally:
        cerco("rm", run)


def test_a_hint_can_be_typed(cerco):
    result = cerco("run", "python3", "-c", "print('it is')", "")
    assert result.status == 125
    assert shlex.split(result.error.split("to run a command: ")[1]) == ["cerco", "run", "--", "python3", "-c", "print('it is')", ""]
