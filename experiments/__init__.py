"""Experiments: named reference cases, and one folder for each question studied."""

from dpbandit.shelf import face as _face, homes as _homes

__all__ = [*_homes("experiments")]
__getattr__, __dir__ = _face(__name__)
