"""The journal of real runs: one decision a request, alerts that act, and proof that nothing was changed."""
# lane: full
# sanitized
import json
import os
import random
import shutil
import signal
import subprocess

import pytest

from cerco import GUARD, Cerco, find_below, wait_until
from world import DNS, PUBLIC

POLICY = f"""
version = 1
task = "journal"
[network]
resolvers = ["{DNS}"]
[[egress]]
host = "plain.test"
ports = [80]
methods = ["GET"]
"""


@pytest.fixture(scope="module")
def net(world):
    world.plain = world.http("plain.test")
    world.box = world.cerco()
    return world


@pytest.fixture(scope="module")
def recorded(net):
    return net.box.run("--", "sh", "-c", "for i in 1 2 3; do curl -sS http://plain.test/$i >/dev/null; done; curl -s -m 5 http://10.1.2.3/; true",
                       policy=POLICY)


def test_the_chain_is_whole_and_complete(net, recorded):
    types = [event["type"] for event in recorded.events]
    assert types[0] == "run.planned" and types[-1] == "checkpoint"
    for wanted in ("run.started", "command.started", "dns.decision", "egress.decision", "egress.ended", "command.ended", "run.ended"):
        assert wanted in types, types
    assert [event["seq"] for event in recorded.events] == list(range(1, len(types) + 1))
    verified = net.box("log", "verify")
    assert verified.status == 0, verified
    assert net.box("log", "verify", "--run", recorded.report["run"], "--head", recorded.report["journal"]["head"]).status == 0
    assert net.box("log", "verify", "--run", recorded.report["run"], "--head", "0" * 64).status == 1


def test_log_shows_what_happened_and_filters(net, recorded):
    run = recorded.report["run"]
    text = net.box("log", "--run", run).text
    assert "plain.test" in text and "10.1.2.3" in text
    lines = net.box("log", "--run", run, "--type", "egress.decision", "--json").text.splitlines()
    assert [json.loads(line)["verdict"] for line in lines].count("allow") == 3
    denied = net.box("log", "--run", run, "--verdict", "deny", "--json").text.splitlines()
    assert denied and all(json.loads(line)["verdict"] == "deny" for line in denied)
    event = json.loads(lines[0])["id"]
    assert json.loads(net.box("log", "show", event, "--json").text)["id"] == event
    assert net.box("log", "show", f"{run}:99999").status == 3


