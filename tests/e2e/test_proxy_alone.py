"""`cerco proxy`: the gateway alone, for code that something else isolates (F57)."""
# lane: full
# sanitized
import base64
import json
import os
import pathlib
import signal
import socket
import subprocess

import pytest

from cerco import GUARD, Traces, children_of, status_of, wait_until
from world import DNS, PUBLIC

KEY = "sk-alone-4d2b6a8c0e1f3759"
POLICY = f"""
version = 1
task = "alone"
[network]
resolvers = ["{DNS}"]
[[egress]]
host = "tunnel.test"
[[egress]]
host = "plain.test"
ports = [80]
[[egress]]
host = "api.test"
methods = ["GET"]
[[egress]]
host = "host.cerco.internal"
ports = [9]
methods = ["GET"]
[[credential]]
name = "api"
source = {{ env = "API_KEY" }}
hosts = ["api.test"]
methods = ["GET"]
paths = ["/v1/**"]
inject = {{ header = "Authorization", format = "Bearer {{secret}}" }}
env = {{ API_KEY = "secret" }}
"""


@pytest.fixture(scope="module")
def net(world):
    world.https("tunnel.test")
    world.http("plain.test", address=PUBLIC[2])
    world.api = world.https("api.test", address=PUBLIC[1])
    world.names(records={"inner.test": ["10.9.9.9"]})
    world.box = world.cerco(environment={"API_KEY": KEY})
    return world


class Alone:
    """A proxy that serves in the namespace of the small internet's host."""

    def __init__(self, net, text=POLICY, flags=(), name="alone", without=()):
        self.net, self.box = net, net.box
        self.folder = net.folder / f"{name}-{os.urandom(4).hex()}"
        self.folder.mkdir()
        self.policy, self.ca, self.env, self.report = (self.folder / f for f in ("p.toml", "ca.pem", "env", "report.json"))
        self.policy.write_text(text)
        self.process = net.box.start("proxy", "--json", "--policy", self.policy, "--listen", "127.0.0.1:0", "--ca-out", self.ca,
                                     "--env-out", self.env, "--report", self.report, *flags, without=without,
                                     stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.ready = json.loads(self.process.stdout.readline() or "null")

    def variables(self):
        return dict(line.split("=", 1) for line in self.env.read_text().splitlines())

    def curl(self, *args, proxy=None):
        """Status and body; `proxy` in the place of the one with the token."""
        done = self.net.inside(self.net.host, "curl", "-sS", "-m", "20", "-w", "\\n%{http_code}", "--proxy", proxy or self.ready["proxy"],
                               "--cacert", str(self.ca if self.ca.exists() else self.net.authority.bundle), *args)
        body, _, code = done.stdout.decode().rpartition("\n")
        return code, body, done.stderr.decode()

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=GUARD)
        return self.process.returncode, err.decode()

    def events(self, *types):
        lines = (self.box.state / "journal" / f"{self.ready['run']}.jsonl").read_text().splitlines()
        return [event for event in map(json.loads, lines) if event["type"] in types]


@pytest.fixture
def alone(net):
    made = []

    def start(*args, **kwargs):
        made.append(Alone(net, *args, **kwargs))
        return made[-1]
    yield start
    for one in made:
        if one.process.poll() is None:
            one.process.kill()
            one.process.communicate(timeout=GUARD)


