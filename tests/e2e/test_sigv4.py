"""Signatures of AWS: the agent signs with placeholders, what goes on is signed under the real key (N174)."""
# lane: full
# sanitized
import hashlib
import json
import os
import random
import subprocess
import urllib.parse

import pytest

from world import DNS, PUBLIC

KEYS = {"id": "ASIAHUSHHUSH00000001", "secret": "hush/secret+access=key0123456789abcdefgh", "token": "hush-session-token-5b4a39281706=="}
LONG = {"id": "AKIAHUSHHUSH00000002", "secret": "hush/long+lived=key0123456789abcdefghijk"}
HOST = "data.s3.eu-central-1.amazonaws.com"
ROLE = "arn:aws:iam::123456789012:role/agent"
SESSION = {"Version": "2012-10-17", "Statement": [
    {"Effect": "Allow", "Action": ["s3:GetObject", "s3:PutObject", "s3:ListMultipartUploadParts", "s3:AbortMultipartUpload"],
     "Resource": ["arn:aws:s3:::data/*"]},
    {"Effect": "Allow", "Action": ["s3:ListBucket", "s3:GetBucketLocation"], "Resource": ["arn:aws:s3:::data"]}]}
POLICY = f"""
version = 1
[environment.set]
AWS_DEFAULT_REGION = "eu-central-1"
AWS_EC2_METADATA_DISABLED = "true"
AWS_MAX_ATTEMPTS = "1"
[network]
resolvers = ["{DNS}"]
[[egress]]
host = "{HOST}"
methods = ["GET", "PUT", "POST", "DELETE"]
paths = ["/**"]
encoded_slash = true
[[credential]]
name = "s3"
source = SOURCE
hosts = ["{HOST}"]
methods = ["GET", "PUT", "POST"]
paths = ["/**"]
inject = {{ sigv4 = {{ region = "eu-central-1", service = "s3" }} }}
env = {{ AWS_ACCESS_KEY_ID = "access_key_id", AWS_SECRET_ACCESS_KEY = "secret_access_key", AWS_SESSION_TOKEN = "session_token" }}
"""
STATIC = '{ env = "KEYS" }'
STS = f'{{ aws_sts = {{ role = "{ROLE}", region = "eu-central-1", secret = {{ env = "LONG" }} }} }}'
CURL = ('curl -sS -m 20 -w " %{http_code}" --aws-sigv4 aws:amz:eu-central-1:s3 -u "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" '
        '-H "x-amz-content-sha256: UNSIGNED-PAYLOAD"')


@pytest.fixture(scope="module")
def net(world):
    world.s3 = world.https(HOST, tokens={"kind": "s3", **KEYS})
    world.sts = world.https("sts.eu-central-1.amazonaws.com", address=PUBLIC[1], tokens={
        "kind": "sts", **LONG, "role": ROLE, "policy": SESSION, "minted": KEYS})
    world.box = world.cerco(environment={"KEYS": json.dumps({"AccessKeyId": KEYS["id"], "SecretAccessKey": KEYS["secret"],
                                                             "SessionToken": KEYS["token"]}), "LONG": f"{LONG['id']}:{LONG['secret']}"})
    return world


def requests(net):
    return [entry for entry in net.s3.entries() if entry["event"] == "request"]


def run(net, script, source=STATIC, **kwargs):
    net.s3.clear()
    result = net.box.run("--", "sh", "-c", script, policy=POLICY.replace("SOURCE", source), **kwargs)
    journal = "".join(path.read_text() for path in (net.box.state / "journal").glob("*.jsonl"))
    for shown in (result.text, result.error, journal):
        for form in (*KEYS.values(), LONG["secret"]):
            assert form not in shown, f"{form} came out"
    for entry in requests(net):
        assert "AKIA" not in entry["raw"] and "cerco_ph_" not in entry["raw"], "a placeholder went on"
    return result


