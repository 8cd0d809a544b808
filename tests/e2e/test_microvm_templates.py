"""Copies of a template: each is a guest of its own, and none can touch what the others start from."""
# lane: full
import hashlib
import json
import os
import pathlib
import subprocess
import time

import pytest

import small_base
from cerco import Traces, find_below
from test_microvm import GUARD, VMM, Boxed, lacking

pytestmark = pytest.mark.skipif(lacking() is not None, reason=lacking() or "")


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return small_base.make(tmp_path_factory.mktemp("base"))


# What an instance may have in common with nobody, as JSON; then a mark in memory and on the disk, and waits.
SELF = """
import json, os, ssl, sys, time, uuid, random, glob
def read(path): return open(path).read().strip()
seen = [path for path in glob.glob("/workspace/*") + glob.glob("/tmp/*") + glob.glob("/dev/shm/*")]
open("/workspace/left", "w").write("residue"); open("/dev/shm/left", "w").write("residue")
own = {"boot id": read("/proc/sys/kernel/random/boot_id"), "urandom": open("/dev/urandom", "rb").read(16).hex(),
       "getrandom": os.getrandom(16).hex(), "uuid": str(uuid.uuid4()), "random": random.getrandbits(128),
       "kernel uuid": read("/proc/sys/kernel/random/uuid"), "run": os.environ["CERCO_RUN"],
       "stack": [line for line in open("/proc/self/maps") if "[stack]" in line],
       "auxv": open("/proc/self/auxv", "rb").read().hex()}
print(json.dumps({"own": own, "time": time.time(), "seen": seen, "host": os.uname().nodename,
                  "machine": read("/etc/machine-id")}), flush=True)
sys.stdin.read()
"""


def first_words(process):
    line = process.stdout.readline()
    assert line, process.stderr.read()
    return json.loads(line)


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def templates(state):
    folder = pathlib.Path(state) / "templates"
    return {kind: next(iter(folder.glob(f"*.{kind}")), None) for kind in ("about", "memory", "devices")}


def test_two_copies_have_nothing_of_their_own_in_common(cerco, base):
    """E113: random numbers, ids, clock, memory; the template stays what it was, and no copy may write to it."""
    vm = Boxed(cerco, base)
    made = vm.cerco("image", "warm", *vm.flags[:2], *vm.flags[4:], f"dir:{base}", guard=GUARD)
    assert made.status == 0, made
    again = vm.cerco("image", "warm", *vm.flags[:2], *vm.flags[4:], f"dir:{base}", guard=GUARD)
    assert again.status == 0 and again.text == made.text, again
    files = templates(vm.state)
    assert all(path.stat().st_mode & 0o7777 == 0o600 for path in files.values()), files
    before = digest(files["memory"])
    traces = Traces(vm.state)
    # A clock that stood still since the template was made would show.
    time.sleep(3)
    earliest = time.time()
    copies = [vm.start("--", "python3", "-c", SELF, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
              for _ in range(2)]
    told = [first_words(process) for process in copies]
    latest = time.time()
    for process in copies:
        pid = find_below(process, VMM)
        mapped = [line for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines() if ".memory" in line]
        assert mapped and all("rw-p" in line for line in mapped), mapped
        held = {fd: os.readlink(fd) for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir()}
        kept = [fd for fd, target in held.items() if ".memory" in target or ".devices" in target]
        assert kept, held
        for fd in kept:
            flags = int(pathlib.Path(f"/proc/{pid}/fdinfo/{fd.name}").read_text().split("flags:")[1].split()[0], 8)
            assert flags & os.O_ACCMODE == os.O_RDONLY, (fd, flags)
    for process in copies:
        process.stdin.close()
        assert process.wait(GUARD) == 0
    one, two = told
    same = [what for what in one["own"] if one["own"][what] == two["own"][what]]
    assert not same, same
    for copy in told:
        assert earliest <= copy["time"] <= latest + 2, (earliest, copy["time"], latest)
        assert copy["seen"] == [] and copy["host"] == "sandbox", copy
    assert digest(files["memory"]) == before
    assert traces.since() == []
    # What is no longer as it was written is not started from, and says which file it is.
    for kind, path in files.items():
        path.chmod(0o644)
        refused = vm.run("--", "true")
        assert refused.status == 125 and str(path) in refused.error and "image warm" in refused.error, refused
        path.chmod(0o600)
    whole = files["devices"].read_bytes()
    files["devices"].write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    refused = vm.run("--", "true")
    assert refused.status == 125 and "not what was written" in refused.error, refused
    assert traces.since() == []
