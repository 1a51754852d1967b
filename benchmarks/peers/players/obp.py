"""Play Open Bandit Pipeline by its own simulator, on users drawn beforehand."""

import sys

try:
    import torch  # noqa: F401
except ImportError:  # obp imports it for policies that are not run here

    class _Nothing(type):
        def __getattr__(cls, name):
            if name.startswith("__"):
                raise AttributeError(name)
            return _Nothing(name, (), {})

    for _name in ("torch", "torch.nn", "torch.nn.functional", "torch.optim", "torch.utils.data"):
        sys.modules[_name] = _Nothing(_name, (), {})

from obp.policy import LinUCB
from obp.simulator.simulator import BanditPolicySimulator, BanditRounds
from world import ALPHA


def play(world):
    rounds, arms = world.mean.shape
    users = BanditRounds(
        n_rounds=rounds,
        n_actions=arms,
        context=world.context,
        action_context=None,
        rewards=world.reward,
        expected_rewards=world.mean,
        round_delays=None,
    )
    policy = LinUCB(dim=world.context.shape[1], n_actions=arms, epsilon=ALPHA)
    simulator = BanditPolicySimulator(policy)
    simulator.steps(batch_bandit_rounds=users)
    return world.regret(simulator.selected_actions)
