"""What every discovered agent promises, beside every spec it fits, and what it adds noise to."""

from functools import cache
from math import inf

import numpy as np

from dpbandit import certify
from dpbandit.agents import CountedShelf
from dpbandit.testing.noise import SUMS
from dpbandit.testing.tapes import extreme_users, run
from tests.harness import discovered


@cache
def certificate(pair):
    """Without the figures of several accountants."""
    return certify(*pair, accountants=False)


def private(kind):
    """Variants of an agent that promise something; who has none says that it promises nothing."""
    found = [pair for pair in discovered(kind) if certificate(pair).epsilon < inf]
    assert found or certificate(discovered(kind)[0]).notion.startswith("none: ")
    return found


def alike(kind):
    """One private variant for each promise that an agent makes: the others add the same noise, and
    a shelf that learns that of a shelf that does not and of FADE, in 6,000 replicas of both."""
    found = {
        (pair[1], certificate(pair).ledger): pair
        for pair in private(kind)
        if pair[0] != CountedShelf()
    }
    return list(found.values())


@cache
def mechanisms(pair):
    """Those that the first users meet, in the order of first use."""
    config, spec = pair
    with np.errstate(all="ignore"):
        users = extreme_users(spec, 1, seed=1).until(2 + spec.delay)
        return list(dict.fromkeys(run(config, spec, users, remember=False).mechanisms))


def sums(pair):
    """Those whose noise is added to a sum."""
    return [mechanism for mechanism in mechanisms(pair) if isinstance(mechanism, SUMS)]
