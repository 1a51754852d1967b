"""Time dpbandit on the problem of `world.py`, and compute regret on the other programs' users."""

import json
import sys
import time

import numpy as np
from world import ALPHA, NOISE, RIDGE, draw

from dpbandit.agents import LinUCB
from dpbandit.envs.contextual.problems import ContextualProblem, Users
from dpbandit.results.runs import log_marks
from dpbandit.running.environments import problem_maker
from dpbandit.running.loop import play, replicas_at_once
from dpbandit.specs import ContextualSpec

AGENT = LinUCB(alpha=ALPHA, reward_noise=0.5, regularization=RIDGE)  # as in the other programs


class Tables(ContextualProblem):
    """Problem with the users of given `World`s, one for each replica."""

    def __init__(self, worlds):
        self._worlds = worlds
        rounds, arms = worlds[0].mean.shape
        self.spec = ContextualSpec(
            n_actions=arms,
            dim=worlds[0].context.shape[1],
            horizon=rounds,
            reward_low=-2.0,
            reward_high=2.0,
        )

    def _start(self, streams):
        self._first = 0

    def _users(self, count):
        part = slice(self._first, self._first + count)
        self._first += count
        fields = zip(*self._worlds, strict=True)
        return Users(*(np.stack([x[part] for x in field], axis=1) for field in fields))


def seconds(dim, arms, rounds, replicas):
    """Return CPU-seconds of the loop with environment and logging, and final regrets."""
    make = problem_maker("dpbandit/GLMBandit-v0")
    problem = make(n_actions=arms, dim=dim, horizon=rounds, noise=NOISE)
    marks, at_once = log_marks(rounds), replicas_at_once(problem.spec)
    start, final = time.process_time(), []
    for first in range(0, replicas, at_once):
        seeds = [(0, r) for r in range(first, min(replicas, first + at_once))]
        final.append(play(problem, AGENT, seeds, marks=marks).regret[-1])
    return time.process_time() - start, np.concatenate(final)


def regrets(dim, arms, rounds, seeds):
    """Return final regrets on the users that other programs get with these seeds."""
    worlds = [draw(dim, arms, rounds, seed) for seed in seeds]
    log = play(Tables(worlds), AGENT, seeds, marks=np.array([rounds]))
    return log.regret[-1]


if __name__ == "__main__":
    dim, arms, rounds, replicas, first, paired = map(int, sys.argv[1:])
    seconds(dim, arms, 100, replicas)
    spent, many = zip(*(seconds(dim, arms, rounds, replicas) for _ in range(paired)), strict=True)
    same_users = regrets(dim, arms, rounds, range(first, first + paired))
    found = {"seconds": spent, "own": many[0].tolist(), "regrets": same_users.tolist()}
    json.dump(found, sys.stdout)
