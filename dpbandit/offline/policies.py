"""Frozen policies, which offline evaluation requires; `snapshot` freezes a learner."""

from copy import deepcopy
from typing import Any, NamedTuple, cast

import numpy as np

from dpbandit.base import (
    Bools,
    Floats,
    InputError,
    Ints,
    Progress,
    abbrev,
    by_name,
    columns_of,
    shaped,
    whole,
)
from dpbandit.offline.logs import (
    LoggedLists,
    LoggedPrices,
    Observed,
    in_order_of,
    is_law,
    numbers_in,
    refuse_marginal,
    refuse_row,
)
from dpbandit.specs import (
    Agent,
    ContextualSpec,
    Hindsight,
    PriceSpec,
    Spec,
    acted,
    is_running,
    spec_of_kind,
)
from dpbandit.specs.lists import ListSpec


class ListLaw(NamedTuple):
    """Probabilities of lists under a policy, on n logged rows with m positions and N items."""

    prefix: Floats
    """probability of the logged items 1..k, in order, for each position k, (n, m)"""
    marginal: Floats | None = None
    """probability of the logged item at each position, whatever stands above, (n, m)"""
    conditional: Floats | None = None
    """probability of every item at each position, given the logged items above, (n, m, N)"""


def list_law(policy: Any, log: LoggedLists) -> ListLaw:
    """Return the law of a policy given as a `ListLaw`, as lists (n, m) or draws (draws, n, m)."""
    output = policy_output(policy, "lists", np.asarray(log.context))
    if isinstance(output, ListLaw):
        return _checked(output, log)
    lists = in_order_of(log, "policy", output, counted=output is not policy)
    n, m = log.items.shape
    if lists.shape[-2:] != (n, m) or lists.ndim not in (2, 3) or not lists.size:
        raise InputError(
            f"Expected policy to be lists of shape {(n, m)}, draws of them, or a ListLaw, got "
            f"shape {lists.shape}."
        )
    draws = lists.reshape(-1, n, m)
    fine = (draws >= 0) & (draws < log.n_items) & (draws == np.floor(draws))
    refuse_row(f"items below n_items={log.n_items}", fine.all(axis=(0, 2)), "a policy")
    ordered = np.sort(draws, axis=2)
    refuse_row("different items", (np.diff(ordered) > 0).all(axis=(0, 2)), "a policy")
    agree = draws == log.items
    prefix = np.logical_and.accumulate(agree, axis=2).mean(axis=0)
    # conditional laws are not known from draws, unless lists are deterministic
    fixed = len(draws) == 1
    conditional = _one_hot(draws[0].astype(np.int64), log.n_items) if fixed else None
    return ListLaw(prefix, agree.mean(axis=0), conditional)


def _one_hot(lists: Ints, n_items: int) -> Floats:
    """Return the conditional law (n, m, N) of lists (n, m) of N items that are not random."""
    # also where other items are logged above: no estimator reads the law there
    law = np.zeros((*lists.shape, n_items))
    np.put_along_axis(law, lists[..., None], 1.0, axis=2)
    return law


def _checked(policy: ListLaw, log: LoggedLists) -> ListLaw:
    n, m = log.items.shape
    prefix = _chances("prefix", policy.prefix, log, (n, m))
    falling = prefix[:, 1:] <= prefix[:, :-1] * (1 + 1e-9)
    refuse_row("prefix probabilities that do not rise", falling.all(axis=1), "a policy")
    marginal, conditional = policy.marginal, policy.conditional
    if marginal is not None:
        marginal = _chances("marginal", marginal, log, (n, m))
        refuse_marginal(marginal, prefix, "a policy")
    if conditional is not None:
        conditional = _chances("conditional", conditional, log, (n, m, log.n_items))
        fine = is_law(conditional.reshape(n * m, -1)).reshape(n, m)
        refuse_row("conditional laws that sum to 1", fine.all(axis=1), "a policy")
    return ListLaw(prefix, marginal, conditional)


