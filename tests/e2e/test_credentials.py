"""Credentials: the sandbox holds a placeholder; the secret goes to its place only, and comes back to nobody."""
# lane: full
# sanitized
import json
import os
import signal
import subprocess

import pytest

from cerco import GUARD, find_below, wait_until
from world import DNS, PUBLIC

TOKEN = "sk-test-9f8e7d6c5b4a39281706"
POLICY = f"""
version = 1
task = "credentials"
[network]
resolvers = ["{DNS}"]
[[egress]]
host = "api.test"
methods = ["GET", "POST"]
paths = ["/v1/**", "/echo/**"]
own = "pass"
[[egress]]
host = "echo.test"
methods = ["GET", "POST"]
paths = ["/**"]
[[credential]]
name = "api"
source = {{ env = "API_KEY" }}
hosts = ["api.test"]
ports = [443]
methods = ["GET"]
paths = ["/v1/**"]
inject = {{ header = "Authorization", format = "Bearer {{secret}}" }}
env = {{ API_KEY = "secret" }}
"""


@pytest.fixture(scope="module")
def net(world):
    world.api = world.https("api.test", answers={"/v1/leak": {"body": f"your key is {TOKEN}\n", "headers": {"X-Key": TOKEN}}})
    world.echo = world.https("echo.test", address=PUBLIC[1], answers={"/leak": {"body": f"last key {TOKEN}\n"}})
    world.box = world.cerco(environment={"API_KEY": TOKEN})
    return world


def run(net, script, policy=POLICY, **kwargs):
    for server in (net.api, net.echo):
        server.clear()
    result = net.box.run("--", "sh", "-c", script, policy=policy, **kwargs)
    assert TOKEN not in result.text + result.error, "the secret came out"
    for path in (net.box.state / "journal").glob("*.jsonl"):
        assert TOKEN not in path.read_text(), "the secret is in the journal"
    return result


def requests(server):
    return [entry for entry in server.entries() if entry["event"] == "request"]


AUTH = "-H \"Authorization: Bearer $API_KEY\""
CODE = "-sS -m 20 -o /dev/null -w '%{http_code}\\n'"


def test_the_server_sees_the_secret_and_the_sandbox_does_not(net):
    result = run(net, f"curl {CODE} {AUTH} https://api.test/v1/me; env; cat /proc/1/environ /proc/self/environ 2>/dev/null | tr '\\0' '\\n'")
    assert result.text.splitlines()[0] == "200", result
    assert [r["headers"]["authorization"] for r in requests(net.api)] == [f"Bearer {TOKEN}"]
    placeholder = next(line.split("=", 1)[1] for line in result.text.splitlines() if line.startswith("API_KEY="))
    assert placeholder.startswith("cerco_ph_") and len(placeholder) >= 9 + 26
    used = result.of_type("credential.used")
    assert [(u["credential"], u["host"], u["method"], u["path"]) for u in used] == [("api", "api.test", "GET", "/v1/me")]
    assert result.of_type("credential.issued") and result.of_type("credential.revoked")


def test_no_memory_inside_holds_the_secret(net):
    """The program that looks finds what is there: the placeholder, in its own memory and in a file."""
    program = f"""
import os
key = os.environ['API_KEY'].encode()
secret = bytes(c ^ 1 for c in {bytes(c ^ 1 for c in TOKEN.encode())!r})
open('/workspace/key', 'wb').write(key)
memory = dict.fromkeys((key, secret), 0)
for line in open('/proc/self/maps'):
    a, b = (int(x, 16) for x in line.split()[0].split('-'))
    if 'r' not in line.split()[1] or '[v' in line: continue
    with open('/proc/self/mem', 'rb', 0) as m:
        try:
            m.seek(a); data = m.read(b - a)
        except (OSError, OverflowError, ValueError): continue
    for word in memory: memory[word] += data.count(word)
files = dict.fromkeys((key, secret), 0)
for top in ('/workspace', '/home', '/tmp', '/etc', '/run', '/dev/shm'):
    for folder, _, names in os.walk(top):
        for name in names:
            try: text = open(os.path.join(folder, name), 'rb').read(1 << 20)
            except OSError: continue
            for word in files: files[word] += word in text
print('placeholder', memory[key] > 0, files[key])
print('secret', memory[secret] <= 2, files[secret])  # the looker's own copies
"""
    result = net.box.run("--env", f"PROGRAM={program}", "--", "sh", "-c",
                         f"curl {CODE} {AUTH} https://api.test/v1/me; python3 -c \"$PROGRAM\"", policy=POLICY)
    assert result.text.splitlines() == ["200", "placeholder True 1", "secret True 0"], result