@pytest.mark.parametrize("harm", ["flip", "drop", "swap", "cut", "cut-line", "duplicate", "remove"])
def test_every_change_is_found(net, recorded, tmp_path, harm):
    run = recorded.report["run"]
    changed = Cerco(tmp_path)
    # Not the patterns: a copy of a sparse image is not sparse.
    for part in ("journal", "keys"):
        shutil.copytree(net.box.state / part, changed.state / part)
    path = changed.state / "journal" / f"{run}.jsonl"
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    seed = random.Random(harm)
    trials = []
    if harm == "flip":
        for _ in range(25):
            at = seed.randrange(len(whole))
            trials.append(whole[:at] + bytes([whole[at] ^ (1 << seed.randrange(7))]) + whole[at + 1:])
    for i in range(0, len(lines) - 1, max(1, len(lines) // 6)):
        if harm == "drop":
            trials.append(b"".join(lines[:i] + lines[i + 1:]))
        if harm == "swap":
            trials.append(b"".join(lines[:i] + [lines[i + 1], lines[i]] + lines[i + 2:]))
        if harm == "duplicate":
            trials.append(b"".join(lines[:i + 1] + lines[i:]))
        if harm == "cut-line":
            trials.append(b"".join(lines[:i + 1]))
    if harm == "cut":
        trials = [whole[:-1], whole[:-20], whole[:len(whole) // 2], b""]
    assert changed("log", "verify", "--run", run).status == 0
    if harm == "remove":
        path.unlink()
        assert changed("log", "verify").status == 1
        return
    assert trials
    for trial in trials:
        path.write_bytes(trial)
        result = changed("log", "verify", "--run", run)
        assert result.status == 1, (harm, result)
        assert run in result.text + result.error


def test_a_blocked_range_alerts_and_may_kill(net):
    """E80 with an action: the alert names its evidence, and kill ends the run."""
    script = "curl -s -m 5 http://169.254.169.254/latest/meta-data/; echo after; sleep 60"
    noted = net.box.run("--", "sh", "-c", script.replace("sleep 60", "true"), policy=POLICY)
    alerts = [a for a in noted.of_type("alert") if a["detector"] == "blocked_range"]
    assert len(alerts) == 1 and alerts[0]["evidence"][0] in [e["id"] for e in noted.events]
    assert noted.report["alerts"] >= 1
    killed = net.box.run("--", "sh", "-c", script, policy=POLICY + '[alerts]\nblocked_range = "kill"\n')
    assert killed.status == 137, killed
    assert killed.report["ending"]["kind"] == "killed" and killed.report["ending"]["by"] == "detector:blocked_range"
    assert [c["action"] for c in killed.of_type("containment")] == ["kill"]


def test_a_flood_elsewhere_does_not_hide_a_blocked_range(net):
    """E80: datagrams to a public address use up the kernel's log of refusals; the metadata address has one of its own."""
    policy = POLICY.replace('"journal"', '"flood"')  # a baseline of its own
    script = ("import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
              "def flood():\n    for i in range(20000):\n        try: s.sendto(b'x', ('93.184.216.34', 9))\n        except OSError: pass\n"
              "flood()\ntry: socket.create_connection(('169.254.169.254', 80), 5)\nexcept OSError: pass\nflood()\n")
    result = net.box.run("--", "python3", "-c", script, policy=policy)
    assert result.status == 0, result
    ranges = [e for e in result.of_type("egress.decision") if e.get("kind") == "range"]
    assert [e["host"] for e in ranges] == ["169.254.169.254"], result.of_type("egress.decision")
    assert [a["evidence"] for a in result.of_type("alert") if a["detector"] == "blocked_range"] == [[ranges[0]["id"]]]
    dropped = {e["of"]: e["count"] for e in result.of_type("events.dropped") if "of" in e}
    assert dropped.get("refusals in the kernel", 0) > 20000, "the flood did not use up its own limit"
    assert "refusals of guarded ranges in the kernel" not in dropped
    killed = net.box.run("--", "python3", "-c", script + "import time\ntime.sleep(60)\n", policy=policy + '[alerts]\nblocked_range = "kill"\n')
    assert killed.status == 137 and killed.report["ending"]["by"] == "detector:blocked_range", killed


def test_refused_requests_do_not_fill_the_disk(net):
    """Thousands of refused requests with the longest paths: a few are told, cut, and the rest is counted."""
    policy = POLICY.replace('methods = ["GET"]', 'paths = ["/ok"]').replace('"journal"', '"refused"')
    script = ("import http.client\nc = http.client.HTTPConnection('plain.test', timeout=20)\nfor n in range(2000):\n"
              "    c.request('GET', f'/{n}' + 'a' * 15800)\n    r = c.getresponse()\n    r.read()\n    assert r.status == 403\nprint('all')\n")
    result = net.box.run("--", "python3", "-c", script, policy=policy)
    assert result.text.split() == ["all"], result
    decisions = [e for e in result.of_type("egress.decision") if e["verdict"] == "deny"]
    assert sum(e.get("count", 1) for e in decisions) == 2000
    assert sum(r["count"] for r in result.report["refused"]) == 2000
    assert any("sha256" in e.get("path", "") for e in decisions)
    size = sum(f.stat().st_size for f in (net.box.state / "journal").glob(result.report["run"] + "*"))
    assert size < 1_000_000, size  # whole, they are 2000 * 3 * 15.8 KB


def test_a_blocked_range_may_cut_the_network(net):
    policy = POLICY + '[alerts]\nblocked_range = "cut-network"\n'
    script = ("curl -sS -o /dev/null -w '%{http_code}\\n' http://plain.test/; curl -s -m 5 http://10.0.0.1/; for i in $(seq 200); do"
              " curl -s -m 5 -o /dev/null http://plain.test/ || { echo cut; exit; }; sleep 0.05; done; echo open")
    result = net.box.run("--", "sh", "-c", script, policy=policy)
    assert result.text.split() == ["200", "cut"], result
    assert [c["action"] for c in result.of_type("containment")] == ["cut-network"]


def test_a_new_destination_is_noted_once_for_a_task(net):
    policy = POLICY.replace('"journal"', '"fresh"')
    first = net.box.run("--", "curl", "-s", "http://plain.test/", policy=policy)
    again = net.box.run("--", "curl", "-s", "http://plain.test/", policy=policy)
    seen = [[a for a in r.of_type("alert") if a["detector"] == "new_destination"] for r in (first, again)]
    assert [len(s) for s in seen] == [1, 0], seen


def test_a_spike_of_requests_alerts(net):
    """So many that wherever the windows of ten seconds begin, one of them has far more than is usual."""
    script = ("python3 - <<'X'\nimport http.client\nc = http.client.HTTPConnection('plain.test')\nfor i in range(2000):\n"
              "    c.request('GET', '/'); c.getresponse().read()\nX")
    result = net.box.run("--", "sh", "-c", script, policy=POLICY)
    assert [a for a in result.of_type("alert") if a["detector"] == "request_spike"], [e["type"] for e in result.events][-5:]


def test_hostile_names_cannot_forge_lines(net):
    """E64, E65: terminal controls and line breaks in what the sandbox chose."""
    script = "printf 'GET /%%1b]52;c;x HTTP/1.1\\r\\nHost: plain.test\\r\\nX: \\033[31m\\r\\n\\r\\n' | timeout 5 nc -q 1 plain.test 80 >/dev/null; curl -s -m 5 $'http://a\\x1b[2J.test/'; true"
    result = net.box.run("--name", "ok-name", "--", "bash", "-c", script, "run\n{\"type\":\"forged\"}", policy=POLICY)
    assert "forged" not in {event["type"] for event in result.events}
    shown = net.box("log", "--run", result.report["run"])
    assert "\x1b" not in shown.text and shown.status == 0
    assert "\\x1b" in shown.text or "\\u001b" in shown.text or "%1b" in shown.text, "what was hostile is shown, made harmless"
    assert net.box.run("--name", "bad\nname", "--", "true").status == 125


def test_the_journal_dead_ends_the_run(net):
    """N205."""
    process = net.box.start("run", "--", "sh", "-c", "echo up; sleep 600", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline() == b"up\n"
    os.kill(wait_until(lambda: find_below(process, "cerco-journal"), what="the journal"), signal.SIGKILL)
    assert process.wait(GUARD) == 137
    assert net.box("log", "verify").status == 0, "what was written before holds"


def test_f105_command_lines_are_kept_without_credentials(cerco):
    """In the journal and in what reads it; the command itself gets its words as they are."""
    token = "ghp_" + "a1B2c3D4e5" * 3
    result = cerco.run("--", "sh", "-c", 'echo "$1 $2 $3"', "sh", f"Authorization: Bearer {token}", "--password", "hunter2")
    assert result.text == f"Authorization: Bearer {token} --password hunter2\n", result
    started = result.of_type("command.started")[0]
    assert started["argv"][-3:] == ["Authorization: Bearer [redacted]", "--password", "[redacted]"]
    everything = "".join(path.read_text() for path in (cerco.state / "journal").glob("*.jsonl"))
    for secret in (token, "hunter2"):
        assert secret not in everything and secret not in cerco("log").text and secret not in json.dumps(result.report)
