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
    """`Cerco(folder)` keeps its state below folder; `prefix` runs it elsewhere (a network namespace)."""

    def __init__(self, folder, prefix=(), environment=None):
        self.folder = pathlib.Path(folder)
        self.state = self.folder / "state"
        self.prefix = list(prefix)
        self.environment = dict(environment or {})

    def env(self, more=None):
        env = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(self.folder),
               "CERCO_STATE_DIR": str(self.state), "LANG": "C.UTF-8"}
        if SANITIZED:
            env["ASAN_OPTIONS"] = "detect_leaks=0"
        env.update(self.environment)
        env.update(more or {})
        return env

    def command(self, *args, program="cerco"):
        return self.prefix + [str(BUILD / program)] + [str(arg) for arg in args]

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

    def start(self, *args, env=None, **kwargs):
        """The same without waiting: a Popen."""
        return subprocess.Popen(self.command(*args), env=self.env(env), cwd=self.folder, **kwargs)


def wait_until(condition, guard=GUARD, what="the condition"):
    """Waits for an event, not for a time; the guard only ends a test that would hang."""
    end = time.monotonic() + guard
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"{what() if callable(what) else what} did not come within {guard} s")


class Traces:
    """What a run could leave on the host; `since()` lists what is there now and was not before."""

    def __init__(self, state):
        self.state = pathlib.Path(state)
        self.before = self.look()

    def look(self):
        found = set()
        for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
            found.add("mount " + " ".join(line.split()[3:5]))
        for loop in pathlib.Path("/sys/block").glob("loop*/loop/backing_file"):
            try:
                found.add(f"loop {loop.parts[3]} {loop.read_text().strip()}")
            except OSError:
                pass
        # Mount namespaces of live processes, and every process of ours or of a leased uid.
        for status in pathlib.Path("/proc").glob("[0-9]*/status"):
            try:
                text = status.read_text()
            except OSError:
                continue
            name = re.search(r"^Name:\t(.*)$", text, re.M).group(1)
            uid = int(re.search(r"^Uid:\t(\d+)", text, re.M).group(1))
            if name.startswith("cerco") or uid >= 1879000000:
                found.add(f"process {status.parent.name} {name} uid {uid}")
        for mount in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
            fields = mount.split()
            if "cgroup" in fields[fields.index("-") + 1]:
                # Groups of others may go while this looks: os.walk passes over them.
                for folder, names, _ in os.walk(fields[4]):
                    found.update(f"cgroup {folder}/{name}" for name in names if name.startswith("cerco-"))
        if self.state.exists():
            for path in self.state.rglob("*"):
                kept = path.relative_to(self.state).parts
                if kept[0] in ("journal", "keys", "spares", "patterns") or path.name == "report.json" or path.is_dir():
                    continue
                found.add(f"file {path}")
        return found

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
