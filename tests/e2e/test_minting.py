"""Keys that are minted: each source against a server that checks its protocol, and servers that answer wrongly."""
# lane: full
# sanitized
import base64
import json
import os
import signal

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from cerco import find_below, wait_until
from world import DNS, PUBLIC, Authority

SECRET = "hush+long/lived=9f8e7d6c5b4a"
CODE = "-sS -m 60 -o /dev/null -w '%{http_code}\\n'"
AUTH, VAULT, GITHUB, GOOGLE = PUBLIC[1:5]


def keys(private):
    pem = private.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    public = private.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return pem.decode(), public.decode()


RSA = keys(rsa.generate_private_key(public_exponent=65537, key_size=2048))
P256 = keys(ec.generate_private_key(ec.SECP256R1()))


def credential(name, source, paths=None, host="api.test", more=""):
    return f"""
[[credential]]
name = "{name}"
source = {source}
hosts = ["{host}"]
methods = ["GET"]
paths = {json.dumps(paths or [f"/{name}/**"])}
inject = {{ header = "Authorization", format = "Bearer {{secret}}" }}
env = {{ {name.upper()}_KEY = "secret" }}
{more}
"""


def policy(*credentials, hosts=("api.test",)):
    rules = "".join(f'[[egress]]\nhost = "{host}"\nmethods = ["GET", "POST"]\npaths = ["/**"]\n' for host in hosts)
    return f'version = 1\n[network]\nresolvers = ["{DNS}"]\n{rules}' + "".join(credentials)


def get(name, path="x", host="api.test"):
    return f'curl {CODE} -H "Authorization: Bearer ${name.upper()}_KEY" https://{host}/{name}/{path}'


@pytest.fixture(scope="module")
def net(world):
    world.api = world.https("api.test")
    world.box = world.cerco(environment={"SECRET": SECRET, "VAULT_TOKEN": "hvs.hush-0123456789"})
    return world


def tokens(net, name, kind, address=AUTH, port=443, **config):
    server = net.https(name, address=address, port=port, tokens={"kind": kind, **config})
    return server


def seen(server, path=None):
    found = [entry for entry in server.entries() if entry["event"] == "request"]
    return [entry for entry in found if path is None or entry["path"] == path]


def bearers(net, name):
    return [r["headers"]["authorization"] for r in seen(net.api) if r["path"].startswith(f"/{name}/")]


def run(net, text, script, env=None, secrets=(), **kwargs):
    net.api.clear()
    result = net.box.run("--", "sh", "-c", script, policy=text, env=env, **kwargs)
    hidden = [SECRET, base64.b64encode(SECRET.encode()).decode(), "minted-", "rotated-", "hvs.hush", "PRIVATE KEY", *secrets]
    journal = "".join(path.read_text() for path in (net.box.state / "journal").glob("*.jsonl"))
    for shown in (result.text, result.error, journal):
        for form in hidden:
            assert form not in shown, f"{form} came out"
    return result


OAUTH = ('{ oauth2 = { token_url = "https://auth.test/token", client_id = "me:1", scope = "read write", '
         'revoke_url = "https://auth.test/revoke", secret = { env = "SECRET" } } }')


@pytest.fixture(autouse=True)
def ended(net):
    """Servers of a test end with it, so that the next one may have their ports."""
    before = list(net.servers)
    yield
    for server in [one for one in net.servers if one not in before]:
        server.stop()
        net.servers.remove(server)


@pytest.fixture
def auth(net):
    return lambda kind, **config: tokens(net, "auth.test", kind, **config)


def test_client_credentials_once_for_all_that_wait_and_revoked_at_the_end(net, auth):
    server = auth("oauth2", client_id="me:1", secret=SECRET, scope="read write", expires_in=3600)
    result = run(net, policy(credential("api", OAUTH)),
                 "for i in 1 2 3 4 5 6; do " + get("api") + " & done; wait; env; " + get("api"))
    assert result.text.count("200\n") == 7, result
    assert len(seen(server, "/token")) == 1
    [bearer] = set(bearers(net, "api"))
    assert bearer.startswith("Bearer minted-oauth2-1-")
    [revoked] = seen(server, "/revoke")
    assert bearer.removeprefix("Bearer ") in revoked["body"]
    [issued] = result.of_type("credential.issued")
    assert issued["source"] == "oauth2" and issued["lives_s"] == 3600 and issued["renewed"] is False
    assert [e.get("at_source") for e in result.of_type("credential.revoked")] == [None, "done"]
    assert len(result.of_type("credential.used")) == 7


