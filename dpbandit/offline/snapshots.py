"""What an agent has come to, as a frozen policy."""

from copy import deepcopy
from typing import Any, cast

import numpy as np

from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.inputs import InputError, shaped, shown, whole
from dpbandit.base.progress import Progress
from dpbandit.specs.lists import ListSpec
from dpbandit.specs.protocols import Agent, ContextualSpec, PriceSpec, Spec, is_running


class Snapshot:
    """A copy of a running agent that learns nothing more: a policy for `evaluate` and `release`.

    Each row is asked afresh, so that an agent that draws (Thompson sampling, ties) draws anew for
    every row, independently of the log. With `draws` of them per row, `probabilities` are shares of
    arms: `ips`, `dr` and `mips` are linear in them, so they stay unbiased, and their betting
    intervals valid, whatever `draws` is.

    Guarantee:
        What is remembered of users reaches the policy as far as the agent's releases do, so a
        private agent's snapshot is as private as the agent was: for a user whose rounds it never
        saw it costs nothing more.
    """

    def __init__(self, agent: Agent, spec: Spec, draws: int) -> None:
        self._agent, self._spec, self._draws = agent, spec, draws

    def probabilities(self, context: Floats) -> Floats:
        """Of arms, (n, K): shares of the draws."""
        spec = self._expects(ContextualSpec, "arms")
        arms = self._played(context).astype(np.int64)  # (draws, n)
        shares: Floats = (arms[..., None] == np.arange(spec.n_actions)).mean(axis=0)
        return shares

    def prices(self, context: Floats) -> Floats:
        """Draws of prices, (draws, n)."""
        self._expects(PriceSpec, "prices from a continuum")
        return self._played(context)

    def lists(self, context: Floats) -> Ints:
        """Draws of lists, (draws, n, m)."""
        self._expects(ListSpec, "lists")
        return self._played(context).astype(np.int64)

    def _expects(self, kind: Any, what: str) -> Any:
        if not isinstance(self._spec, kind):
            name = type(self._spec).__name__
            raise InputError(f"Expected a snapshot of an agent that plays {what}, got a {name}.")
        return self._spec

    def _played(self, context: Floats) -> Floats:
        rows = np.asarray(context)
        shaped("contexts", rows, (len(rows), *self._spec.context_shape))
        agent = deepcopy(self._agent)  # the same answers whenever it is asked
        played = np.empty((self._draws, len(rows), *np.shape(self._spec.default_action)))
        with Progress(self._draws * len(rows)) as progress:
            progress.working_on("asking the snapshot", rate=1)
            for draw in range(self._draws):
                for i in range(len(rows)):
                    action = self._spec.validate(agent.act(rows[i : i + 1]), 1)
                    played[draw, i] = action[0]
                progress.advance(len(rows))
        return played


def snapshot(agent: Any, spec: Spec | None = None, *, draws: int = 1) -> Snapshot:
    """Freeze a running agent as it is now, as a policy.

    Train on other rows than those it is evaluated on, say on the first half of a log.

    Args:
        agent: what a config's `make` returned, for one replica, or a `Player`.
        spec: the public facts it was made for; a `Player` knows its own.
        draws: answers asked for each row, of agents that draw.

    Raises:
        InputError: a config, or no agent; no spec; an agent of several replicas.

    >>> from dpbandit.agents import LinUCB
    >>> from dpbandit.base.random_streams import Streams
    >>> spec = ContextualSpec(n_actions=2, dim=1, horizon=9)
    >>> agent = LinUCB().make(spec, Streams([0]))
    >>> agent.update(np.ones((1, 1)), np.array([1]), np.ones(1))
    >>> snapshot(agent, spec).probabilities(np.ones((3, 1))).shape
    (3, 2)
    """
    whole("draws", draws, 1, 1_000_000)
    if hasattr(agent, "make") and not is_running(agent):
        raise InputError(
            f"Expected a running agent, got the config {shown(agent)}: make(spec, streams) makes "
            "one, and rows of a log, or users, teach it."
        )
    inner = getattr(agent, "_agent", agent) if hasattr(agent, "certificate") else agent
    spec = getattr(agent, "spec", None) if spec is None else spec
    if not callable(getattr(inner, "act", None)):
        raise InputError(f"Expected a running agent, with act(context), got {shown(agent)}.")
    if not isinstance(spec, Spec):
        raise InputError("Expected spec=, the public facts that the agent was made for.")
    frozen = deepcopy(cast(Agent, inner))
    try:
        played = np.shape(deepcopy(frozen).act(np.zeros((1, *spec.context_shape))))
    except ValueError as error:
        raise InputError(
            f"Expected spec={shown(spec)} to be what the agent was made for: {error}"
        ) from None
    if played[:1] != (1,):
        raise InputError(f"Expected an agent of one replica, got actions of shape {played}.")
    return Snapshot(frozen, spec, draws)
