"""Ten thousand connections at once, of each kind that is hard to serve."""
# lane: long
import pytest

from test_crowds import crowds_in, net  # noqa: F401


@pytest.mark.parametrize("last", ["uploads", "bodies"])
def test_ten_thousand_are_bounded_and_harm_nobody_else(net, last):  # noqa: F811
    crowds_in(net, ["readers", "pages", "writers", "resets", last], 10_000)
