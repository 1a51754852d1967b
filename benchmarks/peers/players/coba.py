"""Play Coba by its own Experiment; disjoint arms are a regression on one-hot arm times context.

Learners of Vowpal Wabbit, which are not LinUCB, run in the same Experiment.
"""

import coba
from world import ALPHA


class Users(coba.Environment):
    def __init__(self, world):
        self._world = world
        arms = range(world.mean.shape[1])
        self.arms = [tuple(int(i == arm) for i in arms) for arm in arms]

    @property
    def params(self):
        return {"env_type": "users"}

    def read(self):
        world = self._world
        for x, rewards in zip(world.context.tolist(), world.reward.tolist(), strict=True):
            yield {"context": x, "actions": self.arms, "rewards": rewards}


def play(world):
    return experiment(world, coba.LinUCBLearner(alpha=ALPHA, features=["ax"]))


def vw_epsilon_greedy(world):
    return experiment(world, coba.VowpalEpsilonLearner(features=["ax"]))


def vw_square_cb(world):
    return experiment(world, coba.VowpalSquarecbLearner(features=["ax"]))


def experiment(world, learner):
    users = Users(world)
    evaluator = coba.SequentialCB(record=["reward", "action"])
    result = coba.Experiment(users, learner, evaluator).run(quiet=True, processes=1)
    played = list(result.interactions["action"])
    return world.regret([users.arms.index(tuple(arm)) for arm in played])
