"""Attempts to leave or weaken the container tier, each with its control: the same program, outside or without the protection."""
# lane: full
import os
import pathlib
import re
import socket
import subprocess

import pytest

from cerco import GUARD, Traces

SOURCE = pathlib.Path(__file__).with_name("probe.c")
EVERYTHING = ["seccomp", "drop_capabilities", "no_new_privs", "landlock", "user_namespace"]


@pytest.fixture(scope="module")
def probe(tmp_path_factory):
    path = tmp_path_factory.mktemp("probe") / "probe"
    subprocess.run(["gcc", "-O1", "-Wall", "-o", str(path), str(SOURCE)], check=True)
    return path


def inside(cerco, probe, *attempt, flags=(), **kwargs):
    return cerco.run(*flags, "--in", f"{probe}:probe", "--", "./probe", *attempt, **kwargs)


def outside(probe, *attempt):
    """The control: root in throw-away namespaces, so that what succeeds harms nobody."""
    return subprocess.run(["unshare", "--mount", "--net", "--ipc", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc",
                           str(probe), *attempt], capture_output=True, text=True, timeout=GUARD, close_fds=True)


# id, attempt, right answers inside, whether the control runs outside (a reason in words where this kernel has no such thing)
ATTEMPTS = [
    ("E20", ["mount_tmpfs", "/mnt"], {"EPERM"}, True),
    ("E20", ["mount_bind", "/tmp"], {"EPERM"}, True),
    ("E20", ["fsopen"], {"EPERM"}, True),
    ("E20", ["open_tree"], {"EPERM"}, True),
    ("E21", ["umount", "/proc"], {"EPERM"}, True),
    ("E23", ["pivot_root", "/tmp"], {"EPERM"}, True),
    ("E23", ["chroot", "/tmp"], {"EPERM"}, True),
    ("E24", ["unshare_user"], {"EPERM"}, True),
    ("E24", ["clone_user"], {"EPERM"}, True),
    ("E24", ["clone3_user"], {"ENOSYS"}, True),
    ("E26", ["setns"], {"EPERM"}, True),
    ("E29", ["open_by_handle_at"], {"EPERM"}, True),
    ("E30", ["fanotify"], {"EPERM"}, True),
    ("E41", ["process_vm_readv"], {"EPERM"}, True),
    ("E43", ["io_uring"], {"ENOSYS"}, True),
    ("E44", ["userfaultfd"], {"EPERM", "ENOSYS"}, True),
    ("E45", ["perf"], {"EPERM", "EACCES"}, True),
    ("E46", ["add_key"], {"ENOSYS", "EPERM"}, True),
    ("E46", ["keyctl"], {"ENOSYS", "EPERM"}, True),
    ("E48", ["reboot"], {"EPERM"}, True),
    ("E48", ["kexec"], {"EPERM"}, "no kexec in every kernel"),
    ("E48", ["init_module"], {"EPERM"}, "no modules in every kernel"),
    ("E48", ["swapon"], {"EPERM"}, True),
    ("E48", ["acct"], {"EPERM"}, True),
    ("E48", ["syslog"], {"EPERM"}, True),
    ("E48", ["bpf"], {"EPERM"}, True),
    ("E49", ["family", "38", "5", "0"], {"EAFNOSUPPORT", "EPERM"}, "no AF_ALG in every kernel"),
    ("E50", ["family", "40", "1", "0"], {"EAFNOSUPPORT", "EPERM"}, "no AF_VSOCK in every kernel"),
    ("E51", ["family", "17", "3", "0"], {"EAFNOSUPPORT", "EPERM"}, True),    # packet
    ("E51", ["family", "16", "3", "12"], {"EAFNOSUPPORT", "EPERM"}, True),   # netlink netfilter
    ("E51", ["family", "2", "3", "1"], {"EAFNOSUPPORT", "EPERM"}, True),     # raw ICMP
    ("E55", ["personality"], {"EPERM"}, True),
    ("E56", ["clock_settime"], {"EPERM"}, True),
    ("E56", ["adjtimex_set"], {"EPERM"}, True),
    ("E58", ["set_mm"], {"EPERM"}, "PR_SET_MM wants an exact layout"),
    ("E59", ["become_root"], {"EPERM", "EINVAL"}, True),
    ("E59", ["capabilities"], {"EPERM"}, True),
    ("E60", ["memfd_secret"], {"ENOSYS", "EPERM"}, "memfd_secret may be off"),
    ("E63", ["sticky_input"], {"EPERM", "ENOTTY", "EACCES", "ENOENT"}, "legacy_tiocsti may be off"),
    ("E63", ["tiocsti"], {"EPERM"}, True),
    ("E53", ["filter_listener"], {"EPERM", "EINVAL"}, True),
    ("E36", ["sethostname", "x"], {"EPERM"}, True),
    ("E79", ["lease", "/tmp/leased"], {"EPERM"}, True),
    ("E39", ["oom_immune"], {"EACCES", "EPERM"}, "a container around this one may hold the right back"),
]


