"""The suite: a fixed list of problems on which private agents are measured, scored and verified."""

from dpbandit.suite.card import write_card
from dpbandit.suite.catalogue import SIZES, problems, study_of
from dpbandit.suite.playing import Submission, frozen, read_submission, run_suite
from dpbandit.suite.scoring import scores
from dpbandit.suite.verifying import Verdict, verify

__all__ = [
    "SIZES",
    "Submission",
    "Verdict",
    "frozen",
    "problems",
    "read_submission",
    "run_suite",
    "scores",
    "study_of",
    "verify",
    "write_card",
]
