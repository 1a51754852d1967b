"""Words for regret in the unit of a problem's rewards, and for what a policy gains."""

from math import isnan
from typing import Any, NamedTuple

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


def gain_sentence(who: str, answer: Any, level: float, money: Losing) -> str:
    """Return a sentence on a policy's gain over the log's own, by dr or else the first row.

    Args:
        who: name of the policy.
        answer: the table that `dpbandit.offline.evaluate` returns.
        level: level of its intervals.
        money: words for rewards, see `earning`.
    """
    rows = answer.set_index("estimator", drop=False)
    row = rows.loc["dr"] if "dr" in rows.index else rows.iloc[0]
    what, words = ("gain", money) if isnan(row["percent"]) else ("percent", Losing("%"))
    gain, low, high = row[what], row[f"{what}_low"], row[f"{what}_high"]
    earned = f"{rounded(money.scale * row['logged'], 4)} {money.noun}".rstrip()
    sentence = f"The log's own policy earned {earned} a row"
    if isnan(gain):
        return f"{sentence}."
    sentence += f"; {who} earns {_signed(gain, words)}"
    if isnan(low):
        return f"{sentence}, by {row['estimator']}, without an interval."
    ends = f"between {_signed(low, words)} and {_signed(high, words)}"
    if low * high > 0:  # both more, or both less
        small, large = sorted((abs(low), abs(high)))
        ends = f"{words.number(small)} to {_signed(large if high > 0 else -large, words)}"
    return f"{sentence} ({100 * level:g} % interval {ends}), by {row['estimator']}."


def _signed(gain: float, words: Losing) -> str:
    """Return a gain in words, such as "2.5 % less" for -2.5."""
    return f"{words.amount(abs(gain))} {'more' if gain >= 0 else 'less'}"
