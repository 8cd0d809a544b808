"""HTTP/2 and gRPC through termination, with clients that nobody set up for it."""
# lane: full
import json
import shutil
import types

import pytest

from h2_servers import LARGE
from world import DNS, PUBLIC

TOKEN = "tok-8d1f0b7c2a5e4f6690ab"
POLICY = f"""
version = 1
[network]
resolvers = ["{DNS}"]
[[egress]]
host = "two.test"
methods = ["GET", "POST"]
paths = ["/v1/**", "/large"]
[[egress]]
host = "one.test"
methods = ["GET", "POST"]
[[egress]]
host = "grpc.test"
methods = ["POST"]
paths = ["/demo.Echo/Unary", "/demo.Echo/Fail", "/demo.Echo/Download", "/demo.Echo/Upload", "/demo.Echo/Talk"]
[[credential]]
name = "call"
source = {{ env = "CALL_TOKEN" }}
hosts = ["grpc.test"]
methods = ["POST"]
paths = ["/demo.Echo/Unary"]
inject = {{ header = "Authorization", format = "Bearer {{secret}}" }}
env = {{ CALL_TOKEN = "secret" }}
require = true
"""
NEEDED = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is missing")

# Each call is one test of its own in the script, so that one run shows all of them.
CALLS = """
import grpc, os
channel = grpc.secure_channel("grpc.test:443", grpc.ssl_channel_credentials())
wait = dict(timeout=60)
call = channel.unary_unary("/demo.Echo/Unary").with_call(b"hello", **wait)
print("unary", call[0], dict(call[1].initial_metadata())["x-first"], dict(call[1].trailing_metadata())["x-last-bin"])
print("down", len(list(channel.unary_stream("/demo.Echo/Download")(b"500", **wait))))
print("up", channel.stream_unary("/demo.Echo/Upload")(iter([b"x" * 40000] * 50), **wait))
print("talk", b" ".join(channel.stream_stream("/demo.Echo/Talk")(iter([b"abc", b"def"]), **wait)))
try:
    channel.unary_unary("/demo.Echo/Fail")(b"", **wait)
except grpc.RpcError as error:
    print("fail", error.code().name, error.details(), dict(error.trailing_metadata())["x-why"])
try:
    channel.unary_unary("/demo.Echo/Elsewhere")(b"", **wait)
except grpc.RpcError as error:
    print("denied", error.code().name)
key = (("authorization", "Bearer " + os.environ["CALL_TOKEN"]),)
print("key", channel.unary_unary("/demo.Echo/Unary")(b"key", metadata=key, **wait))
"""


@pytest.fixture(scope="module")
def net(world):
    leaf = world.authority.leaf("two.test"), world.authority.leaf("grpc.test")
    world.names(records={"two.test": [PUBLIC[0]], "grpc.test": [PUBLIC[1]]})
    two = world.serve("h2", {"address": PUBLIC[0], "port": 443, "certificate": leaf[0]})
    grpc = world.serve("grpc", {"address": PUBLIC[1], "port": 443, "certificate": leaf[1]})
    one = world.https("one.test", address=PUBLIC[2])
    box = world.cerco(environment={"CALL_TOKEN": TOKEN})
    return types.SimpleNamespace(world=world, box=box, two=two, grpc=grpc, one=one)


def run(net, *command, input=b""):
    for server in (net.two, net.grpc, net.one):
        server.clear()
    return net.box.run("--", *command, policy=POLICY, input=input)


def decisions(result):
    return [event for event in result.events if event["type"] == "egress.decision"]


def test_curl_speaks_http2_to_a_server_that_does(net):
    result = run(net, "curl", "-sS", "--fail", "-w", " %{http_version}", "https://two.test/v1/a?q=1")
    assert result.status == 0 and result.text.endswith(" 2"), result
    [asked] = [entry for entry in net.two.entries() if entry["event"] == "request"]
    assert asked["path"] == "/v1/a?q=1" and asked["headers"][":authority"] == "two.test", asked
    [decision] = decisions(result)
    assert decision["verdict"] == "allow" and decision["tls"] == "terminated", decision
    assert decision["url"] == "https://two.test/v1/a?[redacted]", decision


def test_curl_speaks_http2_to_a_server_of_http1(net):
    result = run(net, "curl", "-sS", "--fail", "-w", " %{http_version}", "-d", "abc", "https://one.test/x")
    assert result.status == 0 and result.text.endswith(" 2"), result
    [asked] = [entry for entry in net.one.entries() if entry["event"] == "request"]
    assert (asked["method"], asked["path"]) == ("POST", "/x"), asked


def test_many_requests_share_a_connection_and_each_is_on_record(net):
    urls = [f"https://two.test/v1/{number}" for number in range(60)]
    result = run(net, "curl", "-sS", "--fail", "-Z", "--parallel-max", "30", *urls)
    assert result.status == 0, result
    assert result.text.count('"size": 0') == 60, result
    assert sorted(d["url"] for d in decisions(result)) == sorted(urls), result
    assert len({d["conn"] for d in decisions(result)}) < 60
    ended = [event for event in result.events if event["type"] == "egress.ended"]
    assert len(ended) == 60 and all(event["status"] == 200 for event in ended), ended