@pytest.mark.parametrize("number, attempt, right, control", ATTEMPTS, ids=[f"{row[0]}-{row[1][0]}-{i}" for i, row in enumerate(ATTEMPTS)])
def test_attempt(shared_cerco, probe, number, attempt, right, control):
    result = inside(shared_cerco, probe, *attempt)
    assert result.status == 1 and result.text.strip() in right, result
    free = outside(probe, *attempt)
    if control is True:
        assert free.stdout.startswith("GOT"), free
    elif not free.stdout.startswith("GOT"):
        pytest.skip(f"{number}: refused inside, but no control on this kernel ({control}): {free.stdout.strip()}")


def test_who_started_the_command_cannot_be_traced(shared_cerco, probe):
    """E41: that is cerco-init; the control is a shell."""
    assert inside(shared_cerco, probe, "trace_parent").text.strip() == "EPERM"
    free = subprocess.run(["sh", "-c", '"$0" trace_parent; exit $?', str(probe)], capture_output=True, text=True)
    assert free.stdout.startswith("GOT"), free


def test_other_abis_of_the_machine_are_killed_or_absent(shared_cerco, probe):
    """E24, E49: 32-bit system calls kill, x32 numbers look absent."""
    if os.uname().machine != "x86_64":
        pytest.skip("x86-64 only")
    assert inside(shared_cerco, probe, "int80").status == 128 + 31
    assert inside(shared_cerco, probe, "x32").text.strip() == "ENOSYS"
    assert outside(probe, "int80").stdout.startswith("GOT")
    assert inside(shared_cerco, probe, "int80", without=["seccomp"]).text.startswith("GOT")


def test_reading_the_clock_is_allowed(shared_cerco, probe):
    """E56: reading adjtimex is what NTP-aware programs do."""
    assert inside(shared_cerco, probe, "adjtimex_read").status == 0


def test_seccomp_is_what_stops_the_calls(shared_cerco, probe):
    """With the filter taken out, calls that need no capability succeed inside as well."""
    for attempt in (["io_uring"], ["personality"], ["process_vm_readv"], ["filter_listener"]):
        assert inside(shared_cerco, probe, *attempt, without=["seccomp"]).text.startswith("GOT"), attempt


def test_no_descriptor_is_inherited(shared_cerco, probe):
    """E1."""
    assert inside(shared_cerco, probe, "fds").text.strip() == "EBADF"
    held = os.open("/etc/passwd", os.O_RDONLY)
    free = subprocess.run([str(probe), "fds"], capture_output=True, text=True, pass_fds=[held])
    os.close(held)
    assert free.stdout.startswith("GOT")


HOST_FILES = ["/etc/shadow", "/root/.bashrc", "/root/.profile", "/var/lib/dpkg/status", "/var/log/dpkg.log", "/run/utmp", "/etc/ssh/ssh_config",
              "/etc/ssl/private"]


def test_files_of_the_host_are_not_there(shared_cerco, probe):
    """E8, E38, E67: by their own path, through pid 1's root and by climbing."""
    there = [path for path in HOST_FILES if os.path.isfile(path)]
    assert there
    for path in there:
        for way in (path, f"/proc/1/root{path}", f"/proc/self/root{path}", f"/../..{path}", f"/proc/self/cwd/../../..{path}"):
            result = inside(shared_cerco, probe, "read", way)
            assert result.status == 1 and result.text.strip() in ("ENOENT", "EACCES", "EPERM"), (way, result)
        assert subprocess.run([str(probe), "read", path], capture_output=True).returncode == 0


def test_a_file_that_anybody_may_read_is_not_there(shared_cerco, probe):
    canary = pathlib.Path(f"/opt/cerco-canary-{os.getpid()}")
    canary.write_text("canary\n")
    canary.chmod(0o644)
    try:
        assert inside(shared_cerco, probe, "read", str(canary)).status == 1
        assert shared_cerco.run("--", "/usr/bin/cat", str(canary)).status == 1
        free = subprocess.run(["setpriv", "--reuid", "1000", "--clear-groups", "/usr/bin/cat", str(canary)], capture_output=True, text=True)
        assert free.stdout == "canary\n", "the same user outside of a sandbox"
    finally:
        canary.unlink()


