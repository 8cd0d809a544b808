"""Through the caller's own proxy: by CONNECT to the address that passed, with its password, its authority and its exceptions."""
# lane: full
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from cerco import GUARD, wait_until
from world import DNS, PUBLIC, Authority

PASSWORD = "proxy-pass-7c1e5d9a0b"
CODE = "-sSk -m 20 -o /dev/null -w '%{http_code} '"
RULES = """
[[egress]]
host = "tunnel.test"
[[egress]]
host = "look.test"
methods = ["GET"]
[[egress]]
host = "plain.test"
ports = [80]
[[egress]]
host = "near.test"
ports = [80]
"""
ALL = f"curl {CODE} https://tunnel.test/; curl {CODE} https://look.test/; curl {CODE} http://plain.test/; curl {CODE} http://near.test/"


def policy(proxy, more=""):
    return f'version = 1\n[network]\nresolvers = ["{DNS}"]\nupstream_proxy = {{ {proxy} }}\n{more}{RULES}'


@pytest.fixture(scope="module")
def net(world):
    world.company = Authority(world.folder, "company root")
    world.https("tunnel.test")
    world.https("look.test", address=PUBLIC[1])
    world.http("plain.test", address=PUBLIC[2])
    world.http("near.test", address=PUBLIC[3])
    world.names(records={"proxy.corp.test": ["10.9.9.9"]})
    world.plain_proxy = world.serve("connect_proxy", {"address": "10.9.9.9", "port": 3128, "login": f"ci:{PASSWORD}"})
    world.tls_proxy = world.serve("connect_proxy", {"address": "10.9.9.9", "port": 3129,
                                                    "certificate": world.company.leaf("proxy.corp.test")})
    world.no_proxy = world.serve("connect_proxy", {"address": "10.9.9.9", "port": 3130, "status": 403})
    world.box = world.cerco(environment={"PROXY_PASSWORD": PASSWORD})
    return world


def asked(server):
    return [entry["target"] for entry in server.entries() if entry["event"] == "connect"]


def test_everything_goes_by_connect_to_an_address_with_the_password(net):
    net.plain_proxy.clear()
    auth = 'url = "http://proxy.corp.test:3128", no_proxy = ["near.test"], auth = { user = "ci", env = "PROXY_PASSWORD" }'
    result = net.box.run("--", "sh", "-c", ALL + "; env; cat /proc/*/environ 2>/dev/null", policy=policy(auth))
    assert result.text.split()[:4] == ["200"] * 4, result
    assert asked(net.plain_proxy) == [f"{PUBLIC[0]}:443", f"{PUBLIC[1]}:443", f"{PUBLIC[2]}:80"]
    assert {entry["login"] for entry in net.plain_proxy.entries()} == {f"ci:{PASSWORD}"}
    assert ".test" not in "".join(entry["raw"] for entry in net.plain_proxy.entries())
    everything = result.text + result.error + "".join(path.read_text() for path in (net.box.state / "journal").glob("*.jsonl"))
    assert PASSWORD not in everything
    assert [d["address"] for d in result.of_type("egress.decision")] == PUBLIC[:4]


def test_without_a_proxy_nobody_asks_it(net):
    """The control of the above."""
    net.plain_proxy.clear()
    result = net.box.run("--", "sh", "-c", ALL, policy=policy('url = ""'))
    assert result.text.split() == ["200"] * 4 and asked(net.plain_proxy) == [], result


def test_the_proxys_own_address_is_open_to_nobody_inside(net):
    net.plain_proxy.clear()
    result = net.box.run("--", "sh", "-c", f"curl {CODE} http://10.9.9.9:3128/; curl {CODE} http://proxy.corp.test:3128/",
                         policy=policy('url = "http://10.9.9.9:3128", auth = { user = "ci", env = "PROXY_PASSWORD" }'))
    assert result.text.split() == ["000", "000"] and asked(net.plain_proxy) == [], result


