"""Configs whose paper's algorithm is a class of its own."""

from dataclasses import fields
from typing import Any, ClassVar

from dpbandit.base import InputError


class PrintedElsewhere:
    """Base of configs that go on from a paper; `calibration="paper"` makes the paper's algorithm.

    >>> from dpbandit.agents import DPUCB
    >>> type(DPUCB(epsilon=0.5, calibration="paper")).__name__
    'ShariffSheffetUCB'
    """

    printed: ClassVar[Any]
    """that class"""

    def __new__(cls, **settings: Any) -> Any:
        """A config of this class, or of the paper's algorithm."""
        calibration = settings.get("calibration")
        if not (isinstance(calibration, str) and calibration == "paper"):
            return super().__new__(cls)
        takes = {field.name for field in fields(cls.printed)}
        if strange := [name for name in settings if name not in takes]:
            raise InputError(
                f"Expected calibration='paper' without {', '.join(strange)}: it makes a "
                f"{cls.printed.__name__}, which has no such setting."
            )
        return cls.printed(**settings)
