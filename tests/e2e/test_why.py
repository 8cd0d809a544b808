"""`cerco why` and `cerco check` say what the gateway then does."""
# lane: full
import json

import pytest

from world import DNS, PUBLIC

POLICY = f"""
version = 1
task = "why"
[network]
resolvers = ["{DNS}"]
[[egress]]
host = "api.test"
methods = ["GET", "POST"]
paths = ["/v1/**"]
[[deny]]
host = "api.test"
paths = ["/v1/admin/**"]
[[egress]]
host = "tunnel.test"
[[egress]]
host = "*.cdn.test"
[[egress]]
host = "plain.test"
ports = [80]
methods = ["GET"]
[[credential]]
name = "api"
source = {{ env = "API_KEY" }}
hosts = ["api.test"]
methods = ["GET"]
paths = ["/v1/**"]
inject = {{ header = "Authorization", format = "Bearer {{secret}}" }}
env = {{ API_KEY = "secret" }}
"""
URLS = [
    ("GET", "https://api.test/v1/me"), ("POST", "https://api.test/v1/me"), ("HEAD", "https://api.test/v1/x/y"),
    ("DELETE", "https://api.test/v1/me"), ("GET", "https://api.test/v2/me"), ("GET", "https://api.test/v1/admin/users"),
    ("GET", "https://api.test:8443/v1/me"), ("GET", "http://api.test/v1/me"), ("GET", "https://API.test/v1/me"),
    ("GET", "https://tunnel.test/anything"), ("DELETE", "https://tunnel.test/x"), ("GET", "https://a.cdn.test/"),
    ("GET", "https://cdn.test/"), ("GET", "https://b.a.cdn.test/"), ("GET", "http://plain.test/"), ("HEAD", "http://plain.test/x"),
    ("POST", "http://plain.test/"), ("GET", "https://evil.test/"), ("GET", "http://169.254.169.254/latest"), ("GET", "http://10.9.9.9/"),
    ("GET", "https://api.test/v1/x?_method=DELETE"), ("GET", "https://api.test/v1/x?%5fmethod=PUT"), ("GET", "https://api.test/v1/x?\\"),
    ("GET", "https://api.test/v1/x?\u00e9"), ("GET", "https://api.test/v1/x?a=%C3%A9"), ("PRI", "https://api.test/v1/x"),
    ("GET", "https://api.test/v1/%2561dmin/x"), ("post", "https://api.test/v1/x"), ("GET", "https://tunnel.test/x?_method=DELETE"),
    ("GET", "https://metadata.google.internal/"), ("GET", "http://[::ffff:10.9.9.9]/"), ("GET", "http://127.0.0.2:81/"),
]


@pytest.fixture(scope="module")
def net(world):
    world.https(["api.test", "tunnel.test", "a.cdn.test", "cdn.test", "evil.test", "b.a.cdn.test"])
    world.http("plain.test", address=PUBLIC[1])
    world.box = world.cerco(environment={"API_KEY": "sk-why-0123456789abcdef"})
    world.file = world.folder / "why.toml"
    world.file.write_text(POLICY)
    return world


def test_why_agrees_with_what_happens(net):
    """F103."""
    program = ("import json, subprocess, sys\nfor method, url in json.load(sys.stdin):\n"
               "    head = ['-I'] if method == 'HEAD' else ['-X', method]\n"
               "    done = subprocess.run(['curl', '-sS', '-g', '-m', '15', '-o', '/dev/null', '-w', '%{http_code}', *head, url], capture_output=True, text=True)\n"
               "    print(json.dumps([method, url, done.stdout]), flush=True)\n")
    result = net.box.run("--", "python3", "-c", program, input=json.dumps(URLS).encode(), policy=POLICY)
    assert result.status == 0, result
    answered = {(m, u): code for m, u, code in map(json.loads, result.text.splitlines())}
    assert len(answered) == len(URLS)
    for method, url in URLS:
        why = net.box("why", url, "--method", method, "--policy", net.file)
        allowed = answered[(method, url)] == "200"
        assert (why.status == 0) == allowed, (method, url, answered[(method, url)], why)
        assert why.status in (0, 1)
        assert why.text.strip()


def test_check_names_the_widest_way_out(net):
    text = POLICY.replace('[[egress]]\nhost = "tunnel.test"\n', "").replace('[[egress]]\nhost = "*.cdn.test"\n', "")
    path = net.folder / "narrow.toml"
    path.write_text(text)
    result = net.box("check", "--policy", path, "--", "true")
    assert result.status == 0, result
    widest = [line for line in result.text.splitlines() if "widest" in line.lower()]
    assert widest, result
    after = result.text[result.text.lower().index("widest"):][:400]
    assert "api.test" in after, result
    for word in ("api.test:443", "kernel", "microVM", "memory"):
        assert word.lower() in result.text.lower(), (word, result.text)
    assert net.box("check", "--strict", "--policy", path, "--", "true").status == 1
    json.loads(net.box("check", "--json", "--policy", path, "--", "true").text)


def test_check_and_run_plan_the_same(net):
    """One plan: what check prints is what the journal says was planned."""
    planned = json.loads(net.box("check", "--json", "--policy", net.file, "--", "true").text)
    ran = net.box.run("--policy", net.file, "--", "true").of_type("run.planned")[0]
    assert planned["policy_sha256"] == ran["policy_sha256"]

    def steps(listed):
        return [step if isinstance(step, str) else f"{step['step']} {step['what']}".strip() for step in listed]
    assert steps(planned["steps"]) == steps(ran["steps"])


def test_policy_show_round_trips(net):
    shown = net.box("policy", "show", "--policy", net.file)
    assert shown.status == 0, shown
    again = net.folder / "again.toml"
    again.write_text(shown.text)
    other = net.box("policy", "show", "--policy", again, "--json")
    assert other.status == 0 and json.loads(other.text) == json.loads(net.box("policy", "show", "--policy", net.file, "--json").text)
    assert "why.toml:" in shown.text and "default" in shown.text, "each value says where it comes from"