def test_f57_one_policy_by_every_way_in_with_journal_and_report(net, alone):
    traces = Traces(net.box.state)
    one = alone()
    assert one.ready["listen"][0].startswith("127.0.0.1:") and len(one.ready["token"]) == 52, one.ready
    key = one.variables()["API_KEY"]
    assert key != KEY and (one.env.stat().st_mode & 0o777) == 0o600
    assert one.variables()["HTTPS_PROXY"] == one.ready["proxy"]
    net.api.clear()
    assert one.curl("http://plain.test/")[0] == "200"
    assert one.curl("-H", f"Authorization: Bearer {key}", "https://api.test/v1/me")[0] == "200"
    assert [e["headers"]["authorization"] for e in net.api.entries() if e["event"] == "request"] == [f"Bearer {KEY}"]
    assert one.curl("-X", "POST", "https://api.test/v1/me")[0] == "403"
    assert "403" in one.curl("https://other.test/")[2] and "403" in one.curl("https://10.9.9.9/")[2]
    assert one.curl("http://other.test/")[0] == "403"
    bundle = ["--cacert", str(net.authority.bundle)]
    assert one.curl(*bundle, "https://tunnel.test/")[0] == "200"
    socks = one.ready["proxy"].replace("http://", "socks5h://")
    assert one.curl(*bundle, "https://tunnel.test/", proxy=socks)[0] == "200"
    assert one.curl("http://other.test/", proxy=socks)[0] == "000"
    status, err = one.end()
    assert status == 0 and "other.test" in err, err
    report = json.loads(one.report.read_text())
    assert (report["run"], report["task"], report["tier"], report["status"]) == (one.ready["run"], "alone", "none", 0), report
    assert report["ending"]["by"] == "operator" and {r["host"] for r in report["refused"]} >= {"other.test", "10.9.9.9"}, report
    decisions = [(d["host"], d["way"], d["verdict"]) for d in one.events("egress.decision")]
    assert {("plain.test", "http", "allow"), ("api.test", "connect", "allow"), ("tunnel.test", "socks", "allow"),
            ("other.test", "socks", "deny"), ("other.test", "connect", "deny"), ("other.test", "http", "deny")} <= set(decisions), decisions
    assert [e["type"] for e in one.events("run.planned", "run.started", "run.ended")] == ["run.planned", "run.started", "run.ended"]
    assert net.box("log", "verify", "--run", one.ready["run"]).status == 0
    assert json.loads(net.box("report", "--json", one.ready["run"]).text)["run"] == one.ready["run"]
    everything = "".join(path.read_text() for path in (net.box.state / "journal").glob("*.jsonl")) + err + one.report.read_text()
    assert KEY not in everything and one.ready["token"] not in everything
    assert traces.since() == []


def knock(net, port, bytes_):
    """What the proxy answers to raw bytes, read to its end."""
    script = ("import socket, sys; s = socket.create_connection(('127.0.0.1', int(sys.argv[1])), 20); s.sendall(bytes.fromhex(sys.argv[2])); "
              "s.shutdown(socket.SHUT_WR); sys.stdout.buffer.write(b''.join(iter(lambda: s.recv(4096), b'')))")
    return net.inside(net.host, "python3", "-c", script, str(port), bytes_.hex()).stdout


def basic(text):
    return base64.b64encode(text.encode()).decode()


def test_nobody_is_served_without_the_tasks_token(net, alone):
    first, second = alone(), alone(name="other")
    place = first.ready["listen"][0]
    for proxy in (f"http://{place}", f"http://task:wrong@{place}", second.ready["proxy"].rpartition("@")[0] + "@" + place,
                  f"socks5h://{place}", f"socks5h://task:wrong@{place}"):
        code, body, err = first.curl("http://plain.test/", proxy=proxy)
        assert code == ("407" if proxy.startswith("http:") else "000"), (proxy, code, body, err)
    port = int(place.rpartition(":")[2])
    answer = knock(net, port, b"CONNECT tunnel.test:443 HTTP/1.1\r\nHost: tunnel.test\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 407 ") and b'\r\nProxy-Authenticate: Basic realm="cerco"\r\n' in answer, answer
    token = first.ready["token"]
    head = "GET http://plain.test/ HTTP/1.1\r\nHost: plain.test\r\nConnection: close\r\nProxy-Authorization: {}\r\n\r\n"
    for value, served in ((f"Bearer {token}", True), (f"basic {basic('any:' + token)}", True), (f"Basic {basic(token)}", False),
                          (f"Basic {token}", False), (f"Digest {token}", False), (f"Bearer {token}x", False), ("", False)):
        answer = knock(net, port, head.format(value).encode())
        assert answer.startswith(b"HTTP/1.1 200 " if served else b"HTTP/1.1 407 "), (value, answer)
    assert knock(net, port, b"\x05\x01\x00") == b"\x05\xff"  # without a password
    assert knock(net, port, b"\x05\x01\x02\x01\x01a\x05wrong") == b"\x05\x02\x01\x01"
    assert first.curl("http://plain.test/")[0] == "200"
    refused = [d for d in first.events("egress.decision") if d["verdict"] == "reject"]
    assert {d["reason"] for d in refused} == {"proxy-token", "socks-method"}, refused


