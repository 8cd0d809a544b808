"""Token endpoints of the small internet, one a vendor: each checks the protocol as its vendor describes it and
refuses what is wrong. Called by servers.py with `config.tokens`; state lasts as long as the server."""
import base64
import hashlib
import hmac
import json
import time
import urllib.parse

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, utils

STATE = {"count": 0, "live": {}, "refresh": None, "leases": {}}
JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS = "urn:ietf:params:oauth:token-type:access_token"


class Refused(Exception):
    pass


def want(condition, error):
    if not condition:
        raise Refused(error)


def fresh(kind):
    STATE["count"] += 1
    token = f"minted-{kind}-{STATE['count']}-7c1e55d9a0b3f824"
    STATE["live"][token] = True
    return token


def form(headers, body):
    want(headers.get("content-type") == "application/x-www-form-urlencoded", "invalid_request")
    pairs = urllib.parse.parse_qsl(body.decode(), strict_parsing=True, keep_blank_values=True)
    want(len(pairs) == len(dict(pairs)), "invalid_request")
    return dict(pairs)


def unpadded(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def jwt(token, public, algorithm):
    """The claims of a JWT that is signed and in its time."""
    head, claims, signature = token.split(".")
    want(json.loads(unpadded(head))["alg"] == algorithm, "invalid_grant")
    key = serialization.load_pem_public_key(public.encode())
    raw, signed = unpadded(signature), f"{head}.{claims}".encode()
    try:
        if algorithm == "RS256":
            key.verify(raw, signed, padding.PKCS1v15(), hashes.SHA256())
        else:
            want(len(raw) == 64, "invalid_grant")
            der = utils.encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
            key.verify(der, signed, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        raise Refused("invalid_grant") from None
    found = json.loads(unpadded(claims))
    now = time.time()
    want(found["iat"] <= now + 5 and now < found["exp"] <= now + 600, "invalid_grant")
    return found, json.loads(unpadded(head))


def oauth_client(config, headers, fields):
    if config.get("auth", "basic") == "basic":
        want(headers.get("authorization", "").startswith("Basic "), "invalid_client")
        user, _, secret = base64.b64decode(headers["authorization"][6:]).decode().partition(":")
        pair = urllib.parse.unquote_plus(user), urllib.parse.unquote_plus(secret)
        want("client_secret" not in fields, "invalid_request")
    else:
        want("authorization" not in headers, "invalid_request")
        pair = fields.get("client_id"), fields.get("client_secret", "")
    want(pair == (config["client_id"], config.get("secret", "")), "invalid_client")


def oauth2(config, method, path, headers, body):
    want(method == "POST", "invalid_request")
    fields = form(headers, body)
    if path == "/revoke":
        oauth_client(config, headers, fields)
        STATE["live"].pop(fields["token"], None)
        return 200, {}, b""
    oauth_client(config, headers, fields)
    answer = {"access_token": fresh("oauth2"), "token_type": "Bearer"}
    if "expires_in" in config:
        answer["expires_in"] = config["expires_in"]
    if "refresh" in config:
        want(fields["grant_type"] == "refresh_token", "unsupported_grant_type")
        want(fields["refresh_token"] == (STATE["refresh"] or config["refresh"]), "invalid_grant")
        STATE["refresh"] = f"rotated-{STATE['count']}-5e0c"  # the one that was shown is worth nothing now
        answer["refresh_token"] = STATE["refresh"]
    else:
        want(fields["grant_type"] == "client_credentials", "unsupported_grant_type")
    want(fields.get("scope") == config.get("scope"), "invalid_scope")
    return 200, {}, json.dumps(answer).encode()


def jwt_bearer(config, method, path, headers, body):
    fields = form(headers, body)
    want(method == "POST" and fields["grant_type"] == JWT_BEARER, "unsupported_grant_type")
    claims, head = jwt(fields["assertion"], config["public"], config["algorithm"])
    want(claims["iss"] == config["issuer"] and claims["sub"] == config["subject"], "invalid_grant")
    want(claims["aud"] == config["audience"] and head.get("kid") == config["key_id"], "invalid_grant")
    want(claims["jti"] not in STATE["live"], "invalid_grant")
    STATE["live"][claims["jti"]] = True
    return 200, {}, json.dumps({"access_token": fresh("jwt"), "token_type": "bearer", "expires_in": 3600}).encode()


def vault(config, method, path, headers, body):
    want(headers.get("x-vault-token") == config["token"] and headers.get("x-vault-request") == "true", "denied")
    want(headers.get("x-vault-namespace") == config.get("namespace"), "denied")
    if (method, path) == ("GET", "/v1/secret/data/app"):
        return 200, {}, json.dumps({"lease_id": "", "lease_duration": 0, "renewable": False, "data": {
            "data": {"password": fresh("kv")}, "metadata": {"version": 3}}}).encode()
    if (method, path) == ("GET", "/v1/database/creds/app"):
        lease = f"database/creds/app/{len(STATE['leases'])}"
        STATE["leases"][lease] = fresh("db")
        return 200, {}, json.dumps({"lease_id": lease, "lease_duration": config["lease"], "renewable": True, "data": {
            "username": "v-app", "password": STATE["leases"][lease]}}).encode()
    fields = json.loads(body)
    want(method == "PUT" and fields["lease_id"] in STATE["leases"], "denied")
    if path == "/v1/sys/leases/renew":
        return 200, {}, json.dumps({"lease_id": fields["lease_id"], "lease_duration": config["lease"]}).encode()
    want(path == "/v1/sys/leases/revoke", "denied")
    del STATE["leases"][fields["lease_id"]]
    return 204, {}, b""


def github(config, method, path, headers, body):
    want(headers.get("accept") == "application/vnd.github+json" and headers.get("user-agent"), "not_acceptable")
    scheme, _, token = headers.get("authorization", "").partition(" ")
    want(scheme == "Bearer", "bad_credentials")
    if (method, path) == ("DELETE", "/installation/token"):
        want(STATE["live"].pop(token, None), "bad_credentials")
        return 204, {}, b""
    claims, _ = jwt(token, config["public"], "RS256")
    want(claims["iss"] == config["app_id"], "bad_credentials")
    if (method, path) == ("GET", "/repos/acme/app/installation"):
        return 200, {}, b'{"id":4711,"account":{"login":"acme","id":1}}'
    want((method, path) == ("POST", "/app/installations/4711/access_tokens"), "not_found")
    asked = json.loads(body)
    want(asked == config["wanted"], "unprocessable")
    ends = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
    return 201, {}, json.dumps({"token": fresh("github"), "expires_at": ends, "permissions": asked["permissions"],
                                "repository_selection": config.get("selection", "selected")}).encode()


def signed_for(config, service, method, target, headers, payload):
    """Whether an Authorization is AWS's signature version 4 under config's keys."""
    scheme, _, rest = headers["authorization"].partition(" ")
    parts = dict(part.strip().split("=", 1) for part in rest.split(","))
    key_id, date, region, named, end = parts["Credential"].split("/")
    path, _, query = target.partition("?")
    pairs = sorted(tuple(urllib.parse.quote(urllib.parse.unquote(half), safe="-_.~") for half in (pair.split("=", 1) + [""])[:2])
                   for pair in query.split("&") if pair)
    names = parts["SignedHeaders"].split(";")
    escaped = urllib.parse.quote(urllib.parse.unquote(path) if service == "s3" else path, safe="/-_.~")
    canonical = "\n".join([method, escaped, "&".join("=".join(pair) for pair in pairs),
                           *[f"{name}:{' '.join(headers[name].split())}" for name in names], "", ";".join(names), payload])
    text = "\n".join(["AWS4-HMAC-SHA256", headers["x-amz-date"], f"{date}/{region}/{named}/{end}",
                      hashlib.sha256(canonical.encode()).hexdigest()])
    key = b"AWS4" + config["secret"].encode()
    for word in (date, region, named, end):
        key = hmac.new(key, word.encode(), hashlib.sha256).digest()
    return (scheme == "AWS4-HMAC-SHA256" and key_id == config["id"] and named == service and end == "aws4_request"
            and "host" in names and "x-amz-date" in names
            and hmac.new(key, text.encode(), hashlib.sha256).hexdigest() == parts["Signature"])


def sts(config, method, path, headers, body):
    fields = form(headers, body)
    want(signed_for(config, "sts", method, path, headers, hashlib.sha256(body).hexdigest()), "SignatureDoesNotMatch")
    want(fields["Action"] == "AssumeRole" and fields["Version"] == "2011-06-15", "InvalidAction")
    want(fields["RoleArn"] == config["role"] and 900 <= int(fields["DurationSeconds"]) <= 3600, "ValidationError")
    want(json.loads(fields["Policy"]) == config["policy"], "AccessDenied")
    ends = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 900))
    return 200, {"Content-Type": "text/xml"}, f"""<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
<AssumeRoleResult><AssumedRoleUser><Arn>arn:aws:sts::1:assumed-role/r/{fields["RoleSessionName"]}</Arn></AssumedRoleUser>
<Credentials><AccessKeyId>{config["minted"]["id"]}</AccessKeyId><SecretAccessKey>{config["minted"]["secret"]}</SecretAccessKey>
<SessionToken>{config["minted"]["token"]}</SessionToken><Expiration>{ends}</Expiration></Credentials></AssumeRoleResult>
</AssumeRoleResponse>""".encode()


