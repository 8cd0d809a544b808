"""Every known case has a test that exists, is named as later work, or does not apply for a stated reason."""
# lane: quick
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIST = pathlib.Path(__file__).with_name("ids.txt")
# How many cases of each kind there are: E escape, N egress, F field.
COUNTS = {"E": 96, "N": 164, "F": 82}
LINE = re.compile(r"^([ENF])(\d+) (.+)$")
# The least that have a test today.
TESTED = {"E": 25, "N": 25, "F": 10}


def rows(text):
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        match = LINE.match(line)
        assert match, f"ids.txt:{number}: `{line}`; expected `E12 path::test`, `E12 later: what` or `E12 n/a: reason`"
        found.append((match[1], int(match[2]), match[3]))
    return found


def problem(target):
    """Why a target does not hold, or None."""
    for prefix in ("later: ", "n/a: "):
        if target.startswith(prefix):
            return None if len(target) > len(prefix) + 3 else "says nothing"
    for part in target.split(", "):
        path, _, name = part.partition("::")
        file = ROOT / path
        if not file.is_file():
            return f"{path} does not exist"
        text = file.read_text()
        if path.endswith(".py"):
            if not re.search(rf"^def {re.escape(name)}\(", text, re.M):
                return f"{path} has no test {name}"
        elif path.endswith(".cc"):
            suite, _, test = name.partition(".")
            if not re.search(rf"TEST(_F|_P)?\(\s*{re.escape(suite)},\s*{re.escape(test)}\s*\)", text):
                return f"{path} has no test {name}"
        elif not re.search(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![0-9])", text) or not name:
            return f"{path} has no row {name}"
    return None


def test_every_case_is_listed_once():
    seen = {}
    for kind, number, _ in rows(LIST.read_text()):
        assert (kind, number) not in seen, f"{kind}{number} twice"
        seen[(kind, number)] = True
    assert {kind: sum(1 for k, _ in seen if k == kind) for kind in COUNTS} == COUNTS


def test_every_target_exists():
    bad = [f"{kind}{number}: {problem(target)}" for kind, number, target in rows(LIST.read_text()) if problem(target)]
    assert bad == []


def test_enough_cases_have_tests():
    tested = {kind: 0 for kind in COUNTS}
    for kind, _, target in rows(LIST.read_text()):
        tested[kind] += not target.startswith(("later: ", "n/a: "))
    assert all(tested[kind] >= least for kind, least in TESTED.items()), tested


def test_a_target_that_does_not_exist_is_found():
    assert problem("tests/e2e/test_run.py::test_that_is_not_there")
    assert problem("tests/e2e/nothing.py::test_x")
    assert problem("tests/cases/hosts.txt::N3"), "N31 is another row"
    assert problem("later: ")
    assert problem("later: the gateway in depth") is None
