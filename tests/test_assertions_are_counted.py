"""The check of tests that assert nothing, on tests that do and do not; and who comes in turns."""

from pathlib import Path

import pytest

from dpbandit import certify
from tests import conftest, each

ROOT = Path(__file__).parents[1]
EXAMPLES = """
import numpy as np
import pytest
from dpbandit.testing.tapes import World
from tests.each import asserting

def test_nothing(): pass
def test_branch():
    if not World: assert True
@pytest.mark.smoke
def test_no_smoke(): assert World
@pytest.mark.parametrize("x", [])
def test_none(x): pass

def test_empty_block():
    for n in (2, 0):
        with asserting(n):
            for _ in range(n): assert World

def test_own(): assert World
def test_blocks():
    for n in (2, 1):
        with asserting(n):
            for _ in range(n): assert World
def test_numpy(): np.testing.assert_allclose(1, 1)
def test_raised():
    with pytest.raises(ValueError): int("x")
@pytest.mark.smoke
def test_smoke(): World
def test_helper():
    World(np.zeros((1, 2)), np.zeros((1, 2))).of(0, 1)
    from dpbandit.testing.noise import first_stddev
    from dpbandit.privacy.batches import LocalValues
    from dpbandit.base.random_streams import Streams
    first_stddev(LocalValues(Streams([0]), low=0, high=1, noise_multiplier=1))
"""


def test_tests_that_assert_nothing_fail(tmp_path, capsys):
    """Four fail: nothing, a branch that is not taken, smoke that asserts, one block of two that is
    empty. What passes asserts by itself, in each of its blocks, in NumPy, by `raises`, in a helper
    of the tests, or is smoke."""
    file = tmp_path / "test_examples.py"
    file.write_text(EXAMPLES)
    options = ["-n", "0", "-q", "-p", "no:cacheprovider", "-c", str(ROOT / "pyproject.toml")]
    pytest.main([*options, str(file)], plugins=[conftest])
    said = capsys.readouterr().out
    failed = [line.split("::")[1].split()[0] for line in said.splitlines() if "::" in line]
    assert failed == ["test_nothing", "test_branch", "test_no_smoke", "test_empty_block"], said
    assert "4 failed, 6 passed, 1 skipped" in said


def test_tests_of_privacy_and_of_what_changes_come_at_every_commit(monkeypatch):
    """Catches a certificate that is asked for within an inner function and not seen, and an edit of
    an agent, or of a module of the same name, after which its tests wait for their turn."""

    def private(agents):
        return [agent for agent in agents if (lambda one: certify(one).holds)(agent)]

    assert conftest.words_of(private.__code__) & conftest.PRIVACY == {"certify"}
    assert not conftest.words_of(test_tests_that_assert_nothing_fail.__code__) & conftest.PRIVACY
    monkeypatch.setattr(each, "changed", lambda: ["agents/arms/exact.py", "privacy/filters.py", ""])
    for file, due in (
        ("agents/arms/test_arms", True),
        ("privacy/sums/test_filters", True),
        ("agents/contextual/test_ridge", False),
        ("experiments/test_sgd", False),
    ):
        assert each.touched(conftest.HERE / f"{file}.py") == due, file
