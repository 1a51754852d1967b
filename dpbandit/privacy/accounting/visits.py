"""How often one person may come: her slots of the public clock."""

from dataclasses import dataclass
from typing import Literal

from dpbandit.base.inputs import InputError, whole


@dataclass(frozen=True)
class Visits:
    """The public facts on one person's rounds: at most `cap` of them, any two `separation` apart.

    Neighbouring streams differ in one PERSON, in everything she sends or would send. Where the
    pattern is private her slots are replaced as well: those she leaves become empty, those she
    takes were empty, all others keep theirs. `cap` = 1 with a public pattern is a user's round.

    >>> str(Visits(20, 100))
    'one person, of at most 20 rounds, 100 or more apart, which may move'
    """

    cap: int = 1
    """rounds of a person that anybody learns from, at most"""
    separation: int = 1
    """slots between two of them, at least; 1 is any"""
    pattern: Literal["private", "public"] = "private"
    """whether neighbours may differ in when she comes"""

    def __post_init__(self) -> None:
        whole("cap", self.cap, 1)
        whole("separation", self.separation, 1)
        if self.pattern not in ("private", "public"):
            raise InputError(f"Expected pattern={self.pattern!r} to be 'private' or 'public'.")

    @property
    def rounds(self) -> int:
        """In how many slots neighbours differ at most; those she leaves count too."""
        return self.cap if self.pattern == "public" else 2 * self.cap

    def __str__(self) -> str:
        rounds = "1 round" if self.cap == 1 else f"at most {self.cap} rounds"
        apart = f", {self.separation} or more apart" if min(self.separation, self.cap) > 1 else ""
        moves = ", which may move" if self.pattern == "private" else ""
        return f"one person, of {rounds}{apart}{moves}"
