"""A scratch root: everything inside can be written, nothing of the host changes, and what its root keeps closed stays closed."""
# lane: full
import json
import os
import pathlib
import shutil
import subprocess

import pytest

SCRATCH = ("--set", "filesystem.root=\"scratch\"")


@pytest.fixture(scope="module")
def base():
    """Files of the host's base: one that everybody may read, one that everybody may write, and two that are its root's alone."""
    folder = pathlib.Path(f"/usr/local/share/cerco-canary-{os.getpid()}")
    (folder / "closed").mkdir(parents=True)
    for name, mode in {"seen": 0o644, "open": 0o666, "secret": 0o600, "closed/file": 0o644}.items():
        (folder / name).write_text(f"canary {name}\n")
        (folder / name).chmod(mode)
    (folder / "closed").chmod(0o700)
    yield folder
    shutil.rmtree(folder)


def state(folder):
    """Everything that a write could change, but not when it was read."""
    return {str(path): (path.lstat().st_mode, path.lstat().st_uid, path.lstat().st_mtime_ns, path.lstat().st_ctime_ns,
                        path.read_bytes() if path.is_file() and not path.is_symlink() else b"")
            for path in sorted([folder, *folder.rglob("*")])}


def scratch(cerco, script, *flags, **kwargs):
    return cerco.run(*SCRATCH, *flags, "--", "sh", "-c", script, **kwargs)


def test_programs_are_installed_and_the_host_stays_as_it_is(shared_cerco, base):
    before = state(base)
    names = [f"/usr/bin/cerco-tool-{os.getpid()}", f"/usr/lib/cerco-lib-{os.getpid()}", f"/opt/cerco-{os.getpid()}", f"/etc/cerco-{os.getpid()}.conf",
             f"/cerco-{os.getpid()}"]
    tool, library, opt, conf, top = names
    script = f"""set -e
mkdir -p {library} {opt} {top}
printf '#!/bin/sh\\necho installed\\n' >{tool}.new; chmod 755 {tool}.new; mv {tool}.new {tool}; {tool}
cp /usr/bin/env {library}/env; {library}/env true
echo k=v >{conf}; cat {conf}
rm -r /usr/share/doc; test ! -e /usr/share/doc
mv /usr/share/man /usr/share/manual; ls /usr/share/manual >/dev/null
echo more >>{base}/seen; cat {base}/seen
ln -sf {tool} /etc/alternatives/cerco-tool; readlink /etc/alternatives/cerco-tool
rm /bin/sed; touch {base}/closed"""
    result = scratch(shared_cerco, script)
    assert result.text.splitlines()[:5] == ["installed", "k=v", "canary seen", "more", tool], result
    assert state(base) == before
    assert [name for name in [*names, f"{tool}.new", "/etc/alternatives/cerco-tool"] if os.path.lexists(name)] == []
    assert os.path.exists("/bin/sed") and os.path.isdir("/usr/share/doc") and not os.path.exists("/usr/share/manual")


def test_without_it_the_root_is_read_only(shared_cerco):
    result = shared_cerco.run("--", "sh", "-c", "touch /usr/bin/x /etc/x /x; true")
    assert result.error.count("Read-only file system") == 3, result


def test_pip_installs_for_everyone(shared_cerco, tmp_path):
    """A package without anything from an index, as root would install it, into the host's own Python."""
    package = tmp_path / "package"
    package.mkdir()
    (package / "setup.py").write_text("from setuptools import setup\nsetup(name='cercocanary', version='1', py_modules=['cercocanary'])\n")
    (package / "cercocanary.py").write_text("print('imported')\n")
    script = ("pip install -q --no-index --no-build-isolation --no-deps ./package && "
              "cd / && python3 -c 'import cercocanary; print(cercocanary.__file__)'")
    result = scratch(shared_cerco, script, "--in", package, "--env", "PIP_DISABLE_PIP_VERSION_CHECK=1")
    if "No module named 'setuptools'" in result.error or "No module named pip" in result.error:
        pytest.skip("no pip or no setuptools on this host")
    assert result.status == 0 and "imported\n/usr/local/" in result.text, result
    assert subprocess.run(["python3", "-c", "import cercocanary"], capture_output=True).returncode != 0


# Each way to the text of a file that only the host's root may read.
TRIES = ("cat {0}/secret", "chmod 644 {0}/secret; cat {0}/secret", "cp {0}/secret /tmp/x; cat /tmp/x", "ln {0}/secret /usr/local/share/x; cat /usr/local/share/x",
         "mv {0}/secret {0}/x; cat {0}/x", "mv {0} {0}x; cat {0}x/secret", "dd if={0}/secret", "cat {0}/closed/file", "chmod 755 {0}/closed; cat {0}/closed/file",
         "mv {0}/closed {0}/opened; cat {0}/opened/file", "tar c {0}/secret", "python3 -c 'import os; os.posix_spawn(\"{0}/secret\", [\"x\"], {{}})'")


def test_what_is_the_hosts_roots_alone_is_not_read(shared_cerco, base):
    before = state(base)
    script = "; ".join(f"({attempt.format(base)}) 2>/dev/null" for attempt in TRIES) + "; true"
    result = scratch(shared_cerco, script)
    assert result.status == 0 and "canary" not in result.text, result
    # Positive control: the layer below is then read with the rights of who mounted it.
    weak = scratch(shared_cerco, f"cat {base}/secret {base}/closed/file", without=["base_as_nobody"])
    assert weak.text == "canary secret\ncanary closed/file\n", weak
    assert state(base) == before


