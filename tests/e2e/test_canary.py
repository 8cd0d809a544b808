"""`cerco doctor --canary`: a run with a planted secret says that all is well, and with a protection taken out what is not."""
# lane: full
import json
import pathlib

import pytest

HOLES = {
    "binding": "and refuses it elsewhere",
    "name_filter": "a name that no rule has is refused",
}


def findings(result):
    return {one["name"]: one["good"] for one in json.loads(result.text)["canary"]}


def test_all_is_well_and_nothing_stays(cerco):
    before = set(pathlib.Path("/tmp").glob("cerco-canary-*"))
    result = cerco("doctor", "--canary", "--json", "--tier", "container")
    seen = findings(result)
    assert result.status == 0 and len(seen) == 9 and all(seen.values()), result
    assert set(pathlib.Path("/tmp").glob("cerco-canary-*")) == before
    said = cerco("doctor", "--canary", "--tier", "container")
    assert said.status == 0 and said.text.count("  yes  ") == 9, said


@pytest.mark.parametrize("protection", HOLES)
def test_a_hole_is_seen(cerco, protection):
    result = cerco(protection, "doctor", "--canary", "--json", "--tier", "container", program="cerco-without")
    assert result.status == 1 and findings(result)[HOLES[protection]] is False, result


def test_the_policys_own_credentials_stay_out(cerco, tmp_path):
    policy = tmp_path / "p.toml"
    policy.write_text('version = 1\n[[egress]]\nhost = "api.example.com"\nmethods = ["GET"]\n[[credential]]\nname = "api"\n'
                      'source = { env = "NOT_THERE" }\nhosts = ["api.example.com"]\nmethods = ["GET"]\npaths = ["/**"]\n'
                      'inject = { header = "Authorization", format = "Bearer {secret}" }\n')
    result = cerco("doctor", "--canary", "--json", "--tier", "container", "--policy", policy)
    assert result.status == 0, result


def test_the_isolate_tier_has_no_shell(cerco):
    result = cerco("doctor", "--canary", "--tier", "isolate")
    assert result.status == 2 and "not carried out yet" in result.error, result
