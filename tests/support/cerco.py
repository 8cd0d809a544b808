"""Runs the cerco under test: its programs, a state folder of its own, reports and journals as values."""
import json
import os
import pathlib
import re
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("CERCO_BUILD", ROOT / "build"))
SANITIZED = BUILD.name == "build-sanitize"
# A guard is an event's time-out, never an assertion about speed; sanitized programs get more.
GUARD = 120 if SANITIZED else 60


class Result:
    """What one command did: status, out, err (bytes), report and the events of its journal."""

    def __init__(self, status, out, err, report=None, state=None):
        self.status, self.out, self.err, self.report, self.state = status, out, err, report, state

    @property
    def text(self):
        return self.out.decode(errors="replace")

    @property
    def error(self):
        return self.err.decode(errors="replace")

    @property
    def events(self):
        lines = []
        for path in sorted((self.state / "journal").glob(f"{self.report['run']}*.jsonl")):
            lines += path.read_text().splitlines()
        return [json.loads(line) for line in lines]

    def of_type(self, *types):
        return [event for event in self.events if event["type"] in types]

    def __repr__(self):
        return f"<status {self.status}\nout: {self.text[-3000:]}\nerr: {self.error[-3000:]}\nreport: {self.report}>"


class Cerco:
    """`Cerco(folder)` keeps its state below folder; `prefix` runs it elsewhere (a network namespace).

    `tier` is asked for wherever a run or session starts and its flags name none: what `auto` comes to depends on the
    machine. None leaves it to the policy."""

    def __init__(self, folder, prefix=(), environment=None, tier="container"):
        self.folder = pathlib.Path(folder)
        self.state = self.folder / "state"
        self.prefix = list(prefix)
        self.environment = dict(environment or {})
        self.tier = tier

    def env(self, more=None):
        env = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(self.folder),
               "CERCO_STATE_DIR": str(self.state), "LANG": "C.UTF-8"}
        if SANITIZED:
            env["ASAN_OPTIONS"] = "detect_leaks=0"
        env.update(self.environment)
        env.update(more or {})
        return env

    def command(self, *args, program="cerco"):
        words = [str(arg) for arg in args]
        verb = 0 if program == "cerco" else 1
        if self.tier and words[verb:verb + 1] in (["run"], ["start"], ["check"]) and "--tier" not in words:
            words[verb + 1:verb + 1] = ["--tier", self.tier]
        return self.prefix + [str(BUILD / program)] + words

    def __call__(self, *args, input=b"", env=None, cwd=None, program="cerco", guard=GUARD):
        done = subprocess.run(self.command(*args, program=program), input=input, capture_output=True, env=self.env(env),
                              cwd=cwd or self.folder, timeout=guard)
        return Result(done.returncode, done.stdout, done.stderr, state=self.state)

    def run(self, *args, policy=None, without=(), **kwargs):
        """`cerco run` with a report; `policy` is TOML text, `without` names protections to take out."""
        report = self.folder / f"report-{time.monotonic_ns()}.json"
        flags = ["--report", str(report)]
        if policy is not None:
            path = self.folder / f"policy-{time.monotonic_ns()}.toml"
            path.write_text(policy)
            flags += ["--policy", str(path)]
        if without:
            result = self(",".join(without), "run", *flags, *args, program="cerco-without", **kwargs)
        else:
            result = self("run", *flags, *args, **kwargs)
        if report.exists():
            result.report = json.loads(report.read_text())
        return result

    def start(self, *args, env=None, without=(), **kwargs):
        """The same without waiting: a Popen."""
        command = self.command(",".join(without), *args, program="cerco-without") if without else self.command(*args)
        return subprocess.Popen(command, env=self.env(env), cwd=self.folder, **kwargs)


def wait_until(condition, guard=GUARD, what="the condition"):
    """Waits for an event, not for a time; the guard only ends a test that would hang."""
    end = time.monotonic() + guard
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"{what() if callable(what) else what} did not come within {guard} s")


def children_of(pid):
    """The processes that a process started, as numbers; none when it is gone."""
    try:
        return [int(number) for task in pathlib.Path(f"/proc/{pid}/task").iterdir()
                for number in (task / "children").read_text().split()]
    except OSError:
        return []


def descendants_of(pid):
    found = children_of(pid)
    for child in found:
        found += children_of(child)
    return found


def status_of(pid):
    """Name, uid and parent of a process, or None when it is gone."""
    try:
        text = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return None
    return (re.search(r"^Name:\t(.*)$", text, re.M)[1], int(re.search(r"^Uid:\t(\d+)", text, re.M)[1]),
            int(re.search(r"^PPid:\t(\d+)", text, re.M)[1]))