def test_proc_and_sys_show_and_change_nothing_of_the_host(shared_cerco, probe):
    """E31, E33, E34, E36."""
    for path in ("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/sys/vm/drop_caches", "/proc/sys/kernel/hostname",
                 "/proc/acpi/wakeup", "/proc/irq/default_smp_affinity",
                 "/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/memory.max", "/proc/1/oom_score_adj"):
        result = inside(shared_cerco, probe, "write", path)
        assert result.status == 1 and result.text.strip() in ("EROFS", "EACCES", "EPERM", "ENOENT"), (path, result)
    free = set()
    for path in ("/proc/kcore", "/dev/mem", "/dev/kmsg", "/proc/keys", "/proc/timer_list", "/sys/firmware/dmi/tables/DMI", "/proc/interrupts",
                 "/proc/kallsyms", "/dev/kvm", "/dev/fuse", "/dev/loop-control", "/dev/vda", "/dev/sda", "/dev/userfaultfd"):
        result = inside(shared_cerco, probe, "read", path)
        assert result.status == 1, (path, result)
        free.update([path] if subprocess.run([str(probe), "read", path], capture_output=True).returncode == 0 else [])
    assert free >= {"/proc/interrupts", "/proc/kallsyms"}
    for path in ("/sys/kernel/debug", "/sys/kernel/security", "/sys/firmware", "/sys/class/powercap", "/sys/class/net", "/sys/block"):
        result = inside(shared_cerco, probe, "list", path)
        assert result.status == 1 and result.text.strip() in ("ENOENT", "EACCES"), (path, result)
        free.update([path] if subprocess.run([str(probe), "list", path], capture_output=True).returncode == 0 else [])
    assert "/sys/class/net" in free
    assert subprocess.run([str(probe), "write", "/proc/sys/kernel/core_pattern"], capture_output=True).returncode == 0


def test_masks_are_what_hides_it(shared_cerco, probe):
    assert inside(shared_cerco, probe, "read", "/proc/timer_list", "/proc/keys", "/proc/kallsyms").status == 1
    assert inside(shared_cerco, probe, "read", "/proc/kallsyms", without=["proc_masks"]).text.startswith("GOT")


def test_pages_of_the_base_cannot_be_changed_through_a_pipe(shared_cerco, probe):
    """E61: the calls are needed by ordinary programs, so the kernel has to hold; the bytes are compared from another sandbox."""
    before = shared_cerco.run("--", "sha256sum", "/usr/bin/true").out
    assert inside(shared_cerco, probe, "dirty_pipe", "/usr/bin/true").text.strip() == "EROFS"
    assert inside(shared_cerco, probe, "dirty_cow", "/usr/bin/true").text.strip() == "EROFS"
    assert shared_cerco.run("--", "sha256sum", "/usr/bin/true").out == before == subprocess.run(
        ["sha256sum", "/usr/bin/true"], capture_output=True).stdout


def test_the_base_cannot_be_written(shared_cerco, probe):
    """E28: also not as the owner of the mounts."""
    before = subprocess.run(["sha256sum", "/usr/bin/true"], capture_output=True).stdout
    assert inside(shared_cerco, probe, "write", "/usr/bin/true").text.strip() in ("EROFS", "EACCES")
    assert inside(shared_cerco, probe, "remount_rw", "/usr").text.strip() == "EPERM"
    assert subprocess.run(["sha256sum", "/usr/bin/true"], capture_output=True).stdout == before


def test_a_set_user_id_program_gains_nothing(shared_cerco, probe, tmp_path):
    """E59: nosuid mounts and no_new_privs; the control is the same file run by an ordinary user outside."""
    tools = tmp_path / "tools"
    tools.mkdir()
    os.chmod(tmp_path, 0o755)
    copy = tools / "suid"
    copy.write_bytes(probe.read_bytes())
    os.chmod(copy, 0o4755)
    result = shared_cerco.run("--ro", str(tools), "--", str(copy), "setuid_program", str(copy))
    assert result.text.strip() == "EPERM", result
    for parent in list(copy.parents)[:-2]:
        os.chmod(parent, os.stat(parent).st_mode | 0o055)
    free = subprocess.run(["setpriv", "--reuid", "1000", "--clear-groups", str(copy), "setuid_program", str(copy)], capture_output=True, text=True)
    assert free.stdout.startswith("GOT"), free


