"""Where a secret goes: the query, a segment of the path, a field of the body; and what comes back cut off."""
# lane: full
# sanitized
import json

import pytest

from world import DNS

TOKEN = 'sk-test/9f8e7d6c"5b4a39+281706'
URL = "sk-test%2F9f8e7d6c%225b4a39%2B281706"
POLICY = f"""
version = 1
task = "places"
[network]
resolvers = ["{DNS}"]
[[egress]]
host = "api.test"
methods = ["GET", "POST"]
paths = ["/**"]
[[credential]]
name = "api"
source = {{ env = "API_KEY" }}
hosts = ["api.test"]
methods = ["GET", "POST"]
paths = ["/**"]
env = {{ API_KEY = "secret" }}
"""


@pytest.fixture(scope="module")
def net(world):
    world.api = world.https("api.test", answers={"/cut": {"body": f"your key is {TOKEN[:-1]}"}})
    world.box = world.cerco(environment={"API_KEY": TOKEN})
    return world


def run(net, inject, script, **kwargs):
    net.api.clear()
    result = net.box.run("--", "sh", "-c", script, policy=POLICY + f"inject = {inject}\n", **kwargs)
    for form in (TOKEN, URL, json.dumps(TOKEN)[1:-1]):
        assert form not in result.text + result.error, "the secret came out"
        for path in (net.box.state / "journal").glob("*.jsonl"):
            assert form not in path.read_text(), "the secret is in the journal"
    return result


def requests(net):
    return [entry for entry in net.api.entries() if entry["event"] == "request"]


CODE = "-sS -m 20 -o /dev/null -w '%{http_code}\\n'"


def test_in_the_query(net):
    result = run(net, '{ query = "key" }', f'curl {CODE} "https://api.test/v1?a=1&key=$API_KEY"; curl -sS "https://api.test/echo?key=$API_KEY"')
    assert result.text.splitlines()[0] == "200", result
    assert requests(net)[0]["path"] == f"/v1?a=1&key={URL}"
    assert json.loads(result.text.split("\n", 1)[1])["path"].startswith("/echo?key=cerco_ph_"), result


def test_in_the_path(net):
    result = run(net, '{ path = 1, format = "bot{secret}" }', f'curl {CODE} "https://api.test/bot$API_KEY/getMe"')
    assert result.text.strip() == "200", result
    assert [r["path"] for r in requests(net)] == [f"/bot{URL}/getMe"]


@pytest.mark.parametrize("flags, wanted", [
    ('--data-urlencode "token=$API_KEY" -d a=b', f"token={URL}&a=b"),
    ('-H "Content-Type: application/json" -d "{\\"a\\":1,\\"token\\":\\"$API_KEY\\"}"', json.dumps({"a": 1, "token": TOKEN}, separators=(",", ":"))),
    ('-H "Content-Type: application/json" -H "Transfer-Encoding: chunked" -d "{\\"token\\":\\"$API_KEY\\"}"', json.dumps({"token": TOKEN}, separators=(",", ":"))),
])
def test_in_a_field_of_the_body(net, flags, wanted):
    result = run(net, '{ body = "token" }', f"curl {CODE} {flags} https://api.test/v1/login")
    assert result.text.strip() == "200", result
    [request] = requests(net)
    assert request["body"] == wanted
    assert request["headers"]["content-length"] == str(len(wanted))


@pytest.mark.parametrize("inject, command", [
    ('{ query = "key" }', 'curl {CODE} "https://api.test/v1?k=$API_KEY"'),
    ('{ query = "key" }', 'curl {CODE} "https://api.test/v1?key=$API_KEY&api_key=mine"'),
    ('{ query = "key" }', 'curl {CODE} -H "Authorization: Bearer $API_KEY" https://api.test/v1'),
    ('{ path = 1 }', 'curl {CODE} "https://api.test/v1/$API_KEY"'),
    ('{ body = "token" }', 'curl {CODE} -d "token=mine" https://api.test/v1'),
    ('{ header = "X-Key" }', 'curl {CODE} -H "X-Key: $API_KEY" "https://api.test/v1?access_token=mine"'),
])
def test_another_place_or_another_key_is_refused(net, inject, command):
    """N172"""
    result = run(net, inject, command.replace("{CODE}", CODE))
    assert result.text.strip() == "403", result
    assert requests(net) == []
    assert not result.of_type("credential.used")


@pytest.mark.parametrize("path", ["/login/oauth/access_token", "/app/installations/7/access_tokens", "/v1/sys/wrapping/unwrap"])
def test_where_keys_are_handed_out_only_a_named_binding_goes(net, path):
    """N175, N176: the answer would be a key that no binding covers."""
    net.api.clear()
    script = f'curl {CODE} -X POST -H "X-Key: $API_KEY" https://api.test{path}'
    result = run(net, '{ header = "X-Key" }', script)
    assert result.text.strip() == "403" and requests(net) == [], result
    named = (POLICY + 'inject = { header = "X-Key" }\n').replace('paths = ["/**"]\nenv', f'paths = ["{path}"]\nenv')
    result = net.box.run("--", "sh", "-c", script, policy=named)
    assert result.text.strip() == "200" and len(requests(net)) == 1, result


def test_in_another_field_it_passes_as_it_is(net):
    result = run(net, '{ body = "token" }', f'curl {CODE} -d "said=$API_KEY" https://api.test/v1; echo $API_KEY')
    code, placeholder = result.text.split()
    assert code == "200" and [r["body"] for r in requests(net)] == [f"said={placeholder}"], result


def test_an_answer_that_ends_within_the_secret_is_masked(net):
    """N154: all but the last byte is the secret, too."""
    script = 'curl -sS -H "X-Key: $API_KEY" https://api.test/cut; echo; echo $API_KEY'
    result = run(net, '{ header = "X-Key" }', script)
    said, placeholder = result.text.split("\n")[:2]
    assert TOKEN[:8] not in said and said.startswith("your key is " + placeholder[:20]), result
    free = net.box.run("--", "sh", "-c", script, policy=POLICY + 'inject = { header = "X-Key" }\n', without=["redaction"])
    assert TOKEN[:-1] in free.text, free
