"""The gateway beside proxies that people know, interleaved in one run: tunnels beside squid's CONNECT, plain HTTP beside squid with
its log, TLS that ends and gets a credential beside nginx and mitmproxy; latencies at one and at sixteen connections, and memory.

Server and proxies have one process each, as a gateway has. The clients are wrk and curl, in the sandbox for cerco, else in the
namespace of the host. cerco's policy, journal and redaction are on; nginx and squid write an access log.
"""
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
CERCO = str(ROOT / "build" / "cerco")
HOST = "198.51.7.2"  # of the world's host, where the rivals listen
SECRET = "sk-bench-5f1e0c7a92d84b36"
BIG = 1 << 30

SERVER = """
daemon off; pid {folder}/server.pid; worker_processes 1; error_log stderr crit;
events {{ worker_connections 1024; }}
http {{ access_log off; keepalive_requests 100000000; sendfile on; {paths}
  server {{ listen {one}:80; listen {one}:7000; listen {one}:443 ssl; root {folder}/www; ssl_certificate {pem}; ssl_certificate_key {pem}; }} }}
"""
REVERSE = """
daemon off; pid {folder}/reverse.pid; worker_processes 1; error_log stderr crit;
events {{ worker_connections 1024; }}
http {{ access_log {folder}/reverse.log; keepalive_requests 100000000; {paths}
  upstream server {{ server {one}:443; keepalive 32; }}
  server {{ listen {host}:8443 ssl; ssl_certificate {pem}; ssl_certificate_key {pem};
    location / {{ proxy_pass https://server; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host api.test;
      proxy_set_header Authorization "Bearer {secret}"; proxy_ssl_verify on; proxy_ssl_trusted_certificate {roots}; proxy_ssl_name api.test;
      proxy_ssl_server_name on; }} }} }}
"""
PATHS = "".join(f"{kind}_temp_path {{folder}}/{kind}; " for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
SQUID = """
http_port {host}:3128
pid_filename {folder}/squid.pid
cache deny all
cache_mem 0 MB
access_log stdio:{folder}/access.log
cache_log {folder}/cache.log
coredump_dir {folder}
dns_nameservers {dns}
acl all_of_it src all
http_access allow all_of_it
shutdown_lifetime 0 seconds
cache_effective_user proxy
"""
ADDON = """
class Add:
    def request(self, flow):
        flow.request.headers["Authorization"] = "Bearer {secret}"
addons = [Add()]
"""
POLICY = """
version = 1
task = "bench"
[network]
resolvers = ["{dns}"]
[alerts]
request_spike = "note"
new_destination = "note"
[[egress]]
host = "plain.test"
ports = [80]
methods = ["GET"]
[[egress]]
tcp = "plain.test:7000"
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
# wrk asks a forward proxy for whole URLs, and says its percentiles in microseconds.
LUA = """
if os.getenv("BENCH_URL") then wrk.path = os.getenv("BENCH_URL") end
if os.getenv("BENCH_HOST") then wrk.headers["Host"] = os.getenv("BENCH_HOST") end
if os.getenv("BENCH_AUTH") then wrk.headers["Authorization"] = "Bearer " .. os.getenv("API_KEY") end
done = function(summary, latency)
  local errors = summary.errors
  io.write(string.format("BENCH %f %f %f %d\\n", summary.requests * 1e6 / summary.duration, latency:percentile(50), latency:percentile(99),
           errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
"""


def memory_of(pid, what="VmHWM"):
    """What a process held at most, in MiB; 0 when it is gone."""
    try:
        return int(re.search(rf"^{what}:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text(), re.M)[1]) / 1024
    except (OSError, TypeError):
        return 0


def processor_time(pids):
    """Microseconds that processes have used, by ticks of 10 ms."""
    ticks = 0
    for pid in pids:
        try:
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        except OSError:
            pass
    return ticks * 1e6 / os.sysconf("SC_CLK_TCK")


def descendants(pid):
    try:
        found = [int(child) for task in pathlib.Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()]
    except OSError:
        return []
    return found + [below for child in found for below in descendants(child)]


class Bench:
    """The small internet with its server, the three rivals on the host, and cerco."""

    def __init__(self, folder):
        from world import DNS, PUBLIC, World
        os.chmod(folder, 0o755)
        self.folder, self.started, self.peaks, self.used = folder, [], {}, 0
        self.world = World(folder / "world")
        self.one = PUBLIC[0]
        self.world.names(records={"plain.test": [self.one], "api.test": [self.one]})
        www = folder / "www"
        www.mkdir()
        (www / "1k").write_bytes(b"x" * 1024)
        with open(www / "big", "wb") as big:
            big.truncate(BIG)
        with open(www / "bigger", "wb") as bigger:
            bigger.truncate(2 * BIG)
        (folder / "wrk.lua").write_text(LUA)
        self.policy = folder / "policy.toml"
        self.policy.write_text(POLICY.format(dns=DNS))
        (folder / "cerco").mkdir()
        self.cerco = self.world.cerco(folder / "cerco", environment={"API_KEY": SECRET})
        self.service = f"cercobench{os.getpid()}"  # names squid's shared memory
        values = {"folder": folder, "one": self.one, "host": HOST, "pem": self.world.authority.leaf("api.test"), "secret": SECRET,
                  "roots": self.world.authority.bundle, "paths": PATHS.format(folder=folder), "dns": DNS}
        self.nginx("server", SERVER, self.world.net, values)
        self.rivals = {"nginx": self.nginx("reverse", REVERSE, self.world.host, values), "squid": self.squid(values)}
        if shutil.which("mitmdump"):
            self.rivals["mitmproxy"] = self.mitmproxy(values)

    def enter(self, name):
        return ["nsenter", f"--net=/run/netns/{name}"]

    def start(self, namespace, *argv, **kwargs):
        self.started.append(subprocess.Popen([*self.enter(namespace), *map(str, argv)], **kwargs))
        return self.started[-1]

    def nginx(self, name, text, namespace, values):
        (self.folder / f"{name}.conf").write_text(text.format(**values))
        return self.start(namespace, "nginx", "-c", self.folder / f"{name}.conf", "-p", self.folder)

    def squid(self, values):
        home = self.folder / "squid"
        home.mkdir()
        shutil.chown(home, "proxy")  # it refuses to work as root
        (home / "squid.conf").write_text(SQUID.format(**{**values, "folder": home}))
        return self.start(self.world.host, "squid", "-N", "-n", self.service, "-f", home / "squid.conf")

    def mitmproxy(self, values):
        (self.folder / "add.py").write_text(ADDON.format(**values))
        # It is given an address, since it would ask the machine's own resolver, and so cannot verify the name: less work than ours.
        return self.start(self.world.host, "mitmdump", "-q", "--mode", f"reverse:https://{self.one}", "--listen-host", HOST, "-p", "8444", "-s",
                          self.folder / "add.py", "--set", f"confdir={self.folder}/mitm", "--set", "ssl_insecure=true", "--set", "block_global=false",
                          stdout=subprocess.DEVNULL, env={**os.environ, "HOME": str(self.folder)})

    def ready(self):
        for port in (8443, 3128, *([8444] if "mitmproxy" in self.rivals else [])):
            for _ in range(400):
                if subprocess.run([*self.enter(self.world.host), "bash", "-c", f"echo > /dev/tcp/{HOST}/{port}"], capture_output=True).returncode == 0:
                    break
                time.sleep(0.05)
            else:
                sys.exit(f"bench: nothing listens on {port}")

    def client(self, name, argv, env):
        """What a client writes, in the sandbox for cerco; how much its gateway held is kept."""
        if name != "cerco":
            done = subprocess.run([*self.enter(self.world.host), *argv], env={**os.environ, **env}, capture_output=True, text=True)
            return done.stdout + done.stderr
        flags = [word for key, value in env.items() for word in ("--env", f"{key}={value}")]
        run = subprocess.Popen(self.cerco.command("run", "--quiet", "--policy", self.policy, "--in", self.folder / "wrk.lua", *flags, "--", *argv),
                               env=self.cerco.env(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        watch = threading.Thread(target=self.watch, args=(run,))
        watch.start()
        out = run.communicate()[0]
        watch.join()
        return out

    def watch(self, run):
        while run.poll() is None:
            ours = {}
            for pid in descendants(run.pid):
                try:
                    ours[pid] = pathlib.Path(f"/proc/{pid}/comm").read_text()
                except OSError:
                    pass
            parts = [pid for pid, name in ours.items() if name.startswith(("cerco-gateway", "cerco-journal", "cerco-broker"))]
            self.peaks["cerco"] = max([self.peaks.get("cerco", 0), *(memory_of(pid) for pid in parts if ours[pid].startswith("cerco-gateway"))])
            self.used = max(self.used, processor_time(parts))
            time.sleep(0.05)

    def wrk(self, name, url, connections, seconds, **env):
        """Requests a second, median and 99th percentile in µs, and µs of processor a request of who is between."""
        script = "wrk.lua" if name == "cerco" else str(self.folder / "wrk.lua")
        rival = self.rivals.get(name)
        pids = [rival.pid, *descendants(rival.pid)] if rival else []
        self.used = 0
        before = processor_time(pids)
        out = self.client(name, ["wrk", "-t1", f"-c{connections}", f"-d{seconds}", "-s", script, url], env)
        found = re.search(r"BENCH ([\d.]+) ([\d.]+) ([\d.]+) (\d+)", out)
        if not found or found[4] != "0":
            sys.exit(f"bench: wrk at {name} failed:\n{out[-1500:]}")
        used = self.used if name == "cerco" else processor_time(pids) - before
        return float(found[1]), float(found[2]), float(found[3]), used / (float(found[1]) * seconds)

    def download(self, name, *flags):
        """MB a second of one large file."""
        out = self.client(name, ["curl", "-sS", "-o", "/dev/null", "-w", "SPEED %{speed_download} %{size_download} %{http_code}", *flags], {})
        found = re.search(r"SPEED (\d+) (\d+) 200", out)
        if not found:
            sys.exit(f"bench: curl at {name} failed:\n{out[-1500:]}")
        return int(found[1]) / 1e6

    def close(self):
        for process in self.started:
            process.terminate()
            process.wait()
        for left in pathlib.Path("/dev/shm").glob(f"{self.service}-*"):
            left.unlink()
        self.world.close()


def rows_of(bench):
    """Each table: its title, and for each way a function that measures it once."""
    one = bench.one
    tunnel = {
        "direct": lambda: (bench.download("direct", f"http://{one}:7000/big"),),
        "squid": lambda: (bench.download("squid", "-p", "-x", f"http://{HOST}:3128", f"http://{one}:7000/big"),),
        "cerco": lambda: (bench.download("cerco", "http://plain.test:7000/big"),)}

    def plain(connections, seconds):
        return {"direct": lambda: bench.wrk("direct", f"http://{one}/1k", connections, seconds),
                "squid": lambda: bench.wrk("squid", f"http://{HOST}:3128/", connections, seconds, BENCH_URL="http://plain.test/1k", BENCH_HOST="plain.test"),
                "cerco": lambda: bench.wrk("cerco", "http://plain.test/1k", connections, seconds)}

    def tls(connections, seconds):
        ways = {"direct": lambda: bench.wrk("direct", f"https://{one}/1k", connections, seconds, BENCH_HOST="api.test"),
                "nginx": lambda: bench.wrk("nginx", f"https://{HOST}:8443/1k", connections, seconds, BENCH_HOST="api.test"),
                "cerco": lambda: bench.wrk("cerco", "https://api.test/1k", connections, seconds, BENCH_AUTH="1")}
        if "mitmproxy" in bench.rivals:
            ways["mitmproxy"] = lambda: bench.wrk("mitmproxy", f"https://{HOST}:8444/1k", connections, seconds, BENCH_HOST="api.test")
        return ways
    return tunnel, plain, tls


def measured(ways, rounds):
    """Medians of each figure, the ways taken in turn."""
    seen = {name: [] for name in ways}
    for _ in range(rounds):
        for name, once in ways.items():
            seen[name].append(once())
    return {name: [statistics.median(column) for column in zip(*values)] for name, values in seen.items()}


def show(title, unit, medians, targets):
    print(f"\n{title}")
    ours = medians["cerco"]
    for name, values in medians.items():
        ratio = "" if name == "cerco" else f"cerco is {ours[0] / values[0]:6.2f} ×"
        latency = f"   p50 {values[1]:7.0f} µs  p99 {values[2]:7.0f} µs  processor {values[3]:6.1f} µs" if len(values) > 1 else ""
        print(f"  {name:<10}{values[0]:10.0f} {unit}{latency}   {ratio:<20}{targets.get(name, '')}")


def measure(rounds, folder, seconds):
    bench = Bench(folder)
    try:
        bench.ready()
        tunnel, plain, tls = rows_of(bench)
        show(f"a tunnel, 1 GiB, median of {rounds}, interleaved", "MB/s", measured(tunnel, rounds), {"direct": "target ≥ 0.7 ×", "squid": "target ≥ 1.6 ×"})
        show("plain HTTP, 1 KiB, 16 kept connections", "requests/s", measured(plain(16, seconds), rounds), {"squid": "target ≥ 2 ×"})
        show("TLS ended and a credential put in, 1 KiB, 16 kept connections", "requests/s", measured(tls(16, seconds), rounds),
             {"nginx": "target ≥ 1.0 ×", "mitmproxy": "target ≥ 20 ×"})
        alone = measured(tls(1, seconds), rounds)
        show("the same, one connection", "requests/s", alone, {})
        added = [alone["cerco"][at] - alone["direct"][at] for at in (1, 2)]
        print(f"  added latency: p50 {added[0]:.0f} µs, p99 {added[1]:.0f} µs   target ≤ 150 µs, ≤ 1 ms")
        so_far = bench.peaks.pop("cerco", 0)
        bench.download("cerco", "https://api.test/bigger")
        print(f"\nmemory at most: gateway {so_far:.1f} MiB in the above, {bench.peaks.get('cerco', 0):.1f} MiB with a body of 2 GiB in ended TLS   target ≤ 16 MiB")
        for name, process in bench.rivals.items():
            pids = [process.pid, *descendants(process.pid)]
            print(f"  {name:<10}{sum(memory_of(pid) for pid in pids):8.1f} MiB in {len(pids)} processes")
    finally:
        bench.close()
