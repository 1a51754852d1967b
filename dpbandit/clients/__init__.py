"""Other people's code: Gymnasium bandits, scalar policies, logs, and loops that are not ours."""

from dpbandit.clients.bridge import Bridge
from dpbandit.clients.foreign import Foreign
from dpbandit.clients.from_gymnasium import FromGymnasium
from dpbandit.clients.logged import read_log
from dpbandit.clients.mabwiser import mabwiser_policy
from dpbandit.clients.open_bandit import read_open_bandit
from dpbandit.clients.player import Player
from dpbandit.clients.read_lists import read_lists
from dpbandit.clients.read_prices import read_prices
from dpbandit.clients.recording import record
from dpbandit.clients.river import river_history, river_policy
from dpbandit.clients.river_ranking import RiverRanking

__all__ = [
    "Bridge",
    "Foreign",
    "FromGymnasium",
    "Player",
    "RiverRanking",
    "mabwiser_policy",
    "read_lists",
    "read_log",
    "read_open_bandit",
    "read_prices",
    "record",
    "river_history",
    "river_policy",
]
