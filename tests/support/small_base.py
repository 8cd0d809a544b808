"""A small base folder for microVMs: a few programs of this host, with what they are linked to."""
import pathlib
import re
import shutil
import subprocess

PATH = "/usr/bin:/bin"
PROGRAMS = ["sh", "cat", "echo", "true", "false", "id", "uname", "sleep", "ls", "dd", "head", "wc", "env", "stat",
            "mkdir", "touch", "kill", "grep", "seq", "hostname", "nproc", "curl", "sha256sum", "python3"]


def libraries(program):
    text = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=True).stdout
    return re.findall(r"(?:=> )?(/[^ ]+) \(0x", text)


def _put(source, root):
    """The file that `source` leads to, at the place where it is looked for below /usr."""
    source = pathlib.Path(source)
    name = str(source)
    if not name.startswith("/usr"):
        name = "/usr" + name
    target = root / name[1:]
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source.resolve(), target)


def make(root, programs=PROGRAMS):
    """Fills the folder `root`; returns it as text."""
    root = pathlib.Path(root)
    for name in programs:
        found = shutil.which(name, path=PATH)
        if not found:
            continue
        _put(found, root)
        for library in libraries(found):
            _put(library, root)
    for link in ("bin", "lib", "lib64"):
        (root / link).symlink_to(f"usr/{link}")
    if "python3" in programs:
        version = pathlib.Path(shutil.which("python3", path=PATH)).resolve().name
        library = pathlib.Path("/usr/lib") / version
        if library.is_dir():
            skip = shutil.ignore_patterns("test", "tests", "__pycache__", "idlelib", "lib2to3", "pydoc_data",
                                          "dist-packages", "ensurepip", "tkinter", "config-*")
            shutil.copytree(library, root / "usr/lib" / version, ignore=skip, symlinks=False,
                            ignore_dangling_symlinks=True, dirs_exist_ok=True)
            for module in (library / "lib-dynload").glob("_ssl*.so"):
                for needed in libraries(module):
                    _put(needed, root)
    return str(root)
