"""A gateway that runs out of descriptors: it backs off, recovers, and refuses what it always refused."""
# lane: full
import subprocess

from cerco import GUARD, find_below, status_of, wait_until

PROGRAM = """
import socket, sys, time, urllib.request
def get(url):
    try: return urllib.request.urlopen(url, timeout=10).status
    except urllib.error.HTTPError as error: return error.code
    except OSError: return 0
print("first", get("http://plain.test/1"), flush=True)
sys.stdin.readline()
held = []
for _ in range(200):
    one = socket.socket(); one.setblocking(False)
    try: one.connect((address := socket.gethostbyname("plain.test") if not held else address, 80))
    except OSError: pass
    held.append(one)
time.sleep(1)
for one in held: one.close()
for attempt in range(60):
    status = get("http://plain.test/2")
    if status == 200: break
    time.sleep(0.5)
print("again", status, flush=True)
print("denied", get("http://plain.test/private"), flush=True)
"""
POLICY = """
[[egress]]
host = "plain.test"
ports = [80]
methods = ["GET"]
paths = ["/1", "/2"]
"""


def test_f28_a_gateway_without_descriptors_recovers(world):
    plain = world.http("plain.test")
    world.names()
    box = world.cerco()
    policy = box.folder / "few.toml"
    policy.write_text(world.policy(POLICY))
    run = box.start("run", "--policy", policy, "--", "python3", "-c", PROGRAM, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert run.stdout.readline() == b"first 200\n"
        gateway = wait_until(lambda: find_below(run, "cerco-gateway"), what="the gateway")
        # As the gateway's own user, since not every root may change others' limits.
        uid = status_of(gateway)[1]
        subprocess.run(["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "prlimit", f"--pid={gateway}",
                        "--nofile=64:64"], check=True)
        run.stdin.write(b"go\n")
        run.stdin.flush()
        assert run.stdout.readline() == b"again 200\n"
        assert run.stdout.readline() == b"denied 403\n"
        assert find_below(run, "cerco-gateway") == gateway, "the same process, not another one"
        assert run.wait(GUARD) == 0
    finally:
        run.kill()
        run.wait()
    assert {entry["path"] for entry in plain.entries() if entry["event"] == "request"} == {"/1", "/2"}
