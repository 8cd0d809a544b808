"""Crowds of connections through one gateway: readers and writers that stop, resets without an end. Memory stays bounded, others are served."""
# lane: full
import pathlib
import re
import subprocess

import pytest

from cerco import GUARD, SANITIZED, find_below, wait_until
from world import PUBLIC

POLICY = """
[[egress]]
tcp = "source.test:7000"
[[egress]]
tcp = "sink.test:7001"
[[egress]]
tcp = "drain.test:7002"
[[egress]]
host = "plain.test"
ports = [80]
methods = ["GET", "POST"]
[[egress]]
host = "sink.test"
ports = [80]
methods = ["POST"]
[[egress]]
host = "source.test"
ports = [80]
methods = ["GET"]
"""
# Opens as many connections as its argument says of the kind that stdin names, holds them until the next line, and says so.
PROGRAM = """
import contextlib, resource, socket, struct, sys, time, urllib.request
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
COUNT = int(sys.argv[1])
places = {name: socket.gethostbyname(name + ".test") for name in ("plain", "source", "sink", "drain")}
LINGER = struct.pack("ii", 1, 0)
POST = b"POST /word HTTP/1.1\\r\\nHost: sink.test\\r\\nContent-Length: 10000000000\\r\\n\\r\\n"
SLOW = b"GET /word HTTP/1.1\\r\\nHost: plain.test\\r\\n" + b"a: b\\r\\n" * 100
KINDS = {"readers": ("source", 7000), "pages": ("source", 80), "writers": ("plain", 80), "uploads": ("sink", 7001), "bodies": ("sink", 80),
         "resets": ("drain", 7002)}
def put(one, data):
    with contextlib.suppress(OSError): return one.send(data)
def take(one):
    with contextlib.suppress(OSError): return one.recv(65536)
def act(kind, one, turn):
    if kind in ("uploads", "bodies") and turn == 0: put(one, POST if kind == "bodies" else b"u")
    elif kind in ("uploads", "bodies"):
        while put(one, b"u" * 65536): pass
    elif kind == "writers": put(one, SLOW[turn * 2:turn * 2 + 2])
    elif turn == 0: put(one, b"GET /word HTTP/1.1\\r\\nHost: source.test\\r\\n\\r\\n" if kind == "pages" else b"r")
    elif turn < 10: take(one)  # fast at first, which makes queues grow
def get():
    try: return urllib.request.urlopen("http://plain.test/word", timeout=30).status
    except urllib.error.HTTPError as error: return error.code
    except OSError as error: return str(error)
for line in sys.stdin:
    if line == "get\\n":
        print("got", get(), flush=True)
        continue
    kind, held = line.strip(), []
    name, port = KINDS[kind]
    for number in range(COUNT):
        one = socket.socket()
        one.setblocking(False)
        for queue in (socket.SO_SNDBUF, socket.SO_RCVBUF): one.setsockopt(socket.SOL_SOCKET, queue, 65536)
        with contextlib.suppress(BlockingIOError): one.connect((places[name], port))
        if kind == "resets":
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER)
            if number % 2: time.sleep(0.0002); put(one, b"z" * 100)
            one.close()
        else:
            held.append(one)
        if number % 100 == 99: time.sleep(0.01)
    for turn in range(20 if held else 0):
        for one in held: act(kind, one, turn)
        time.sleep(0.1)
    print("held", len(held), flush=True)
    sys.stdin.readline()
    for one in held:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER)
        one.close()
    print("free", flush=True)
"""
COUNT = 700  # more than one gateway serves at once
MOST_KIB = 96 << 10  # what a gateway may hold of its own
MOST_QUEUED = 450 << 20  # what the kernel may hold of its connections, ends included; without bounds it is far above a GiB


def memory_of(pid):
    """What a process held at most, in KiB."""
    return int(re.search(r"^VmHWM:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text(), re.M)[1])


def queued():
    """Bytes that all TCP sockets of this kernel hold."""
    pages = re.search(r"^TCP: .* mem (\d+)", pathlib.Path("/proc/net/sockstat").read_text(), re.M)[1]
    return int(pages) * 4096


class Box:
    """A sandbox in which PROGRAM waits for words."""

    def __init__(self, box, policy, count):
        self.run = box.start("run", "--quiet", "--policy", policy, "--", "python3", "-c", PROGRAM, str(count),
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, line):
        self.run.stdin.write(line.encode() + b"\n")
        self.run.stdin.flush()
        return self.run.stdout.readline().decode().strip()

    def end(self):
        self.run.stdin.close()
        try:
            return self.run.wait(GUARD)
        finally:
            if self.run.poll() is None:
                self.run.kill()
                self.run.wait()


def crowds_in(world, kinds, count):
    policy = world.box.folder / "crowds.toml"
    policy.write_text(world.policy(POLICY))
    one, other = Box(world.box, policy, count), Box(world.box, policy, 1)
    try:
        assert one.ask("get") == other.ask("get") == "got 200"
        gateway = wait_until(lambda: find_below(one.run, "cerco-gateway"), what="the gateway")
        for kind in kinds:
            before = queued()
            assert one.ask(kind).startswith("held"), kind
            held = queued() - before
            assert [other.ask("get") for _ in range(20)] == ["got 200"] * 20, kind
            print(f"{kind}: {held >> 20} MiB in queues, gateway {memory_of(gateway) >> 10} MiB")
            assert held < MOST_QUEUED and (SANITIZED or memory_of(gateway) < MOST_KIB), (kind, held, memory_of(gateway))
            assert one.ask("") == "free", kind
            # Those whose server takes nothing are held until they have been idle for long: the sandbox has harmed itself.
            if kind not in ("uploads", "bodies"):
                wait_until(lambda: one.ask("get") == "got 200", what=f"an answer after {kind}")
        assert find_below(one.run, "cerco-gateway") == gateway, "the same process, not another one"
    finally:
        ended = [one.end(), other.end()]
    assert ended == [0, 0]


@pytest.fixture(scope="module")
def net(world):
    page = "HTTP/1.1 200 OK\r\nContent-Length: 100000000000\r\n\r\n"
    world.serve("crowd", {"address": PUBLIC[1], "port": 7000, "does": "source"})
    world.serve("crowd", {"address": PUBLIC[1], "port": 80, "does": "source", "first": page})
    world.serve("crowd", {"address": PUBLIC[2], "port": 7001, "does": "sink"})
    world.serve("crowd", {"address": PUBLIC[2], "port": 80, "does": "sink"})
    world.serve("crowd", {"address": PUBLIC[3], "port": 7002, "does": "drain"})
    world.http("plain.test")
    world.names(records={"source.test": [PUBLIC[1]], "sink.test": [PUBLIC[2]], "drain.test": [PUBLIC[3]]})
    world.box = world.cerco()
    return world


def test_a_crowd_is_bounded_and_harms_nobody_else(net):
    crowds_in(net, ["readers", "pages", "writers", "resets", "bodies"], COUNT)
