"""Logs of lists, made ready: each estimator bets with weights of its own."""

from functools import partial
from typing import Any

import numpy as np

from dpbandit.base.arrays import Floats
from dpbandit.offline.betting import Stakes
from dpbandit.offline.cases import Case
from dpbandit.offline.list_estimators import LISTS, ListRows, weights_of
from dpbandit.offline.list_policies import list_law
from dpbandit.offline.logged_lists import LoggedLists
from dpbandit.offline.policies import asked
from dpbandit.offline.settings import Settings

_ABOVE = "holds only where a click depends on nothing below it"
_NOTES = {
    "independent-ips": "holds only where a click depends on nothing but its own item and position",
    "interaction-ips": _ABOVE,
    "cascade-dr": _ABOVE,
}


def case_of_lists(policy: Any, log: LoggedLists, settings: Settings) -> Case:
    """What can be said of a policy of lists; a row's reward is its number of clicks."""
    rows = ListRows(
        items=log.items,
        clicks=log.clicks,
        prefix=log.prefix,
        marginal=log.marginal,
        policy=list_law(asked(policy, "lists", np.asarray(log.context)), log),
        q=_model(log, settings),
    )
    return Case(
        estimators={name: partial(terms, rows) for name, terms in LISTS.items()},
        bounds=(0.0, float(log.items.shape[1])),
        adaptive=log.adaptive,
        stakes={
            name: partial(_stakes, name, rows)
            for name in ("ips", "independent-ips", "interaction-ips")
        },
        notes=_NOTES,
    )


def _stakes(name: str, rows: ListRows) -> Stakes:
    """(1/m) sum_k w_k r_k and (1/m) sum_k w_k (1 - r_k), since every w_k has mean 1."""
    w = weights_of(name, rows)
    return Stakes((w * rows.clicks).mean(axis=1), (w * (1 - rows.clicks)).mean(axis=1))


def _model(log: LoggedLists, settings: Settings) -> Floats | None:
    if settings.q is None:
        return None
    return settings.model_of(np.asarray(log.context), (*log.items.shape, log.n_items))
