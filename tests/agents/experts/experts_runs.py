"""What tests of followers of experts share: runs against a problem, and on given losses."""

import numpy as np

from dpbandit.base.random_streams import Streams


def play(problem, make, R):
    """Total losses less the best expert's, (R,), and the agent."""
    streams = Streams(range(R))
    problem.reset(streams.child("environment"))
    agent = make(problem.spec, streams.child("agent"))
    total = np.zeros(R)
    for _ in range(problem.spec.horizon):
        action = agent.act(problem.context())
        step = problem.step(action)
        total += step.regret
        agent.update(None, action, step.datum)
    return total + problem.hindsight(), agent


def told(losses, agent, R, rounds=1):
    """Who was followed in rounds of these losses (d,), (rounds, R)."""
    row = np.broadcast_to(np.asarray(losses, dtype=float), (R, len(losses)))
    followed = []
    for _ in range(rounds):
        followed.append(agent.act(row))
        agent.update(row, followed[-1], row)
    return np.array(followed)
