"""What a mechanism that was paid for single rounds costs a person."""

from dpbandit.privacy.accounting.spends import GaussianSpend, Repeated, Slots, Spend
from dpbandit.privacy.accounting.visits import Visits

_ROUNDING = 1e-9


def for_a_person(spend: Spend, visits: Visits) -> Repeated:
    """`spend` for a person with such visits, in which a round without her is a public null round.

    Replacing her changes n = k rounds, or n = 2 k where she may come at other times, each by what
    replacing one round does at most: those she leaves and those she takes, of which either are a
    pattern of k rounds b apart. So a running sum moves no further than S(k, b) / S(1, 1) rounds
    do where her slots stay, and else than S(2 k, 1) / S(1, 1), or than `moving` times as far: twice
    by the triangle inequality; less where contributions v, beyond a null round's, are short, as
    with columns c_t of products >= 0, V the largest `|v|` and m the least <v, v'>::

        |sum of c_t v_t, t left, - sum of c_t v'_t, t taken|^2 <= S^2 (2 V^2 + 2 max(0, -m))

    (squares are at most S^2 V^2 each, and what is in between adds up to S^2 as well). That holds
    for data, reference points and return times that depend on releases: it holds of every pattern.
    Of a mechanism that says nothing it is n, group privacy.

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
    if visits.pattern == "public":
        return S
    return min(slots.moving * S, slots.person_norm(2 * visits.cap, 1))