def test_sockets_and_shared_memory_of_the_host(shared_cerco, probe, tmp_path):
    """E84, E85, E88, F69."""
    name = f"cerco-probe-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as abstract, socket.socket(socket.AF_UNIX) as path, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagram:
        abstract.bind("\0" + name)
        abstract.listen()
        path.bind(str(tmp_path / "s"))
        path.listen()
        datagram.bind(str(tmp_path / "d"))
        assert inside(shared_cerco, probe, "abstract_socket", name).text.strip() == "ECONNREFUSED"
        assert inside(shared_cerco, probe, "abstract_socket", name, without=["network_namespace", "landlock", "capture"]).text.startswith("GOT")
        for kind, at in (("1", tmp_path / "s"), ("2", tmp_path / "d")):
            assert inside(shared_cerco, probe, "path_socket", str(at), kind).text.strip() in ("ENOENT", "EACCES")
            assert subprocess.run([str(probe), "path_socket", str(at), kind], capture_output=True, text=True).stdout.startswith("GOT")
    made = subprocess.run(["ipcmk", "-M", "4096", "-p", "0666"], capture_output=True, text=True, check=True).stdout
    number = re.search(r"(\d+)\s*$", made).group(1)
    try:
        listed = subprocess.run(["ipcs", "-m"], capture_output=True, text=True).stdout
        key = next(line.split()[0] for line in listed.splitlines() if f" {number} " in line)
        assert inside(shared_cerco, probe, "shared_memory", key).text.strip() == "ENOENT"
        assert inside(shared_cerco, probe, "shared_memory", key, without=["ipc_namespace"]).text.startswith("GOT")
    finally:
        subprocess.run(["ipcrm", "-m", number], check=True)


def test_signals_end_at_the_sandbox(shared_cerco, probe):
    """E100: no process of the host can be named; pid 1 cannot be killed or stopped from inside."""
    sleeper = subprocess.Popen(["sleep", "600"])
    try:
        assert inside(shared_cerco, probe, "kill", str(sleeper.pid)).text.strip() in ("ESRCH", "EPERM")
        assert inside(shared_cerco, probe, "kill_init").text.strip() == "EPERM"
        result = shared_cerco.run("--", "sh", "-c", "kill -9 -1; echo after")
        assert result.report["ending"]["kind"] in ("signalled", "exited")
        assert sleeper.poll() is None
        assert subprocess.run([str(probe), "kill", str(sleeper.pid)]).returncode == 0
    finally:
        sleeper.kill()
        sleeper.wait()


def test_process_list_is_the_sandboxs_own(shared_cerco):
    result = shared_cerco.run("--", "sh", "-c", "ls /proc | grep -c '^[0-9]'")
    assert 1 <= int(result.text) <= 5
    assert len([name for name in os.listdir("/proc") if name.isdigit()]) > 5


def test_hard_links_end_at_the_mount(shared_cerco, probe, tmp_path):
    """E71."""
    assert inside(shared_cerco, probe, "hard_link", "/usr/bin/true", "/workspace/true").text.strip() in ("EXDEV", "EPERM", "EACCES")
    (tmp_path / "file").write_text("x")
    assert subprocess.run([str(probe), "hard_link", str(tmp_path / "file"), str(tmp_path / "link")]).returncode == 0


def test_memory_files_may_be_executed_by_design(shared_cerco, probe):
    """E60: a build tool does; it gains nothing that writing a file would not."""
    assert inside(shared_cerco, probe, "memfd_exec", "/usr/bin/true").text.startswith("GOT")


def test_user_maps_cannot_be_written(shared_cerco, probe):
    """E40."""
    for name, text in (("uid_map", "0 0 1"), ("setgroups", "deny")):
        attempt = ("map_users", f"/proc/self/{name}", text)
        assert inside(shared_cerco, probe, *attempt).text.strip() in ("EPERM", "EACCES", "EROFS"), name
        free = subprocess.run(["unshare", "--user", "--keep-caps", str(probe), *attempt], capture_output=True, text=True)
        assert free.stdout.startswith("GOT"), "who makes a namespace may write its map once"
    assert inside(shared_cerco, probe, "map_users", "/proc/self/gid_map", "0 0 1").text.strip() in ("EPERM", "EACCES", "EROFS")


def test_mount_table_names_nothing_of_the_host(shared_cerco):
    """E38: no path of the state folder, no other tenant."""
    table = shared_cerco.run("--", "cat", "/proc/self/mountinfo", "/proc/self/cgroup", "/proc/self/mounts").text
    assert str(shared_cerco.state) not in table and "overlay" not in table
    assert "cerco-" not in shared_cerco.run("--", "cat", "/proc/self/cgroup").text


