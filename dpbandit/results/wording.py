"""Words for regret in the unit of a problem's rewards."""

from typing import NamedTuple

from dpbandit.base import rounded


class Losing(NamedTuple):
    """Unit and verbs for regret in sentences, since dollars are lost but mistakes are made."""

    noun: str
    """unit of regret in sentences, such as dollars; empty if rewards have no unit"""
    scale: float = 1.0
    """number of units of `noun` in a reward of 1"""
    loses: str = "loses"
    lost: str = "lost"
    lose: str = "lose"

    def number(self, regret: float) -> str:
        """Format a regret, given in rewards, as a number in the unit `noun`, without the unit."""
        return rounded(self.scale * regret)

    def amount(self, regret: float) -> str:
        """Format a regret with its unit, or without a unit if rewards have none.

        >>> losing("hundreds of dollars").amount(11.724), losing("reward").amount(3)
        ('1,170 dollars', '3')
        """
        return f"{self.number(regret)} {self.noun}".rstrip()


_WORDS_OF_UNIT = {  # unit of rewards -> words for regret
    "reward": Losing(""),
    "loss": Losing(""),
    "right answers": Losing("mistakes", 1.0, "makes", "made", "make"),
    "hundreds of dollars": Losing("dollars", 100.0),
}


def losing(reward_unit: str) -> Losing:
    """Return the words for regret if rewards have this unit."""
    return _WORDS_OF_UNIT.get(reward_unit, Losing(reward_unit))


def earning(reward_unit: str) -> Losing:
    """Return the words for rewards themselves: those for regret, unless it counts mistakes.

    >>> earning("hundreds of dollars").amount(0.5), earning("right answers").amount(0.5)
    ('50 dollars', '0.5 right answers')
    """
    words = losing(reward_unit)
    return Losing(reward_unit) if words.noun == "mistakes" else words
