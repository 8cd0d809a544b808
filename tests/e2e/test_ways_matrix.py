"""What decides about plain HTTP, byte for byte, by all four ways in: captured, forward proxy, CONNECT and SOCKS5."""
# lane: full
import json

import pytest

from world import PUBLIC

POLICY = """
[[egress]]
host = "plain.test"
ports = [80]
methods = ["GET", "POST"]
paths = ["/v1/**"]
"""
# Sends each text that stdin holds by each way and writes the statuses that came back. `{t}` is what stands before the path.
PROGRAM = r"""
import json, re, socket, struct, sys
PROXY = ("198.18.0.1", 3128)
def through(way):
    if way == "tcp": return socket.create_connection(("plain.test", 80), 20)
    one = socket.create_connection(PROXY, 20)
    if way == "connect":
        one.sendall(b"CONNECT plain.test:80 HTTP/1.1\r\nHost: plain.test:80\r\n\r\n")
        head = b""
        while not head.endswith(b"\r\n\r\n"): head += one.recv(1)
        assert b" 200 " in head.split(b"\r\n")[0], head
    if way == "socks":
        one.sendall(b"\x05\x01\x00" + b"\x05\x01\x00\x03" + bytes([10]) + b"plain.test" + struct.pack(">H", 80))
        got = b""
        while len(got) < 12: got += one.recv(12 - len(got))
        assert got[3] == 0, got
    return one
for name, text in json.load(sys.stdin):
    for way in ("tcp", "http", "connect", "socks"):
        one = through(way)
        one.sendall(text.replace("{t}", "http://plain.test" if way == "http" else "").encode("latin1"))
        one.shutdown(socket.SHUT_WR)
        answer = b""
        try:
            while part := one.recv(65536): answer += part
        except OSError: pass
        print(json.dumps([name, way, [int(code) for code in re.findall(rb"HTTP/1\.1 (\d{3}) ", answer)]]))
"""
END = "Host: plain.test\r\nConnection: close\r\n\r\n"


def get(path="{t}/v1/a", more="", end=END, method="GET"):
    return f"{method} {path} HTTP/1.1\r\n{more}{end}"


def post(more, body=""):
    return f"POST {{t}}/v1/a HTTP/1.1\r\n{more}{END}{body}"


REFUSED = {*range(400, 500), 501, 505}
# Case, text, the statuses that are right; 4: any refusal, once.
ROWS = [
    ("allowed", get(), [200]),
    ("another path", get("{t}/private"), [403]),
    ("another method", get(method="DELETE"), [403]),
    ("N39 a port in a port", get("http://plain.test:80.evil.test/v1/a"), 4),
    ("N69 Host of another", get(end="Host: evil.test\r\nConnection: close\r\n\r\n"), 4),
    ("N70 https in the clear", get("https://plain.test/v1/a"), 4),
    ("N71 user info", get("http://plain.test@evil.test/v1/a"), 4),
    ("N71 a fragment", get("{t}/v1/a#@evil.test"), 4),
    ("N76 CONNECT within", "CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n", 4),
    ("N77 another scheme", get("ftp://plain.test/v1/a"), 4),
    ("N97 two lengths", post("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), 4),
    *[(f"N99 {value!r}", post(f"Transfer-Encoding: {value}\r\n", "0\r\n\r\n"), 4)
      for value in ("chunked, identity", "gzip, chunked", "xchunked", "chunked, chunked", "\x0bchunked")],
    ("N99 a space before the colon", post("Transfer-Encoding : chunked\r\n", "0\r\n\r\n"), 4),
    ("N100 chunks in 1.0", "POST {t}/v1/a HTTP/1.0\r\nTransfer-Encoding: chunked\r\n" + END + "0\r\n\r\n", 4),
    ("N101 a folded line", get(more="X-A: b\r\n c\r\n"), 4),
    ("N101 no name", get(more=": b\r\n"), 4),
    ("N102 a bare LF", "GET {t}/v1/a HTTP/1.1\nHost: plain.test\n\n", 4),
    ("N102 a bare CR", get(more="X-A: b\rc\r\n"), 4),
    ("N102 a NUL", get(more="X-A: b\0c\r\n"), 4),
    ("N102 no token", get(method="G(T"), 4),
    ("N105 another expectation", post("Expect: more\r\nContent-Length: 0\r\n"), [417]),
    ("N106 a second request", f"GET {{t}}/v1/a HTTP/1.1\r\nHost: plain.test\r\n\r\n{get('{t}/private')}", [200, 403]),
    ("N109 two Hosts", get(more="Host: plain.test\r\n"), 4),
    ("N109 no Host", get(end="Connection: close\r\n\r\n"), 4),
    ("N116 HTTP/2 unasked", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 4),
    *[(f"N119 {path}", get("{t}/v1/" + path), 4) for path in ("x%00", "%zz", "\xc3\xa9", "../private", "%2e%2e/private", "a//b")],
    ("N120 another case", get(method="get"), 4),
    ("N120 TRACE", get(method="TRACE"), [405]),
    ("N121 another method within", post("X-HTTP-Method-Override: DELETE\r\nContent-Length: 0\r\n"), [403]),
    ("N122 a long head", get(more=f"X-A: {'a' * 70000}\r\n"), [431]),
    ("N122 many fields", get(more="a: b\r\n" * 300), [431]),
]


@pytest.fixture(scope="module")
def seen(world):
    """By case and way: the statuses; and what reached the server."""
    server = world.http("plain.test", address=PUBLIC[1])
    world.names()
    box = world.cerco()
    asked = json.dumps([row[:2] for row in ROWS]).encode()
    result = box.run("--", "python3", "-c", PROGRAM, policy=world.policy(POLICY), input=asked)
    assert result.status == 0, result
    answers = {(name, way): codes for name, way, codes in map(json.loads, result.text.splitlines())}
    return answers, [entry["path"] for entry in server.entries() if entry["event"] == "request"]


@pytest.mark.parametrize("way", ["tcp", "http", "connect", "socks"])
def test_every_case_by_this_way(seen, way):
    answers, _ = seen
    wrong = {}
    for name, _, expected in ROWS:
        codes = answers[name, way]
        if not (len(codes) == 1 and codes[0] in REFUSED if expected == 4 else codes == expected):
            wrong[name] = (codes, expected)
    assert not wrong


def test_only_what_is_allowed_reaches_the_server(seen):
    assert seen[1] == ["/v1/a"] * 8, "the first row and the first half of N106, by four ways"
