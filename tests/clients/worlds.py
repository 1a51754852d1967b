"""Third-party environments, small and as different from ours as they come."""

import gymnasium as gym
import numpy as np
from gymnasium import spaces

MEANS = np.array([[0.9, 0.1, 0.5], [0.2, 0.8, 0.5]])
"""Mean reward of each arm, for users of kind 0 and 1."""


class Coins(gym.Env):
    """Users of two kinds; actions are called 5, 6 and 7; an episode has `length` users, rewards are
    `paid`, if that is given."""

    def __init__(self, length=None, seen="kind", paid=...):
        self.action_space = spaces.Discrete(3, start=5)
        box = spaces.Box(-1, 1, (2,), np.float32)
        seen_spaces = {
            "kind": spaces.Discrete(2),
            "vector": box,
            "dict": spaces.Dict(kind=spaces.Discrete(2), vector=box),
        }
        self.observation_space = seen_spaces[seen]
        self.length, self.seen, self.paid = length, seen, paid

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.left = self.length
        return self._next(), {}

    def step(self, action):
        mean = MEANS[self.kind]
        reward = int(self.np_random.random() < mean[action - 5])
        reward = reward if self.paid is ... else self.paid
        info = {"means": mean, "best": mean.max(), "regret": mean.max() - mean[action - 5]}
        info |= {"rounded": -1e-12, "loss": -1.0, "gone": 1.1}
        self.left = None if self.left is None else self.left - 1
        return self._next(), reward, self.left == 0, False, info

    def _next(self):
        self.kind = int(self.np_random.random() < 0.5)
        vector = np.eye(2, dtype=np.float32)[self.kind]
        both = {"kind": self.kind, "vector": vector}
        return (both | {"dict": both})[self.seen]


class Overwrites(Coins):
    """Hands out one array, and writes every next observation into it."""

    def __init__(self):
        super().__init__(seen="vector")
        self.page = np.zeros(2, np.float32)

    def _next(self):
        self.page[:] = super()._next()
        return self.page


class Spaces(gym.Env):
    """Nothing but its two spaces."""

    def __init__(self, actions, observations):
        self.action_space, self.observation_space = actions, observations


def means(env):
    """Return the mean rewards of the arms of `Coins` for the current user."""
    return MEANS[env.unwrapped.kind]
