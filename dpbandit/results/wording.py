"""Words for regret in the unit of a problem's rewards."""

from typing import NamedTuple

from dpbandit.base import rounded


class Losing(NamedTuple):
    """How to say that regret was suffered: money is lost, mistakes are made."""

    noun: str
    """what is lost, such as dollars; empty where rewards have no unit"""
    scale: float = 1.0
    """nouns in a reward of 1"""
    loses: str = "loses"
    lost: str = "lost"
    lose: str = "lose"

    def number(self, regret: float) -> str:
        """Regret in nouns, without the noun."""
        return rounded(self.scale * regret)

    def amount(self, regret: float) -> str:
        """Regret with its noun.

        >>> losing("hundreds of dollars").amount(11.724), losing("reward").amount(3)
        ('1,170 dollars', '3')
        """
        return f"{self.number(regret)} {self.noun}".rstrip()


_WORDS = {
    "reward": Losing(""),
    "loss": Losing(""),
    "right answers": Losing("mistakes", 1.0, "makes", "made", "make"),
    "hundreds of dollars": Losing("dollars", 100.0),
}


def losing(reward_unit: str) -> Losing:
    """Return the words for regret in this unit."""
    return _WORDS.get(reward_unit, Losing(reward_unit))
