"""Nothing of the host inside: secrets in the places where hosts keep them, and a search of all that a sandbox can read."""
# lane: full
# sanitized
import base64
import binascii
import ctypes
import os
import secrets
import socket
import urllib.parse

import pytest

from world import DNS

MARK = "pl+/" + secrets.token_hex(12)  # in every planted secret; + and / look different in a URL

# Below the caller's home.
HOME = [".aws/credentials", ".aws/config", ".ssh/id_ed25519", ".ssh/config", ".netrc", ".npmrc", ".pypirc", ".git-credentials",
        ".gitconfig", ".docker/config.json", ".kube/config", ".config/gh/hosts.yml", ".config/gcloud/credentials.db",
        ".config/gcloud/application_default_credentials.json", ".azure/accessTokens.json", ".azure/msal_token_cache.json",
        ".cargo/credentials.toml", ".gem/credentials", ".m2/settings.xml", ".gradle/gradle.properties", ".terraform.d/credentials.tfrc.json",
        ".vault-token", ".pgpass", ".my.cnf", ".config/rclone/rclone.conf", ".gnupg/private-keys-v1.d/key", ".password-store/a.gpg",
        ".local/share/keyrings/login.keyring", ".bash_history", ".python_history", ".env", ".claude.json", ".codex/auth.json"]
# Of the machine; in a mount namespace of the test's own.
MACHINE = ["/run/secrets/token", "/var/run/secrets/kubernetes.io/serviceaccount/token", "/etc/cerco-test-secrets/key", "/root/.ssh/id_rsa",
           "/home/someone/.netrc", "/srv/key", "/mnt/key", "/media/key", "/opt/cerco-test/key", "/var/lib/cerco-test/key",
           "/tmp/cerco-test-key", "/var/tmp/cerco-test-key", "/dev/shm/cerco-test-key"]
TMPFS = ["/run", "/etc/cerco-test-secrets", "/root", "/home", "/srv", "/mnt", "/media", "/opt", "/var/lib/cerco-test", "/var/tmp", "/dev/shm"]

LOOK = r"""
import base64, os, re, stat, sys
mark = bytes(c ^ 1 for c in bytes.fromhex(MARKHEX))
forms = {mark, mark.hex().encode(), mark.hex().upper().encode()}
quoted = b''.join(b'%%%02X' % c if chr(c) in '+/' else bytes([c]) for c in mark)
forms |= {quoted, quoted.replace(b'%2B', b'%2b').replace(b'%2F', b'%2f')}
for before in range(3):
    stem = mark[(3 - before) % 3:]
    text = base64.b64encode(stem[:len(stem) // 3 * 3])
    forms |= {text, text.replace(b'+', b'-').replace(b'/', b'_')}
needle = re.compile(b'|'.join(re.escape(form) for form in forms))
own = os.getpid()
found, looked = set(), 0
def look(where, data):
    global looked
    looked += 1
    if needle.search(data): found.add(where)
def look_at(path):
    try:
        if not stat.S_ISREG(os.stat(path).st_mode): return
        with open(path, 'rb') as f:
            tail = b''
            for _ in range(256):
                data = f.read(1 << 20)
                if not data: break
                look(path, tail + data)
                tail = data[-256:]
    except OSError: pass
for top, folders, names in os.walk('/'):
    look(top, os.fsencode(' '.join(names + folders)))
    if top == '/': folders[:] = [f for f in folders if f not in ('proc', 'sys', 'usr')]
    for name in names:
        path = os.path.join(top, name)
        try:
            if os.path.islink(path): look(path, os.fsencode(os.readlink(path)))
        except OSError: pass
        look_at(path)
for pid in ['self'] + [p for p in os.listdir('/proc') if p.isdigit()]:
    for name in ('environ', 'cmdline', 'comm', 'maps', 'mountinfo', 'cgroup', 'status'): 
        try: look('/proc/' + pid + '/' + name, open('/proc/%s/%s' % (pid, name), 'rb').read())
        except OSError: pass
    if pid in ('self', str(own)): continue  # the looker holds what it looks for
    try: lines = open('/proc/%s/maps' % pid).read().splitlines()
    except OSError: continue
    for line in lines:
        a, b = (int(x, 16) for x in line.split()[0].split('-'))
        try:
            with open('/proc/%s/mem' % pid, 'rb', 0) as m:
                m.seek(a); look('/proc/' + pid + '/mem', m.read(min(b - a, 64 << 20)))
        except (OSError, OverflowError, ValueError): pass
for name in ('keys', 'key-users', 'mounts', 'net/unix', 'sysvipc/shm', 'cmdline', 'version', 'partitions'):
    try: look('/proc/' + name, open('/proc/' + name, 'rb').read())
    except OSError: pass
for line in open('/proc/net/unix').read().splitlines()[1:]:
    if line.split()[-1].startswith('@'): found.add('an abstract socket ' + line.split()[-1])
for variable in ('SSH_AUTH_SOCK', 'DBUS_SESSION_BUS_ADDRESS', 'GPG_AGENT_INFO', 'DOCKER_HOST'):
    if variable in os.environ: found.add('the variable ' + variable)
print('looked', looked > 100)
for where in sorted(found): print('FOUND', where)
"""


