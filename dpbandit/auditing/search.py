"""Which pairs of neighbouring streams an audit tries."""

from contextlib import closing
from functools import singledispatch

import numpy as np

from dpbandit.auditing.advice import AdviceUsers
from dpbandit.auditing.buyers import Buyers
from dpbandit.auditing.contexts import ContextUsers
from dpbandit.auditing.data import DataUsers
from dpbandit.auditing.people import People
from dpbandit.auditing.readers import Readers
from dpbandit.auditing.views import all_see_actions, rounds
from dpbandit.auditing.witness import Witness
from dpbandit.auditing.worlds import Pair, Users
from dpbandit.base.arrays import Floats
from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Seed
from dpbandit.specs.choice import ChoiceSpec
from dpbandit.specs.convex import ConvexSpec, ExpertsSpec
from dpbandit.specs.lists import ListSpec, ReturningSpec
from dpbandit.specs.protocols import AgentConfig, BanditSpec, Spec

_RUNS = 16


def pairs(config: AgentConfig, spec: Spec, seed: int) -> list[Pair]:
    """The handful of the kind of problem, and for each mechanism the pair that moves it most."""
    users = users_of(spec)
    handful = list(users.handful(np.random.default_rng((seed, 7))))
    return handful + list(most_moving_pairs(config, spec, users, seed))


@singledispatch
def users_of(spec: Spec) -> Users:
    """The users of a kind of problem."""
    raise InputError(
        f"Expected a bandit, a convex problem or experts to audit, got a {type(spec).__name__}."
    )


users_of.register(ConvexSpec, DataUsers)
users_of.register(BanditSpec, ContextUsers)
users_of.register(ChoiceSpec, Buyers)
users_of.register(ListSpec, Readers)
users_of.register(ReturningSpec, People)
users_of.register(ExpertsSpec, AdviceUsers)


def most_moving_pairs(config: AgentConfig, spec: Spec, users: Users, seed: int) -> list[Pair]:
    """For each mechanism the two candidates in round 1 between which its query differs most::

        1. every candidate c is the first user of a few runs r; the agent plays and learns
        2. q_cr is what she adds to the mechanism, given the action that she was served
        3. the pair maximises |mean_r (q_cr - q_c'r)|; where her action is released, mean_r |...|

    This looks at what enters a mechanism and at no release, so that it costs an audit nothing.
    """
    found = users.candidates(np.random.default_rng((seed, 8)))
    one, *_ = found
    worlds = [users.neighbours(0, one, other, "").second for other in found]
    seeds: list[Seed] = [(seed, 0, run) for run in range(_RUNS)]
    witness = Witness()
    with closing(rounds(config, spec, worlds, (0,), seeds, witness)) as play:
        for event, *_ in play:
            if event == "after":
                break
    pairs = []
    for place, known in enumerate(witness.sums):
        if known.hers is None:
            continue
        hers = known.hers.reshape(len(found), _RUNS, -1)
        moves = _moves(hers, released=all_see_actions(spec))
        i, j = np.unravel_index(int(moves.argmax()), moves.shape)
        if moves[i, j] > 0:
            note = f"round 1, what moves mechanism {place + 1} most: "
            note += f"from {found[i].note} to {found[j].note}"
            pairs.append(users.neighbours(0, found[i], found[j], note))
    return pairs


def _moves(queries: Floats, *, released: bool) -> Floats:
    """(C, R, n) -> (C, C), how far apart candidates are."""
    if not released:
        queries = queries.mean(axis=1, keepdims=True)
    return np.array([np.linalg.norm(queries - one, axis=2).mean(axis=1) for one in queries])
