"""`cerco policy apply`: rules of a running sandbox change for its next request, and what they no longer allow ends at once."""
# lane: full
import hashlib
import json
import subprocess
import time

import pytest

from cerco import GUARD, wait_until
from test_rootless import User
from world import DNS, PUBLIC

TOKEN = "sk-test-5a1b9c3d7e2f4a6b8c0d"
CODE = "-sSk -m 20 -o /dev/null -w '%{http_code}\\n'"
HEAD = f'version = 1\n[network]\nresolvers = ["{DNS}"]\n'
A = '[[egress]]\nname = "a"\nhost = "a.test"\n'
B = '[[egress]]\nname = "b"\nhost = "b.test"\n'
RAW = '[[egress]]\nname = "raw"\ntcp = "raw.test:5432"\n'
LOOKED = '[[egress]]\nname = "look"\nhost = "a.test"\nmethods = ["GET"]\n'
BOUND = LOOKED + """
[[credential]]
name = "api"
source = { env = "API_KEY" }
hosts = ["a.test"]
methods = ["GET"]
paths = ["/v1/**"]
inject = { header = "Authorization", format = "Bearer {secret}" }
env = { API_KEY = "secret" }
"""
# Connects once to the address that the name has now, and says whether it is connected.
TRY = """import socket, sys
s = socket.socket(); s.settimeout(20)
try:
    s.connect((sys.argv[1], int(sys.argv[2]))); s.sendall(b'hello'); print(s.recv(9).decode() or 'end')
except OSError as error: print(type(error).__name__)
"""


@pytest.fixture(scope="module")
def net(world):
    world.a = world.https("a.test")
    world.https("b.test", address=PUBLIC[1])
    world.tcp(PUBLIC[2], 5432)
    world.names(records={"raw.test": [PUBLIC[2]]})
    world.box = world.cerco(environment={"API_KEY": TOKEN})
    return world


class Session:
    def __init__(self, net, rules, head=HEAD):
        self.net, self.box, self.head = net, net.box, head
        started = self.box("start", "--policy", self.file(rules))
        assert started.status == 0, started
        self.id = started.text.strip()

    def file(self, rules, head=None):
        path = self.net.folder / f"apply-{time.monotonic_ns()}.toml"
        path.write_text((self.head if head is None else head) + rules)
        return path

    def apply(self, rules, head=None, *flags):
        return self.box("policy", "apply", *flags, self.id, self.file(rules, head))

    def sh(self, script):
        return self.box("exec", self.id, "--", "sh", "-c", script)

    def code(self, url, more=""):
        return self.sh(f"curl {CODE} {more} {url}").text.strip()

    def events(self, *types):
        found = []
        for path in sorted((self.box.state / "journal").glob(f"{self.id}*.jsonl")):
            found += [json.loads(line) for line in path.read_text().splitlines()]
        return [event for event in found if event["type"] in types]

    def in_force(self):
        shown = self.box("policy", "show", "--json", self.id)
        assert shown.status == 0, shown
        return shown.text.strip()


@pytest.fixture
def session(net):
    made = []

    def start(rules, head=HEAD):
        made.append(Session(net, rules, head))
        return made[-1]
    yield start
    for one in made:
        net.box("rm", one.id)


