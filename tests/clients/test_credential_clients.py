"""Official clients that hold placeholders only, against servers that want the real key."""
# lane: full
import base64
import json
import os
import pathlib
import shutil
import subprocess

import pytest

import test_clients
from cerco import BUILD
from world import DNS, PUBLIC

CLIENTS = BUILD.parent / "build" / "clients" / "node_modules"
NODE = pytest.mark.skipif(not CLIENTS.exists() or not shutil.which("node"), reason="no clients from npm (tools/install-clients)")
KEYS = {"OPENAI": "sk-proj-really-0123456789abcdef", "GIT": "ghp_really0123456789abcdefABCDEF",
        "NPM": "npm_really0123456789abcdefABCDEF", "S3": "AKIAREALLY0000000001:really/secret+access0123456789abcdefgh"}
S3 = "data.s3.eu-central-1.amazonaws.com"


def bound(name, host, inject, env, methods='["GET", "POST"]'):
    return f"""
[[egress]]
host = "{host}"
methods = ["GET", "POST", "PUT", "DELETE"]
encoded_slash = true
[[credential]]
name = "{name.lower()}"
source = {{ env = "{name}" }}
hosts = ["{host}"]
methods = {methods}
paths = ["/**"]
inject = {inject}
env = {{ {env} }}
"""


BEARER = '{ header = "Authorization", format = "Bearer {secret}" }'
POLICY = f"""
version = 1
[environment.set]
NODE_PATH = "{CLIENTS}"
AWS_DEFAULT_REGION = "eu-central-1"
AWS_EC2_METADATA_DISABLED = "true"
AWS_MAX_ATTEMPTS = "1"
GIT_TERMINAL_PROMPT = "0"
[network]
resolvers = ["{DNS}"]
[filesystem]
read_only = [{f'"{CLIENTS}"' if CLIENTS.exists() else ''}]
""" + "".join([
    bound("OPENAI", "api.openai.com", BEARER, 'OPENAI_API_KEY = "secret"'),
    bound("GIT", "git.test", '{ basic = "x-access-token" }', 'GH_TOKEN = "secret"'),
    bound("NPM", "npm.test", BEARER, 'NPM_TOKEN = "secret"', '["GET"]'),
    bound("S3", S3, '{ sigv4 = { region = "eu-central-1", service = "s3" } }',
          'AWS_ACCESS_KEY_ID = "access_key_id", AWS_SECRET_ACCESS_KEY = "secret_access_key"', '["GET", "PUT", "POST", "DELETE"]')])

OPENAI = r"""
const OpenAI = require('openai');
const client = new OpenAI({ maxRetries: 0 });
(async () => {
  const answer = await client.chat.completions.create({ model: 'm', messages: [{ role: 'user', content: 'key is ' + process.env.OPENAI_API_KEY }] });
  console.log(answer.choices[0].message.content);
})();
"""


def json_answer(value):
    return {"headers": {"Content-Type": "application/json"}, "body": json.dumps(value)}


