"""What a session costs: its memory while nothing is asked of it, and a command in it beside a fresh run."""
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

COMMANDS = 300
MANY = 10


def pss(pid):
    """Bytes of a process by proportional share, and those that it has written; 0, 0 when it is gone."""
    try:
        text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0, 0
    fields = dict(re.findall(r"^(\w+):\s+(\d+) kB", text, re.M))
    return int(fields["Pss"]) << 10, int(fields["Private_Dirty"]) << 10


def processes_of(cerco, run, state):
    """Name and number of each process of a session: its supervisor, by the lock that it holds, and all below."""
    from cerco import descendants_of, status_of
    inode = str((state / "runs" / run / "live").stat().st_ino)
    top = next(int(line.split()[4]) for line in open("/proc/locks") if "FLOCK" in line and line.split()[5].split(":")[-1] == inode)
    return [((status_of(pid) or ("gone",))[0], pid) for pid in [top, *descendants_of(top)]]


def timed(argv, env):
    start = time.perf_counter()
    done = subprocess.run(argv, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    took = time.perf_counter() - start
    if done.returncode != 0:
        sys.exit(f"bench: {argv} failed: {done.stderr.decode()[-500:]}")
    return took


def ms(times):
    return 1000 * statistics.median(times)


def memory(cerco, runs, state):
    """The pages of our programs are the host's page cache, which all sessions share: alone, one is counted for all of it."""
    kinds = {}
    for run in runs:
        for name, pid in processes_of(cerco, run, state):
            kinds.setdefault(name, []).append(pss(pid))
    total = sum(sum(row[0] for row in rows) for rows in kinds.values())
    print(f"  memory of an idle session, of {len(runs)} (PSS): {total / len(runs) / (1 << 20):.2f} MiB   target ≤ 2 MiB")
    for name, rows in kinds.items():
        whole, dirty = (sum(row[i] for row in rows) // len(runs) >> 10 for i in (0, 1))
        print(f"    {name:<16}{whole:>7} KiB, {dirty} KiB of it written by itself")


def sessions(cerco, folder):
    state = folder / "sessions"
    more = []
    env = {**os.environ, "CERCO_STATE_DIR": str(state)}
    fresh = [cerco, "run", "--tier", "container", "--", "/bin/true"]
    run = subprocess.run([cerco, "start", "--tier", "container"], env=env, check=True, capture_output=True, text=True).stdout.strip()
    try:
        execute = [cerco, "exec", run, "--", "/bin/true"]
        for argv in (fresh, execute, fresh, execute):  # caches and shelves
            timed(argv, env)
        execs, freshes = [], []
        for number in range(COMMANDS):
            execs.append(timed(execute, env))
            if number % 5 == 0:
                freshes.append(timed(fresh, env))
        part = COMMANDS // 6
        print(f"\na command in a session, median of {COMMANDS}, beside a fresh run, median of {len(freshes)}, interleaved")
        print(f"  exec {ms(execs):.2f} ms, run {ms(freshes):.2f} ms: {ms(execs) / ms(freshes):.2f} ×   target ≤ 0.5 ×")
        print(f"  the last {part} {ms(execs[-part:]):.2f} ms, the first {part} {ms(execs[:part]):.2f} ms: "
              f"{ms(execs[-part:]) / ms(execs[:part]):.2f} ×   target ≤ 1 ×")
        memory(cerco, [run], state)
        for _ in range(MANY - 1):
            more.append(subprocess.run([cerco, "start", "--tier", "container"], env=env, check=True, capture_output=True, text=True).stdout.strip())
        memory(cerco, [run, *more], state)
    finally:
        for one in [run, *more]:
            subprocess.run([cerco, "rm", one], env=env, check=True, stdout=subprocess.DEVNULL)