def test_tls_to_the_proxy_by_the_companys_authority(net):
    """An https:// proxy, TLS within its TLS for what is looked into; without its authority there is no way."""
    net.tls_proxy.clear()
    url = 'url = "https://proxy.corp.test:3129"'
    result = net.box.run("--", "sh", "-c", ALL, policy=policy(url, f'ca = ["{net.company.bundle}"]\n'))
    assert result.text.split() == ["200"] * 4, result
    assert asked(net.tls_proxy) == [f"{PUBLIC[0]}:443", f"{PUBLIC[1]}:443", f"{PUBLIC[2]}:80", f"{PUBLIC[3]}:80"]
    net.tls_proxy.clear()
    without = net.box.run("--", "sh", "-c", f"curl -sS -m 20 http://plain.test/", policy=policy(url))
    assert "proxy-certificate" in without.text and asked(net.tls_proxy) == [], without


REFUSALS = {
    "another password": ("3128", "proxy-auth", "wrong"),
    "no password": ("3128", "proxy-auth", None),
    "refused": ("3130", "proxy-refused", None),
    "nobody there": ("3131", "proxy-unreachable", None),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_the_proxy_cannot_do_is_told_truly(net, name):
    port, reason, password = REFUSALS[name]
    auth = ', auth = { user = "ci", env = "PROXY_PASSWORD" }' if password else ""
    result = net.box.run("--", "sh", "-c", f"curl -sS -m 20 http://plain.test/; curl {CODE} https://tunnel.test/",
                         policy=policy(f'url = "http://proxy.corp.test:{port}"{auth}'), env={"PROXY_PASSWORD": password or ""})
    assert f'"reason":"{reason}"' in result.text and result.text.endswith("000 "), result
    assert {e["problem"] for e in result.of_type("egress.ended")} == {reason}


def test_a_password_that_is_not_there_stops_the_start(net):
    gone = net.box.run("--", "true", policy=policy('url = "http://proxy.corp.test:3128", auth = { user = "ci", env = "NOT_SET" }'))
    assert gone.status == 125 and "network.upstream_proxy" in gone.error and "NOT_SET is not set" in gone.error, gone
    loose = net.folder / "loose"
    loose.write_text(PASSWORD)
    os.chmod(loose, 0o644)
    bad = net.box.run("--", "true", policy=policy(f'url = "http://proxy.corp.test:3128", auth = {{ user = "ci", file = "{loose}" }}'))
    assert bad.status == 125 and "others may use it" in bad.error, bad


def test_through_squid(net):
    """Debian's squid, as companies run it."""
    squid = shutil.which("squid")
    if squid is None:
        pytest.skip("squid is not installed (tools/install-packages bench)")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="cerco-squid-"))
    shutil.chown(folder, "proxy")  # it refuses to work as root
    (folder / "squid.conf").write_text(f"""
http_port 10.9.9.9:3140
acl CONNECT method CONNECT
http_access allow CONNECT
http_access deny all
cache deny all
pid_filename none
access_log stdio:{folder}/access.log
cache_log {folder}/cache.log
coredump_dir {folder}
shutdown_lifetime 0 seconds
cache_effective_user proxy
""")
    process = subprocess.Popen(["nsenter", f"--net=/run/netns/{net.net}", squid, "-N", "-n", f"cerco{os.getpid()}", "-f", str(folder / "squid.conf")],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: net.inside(net.net, "sh", "-c", "ss -ltn | grep -q :3140").returncode == 0, what="squid")
        result = net.box.run("--", "sh", "-c", ALL, policy=policy('url = "http://proxy.corp.test:3140"'))
        assert result.text.split() == ["200"] * 4, result
    finally:
        process.terminate()
        process.wait(GUARD)
    log = (folder / "access.log").read_text()
    shutil.rmtree(folder)
    assert log.count("CONNECT") == 4 and ".test" not in log, log
