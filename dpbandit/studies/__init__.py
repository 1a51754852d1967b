"""Sweeps: hundreds of configurations, thousands of replicas, that survive an interruption."""

from dpbandit.studies.configuration import Configuration, Study, setup_of
from dpbandit.studies.file import Sweep
from dpbandit.studies.plan import plan
from dpbandit.studies.run import Swept, play_all, run_sweep
from dpbandit.studies.workers import BACKENDS

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