@pytest.fixture(scope="module")
def net(world, tmp_path_factory):
    basic = base64.b64encode(f"x-access-token:{KEYS['GIT']}".encode()).decode()
    world.openai = world.https("api.openai.com", requires={"authorization": f"Bearer {KEYS['OPENAI']}"}, answers={
        "/v1/chat/completions": json_answer({"id": "a", "object": "chat.completion", "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "got it"}}]})})
    missing = {path: {"status": 404} for path in ("/small.git/HEAD.lock",)}
    world.git = world.https("git.test", address=PUBLIC[2], requires={"authorization": f"Basic {basic}"}, challenge='Basic realm="private"',
                            answers={**missing, **test_clients.git_files(tmp_path_factory.mktemp("git"))})
    world.npm = world.https("npm.test", address=PUBLIC[3], requires={"authorization": f"Bearer {KEYS['NPM']}"},
                            answers=test_clients.npm_files("npm.test"))
    world.box = world.cerco(environment=KEYS)
    return world


@pytest.fixture(scope="module")
def s3(net, tmp_path_factory):
    net.names(records={S3: [PUBLIC[4]]})
    identity, secret = KEYS["S3"].split(":")
    config = {"address": PUBLIC[4], "certificate": net.authority.leaf(S3), "folder": str(tmp_path_factory.mktemp("s3")),
              "id": identity, "secret": secret}
    script = pathlib.Path(__file__).parents[1] / "support" / "s3rver.js"
    server = subprocess.Popen(["nsenter", f"--net=/run/netns/{net.net}", "node", str(script), json.dumps(config)],
                              stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, env={**os.environ, "NODE_PATH": str(CLIENTS)})
    assert server.stdout.readline() == b"ready\n"
    yield server
    server.terminate()
    server.wait(60)


def run(net, script, *flags):
    result = net.box.run(*flags, "--", "sh", "-c", script, policy=POLICY)
    journal = "".join(path.read_text() for path in (net.box.state / "journal").glob("*.jsonl"))
    for key in KEYS.values():
        for part in key.split(":"):
            assert part not in result.text + result.error + journal, f"{part} came out"
    return result


@NODE
def test_the_sdk_of_openai_for_node(net):
    result = run(net, 'node -e "$PROGRAM"', "--env", f"PROGRAM={OPENAI}")
    assert result.status == 0 and result.text.strip() == "got it", result
    assert result.of_type("credential.used")
    [asked] = [e for e in net.openai.entries() if e["event"] == "request"]
    assert "sk-proj-really" not in asked["body"], "what the agent quotes of its environment stays a placeholder"


@pytest.mark.parametrize("way", [
    "git clone -q https://x-access-token:$GH_TOKEN@git.test/small.git",
    'git -c credential.helper="!f() { echo username=x-access-token; echo password=$GH_TOKEN; }; f" clone -q https://git.test/small.git',
    'git -c http.extraHeader="Authorization: Basic $(printf x-access-token:$GH_TOKEN | base64 -w0)" clone -q https://git.test/small.git',
])
def test_git_clone_of_a_private_repository(net, way):
    result = run(net, f"{way} && cat small/word")
    assert result.status == 0 and result.text.strip() == "got it", result
    assert run(net, "git clone -q https://git.test/small.git").status != 0, "without the placeholder it is private"


def test_npm_with_a_private_registry(net):
    install = "npm install --silent --no-audit --no-fund --registry https://npm.test/npm/ smallpack"
    result = run(net, f"echo '//npm.test/npm/:_authToken=${{NPM_TOKEN}}' > .npmrc; {install} && node -e 'require(\"smallpack\")'")
    assert result.status == 0 and "got it" in result.text, result
    assert run(net, install).status != 0, "without the placeholder it is private"


@NODE
def test_aws_s3_against_a_server_that_verifies(net, s3):
    result = run(net, f"""
set -e
head -c 20000000 /dev/urandom > large; echo small > small
aws s3 cp --quiet small s3://data/small
aws s3 cp --quiet large s3://data/folder/large
aws s3 ls s3://data/ --recursive | wc -l
aws s3 cp --quiet s3://data/small - ; aws s3 cp --quiet s3://data/folder/large back; cmp large back && echo same
aws s3api head-object --bucket data --key folder/large --query ContentLength
aws s3 rm --quiet s3://data/small; aws s3 ls s3://data/ --recursive | wc -l
curl -sS -o /dev/null -w '%{{http_code}} %header{{x-cerco-deny}}\\n' "$(aws s3 presign s3://data/folder/large)"
""")
    assert result.text.split("\n")[:6] == ["2", "small", "same", "20000000", "1", "403 " + result.text.split("403 ")[-1].strip()], result
    assert any(e["method"] == "POST" for e in result.of_type("credential.used")), "it went in parts"
