"""Prediction with expert advice: problems, and the running agents that several configs share."""

from dpbandit.experts.spec import ExpertsSpec

__all__ = ["ExpertsSpec"]