def test_the_hosts_uptime_does_not_show(shared_cerco, probe):
    assert int(inside(shared_cerco, probe, "uptime").text) < 60
    assert int(subprocess.run([str(probe), "uptime"], capture_output=True, text=True).stdout) >= 60
    assert int(inside(shared_cerco, probe, "uptime", without=["time_namespace"]).text) >= 60


def test_inotify_of_others_is_untouched(shared_cerco, probe):
    """E96: while one sandbox holds all that it gets, another one, the host's root and the host's user of the same number get some."""
    def one(*prefix):
        return subprocess.run([*prefix, str(probe), "inotify", "1"], capture_output=True, text=True).stdout
    same_number = ("setpriv", "--reuid", "1000", "--clear-groups")
    for parent in list(probe.parents)[:-2]:
        os.chmod(parent, os.stat(parent).st_mode | 0o055)

    def hog(**kwargs):
        process = shared_cerco.start("run", "--in", f"{probe}:probe", "--", "./probe", "inotify_hold", stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, **kwargs)
        assert int(process.stdout.readline()) >= 64
        return process
    held = hog()
    try:
        assert one().startswith("GOT")
        assert one(*same_number).startswith("GOT")
        assert inside(shared_cerco, probe, "inotify", "1").text.startswith("GOT")
    finally:
        held.communicate(b"\n", timeout=GUARD)
    held = hog(without=["user_namespace"])
    try:
        assert one(*same_number) == "EMFILE\n"
    finally:
        held.communicate(b"\n", timeout=GUARD)


def test_inodes_are_limited(shared_cerco):
    """E94."""
    script = "i=0; mkdir d; while [ $i -lt 3000 ]; do : > d/$i || exit 1; i=$((i+1)); done; echo all"
    result = shared_cerco.run("--set", "limits.inodes=1000", "--", "sh", "-c", script)
    assert result.status != 0 and b"all" not in result.out
    assert result.report["ending"]["kind"] == "disk_full"
    assert shared_cerco.run("--", "sh", "-c", script).out == b"all\n"


def test_links_planted_inside_are_not_followed_outside(shared_cerco, tmp_path):
    """E69, E70, F73: what comes out is what was made inside, never what a link points to on the host."""
    canary = tmp_path / "canary"
    canary.write_text("host secret")
    result = shared_cerco.run("--out", "out", "--", "sh", "-c", f"ln -s {canary} a; ln -s / b; mkdir c; ln -s ../../.. c/up; mkfifo f; echo x > plain",
                              cwd=tmp_path)
    assert result.status == 0, result
    out = tmp_path / "out"
    assert (out / "plain").read_text() == "x\n"
    assert not (out / "a").exists() or (out / "a").is_symlink()
    # A link that stands in the way on the host is replaced, not followed.
    (tmp_path / "again").mkdir()
    (tmp_path / "again" / "plain").symlink_to(canary)
    shared_cerco.run("--out", "again", "--", "sh", "-c", "echo evil > plain", cwd=tmp_path)
    assert canary.read_text() == "host secret"


def test_sparse_bombs_do_not_come_out(shared_cerco, tmp_path):
    """E73."""
    result = shared_cerco.run("--set", "limits.disk=64MiB", "--out", "out", "--", "sh", "-c", "truncate -s 1T big; echo x > small", cwd=tmp_path)
    total = sum(path.stat().st_size for path in (tmp_path / "out").rglob("*") if path.is_file()) if (tmp_path / "out").exists() else 0
    assert total < (1 << 30)
    assert "big" in result.error or result.status == 125, result


def test_file_trees_that_bite(shared_cerco, tmp_path):
    """E75: deep, odd and many names."""
    script = ("python3 - <<'X'\nimport os\nfor i in range(600):\n    os.mkdir('d'); os.chdir('d')\nopen('leaf', 'w').write('x')\nos.chdir('/workspace')\n"
              "open(b'n\\xff\\xfe', 'w').write('y')\nos.mkdir('many')\nfor i in range(2000): open(f'many/{i}', 'w').close()\nX")
    result = shared_cerco.run("--out", "out", "--", "sh", "-c", script, cwd=tmp_path)
    assert len(list((tmp_path / "out" / "many").iterdir())) == 2000, result
    assert os.path.exists(os.fsencode(tmp_path / "out") + b"/n\xff\xfe")
