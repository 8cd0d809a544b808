"""`cerco publish`: the host's loopback reaches a server inside; what neither side can do to the other, or to the host."""
# lane: full
# sanitized
import json
import os
import pathlib
import re
import socket
import subprocess
import time

import pytest

from cerco import GUARD, SANITIZED, Traces, children_of, status_of, wait_until

ECHO = """
import socketserver, sys
class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        while data := self.request.recv(65536): self.request.sendall(data)
        self.request.sendall(b'END')
class Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    daemon_threads = allow_reuse_address = True
    request_queue_size = 128
with Server(('127.0.0.1', 8000), Echo) as server:
    print('up', flush=True)
    server.serve_forever()
"""


class Box:
    """A session with a server in it, ended with its test."""

    def __init__(self, cerco, *flags):
        self.cerco, self.servers = cerco, []
        self.id = cerco("start", *flags).text.strip()

    def exec(self, *words, **kwargs):
        return self.cerco("exec", self.id, "--", *words, **kwargs)

    def serve(self, program, ready=b"up\n"):
        server = self.cerco.start("exec", self.id, "--", "python3", "-u", "-c", program, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE)
        self.servers.append(server)
        assert server.stdout.readline() == ready, server.stderr.read()

    def publish(self, port, *flags):
        return self.cerco("publish", *flags, self.id, port)

    def port(self, port=8000):
        published = self.publish(port)
        assert published.status == 0, published
        found = re.fullmatch(r"127\.0\.0\.1:(\d+)\n", published.text)
        assert found, published
        return int(found[1])

    def actions(self):
        lines = (self.cerco.state / "journal" / f"{self.id}.jsonl").read_text().splitlines()
        return [event["action"] for event in map(json.loads, lines) if event["type"] == "operator.action"]

    def close(self):
        self.cerco("rm", self.id)
        for server in self.servers:
            server.wait(GUARD)
            for pipe in (server.stdin, server.stdout, server.stderr):
                pipe.close()


@pytest.fixture
def box(cerco):
    box = Box(cerco)
    yield box
    box.close()


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=GUARD)


def ask(port, data):
    with connect(port) as client:
        client.sendall(data)
        client.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: client.recv(65536), b""))


def publishers(cerco):
    return [pid for pid, (name, _) in Traces(cerco.state).processes().items() if name.startswith("cerco-publish")]


def test_a_server_inside_is_reached(box):
    box.serve(ECHO)
    port = box.port()
    data = os.urandom(1 << 16)
    for _ in range(5):
        assert ask(port, data) == data + b"END"
    assert box.actions() == [f"publish 8000 at 127.0.0.1:{port}"]
    again = box.port()
    assert again != port and ask(again, b"x") == ask(port, b"x") == b"xEND"


def test_the_port_may_be_chosen_and_told_as_json(box):
    box.serve(ECHO)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = box.publish(f"8000:{port}")
        assert refused.status == 1 and f"127.0.0.1:{port}: is in use; expected another HOSTPORT" in refused.error, refused
    published = box.publish(f"8000:{port}", "--json")
    assert json.loads(published.text) == {"run": box.id, "port": 8000, "host_port": port, "address": f"127.0.0.1:{port}"}
    assert ask(port, b"y") == b"yEND"


def test_what_cannot_be_published_says_why(box, cerco):
    nobody = box.publish(8000)
    assert nobody.status == 1 and nobody.error == "cerco: publish 8000: nobody listens on that port inside; start the server first\n", nobody
    assert publishers(cerco) == []
    for wrong in ("0", "65536", "x", "80:y", ":80", "80:", "80:80:80"):
        refused = box.publish(wrong)
        assert refused.status == 2 and "is no port" in refused.error, refused
    assert cerco("publish", "nobody", "80").status == 3
    over = cerco.run("--", "true").report["run"]
    dead = cerco("publish", over, "80")
    assert dead.status == 3 and over in dead.error, dead
    assert len(box.actions()) == 1


def test_a_server_that_serves_one_connection_has_it_still(box):
    """Looking whether somebody listens takes no connection from it."""
    box.serve("import socket\ns = socket.create_server(('0.0.0.0', 8000))\nprint('up')\nc = s.accept()[0]\nc.sendall(b'once')\n")
    assert ask(box.port(), b"") == b"once"