def _chances(name: str, values: Any, log: LoggedLists, shape: tuple[int, ...]) -> Floats:
    chance = in_order_of(log, f"the policy's {name}", values)
    shaped(f"the policy's {name}", chance, shape)
    fine = ((chance >= 0) & (chance <= 1)).reshape(len(chance), -1).all(axis=1)
    refuse_row(f"{name} probabilities in [0, 1]", fine, "a policy")
    return chance


def policy_output(policy: Any, method: str, context: Floats, mask: Bools | None = None) -> Any:
    """Call a policy's method at the log's contexts (and masks); return a policy of arrays as it is.

    Raises:
        InputError: the policy learns, so that its choices depend on rewards of its own choices.
    """
    if columns_of(policy) is not None:  # a table
        return policy
    if isinstance(policy, Hindsight):
        raise InputError(f"Expected a policy, got {abbrev(policy)}: hindsight needs all rewards.")
    if hasattr(policy, "make") and not is_running(policy):
        raise InputError(
            f"Expected a frozen policy, got the learner {abbrev(policy)}: dpbandit.offline.replay "
            "is for those, or a snapshot of one that was trained on other rows."
        )
    if hasattr(policy, "act") and hasattr(policy, "update"):
        raise InputError(
            f"Expected a frozen policy, got the running agent {type(policy).__name__}: take a "
            "snapshot of one that was trained on other rows, say the first half of the log."
        )
    if callable(getattr(policy, method, None)):
        return getattr(policy, method)(context, *([] if mask is None else [mask]))
    if not isinstance(policy, list | tuple | ListLaw) and not hasattr(policy, "__array__"):
        raise InputError(
            f"Expected policy={abbrev(policy)} to have {method}(contexts), as snapshots do, or to "
            "be an array."
        )
    return policy


def arm_policy(policy: Any, log: Observed) -> Floats:
    """Return a policy's probabilities (n, K) of arms in the rows of a log."""
    output = policy_output(policy, "probabilities", log.context, log.mask)
    output, counted = log.by_arm("policy", output), output is not policy
    law = in_order_of(log, "policy", output, counted=counted)
    shaped("the policy's probabilities", law, (len(log.action), log.spec.n_actions))
    refuse_row("probabilities that sum to 1", is_law(law), "a policy")
    return law


def price_policy(policy: Any, log: LoggedPrices) -> Floats:
    """Return a policy's prices (draws, n) in the rows of a log, all in the range of the spec."""
    n, spec = len(log.price), log.spec
    output = policy_output(policy, "prices", log.context)
    if columns_of(output) is None:
        prices = in_order_of(log, "policy", output, counted=output is not policy)
    else:  # a row for each draw, a column for each row of the log
        names = range(n) if log.index is None or output is not policy else log.index
        prices = numbers_in("policy", by_name("policy", output, names, "the rows of the log"))
    if prices.shape[-1:] != (n,) or prices.ndim > 2 or not prices.size:
        raise InputError(f"Expected prices of shape ({n},) or (draws, {n}), got {prices.shape}.")
    prices = np.atleast_2d(prices)
    fine = (prices >= spec.low) & (prices <= spec.high)
    refuse_row(f"prices from {spec.low:g} to {spec.high:g}", fine.all(axis=0), "a policy")
    return prices