def s3(config, method, target, headers, body):
    """Objects, lists and uploads in parts, each request signed by the keys of the configuration and no others."""
    payload = headers.get("x-amz-content-sha256", "")
    want(payload == "UNSIGNED-PAYLOAD" or payload == hashlib.sha256(body).hexdigest(), "XAmzContentSHA256Mismatch")
    want(headers.get("x-amz-security-token") == config.get("token"), "InvalidToken")
    want(signed_for(config, "s3", method, target, headers, payload), "SignatureDoesNotMatch")
    signed = headers["authorization"].split("SignedHeaders=")[1].split(",")[0].split(";")
    want(all(name in signed for name in headers if name.startswith("x-amz-")), "AccessDenied")
    stamp = time.mktime(time.strptime(headers["x-amz-date"], "%Y%m%dT%H%M%SZ")) - time.timezone
    want(abs(stamp - time.time()) < 60, "RequestTimeTooSkewed")
    path, _, query = target.partition("?")
    fields = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
    objects, parts = STATE.setdefault("objects", {}), STATE.setdefault("parts", {})
    kind = {"Content-Type": "application/xml"}
    if method == "POST" and "uploads" in fields:
        return 200, kind, b"<InitiateMultipartUploadResult><UploadId>up1</UploadId></InitiateMultipartUploadResult>"
    if method == "PUT" and "uploadId" in fields:
        parts[int(fields["partNumber"])] = body
        return 200, {"ETag": f'"{hashlib.md5(body).hexdigest()}"'}, b""
    if method == "POST" and "uploadId" in fields:
        objects[path] = b"".join(parts[number] for number in sorted(parts))
        return 200, kind, b"<CompleteMultipartUploadResult><ETag>whole</ETag></CompleteMultipartUploadResult>"
    if method == "PUT":
        objects[path] = body
        return 200, {"ETag": f'"{hashlib.md5(body).hexdigest()}"'}, b""
    if "list-type" in fields:
        listed = "".join(f"<Contents><Key>{urllib.parse.quote(name[1:])}</Key><Size>{len(data)}</Size>"
                         "<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>" for name, data in objects.items())
        return 200, kind, f"<ListBucketResult><Name>data</Name><IsTruncated>false</IsTruncated>{listed}</ListBucketResult>".encode()
    if path not in objects:
        return 404, kind, f"<Error><Code>NoSuchKey</Code><AWSAccessKeyId>{config['id']}</AWSAccessKeyId></Error>".encode()
    data, more = objects[path], {"ETag": '"x"', "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT", "Accept-Ranges": "bytes"}
    if method == "GET" and "range" in headers:
        first, _, last = headers["range"].removeprefix("bytes=").partition("-")
        last = min(int(last or len(data)), len(data) - 1)
        return 206, {**more, "Content-Range": f"bytes {first}-{last}/{len(data)}"}, data[int(first):last + 1]
    return 200, more, data