def above(pid):
    """The processes above one, the nearest first."""
    found = []
    while pid > 1:
        pid = (status_of(pid) or ("", 0, 0))[2]
        found.append(pid)
    return found


def awaits_others(pid, parent):
    """Whether a process is dead, with all that it held gone, and only its number is left until somebody above this test asks."""
    try:
        dead = re.search(r"^State:\tZ", pathlib.Path(f"/proc/{pid}/status").read_text(), re.M)
    except OSError:
        return True
    return bool(dead) and parent in above(os.getpid())


def environment_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def find_below(process, name):
    """The process with that name that a started run has below it, as a number; None when there is none."""
    for pid in descendants_of(process.pid):
        status = status_of(pid)
        if status and status[0] == name:
            return pid
    return None


FIRST_LEASE = 1879000000  # of the uids that sandboxes get
OUR_NAMES = ("cerco", "memfd:cerco")


class Traces:
    """What runs with one state folder could leave on the host; `since()` lists what is left and was not before.

    What can be told to be another's is passed over; what cannot be told counts.
    """

    def __init__(self, state):
        self.state = pathlib.Path(state)
        self.before = self.look()

    def is_ours(self, pid):
        """Whether a process of cerco's belongs to this state folder, by the nearest process above it that tells."""
        ours = os.fsencode(f"CERCO_STATE_DIR={self.state}")
        above_this = [os.getpid(), *above(os.getpid())]
        for at in [pid, *above(pid)]:
            if at in above_this:
                break
            told = [variable for variable in environment_of(at) if variable.startswith(b"CERCO_STATE_DIR=")]
            if told:
                return told == [ours]
            name, uid, _ = status_of(at) or ("", 0, 0)
            if not name.startswith(OUR_NAMES) and uid < FIRST_LEASE:
                # Started by another program. What loses its starter goes to one that is above this test.
                return os.getpid() in above(at)
        return True

    def processes(self):
        """Processes of cerco's or of a sandbox's uid that belong here, as numbers with name and uid."""
        found = {}
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            pid, status = int(folder.name), status_of(folder.name)
            if not status or not status[0].startswith(OUR_NAMES) and status[1] < FIRST_LEASE or awaits_others(pid, status[2]):
                continue
            if self.is_ours(pid):
                found[pid] = status[:2]
        return found

    def loops(self):
        """Loop devices over a file of this state folder, or over one that does not say where it is."""
        found = {}
        for loop in pathlib.Path("/sys/block").glob("loop*/loop/backing_file"):
            try:
                file = loop.read_text().strip()
            except OSError:
                continue
            if not file.startswith("/") or file.startswith(f"{self.state}/"):
                found[f"/dev/{loop.parts[3]}"] = file
        return found

    def look(self):
        found = {f"process {pid} {name} uid {uid}" for pid, (name, uid) in self.processes().items()}
        loops = self.loops()
        found.update(f"loop {device} {file}" for device, file in loops.items())
        for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
            fields = line.split()
            kind, source = fields[fields.index("-") + 1:][:2]
            if fields[4].startswith("/run/netns") or source.startswith("/dev/loop") and source not in loops:
                continue  # `ip netns`, which cerco never uses, and disks of others
            found.add(f"mount {fields[3]} {fields[4]}")
            if "cgroup" in kind:
                # Groups of others may go while this looks: os.walk passes over them.
                for folder, names, _ in os.walk(fields[4]):
                    found.update(f"cgroup {folder}/{name}" for name in names if self.is_our_group(name))
        if self.state.exists():
            for path in self.state.rglob("*"):
                kept = path.relative_to(self.state).parts
                # What later runs are made of: disks, and of microVMs the base's image, the guest's archive and what KVM lacks.
                if kept[0] in ("journal", "keys", "spares", "patterns", "images", "guests", "kvm-lacks", "runsc-says") or path.name == "report.json" or path.is_dir():
                    continue
                found.add(f"file {path}")
        return found

    def is_our_group(self, name):
        """Whether a control group is of a run that the journal or a lease of this state folder names."""
        if not name.startswith("cerco-"):
            return False
        if (self.state / "journal" / f"{name.removeprefix('cerco-')}.jsonl").exists():
            return True
        for lease in (self.state / "leases").glob("*"):
            try:
                if f"/{name}" in lease.read_text():
                    return True
            except OSError:
                pass
        return False

    def now(self):
        """What is there at this moment and was not before."""
        return sorted(self.look() - self.before)

    def since(self):
        """What is left; a supervisor may still be putting a fresh disk on the shelf, so its end is waited for."""
        end = time.monotonic() + GUARD
        while True:
            left = sorted(self.look() - self.before)
            if not left or time.monotonic() > end:
                return left
            time.sleep(0.02)