def test_a_key_is_made_anew_before_it_ends(net, auth):
    server = auth("oauth2", client_id="me:1", secret=SECRET, scope="read write", expires_in=5)
    result = run(net, policy(credential("api", OAUTH)),
                 f"for i in $(seq 24); do {get('api')}; sleep 0.25; done")
    assert result.text == "200\n" * 24, result
    # Which one serves when a new one is due is a matter of the clock, and told in mints_test.cc.
    shown = bearers(net, "api")
    each = list(dict.fromkeys(shown))
    assert len(each) >= 2 and shown == [key for key in each for _ in range(shown.count(key))], "no key serves after its successor"
    assert len(seen(server, "/token")) == len(each)


def test_a_refresh_token_that_is_exchanged_at_each_use(net, auth):
    server = auth("oauth2", client_id="me", auth="body", refresh=SECRET, expires_in=1)
    source = ('{ oauth2 = { token_url = "https://auth.test/token", client_id = "me", grant = "refresh_token", auth = "none", '
              'secret = { env = "SECRET" } } }')
    result = run(net, policy(credential("api", source)), f"{get('api')}; sleep 1.1; {get('api')}; sleep 1.1; {get('api')}")
    assert result.text == "200\n200\n200\n", result
    assert len(set(bearers(net, "api"))) == 3
    shown = [entry["body"].split("&refresh_token=")[1].split("&")[0] for entry in seen(server, "/token")]
    assert shown[1:] == ["rotated-1-5e0c", "rotated-2-5e0c"]


BAD = ["redirect", "oversized", "malformed", "twice", "list", "page", "empty", "lines", "packed", "type", "denied", "failing"]


def test_whoever_answers_wrongly_gives_no_key(net, auth):
    elsewhere = net.https("elsewhere.test", address=VAULT)
    server = auth("bad", elsewhere="https://elsewhere.test/token")
    wrong = Authority(net.folder, name="nobody trusts this")
    net.https("wrong.test", address=GITHUB, authority=wrong, tokens={"kind": "bad"})
    net.zone["gone.test"] = []
    forbidden = net.tcp("10.9.9.9", 443)
    net.names(records={"inside.test": ["10.9.9.9"], "closed.test": ["93.184.216.34"]})
    urls = {kind: f"https://auth.test/bad/{kind}" for kind in BAD}
    urls |= {"wrong": "https://wrong.test/bad/good", "gone": "https://gone.test/bad/good",
             "inside": "https://inside.test/bad/good", "closed": "https://closed.test:9/bad/good",
             "good": "https://auth.test/bad/good"}
    source = '{{ oauth2 = {{ token_url = "{}", client_id = "me", secret = {{ env = "SECRET" }} }} }}'
    text = policy(*[credential(kind, source.format(url)) for kind, url in urls.items()])
    script = "; ".join(f"echo {kind} $({get(kind)})" for kind in urls)
    result = run(net, text, script, secrets=["hush-hush"])
    assert result.text.splitlines() == [f"{kind} {200 if kind == 'good' else 403}" for kind in urls], result
    assert bearers(net, "good") == ["Bearer minted-bad-7c1e55d9a0b3f824"]
    assert len(seen(net.api)) == 1, "nothing else went out, and no placeholder"
    assert elsewhere.entries() == [] and forbidden.entries() == []
    assert len([entry for entry in server.entries() if entry["event"] == "request"]) == len(BAD) + 1
    details = {e["credential"]: e["detail"] for e in result.of_type("credential.refused")}
    assert details == {"redirect": "status 307", "oversized": "size", "malformed": "no key in the answer",
                       "twice": "no key in the answer", "list": "no key in the answer", "page": "no key in the answer",
                       "empty": "no key in the answer", "lines": "a key that is none", "packed": "encoding",
                       "type": "a key of another type", "denied": "status 400: invalid_client", "failing": "status 503",
                       "wrong": "certificate", "gone": "resolve", "inside": "address", "closed": "connect"}


