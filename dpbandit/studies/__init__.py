"""Run sweeps: many agents on many problems, resumable after an interruption."""

from dpbandit.studies.configurations import (
    AgentFailure,
    AgentRecorder,
    Configuration,
    LastRound,
    Study,
    Sweep,
    certificate_of,
    failure_of,
    plan,
    play_any,
    setup_of,
)
from dpbandit.studies.run import Swept, play_all, run_sweep
from dpbandit.studies.workers import BACKENDS

__all__ = [
    "BACKENDS",
    "AgentFailure",
    "AgentRecorder",
    "Configuration",
    "LastRound",
    "Study",
    "Sweep",
    "Swept",
    "certificate_of",
    "failure_of",
    "plan",
    "play_all",
    "play_any",
    "run_sweep",
    "setup_of",
]
