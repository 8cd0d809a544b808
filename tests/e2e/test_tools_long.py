"""A base that large tools work in: a browser, and compilers that are long to install or to run."""
# lane: long
import pathlib

from test_tools import needs, script

PAGE = b"<!doctype html><title>before</title><p id=p>before</p><script>" \
       b"document.getElementById('p').textContent = [6, 7].reduce((a, b) => a * b)</script>"


@needs("go")
def test_go_builds_and_runs(cerco):
    source = cerco.folder / "hello.go"
    source.write_text('package main\nimport ("fmt"; "runtime")\nfunc main() { c := make(chan int)\n'
                      "for i := 0; i < 100; i++ { go func() { c <- 1 }() }\nn := 0\nfor i := 0; i < 100; i++ { n += <-c }\n"
                      "fmt.Println(n, runtime.NumCPU()) }\n")
    result = script(cerco, "go build -o hello hello.go; ./hello", "--in", source, "--set", "limits.cpus=1", "--timeout", "10m")
    assert result.out == b"100 1\n", result


@needs("rustc")
def test_rust_builds_and_runs(cerco):
    source = cerco.folder / "hello.rs"
    source.write_text("use std::thread;\nfn main() { let all: Vec<_> = (0..16).map(|i| thread::spawn(move || i)).collect();\n"
                      'println!("{}", all.into_iter().map(|t| t.join().unwrap()).sum::<i32>()); }\n')
    assert script(cerco, "rustc -o hello hello.rs; ./hello", "--in", source, "--timeout", "10m").out == b"120\n"


@needs("chromium")
def test_a_headless_browser_renders_a_page(cerco):
    page = cerco.folder / "page.html"
    page.write_bytes(PAGE)
    # Its starter reads flags of the distribution's there, which is not in the base.
    flags = ["--ro", "/etc/chromium.d"] if pathlib.Path("/etc/chromium.d").exists() else []
    result = cerco.run(*flags, "--set", "isolation.seccomp=browser", "--in", page, "--timeout", "10m", "--", "chromium", "--headless=new",
                       "--no-sandbox", "--disable-gpu", "--dump-dom", "file:///workspace/page.html", guard=700)
    assert result.status == 0 and b'<p id="p">42</p>' in result.out, result
