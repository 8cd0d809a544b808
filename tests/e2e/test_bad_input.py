"""Bad input: one clear line, the contract's exit status, nothing left."""
# lane: quick
import pytest

from cerco import Cerco, Traces

POLICIES = {
    "unknown key": ('version = 1\n[limits]\nmemroy = "1GiB"\n', "3:1", "memory"),
    "wrong type": ('version = 1\n[limits]\nmemory = 5\n', "3:10", "MiB"),
    "wrong size": ('version = 1\n[limits]\nmemory = "5 potatoes"\n', "3:10", "MiB"),
    "zero": ('version = 1\n[limits]\nprocesses = 0\n', "3:13", "processes"),
    "duplicate": ('version = 1\ntask = "a"\ntask = "b"\n', "3:", "task"),
    "syntax": ('version = 1\ntask = \n', "2:", ""),
    "no such tier": ('version = 1\n[isolation]\ntier = "contaner"\n', "3:8", "container"),
    "contradiction": ('version = 1\n[[egress]]\nhost = "a.test"\n[[egress]]\nhost = "a.test"\npaths = ["/x"]\n', "", "a.test"),
    "denial past a raw rule": ('version = 1\n[[egress]]\ntcp = "a.test:443"\n[[deny]]\nhost = "a.test"\npaths = ["/x"]\n', "6:9", "a.test:443"),
    "two subjects": ('version = 1\n[[egress]]\nhost = "a.test"\ncidr = "10.0.0.0/8"\n', "", "one of"),
    "top-level wildcard": ('version = 1\n[[egress]]\nhost = "*.com"\n', "3:8", "com"),
    "credential without reach": ('version = 1\n[[credential]]\nname = "a"\nsource = { env = "X" }\nhosts = ["a.test"]\n'
                                 'methods = ["GET"]\npaths = ["/**"]\ninject = { header = "Authorization" }\n', "", "a.test"),
    "wrong version": ("version = 2\n", "1:11", "1"),
}


@pytest.mark.parametrize("case", POLICIES)
def test_a_wrong_policy_names_line_and_remedy(cerco, case):
    text, place, hint = POLICIES[case]
    traces = Traces(cerco.state)
    # A tier named by a flag would stand in the place of the policy's.
    result = Cerco(cerco.folder, tier=None).run("--", "true", policy=text)
    assert result.status == 125, result
    lines = result.error.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("cerco: "), result
    assert f".toml:{place}" in lines[0] and hint in lines[0], lines
    assert traces.since() == []
    assert not list(cerco.state.glob("journal/*.jsonl")) if cerco.state.exists() else True


@pytest.mark.parametrize("arguments, status, hint", [
    (["run", "--polcy", "x", "--", "true"], 125, "--policy"),
    (["run", "--timeout", "soon", "--", "true"], 125, "soon"),
    (["run"], 125, "--"),
    (["run", "--in", "/nonexistent/file", "--", "true"], 125, "/nonexistent/file"),
    (["run", "--ro", "/nonexistent/folder", "--", "true"], 125, "/nonexistent/folder"),
    (["run", "--policy", "/nonexistent.toml", "--", "true"], 125, "/nonexistent.toml"),
    (["run", "-t", "--", "true"], 125, "standard input is no terminal"),
    (["run", "--set", "limits.memory=0", "--", "true"], 125, "memory"),
    (["run", "--allow", "*.com", "--", "true"], 125, "com"),
    (["run", "--allow", "a.test:*", "--", "true"], 125, "a.test:*"),
    (["run", "--allow", "https://a.test:80/x", "--", "true"], 125, "port 80"),
    (["run", "no-such-file"], 125, "--"),
    (["run", "--", "no-such-command"], 127, "no-such-command"),
    (["run", "--", "/etc/passwd"], 126, "/etc/passwd"),
    (["frobnicate"], 2, "frobnicate"),
    (["log", "verify", "--run", "aaaaaaaaaaaa"], 3, "aaaaaaaaaaaa"),
    (["why", "not a url"], 2, "not a url"),
    (["why", "https://a.test/x\r\nA: b"], 2, "a control character"),
    (["attack"], 2, "not carried out yet"),
])
def test_wrong_arguments(cerco, arguments, status, hint):
    traces = Traces(cerco.state)
    result = cerco(*arguments)
    assert result.status == status, result
    lines = result.error.strip().splitlines()
    assert lines and lines[0].startswith("cerco: ") and hint in lines[0], result
    assert traces.since() == []


def test_a_secret_in_the_environment_is_refused(cerco):
    """F55."""
    value = "sk-proj-" + "x9Kd82hfQpZ1" * 3
    result = cerco.run("--env", f"OPENAI_API_KEY={value}", "--", "true")
    assert result.status == 125
    assert "OPENAI_API_KEY" in result.error and "[[credential]]" in result.error
    assert value not in result.error
    assert cerco.run("--env", f"OPENAI_API_KEY={value}", "--set", 'environment.plain=["OPENAI_API_KEY"]', "--", "true").status == 0


def test_a_host_command_that_is_not_inside_names_the_remedy(cerco, tmp_path):
    tool = tmp_path / "tools" / "mytool"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\necho mine\n")
    tool.chmod(0o755)
    result = cerco.run("--", str(tool))
    assert result.status == 127
    assert "--ro" in result.error or "--in" in result.error
    assert cerco.run("--ro", str(tool.parent), "--", str(tool)).out == b"mine\n"
