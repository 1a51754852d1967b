"""Play MABWiser by a loop of ours; its first `fit` needs a round, in which arm 0 is played."""

from mabwiser.mab import MAB, LearningPolicy
from world import ALPHA, RIDGE


def play(world):
    arms = list(range(world.mean.shape[1]))
    bandit = MAB(arms, LearningPolicy.LinUCB(alpha=ALPHA, l2_lambda=RIDGE))
    bandit.fit([0], world.reward[:1, 0], world.context[:1])
    actions = [0]
    for t in range(1, len(world.context)):
        user = world.context[t : t + 1]
        arm = bandit.predict(user)
        bandit.partial_fit([arm], world.reward[t, arm : arm + 1], user)
        actions.append(arm)
    return world.regret(actions)
