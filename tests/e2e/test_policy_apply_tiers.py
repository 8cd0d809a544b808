"""`cerco policy apply` where the code has a kernel of its own: what is steered changes on the outer side of it."""
# lane: full
import os
import shutil
import subprocess
import time

import pytest

from test_microvm import GUARD, Boxed, base, lacking  # noqa: F401
from world import DNS, PUBLIC, World

TRY = "while read port; do curl -s -m 20 -o /dev/null http://raw.test:$port/; echo $?; done"
HEAD = f'version = 1\n[network]\nresolvers = ["{DNS}"]\n'
RULE = '[[egress]]\nname = "raw{0}"\ntcp = "raw.test:{0}"\n'


def changed_while_it_runs(world, tier, *flags):
    """How curl fares at two ports: before a change, after it, and after it was taken back."""
    box = world.cerco()
    box.tier = tier
    for port in (7000, 7001):
        world.http("raw.test", address=PUBLIC[2], port=port)
    world.names()
    files = {}
    for name, ports in (("one", [7000]), ("both", [7000, 7001])):
        files[name] = box.folder / f"{name}-{time.monotonic_ns()}.toml"
        files[name].write_text(HEAD + "".join(RULE.format(port) for port in ports))
    report = box.folder / f"changed-{time.monotonic_ns()}.json"
    run = box.start("run", "--quiet", "--name", f"change-{tier}", "--report", report, "--policy", files["one"], *flags, "--", "sh", "-c", TRY,
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def at(port):
        run.stdin.write(f"{port}\n".encode())
        run.stdin.flush()
        return run.stdout.readline().decode().strip()
    try:
        seen = [at(7000), at(7001)]
        for name in ("both", "one"):
            applied = box("policy", "apply", f"change-{tier}", files[name])
            assert applied.status == 0, applied
            seen += [at(7000), at(7001)]
        run.stdin.close()
        assert run.wait(GUARD) == 0
    finally:
        if run.poll() is None:
            run.kill()
            run.wait()
    return seen


EXPECTED = ["0", "7", "0", "0", "0", "7"]  # 7: refused


@pytest.mark.skipif(shutil.which("runsc", path="/usr/local/bin:/usr/bin:/usr/sbin") is None or os.getuid() != 0,
                    reason="takes root and gVisor's runsc (tools/install-packages test)")
def test_in_gvisor(tmp_path_factory):
    world = World(tmp_path_factory.mktemp("world"), tier="gvisor")
    try:
        assert changed_while_it_runs(world, "gvisor") == EXPECTED
    finally:
        world.close()


@pytest.mark.skipif(lacking() is not None, reason=lacking() or "")
def test_in_a_microvm(world, base):  # noqa: F811
    assert changed_while_it_runs(world, "microvm", *Boxed(world.cerco(), base).flags) == EXPECTED
