"""Logs of a known random policy, and the policies that are evaluated on them."""

from dpbandit.shelf import face as _face, homes as _homes

__all__ = [*_homes("offline")]
__getattr__, __dir__ = _face(__name__)