def test_a_server_on_version_6_alone(box):
    box.serve("import socket\ns = socket.create_server(('::1', 8000), family=socket.AF_INET6)\nprint('up')\nc = s.accept()[0]\nc.sendall(b'six')\n")
    assert ask(box.port(), b"") == b"six"


def test_a_server_that_goes_is_a_reset(box):
    box.serve("import socket\ns = socket.create_server(('127.0.0.1', 8000))\nprint('up')\ninput()\n")
    port = box.port()
    box.servers[0].stdin.write(b"\n")
    box.servers[0].stdin.flush()
    assert box.servers[0].wait(GUARD) == 0
    with pytest.raises(ConnectionResetError):
        ask(port, b"x")


def test_it_ends_with_the_run(box, cerco):
    box.serve(ECHO)
    port = box.port()
    held = connect(port)
    held.sendall(b"x")
    assert held.recv(10) == b"x"
    assert cerco("kill", box.id).status == 0
    try:
        assert held.recv(10) == b""
    except ConnectionResetError:
        pass
    held.close()
    with pytest.raises(ConnectionRefusedError):
        connect(port)
    assert publishers(cerco) == []


def test_an_open_connection_keeps_a_session_up(cerco):
    """Idle is time without a command asked for and without a connection."""
    box = Box(cerco, "--set", "limits.idle=2s")
    try:
        box.exec("sh", "-c", "setsid python3 -c \"$0\" > /dev/null 2>&1 &", ECHO.replace("print('up', flush=True)", "open('up', 'w')"))
        wait_until(lambda: box.exec("test", "-e", "up").status == 0, what="the server")
        held = connect(box.port())
        end = time.monotonic() + 4
        while time.monotonic() < end:
            held.sendall(b"x")
            assert held.recv(10) == b"x"
            time.sleep(0.2)
        held.close()
        wait_until(lambda: json.loads(cerco("ps", "--json").text) == [], what="the end of the session")
        assert json.loads(cerco("report", box.id).text)["ending"]["by"] == "idle"
    finally:
        box.close()


def test_only_the_loopback_listens(box):
    box.serve(ECHO)
    port = box.port()
    mine = [line.split()[1] for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]
            if line.split()[3] == "0A" and int(line.split()[1].split(":")[1], 16) == port]
    assert mine == [f"0100007F:{port:04X}"]


def test_the_publisher_holds_nothing(box, cerco):
    """No capability, no path, a filter, a uid of its own; its descriptors are the listener, its channel and the ways."""
    box.serve(ECHO)
    port = box.port()
    with connect(port) as held:
        held.sendall(b"x")
        assert held.recv(1) == b"x"
        [pid] = publishers(cerco)
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        assert re.search(r"^CapEff:\t0+$", status, re.M) and re.search(r"^Seccomp:\t2$", status, re.M) and re.search(r"^NoNewPrivs:\t1$", status, re.M)
        if os.geteuid() == 0:
            assert re.search(r"^Uid:\t1879044101\t", status, re.M)
        kinds = sorted(os.readlink(f"/proc/{pid}/fd/{fd}").split(":")[0] for fd in os.listdir(f"/proc/{pid}/fd"))
        assert [kind for kind in kinds if kind != "socket"] in (["/dev/null", "/dev/null", "pipe"], ["/dev/null", "/dev/null", "/dev/null"]), kinds
        assert kinds.count("socket") == 4


# --- What it must not be able to do --------------------------------------------------------------

TAKE = """
import os
taken = 0
for pid in os.listdir('/proc'):
    if not pid.isdigit() or open(f'/proc/{pid}/comm').read() == 'python3\\n': continue
    for fd in range(16):
        try:
            os.readlink(f'/proc/{pid}/fd/{fd}')
            taken += open(f'/proc/{pid}/comm').read() not in ('sh\\n', 'python3\\n')
        except OSError: pass
print('of others:', taken)
"""


