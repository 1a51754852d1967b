"""Sweeps: hundreds of configurations, thousands of replicas, that survive an interruption."""

from dpbandit.studies.file import Sweep
from dpbandit.studies.plan import Configuration, plan
from dpbandit.studies.run import Swept, run_sweep
from dpbandit.studies.workers import BACKENDS

__all__ = ["BACKENDS", "Configuration", "Sweep", "Swept", "plan", "run_sweep"]
