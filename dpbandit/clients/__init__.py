"""Work with other libraries: Gymnasium bandits, scalar policies, logs, and your own loop."""

from dpbandit.clients.from_gymnasium import Bridge, FromGymnasium
from dpbandit.clients.logs import (
    read_lists,
    read_log,
    read_observed,
    read_open_bandit,
    read_prices,
    record,
)
from dpbandit.clients.player import Player
from dpbandit.clients.policies import (
    Foreign,
    RiverRanking,
    mabwiser_policy,
    river_history,
    river_policy,
)

__all__ = [
    "Bridge",
    "Foreign",
    "FromGymnasium",
    "Player",
    "RiverRanking",
    "mabwiser_policy",
    "read_lists",
    "read_log",
    "read_observed",
    "read_open_bandit",
    "read_prices",
    "record",
    "river_history",
    "river_policy",
]
