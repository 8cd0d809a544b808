"""The dependency arrows between modules: direct includes go down only, as ARCHITECTURE.md lists them."""
# lane: quick
import pathlib
import re

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "src"

# module → modules that it may include besides itself and base.
ARROWS = {
    "base": set(),
    "os": set(),
    "priv": {"os"},
    "confine": {"os"},
    "policy": set(),
    "plan": {"policy"},
    "ipc": {"os"},
    "http": set(),
    "journal": {"os", "confine", "ipc"},
    "host": {"os", "plan"},
    "workspace": {"os", "confine"},
    "sandbox": {"os", "priv", "confine", "plan", "ipc", "tunnel"},
    "tunnel": {"os", "confine", "ipc"},
    "init": {"os", "confine", "tunnel"},
    "isolate": {"os", "confine"},
    "gateway": {"os", "confine", "policy", "plan", "http", "ipc", "journal"},
    "broker": {"os", "confine", "policy", "plan", "http", "ipc", "journal"},
    "publish": {"os", "confine", "ipc"},
    "supervisor": {"os", "priv", "confine", "plan", "sandbox", "ipc", "journal", "publish"},
    "attack": set(),
    "cli": {"os", "policy", "plan", "http", "ipc", "journal", "host", "workspace", "sandbox", "supervisor"},
    "main": None,  # may include any module
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([a-z_]+)/([^"]+)"', re.M)


def wrong_includes(source):
    """Lines `FILE includes HEADER` that no arrow allows."""
    found = []
    for path in sorted(source.rglob("*")):
        if path.suffix not in (".cc", ".h"):
            continue
        module = path.relative_to(source).parts[0]
        allowed = ARROWS[module]
        for target, header in INCLUDE.findall(path.read_text()):
            if target == module or target == "base" or allowed is None:
                continue
            if target not in allowed:
                found.append(f"{path.relative_to(source)} includes {target}/{header}")
    return found


def test_every_folder_is_a_known_module():
    assert {p.name for p in SOURCE.iterdir() if p.is_dir()} <= set(ARROWS)


def test_includes_go_down_only():
    assert wrong_includes(SOURCE) == []


def test_an_upward_include_is_found(tmp_path):
    (tmp_path / "policy").mkdir()
    (tmp_path / "policy" / "bad.cc").write_text('#include "gateway/gateway.h"\n')
    assert wrong_includes(tmp_path) == ["policy/bad.cc includes gateway/gateway.h"]


def test_privileged_acts_are_included_by_sandbox_and_supervisor_only():
    users = set()
    for path in SOURCE.rglob("*"):
        if path.suffix in (".cc", ".h") and "priv" in [target for target, _ in INCLUDE.findall(path.read_text())]:
            users.add(path.relative_to(SOURCE).parts[0])
    assert {"priv", "sandbox"} <= users <= {"priv", "sandbox", "supervisor"}
