"""`--in`, `--out`, `--report`, names and streams of `cerco run`, end to end."""
# lane: quick
# sanitized
import hashlib
import json
import os
import signal
import subprocess

import pytest

from cerco import GUARD


def test_report_to_a_descriptor_that_was_handed_in(cerco):
    reader, writer = os.pipe()
    process = cerco.start("run", "--report", f"fd:{writer}", "--", "sh", "-c", "exit 3", pass_fds=[writer])
    os.close(writer)
    with os.fdopen(reader) as pipe:
        report = json.loads(pipe.read())
    assert process.wait(GUARD) == 3
    assert (report["status"], report["ending"]["kind"]) == (3, "exited")


def test_the_report_replaces_what_the_file_held(cerco):
    path = cerco.folder / "r.json"
    path.write_text("x" * 100_000)
    assert cerco("run", "--report", path, "--", "true").status == 0
    assert json.loads(path.read_text())["status"] == 0


def test_a_failed_start_has_a_report_too(cerco):
    """124 to 127 may be the command's own: the report tells them apart."""
    missing = cerco.run("--", "no-such-command")
    assert (missing.status, missing.report["ending"]["kind"], missing.report["status"]) == (127, "start_failed", 127)
    policy = cerco.run("--", "true", policy="version = 1\nlimts = 1\n")
    assert (policy.status, policy.report["ending"]["kind"]) == (125, "start_failed")


def test_the_report_is_kept_and_found_by_name_and_prefix(cerco):
    run = cerco.run("--name", "nightly.1", "--", "true").report["run"]
    for word in (run, run[:6], "nightly.1"):
        assert json.loads(cerco("report", word).text)["run"] == run
    assert cerco("report", "nightly.2").status == 3
    assert cerco.run("--name", "nightly.1", "--", "true").status == 0, "the run has ended: its name is free"


