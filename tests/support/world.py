"""A small internet in network namespaces that the test makes: `host`, where cerco runs, and `net`, where
servers, a DNS server and a certificate authority are. Nothing of it reaches this machine's own network."""
import datetime
import ipaddress
import itertools
import json
import os
import pathlib
import subprocess
import sys
import time

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from cerco import GUARD, Cerco, wait_until

SUPPORT = pathlib.Path(__file__).resolve().parent
DNS = "185.12.64.53"
# Public-looking addresses of the small internet; each may have servers.
PUBLIC = ["93.184.216.34", "93.184.216.35", "93.184.216.36", "93.184.216.37", "151.101.1.7"]
PUBLIC6 = ["2606:2800:220:1::34"]
# Addresses that must never be reached, with servers behind them so that a hole would show.
FORBIDDEN = ["169.254.169.254", "10.9.9.9", "172.16.5.5", "192.168.77.7", "100.100.100.200", "168.63.129.16"]
_numbers = itertools.count(os.getpid() % 50000)


def ip(*args):
    subprocess.run(["ip", *args], check=True, capture_output=True)


class Authority:
    """A certificate authority of the small internet; `bundle` is a file with its certificate."""

    def __init__(self, folder, name="small internet root"):
        self.folder = pathlib.Path(folder)
        self.key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.certificate = self._sign(subject, subject, self.key, None, ca=True)
        self.bundle = self.folder / f"{name.replace(' ', '-')}.pem"
        self.bundle.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))

    def _sign(self, subject, issuer, key, names, ca=False, days=(-1, 30)):
        now = datetime.datetime.utcnow()
        builder = (x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
                   .serial_number(x509.random_serial_number())
                   .not_valid_before(now + datetime.timedelta(days=days[0]))
                   .not_valid_after(now + datetime.timedelta(days=days[1]))
                   .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
                   .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
                   .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()),
                                  critical=False))
        if names:
            alternatives = [x509.DNSName(name) for name in names]
            builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        return builder.sign(self.key, hashes.SHA256())

    def leaf(self, *names, expired=False):
        """Files with a certificate for the names and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:60])])
        certificate = self._sign(subject, self.certificate.subject, key, names, days=(-9, -2) if expired else (-1, 30))
        path = self.folder / f"{names[0].replace('*', 'any')}-{time.monotonic_ns()}.pem"
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM) +
                         key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                           serialization.NoEncryption()))
        return str(path)


class Server:
    """A process in a namespace that writes one JSON object a line for everything it saw."""

    def __init__(self, world, namespace, kind, config):
        self.log = world.folder / f"{kind}-{time.monotonic_ns()}.log"
        self.log.touch()
        self.start = 0  # what the log held before it was last cleared does not count
        self.process = subprocess.Popen(
            ["nsenter", f"--net=/run/netns/{namespace}", sys.executable, str(SUPPORT / "servers.py"), kind,
             json.dumps(config), str(self.log)], stdin=subprocess.DEVNULL)
        wait_until(lambda: any(entry.get("ready") for entry in self.entries(all=True)), what=f"server {kind} {config}")

    def entries(self, all=False):
        whole = self.log.read_bytes()[self.start:].rpartition(b"\n")[0]  # not a line that is being written
        found = [json.loads(line) for line in whole.splitlines() if line]
        return found if all else [entry for entry in found if not entry.get("ready")]

    def clear(self):
        """Forgets what was seen so far; returns nothing."""
        self.start = self.log.stat().st_size

    def stop(self):
        self.process.terminate()
        self.process.wait(GUARD)


class World:
    def __init__(self, folder, tier="container"):
        self.tier = tier  # of the boxes that cerco() makes
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        number = next(_numbers)
        self.host, self.net = f"cw{number}h", f"cw{number}n"
        self.servers = []
        self.authority = Authority(self.folder)
        self.zone = {}
        self._make()

    def _make(self):
        for name in (self.host, self.net):
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        ip("-n", self.host, "link", "add", "up0", "type", "veth", "peer", "name", "up0", "netns", self.net)
        ip("-n", self.host, "addr", "add", "198.51.7.2/30", "dev", "up0")
        ip("-n", self.net, "addr", "add", "198.51.7.1/30", "dev", "up0")
        ip("-n", self.host, "-6", "addr", "add", "2a01:4f8:0:7::2/64", "dev", "up0", "nodad")
        ip("-n", self.net, "-6", "addr", "add", "2a01:4f8:0:7::1/64", "dev", "up0", "nodad")
        for name in (self.host, self.net):
            ip("-n", name, "link", "set", "up0", "up")
        ip("-n", self.host, "route", "add", "default", "via", "198.51.7.1")
        ip("-n", self.host, "-6", "route", "add", "default", "via", "2a01:4f8:0:7::1")
        for address in [DNS, *PUBLIC, *FORBIDDEN]:
            ip("-n", self.net, "addr", "add", f"{address}/32", "dev", "lo")
        for address in PUBLIC6:
            ip("-n", self.net, "-6", "addr", "add", f"{address}/128", "dev", "lo", "nodad")
        self.dns = self.serve("dns", {"address": DNS, "zone_file": str(self.folder / "zone.json")}, zone=True)

    def names(self, **records):
        """Adds records: name with `_` for `.` is awkward, so pass a dict through `records={...}`."""
        self.zone.update(records.pop("records", {}))
        self.zone.update(records)
        self._write_zone()

    def _write_zone(self):
        path = self.folder / "zone.json"
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps(self.zone))
        fresh.rename(path)

    def serve(self, kind, config, namespace=None, zone=False):
        if zone:
            self._write_zone()
        server = Server(self, namespace or self.net, kind, config)
        self.servers.append(server)
        return server

    def https(self, names, address=PUBLIC[0], port=443, authority=None, **more):
        """An HTTPS server for the names, which are put into the zone."""
        names = [names] if isinstance(names, str) else list(names)
        for name in names:
            self.zone.setdefault(name, [address])
        self._write_zone()
        certificate = (authority or self.authority).leaf(*names, expired=more.pop("expired", False))
        return self.serve("http", {"address": address, "port": port, "certificate": certificate, **more})

    def http(self, name, address=PUBLIC[0], port=80, **more):
        self.zone.setdefault(name, [address])
        self._write_zone()
        return self.serve("http", {"address": address, "port": port, **more})

    def tcp(self, address, port, **more):
        return self.serve("tcp", {"address": address, "port": port, **more})

    def inside(self, namespace, *command, **kwargs):
        return subprocess.run(["nsenter", f"--net=/run/netns/{namespace}", *command], capture_output=True,
                              timeout=GUARD, **kwargs)

    def cerco(self, folder=None, environment=None):
        environment = {"SSL_CERT_FILE": str(self.authority.bundle), **(environment or {})}
        return Cerco(folder or self.folder, prefix=["nsenter", f"--net=/run/netns/{self.host}"],
                     environment=environment, tier=self.tier)

    def policy(self, text):
        """A policy that resolves through the small internet's DNS server."""
        return f'version = 1\n{text}\n[network]\nresolvers = ["{DNS}"]\n' if "[network]" not in text else text

    def close(self):
        for server in self.servers:
            server.stop()
        for name in (self.host, self.net):
            subprocess.run(["ip", "netns", "del", name], check=False)