def test_the_callers_own_token_and_what_it_may_be(net, alone):
    file = net.folder / "token"
    file.write_text("a-token-of-the-orchestrators-own\n")
    os.chmod(file, 0o600)
    one = alone(flags=("--token-file", file))
    assert one.ready["token"] == "a-token-of-the-orchestrators-own" and one.curl("http://plain.test/")[0] == "200"
    for text, mode, what in (("short", 0o600, "no token"), ("a token with spaces in it.", 0o600, "no token"),
                             ("a-token-of-the-orchestrators-own", 0o644, "others may use it")):
        file.write_text(text)
        os.chmod(file, mode)
        bad = net.box("proxy", "--listen", "127.0.0.1:0", "--token-file", file)
        assert bad.status == 2 and what in bad.error, bad


def test_it_starts_only_as_it_was_asked_to(net):
    policy = net.folder / "alone.toml"
    policy.write_text(POLICY)
    for flags, what in ((("--policy", policy), "--ca-out"), (("--listen", "localhost:1"), "no address"), (("--listen", "127.0.0.1"), "no address"),
                        (("--listen", "203.0.113.9:1"), "EADDRNOTAVAIL"), (("--set", "network.mode=off"), "network.mode")):
        bad = net.box("proxy", *flags)
        assert bad.status == 2 and what in bad.error, bad
    there = net.folder / "there"
    there.write_text("mine")
    kept = net.box("proxy", "--listen", "127.0.0.1:0", "--env-out", there)
    assert kept.status == 2 and there.read_text() == "mine", kept


def test_what_it_does_not_carry_out_is_said_and_kept(net, alone):
    text = POLICY.replace("[network]", '[isolation]\ntier = "microvm"\n[limits]\nmemory = "1GiB"\n[network]', 1)
    one = alone(text)
    status, err = one.end()
    assert status == 0 and f"isolation.tier ({one.policy}:" in err and "limits.memory" in err and "limits.disk" not in err, err
    assert one.events("run.planned")[0]["unheld"] == ["isolation.tier", "limits.memory"]
    assert json.loads(one.report.read_text())["unheld"] == ["isolation.tier", "limits.memory"]
    strict = net.box("proxy", "--strict", "--policy", one.policy, "--ca-out", net.folder / "ca", "--listen", "127.0.0.1:0")
    assert strict.status == 2 and "isolation.tier" in strict.error, strict
    demands = net.box("proxy", "--listen", "127.0.0.1:0", "--set", "audit.exec=required")
    assert demands.status == 2 and "audit.exec" in demands.error, demands


def test_it_keeps_no_rights(net, alone):
    """All of its processes: no capability but root's to end its own parts, no new privileges, filters where bytes are read."""
    one = alone()
    top = one.process.pid
    def of(pid):
        return dict(line.split(":\t", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)
    kill = 1 << 5
    assert int(of(top)["CapEff"], 16) == kill and int(of(top)["CapBnd"], 16) == 0 and of(top)["NoNewPrivs"] == "1", of(top)
    parts = {status_of(pid)[0]: of(pid) for pid in children_of(top)}
    assert {name[:14] for name in parts} == {"cerco-gateway"[:14], "cerco-broker"[:14], "cerco-journal"[:14]}, parts
    for name, part in parts.items():
        assert (int(part["CapEff"], 16), part["Seccomp"], part["NoNewPrivs"]) == (0, "2", "1"), (name, part)
        assert part["Uid"].split()[0] != "0"


@pytest.mark.parametrize("part", ["cerco-gateway", "cerco-journal"])
def test_when_a_part_is_gone_nobody_is_served(net, alone, part):
    one = alone()
    assert one.curl("http://plain.test/")[0] == "200"
    [pid] = [pid for pid in children_of(one.process.pid) if status_of(pid)[0].startswith(part)]
    os.kill(pid, signal.SIGKILL)
    out, err = one.process.communicate(timeout=GUARD)
    assert one.process.returncode == 125, err
    assert one.curl("http://plain.test/")[0] == "000"


def test_the_guard_holds_and_its_control_shows_that_it_does(net, alone):
    text = POLICY + '[[egress]]\nhost = "inner.test"\nports = [80]\n'
    server = net.http("unused.test", address="10.9.9.9")
    one = alone(text)
    assert one.curl("http://inner.test/")[0] == "403"
    assert [e for e in server.entries() if e["event"] == "connection"] == []
    weak = alone(text, without=("address_guard",))
    assert weak.curl("http://inner.test/")[0] == "200"
    server.stop()
    net.servers.remove(server)