def test_two_live_runs_cannot_have_one_name(cerco):
    first = cerco.start("run", "--name", "one", "--", "sh", "-c", "echo up; sleep 600",
                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert first.stdout.readline() == b"up\n"
    second = cerco.run("--name", "one", "--", "true")
    first.send_signal(signal.SIGTERM)
    assert first.wait(GUARD) == 128 + signal.SIGTERM
    assert second.status == 125 and "one" in second.error


def test_what_is_hidden_is_empty_below_a_read_only_folder_too(cerco, tmp_path):
    data = tmp_path / "data"
    for name in (".env", "deep/id_rsa", "deep/.netrc/inner", "plain"):
        path = data / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("secret\n")
    (data / "deep" / ".npmrc").symlink_to("../plain")
    look = ["sh", "-c", f"cd {data} && find . -type f -exec cat {{}} + | wc -l; ls deep/.netrc | wc -l; cat .env deep/id_rsa plain"]
    result = cerco.run("--ro", data, "--", *look)
    assert (result.status, result.out) == (0, b"0\n0\n"), "plain is what a hidden link leads to"
    assert f"{data}/.env" in result.error and "filesystem.hide" in result.error
    shown = cerco.run("--ro", data, "--set", "filesystem.hide=[]", "--", *look)
    assert shown.out == b"4\n1\n" + b"secret\n" * 3
    assert all((data / name).read_text() == "secret\n" for name in (".env", "deep/id_rsa", "plain"))


def test_large_input_and_output(cerco):
    """F92."""
    blob = hashlib.sha512(b"seed").digest() * 500_000  # 32 MB
    assert cerco.run("--", "sha256sum", input=blob).text.split()[0] == hashlib.sha256(blob).hexdigest()
    assert cerco.run("--", "head", "-c", "40000000", "/dev/zero").out == bytes(40_000_000)


def test_closed_standard_streams(cerco):
    """No other file gets the number of a stream that is closed."""
    script = f"{' '.join(cerco.command('run', '--report', cerco.folder / 'r', '--'))} sh -c 'echo a; cat; echo b >&2' <&- >&- 2>&-"
    done = subprocess.run(["sh", "-c", script], env=cerco.env(), cwd=cerco.folder, timeout=GUARD)
    assert done.returncode == 0
    assert json.loads((cerco.folder / "r").read_text())["status"] == 0


def test_a_reader_that_leaves_ends_the_command(cerco):
    process = cerco.start("run", "--", "yes", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout.readline() == b"y\n"
    process.stdout.close()
    assert process.wait(GUARD) == 128 + signal.SIGPIPE


def test_output_that_cannot_be_written_is_an_error(cerco):
    with open("/dev/full", "wb") as full:
        process = cerco.start("run", "--", "echo", "lost", stdout=full, stderr=subprocess.PIPE)
        _, err = process.communicate(timeout=GUARD)
    assert process.returncode == 125
    assert b"ENOSPC" in err


def test_a_second_interrupt_ends_the_run(cerco):
    process = cerco.start("run", "--report", "r", "--", "sh", "-c", "trap 'echo got' INT; echo up; while :; do sleep 0.05; done",
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout.readline() == b"up\n"
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == b"got\n"
    process.send_signal(signal.SIGINT)
    assert process.wait(GUARD) == 137
    assert json.loads((cerco.folder / "r").read_text())["ending"]["kind"] == "killed"


def test_signals_that_were_ignored_stay_so(cerco):
    """nohup."""
    process = cerco.start("run", "--", "sh", "-c", "echo up; read x; echo done", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    assert process.stdout.readline() == b"up\n"
    process.send_signal(signal.SIGHUP)
    out, _ = process.communicate(b"x\n", timeout=GUARD)
    assert (out, process.returncode) == (b"done\n", 0)


@pytest.mark.parametrize("name", ["a;touch x", "-rf", "new\nline", "\udcff\udcfe", "sp ace", "\u00fc" * 100])
def test_names_go_in_and_out_as_they_are(cerco, tmp_path, name):
    """F71."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / name).write_text("1")
    result = cerco.run("--in", "src", "--out", "out", "--", "sh", "-c", "for f in src/*; do cp -- \"$f\" .; done", cwd=tmp_path)
    assert result.status == 0, result
    assert (tmp_path / "out" / name).read_text() == "1"
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("dest", ["../../x", "/etc/x", "d/../../x", "d/.."])
def test_a_destination_outside_the_working_folder_is_refused(cerco, tmp_path, dest):
    (tmp_path / "f").write_text("1")
    result = cerco.run("--in", f"f:{dest}", "--", "true", cwd=tmp_path)
    assert result.status == 125 and "working folder" in result.error


def test_a_clash_is_refused(cerco, tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "f").write_text(folder)
    result = cerco.run("--in", "a/f", "--in", "b/f", "--", "true", cwd=tmp_path)
    assert result.status == 125 and "`f`" in result.error
    assert cerco.run("--in", "a/f", "--in", "b/f:g", "--", "cat", "f", "g", cwd=tmp_path).out == b"ab"


def test_links_that_leave_bring_nothing_out(cerco, tmp_path):
    """E69."""
    result = cerco.run("--out", "out", "--", "sh", "-c",
                       "ln -s /etc/shadow x; ln -s ../../etc y; ln -s /proc/self/root z; mkdir d; ln -s ../d d/self; echo 1 > d/f",
                       cwd=tmp_path)
    assert result.status == 0, result
    out = tmp_path / "out"
    assert sorted(str(p.relative_to(out)) for p in out.rglob("*") if not p.is_symlink()) == ["d", "d/f"]
    assert [p.name for p in out.rglob("*") if p.is_symlink()] == ["self"]


def test_the_hosts_own_links_are_replaced_not_followed(cerco, tmp_path):
    """E70."""
    (tmp_path / "out").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "out" / "file").symlink_to(tmp_path / "precious")
    (tmp_path / "out" / "folder").symlink_to(tmp_path / "elsewhere")
    result = cerco.run("--out", "out", "--", "sh", "-c", "echo new > file; mkdir folder; echo new > folder/x", cwd=tmp_path)
    assert result.status == 0, result
    assert (tmp_path / "precious").read_text() == "precious"
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert (tmp_path / "out" / "folder" / "x").read_text() == "new\n"


def test_names_that_keep_changing_do_not_lead_out(cerco, tmp_path):
    """E70: a file and a link change places until the end; then everything inside is dead, and what is there comes out."""
    program = ("import ctypes, os\nlibc = ctypes.CDLL(None)\nopen('a', 'w').write('inside')\nos.symlink('/etc/passwd', 'b')\nos.mkdir('d')\n"
               "os.symlink('/etc', 'e')\nprint('up', flush=True)\nwhile True:\n    libc.renameat2(-100, b'a', -100, b'b', 2)\n"
               "    libc.renameat2(-100, b'd', -100, b'e', 2)\n")
    result = cerco.run("--timeout", "1s", "--out", "out", "--", "python3", "-c", program, cwd=tmp_path)
    assert result.status == 124, result
    files = [p for p in (tmp_path / "out").rglob("*") if p.is_file()]
    assert [p.read_text() for p in files] == ["inside"]


def test_sparse_and_special_files(cerco, tmp_path):
    """E73."""
    result = cerco.run("--set", "limits.disk=64MiB", "--out", "out", "--", "sh", "-c",
                       "mkfifo p; echo 1 > small; truncate -s 1T big", cwd=tmp_path)
    assert (tmp_path / "out" / "small").read_text() == "1\n"
    assert not (tmp_path / "out" / "big").exists() and not (tmp_path / "out" / "p").exists()
    assert "big" in result.error or "limits.disk" in result.error


def test_holes_stay_holes_and_take_no_room(cerco, tmp_path):
    """Both ways, and by cp: a file takes what it holds, and is the same byte for byte."""
    source = tmp_path / "source"
    with open(source, "wb") as file:
        file.write(b"begin")
        file.seek(200 << 20)
        file.write(b"middle")
        file.truncate(300 << 20)
    flags = ("--set", "limits.disk=16MiB")
    made = "truncate -s 6M new; printf x | dd of=new bs=1 seek=3000000 conv=notrunc 2>/dev/null"
    result = cerco.run(*flags, "--in", source, "--out", "out", "--", "sh", "-c",
                       f"cmp source copy 2>/dev/null; cp source copy; du -k source | cut -f1; stat -c %s source; tail -c 104857600 source | head -c 6; {made}",
                       cwd=tmp_path)
    lines = result.text.splitlines()
    assert result.status == 0 and int(lines[0]) <= 64 and lines[1:] == [str(300 << 20), "middle"], result
    new = (tmp_path / "out" / "new").stat()
    assert (new.st_size, (tmp_path / "out" / "new").read_bytes().index(b"x")) == (6 << 20, 3000000) and new.st_blocks * 512 <= 64 << 10
    run = cerco("start", *flags).text.strip()
    try:
        assert cerco("cp", source, f"{run}:there").status == 0
        result = cerco("exec", run, "--", "sh", "-c", "du -k there | cut -f1; sha256sum <there")
        assert int(result.text.splitlines()[0]) <= 64, result
        assert result.text.splitlines()[1].split()[0] == hashlib.sha256(source.read_bytes()).hexdigest()
    finally:
        cerco("rm", run)


def test_deep_trees_and_odd_names(cerco, tmp_path):
    """E75."""
    program = ("import os\nopen('y', 'w').write('y')\nopen(b'\\xff' * 255, 'w').write('n')\nopen('A', 'w').write('A')\nopen('a', 'w').write('a')\n"
               "for _ in range(5000):\n    os.mkdir('d')\n    os.chdir('d')\n")
    result = cerco.run("--out", "out", "--", "python3", "-c", program, cwd=tmp_path)
    assert result.status == 0, result
    out = tmp_path / "out"
    assert [(out / name).read_text() for name in ("y", "A", "a")] == ["y", "A", "a"]
    assert (out / os.fsdecode(b"\xff" * 255)).read_text() == "n"
    assert "not brought out" in result.error


def test_set_id_bits_stay_inside(cerco, tmp_path):
    cerco.run("--out", "out", "--", "sh", "-c", "cp /bin/true t; chmod 6755 t", cwd=tmp_path)
    assert os.stat(tmp_path / "out" / "t").st_mode & 0o7777 == 0o755


def test_the_callers_folder_is_left_as_it_is(cerco, tmp_path):
    """F64: nothing is made beside the files that come in, also when everything is killed."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "f").write_text("1")
    process = cerco.start("run", "--in", str(tmp_path / "src"), "--", "sh", "-c", "echo up; rm -rf src; sleep 600",
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout.readline() == b"up\n"
    process.kill()
    process.wait(GUARD)
    assert [p.name for p in (tmp_path / "src").iterdir()] == ["f"]
    assert (tmp_path / "src" / "f").read_text() == "1"


def test_strict_refuses_what_was_not_accepted(cerco):
    refused = cerco.run("--strict", "--", "true")
    assert refused.status == 125 and "isolation.accept" in refused.error
    assert cerco.run("--strict", "--set", 'isolation.accept=["shared-kernel"]', "--", "true").status == 0


def test_quiet_leaves_only_what_the_command_says(cerco, tmp_path):
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / ".env").write_text("S=1")
    script = "echo err >&2; ln -s /etc x"
    loud = cerco.run("--in", "p", "--out", "o1", "--", "sh", "-c", script, cwd=tmp_path)
    quiet = cerco.run("--quiet", "--in", "p", "--out", "o2", "--", "sh", "-c", script, cwd=tmp_path)
    assert "filesystem.hide" in loud.error and "not brought out" in loud.error
    assert quiet.err == b"err\n"
