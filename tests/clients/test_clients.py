"""Real clients with no set-up by the user: through a tunnel and through TLS that ends at the gateway; psql and git over SSH through a raw rule."""
# lane: full
import base64
import hashlib
import io
import json
import pathlib
import subprocess
import tarfile
import zipfile

import pytest

from cerco import GUARD, wait_until
from world import DNS, PUBLIC

POLICY = f"""
version = 1
[network]
resolvers = ["{DNS}"]
[[egress]]
host = "seen.test"
methods = ["GET", "POST"]
[[egress]]
host = "sealed.test"
[[egress]]
tcp = "db.test:5432"
"""
WAYS = {"seen.test": "terminated", "sealed.test": "opaque"}

PYTHON = "/usr/bin/python3 - <<'X'\n{}\nX"
# Each prints `got it`, and none of them is told of a proxy or an authority.
CLIENTS = {
    "curl": "curl -sS https://HOST/word",
    "wget": "wget -qO- https://HOST/word",
    "git": "git clone -q https://HOST/small.git && cat small/word",
    "pip": "/usr/bin/python3 -m pip install -q --index-url https://HOST/simple/ smallwheel && /usr/bin/python3 -c 'import smallwheel'",
    "npm": "npm install --silent --no-audit --no-fund --registry https://HOST/npm/ smallpack && node -e 'require(\"smallpack\")'",
    "urllib": PYTHON.format("import urllib.request\nprint(urllib.request.urlopen('https://HOST/word').read().decode())"),
    "requests": PYTHON.format("import requests\nprint(requests.get('https://HOST/word').text)"),
    "httpx": PYTHON.format("import httpx\nprint(httpx.get('https://HOST/word').text)"),
    "aiohttp": PYTHON.format("import aiohttp, asyncio\nasync def main():\n  async with aiohttp.ClientSession() as s:\n"
                             "    async with s.get('https://HOST/word') as r: print(await r.text())\nasyncio.run(main())"),
    "node fetch": "node -e 'fetch(\"https://HOST/word\").then(r => r.text()).then(console.log)'",
    "websockets": PYTHON.format("import asyncio, websockets\nasync def main():\n  async with websockets.connect('wss://HOST/socket') as s:\n"
                                "    await s.send('got it'); print(await s.recv())\nasyncio.run(main())"),
}


def encoded(data):
    return {"base64": base64.b64encode(data).decode()}


def git_files(folder):
    """A repository as a plain web server has it (git-update-server-info)."""
    work, bare = folder / "work", folder / "small.git"

    def git(*args, at):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b.test", *args], cwd=at, check=True, capture_output=True)
    work.mkdir()
    git("init", "-q", "-b", "main", at=work)
    (work / "word").write_text("got it\n")
    git("add", "word", at=work)
    git("commit", "-q", "-m", "one", at=work)
    git("clone", "-q", "--bare", str(work), str(bare), at=folder)
    git("update-server-info", at=bare)
    return {f"/small.git/{path.relative_to(bare)}": encoded(path.read_bytes()) for path in bare.rglob("*") if path.is_file()}


