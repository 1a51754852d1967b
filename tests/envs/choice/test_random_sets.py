"""Random sets: every set as likely, in agents' draws and in samples of Gymnasium's spaces."""

import numpy as np
import pytest
from gymnasium.vector.utils import batch_space
from scipy.stats import chisquare

from dpbandit.base.random_streams import Streams
from dpbandit.envs.choice.fixed_sets import every_set
from dpbandit.specs.choice import AssortmentSpec, FreelyPricedSpec, PricedAssortmentSpec

FACTS = {"n_products": 4, "at_most": 2, "dim": 1, "horizon": 9}
LISTED = PricedAssortmentSpec(**FACTS, prices=(1.0, 2.0), unit_costs=(0.0,) * 4)
FREE = FreelyPricedSpec(**FACTS, low=1.0, high=2.0, unit_costs=(0.0,) * 4)


def counts(draws, sets):
    return (draws[:, None] == sets).all(axis=2).sum(axis=0)


def test_every_set_is_as_likely():
    """Two-sided chi-square, n = 20,000. False alarm 1e-6; sizes as likely as each other, in place
    of sets, are caught (asserted)."""
    sets = every_set(4, 2, 2)
    draw, space = LISTED.uniform(Streams([0])), LISTED.action_space()
    batch = batch_space(space, 20_000)
    space.seed(1)
    batch.seed(2)
    drawn = np.array([draw()[0] for _ in range(20_000)])
    for found in (drawn, batch.sample()):
        assert chisquare(counts(found, sets)).pvalue > 1e-6
    by_size = np.where((sets > 0).sum(axis=1) == 1, 1 / 16, 1 / 48)
    assert chisquare(counts(drawn, sets), 20_000 * by_size).pvalue < 1e-6


@pytest.mark.parametrize("spec", [AssortmentSpec(**FACTS, margins=(1.0,) * 4), LISTED, FREE])
def test_spaces_have_what_specs_allow(spec):
    space = spec.action_space()
    space.seed(3)
    batch = batch_space(space, 5)
    for _ in range(50):
        sample = space.sample()
        assert sample in space
        spec.validate(sample[None], 1)
    assert batch.sample() in batch
    assert np.zeros(4, space.dtype) not in space
    assert np.ones(4, space.dtype) not in space  # one too many
    spec.validate([spec.default_action], 1)
