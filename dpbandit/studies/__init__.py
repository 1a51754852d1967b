"""Sweeps: hundreds of configurations, thousands of replicas, that survive an interruption."""

from dpbandit.studies.run import BACKENDS, Swept, play_all, run_sweep
from dpbandit.studies.sweeps import Configuration, Study, Sweep, plan, setup_of

__all__ = [
    "BACKENDS",
    "Configuration",
    "Study",
    "Sweep",
    "Swept",
    "plan",
    "play_all",
    "run_sweep",
    "setup_of",
]
