"""Experiments: named reference cases, and one folder for each question studied."""

from dpbandit.experiments.cases import CASES, Case, Reference, reproduce

__all__ = ["CASES", "Case", "Reference", "reproduce"]
