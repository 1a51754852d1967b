"""The baseline of FADE: what it releases, and that it says so."""

from math import inf

import numpy as np
import pytest

from dpbandit import certify
from dpbandit.agents import FADE, FullBudgetFADE
from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.envs import OJPricing
from dpbandit.privacy.curves import mu_of
from dpbandit.specs.protocols import ContextualSpec

ARMS = ContextualSpec(n_actions=3, dim=2, horizon=200)
SLATES = ContextualSpec(n_actions=3, dim=2, horizon=200, shared=True)
PRICES = OJPricing(horizon=200).spec


@pytest.mark.parametrize("spec", [ARMS, SLATES, PRICES], ids=["arms", "slates", "prices"])
def test_each_release_has_the_noise_of_one(spec):
    """Golden: the players of FADE; a first batch of 0.3 of FADE's; noise S / mu, no fading; epsilon
    infinity, and why in words."""
    ours = FullBudgetFADE(release_epsilon=0.5).make(spec, Streams([0]))
    private = FADE(epsilon=0.5).make(spec, Streams([0]))
    assert type(ours) is type(private)
    looks = 3 if spec is ARMS else 0  # at the level of rewards
    lengths = [np.diff(player._sums._ends, prepend=0)[looks] for player in (ours, private)]
    assert lengths[0] == round(0.3 * lengths[1])
    assert ours._sums.fade == 1
    assert ours._sums.stddev == pytest.approx(private._sums.sensitivity / mu_of(0.5, 1e-5))
    proof = certify(FullBudgetFADE(release_epsilon=0.5), spec, accountants=False)
    assert (proof.epsilon, proof.claimed_epsilon) == (inf, inf)
    assert "a baseline" in proof.ledger.notion
    assert FullBudgetFADE(release_epsilon=inf).make(spec, Streams([0]))._sums.stddev == 0


def test_bad_input_gets_one_sentence():
    with pytest.raises(InputError, match=r"epsilon=0\.0 to be a number > 0"):
        FullBudgetFADE(release_epsilon=0.0)
