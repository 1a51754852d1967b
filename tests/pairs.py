"""Every discovered agent beside every spec it fits; what it promises, and what it adds noise to."""

from math import inf

import numpy as np
import pytest

from dpbandit import certify
from dpbandit.agents import CountedShelf
from dpbandit.testing.noise_laws import SUMS
from dpbandit.testing.tapes import run
from dpbandit.testing.worlds import extreme_users
from tests.harness import discovered, label

PAIRS = discovered()
CERTIFICATES = {pair: certify(*pair, accountants=False) for pair in PAIRS}
PRIVATE = [pair for pair in PAIRS if CERTIFICATES[pair].epsilon < inf]
ALIKE = list(
    {
        (type(pair[0]), pair[1], CERTIFICATES[pair].ledger): pair
        for pair in PRIVATE
        if pair[0] != CountedShelf()
    }.values()
)
"""One private variant of each agent for each promise it makes: the others add the same noise, and a
shelf that learns that of a shelf that does not and of FADE, in 6,000 replicas of both."""


def mechanisms(pair):
    """Those that the first users meet, in the order of first use."""
    config, spec = pair
    with np.errstate(all="ignore"):
        users = extreme_users(spec, 1, seed=1).until(2 + spec.delay)
        return list(dict.fromkeys(run(config, spec, users, remember=False).mechanisms))


SUMMING = {pair for pair in PRIVATE if any(isinstance(m, SUMS) for m in mechanisms(pair))}
every_agent = pytest.mark.parametrize("pair", PAIRS, ids=label)