def test_a_relay_of_a_revoked_name_ends_and_its_address_leads_nowhere(session):
    """N96: the tunnel, the address that a client kept, and what other names go on with."""
    one = session(A + B)
    stream = one.box.start("exec", one.id, "--", "sh", "-c", "curl -sSkN -m 50 https://a.test/stream; echo end $?",
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    assert stream.stdout.readline() == b"tick\n"
    other = one.box.start("exec", one.id, "--", "sh", "-c", "curl -sSkN -m 50 https://b.test/stream", stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    assert other.stdout.readline() == b"tick\n"
    kept = one.sh("getent ahostsv4 a.test | head -n 1 | cut -d' ' -f1").text.strip()
    assert kept.startswith("198.19."), kept
    changed = one.apply(B)
    assert changed.status == 0 and changed.text == "policy 2 is in force\n", changed
    code = int(stream.communicate(timeout=GUARD)[0].split(b"end ")[1])
    assert code not in (0, 28), code
    assert one.sh(f"curl {CODE} --resolve a.test:443:{kept} https://a.test/; getent hosts a.test || echo gone").text.split() == \
        ["000", "gone"]
    for _ in range(20):  # what is still allowed was not even interrupted
        assert other.stdout.readline() == b"tick\n"
    other.kill()
    other.communicate(timeout=GUARD)
    assert one.code("https://b.test/") == "200"
    decisions = one.events("egress.decision")
    assert [(d["host"], d["verdict"], d["policy"]) for d in decisions] == \
        [("a.test", "allow", 1), ("b.test", "allow", 1), ("a.test", "deny", 2), ("b.test", "allow", 2)], decisions
    assert [e["problem"] for e in one.events("egress.ended") if e["of"] == decisions[0]["id"]] == ["policy"]


def test_a_tunnel_ends_where_the_gateway_is_to_look_inside(session):
    one = session(A + BOUND.replace("a.test", "b.test").replace('"look"', '"b"'))
    stream = one.box.start("exec", one.id, "--", "sh", "-c", "curl -sSkN -m 50 https://a.test/stream; echo end $?",
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    assert stream.stdout.readline() == b"tick\n"
    assert one.apply(LOOKED + BOUND.replace("a.test", "b.test").replace('"look"', '"b"')).status == 0
    assert int(stream.communicate(timeout=GUARD)[0].split(b"end ")[1]) not in (0, 28)
    assert (one.code("https://a.test/"), one.code("https://a.test/", "-X POST")) == ("200", "403")


def test_what_is_in_force_is_on_record_and_is_what_is_asked(session):
    one = session(A)
    assert one.box("why", "https://a.test/", "--run", one.id).status == 0
    changed = one.apply(B, None, "--json")
    answer = json.loads(changed.text)
    [event] = one.events("policy.changed")
    assert answer == {"run": one.id, "policy": 2, "policy_sha256": event["policy_sha256"], "revoked": []}, changed
    assert (event["revision"], [rule["host"] for rule in event["policy"]["egress"]]) == (2, ["b.test"])
    assert hashlib.sha256(one.in_force().encode()).hexdigest() == event["policy_sha256"]
    denied, allowed = (one.box("why", f"https://{name}.test/", "--run", one.id) for name in "ab")
    assert (denied.status, allowed.status) == (1, 0) and f"run {one.id}, policy 2" in allowed.text, (denied, allowed)
    assert "b.test" in one.box("policy", "show", one.id).text
    before = one.in_force()
    assert one.box("rm", one.id).status == 0
    assert one.in_force() == before  # from the journal
    assert one.box("why", "https://a.test/", "--run", one.id).status == 1
    gone = one.apply(A)
    assert gone.status == 3 and one.id in gone.error, gone
    assert one.box("policy", "apply", "zzzz", one.file(A)).status == 3
    both = one.box("why", "https://a.test/", "--run", one.id, "--allow", "a.test")
    assert both.status == 2 and "--allow beside a run" in both.error, both


BAD = {
    "no TOML": ("egress = [[[\n", ":5:1: ", "no value"),
    "an unknown key": ('[[egress]]\nhots = "b.test"\n', ":5:1: egress[0].hots", "did you mean host"),
    "rules that contradict": (A + LOOKED.replace('"look"', '"other"'), ":", "looks inside"),
    "a wildcard over everything": ('[[egress]]\nhost = "*.com"\n', ":5:", "com"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_leaves_the_old_rules_in_force(session, name):
    """N199, with the control that a good file does change them."""
    rules, where, what = BAD[name]
    one = session(A)
    before = one.in_force()
    bad = one.apply(rules)
    line = bad.error.splitlines()[0]
    assert bad.status == 2 and ".toml:" in line and where in line and what in bad.error, bad
    # As `run` says it.
    path = line.split(": ")[1].rsplit(":", 2)[0]
    assert one.box("check", "--policy", path, "--", "true").error == bad.error
    assert one.in_force() == before and one.code("https://a.test/") == "200" and one.code("https://b.test/") == "000"
    assert one.events("policy.changed") == []
    assert one.apply(A + B).status == 0 and one.code("https://b.test/") == "200"


FIXED = {
    "limits.memory": ('[limits]\nmemory = "64MiB"\n', ":5:"),
    "isolation.tier": ('[isolation]\ntier = "microvm"\n', ":5:"),
    "filesystem.read_only": ('[filesystem]\nread_only = ["/etc"]\n', ":5:"),
    "environment.set": ('[environment]\nset = { A = "b" }\n', ":5:"),
    "network.resolvers": (None, ":3:"),
    "egress[0]": (LOOKED, ":4:"),
    "credential[0]": (BOUND, ":9:"),
}


@pytest.mark.parametrize("key", FIXED)
def test_what_cannot_change_is_refused_by_its_name(session, key):
    rules, place = FIXED[key]
    one = session(A)
    head = HEAD.replace(DNS, "192.0.2.1") if rules is None else None
    no = one.apply(A if rules is None else rules + (A if "[[egress]]" not in rules else ""), head)
    assert no.status == 1 and f": {key}: " in no.error and f".toml{place}" in no.error, no
    assert "start a new run" in no.error and one.code("https://a.test/") == "200"
    assert one.events("policy.changed") == []


def test_the_kernel_refuses_and_steers_by_the_rules_in_force(session):
    """A port that no rule names is refused by the kernel; the gateway, which may not be there yet, hears of none of it."""
    one = session("")
    where = one.file("").with_suffix(".py")
    where.write_text(TRY)
    assert one.box("cp", where, f"{one.id}:try.py").status == 0
    knock = "python3 try.py 198.19.0.5 5432; python3 try.py raw.test 5432"
    assert one.sh(knock).text.split() == ["ConnectionRefusedError", "gaierror"]
    assert one.apply(RAW).status == 0
    assert one.sh("python3 try.py raw.test 5432").text == "hello\n"
    [allowed] = [d for d in one.events("egress.decision") if d["verdict"] == "allow"]
    assert (allowed["policy"], allowed["rule"]) == (2, "raw")
    held = one.box.start("exec", one.id, "--", "python3", "-c",
                         "import socket; s = socket.create_connection(('raw.test', 5432)); s.sendall(b'x'); s.recv(1); "
                         "print('there', flush=True); print(repr(s.recv(9)))",
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    assert held.stdout.readline() == b"there\n"
    assert one.apply(A).status == 0
    out, err = held.communicate(timeout=GUARD)
    assert out == b"b''\n" or b"ConnectionReset" in err, (out, err)
    # Refused by the kernel, where the gateway could only have reset it.
    assert one.sh("python3 try.py 198.19.0.1 5432; python3 try.py 198.19.0.2 5432").text.split() == ["ConnectionRefusedError"] * 2
    assert one.apply("", 'version = 1\n[network]\ndefault = "public"\n').status == 0
    assert one.sh("python3 try.py raw.test 5432").text == "hello\n"


def test_a_binding_reaches_no_further_than_the_rules_in_force(session, net):
    one = session(BOUND)
    ask = '-H "Authorization: Bearer $API_KEY"'
    assert one.code("https://a.test/v1/me", ask) == "200"
    assert [e["headers"]["authorization"] for e in net.a.entries() if e.get("path") == "/v1/me"] == [f"Bearer {TOKEN}"]
    assert one.apply(BOUND.replace('["/v1/**"]', '["/v2/**"]')).status == 0
    assert (one.code("https://a.test/v1/me", ask), one.code("https://a.test/v2/me", ask)) == ("403", "200")
    changed = one.apply(LOOKED)
    assert changed.status == 0 and "credential api is revoked" in changed.text, changed
    assert (one.code("https://a.test/v2/me", ask), one.code("https://a.test/v2/me")) == ("403", "200")
    back = one.apply(BOUND)
    assert back.status == 1 and "credential[0]: it was revoked" in back.error, back
    [revoked] = one.events("credential.revoked")
    assert (revoked["credential"], revoked["why"]) == ("api", "policy")
    assert [e["retired"] for e in one.events("policy.changed")] == [[], ["api"]]
    assert TOKEN not in one.in_force() and json.loads(one.in_force())["credential"] == []


def test_the_detectors_act_as_the_rules_in_force_say(session):
    one = session(A)
    assert one.apply(A + '[alerts]\nblocked_range = "kill"\n').status == 0
    ended = one.sh("curl -sS -m 20 http://169.254.169.254/; sleep 60")
    assert ended.status == 137, ended


def test_an_ordinary_users_run_changes_as_well(net):
    """The kernel's rules belong to the user's own namespace."""
    user = User()
    try:
        user.prefix = ["nsenter", f"--net=/run/netns/{net.host}", *user.as_user()]
        loose = 'limits.not_required=["memory", "cpus", "io"]'
        process = user.start("run", "--quiet", "--name", "live", "--allow", "b.test:80", "--set", loose, "--", "sleep", "100",
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        shown = wait_until(lambda: process.poll() is not None or user("policy", "show", "live").status == 0, what="the run")
        if process.poll() is not None:
            pytest.skip(f"an ordinary user cannot run here: {process.stderr.read().decode()}")
        path = user.folder / "next.toml"
        path.write_text('version = 1\n[[egress]]\nhost = "c.test"\nports = [81]\n')
        path.chmod(0o644)
        changed = user("policy", "apply", "live", path)
        assert shown and changed.status == 0 and "policy 2 is in force" in changed.text, changed
        assert "c.test" in user("policy", "show", "live").text
        assert user("kill", "live").status == 0
        process.communicate(timeout=GUARD)
    finally:
        user.close()
