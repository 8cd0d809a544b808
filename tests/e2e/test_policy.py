"""Presets, suggestions, the schema and the doctor, as a user meets them."""
# lane: full
import json
import subprocess

import pytest

from world import DNS, PUBLIC

SILENT = f'version = 1\n[network]\nresolvers = ["{DNS}"]\n'


@pytest.fixture(scope="module")
def net(world):
    world.index = world.https(["index.test"])
    world.other = world.https(["other.test", "api.test"], address=PUBLIC[1])
    world.plain = world.http("plain.test", address=PUBLIC[2])
    world.box = world.cerco(environment={"PIP_INDEX_URL": "https://user:hunter2@index.test/simple"})
    return world


CURL = "curl -sS -m 10 -o /dev/null -w '%{http_code}\\n' "


def test_n190_a_preset_reads_the_index_of_the_host_and_publishes_nothing(net):
    """The index that pip is told on this host: reads alone, no other host, and no user of the host's inside."""
    net.index.clear()
    script = (f"{CURL} https://index.test/simple/requests/; {CURL} -X POST https://index.test/simple/;"
              f"{CURL} -X PUT https://index.test/simple/x; {CURL} https://index.test/legacy/; {CURL} https://other.test/;"
              "echo $PIP_INDEX_URL; env")
    result = net.box.run("--allow", "preset:pip", "--", "sh", "-c", script, policy=SILENT)
    lines = result.text.split("\n")
    assert lines[:4] == ["200", "403", "403", "403"], result
    assert "https://index.test/simple" in lines and "hunter2" not in result.text, result
    assert [entry["path"] for entry in net.index.entries() if "path" in entry] == ["/simple/requests/"]
    assert {one["host"] for one in result.report["refused"]} == {"index.test", "other.test"}


def test_a_preset_is_shown_in_the_plan(net):
    path = net.folder / "silent.toml"
    path.write_text(SILENT)
    said = net.box("check", "--policy", path, "--allow", "preset:pip", "--", "true")
    assert "index.test:443: GET on /simple/**" in said.text, said
    shown = net.box("policy", "show", "--policy", path, "--allow", "preset:pip")
    assert "preset pip: PIP_INDEX_URL" in shown.text and "hunter2" not in shown.text, shown


def test_presets_of_the_users_own(net):
    folder = net.folder / ".config/cerco/presets"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "team.toml"
    file.write_text('[[egress]]\nhost = "api.test"\nmethods = ["GET"]\npaths = ["/v1/**"]\n')
    why = ["why", "https://api.test/v1/x", "--allow", "preset:team"]
    assert net.box(*why).status == 0
    assert net.box("why", "https://api.test/v2", "--allow", "preset:team").status == 1
    file.chmod(0o666)
    refused = net.box(*why)
    assert refused.status == 2 and "others can write" in refused.error, refused
    assert net.box("why", "https://api.test/", "--allow", "preset:nothing").status in (1, 2, 3)


def test_suggest_says_what_would_have_been_enough(net):
    """With the suggestion added, the same command is refused nothing; without it, it was."""
    policy = SILENT + '[[egress]]\nhost = "api.test"\nmethods = ["GET"]\npaths = ["/v1/**"]\n'
    script = (f"{CURL} -X POST https://api.test/v1/x; {CURL} https://api.test/v2; {CURL} https://other.test/;"
              f"{CURL} http://169.254.169.254/latest; true")
    first = net.box.run("--", "sh", "-c", script, policy=policy)
    assert {one["kind"] for one in first.report["refused"]} == {"method", "path", "host", "range"}
    suggested = net.box("policy", "suggest", first.report["run"])
    assert suggested.status == 0 and "UNTRUSTED" in suggested.text, suggested
    assert "169.254" not in suggested.text
    second = net.box.run("--", "sh", "-c", script, policy=policy + suggested.text)
    assert [one["kind"] for one in second.report["refused"]] == ["range"], second.report["refused"]
    assert second.text.split()[:3] == ["200"] * 3, second
    assert "nothing was refused" in net.box("policy", "suggest", net.box.run("--", "true").report["run"]).text
    assert net.box("policy", "suggest", "nosuchrun").status == 3


def test_the_schema_is_json(net):
    schema = json.loads(net.box("policy", "schema").text)
    assert schema["properties"]["limits"]["properties"]["memory"]["type"] == "string"
    assert schema["additionalProperties"] is False


def test_doctor(net):
    good = net.box("doctor", "--json")
    told = json.loads(good.text)
    assert good.status == 0 and told["given"] is True
    assert {one["name"] for one in told["tiers"]} == {"isolate", "container", "gvisor", "microvm"}
    for one in told["tiers"]:
        assert net.box("doctor", "--tier", one["name"]).status == (0 if one["given"] else 1), one
    more = net.box("doctor", "--set", "limits.disk=900TiB")
    assert more.status == 1 and "NO   disk_limit" in more.text and "CERCO_STATE_DIR" in more.text, more


def test_log_tells_the_end_of_a_run_in_words(net):
    run = net.box.run("--", "sh", "-c", "exit 3").report["run"]
    said = net.box("log", "--run", run, "--type", "run.ended").text
    assert "exited 3 · status 3 · wall " in said, said