def wheel_files():
    whole = io.BytesIO()
    meta = "smallwheel-1.0.dist-info"
    files = {"smallwheel.py": "print('got it')\n", f"{meta}/METADATA": "Metadata-Version: 2.1\nName: smallwheel\nVersion: 1.0\n",
             f"{meta}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    files[f"{meta}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{meta}/RECORD"])
    with zipfile.ZipFile(whole, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    name = "smallwheel-1.0-py3-none-any.whl"
    page = {"headers": {"Content-Type": "text/html"}, "body": f'<html><a href="/wheels/{name}">{name}</a></html>'}
    return {"/simple/smallwheel/": page, f"/wheels/{name}": encoded(whole.getvalue())}


def npm_files(host):
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w:gz") as archive:
        for name, text in {"package/package.json": json.dumps({"name": "smallpack", "version": "1.0.0", "main": "i.js"}),
                           "package/i.js": "console.log('got it')"}.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    data = whole.getvalue()
    hashed = "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()
    about = {"name": "smallpack", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {
        "name": "smallpack", "version": "1.0.0", "main": "i.js",
        "dist": {"tarball": f"https://{host}/npm/smallpack/-/smallpack-1.0.0.tgz", "integrity": hashed}}}}
    return {"/npm/smallpack": {"headers": {"Content-Type": "application/json"}, "body": json.dumps(about)},
            "/npm/smallpack/-/smallpack-1.0.0.tgz": encoded(data)}


@pytest.fixture(scope="module")
def net(world, tmp_path_factory):
    common = {"/word": {"body": "got it\n"}, **git_files(tmp_path_factory.mktemp("git")), **wheel_files()}
    missing = {path: {"status": 404} for path in ("/small.git/HEAD.lock",)}
    for number, host in enumerate(WAYS):
        world.https(host, address=PUBLIC[number], answers={**missing, **common, **npm_files(host)}, websocket="messages")
    world.zone["db.test"] = [PUBLIC[3]]
    world.zone["ssh.test"] = [PUBLIC[3]]
    world.names()
    world.db = world.serve("postgres", {"address": PUBLIC[3], "port": 5432, "row": "got it"})
    world.box = world.cerco()
    return world


@pytest.mark.parametrize("host", WAYS)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_works_without_set_up(net, client, host):
    result = net.box.run("--", "sh", "-c", CLIENTS[client].replace("HOST", host), policy=POLICY)
    assert result.status == 0 and "got it" in result.text, result
    seen = {d["tls"] for d in result.of_type("egress.decision") if d["host"] == host}
    assert seen == {WAYS[host]}, result.events


def test_psql_through_a_raw_rule(net):
    result = net.box.run("--", "psql", "-At", "-h", "db.test", "-U", "someone", "-d", "some", "-c", "select word", policy=POLICY)
    assert result.status == 0 and result.text.strip() == "got it", result
    assert [e["text"] for e in net.db.entries() if e["event"] == "query"] == ["select word"]
    assert [(d["way"], d["port"]) for d in result.of_type("egress.decision")] == [("tcp", 5432)]


def test_git_over_ssh_through_a_raw_rule(net, tmp_path):
    git_files(tmp_path)
    key, host_key = tmp_path / "key", tmp_path / "host_key"
    for path in (key, host_key):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
    config = tmp_path / "sshd_config"
    config.write_text(f"ListenAddress {PUBLIC[3]}:22\nHostKey {host_key}\nAuthorizedKeysFile {key}.pub\nStrictModes no\nUsePAM no\n"
                      f"PermitRootLogin prohibit-password\nPidFile none\n")
    wanted = pathlib.Path("/run/sshd")  # sshd does not start without it
    made = not wanted.exists()
    wanted.mkdir(exist_ok=True)
    server = subprocess.Popen(["nsenter", f"--net=/run/netns/{net.net}", "/usr/sbin/sshd", "-D", "-e", "-f", config], stderr=subprocess.PIPE)
    try:
        wait_until(lambda: net.inside(net.net, "nc", "-z", PUBLIC[3], "22").returncode == 0, what="sshd")
        clone = (f"chmod 600 key && GIT_SSH_COMMAND='ssh -i key -o StrictHostKeyChecking=accept-new' git clone -q "
                 f"ssh://root@ssh.test{tmp_path}/small.git && cat small/word")
        result = net.box.run("--in", str(key), "--", "sh", "-c", clone, policy=POLICY + '[[egress]]\ntcp = "ssh.test:22"\n')
    finally:
        server.terminate()
        said = server.communicate(timeout=GUARD)[1]
        if made:
            wanted.rmdir()
    assert result.status == 0 and "got it" in result.text, (result, said)
    assert [(d["way"], d["host"], d["port"]) for d in result.of_type("egress.decision")] == [("tcp", "ssh.test", 22)]
