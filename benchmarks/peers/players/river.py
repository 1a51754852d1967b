"""Play River by a loop of ours, since its `bandit.evaluate` cannot run contextual policies."""

from math import sqrt

from river import bandit
from world import ALPHA, RIDGE


class LinUCB(bandit.LinUCBDisjoint):
    """River's LinUCB, with a confidence width that does not include the noise of one reward."""

    def _pull(self, arm_ids, context):
        best, most = arm_ids[0], float("-inf")
        for arm in arm_ids:
            belief = self._bayes_lin_regs[arm].predict_one(context, with_dist=True)
            score = belief.mu + ALPHA * sqrt(max(belief.sigma**2 - 1, 0))  # beta = 1: 1 + x' V^-1 x
            if score > most:
                best, most = arm, score
        return best


def play(world):
    policy = LinUCB(alpha=RIDGE, beta=1.0)
    arms, actions = list(range(world.mean.shape[1])), []
    names = list(range(world.context.shape[1]))
    for x, rewards in zip(world.context.tolist(), world.reward.tolist(), strict=True):
        user = dict(zip(names, x, strict=True))
        arm = policy.pull(arms, context=user)
        policy.update(arm, user, rewards[arm])
        actions.append(arm)
    return world.regret(actions)