def look_program():
    return LOOK.replace("MARKHEX", repr(bytes(c ^ 1 for c in MARK.encode()).hex()))


def add_key(text):
    """Into the session keyring that the caller and its children share; None where there are none."""
    libc = ctypes.CDLL(None, use_errno=True)
    add, session = 248 if os.uname().machine == "x86_64" else 217, -3
    number = libc.syscall(add, b"user", b"cerco-test", text.encode(), len(text), session)
    return number if number > 0 else None


@pytest.fixture(scope="module")
def box(world, tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    for number, name in enumerate(HOME):
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"secret-{number}-{MARK}\n")
    agent = home / "agent.sock"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(agent))
    listener.listen()
    abstract = socket.socket(socket.AF_UNIX)
    abstract.bind(f"\0cerco-test-{MARK}")
    abstract.listen()
    script = home / "plant.sh"
    lines = ["set -e", "mount --make-rprivate /"]
    lines += [f"mkdir -p {place} && mount -t tmpfs -o mode=755 tmpfs {place}" for place in TMPFS]
    lines += [f"mkdir -p $(dirname {path}) && printf '%s' 'secret-{MARK}' > {path}" for path in MACHINE]
    lines += ["ln -sfn /run /var/run 2>/dev/null || true", "mkdir -p /run/netns", 'exec "$@"']
    script.write_text("\n".join(lines) + "\n")
    box = world.cerco(environment={"HOME": str(home), "SSH_AUTH_SOCK": str(agent), "AWS_SECRET_ACCESS_KEY": f"secret-{MARK}",
                                   "GITHUB_TOKEN": f"secret-{MARK}", "DATABASE_URL": f"postgres://u:secret-{MARK}@db/x",
                                   "DBUS_SESSION_BUS_ADDRESS": f"unix:abstract=cerco-test-{MARK}", "API_KEY": f"secret-{MARK}"})
    box.prefix += ["unshare", "--mount", "sh", str(script)]
    box.home = home
    yield box
    listener.close()
    abstract.close()


POLICY = f"""
version = 1
[network]
resolvers = ["{DNS}"]
[[egress]]
host = "api.test"
methods = ["GET"]
[[credential]]
name = "api"
source = {{ env = "API_KEY" }}
hosts = ["api.test"]
methods = ["GET"]
paths = ["/**"]
inject = {{ header = "Authorization", format = "Bearer {{secret}}" }}
env = {{ API_KEY = "secret" }}
"""


def test_nothing_that_was_planted_is_found(world, box):
    """More than 40 places: files, variables, keyring, sockets; raw, Base64, hexadecimal and URL-encoded, memory included."""
    assert len(HOME) + len(MACHINE) >= 40
    world.https("api.test")
    add_key(f"secret-{MARK}")
    (box.home / "look.py").write_text(look_program())
    script = 'curl -sS -o /dev/null -H "Authorization: Bearer $API_KEY" https://api.test/; sleep 300 & exec python3 look.py'
    result = box.run("--in", str(box.home / "look.py"), "--", "sh", "-c", script, policy=POLICY)
    assert result.text.splitlines() == ["looked True"], result
    assert len(result.of_type("credential.used")) == 1, result.events


def test_what_is_there_would_be_found(world, box, tmp_path):
    """The control: a file, a variable, the memory of another process, in each form."""
    (box.home / "look.py").write_text(look_program())
    raw = f"secret-{MARK}".encode()
    forms = {"raw": raw, "hex": binascii.hexlify(raw), "base64": base64.b64encode(b"x" + raw), "url": urllib.parse.quote(raw, safe="").encode()}
    folder = tmp_path / "planted"
    folder.mkdir()
    for name, data in forms.items():
        (folder / name).write_bytes(data)
    script = ('export SHOWN="$(cat planted/raw)"; '
              'python3 -c "import sys, time; kept = open(\'planted/raw\').read() * 100; print(1, flush=True); time.sleep(300)" | head -n 1 > started & '
              'while ! [ -s started ]; do sleep 0.05; done; exec python3 look.py')
    result = box.run("--in", str(box.home / "look.py"), "--in", str(folder), "--", "sh", "-c", script, policy=POLICY)
    found = [line.split(" ", 1)[1] for line in result.text.splitlines() if line.startswith("FOUND")]
    for name in forms:
        assert f"/workspace/planted/{name}" in found, (name, result)
    assert [where for where in found if where.endswith("/environ")], result
    assert [where for where in found if where.endswith("/mem")], result
