"""Discovered agents, each with a spec it fits: certificates, mechanisms and how noise is made."""

from functools import cache
from math import inf

import numpy as np
import pytest

from dpbandit import certify
from dpbandit.base import reached
from dpbandit.base.random_streams import Streams
from dpbandit.specs.contract import made_agent
from dpbandit.testing.tapes import extreme_users, run
from tests.each import by_rota
from tests.harness import KINDS, discovered

FRONT_ROW = (
    "fade", "allocation-ts", "race-imed", "dp-hdb", "private-bandit", "pftal", "dp-ucb", "dp-tofw",
)  # fmt: skip
"""Agents whose privacy is tested at every commit."""


def kinds_in_turn(share):
    """Decorate a test of the agents of `FRONT_ROW` and, at a commit, of one in `share` of the rest.

    With a share that 3 does not divide, all parts of `every_third` come to every agent.
    """
    rest = [kind for kind in KINDS if kind not in FRONT_ROW]
    return pytest.mark.parametrize("kind", [*FRONT_ROW, *by_rota(rest, share, slow=False)])


every_third = pytest.mark.parametrize("part", by_rota(range(3), 3, slow=False))


def some(pairs, part):
    """Return an agent's defaults and a third of its other variants; another at other commits."""
    return [*pairs[:1], *pairs[1 + part :: 3]]


@cache
def certificate(pair):
    """Without the figures of several accountants."""
    return certify(*pair, accountants=False)


def private(kind):
    """Variants of an agent that promise something; who has none says that it promises nothing."""
    found = [pair for pair in discovered(kind) if certificate(pair).epsilon < inf]
    assert found or not certificate(discovered(kind)[0]).notion.covers
    return found


def distinct(kind):
    """A private variant for each way in which an agent makes noise: by a mechanism, of what, by
    which process and for which spend. The others pass other numbers through the same lines."""
    found = {}
    for pair in private(kind):
        key = (
            type(pair[1]),
            frozenset(
                (
                    type(made),
                    type(getattr(made, "_statistic", None)),
                    type(getattr(made, "_noise", None)),
                    type(getattr(made.spend, "part", made.spend)),
                )
                for made in mechanisms(pair)
            ),
        )
        found.setdefault(key, pair)
    return list(found.values())


def alike(kind):
    """The variants of `distinct` whose noise is measured."""
    # A centre of slates has that of arms, and comes after a fit of every one of 6,000 replicas.
    return [
        (config, spec)
        for config, spec in distinct(kind)
        if sums((config, spec))
        and not (getattr(config, "centring", None) == "private" and spec.shared)
    ]


def of_kinds(kind):
    """A variant for each set of classes that a running agent is made of, on each spec."""
    found = {}
    for pair in discovered(kind):
        made = made_agent(*pair, Streams([0]))
        found.setdefault((pair[1], frozenset(type(part) for _, part in reached(made))), pair)
    return list(found.values())


@cache
def mechanisms(pair):
    """The mechanisms that the first users meet, in the order of first use."""
    config, spec = pair
    with np.errstate(all="ignore"):
        users = extreme_users(spec, 1, seed=1).until(2 + spec.delay)
        return list(dict.fromkeys(run(config, spec, users, remember=False).mechanisms))


def sums(pair):
    """The mechanisms whose noise is added to a sum."""
    return [mechanism for mechanism in mechanisms(pair) if mechanism.releases_sum]
