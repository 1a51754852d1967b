"""What runs found: one agent's run, its store, comparisons and pictures."""

from dpbandit.results.results import Results

__all__ = ["Results"]
