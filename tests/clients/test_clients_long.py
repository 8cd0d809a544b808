"""Clients that are large to install, with no set-up but the index that they are to ask: cargo, go and Java's HttpClient."""
# lane: long
import hashlib
import io
import json
import subprocess
import tarfile
import zipfile

import pytest

from test_clients import POLICY, WAYS, encoded
from world import PUBLIC

MODULE = "small.test/mod"
JAVA = """
import java.net.URI;
import java.net.http.*;
public class Fetch {
  public static void main(String[] args) throws Exception {
    HttpRequest request = HttpRequest.newBuilder(URI.create(args[0])).build();
    System.out.println(HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString()).body());
  }
}
"""
GO_MAIN = 'package main\n\nimport "small.test/mod"\n\nfunc main() { println(mod.Word) }\n'
CLIENTS = {
    "go": "mkdir m && cd m && printf '%s' \"$GO_MAIN\" > main.go && go mod init x.test/x && GOFLAGS=-mod=mod GOPROXY=https://HOST/go "
          "GONOSUMDB=* go run . 2>&1",
    # Debian's cargo asks a git index; its own HTTP client fetches the crate.
    "cargo": "mkdir -p c/src && cd c && printf '[package]\\nname=\"c\"\\nversion=\"0.1.0\"\\n[dependencies]\\nsmallcrate = { version = \"1\", "
             "registry = \"small\" }\\n' > Cargo.toml && echo 'fn main() { println!(\"{}\", smallcrate::WORD) }' > src/main.rs && "
             "CARGO_NET_GIT_FETCH_WITH_CLI=true CARGO_REGISTRIES_SMALL_INDEX=https://HOST/index-HOST.git cargo run -q 2>&1",
    "java": "java -cp . Fetch https://HOST/word",
}


def go_files():
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        archive.writestr(f"{MODULE}@v1.0.0/go.mod", f"module {MODULE}\n")
        archive.writestr(f"{MODULE}@v1.0.0/mod.go", 'package mod\n\nconst Word = "got it"\n')
    at = f"/go/{MODULE}/@v"
    info = json.dumps({"Version": "v1.0.0", "Time": "2024-01-01T00:00:00Z"})
    return {f"{at}/list": {"body": "v1.0.0\n"}, f"{at}/v1.0.0.info": {"body": info}, f"/go/{MODULE}/@latest": {"body": info},
            f"{at}/v1.0.0.mod": {"body": f"module {MODULE}\n"}, f"{at}/v1.0.0.zip": encoded(whole.getvalue())}


def crate_files(host, folder):
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w:gz") as archive:
        for name, text in {"Cargo.toml": '[package]\nname = "smallcrate"\nversion = "1.0.0"\nedition = "2021"\n',
                           "src/lib.rs": 'pub const WORD: &str = "got it";\n'}.items():
            info = tarfile.TarInfo(f"smallcrate-1.0.0/{name}")
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    data = whole.getvalue()
    work, bare = folder / f"work-{host}", folder / f"index-{host}.git"
    (work / "sm/al").mkdir(parents=True)
    (work / "config.json").write_text(json.dumps({"dl": f"https://{host}/crates/{{crate}}-{{version}}.crate"}))
    (work / "sm/al/smallcrate").write_text(json.dumps({"name": "smallcrate", "vers": "1.0.0", "deps": [], "features": {}, "yanked": False,
                                                      "cksum": hashlib.sha256(data).hexdigest()}) + "\n")

    def git(*args, at):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b.test", *args], cwd=at, check=True, capture_output=True)
    git("init", "-q", "-b", "master", at=work)
    git("add", ".", at=work)
    git("commit", "-q", "-m", "one", at=work)
    git("clone", "-q", "--bare", str(work), str(bare), at=folder)
    git("update-server-info", at=bare)
    files = {f"/{bare.name}/{path.relative_to(bare)}": encoded(path.read_bytes()) for path in bare.rglob("*") if path.is_file()}
    return {**files, "/crates/smallcrate-1.0.0.crate": encoded(data)}


@pytest.fixture(scope="module")
def net(world, tmp_path_factory):
    folder = tmp_path_factory.mktemp("clients")
    (folder / "Fetch.java").write_text(JAVA)
    subprocess.run(["javac", "Fetch.java"], cwd=folder, check=True)
    world.fetch = folder / "Fetch.class"
    common = {"/word": {"body": "got it\n"}, **go_files()}
    for number, host in enumerate(WAYS):
        world.https(host, address=PUBLIC[number], answers={**common, **crate_files(host, folder)})
    world.names()
    world.box = world.cerco()
    return world


@pytest.mark.parametrize("host", WAYS)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_large_client_works_without_set_up(net, client, host):
    result = net.box.run("--in", str(net.fetch), "--env", f"GO_MAIN={GO_MAIN}", "--", "sh", "-c", CLIENTS[client].replace("HOST", host),
                         policy=POLICY, guard=300)
    assert result.status == 0 and "got it" in result.text, result
    seen = {d["tls"] for d in result.of_type("egress.decision") if d["host"] == host}
    assert seen == {WAYS[host]}, result.events