def test_large_bodies_and_refusals(net):
    result = run(net, "sh", "-ec",
                 "curl -sS --fail https://two.test/large | wc -c\n"
                 "head -c 3000000 /dev/zero | curl -sS --fail --data-binary @- https://two.test/v1/up\n"
                 "curl -sS -o /dev/null -w ' %{http_code} ' https://two.test/elsewhere\n")
    assert result.status == 0, result
    assert result.text.startswith(f"{LARGE}\n") and '"size": 3000000' in result.text and result.text.endswith(" 403 "), result


def test_httpx_and_node_speak_http2(net):
    script = ("import httpx\n"
              "with httpx.Client(http2=True) as client:\n"
              "    for number in range(3):\n"
              "        answer = client.post(f'https://two.test/v1/{number}', content=b'abc')\n"
              "        print(answer.http_version, answer.json()['size'])\n"
              "    print(client.get('https://two.test/no').status_code)\n")
    result = run(net, "/usr/bin/python3", "-c", script)
    assert result.text.splitlines() == ["HTTP/2 3"] * 3 + ["403"], result
    node = ("const c = require('http2').connect('https://two.test');"
            "const r = c.request({':path': '/v1/n', ':method': 'POST'}); let all = '';"
            "r.on('response', h => console.log(h[':status'])); r.on('data', d => all += d);"
            "r.on('end', () => { console.log(JSON.parse(all).size); c.close(); }); r.end('hello');")
    result = run(net, "node", "-e", node)
    assert result.text.split() == ["200", "5"], result


def test_grpc_calls_of_all_kinds(net):
    result = run(net, "/usr/bin/python3", "-c", CALLS)
    assert result.text.splitlines() == [
        "unary b'<hello>' 1 b'\\x00\\xff'", "down 500", "up b'2000000'", "talk b'cba fed'",
        "fail FAILED_PRECONDITION not today because", "denied PERMISSION_DENIED", "key b'<key>'"], result
    calls = [entry for entry in net.grpc.entries() if entry["event"] == "call"]
    assert [call["name"] for call in calls] == ["Unary", "Download", "Upload", "Talk", "Fail", "Unary"]
    assert calls[-1]["metadata"]["authorization"] == f"Bearer {TOKEN}"
    assert all("authorization" not in call["metadata"] for call in calls[:-1])
    assert TOKEN not in result.text + json.dumps(result.events)
    assert [d["verdict"] for d in decisions(result)] == ["allow"] * 5 + ["deny", "allow"], decisions(result)


def test_another_authority_on_the_connection_is_misdirected(net):
    """N67: the certificate is for one name, and so is the connection."""
    script = ("const c = require('http2').connect('https://two.test');"
              "const r = c.request({':path': '/v1/n', ':authority': 'grpc.test'});"
              "r.on('response', h => { console.log(h[':status']); c.close(); }); r.end();")
    result = run(net, "node", "-e", script)
    assert result.text.split() == ["421"], result
    assert not net.two.entries() and not net.grpc.entries()


# Frames written by hand, until the gateway has had enough; prints the code of its GOAWAY.
FLOOD = """
import socket, ssl, struct, sys
def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload
def literal(name, value):
    return b"\\0" + bytes([len(name)]) + name + bytes([len(value)]) + value
head = (literal(b":method", b"GET") + literal(b":scheme", b"https") + literal(b":authority", b"two.test") +
        literal(b":path", b"/no"))
kinds = {
    "resets": lambda i: frame(1, 5, 1 + 2 * i, head) + frame(3, 0, 1 + 2 * i, b"\\0\\0\\0\\x08"),
    "pings": lambda i: frame(6, 0, 0, b"12345678"),
    "settings": lambda i: frame(4, 0, 0),
    "continuations": lambda i: frame(9, 0, 1, literal(b"x", b"y" * 100)) if i else frame(1, 0, 1, head),
}
context = ssl.create_default_context()
context.set_alpn_protocols(["h2"])
stream = context.wrap_socket(socket.create_connection(("two.test", 443)), server_hostname="two.test")
try:
    stream.sendall(b"PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n" + frame(4, 0, 0))
    one = kinds[sys.argv[1]]
    for turn in range(0, 20000, 500):
        stream.sendall(b"".join(one(i) for i in range(turn, turn + 500)))
except OSError:
    pass
got = b""
try:
    while some := stream.recv(65536):
        got += some
except OSError:
    pass
while len(got) >= 9:
    size = int.from_bytes(got[:3], "big")
    if got[3] == 7:
        print("goaway", got[9 + 7])
    got = got[9 + size:]
"""


@pytest.mark.parametrize("attack, reason", [("resets", "h2-resets"), ("pings", "h2-control"), ("settings", "h2-control"),
                                            ("continuations", "h2-")])
def test_floods_are_sent_away(net, attack, reason):
    """N115: GOAWAY with ENHANCE_YOUR_CALM, on record, and the next connection is served."""
    result = run(net, "sh", "-ec", '/usr/bin/python3 -c "$1" "$2"; curl -sS --fail -o /dev/null -w "%{http_code}" https://two.test/v1/a',
                 "sh", FLOOD, attack)
    assert result.text.split()[-1] == "200", result
    assert [d for d in decisions(result) if d["verdict"] == "reject" and d["reason"].startswith(reason)], decisions(result)
    # A reset of the connection may overtake the GOAWAY, since frames are still on their way to it.
    assert result.text.split()[:-1] in ([], ["goaway", "11"]), result
    assert [entry["path"] for entry in net.two.entries() if entry["event"] == "request"] == ["/v1/a"]
