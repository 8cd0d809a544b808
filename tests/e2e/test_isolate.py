"""The isolate tier: one script in a V8 engine, its streams, its ending, its network, and what it cannot reach."""
# lane: full
import json
import pathlib
import shutil
import signal
import subprocess

import pytest

from cerco import BUILD, Cerco, wait_until
from world import DNS, PUBLIC

if not (BUILD / "engine/workerd").exists():
    pytest.skip("no V8 engine beside cerco: tools/install-engine build/engine", allow_module_level=True)

HOSTILE = pathlib.Path(__file__).with_name("isolate_engine.c")


@pytest.fixture
def isolate(tmp_path):
    return Cerco(tmp_path, tier="isolate")


def run(isolate, source, *args, flags=(), name="script.js", **kwargs):
    (isolate.folder / name).write_text(source)
    return isolate.run(*flags, "--", name, *args, **kwargs)


def test_a_script_has_arguments_streams_an_environment_and_a_status(isolate):
    """The JavaScript part of what the other tiers' tests ask of a command."""
    done = run(isolate, """#!/usr/bin/env node
import assert from 'node:assert';
assert.deepEqual(process.argv.slice(2), ['a', '--b']);
let input = '';
for await (const chunk of process.stdin) input += chunk;
console.log(6 * 7, { input }, process.env.GIVEN, Object.keys(process.env).sort().join());
console.error('to standard error');
process.stdout.write('no line end\\0\\\\');
process.stdout.write(new Uint8Array([0xff, 0x0a, 0xc3, 0x28]));
setTimeout(() => { process.exitCode = 3; }, 5);
""", "a", "--b", flags=["--env", "GIVEN=here"], input=b"from outside")
    assert done.status == 3, done
    assert done.out == b"42 { input: 'from outside' } here CERCO_RUN,GIVEN\nno line end\0\\\xff\n\xc3("
    assert done.err == b"to standard error\n"
    assert done.report["tier"] == "isolate" and done.report["ending"]["kind"] == "exited"
    assert done.of_type("run.planned")[0]["tier"] == "isolate"


@pytest.mark.parametrize("source, status, said", [
    ("process.exit(9); console.log('after')", 9, ""),
    ("console.log(1);\nthrow new TypeError('boom');", 1, "script.js:2:7"),
    ("Promise.reject(new Error('nobody waits'))", 1, "nobody waits"),
    ("let x = ;", 1, "SyntaxError"),
    ("await new Promise(() => {})", 13, "unsettled top-level await"),
    ("import 'node:fs'", 1, 'No such module "node:fs"'),
    ("setInterval(() => {}, 1e6); throw 1", 1, "Uncaught 1"),
    ("process.on('exit', (code) => { process.exitCode = code + 4; }); process.exitCode = 3", 7, ""),
], ids=["exit", "throw", "rejection", "syntax", "unsettled", "module", "pending", "listener"])
def test_the_status_is_what_node_would_give(isolate, source, status, said):
    done = run(isolate, source)
    assert done.status == status, done
    assert said in done.error, done
    assert b"after" not in done.out


def test_what_a_script_does_not_have(isolate):
    """E119 as well: no shared memory, no clock finer than a millisecond; WebAssembly is refused by the engine itself."""
    done = run(isolate, """
const gone = {};
for (const name of ['WebAssembly', 'SharedArrayBuffer', 'Atomics', 'caches']) gone[name] = typeof globalThis[name];
for (const name of ['fs', 'fs/promises', 'child_process', 'worker_threads', 'http', 'vm', 'cluster', 'os']) {
  gone[name] = await import('node:' + name).then((found) => Object.keys(found).length ? 'there' : 'undefined', () => 'undefined');
}
try { gone.eval = eval('1') } catch { gone.eval = 'undefined' }
const times = new Set();
const end = Date.now() + 30;
while (Date.now() < end) times.add(performance.now());
gone.fine = [...times].every(Number.isInteger) ? 'undefined' : 'there';
console.log(JSON.stringify(gone));
""")
    assert done.status == 0, done
    gone = json.loads(done.text)
    assert {name for name, value in gone.items() if value != "undefined"} == set(), gone


