"""Sweeps: hundreds of configurations, thousands of replicas, that survive an interruption."""

from dpbandit.sweeps.file import Sweep
from dpbandit.sweeps.plan import Configuration, plan
from dpbandit.sweeps.run import Swept, run_sweep
from dpbandit.sweeps.workers import BACKENDS

__all__ = ["BACKENDS", "Configuration", "Sweep", "Swept", "plan", "run_sweep"]
