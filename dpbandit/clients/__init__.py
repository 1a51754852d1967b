"""Interfaces to other libraries: Gymnasium bandits, scalar policies, logs, and your own loop."""

from dpbandit.shelf import face as _face, homes as _homes

__all__ = [*_homes("clients")]
__getattr__, __dir__ = _face(__name__)