def gcp(config, method, path, headers, body):
    fields = form(headers, body)
    if path == "/token":
        want(fields["grant_type"] == JWT_BEARER, "unsupported_grant_type")
        claims, head = jwt(fields["assertion"], config["public"], "RS256")
        want(claims["iss"] == config["email"] and claims["aud"] == config["audience"], "invalid_grant")
        want(claims["scope"] == config["scope"] and head["kid"] == config["key_id"], "invalid_scope")
        return 200, {}, json.dumps({"access_token": fresh("wide"), "token_type": "Bearer", "expires_in": 3599}).encode()
    want(path == "/v1/token" and fields["grant_type"] == EXCHANGE, "unsupported_grant_type")
    want(fields["subject_token_type"] == ACCESS and fields["requested_token_type"] == ACCESS, "invalid_request")
    want(STATE["live"].get(fields["subject_token"]) and "-wide-" in fields["subject_token"], "invalid_grant")
    want(json.loads(fields["options"]) == config["options"], "invalid_request")
    return 200, {}, json.dumps({"access_token": fresh("narrow"), "issued_token_type": ACCESS,
                                "token_type": "Bearer"}).encode()


def bad(config, method, path, headers, body):
    """Answers that are none; by the last word of the path."""
    token = {"access_token": "minted-bad-7c1e55d9a0b3f824", "token_type": "Bearer"}
    kind = path.rsplit("/", 1)[1]
    if kind == "slow":
        time.sleep(60)
    if kind == "redirect":
        return 307, {"Location": config["elsewhere"]}, b""
    return {"oversized": (200, {}, json.dumps({**token, "more": "x" * 300_000}).encode()),
            "malformed": (200, {}, b'{"access_token":"minted-bad-7c1e55d9a0b3f824"'),
            "twice": (200, {}, b'{"access_token":"minted-bad-1","access_token":"minted-bad-2"}'),
            "list": (200, {}, b'{"access_token":["minted-bad-7c1e55d9a0b3f824"]}'),
            "page": (200, {"Content-Type": "text/html"}, b"<html>sign in</html>"),
            "empty": (200, {}, b""),
            "lines": (200, {}, json.dumps({**token, "access_token": "minted\r\nX-Admin: 1"}).encode()),
            "packed": (200, {"Content-Encoding": "gzip"}, json.dumps(token).encode()),
            "type": (200, {}, json.dumps({**token, "token_type": "mac"}).encode()),
            "denied": (400, {}, b'{"error":"invalid_client","error_description":"client hush-hush is off"}'),
            "failing": (503, {}, json.dumps(token).encode()),
            "good": (200, {}, json.dumps(token).encode())}[kind]


KINDS = {"oauth2": oauth2, "jwt_bearer": jwt_bearer, "vault": vault, "github": github, "sts": sts, "s3": s3, "gcp": gcp, "bad": bad}


def answer(config, method, path, headers, body):
    try:
        status, more, content = KINDS[config["kind"]](config, method, path, headers, body)
    except (Refused, KeyError, ValueError, TypeError) as error:
        word = str(error) if isinstance(error, Refused) else "invalid_request"
        status, more, content = 400, {}, json.dumps({"error": word}).encode()
    return status, {"Content-Type": "application/json", "Cache-Control": "no-store", **more}, content
