"""Logs in the format of the Open Bandit Dataset.

Saito, Aihara, Matsutani and Narita, "Open Bandit Dataset and Pipeline: towards realistic and
reproducible off-policy evaluation", NeurIPS 2021, Datasets and Benchmarks.
"""

from typing import Any

from dpbandit.base.inputs import MOST_ACTIONS, whole
from dpbandit.clients.logged import read_log
from dpbandit.offline.logs import Logged

POSITIONS = (1, 2, 3)
"""Places on the page, each a row of its own; which rows were one page is not in the file."""


def read_open_bandit(table: Any, *, n_items: int) -> Logged:
    """Columns `item_id`, `position`, `click` and `propensity_score` as `Logged`.

    The context is the position, one-hot; the file's features of users are hashes without public
    levels and are left out.

    Args:
        table: a DataFrame, a mapping from names to columns, or the path of a file such as all.csv.
        n_items: of the campaign, numbered from 0: 80 of "all", 34 of "men", 46 of "women".

    >>> rows = {"item_id": [0, 2], "position": [1, 3], "click": [0, 1],
    ...         "propensity_score": [1 / 3, 1 / 3]}
    >>> print(read_open_bandit(rows, n_items=3))
    2 rounds with 3 arms, 0 of 2 contexts (0 %) and 0 rewards (0 %) outside their bounds
    """
    whole("n_items", n_items, 2, MOST_ACTIONS)
    return read_log(
        table,
        action="item_id",
        reward="click",
        propensity="propensity_score",
        arms=range(n_items),
        reward_range=(0, 1),
        context={"position": POSITIONS},
    )
