"""network.default = "public": the internet is open, and neither the host's networks nor what is denied."""
# lane: full
import pytest

from world import DNS, PUBLIC

POLICY = f"""
version = 1
task = "public"
[network]
default = "public"
resolvers = ["{DNS}"]
[[egress]]
name = "api"
host = "api.test"
methods = ["GET"]
paths = ["/v1/**"]
[[deny]]
host = "**.evil.test"
[[deny]]
cidr = "{PUBLIC[2]}/32"
"""


@pytest.fixture(scope="module")
def net(world):
    world.web = world.https(["api.test", "any.test", "a.evil.test"])
    world.plain = world.http("plain.test", address=PUBLIC[1])
    world.denied = world.http("denied.test", address=PUBLIC[2])
    world.lan = world.http("lan.test", address="10.9.9.9", port=80)
    world.names(records={"inner.test": ["10.9.9.9"]})
    world.box = world.cerco()
    return world


def sh(net, script, *flags):
    return net.box.run(*flags, "--", "sh", "-c", script, policy=POLICY)


CURL = "curl -sS -m 10 -o /dev/null -w '%{http_code}\\n' "


def test_f13_what_is_public_is_open(net):
    """Names, addresses and ports that no rule names; the server saw each."""
    result = sh(net, f"{CURL} https://any.test/; {CURL} http://plain.test/; {CURL} http://{PUBLIC[1]}/;"
                     f"{CURL} -k https://{PUBLIC[0]}/")
    assert result.text.split() == ["200"] * 4, result
    rules = {event["rule"] for event in result.of_type("egress.decision")}
    assert rules == {"network.default"}
    assert result.report["refused"] == []


@pytest.mark.parametrize("url", ["http://10.9.9.9/", "http://inner.test/", "http://169.254.169.254/", "http://127.0.0.2/"])
def test_f13_what_is_not_public_stays_closed(net, url):
    result = sh(net, f"{CURL} {url}")
    assert "200" not in result.text, result
    assert net.lan.entries() == []


def test_f15_f16_denials_and_rules_beat_the_default(net):
    """Rules compose: the narrow one looks inside, the denials hold for names and for addresses."""
    result = sh(net, f"{CURL} https://api.test/v1/x; {CURL} -X POST https://api.test/v1/x; {CURL} http://api.test/v1/x;"
                     f"{CURL} https://a.evil.test/; {CURL} -k https://a.evil.test/ --connect-to ::{PUBLIC[0]}:443;"
                     f"{CURL} http://denied.test/; {CURL} http://{PUBLIC[2]}/")
    assert result.text.split()[:2] == ["200", "403"], result
    assert "200" not in result.text.split()[2:], result
    assert net.denied.entries() == []
    kinds = {(one["host"], one["kind"]) for one in result.report["refused"]}
    assert ("api.test", "method") in kinds and ("api.test", "port") in kinds, kinds


def test_check_says_how_wide_it_is(net):
    path = net.folder / "public.toml"
    path.write_text(POLICY)
    said = net.box("check", "--policy", path, "--", "true")
    assert "the whole public internet" in said.text and "every public address" in said.text, said
