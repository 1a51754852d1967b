"""Streams of independent users: excess risk against the best point of their law."""

from dpbandit.stochastic.spec import StreamSpec

__all__ = ["StreamSpec"]