@pytest.mark.parametrize("what, command, server", [
    ("another host", f"curl {CODE} {AUTH} https://echo.test/v1/me", "echo"),
    ("another path", f"curl {CODE} {AUTH} https://api.test/echo/x", "api"),
    ("another method", f"curl {CODE} -X POST -d a=b {AUTH} https://api.test/v1/me", "api"),
    ("another header", f"curl {CODE} -H \"X-Debug: $API_KEY\" https://api.test/v1/me", "api"),
    ("the query", f"curl {CODE} \"https://api.test/v1/me?k=$API_KEY\"", "api"),
    ("the path", f"curl {CODE} \"https://api.test/v1/$API_KEY\"", "api"),
    ("basic of another user", f"curl {CODE} -u \"u:$API_KEY\" https://echo.test/", "echo"),
    ("user agent", f"curl {CODE} -A \"$API_KEY\" {AUTH} https://api.test/v1/me", "api"),
])
def test_a_placeholder_out_of_its_place_is_403_and_an_alert(net, what, command, server):
    """N152, N159-N161, F44, F59."""
    result = run(net, command)
    assert result.text.strip() == "403", result
    assert requests(getattr(net, server)) == []
    assert result.of_type("credential.refused"), result.events
    assert [a for a in result.of_type("alert") if a["detector"] == "placeholder_misuse"], result.events
    assert not result.of_type("credential.used")


def test_without_the_binding_it_goes_to_the_other_path(net):
    for server in (net.api, net.echo):
        server.clear()
    result = net.box.run("--", "sh", "-c", f"curl {CODE} {AUTH} https://api.test/echo/x", policy=POLICY, without=["binding"])
    assert result.text.strip() == "200", result
    assert [r["headers"]["authorization"] for r in requests(net.api)] == [f"Bearer {TOKEN}"]


def test_the_agents_own_credential_is_refused(net):
    """N171: an attacker's account at the bound host."""
    result = run(net, f"curl {CODE} -H 'Authorization: Bearer sk-attacker' https://api.test/v1/me")
    assert result.text.strip() == "403", result
    assert requests(net.api) == []


def test_a_request_without_the_placeholder_gets_nothing(net):
    result = run(net, f"curl {CODE} https://api.test/v1/me")
    assert result.text.strip() == "200", result
    assert ["authorization" in r["headers"] for r in requests(net.api)] == [False]
    assert not result.of_type("credential.used")


def test_an_unknown_placeholder_is_an_unknown_credential(net):
    """N169: one of another run."""
    result = run(net, f"curl {CODE} -H 'Authorization: Bearer cerco_ph_{'a' * 26}' https://api.test/v1/me")
    assert result.text.strip() == "403", result
    assert requests(net.api) == []


def test_in_a_body_it_passes_as_it_is_and_is_noted(net):
    result = run(net, f"curl {CODE} -X POST -d \"said $API_KEY\" https://echo.test/v1/chat; echo $API_KEY")
    code, placeholder = result.text.split()
    assert code == "200", result
    assert [r["body"] for r in requests(net.echo)] == [f"said {placeholder}"]
    assert [a for a in result.of_type("alert") if a["detector"] == "placeholder_in_body"], result.events


