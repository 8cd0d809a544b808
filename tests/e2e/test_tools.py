"""A base that tools work in: compilers, package managers and version control, unmodified."""
# lane: full
import base64
import hashlib
import io
import json
import shutil
import zipfile

import pytest


def needs(*programs):
    """Skips where the host's /usr, which is the base, does not have them."""
    missing = [name for name in programs if shutil.which(name, path="/usr/local/bin:/usr/bin:/bin") is None]
    return pytest.mark.skipif(bool(missing), reason=f"not in /usr of this host: {' '.join(missing)}")


def script(cerco, text, *flags):
    result = cerco.run(*flags, "--", "sh", "-ec", text)
    assert result.status == 0, result
    return result


def wheel(folder):
    """A wheel with one module and one command, as pip takes it."""
    files = {
        "greet.py": "def main():\n    print('greetings')\n",
        "greet-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: greet\nVersion: 1.0\n",
        "greet-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "greet-1.0.dist-info/entry_points.txt": "[console_scripts]\ngreet = greet:main\n",
    }
    record = "".join(f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b'=').decode()},"
                     f"{len(text)}\n" for name, text in files.items())
    files["greet-1.0.dist-info/RECORD"] = record + "greet-1.0.dist-info/RECORD,,\n"
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as out:
        for name, text in files.items():
            out.writestr(name, text)
    path = folder / "greet-1.0-py3-none-any.whl"
    path.write_bytes(data.getvalue())
    return path


@needs("gcc")
def test_gcc_compiles_and_threads_run(cerco):
    source = cerco.folder / "sum.c"
    source.write_text('#include <pthread.h>\n#include <stdio.h>\nstatic void* one(void* at) { *(int*)at = 1; return 0; }\n'
                      'int main(void) { pthread_t t[16]; int got[16] = {0}, sum = 0;\n'
                      'for (int i = 0; i < 16; i++) if (pthread_create(&t[i], 0, one, &got[i])) return 1;\n'
                      'for (int i = 0; i < 16; i++) { pthread_join(t[i], 0); sum += got[i]; }\nprintf("%d\\n", sum); return 0; }\n')
    assert script(cerco, "gcc -O1 -pthread -o sum sum.c; ./sum", "--in", source).out == b"16\n"


@needs("python3", "pip3")
def test_pip_installs_a_local_wheel_into_the_home(cerco):
    result = script(cerco, "pip3 install -q --no-index --no-warn-script-location ./*.whl; greet; python3 -c 'import greet; greet.main()'",
                    "--in", wheel(cerco.folder))
    assert result.out == b"greetings\ngreetings\n", result


@needs("python3")
def test_a_virtual_environment_is_made_and_installed_into(cerco):
    result = script(cerco, "python3 -m venv v; v/bin/pip install -q --no-index --disable-pip-version-check ./*.whl; v/bin/greet",
                    "--in", wheel(cerco.folder), "--timeout", "5m")
    assert result.out == b"greetings\n", result


@needs("node", "npm")
def test_npm_installs_from_a_local_folder_and_globally(cerco):
    package = cerco.folder / "greet"
    package.mkdir()
    (package / "package.json").write_text(json.dumps({"name": "greet", "version": "1.0.0", "bin": {"greet": "greet.js"}}))
    (package / "greet.js").write_text("#!/usr/bin/env node\nconsole.log('greetings')\n")
    (package / "greet.js").chmod(0o755)
    quiet = "--silent --no-audit --no-fund --offline"
    text = f"mkdir app; cd app; npm init -y >/dev/null; npm install {quiet} ../greet; npx --no-install greet; npm i -g {quiet} ../greet; cd /; greet"
    assert script(cerco, text, "--in", package, "--timeout", "5m").out == b"greetings\ngreetings\n"


@needs("git")
def test_git_commits_and_makes_worktrees(cerco):
    text = ("git init -q a; cd a; echo one > f; git add f; git commit -qm one; git worktree add -q ../b -b two; cd ../b;"
            "echo two >> f; git commit -qam two; git log --oneline | wc -l; git -C ../a merge -q two; wc -l < ../a/f;"
            "git clone -q ../a ../c; cat ../c/f")
    assert script(cerco, text).out.split() == [b"2", b"2", b"one", b"two"]


@needs("python3")
def test_sqlite_with_a_write_ahead_log_and_several_writers(cerco):
    program = ("import sqlite3, multiprocessing as m\n"
               "def add(n):\n"
               "    with sqlite3.connect('t.db', timeout=60) as db: db.execute('insert into t values (?)', (n,))\n"
               "db = sqlite3.connect('t.db'); print(*db.execute('pragma journal_mode=wal').fetchone())\n"
               "db.execute('create table t (n)'); db.commit()\n"
               "with m.Pool(4) as pool: pool.map(add, range(40))\n"
               "print(*db.execute('select count(*), sum(n) from t').fetchone())\n")
    result = cerco.run("--", "python3", "-c", program)
    assert (result.status, result.text) == (0, "wal\n40 780\n"), result


@needs("sqlite3")
def test_the_sqlite_shell(cerco):
    assert script(cerco, "sqlite3 t.db 'create table t(n); insert into t values (7); select n from t'").out == b"7\n"


@needs("java", "javac")
def test_java_builds_and_runs(cerco):
    source = cerco.folder / "Hello.java"
    source.write_text('public class Hello { public static void main(String[] a) { System.out.println("hello " + Runtime.getRuntime().availableProcessors()); } }\n')
    assert script(cerco, "javac Hello.java; java Hello", "--in", source, "--set", "limits.cpus=1", "--timeout", "5m").out == b"hello 1\n"


def test_multiprocessing_and_shared_memory(cerco):
    program = ("import multiprocessing as m\nfrom multiprocessing import shared_memory\n"
               "def work(name):\n    one = shared_memory.SharedMemory(name); one.buf[0] += 1; one.close()\n"
               "if __name__ == '__main__':\n"
               "    one = shared_memory.SharedMemory(create=True, size=16)\n"
               "    for kind in ('fork', 'spawn', 'forkserver'):\n"
               "        p = m.get_context(kind).Process(target=work, args=(one.name,)); p.start(); p.join()\n"
               "    print(one.buf[0]); one.close(); one.unlink()\n")
    path = cerco.folder / "many.py"
    path.write_text(program)
    result = cerco.run(path)
    assert (result.status, result.text) == (0, "3\n"), result


def test_a_file_of_the_host_that_is_not_inside_names_the_flag_that_brings_it_in(cerco):
    """As an argument, and as the command."""
    (cerco.folder / "table.csv").write_text("1\n")
    result = cerco.run("--", "cat", "table.csv")
    assert result.status == 1, result
    assert "table.csv is on this host and not inside; --in table.csv brings it in as table.csv" in result.error, result
    assert cerco.run("--in", "table.csv", "--", "cat", "table.csv").out == b"1\n"
    fine = cerco.run("--", "sh", "-c", "echo ok", "sh", "table.csv")
    assert fine.err == b"", "what went well needs no hint"
    quiet = cerco.run("--quiet", "--", "cat", "table.csv")
    assert "--in" not in quiet.error
    tool = cerco.folder / "bin/tool"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\necho tool\n")
    tool.chmod(0o755)
    path = {"PATH": f"{tool.parent}:/usr/bin:/bin"}
    missing = cerco.run("--", "tool", env=path)
    assert missing.status == 127 and f"--ro {cerco.folder}" in missing.error, missing
