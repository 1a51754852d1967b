"""What a mechanism that was paid for single rounds costs a person."""

from dpbandit.privacy.accounting.spends import GaussianSpend, Repeated, Slots, Spend
from dpbandit.privacy.accounting.visits import Visits

_ROUNDING = 1e-9


def for_a_person(spend: Spend, visits: Visits) -> Repeated:
    """`spend` for a person with such visits, in which a round without her is a public null round.

    Replacing her changes n = k rounds, or n = 2 k where she may come at other times, each by what
    replacing one round does at most: those she leaves and those she takes, of which either are a
    pattern of k rounds b apart. So a running sum moves no further than S(k, b) / S(1, 1) rounds
    do where her slots stay, and else than twice that, the triangle inequality, or than S(2 k, 1) /
    S(1, 1). That holds for data, reference points and return times that depend on releases: it
    holds of every pattern. Of a mechanism that says nothing it is n, group privacy.

    >>> from dpbandit.privacy.sums.slots import FadingSlots
    >>> spend = GaussianSpend(0.1, "sums", FadingSlots((100, 200, 300, 400), fade=0.0))
    >>> for_a_person(spend, Visits(4, 100, pattern="public")).note
    'sums, 4 rounds of a person, which count as 2'
    """
    times = visits.rounds
    slots = spend.slots if isinstance(spend, GaussianSpend) else None
    if slots is None or times == 1 or not spend.mu:
        return Repeated(spend, times)
    factor = _apart(slots, visits) / slots.person_norm(1, 1) * (1 + _ROUNDING)
    return Repeated(spend, times, factor) if factor < times else Repeated(spend, times)


def _apart(slots: Slots, visits: Visits) -> float:
    S = slots.person_norm(visits.cap, visits.separation)
    return S if visits.pattern == "public" else min(2 * S, slots.person_norm(2 * visits.cap, 1))