def test_what_the_server_says_back_is_redacted(net):
    """N154."""
    result = run(net, f"curl -sS -i {AUTH} https://api.test/v1/leak; echo $API_KEY")
    placeholder = result.text.split()[-1]
    assert f"your key is {placeholder}" in result.text, result
    free = net.box.run("--", "sh", "-c", f"curl -sS {AUTH} https://api.test/v1/leak", policy=POLICY, without=["redaction"])
    assert TOKEN in free.text


@pytest.mark.parametrize("flags", [("--env", "OTHER"), ("--env", f"OTHER={TOKEN}"), ("--env", f"URL=https://u:{TOKEN}@api.test/")])
def test_the_secret_comes_in_by_no_other_name(net, flags):
    other = net.cerco(environment={"API_KEY": TOKEN, "OTHER": TOKEN})
    result = other.run(*flags, "--set", "environment.plain=['OTHER', 'URL']", "--", "sh", "-c", "echo started", policy=POLICY)
    assert result.status == 125 and "started" not in result.text, result
    assert "credential api" in result.error and flags[1].split("=")[0] in result.error and TOKEN not in result.error, result


@pytest.mark.parametrize("field", ["X-Api-Key: sk-attacker", "Cookie: s=attacker"])
@pytest.mark.parametrize("beside", ["", AUTH])
def test_no_other_field_brings_another_account(net, field, beside):
    """N172"""
    result = run(net, f"curl {CODE} -H '{field}' {beside} https://api.test/v1/me")
    assert result.text.strip() == "403", result
    assert requests(net.api) == []


def test_another_host_does_not_tell_it_after_a_use(net):
    """Hosts share what is behind them."""
    script = f"curl {CODE} {AUTH} https://api.test/v1/me; curl -sS -m 20 https://echo.test/leak; echo $API_KEY"
    result = run(net, script)
    assert f"last key {result.text.split()[-1]}" in result.text, result
    free = net.box.run("--", "sh", "-c", script, policy=POLICY, without=["redaction"])
    assert f"last key {TOKEN}" in free.text, free


def test_basic(net):
    """N167."""
    policy = POLICY.replace('inject = { header = "Authorization", format = "Bearer {secret}" }', 'inject = { basic = "user" }')
    result = run(net, f"curl {CODE} -u \"user:$API_KEY\" https://api.test/v1/me", policy=policy)
    assert result.text.strip() == "200", result
    import base64
    assert [r["headers"]["authorization"] for r in requests(net.api)] == \
        ["Basic " + base64.b64encode(f"user:{TOKEN}".encode()).decode()]


def test_uses_are_counted(net):
    policy = POLICY + "uses = 2\n"
    result = run(net, f"for i in 1 2 3; do curl {CODE} {AUTH} https://api.test/v1/me; done", policy=policy)
    assert result.text.split() == ["200", "200", "403"], result
    assert len(requests(net.api)) == 2


def test_lifetime_ends(net):
    policy = POLICY + 'lifetime = "1s"\n'
    result = run(net, f"sleep 2; curl {CODE} {AUTH} https://api.test/v1/me", policy=policy)
    assert result.text.strip() == "403", result
    assert requests(net.api) == []