def test_hostile_values_on_the_way_out(isolate):
    """E120: what cannot be shown is an error of the script or a mark, and never the end of the channel."""
    done = run(isolate, """
const circle = {}; circle.circle = circle;
console.log(circle, { get bad() { throw 1; } }, 10n, Symbol('s'));
console.log({ [Symbol.for('nodejs.util.inspect.custom')]: () => '\\u0000x9\\nx8' });
console.log('\\ud800|');
try { console.log('x'.repeat(2 ** 30)) } catch (error) { console.log(error.name) }
try { console.log({ toString() { throw new Error('never') } } + '') } catch (error) { console.log(error.message) }
console.log('y'.repeat(3_000_000));
console.log('x7');
process.stdout.write('x6\\no');
""")
    assert done.status == 0, done
    lines = done.out.split(b"\n")
    assert lines[0] == b"<ref *1> { circle: [Circular *1] } { bad: [Getter] } 10n Symbol(s)"
    assert lines[1:4] == [b"\0x9", b"x8", "\ufffd|".encode()]
    assert lines[4:6] == [b"RangeError", b"never"]
    assert lines[6] == b"y" * 3_000_000 and lines[7:] == [b"x7", b"x6", b"o"]


# E116: what keeps the processor or the heap, and the limit that ends it.
HOGS = {
    "loop": ("while (true);", "timed_out"),
    "regex": ("/^(a+)+$/.test('a'.repeat(60) + 'b')", "timed_out"),
    "microtasks": ("const again = () => { Promise.resolve().then(again); }; again(); await new Promise(() => {});", "timed_out"),
    "timers": ("setInterval(() => {}, 1); await new Promise(() => {});", "timed_out"),
    "heap": ("const kept = []; for (;;) kept.push(new Array(1e5).fill(1.5));", "out_of_memory"),
    "buffers": ("const kept = []; for (;;) kept.push(new Uint8Array(1 << 24).fill(1));", "out_of_memory"),
    "strings": ("const kept = []; for (let i = 0;; ++i) kept.push(String(i).repeat(1000).split(''));", "out_of_memory"),
}


@pytest.mark.parametrize("hog", HOGS)
def test_hogs_end_by_the_policys_limits(isolate, hog):
    source, ending = HOGS[hog]
    wall = "1500ms" if ending == "timed_out" else "2m"
    done = run(isolate, "console.log('begun');\n" + source, flags=["--timeout", wall, "--set", "limits.memory=256MiB"])
    assert done.report["ending"]["kind"] == ending, done
    assert done.status == (124 if ending == "timed_out" else 137)
    assert done.out == b"begun\n"


def test_deep_recursion_is_an_error_of_the_script(isolate):
    done = run(isolate, "const f = (n) => f(n + 1) + 1; try { f(0) } catch (error) { console.log(error.name) }")
    assert (done.status, done.out) == (0, b"RangeError\n"), done