def test_a_slow_server_holds_up_its_own_key_alone(net, auth):
    auth("bad")
    source = '{{ oauth2 = {{ token_url = "https://auth.test/bad/{}", client_id = "me", secret = {{ env = "SECRET" }} }} }}'
    text = policy(credential("slow", source.format("slow")), credential("plain", '{ env = "SECRET" }'))
    started = f"({get('slow')} > /tmp/slow) & sleep 0.3; {get('plain')}; test ! -s /tmp/slow && echo waits; wait; cat /tmp/slow"
    result = run(net, text, started)
    assert result.text.split() == ["200", "waits", "403"], result
    assert {e["detail"] for e in result.of_type("credential.refused")} == {"timeout"}


def test_a_range_that_the_source_opens(net, auth):
    server = net.https("vault.test", address="10.9.9.9", tokens={"kind": "vault", "token": "hvs.hush-0123456789"})
    net.names(records={"vault.test": ["10.9.9.9"]})
    source = ('{ vault = { url = "https://vault.test", read = "secret/data/app", field = "password", addresses = ["10.9.9.0/24"], '
              'secret = { env = "VAULT_TOKEN" } } }')
    result = run(net, policy(credential("api", source)), f"{get('api')}; {get('api')}")
    assert result.text == "200\n200\n", result
    assert set(bearers(net, "api")) == {"Bearer minted-kv-1-7c1e55d9a0b3f824"}
    assert [entry["path"] for entry in seen(server)] == ["/v1/secret/data/app"]


@pytest.mark.parametrize("algorithm, pair", [("RS256", RSA), ("ES256", P256)])
def test_jwt_bearer(net, auth, algorithm, pair):
    auth("jwt_bearer", public=pair[1], algorithm=algorithm, issuer="me", subject="user", key_id="k1", audience="https://auth.test/")
    source = (f'{{ jwt_bearer = {{ token_url = "https://auth.test/token", issuer = "me", subject = "user", audience = "https://auth.test/", '
              f'algorithm = "{algorithm}", key_id = "k1", secret = {{ env = "PEM" }} }} }}')
    result = run(net, policy(credential("api", source)), get("api"), env={"PEM": pair[0]})
    assert result.text == "200\n", result
    assert bearers(net, "api") == ["Bearer minted-jwt-1-7c1e55d9a0b3f824"]
    # A key of the other kind signs nothing.
    other = P256 if pair is RSA else RSA
    result = run(net, policy(credential("api", source)), get("api"), env={"PEM": other[0]})
    assert result.text == "403\n" and seen(net.api) == [], result
    assert result.of_type("credential.refused")[0]["detail"] == "cannot sign with it"


def test_a_lease_of_vault_is_renewed_and_given_back(net, auth):
    server = auth("vault", token="hvs.hush-0123456789", namespace="team", lease=5)
    source = ('{ vault = { url = "https://auth.test", read = "database/creds/app", field = "password", namespace = "team", '
              'secret = { env = "VAULT_TOKEN" } } }')
    result = run(net, policy(credential("api", source)), f"{get('api')}; sleep 4.2; {get('api')}; sleep 2; {get('api')}")
    assert result.text == "200\n200\n200\n", result
    assert set(bearers(net, "api")) == {"Bearer minted-db-1-7c1e55d9a0b3f824"}
    assert [entry["path"] for entry in seen(server)] == ["/v1/database/creds/app", "/v1/sys/leases/renew", "/v1/sys/leases/revoke"]
    assert [e["renewed"] for e in result.of_type("credential.issued")] == [False, True]
    assert [e.get("at_source") for e in result.of_type("credential.revoked")] == [None, "done"]


GH = '{ github_app = { url = "https://api.github.test", app_id = "42", secret = { env = "PEM" } } }'


def github_policy():
    made = credential("gh", GH, paths=["/repos/acme/app/issues/**", "/repos/acme/app/pulls"], host="api.github.test")
    return policy(made, hosts=["api.github.test"])


