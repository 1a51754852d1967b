"""Agents of others, in a module that workers import in no time: no tests, no pandas."""

import os
import time

import numpy as np

from dpbandit.agents import DPMoments


class Mine(DPMoments):
    """An agent of somebody else."""


class Mean:
    """The arm with the best mean; any class with `act` and `update`."""

    def __init__(self, n_actions, first=1.0):
        self.total, self.count = np.full(n_actions, first), np.ones(n_actions)

    def act(self, context):
        return (self.total / self.count).argmax()

    def update(self, context, action, reward):
        self.total[action] += reward
        self.count[action] += 1


class Means(Mean):
    """The same for all replicas at once."""

    def __init__(self, n_actions, replicas):
        self.total, self.count = np.ones((2, replicas, n_actions))

    def act(self, context):
        return (self.total / self.count).argmax(axis=1)

    def update(self, context, action, reward):
        super().update(context, (np.arange(len(action)), action), reward)


def of_function(spec):
    """A function that hands out an object."""
    return Mean(spec.n_actions)


mean_of_five = Mean(5)
no_agent = "has no methods of one"


class Crashes(Mean):
    """Divides by zero in its third round."""

    def act(self, context):
        self.rounds = getattr(self, "rounds", 0) + 1
        return 1 // (self.rounds < 3)


class Hangs(Mean):
    """Sleeps for a minute, a moment at a time, as only the main thread wakes a sleeper at once."""

    def act(self, context):
        for _ in range(600):
            time.sleep(0.1)


class Nonsense(Mean):
    """Answers with a word."""

    def act(self, context):
        return "buy"


class Ends(Mean):
    """Ends its process in its third round."""

    def act(self, context):
        self.rounds = getattr(self, "rounds", 0) + 1
        return 0 if self.rounds < 3 else os._exit(3)


class LongNamedNonsenseOfASummerSchool(Nonsense):
    """Named by 32 letters."""
