"""`python -m agents`: verbs and their help."""

import pytest

from agents.__main__ import VERBS


@pytest.mark.parametrize("verb", VERBS)
def test_help(call, verb):
    status, printed, _ = call(verb, "--help")
    assert status == 0
    assert f"python -m agents {verb}" in printed


def test_verbs(call):
    status, printed, _ = call("--help")
    assert status == 0
    assert all(verb in printed for verb in VERBS)
    assert call()[0] == 2
    status, _, refused = call("serach")
    assert status == 2
    assert "did you mean 'search'" in refused
