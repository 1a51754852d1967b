"""Play contextualbandits by a loop of ours over its compiled updates, in double precision."""

import numpy as np
from contextualbandits.online import LinUCB
from world import ALPHA, RIDGE


def play(world):
    policy = LinUCB(
        world.mean.shape[1],
        alpha=ALPHA,
        lambda_=RIDGE,
        fit_intercept=False,
        use_float=False,
        random_state=1,
    )
    actions = []
    for t in range(len(world.context)):
        user = world.context[t : t + 1]
        arm = int(policy.predict(user)[0])
        policy.partial_fit(user, np.array([arm]), world.reward[t, arm : arm + 1])
        actions.append(arm)
    return world.regret(actions)
