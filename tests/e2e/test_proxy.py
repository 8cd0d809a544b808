"""The explicit proxy inside every sandbox with a network, as curl uses it: the same rules, whatever the way in."""
# lane: full
# sanitized
import json

import pytest

from world import DNS, FORBIDDEN, PUBLIC

PROXY = "198.18.0.1:3128"
POLICY = f"""
version = 1
[network]
resolvers = ["{DNS}"]
[[egress]]
host = "api.test"
methods = ["GET"]
[[egress]]
host = "tunnel.test"
[[egress]]
host = "plain.test"
ports = [80]
methods = ["GET"]
[[egress]]
host = "second.test"
ports = [80]
[[egress]]
host = "inner.test"
ports = [80, 443]
[[egress]]
name = "raw"
tcp = "raw.test:7000"
"""
# The ways in, as curl is told them; the last two resolve names inside, so that the proxy gets addresses.
WAYS = {"tcp": "", "http": f"-x http://{PROXY}", "connect": f"-p -x http://{PROXY}", "socks": f"-x socks5h://{PROXY}",
        "socks with a login": f"-x socks5h://other:token@{PROXY}", "socks by address": f"-x socks5://{PROXY}"}


@pytest.fixture(scope="module")
def net(world):
    world.web = world.https(["api.test", "tunnel.test", "evil.test"])
    world.plain = world.http("plain.test", address=PUBLIC[1],
                             answers={"/to-metadata": {"status": 302, "headers": {"Location": "http://169.254.169.254/"}}})
    world.second = world.http("second.test", address=PUBLIC[2])
    world.raw = world.tcp(PUBLIC[3], 7000, after_end=1 << 20)
    world.zone.update({"raw.test": [PUBLIC[3]], "inner.test": ["10.9.9.9"]})
    world.names()
    world.traps = [world.http(f"trap{i}.test", address=address) for i, address in enumerate(FORBIDDEN)]
    world.box = world.cerco()
    return world


def run(net, script, policy=POLICY, **kwargs):
    return net.box.run("--", "sh", "-c", script, policy=policy, **kwargs)


CURL = "curl -sS -g -m 20 -o /dev/null -w '%{http_code} %{http_connect}\\n'"


@pytest.mark.parametrize("way", WAYS)
def test_every_way_in_leads_to_the_same_verdicts(net, way):
    """F5, F20: where curl sees a status of the proxy's own in place of the server's, it is 403 as well."""
    for seen in (*net.traps, net.web, net.plain, net.dns):
        seen.clear()
    rows = [("http://plain.test/a", "200"), ("http://plain.test/b -X POST", "403"), ("https://api.test/a", "200"),
            ("https://api.test/b -d x", "403"), ("-k https://tunnel.test/a", "200"), ("http://evil.test/", "403"),
            ("https://evil.test/", "403"), ("http://inner.test/", "403"), ("http://169.254.169.254/", "403"),
            ("http://[::1]:8080/", "403"), (f"http://{PROXY}/", "403")]
    result = run(net, "; ".join(f"{CURL} {WAYS[way]} {args}" for args, _ in rows))
    codes = [line.split() for line in result.text.splitlines()]
    told = [connect if code == "000" and connect != "000" else code for code, connect in codes]
    refused_before_http = "000"  # a connection that is refused, or a SOCKS reply
    assert len(told) == len(rows), result
    for (args, expected), code in zip(rows, told):
        allowed = (expected, refused_before_http) if expected != "200" else ("200",)
        assert code in allowed or (way == "tcp" and PROXY in args and code == "400"), (args, code, result)
    assert [e["path"] for e in net.web.entries() if e["event"] == "request"] == ["/a", "/a"]
    assert [e["path"] for e in net.plain.entries() if e["event"] == "request"] == ["/a"]
    assert all(trap.entries() == [] for trap in net.traps)
    assert {e["name"] for e in net.dns.entries()} <= {"plain.test", "api.test", "tunnel.test", "inner.test"}
    ways = {d.get("way") for d in result.of_type("egress.decision")}
    if way == "http":
        assert ways == {"http", "connect"}, ways
    elif way != "tcp":
        assert ways == {way.split()[0]}, ways


def test_a_refusal_says_why_and_what_would_do(net):
    """F19: of a request and of a CONNECT."""
    result = run(net, f"curl -sS -x http://{PROXY} http://evil.test/x; curl -sS -i -x http://{PROXY} http://plain.test/ -X PUT | grep -i x-cerco;"
                      f" printf 'CONNECT evil.test:443 HTTP/1.1\\r\\nHost: evil.test:443\\r\\n\\r\\n' | nc -q 5 198.18.0.1 3128 | tail -n 1")
    lines = result.text.splitlines()
    forward, connect = json.loads(lines[0]), json.loads(lines[-1])
    assert forward["reason"] == connect["reason"] == "host" and connect["method"] == "CONNECT" and connect["port"] == 443
    assert "evil.test" in forward["fix"] and "evil.test" in connect["fix"]
    assert lines[1].strip() == "X-Cerco-Deny: method", result
    assert {(r["host"], r["kind"]) for r in result.report["refused"]} == {("evil.test", "host"), ("plain.test", "method")}, result.report