def test_processor_time_and_a_signal_end_it(isolate):
    done = run(isolate, "while (true);", flags=["--set", "limits.cpu=1s"])
    assert done.report["ending"]["kind"] == "timed_out" or "cpu" in done.report["limits_hit"], done
    (isolate.folder / "wait.js").write_text("console.log('begun'); setInterval(() => {}, 1000)")
    process = isolate.start("run", "--", "wait.js", stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"begun\n"
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 128 + signal.SIGTERM
    process.stdout.close()


def test_flags_that_speak_of_files_are_refused_by_name(isolate):
    (isolate.folder / "a.js").write_text("1")
    (isolate.folder / "a.py").write_text("1")
    for flags, words in ((["--in", "a.js"], "--in"), (["--out", "out"], "--out"), (["--ro", "/opt"], "--ro"),
                         (["--set", "isolation.seccomp=debug"], "isolation.seccomp"),
                         (["--set", "limits.files=100"], "limits.files")):
        done = isolate.run(*flags, "--", "a.js")
        assert done.status == 125 and done.error.startswith(f"cerco: {words}"), done
        assert done.error.count("\n") == 1
    for command in ("a.py", "none.js", "node"):
        done = isolate.run("--", command)
        assert done.status == 125 and command in done.error, done
    assert isolate("start").status == 125


def test_the_plan_says_what_it_is(isolate):
    (isolate.folder / "a.js").write_text("1")
    shown = isolate("check", "--tier", "isolate", "--", "a.js")
    assert shown.status == 0, shown
    assert "Tier isolate" in shown.text and "V8 alone is no boundary" in shown.text
    assert "workerd 1." in shown.text and "days old" in shown.text
    assert "/usr " not in shown.text
    plan = json.loads(isolate("check", "--tier", "isolate", "--json", "--", "a.js").text)
    assert plan["tier"] == "isolate" and plan["engine"].startswith("workerd 1.")


# --- The network -----------------------------------------------------------------------------------

POLICY = f"""
version = 1
[isolation]
tier = "isolate"
[network]
resolvers = ["{DNS}"]
[[egress]]
host = "api.test"
methods = ["GET", "POST"]
paths = ["/v1/**", "/echo"]
[[egress]]
host = "plain.test"
ports = [80]
methods = ["GET"]
"""


def test_fetch_goes_through_the_gateway(world, tmp_path):
    api = world.https(["api.test", "other.test"])
    plain = world.http("plain.test", address=PUBLIC[1])
    world.names()
    isolate = world.cerco(tmp_path)
    isolate.tier = "isolate"
    (tmp_path / "fetch.js").write_text("""
const get = async (url, init) => {
  try {
    const answer = await fetch(url, init);
    return [answer.status, answer.headers.get('x-cerco-deny')];
  } catch (error) {
    return [error.name];
  }
};
console.log(JSON.stringify({
  allowed: await get('https://api.test/v1/a'),
  plain: await get('http://plain.test/b'),
  path: await get('https://api.test/v2/'),
  method: await get('https://api.test/v1/a', { method: 'DELETE' }),
  host: await get('https://other.test/'),
  address: await get('http://169.254.169.254/latest'),
}));
""")
    done = isolate.run("--", "fetch.js", policy=POLICY)
    assert done.status == 0, done
    assert json.loads(done.text) == {
        "allowed": [200, None], "plain": [200, None], "path": [403, "path"], "method": [403, "method"],
        "host": ["TypeError"], "address": ["TypeError"]}, done
    for server, path in ((api, "/v1/a"), (plain, "/b")):
        assert [entry["path"] for entry in server.entries() if entry["event"] == "request"] == [path]
    decisions = [(event["verdict"], event["host"], event["method"]) for event in done.of_type("egress.decision") if event.get("method")]
    assert decisions == [("allow", "api.test", "GET"), ("allow", "plain.test", "GET"), ("deny", "api.test", "GET"),
                         ("deny", "api.test", "DELETE")]
    assert {refused["host"] for refused in done.report["refused"]} >= {"other.test", "169.254.169.254"}, done


# --- What a broken engine reaches --------------------------------------------------------------------

@pytest.fixture(scope="module")
def hostile_engine(tmp_path_factory):
    """A cerco whose engine is native code of an attacker from its first instruction on: what a fault in V8 would give."""
    folder = tmp_path_factory.mktemp("programs")
    folder.chmod(0o755)
    for program in BUILD.glob("cerco*"):
        if program.is_file():
            shutil.copy(program, folder / program.name)
    (folder / "engine").mkdir()
    subprocess.run(["gcc", "-O1", "-Wall", "-o", str(folder / "engine/workerd"), str(HOSTILE)], check=True)
    (folder / "engine/version").write_text("1.20261117.1\n")
    return folder


# What the hostile engine tries, and which of it works once the filter is gone.
ATTEMPTS = {"execve": True, "execveat": True, "fork": True, "kill_starter": False, "write_file": True, "memfd": True,
            "unix_socket": True, "raw_socket": False, "netlink": True, "ptrace_starter": False, "host_passwd": False,
            "shell": False, "usr": False, "dup_above": False, "raise_limit": False, "listen": True, "connect_out": False}


def attempts(cerco, folder, program):
    (cerco.folder / "a.js").write_text("1")
    words = ["run"] if program == "cerco" else ["seccomp,landlock", "run"]
    done = subprocess.run([str(folder / program), *words, "--tier", "isolate", "--", "a.js"], env=cerco.env(),
                          cwd=cerco.folder, capture_output=True, timeout=120)
    assert done.returncode == 0, done
    return dict(line.split("=") for line in done.stdout.decode().split())


def test_native_code_in_the_engines_place_wins_nothing(isolate, hostile_engine):
    """E118, and E119's end: with the control, the same engine without its filter."""
    held = attempts(isolate, hostile_engine, "cerco")
    assert set(held) == set(ATTEMPTS)
    assert {name for name, answer in held.items() if answer == "works"} == set(), held
    free = attempts(isolate, hostile_engine, "cerco-without")
    assert {name for name, answer in free.items() if answer == "works"} >= {name for name, works in ATTEMPTS.items() if works}, free


def test_no_command_is_run_beside_the_script(isolate):
    """The engine's filter is the script's: whatever `exec` started would have the container's, which is wider."""
    (isolate.folder / "script.js").write_text("setInterval(() => {}, 1000)")
    run = isolate("run", "--detach", "--", "script.js").text.strip()
    try:
        done = isolate("exec", run, "--", "/engine/workerd", "--version")
        assert done.status == 125 and "isolate tier" in done.error and not done.out, done
    finally:
        assert isolate("rm", run).status == 0