def test_no_socket_of_the_hosts_network_is_inside(box):
    """A TCP socket of the host's could be disconnected and connected elsewhere: inside there is one end of a Unix pair, which is
    nobody's but init's child's."""
    box.serve(ECHO)
    with connect(box.port()) as held:
        held.sendall(b"x")
        assert held.recv(1) == b"x"
        init = next(pid for pid in all_pids() if (status_of(pid) or ("",))[0].startswith("memfd:cerco") and pid in below(box))
        for pid in [init, *children_of(init)]:
            try:
                descriptors = os.listdir(f"/proc/{pid}/fd")
            except OSError:
                continue
            inodes = {os.readlink(f"/proc/{pid}/fd/{fd}")[8:-1] for fd in descriptors if os.readlink(f"/proc/{pid}/fd/{fd}").startswith("socket:")}
            ours = {line.split()[9] for line in pathlib.Path("/proc/self/net/tcp").read_text().splitlines()[1:]}
            assert not inodes & ours, (pid, status_of(pid))
        # Its descriptors are closed to the workload, whose uid it has.
        assert box.exec("python3", "-c", TAKE).out == b"of others: 0\n"


def all_pids():
    return [int(folder.name) for folder in pathlib.Path("/proc").glob("[0-9]*")]


def below(box):
    from cerco import descendants_of
    for line in open("/proc/locks"):
        fields = line.split()
        if "FLOCK" in fields and fields[5].split(":")[-1] == str((box.cerco.state / "runs" / box.id / "live").stat().st_ino):
            return descendants_of(int(fields[4]))
    return []


def test_a_stalled_reader_and_a_flood_hold_nobody_up(box, cerco):
    """E68: the server floods a client that does not read; memory outside stays bounded, others are served."""
    box.serve("import socket, threading\ns = socket.create_server(('127.0.0.1', 8000), backlog=128)\nprint('up')\n"
              "def serve(c):\n  first = c.recv(1)\n  try:\n    while first == b'f': c.sendall(b'x' * 65536)\n    c.sendall(b'fine'); c.close()\n  except OSError: pass\n"
              "while True: threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()\n")
    port = box.port()
    stalled = [connect(port) for _ in range(20)]
    for client in stalled:
        client.sendall(b"f")
    for _ in range(5):
        assert ask(port, b"q") == b"fine"
        assert box.exec("echo", "on").out == b"on\n"
    assert all(client.recv(10).startswith(b"x") for client in stalled), "the flood is there"
    [pid] = publishers(cerco)
    peak = int(re.search(r"^VmHWM:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text(), re.M)[1])
    assert SANITIZED or peak < 24 * 1024, f"{peak} kB"
    for client in stalled:
        client.close()


def test_many_connections_at_once_are_queued(box):
    """More than 64 wait; those that were accepted get through."""
    box.serve(ECHO)
    port = box.port()
    clients = [connect(port) for _ in range(100)]
    try:
        for number, client in enumerate(clients):
            client.sendall(b"%d" % number)
            client.shutdown(socket.SHUT_WR)
        for number, client in enumerate(clients):
            assert b"".join(iter(lambda c=client: c.recv(100), b"")) == b"%dEND" % number
    finally:
        for client in clients:
            client.close()


def test_code_inside_that_stops_or_kills_the_carrier_hurts_itself_alone(box):
    """The carrier of a connection has the workload's uid, so the workload can signal it."""
    box.serve(ECHO)
    port = box.port()
    with connect(port) as client:
        client.sendall(b"x")
        assert client.recv(1) == b"x"
        box.exec("sh", "-c", "for s in STOP KILL; do for p in /proc/[0-9]*; do case $(cat $p/comm) in memfd:*|cerco*) kill -$s ${p#/proc/};; esac; done; done 2>/dev/null")
        client.settimeout(GUARD)
        try:
            assert client.recv(1) == b""
        except ConnectionResetError:
            pass
    assert ask(port, b"y") == b"yEND"
    assert box.exec("echo", "on").out == b"on\n"


def test_ports_of_a_run_are_bounded(box):
    box.serve(ECHO)
    for _ in range(16):
        box.port()
    refused = box.publish(8000)
    assert refused.status == 125 and "16 ports are published" in refused.error, refused
