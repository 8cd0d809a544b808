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
    world.own = world.serve("http", {"address": "198.51.7.2", "port": 80}, namespace=world.host)
    world.attached = world.serve("http", {"address": "198.51.7.1", "port": 80})
    world.names(records={"inner.test": ["10.9.9.9"], "own.test": ["198.51.7.2"], "attached.test": ["198.51.7.1"]})
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


@pytest.mark.parametrize("url", ["http://10.9.9.9/", "http://inner.test/", "http://169.254.169.254/", "http://127.0.0.2/",
                                 "http://198.51.7.2/", "http://own.test/", "http://198.51.7.1/", "http://attached.test/",
                                 "http://host.cerco.internal/"])
def test_f13_what_is_not_public_stays_closed(net, url):
    result = sh(net, f"{CURL} {url}")
    assert "200" not in result.text, result
    assert net.lan.entries() == [] and net.own.entries() == [] and net.attached.entries() == []


def test_the_servers_that_stay_closed_can_be_reached(net):
    """The control: without the guard the same requests arrive."""
    for url in ("http://inner.test/", "http://own.test/", "http://attached.test/"):
        result = net.box.run("--", "sh", "-c", f"{CURL} {url}", policy=POLICY, without=["address_guard"])
        assert result.text.split() == ["200"], result
    for server in (net.lan, net.own, net.attached):
        assert server.entries() != []
        server.clear()


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


@pytest.mark.parametrize("url", ["https://any.test/", "http://plain.test/", "http://plain.test/a%2Fb", f"http://{PUBLIC[1]}/",
                                 "https://api.test/v1/x", "https://api.test/v2/x", "http://api.test/v1/x",
                                 "https://a.evil.test/", "http://denied.test/", f"http://{PUBLIC[2]}/", "http://10.9.9.9/",
                                 "http://169.254.169.254/"])
def test_why_agrees_with_what_happens(net, url):
    path = net.folder / "public.toml"
    path.write_text(POLICY)
    why = net.box("why", url, "--policy", path).status
    happened = sh(net, f"{CURL} {url}").text.split()[-1]
    resolved = url == "http://denied.test/"  # `why` asks no resolver; what the name leads to is judged at the dial
    assert (why == 0) == (happened == "200" or resolved), (why, happened)


def test_check_says_how_wide_it_is(net):
    path = net.folder / "public.toml"
    path.write_text(POLICY)
    said = net.box("check", "--policy", path, "--", "true")
    assert "the whole public internet" in said.text and "every public address" in said.text, said
