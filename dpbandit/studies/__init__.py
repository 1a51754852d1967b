"""Run sweeps: many agents on many problems, resumable after an interruption."""

from dpbandit.studies.configurations import (
    AgentFailure,
    Configuration,
    Study,
    Sweep,
    plan,
    setup_of,
)
from dpbandit.studies.run import Swept, play_all, run_sweep
from dpbandit.studies.workers import BACKENDS

__all__ = [
    "BACKENDS",
    "AgentFailure",
    "Configuration",
    "Study",
    "Sweep",
    "Swept",
    "plan",
    "play_all",
    "run_sweep",
    "setup_of",
]