@pytest.mark.parametrize("kind", ["file", "command"])
def test_sources(net, kind, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text(TOKEN + "\n")
    secret.chmod(0o600)
    source = f'{{ file = "{secret}" }}' if kind == "file" else f'{{ command = ["cat", "{secret}"] }}'
    result = run(net, f"curl {CODE} {AUTH} https://api.test/v1/me", policy=POLICY.replace('{ env = "API_KEY" }', source))
    assert result.text.strip() == "200", result
    assert [r["headers"]["authorization"] for r in requests(net.api)] == [f"Bearer {TOKEN}"]


@pytest.mark.parametrize("source, hint", [
    ('{ env = "NOT_THERE" }', "NOT_THERE"), ('{ file = "/nonexistent" }', "/nonexistent"), ('{ command = ["false"] }', "false"),
    ('{ vault = { path = "x" } }', "unknown key"),
])
def test_a_source_that_fails_stops_the_start(net, source, hint):
    """F43, N200."""
    result = run(net, "echo started", policy=POLICY.replace('{ env = "API_KEY" }', source))
    assert result.status == 125 and hint in result.error and "started" not in result.text, result


def test_an_open_file_is_no_place_for_a_secret(net, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text(TOKEN)
    secret.chmod(0o644)
    result = run(net, "echo started", policy=POLICY.replace('{ env = "API_KEY" }', f'{{ file = "{secret}" }}'))
    assert result.status == 125 and "0600" in result.error, result


def test_an_upstream_that_cannot_prove_itself_gets_no_secret(net, tmp_path):
    """N181: another authority, an expired certificate."""
    from world import Authority
    rogue = net.https("api2.test", address=PUBLIC[2], authority=Authority(tmp_path, "rogue"))
    old = net.https("api3.test", address=PUBLIC[3], expired=True)
    misnamed = net.https("someone-else.test", address=PUBLIC[4])
    net.names(records={"api4.test": [PUBLIC[4]]})
    for server, name in ((rogue, "api2.test"), (old, "api3.test"), (misnamed, "api4.test")):
        policy = POLICY.replace('"api.test"', f'"{name}"')
        result = run(net, f"curl {CODE} {AUTH} https://{name}/v1/me", policy=policy)
        assert result.text.strip() == "502", result
        assert requests(server) == []
        assert not result.of_type("credential.used"), result.events


def test_plain_http_never_carries_one(net):
    """N182."""
    policy = POLICY.replace("ports = [443]", "ports = [80]").replace('methods = ["GET", "POST"]', 'ports = [80, 443]\nmethods = ["GET", "POST"]', 1)
    result = run(net, "echo started", policy=policy)
    assert result.status == 125 and "started" not in result.text and "plain HTTP" in result.error, result


def test_the_broker_dead_means_the_request_fails(net):
    """F39, N200: nothing is forwarded, least of all the placeholder."""
    path = net.folder / "broker.toml"
    path.write_text(POLICY)
    for server in (net.api, net.echo):
        server.clear()
    process = net.box.start("run", "--policy", str(path), "--", "sh", "-c", f"echo up; read line; curl {CODE} {AUTH} https://api.test/v1/me",
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline() == b"up\n"
    broker = wait_until(lambda: find_below(process, "cerco-broker"), what="the broker")
    os.kill(broker, signal.SIGKILL)
    wait_until(lambda: find_below(process, "cerco-broker") != broker, what="the broker's end")
    out, err = process.communicate(b"go\n", timeout=GUARD)
    assert out.strip() in (b"502", b"503", b"403"), (out, err)
    assert requests(net.api) == []


def test_a_service_of_the_host(net):
    """F49: host.cerco.internal, the one place where a credential may go in the clear."""
    service = net.serve("http", {"address": "127.0.0.1", "port": 8000}, namespace=net.host)
    policy = f"""
version = 1
[[egress]]
host = "host.cerco.internal"
ports = [8000]
methods = ["GET"]
paths = ["/v1/**"]
[[credential]]
name = "local"
source = {{ env = "API_KEY" }}
hosts = ["host.cerco.internal"]
ports = [8000]
methods = ["GET"]
paths = ["/v1/**"]
inject = {{ header = "X-Api-Key", format = "{{secret}}" }}
env = {{ LOCAL_KEY = "secret" }}
"""
    result = run(net, f"curl {CODE} -H \"X-Api-Key: $LOCAL_KEY\" http://host.cerco.internal:8000/v1/me; curl {CODE} -m 5 http://host.cerco.internal:8001/",
                 policy=policy)
    assert result.text.split()[0] == "200", result
    assert [r["headers"]["x-api-key"] for r in requests(service)] == [TOKEN]
    assert result.text.split()[1] != "200"