class Snapshot:
    """A frozen copy of a running agent: a policy for `evaluate`.

    An agent that acts at random (Thompson sampling, ties) draws anew for every row, independently
    of the log. With several `draws` per row, `probabilities` are shares of draws. `ips`, `dr` and
    `mips` are linear in probabilities, so they are unbiased, and their betting intervals valid,
    whatever `draws` is.

    Guarantee:
        A snapshot of a private agent is as private as the agent, for the users from whom the agent
        learned: the policy depends on their data through the agent's releases only. For all other
        users the snapshot has no privacy cost.
    """

    def __init__(self, agent: Agent, spec: Spec, draws: int) -> None:
        self._agent, self._spec, self._draws = agent, spec, draws

    def probabilities(self, context: Floats, mask: Bools | None = None) -> Floats:
        """Return shares (n, K) of arms among the draws, from the arms that a mask (n, K) allows."""
        spec = self._expects(ContextualSpec, "arms")
        arms = self._played(context, mask).astype(np.int64)  # (draws, n)
        return (arms[..., None] == np.arange(spec.n_actions)).mean(axis=0)

    def prices(self, context: Floats) -> Floats:
        """Return prices that the agent draws at n contexts, (draws, n)."""
        self._expects(PriceSpec, "prices from a continuum")
        return self._played(context)

    def lists(self, context: Floats) -> Ints:
        """Return lists of m items that the agent draws at n contexts, (draws, n, m)."""
        self._expects(ListSpec, "lists")
        return self._played(context).astype(np.int64)

    def _expects(self, kind: Any, what: str) -> Any:
        if not isinstance(self._spec, kind):
            name = type(self._spec).__name__
            raise InputError(f"Expected a snapshot of an agent that plays {what}, got a {name}.")
        return self._spec

    def _played(self, context: Floats, mask: Bools | None = None) -> Floats:
        rows = np.asarray(context)
        if (mask is None) != (self._spec.masks == "none"):
            raise InputError(
                f"Expected masks with the contexts if and only if actions come and go, got "
                f"masks={self._spec.masks!r} of the agent's problem."
            )
        shaped("contexts", rows, (len(rows), *self._spec.context_shape))
        agent = deepcopy(self._agent)  # so that repeated calls return the same actions
        played = np.empty((self._draws, len(rows), *np.shape(self._spec.default_action)))
        with Progress(self._draws * len(rows)) as progress:
            progress.working_on("asking the snapshot", rate=1)
            for draw in range(self._draws):
                for i in range(len(rows)):
                    there = None if mask is None else mask[i : i + 1]
                    action = self._spec.validate(acted(agent, rows[i : i + 1], there), 1)
                    played[draw, i] = action[0]
                progress.advance(len(rows))
        return played


def snapshot(agent: Any, spec: Spec | None = None, *, draws: int = 1) -> Snapshot:
    """Freeze a running agent as it is now, as a policy.

    Train the agent on other rows than those of the evaluation, say on the first half of a log.

    Args:
        agent: a running agent of one replica, from a config's `make`, or a `Player`.
        spec: spec for which the agent was made; not needed for a `Player`.
        draws: number of actions drawn for each row, for agents that draw.

    Raises:
        InputError: `agent` is a config, no agent or one of several replicas, or there is no spec.

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
            f"Expected a running agent, got the config {abbrev(agent)}: make(spec, streams) makes "
            "one, and rows of a log, or users, teach it."
        )
    inner = getattr(agent, "_agent", agent) if hasattr(agent, "certificate") else agent
    spec = getattr(agent, "spec", None) if spec is None else spec
    if not callable(getattr(inner, "act", None)):
        raise InputError(f"Expected a running agent, with act(context), got {abbrev(agent)}.")
    spec = spec_of_kind(spec, Spec)
    frozen = deepcopy(cast(Agent, inner))
    try:
        everything = None if spec.masks == "none" else np.ones((1, spec.mask_size[0]), np.bool_)
        nobody = np.zeros((1, *spec.context_shape))
        played = np.shape(acted(deepcopy(frozen), nobody, everything))
    except ValueError as error:
        raise InputError(
            f"Expected spec={abbrev(spec)} to be what the agent was made for: {error}"
        ) from None
    if played[:1] != (1,):
        raise InputError(f"Expected an agent of one replica, got actions of shape {played}.")
    return Snapshot(frozen, spec, draws)
