"""Credentials by their tools: `cerco credential`, client certificates, WebSockets, stored policies, other sources."""
# lane: full
# sanitized
import json
import os
import pathlib
import subprocess

import pytest

from cerco import GUARD
from world import DNS, PUBLIC, Authority

TOKEN = "sk-test-9f8e7d6c5b4a39281706"
STORED = pathlib.Path(__file__).parents[1] / "cases" / "credentials_1.toml"
CODE = "-sS -m 20 -o /dev/null -w '%{http_code}\\n'"


def policy(inject, more="", source='{ env = "API_KEY" }'):
    return f"""
version = 1
[network]
resolvers = ["{DNS}"]
[[egress]]
host = "api.test"
methods = ["GET"]
[[credential]]
name = "api"
source = {source}
hosts = ["api.test"]
methods = ["GET"]
paths = ["/v1/**"]
inject = {inject}
{more}
"""


BEARER = policy('{ header = "Authorization", format = "Bearer {secret}" }', 'env = { API_KEY = "secret" }')
GET = f'curl {CODE} -H "Authorization: Bearer $API_KEY" https://api.test/v1/me'


@pytest.fixture(scope="module")
def net(world):
    world.api = world.https("api.test", answers={"/v1/no": {"status": 401}}, websocket=True, frames=f"your key is {TOKEN}, kept")
    world.box = world.cerco(environment={"API_KEY": TOKEN})
    return world


def requests(net):
    return [entry for entry in net.api.entries() if entry["event"] == "request"]


