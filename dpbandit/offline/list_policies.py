"""A policy of lists, by the probabilities with which it would have shown what was logged."""

from typing import Any, NamedTuple

import numpy as np

from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.inputs import InputError, shaped
from dpbandit.offline.logged_lists import LoggedLists, refuse_marginal
from dpbandit.offline.rows import is_law, numbers_in, refuse_row


class ListLaw(NamedTuple):
    """A policy that draws its lists, on n logged rows with m positions and N items."""

    prefix: Floats
    """(n, m), the probability of the logged items 1..k, in order"""
    marginal: Floats | None = None
    """(n, m), of the logged item k at position k, whatever stands above"""
    conditional: Floats | None = None
    """(n, m, N), of every item at position k, given the logged ones above"""


def list_law(policy: Any, log: LoggedLists) -> ListLaw:
    """What a policy would have shown: a `ListLaw`, lists (n, m), or draws of them (draws, n, m)."""
    if isinstance(policy, ListLaw):
        return _checked(policy, log)
    lists = numbers_in("policy", policy)
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
    sure = len(draws) == 1  # a law of its own only where nothing is drawn
    conditional = _one_hot(draws[0].astype(np.int64), log.n_items) if sure else None
    return ListLaw(prefix, agree.mean(axis=0), conditional)


def _one_hot(lists: Ints, n_items: int) -> Floats:
    """A fixed list's law; where the logged items above are others it is never asked."""
    law = np.zeros((*lists.shape, n_items))
    np.put_along_axis(law, lists[..., None], 1.0, axis=2)
    return law


def _checked(policy: ListLaw, log: LoggedLists) -> ListLaw:
    n, m = log.items.shape
    prefix = _chances("prefix", policy.prefix, (n, m))
    falling = prefix[:, 1:] <= prefix[:, :-1] * (1 + 1e-9)
    refuse_row("prefix probabilities that do not rise", falling.all(axis=1), "a policy")
    marginal, conditional = policy.marginal, policy.conditional
    if marginal is not None:
        marginal = _chances("marginal", marginal, (n, m))
        refuse_marginal(marginal, prefix, "a policy")
    if conditional is not None:
        conditional = _chances("conditional", conditional, (n, m, log.n_items))
        fine = is_law(conditional.reshape(n * m, -1)).reshape(n, m)
        refuse_row("conditional laws that sum to 1", fine.all(axis=1), "a policy")
    return ListLaw(prefix, marginal, conditional)


def _chances(name: str, values: Any, shape: tuple[int, ...]) -> Floats:
    chance = numbers_in(f"the policy's {name}", values)
    shaped(f"the policy's {name}", chance, shape)
    fine = ((chance >= 0) & (chance <= 1)).reshape(len(chance), -1).all(axis=1)
    refuse_row(f"{name} probabilities in [0, 1]", fine, "a policy")
    return chance