def test_fronting_redirects_and_literals(net):
    """E83, N52, N69, N150: in tunnels of the proxy as elsewhere."""
    for seen in (*net.traps, net.web):
        seen.clear()
    script = (f"curl -sSk -m 10 -x http://{PROXY} --connect-to evil.test:443:tunnel.test:443 https://evil.test/ >/dev/null; echo $?;"
              f"{CURL} -x http://{PROXY} https://api.test/ -H 'Host: evil.test';"
              f"{CURL} -L -x http://{PROXY} http://plain.test/to-metadata;"
              f"{CURL} -x http://{PROXY} -p http://{PUBLIC[1]}/")
    lines = run(net, script).text.splitlines()
    assert lines[0] != "0"
    assert [line.split()[0] for line in lines[1:3]] == ["421", "403"], lines
    assert lines[3].split() == ["000", "403"], lines
    assert all(trap.entries() == [] for trap in net.traps)
    assert not [e for e in net.web.entries() if e["event"] in ("sni", "request") and "evil" in json.dumps(e)]


@pytest.mark.parametrize("opening", [
    "s.sendall(b'CONNECT raw.test:7000 HTTP/1.1\\r\\nHost: raw.test:7000\\r\\n\\r\\n')\nwhile b'\\r\\n\\r\\n' not in got: got += s.recv(1)",
    "s.sendall(b'\\x05\\x01\\x00\\x05\\x01\\x00\\x03\\x08raw.test\\x1b\\x58')\nwhile len(got) < 12: got += s.recv(1)",
])
def test_half_close_through_a_tunnel(net, opening):
    """F33, N124."""
    script = f"python3 - <<'X'\nimport socket\ns = socket.create_connection(('198.18.0.1', 3128))\ngot = b''\n{opening}\n" \
             "s.sendall(b'hi'); s.shutdown(socket.SHUT_WR)\nn = 0\nwhile d := s.recv(65536): n += len(d)\nprint(n)\nX"
    result = run(net, script)
    assert result.text.strip() == str(2 + (1 << 20)), result


def test_a_want_of_descriptors_ends_nothing(net):
    """F28, N125, N202: 150 connections where few descriptors are allowed; the gateway answers, recovers, and refuses as before."""
    script = f"""python3 - <<'X'
import socket, sys
held = []
for _ in range(150):
    s = socket.socket(); s.settimeout(15)
    try:
        s.connect(('plain.test', 80)); s.sendall(b'G'); held.append(s)
    except OSError as e:
        held.append(None)
last = held[-1]
try:
    last.sendall(b'ET / HTTP/1.1\\r\\nHost: plain.test\\r\\n\\r\\n')
    print((last.recv(4096) or b'closed').split(b'\\r')[0].decode())
except OSError as e:
    print(type(e).__name__)
for s in held:
    if s: s.close()
X
for i in 1 2 3 4 5 6 7 8 9 10; do {CURL} --retry 5 --retry-all-errors http://plain.test/after | grep -q 200 && break; done
{CURL} http://plain.test/after; {CURL} -X POST http://plain.test/after"""
    few = net.cerco(net.folder)
    few.prefix = [*few.prefix, "prlimit", "--nofile=300:300"]
    result = few.run("--", "sh", "-c", script, policy=POLICY)
    assert len(result.text.splitlines()) == 3, (result, result.events[-3:])
    told, allowed, refused = result.text.splitlines()
    assert told.startswith("HTTP/1.1 503") or told in ("ConnectionResetError", "BrokenPipeError"), result
    assert allowed.split()[0] == "200" and refused.split()[0] == "403", result
    assert any(d["reason"] == "too-many-connections" for d in result.of_type("egress.decision") if d["verdict"] == "deny")


def test_there_is_no_proxy_where_there_is_no_network(net):
    result = net.box.run("--", "sh", "-c", f"curl -sS -m 10 -x http://{PROXY} http://plain.test/; echo $?")
    assert result.text.strip() == "7", result


def test_the_proxy_is_in_no_variable(net):
    result = run(net, "env")
    assert "proxy" not in result.text.lower() and "3128" not in result.text


def test_audit_lets_go_and_tells(net):
    """mode = "audit": what enforce would refuse goes out and is on record as that; the guard and denials hold."""
    for seen in (*net.traps, net.second):
        seen.clear()
    policy = POLICY.replace("[network]\n", '[network]\nmode = "audit"\n') + '[[deny]]\nhost = "evil.test"\n'
    net.names(records={"unnamed.test": [PUBLIC[2]]})
    script = (f"{CURL} -X DELETE http://plain.test/a; {CURL} http://unnamed.test/b; {CURL} -x socks5h://{PROXY} http://unnamed.test/c;"
              f"{CURL} http://{PUBLIC[2]}/d; {CURL} -x http://{PROXY} http://inner.test/; {CURL} -x http://{PROXY} http://evil.test/;"
              f"{CURL} http://169.254.169.254/")
    result = run(net, script, policy=policy)
    assert [line.split()[0] for line in result.text.splitlines()] == ["200"] * 4 + ["403", "403", "000"], result
    told = [(d["verdict"], d["kind"], d["host"]) for d in result.of_type("egress.decision") if d["verdict"] == "audit"]
    assert told == [("audit", "method", "plain.test"), ("audit", "host", "unnamed.test"), ("audit", "host", "unnamed.test"),
                    ("audit", "host", PUBLIC[2])], result.events
    assert [e["path"] for e in net.second.entries() if e["event"] == "request"] == ["/b", "/c", "/d"]
    assert all(trap.entries() == [] for trap in net.traps)
    assert {r["host"] for r in result.report["refused"]} >= {"inner.test", "evil.test"}
    assert not {"unnamed.test", "plain.test"} & {r["host"] for r in result.report["refused"]}