def test_signed_again_under_the_real_key(net):
    result = run(net, f'{CURL} -T - https://{HOST}/a%20b/c+d < /etc/hostname; {CURL} "https://{HOST}/a%20b/c+d?x=1&a=%2F"; '
                      f'{CURL} https://{HOST}/nothing; {CURL} "https://{HOST}/?list-type=2&prefix=a"')
    assert result.text.count(" 200") == 3 and "sandbox" in result.text, result
    assert "<AWSAccessKeyId>AKIA" in result.text, "the real id was taken out of the answer"
    assert {entry["headers"]["x-amz-security-token"] for entry in requests(net)} == {KEYS["token"]}
    assert len(result.of_type("credential.used")) == 4


def test_under_the_keys_of_an_assumed_role(net):
    result = run(net, f"{CURL} -T - https://{HOST}/role < /etc/hostname; {CURL} https://{HOST}/role", source=STS)
    assert result.text.count(" 200") == 2, result
    assert len([entry for entry in net.sts.entries() if entry["event"] == "request"]) == 1
    [issued] = result.of_type("credential.issued")
    assert issued["source"] == "aws_sts" and 800 < issued["lives_s"] <= 900


REFUSED = {
    "another region": (CURL.replace("eu-central-1", "us-east-1") + f" https://{HOST}/x", "credential-scope"),
    "another service": (CURL.replace(":s3", ":iam") + f" https://{HOST}/x", "credential-scope"),
    "pieces": (CURL.replace("UNSIGNED-PAYLOAD", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD") + f" -T /etc/hostname https://{HOST}/x",
               "credential-streaming"),
    "no payload that is known": (CURL.replace("UNSIGNED-PAYLOAD", "x") + f" https://{HOST}/x", "credential-payload"),
    "presigned": (f'curl -sS -m 20 -w " %{{http_code}}" "https://{HOST}/x?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential='
                  '$AWS_ACCESS_KEY_ID%2F20260101%2Feu-central-1%2Fs3%2Faws4_request&X-Amz-Signature=00"', "credential-place"),
    "a session": (CURL + f' "https://{HOST}/?session"', "credential-hands-out-keys"),
    "a call for keys": (CURL + f' -H "X-Amz-Target: X.GetSessionToken" https://{HOST}/x', "credential-hands-out-keys"),
    "an action for keys": (CURL + f' "https://{HOST}/x?Action=AssumeRole"', "credential-hands-out-keys"),
    "the secret key itself": (f'curl -sS -m 20 -w " %{{http_code}}" -H "X-Key: $AWS_SECRET_ACCESS_KEY" https://{HOST}/x', "credential-place"),
    "the token of a session alone": (f'curl -sS -m 20 -w " %{{http_code}}" -H "X-Amz-Security-Token: $AWS_SESSION_TOKEN" https://{HOST}/x',
                                  "credential-place"),
    "an unbound method": (CURL + f" -X DELETE https://{HOST}/x", "credential-binding"),
    "a signature of another": (CURL.replace("$AWS_ACCESS_KEY_ID", "AKIAOWNOWNOWNOWNOWN1") + f" https://{HOST}/x", "own-credential"),
}


def test_what_is_not_signed(net):
    result = run(net, "\n".join(f"echo; echo '{name}:' $({command} -o /dev/null)" for name, (command, _) in REFUSED.items()))
    assert [line for line in result.text.splitlines() if line] == [f"{name}: 403" for name in REFUSED], result
    assert requests(net) == []
    assert [e["reason"] for e in result.of_type("egress.decision")] == [reason for _, reason in REFUSED.values()]


def test_services_that_hand_out_keys_are_no_place(net):
    result = net.box.run("--", "true", policy=POLICY.replace("SOURCE", STATIC).replace('service = "s3"', 'service = "sts"'))
    assert result.status == 125 and "hands out keys" in result.error, result


@pytest.mark.skipif(not os.path.exists("/usr/bin/aws"), reason="Debian's awscli is not installed")
def test_the_aws_command_line_works_unmodified(net):
    script = """
set -e
head -c 9437184 /dev/urandom > big; echo small > small
/usr/bin/aws s3 cp --quiet small s3://data/small; /usr/bin/aws s3 cp --quiet big "s3://data/a b/big+1"
/usr/bin/aws s3 cp --quiet s3://data/small -; /usr/bin/aws s3 cp --quiet "s3://data/a b/big+1" back && cmp big back && echo same
/usr/bin/aws s3 ls s3://data/
url=$(/usr/bin/aws s3 presign s3://data/small); curl -sS -o /dev/null -w '%{http_code}\n' "$url"
"""
    result = run(net, script)
    assert result.status == 0 and result.text.splitlines()[:2] == ["small", "same"], result
    assert "9437184" in result.text and result.text.splitlines()[-1] == "403", result
    sent = [(entry["method"], entry["path"].split("?")[0]) for entry in requests(net)]
    assert sent.count(("PUT", "/a%20b/big%2B1")) == 2, "in parts"
    [refused] = [e for e in result.of_type("egress.decision") if e["verdict"] == "deny"]
    assert refused["reason"] == "credential-place"


def random_request(source):
    """A request as botocore sends it: its service, method, URL, headers and body."""
    service = source.choice(["s3", "dynamodb", "execute-api", "sqs"])
    characters = "abcXYZ019-_.~ !*'();:@&=+$,?#[]%éü/"

    def word(of=characters):
        return "".join(source.choices(of, k=source.randint(1, 12)))
    path = "/" + urllib.parse.quote(word() + source.choice(["", "/" + word().strip("/"), "/"]), safe="/~")
    while "//" in path or "/." in path:  # what the gateway lets nobody send
        path = path.replace("//", "/").replace("/.", "/x")
    query = "&".join(urllib.parse.quote(word(), safe="") + source.choice(["", "=" + urllib.parse.quote(word(), safe="")])
                     for _ in range(source.randint(0, 4)))
    headers = {f"X-Amz-Meta-{word('abcdef')}": " " * source.randint(0, 2) + word("abc  xyz,;=") + " " * source.randint(0, 2)
               for _ in range(source.randint(0, 3))}
    if source.random() < 0.5:
        headers["Content-Type"] = source.choice(["application/json", "text/plain; charset=utf-8"])
    method = source.choice(["GET", "PUT", "POST", "DELETE", "HEAD"])
    body = source.randbytes(source.randint(0, 99)) if method in ("PUT", "POST") else b""
    return service, method, f"https://{word('abc')}.amazonaws.com{path}" + ("?" + query if query else ""), headers, body


def test_random_requests_are_signed_as_by_botocore():
    pytest.importorskip("awscli", reason="Debian's awscli is not installed")  # its botocore is found after it
    from botocore import auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials
    source = random.Random(20261130)
    lines, wanted = [], []
    for _ in range(1000 if os.environ.get("CERCO_LANE") == "long" else 100):
        service, method, url, headers, body = random_request(source)
        request = AWSRequest(method=method, url=url, headers=headers, data=body)
        signer = auth.S3SigV4Auth if service == "s3" else auth.SigV4Auth
        signer(Credentials(LONG["id"], LONG["secret"]), service, "eu-central-1").add_auth(request)
        signed, signature = request.headers["Authorization"].split("SignedHeaders=")[1].split(", Signature=")
        sent = {name.lower(): value for name, value in request.headers.items()}
        sent.setdefault("host", urllib.parse.urlsplit(url).netloc)
        payload = sent.get("x-amz-content-sha256") or hashlib.sha256(body).hexdigest()
        target = url.split(".amazonaws.com", 1)[1]
        lines.append("\t".join([LONG["secret"], sent["x-amz-date"], "eu-central-1", service, method, target, payload,
                                *[part for name in signed.split(";") for part in (name, sent[name])]]))
        wanted.append(signature)
    program = os.path.join(os.environ["CERCO_BUILD"], "sigv4")
    given = subprocess.run([program], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True).stdout.split()
    assert [line for line, one, other in zip(lines, wanted, given, strict=True) if one != other] == []