@pytest.mark.parametrize("selection, code", [("selected", "404"), ("all", "403")])
def test_a_key_of_github_for_what_the_binding_says(net, selection, code):
    wanted = {"repositories": ["app"], "permissions": {"issues": "read", "pull_requests": "read"}}
    server = tokens(net, "api.github.test", "github", address=GITHUB, port=443, app_id="42", public=RSA[1], wanted=wanted,
                    selection=selection)
    script = f'curl {CODE} -H "Authorization: Bearer $GH_KEY" https://api.github.test/repos/acme/app/issues/1'
    result = run(net, github_policy(), script, env={"PEM": RSA[0]})
    requests = [(entry["method"], entry["path"]) for entry in seen(server)]
    asked = [("GET", "/repos/acme/app/installation"), ("POST", "/app/installations/4711/access_tokens")]
    if code == "403":
        assert result.text == "403\n" and requests == asked, (result, requests)
        assert result.of_type("credential.refused")[0]["detail"] == "a key for more than was asked for"
    else:  # the fake has no issues; what it got is the key
        assert requests == [*asked, ("GET", "/repos/acme/app/issues/1"), ("DELETE", "/installation/token")], requests


def test_a_key_of_google_cut_down_to_the_bucket(net):
    account = json.dumps({"type": "service_account", "client_email": "me@p.test", "private_key_id": "k9", "private_key": RSA[0]}, indent=1)
    options = {"accessBoundary": {"accessBoundaryRules": [{
        "availableResource": "//storage.googleapis.com/projects/_/buckets/data",
        "availablePermissions": ["inRole:roles/storage.objectViewer"]}]}}
    server = tokens(net, "google.test", "gcp", address=GOOGLE, public=RSA[1], email="me@p.test", key_id="k9",
                    audience="https://google.test/token", scope="https://www.googleapis.com/auth/devstorage.read_only", options=options)
    storage = net.https("storage.googleapis.com", address=PUBLIC[0], port=8443)
    source = ('{ gcp = { token_url = "https://google.test/token", sts_url = "https://google.test/v1/token", secret = { env = "ACCOUNT" } } }')
    made = credential("gcs", source, paths=["/storage/v1/b/data/o/**"], host="storage.googleapis.com", more="ports = [8443]")
    text = policy(made, hosts=["storage.googleapis.com"]).replace('methods = ["GET", "POST"]', 'ports = [8443]\nmethods = ["GET", "POST"]')
    script = f'curl {CODE} -H "Authorization: Bearer $GCS_KEY" https://storage.googleapis.com:8443/storage/v1/b/data/o/x'
    result = run(net, text, script, env={"ACCOUNT": account})
    assert result.text == "200\n", result
    assert seen(storage)[0]["headers"]["authorization"] == "Bearer minted-narrow-2-7c1e55d9a0b3f824"
    assert [entry["path"] for entry in seen(server)] == ["/token", "/v1/token"]
    assert result.of_type("credential.issued")[0]["lives_s"] == 3599


def test_a_revocation_reaches_the_vendor_at_once(net, auth):
    server = auth("oauth2", client_id="me:1", secret=SECRET, scope="read write")
    path = net.folder / "revoked.toml"
    path.write_text(policy(credential("api", OAUTH)))
    started = net.box.start("start", "--name", "minted", "--policy", str(path))
    started.wait()
    try:
        assert net.box("exec", "minted", "--", "sh", "-c", get("api")).text == "200\n"
        assert net.box("credential", "revoke", "minted", "api").status == 0
        assert len(seen(server, "/revoke")) == 1
        assert net.box("exec", "minted", "--", "sh", "-c", get("api")).text == "403\n"
        assert len(seen(server, "/token")) == 1
    finally:
        net.box("rm", "minted")


def test_a_minter_that_is_gone_gives_no_key_and_nothing_else_suffers(net, auth):
    auth("oauth2", client_id="me:1", secret=SECRET, scope="read write")
    path = net.folder / "gone.toml"
    path.write_text(policy(credential("api", OAUTH), credential("plain", '{ env = "SECRET" }')))
    net.api.clear()
    process = net.box.start("run", "--policy", str(path), "--", "sh", "-c",
                            f"until test -e go; do sleep 0.05; done; {get('api')}; {get('plain')}",
                            stdout=-1, stderr=-1)
    [name] = wait_until(lambda: [line.split()[0] for line in net.box("ps").text.splitlines()[1:]], what="the run")
    wait_until(lambda: net.box("exec", name, "--", "true").status == 0, what="the command")
    os.kill(find_below(process, "cerco-minter"), signal.SIGKILL)
    assert net.box("exec", name, "--", "touch", "go").status == 0
    out, err = process.communicate(timeout=60)
    assert out.decode() == "403\n200\n", (out, err)
    assert len(seen(net.api)) == 1