def credential(net, *args, text=None):
    if text is not None:
        path = net.folder / "tools.toml"
        path.write_text(text)
        args = (*args, "--policy", str(path))
    process = net.box.start("credential", *args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    out, err = process.communicate(timeout=GUARD)
    return process.returncode, out.decode(), err.decode()


# --- cerco credential -------------------------------------------------------------------------------

def test_a_test_says_that_the_secret_went_out(net):
    """F41: a request through the real path, not a look at the configuration."""
    net.api.clear()
    status, out, err = credential(net, "test", "api", "--json", text=BEARER)
    assert status == 0, (out, err)
    told = json.loads(out)
    assert told["ok"] and told["uses"] == 1 and told["status"] == "200", (out, err)
    assert [(r["path"], r["headers"]["authorization"]) for r in requests(net)] == [("/v1/", f"Bearer {TOKEN}")]
    assert TOKEN not in out + err


@pytest.mark.parametrize("flags, said", [
    (["--url", "https://api.test/v2/"], "the secret was not sent"),
    (["--url", "https://api.test/v1/no"], "the secret was sent, and not taken; status 401"),
])
def test_a_test_says_what_is_wrong(net, flags, said):
    status, out, err = credential(net, "test", "api", *flags, text=BEARER)
    assert status == 1 and said in out, (out, err)


def test_a_test_of_what_is_not_there(net):
    status, out, err = credential(net, "test", "apj", text=BEARER)
    assert status == 2 and "(did you mean api)" in err, (out, err)


def test_live_runs_and_what_became_of_them(net):
    path = net.folder / "live.toml"
    path.write_text(BEARER)
    process = net.box.start("run", "--policy", str(path), "--", "sh", "-c", GET + "; echo up; read line",
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline() == b"200\n" and process.stdout.readline() == b"up\n"
    status, out, err = credential(net, "ls", "--json")
    [row] = json.loads(out)
    assert (row["credential"], row["state"], row["uses"]) == ("api", "live", 1), (out, err)
    process.communicate(b"go\n", timeout=GUARD)
    assert json.loads(credential(net, "ls", "--json")[1]) == []
    status, out, err = credential(net, "show", row["run"])
    assert status == 0 and "revoked: run ended" in out and "api: hosts api.test; methods GET; paths /v1/**" in out, (out, err)
    assert credential(net, "show", "zzzz")[0] == 3


def test_a_revocation_ends_a_stream_and_every_later_request(net):
    """N170, by hand: the stream is cut off, the placeholder is worth nothing any more, the other credential goes on."""
    net.api.clear()
    second = """
[[credential]]
name = "other"
source = { env = "API_KEY" }
hosts = ["api.test"]
methods = ["GET"]
paths = ["/v1/**"]
inject = { header = "X-Other", format = "{secret}" }
env = { OTHER_KEY = "secret" }
"""
    path = net.folder / "revoke.toml"
    path.write_text(BEARER.replace('["/v1/**"]', '["/v1/**", "/stream"]', 1) + second)
    script = ('curl -sSN -m 50 -H "Authorization: Bearer $API_KEY" https://api.test/stream; echo "end $?"; ' + GET +
              f'; curl {CODE} -H "X-Other: $OTHER_KEY" https://api.test/v1/me')
    process = net.box.start("run", "--policy", str(path), "--", "sh", "-c", script, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            stdin=subprocess.DEVNULL)
    assert process.stdout.readline() == b"tick\n"  # the stream is there
    [first, _] = json.loads(credential(net, "ls", "--json")[1])
    assert credential(net, "revoke", first["run"], "none")[0] != 0
    assert credential(net, "revoke", "zzzz", "api")[0] == 3
    status, out, err = credential(net, "revoke", first["run"], "api")
    assert status == 0, (out, err)
    out, err = process.communicate(timeout=GUARD)
    code, *rest = out.decode().split("end ")[1].split()
    assert int(code) not in (0, 28) and rest == ["403", "200"], (out, err)
    rows = {row["credential"]: row for row in json.loads(credential(net, "show", first["run"], "--json")[1])}
    assert rows["api"]["state"] == "revoked: operator" and rows["other"]["state"] == "revoked: run ended", rows


# --- Client certificates ----------------------------------------------------------------------------

@pytest.fixture(scope="module")
def mutual(net, tmp_path_factory):
    folder = tmp_path_factory.mktemp("clients")
    clients = Authority(folder, "clients root")
    net.mutual = net.https("mutual.test", address=PUBLIC[1], client_authority=str(clients.bundle))
    net.certificate = clients.leaf("task-client")
    net.stranger = Authority(folder, "another root").leaf("stranger")
    for path in (net.certificate, net.stranger):
        os.chmod(path, 0o600)
    return net


def mutual_policy(path):
    return policy("{ mtls = true }", "require = false", source=f'{{ file = "{path}" }}').replace("api.test", "mutual.test")


def test_the_gateway_shows_a_certificate_that_is_not_inside(mutual):
    mutual.mutual.clear()
    result = mutual.box.run("--", "sh", "-c", f"curl {CODE} https://mutual.test/v1/me", policy=mutual_policy(mutual.certificate))
    assert result.text.split() == ["200"], result
    assert [e["client"] for e in mutual.mutual.entries() if e["event"] == "connection"] == ["task-client"]
    assert len(result.of_type("credential.used")) == 1, result.events


@pytest.mark.parametrize("what", ["another path", "a stranger's"])
def test_without_the_right_certificate_the_server_says_no(mutual, what):
    mutual.mutual.clear()
    path, certificate = ("/v2/me", mutual.certificate) if what == "another path" else ("/v1/me", mutual.stranger)
    result = mutual.box.run("--", "sh", "-c", f"curl {CODE} https://mutual.test{path}", policy=mutual_policy(certificate))
    assert result.text.strip() == "502", result
    assert [e for e in mutual.mutual.entries() if e["event"] == "request"] == []


def test_a_certificate_waits_for_no_placeholder(mutual):
    text = mutual_policy(mutual.certificate).replace("require = false", "")
    result = mutual.box.run("--", "sh", "-c", "echo started", policy=text)
    assert result.status == 125 and "require = false" in result.error and "started" not in result.text, result


# --- WebSockets -------------------------------------------------------------------------------------

SOCKET = r"""
import os, socket, ssl
s = ssl.create_default_context().wrap_socket(socket.create_connection(('api.test', 443)), server_hostname='api.test')
lines = ['GET /v1/ws HTTP/1.1', 'Host: api.test', 'Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13',
         'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==', 'Authorization: Bearer ' + os.environ['API_KEY'], '', '']
s.sendall('\r\n'.join(lines).encode())
data = b''
while b'kept' not in data:
    some = s.recv(65536)
    if not some: break
    data += some
print(data.split(b'\r\n')[0].decode(), (b'your key is ' + os.environ['API_KEY'].encode() + b', kept') in data)
"""


def test_a_websocket_opens_with_the_secret_and_does_not_say_it(net):
    net.api.clear()
    flags = ("--env", f"PROGRAM={SOCKET}", "--", "sh", "-c", 'python3 -c "$PROGRAM"')
    result = net.box.run(*flags, policy=BEARER)
    assert result.text.strip() == "HTTP/1.1 101 Switching Protocols True", result
    assert [r["headers"]["authorization"] for r in requests(net)] == [f"Bearer {TOKEN}"]
    free = net.box.run(*flags, policy=BEARER, without=["redaction"])
    assert free.text.strip() == "HTTP/1.1 101 Switching Protocols False", free


# --- Stored policies, sources -----------------------------------------------------------------------

def test_a_stored_policy_goes_on_to_inject(net):
    """F48: a policy of version 1, as it was written."""
    net.api.clear()
    script = (f'curl {CODE} -H "Authorization: Bearer $OPENAI_API_KEY" https://api.test/v1/me; '
              f'curl {CODE} -u "git:$GH_TOKEN" -d a=b https://api.test/v1/git/x; echo $OPENAI_API_KEY $GH_TOKEN')
    result = net.box.run("--set", f"network.resolvers=['{DNS}']", "--", "sh", "-c", script, policy=STORED.read_text())
    *codes, openai, github = result.text.split()
    assert codes == ["200", "200"], result
    assert openai.startswith("sk-") and github.startswith("ghp_") and len(github) == 40
    assert [r["headers"]["authorization"].split()[0] for r in requests(net)] == ["Bearer", "Basic"]
    assert requests(net)[0]["headers"]["authorization"] == f"Bearer {TOKEN}"


def test_from_systemd(net, tmp_path):
    (tmp_path / "api-key").write_text(TOKEN + "\n")
    (tmp_path / "api-key").chmod(0o400)
    text = BEARER.replace('{ env = "API_KEY" }', '{ systemd = "api-key" }')
    net.api.clear()
    result = net.cerco(environment={"CREDENTIALS_DIRECTORY": str(tmp_path)}).run("--", "sh", "-c", GET, policy=text)
    assert result.text.strip() == "200", result
    assert [r["headers"]["authorization"] for r in requests(net)] == [f"Bearer {TOKEN}"]
    without = net.cerco().run("--", "sh", "-c", "echo started", policy=text)
    assert without.status == 125 and "CREDENTIALS_DIRECTORY" in without.error and "started" not in without.text, without
