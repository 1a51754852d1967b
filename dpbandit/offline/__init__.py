"""Logs of a known random policy, and the policies that are evaluated on them."""

from dpbandit.offline.logs import Logged, LoggedLists, LoggedPrices, Observed
from dpbandit.shelf import face as _face

__all__ = ["Logged", "LoggedLists", "LoggedPrices", "Observed"]
__getattr__, __dir__ = _face(__name__)
