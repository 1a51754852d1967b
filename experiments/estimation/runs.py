"""A run that also measures how far the parameters of Frank-Wolfe bandits are from the true ones."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from dpbandit.agents.contextual.dp_hdb import FrankWolfeBandit
from dpbandit.base.arrays import Floats
from dpbandit.base.inputs import InputError
from dpbandit.envs.contextual.glm import GLMBandit
from dpbandit.experiments.releases import Watched
from dpbandit.results.runs import AgentRun
from dpbandit.running.compare import as_run
from dpbandit.running.loop import play
from dpbandit.studies import Configuration
from dpbandit.studies.plan import certificate_of

_ERROR = "error after {}"
_HALVINGS = 6


def places(horizon: int) -> list[int]:
    """Rounds after which parameters are looked at: the horizon, its half, its quarter, ..

    >>> places(640)
    [10, 20, 40, 80, 160, 320, 640]
    """
    return [horizon // 2**j for j in reversed(range(_HALVINGS + 1)) if horizon // 2**j]


class EstimateConfiguration(Configuration):
    """A Frank-Wolfe bandit on a generalised linear problem."""

    def play(
        self, first: int, last: int, advance: Callable[[int], None] = lambda rounds: None
    ) -> AgentRun:
        """Its run; measures "error after t", `|theta_t - theta*|_1^2 / |theta*|_1^2`, the mean of
        the arms, which is 1 where nothing has been learned."""
        setup, seen, errors = self.setup, Watched(self.config), dict[str, Floats]()
        problem, proof = self.problem(), certificate_of(self)
        if not isinstance(problem, GLMBandit):
            raise InputError(f"Expected a GLMBandit, whose parameters are known, got {problem}.")
        wanted, done = set(places(setup.horizon)), 0

        def look(rounds: int) -> None:
            nonlocal done
            done += rounds
            if done in wanted:
                errors[_ERROR.format(done)] = _error(seen.agents[-1], problem)
            advance(rounds)

        marks = np.union1d(self.marks, sorted(wanted))
        seeds = [(setup.seed, r) for r in range(first, last)]
        log = play(problem, seen, seeds, marks=marks, advance=look)
        kept = np.isin(marks, self.marks)
        tables = {what: getattr(log, what)[kept] for what in ("regret", "reward", "switches")}
        run = as_run(setup, self.name, self.config, proof, [replace(log, **tables)], first=first)
        return replace(run, measures=errors)


def _error(agent: object, problem: GLMBandit) -> Floats:
    if not isinstance(agent, FrankWolfeBandit):
        raise InputError(f"Expected an agent that estimates by Frank-Wolfe, got {agent}.")
    true = problem.true_parameters
    gap, length = (np.square(np.abs(v).sum(axis=-1)) for v in (agent.theta - true, true))
    share: Floats = (gap / length).mean(axis=-1)
    return share


def errors(run: AgentRun) -> list[Floats]:
    """At each of `places`, (R,)."""
    return [run.measures[_ERROR.format(t)] for t in places(run.setup.horizon)]
