"""Results of runs: tables, files, statistical comparisons and figures."""

from dpbandit.results.results import Results

__all__ = ["Results"]
