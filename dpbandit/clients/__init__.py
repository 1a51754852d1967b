"""Work with other libraries: Gymnasium bandits, scalar policies, logs, and your own loop."""

from dpbandit.clients.bridge import Bridge
from dpbandit.clients.player import Player
from dpbandit.shelf import face as _face

__all__ = ["Bridge", "Player"]
__getattr__, __dir__ = _face(__name__)
