"""psql inside without a password, against a real PostgreSQL that asks for SCRAM-SHA-256 over TLS."""
# lane: full
# sanitized
import glob
import os
import pathlib
import pwd
import shutil
import subprocess
import tempfile

import pytest

from cerco import wait_until
from world import DNS, PUBLIC

PASSWORD = "pen cil-9f8e7d6c5b4a"
PROGRAMS = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
pytestmark = pytest.mark.skipif(not PROGRAMS, reason="no server of PostgreSQL (Debian's postgresql)")

POLICY = f"""
version = 1
[network]
resolvers = ["{DNS}"]
[[egress]]
tcp = "db.test:5432"
[[egress]]
tcp = "impostor.test:5432"
[[credential]]
name = "db"
source = {{ env = "DB_PASSWORD" }}
hosts = ["db.test", "impostor.test"]
ports = [5432]
inject = {{ postgres = "app" }}
require = false
"""
WAITS = POLICY.replace("require = false", 'env = { PGPASSWORD = "secret" }')
PSQL = "psql -X -At -h db.test -U app -d postgres"


class Database:
    """One cluster in a folder of its own, in the small internet's namespace."""

    def __init__(self, world):
        self.bin = pathlib.Path(PROGRAMS[-1]).parent
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cerco-pg-"))
        self.user = pwd.getpwnam("postgres")
        (self.folder / "password").write_text("of the superuser")
        pem = pathlib.Path(world.authority.leaf("db.test"))
        shutil.copy(pem, self.folder / "server.pem")
        for path in (self.folder, self.folder / "password", self.folder / "server.pem"):
            os.chown(path, self.user.pw_uid, self.user.pw_gid)
        (self.folder / "server.pem").chmod(0o600)
        self.run("initdb", "-D", self.folder / "data", "-U", "postgres", "-A", "scram-sha-256", "--pwfile", self.folder / "password", "-N")
        (self.folder / "data" / "pg_hba.conf").write_text("local all all trust\nhostssl all all 0.0.0.0/0 scram-sha-256\n")
        self.log = open(self.folder / "log", "wb")
        settings = {"listen_addresses": PUBLIC[3], "unix_socket_directories": self.folder, "ssl": "on", "fsync": "off",
                    "ssl_cert_file": self.folder / "server.pem", "ssl_key_file": self.folder / "server.pem", "log_connections": "on"}
        self.process = subprocess.Popen(
            ["nsenter", f"--net=/run/netns/{world.net}", *self.command("postgres", "-D", self.folder / "data", *[
                word for name, value in settings.items() for word in ("-c", f"{name}={value}")])],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, cwd="/")
        wait_until(lambda: self.sql("select 1", check=False) == "1", what=self.text)
        self.sql(f"create role app login password '{PASSWORD}'")

    def command(self, program, *args):
        return ["setpriv", f"--reuid={self.user.pw_uid}", f"--regid={self.user.pw_gid}", "--clear-groups", str(self.bin / program),
                *map(str, args)]

    def run(self, program, *args, check=True):
        return subprocess.run(self.command(program, *args), check=check, capture_output=True, cwd="/", env={"LANG": "C.UTF-8"})

    def sql(self, text, check=True):
        return self.run("psql", "-X", "-At", "-h", self.folder, "-U", "postgres", "-d", "postgres", "-c", text, check=check).stdout.decode().strip()

    def text(self):
        return (self.folder / "log").read_text()

    def close(self):
        self.process.terminate()
        self.process.wait(60)
        self.log.close()
        shutil.rmtree(self.folder)


@pytest.fixture(scope="module")
def net(world):
    world.names(records={"db.test": [PUBLIC[3]], "impostor.test": [PUBLIC[3]]})
    world.database = Database(world)
    world.box = world.cerco(environment={"DB_PASSWORD": PASSWORD})
    yield world
    world.database.close()


def run(net, script, policy=POLICY, box=None):
    result = (box or net.box).run("--", "sh", "-c", script, policy=policy)
    assert PASSWORD not in result.text + result.error
    for path in (net.box.state / "journal").glob("*.jsonl"):
        assert PASSWORD not in path.read_text(), "the password is in the journal"
    return result


def problems(result):
    return {e["problem"] for e in result.of_type("egress.ended") if e.get("problem")}


def test_psql_needs_no_password(net):
    """N139."""
    result = run(net, f"{PSQL} -w -c 'select current_user, ssl from pg_stat_ssl where pid = pg_backend_pid()'; env")
    assert result.status == 0 and result.text.splitlines()[0] == "app|t", result
    assert "PGPASSWORD" not in result.text
    assert 'identity="app" method=scram-sha-256' in net.database.text()
    used = result.of_type("credential.used")
    assert [(u["credential"], u["host"], u["port"], u["tls"]) for u in used] == [("db", "db.test", 5432, True)]


@pytest.mark.parametrize("mode", ["disable", "prefer", "require", "verify-full"])
def test_whether_the_client_wants_tls_or_not(net, mode):
    root = " sslrootcert=/etc/ssl/certs/ca-certificates.crt" if mode == "verify-full" else ""
    script = f"psql -X -At -w 'host=db.test user=app dbname=postgres sslmode={mode}{root}' -c 'select 1'"
    result = run(net, script)
    assert result.status == 0 and result.text.strip() == "1", result


def test_where_it_waits_for_its_placeholder(net):
    result = run(net, f"{PSQL} -w -c 'select 1'; PGPASSWORD=guess {PSQL} -w -c 'select 1'", WAITS)
    assert result.text.strip() == "1" and "own-credential" in result.error, result


def test_another_user_is_not_let_in(net):
    result = run(net, "psql -X -At -w -h db.test -U postgres -d postgres -c 'select 1'")
    assert result.status == 2 and "postgres-user" in result.error, result
    assert problems(result) == {"postgres-user"}


def test_a_server_with_a_certificate_of_another_name_gets_nothing(net):
    result = run(net, f"{PSQL.replace('db.test', 'impostor.test')} -w -c 'select 1'")
    assert result.status == 2 and problems(result) == {"upstream-certificate"}, result
    assert not result.of_type("credential.used")
    free = net.box.run("--", "sh", "-c", f"{PSQL.replace('db.test', 'impostor.test')} -w -c 'select 1'", policy=POLICY, without=["upstream_verify"])
    assert free.text.strip() == "1", "nothing else refuses it"


def test_the_server_s_own_refusal_is_passed_on(net):
    box = net.cerco(environment={"DB_PASSWORD": "another one"})
    result = run(net, f"{PSQL} -w -c 'select 1'", box=box)
    assert result.status == 2 and 'password authentication failed for user "app"' in result.error, result
    assert problems(result) == {"postgres-refused"}


def test_a_query_is_cancelled_and_much_is_read(net):
    result = run(net, f"timeout -s INT 2 {PSQL} -w -c 'select pg_sleep(60)'; {PSQL} -w -c 'select generate_series(1, 200000)' | sha256sum; "
                      f"{PSQL} -w -c 'select 5 / 0'; seq 1 200000 | sha256sum")
    lines = result.text.splitlines()
    assert "canceling statement due to user request" in result.error and "division by zero" in result.error, result
    assert lines[0] == lines[1], result
