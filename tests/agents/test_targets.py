"""Certificates at extreme targets: within the claim, soon and in little memory, or refused."""

import time
from contextlib import suppress
from dataclasses import fields, replace
from fractions import Fraction
from functools import cache
from itertools import product
from resource import RUSAGE_SELF, getrusage

import numpy as np
import pytest

from dpbandit import InputError, certify
from dpbandit.agents import PFTAL, NoisySGD
from tests.each import by_rota, refused
from tests.harness import DATA, KINDS
from tests.pairs import private

EXTREMES = list(product((1e-3, 1.0, 1e4, 1e6), (1e-3, 1e-12, 1e-300)))
BEYOND = [
    (1e-50, 1e-3), (1e-50, 1e-214), (1e-14, 1e-53), (1e-12, 1e-300),
    (np.float32(0.3), np.float32(0.1)),
]  # fmt: skip
"""Of these some are refused."""
CORNERS = [(1e-3, 1e-300), (1.0, 1e-300), (1e4, 1e-3), (1e6, 1e-12)]
TRANSFORMS, MEGABYTES = 20_000, 500


@cache
def seconds():
    """CPU time of so many Fourier transforms of 2^16 numbers: the work that a search may take."""
    numbers = np.random.default_rng(0).random(2**16)
    start = time.process_time()
    for _ in range(TRANSFORMS // 200):
        np.exp(-np.abs(np.fft.rfft(numbers)))
    return 200 * (time.process_time() - start)


def certified(config, spec, epsilon, delta):
    """A certificate that took little time and memory; None, where the target is refused."""
    names = {field.name for field in fields(config)}
    target = {n: v for n, v in (("epsilon", epsilon), ("delta", delta)) if n in names}
    start, before = time.process_time(), getrusage(RUSAGE_SELF).ru_maxrss
    proof = None
    with suppress(InputError):
        proof = certify(replace(config, **target), spec, accountants=False)
    megabytes = (getrusage(RUSAGE_SELF).ru_maxrss - before) / 1024
    took = time.process_time() - start
    assert took < seconds(), (config, target)
    assert megabytes < MEGABYTES, (config, target)
    return proof


def printed(config):
    return getattr(config, "calibration", "certified") != "certified"


@pytest.mark.parametrize("kind", by_rota(KINDS, 3, slow=False))
def test_extreme_targets_are_met_soon_or_refused(kind):
    """Discovery, of all private agents. Caught are a calibration that is rounded the wrong way, a
    search that stalls, and a grid that needs more memory than there is."""
    for config, spec in private(kind)[:1]:
        proofs = [certified(config, spec, *target) for target in CORNERS]
        assert any(proof is not None for proof in proofs)
        assert all(printed(config) or proof.holds for proof in proofs if proof is not None)
        beyond = [certified(config, spec, *target) for target in BEYOND]
        assert all(proof.holds for proof in beyond if proof is not None)


@pytest.mark.parametrize("kind", by_rota(KINDS, 3))
def test_all_extreme_targets_at_a_long_horizon(kind):
    for config, spec in private(kind)[:1]:
        proofs = [certified(config, replace(spec, horizon=10_000), *target) for target in EXTREMES]
        assert all(printed(config) or proof.holds for proof in proofs if proof is not None)


@pytest.mark.parametrize("part", by_rota(range(4), 4))
def test_extreme_targets_of_all_variants(part):
    """Every other corner each, of each agent all; printed calibrations may exceed their claim."""
    variants = {repr(pair[0]): pair for kind in KINDS for pair in reversed(private(kind))}
    pairs = list(variants.values())[part::4]
    assert len(pairs) > 30
    for place, (config, spec) in enumerate(pairs):
        for target in CORNERS[place % 2 :: 2]:
            proof = certified(config, replace(spec, horizon=10_000), *target)
            assert proof is None or proof.holds or printed(config), (config, target)


def test_targets_that_are_no_floats_or_below_the_least_are_refused():
    """Logarithms of arrays and formats know nothing of fractions, and inverses of the least numbers
    are none: infinite noise or a traceback."""
    for target in ({"epsilon": Fraction(1, 2)}, {"delta": Fraction(1, 100)}):
        refused(r"=Fraction\(1, .*\) to be an int or a float: 0\.", PFTAL, **target)
    for name, value, least in (("epsilon", 2e-58, "1e-50"), ("delta", 5e-324, "1e-300")):
        with pytest.raises(InputError, match=f"{name}={value} to be 0 or at least {least}"):
            certify(NoisySGD(**{name: value}), DATA, accountants=False)