def test_nothing_is_written_through_to_the_base(shared_cerco, base):
    before = state(base)
    script = f"echo changed >{base}/open; rm -f {base}/seen; chmod 777 {base}/open; setfattr -n user.x -v 1 {base}/open 2>/dev/null; cat {base}/open"
    result = scratch(shared_cerco, script)
    assert result.text == "changed\n", result
    assert state(base) == before
    # Positive control: without the layer the host's own file is what is written.
    weak = scratch(shared_cerco, f"echo changed >{base}/open; cat {base}/open", without=["read_only_base", "landlock"])
    assert weak.text == "changed\n", weak
    assert (base / "open").read_text() == "changed\n"
    (base / "open").write_text("canary open\n")


def test_the_layers_count_on_the_disk(shared_cerco):
    script = "for to in /usr/lib /etc /opt /; do mkdir -p $to; dd if=/dev/zero of=$to/big bs=1M count=40 2>/dev/null && echo written; done"
    flags = ("--set", "limits.disk=64MiB", "--set", "limits.memory=256MiB")
    result = scratch(shared_cerco, script, *flags)
    assert result.status == 1 and result.text == "written\n", result
    assert result.report["ending"]["kind"] == "disk_full" and result.report["usage"]["written_bytes"] >= 60 << 20
    assert scratch(shared_cerco, script, *flags, without=["disk_limit"]).text == "written\n" * 4
    many = scratch(shared_cerco, "cd /usr/lib; i=0; while mkdir d$i 2>/dev/null; do i=$((i+1)); done; echo $i", "--set", "limits.inodes=200", "--set", "limits.disk=64MiB")
    assert 20 < int(many.text) < 200, many


def test_what_is_inside_stays_out_of_reach(shared_cerco):
    """Folders that the layers are made of are not seen, the own root is no way up, and nothing is run with more rights."""
    script = ("ls -a /; ls /.disk 2>&1; cat /proc/self/mountinfo; "
              "cp /usr/bin/id /usr/bin/id2; chmod 4755 /usr/bin/id2; /usr/bin/id2 -u; ls -l /usr/bin/su | cut -c4")
    result = scratch(shared_cerco, script)
    assert "No such file" in result.text and "\n1000\n" in result.text, result
    for name in ("over-", "work-0", str(shared_cerco.state)):
        assert name not in result.text.replace("upperdir=over-", "").replace("workdir=work-", ""), (name, result)
    mounts = [line.split() for line in result.text.splitlines() if " overlay " in line]
    assert mounts and all("nosuid" in fields[5] and "nodev" in fields[5] for fields in mounts), result


def test_a_session_keeps_what_was_installed(cerco):
    run = cerco("start", *SCRATCH).text.strip()
    try:
        assert cerco("exec", run, "--", "sh", "-c", "printf '#!/bin/sh\necho there\n' >/usr/bin/cerco-new; chmod 755 /usr/bin/cerco-new").status == 0
        result = cerco("exec", run, "--", "cerco-new")
        assert (result.status, result.text) == (0, "there\n"), result
    finally:
        cerco("rm", run)


def test_the_plan_says_so(cerco):
    plan = json.loads(cerco("check", "--json", *SCRATCH).out)
    assert "base_as_nobody" in plan["protections"]
    assert any(step["step"] == "lay_scratch" and step["what"].startswith("over /usr") for step in plan["steps"])
    refused = cerco("run", "--tier", "gvisor", *SCRATCH, "--", "true")
    assert refused.status == 125 and "scratch" in refused.error, refused


def test_a_reserved_disk_is_taken_at_the_start(cerco):
    def free():
        status = os.statvfs(cerco.state)
        return status.f_bavail * status.f_frsize
    assert cerco("run", "--set", "limits.disk=4GiB", "--", "true").status == 0  # the pattern and its spare
    if free() < 12 << 30:
        pytest.skip("less than 12 GiB free below the state folder")

    def taken(*flags):
        before = free()
        run = cerco("start", "--set", "limits.disk=4GiB", *flags).text.strip()
        try:
            return before - free()
        finally:
            cerco("rm", run)
    # Others of this host write as well, but not by gigabytes.
    assert taken() < 1 << 30
    assert taken("--set", "filesystem.reserve=true") > 3 << 30


def test_limits_io_is_held_or_refused(cerco):
    flags = ("--set", "limits.io=\"5MiB\"")
    result = cerco.run(*flags, "--", "cat", "/sys/fs/cgroup/io.max")
    if result.status == 125:
        assert "io controller" in result.error and "limits.not_required" in result.error, result
        let = cerco.run(*flags, "--set", "limits.not_required=[\"io\"]", "--", "true")
        assert let.status == 0 and let.report["unheld"] == ["io"], let
        pytest.skip("no cgroup of version 2 with the io controller on this host")
    assert "rbps=5242880 wbps=5242880" in result.text, result
    assert "rbps=5242880" not in cerco.run(*flags, "--", "cat", "/sys/fs/cgroup/io.max", without=["io_limit"]).text
