"""PerPerson: any agent, for people who return."""

from dataclasses import field, replace
from math import inf, nan, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from dpbandit.agent import Around, Count, Inner
from dpbandit.base import Floats, InputError, Ints, Streams
from dpbandit.privacy import Ledger, epsilon_of, mu_of
from dpbandit.privacy.mechanism import PersonalMemory
from dpbandit.privacy.notion import Visits
from dpbandit.privacy.person_sums import for_a_person
from dpbandit.privacy.premises import ALL_FACTS, Fact
from dpbandit.privacy.spends import Repeated
from dpbandit.specs import gaussian
from dpbandit.specs.people import ReturningSpec

_STEPS = 12
"""Agents made, at most, to find the epsilon of a round; without batches that follow it, two are"""
_CLOSE = 1e-8


class PerPerson(Around[ReturningSpec]):
    """Wraps an agent for single rounds, with a budget that covers all rounds of a person.

    A visit is told to `agent` if the person has been told fewer than n = min(k, `told`) times
    before, and not within the last b slots; else, and in an empty slot, a public null round is told
    in its place: the first arm (or items), with a context and an answer that are no numbers, to
    which statistics add nothing. So its clock never stops, and who has been told how often is kept
    under her own number and reaches nobody.

    Guarantee:
        (epsilon, delta)-joint DP for a PERSON, as `agent` claims it. Replacing her changes at most
        n = min(k, `told`) rounds of what `agent` is told, or 2 n where she may also come at other
        times (those she leaves and those she takes), and so many changes move Gaussian noise as
        many times mu far, whatever `agent` is: group privacy. Of fading and of prefix sums that
        hear every round they cost less, the more so the larger b: S(n, b) / S(1), and up to twice
        that where she may move, by how long a round's contribution is (`for_a_person`). It is given
        the epsilon of which all that is the claim's mu. An agent whose noise is not Gaussian is
        refused; one that stands around another, or opens mechanisms as it goes, pays for groups.
        Told of every visit this is the dearest way, and the honest baseline for `PersonalFADE`,
        which pays for a person once; with `told` = 1 so does this. Without a trusted server who
        sends is seen, so that slots must not move, and a device has to send in empty slots, too:
        `honest` is a share of slots. Where slots may move, what keeps contexts exactly is refused.

    Raises:
        InputError: no agent, or noise that is not Gaussian.

    >>> from dpbandit import certify
    >>> from dpbandit.agents import FADE
    >>> proof = certify(PerPerson(FADE(epsilon=1.0)), "ReturningUsers", accountants=False)
    >>> round(proof.epsilon, 6), proof.ledger.brief
    (1.0, 'person, 20 rounds')
    """

    # "its clock never stops": null rounds follow whether anybody came, and who
    hands_on = ALL_FACTS
    # "a budget that covers all rounds of a person"
    pays_for = frozenset({Fact.ONCE})

    plays = ReturningSpec
    agent: Inner = field(kw_only=False)
    """what plays, and is told"""
    told: Count | None = None
    """rounds of a person that `agent` is told at most; None is as many as she may come"""

    def check(self) -> None:
        if isinstance(self.agent, PerPerson):
            raise InputError("Expected an agent for single rounds, got one that is per person.")
        prior = getattr(_innermost(self.agent), "prior", None)
        if getattr(prior, "mu", 0):
            raise InputError(
                f"Expected a prior that cost nobody anything to be per person, got {prior}: it "
                "protects rows of a log, of which one person may have several."
            )

    def start(self) -> None:
        promised = self.spec.visits
        visits = replace(promised, cap=min(promised.cap, self.told or promised.cap))
        inner = one_round(self.agent, replace(self.spec, visits=visits))
        self.inner = gaussian(inner, self.spec.visit).make(self.spec.visit, self.streams)
        self.turnstile = Turnstile(self.R, self.spec.people, visits)
        ledger = self.inner.ledger
        if ledger.mu is None:
            raise InputError(
                f"Expected {type(inner).__name__} to add Gaussian noise alone, to be per person: "
                "of other noise nobody knows what several rounds cost."
            )
        spends = _for_a_person(inner, ledger, visits)
        known = ledger.mu < inf
        person = ledger.notion.of_person(promised)
        self.ledger = replace(ledger, spends=spends, notion=person) if known else ledger

    def act(self, context: Floats) -> npt.NDArray[Any]:
        arms: npt.NDArray[Any] = self.inner.act(self.spec.visit_context(context))
        return arms

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        admitted = self.turnstile.admits(self.spec.person(context))
        self.inner.update(
            _where(admitted, self.spec.visit_context(context), nan),
            _where(admitted, action, self.spec.default_action),
            _where(admitted, feedback, nan),
        )


def _where(admitted: npt.NDArray[np.bool_], array: npt.NDArray[Any], null: Any) -> npt.NDArray[Any]:
    """`array` (R, ...) in the replicas that are told, else `null`."""
    axes = tuple(range(1, array.ndim))
    return np.where(np.expand_dims(admitted, axes), array, null)


class Turnstile:
    """Lets a person through k times, and not again within b slots."""

    def __init__(self, replicas: int, people: int, visits: Visits) -> None:
        self._visits, self._slot = visits, 0
        self._kept = PersonalMemory(replicas, people=people, shape=(2,))
        """how often each has been let through, and after how many slots the last time"""

    def admits(self, person: Ints) -> npt.NDArray[np.bool_]:
        """Who is let through in the next slot, (R,)."""
        self._slot += 1
        times, last = self._kept.of(person).T
        fresh = (times == 0) | (self._slot - last >= self._visits.separation)
        through: npt.NDArray[np.bool_] = (person >= 0) & (times < self._visits.cap) & fresh
        step = np.column_stack([through, (self._slot - last) * through])
        self._kept.add(person, step.astype(float))
        return through


def one_round(config: Any, spec: ReturningSpec) -> Any:
    """`config` with the epsilon of which all rounds of a person together cost what it claims.

    What they add up to may depend on that epsilon, by lengths of batches: it is sought in a few
    steps from group privacy on, which is always enough.
    """
    inner = _innermost(config)
    epsilon, delta = (getattr(inner, name, None) for name in ("epsilon", "delta"))
    if epsilon in (None, inf) or not delta:  # no noise, or none that is Gaussian
        return config
    mu = mu_of(epsilon, delta)
    factor = enough = float(spec.visits.rounds)
    little = 0.0
    for _ in range(_STEPS):
        share = epsilon_of(mu / factor, delta)
        if share < 1e-50:  # which no agent takes
            raise InputError(
                f"Expected epsilon={epsilon!r} at delta={delta!r} to leave each of "
                f"{spec.visits.rounds} rounds of a person an epsilon above 0: choose a larger "
                "epsilon, a smaller delta, or fewer rounds (told=)."
            )
        tried = _with_epsilon(config, share)
        ledger = tried.make(spec.visit, Streams([0])).ledger
        if not 0 < (ledger.mu or 0) < inf:
            break
        cost = replace(ledger, spends=_for_a_person(tried, ledger, spec.visits)).mu / mu
        little, enough = (little, factor) if cost <= 1 else (factor, enough)
        if 1 - _CLOSE <= cost <= 1:
            break
        factor *= cost * (1 + _CLOSE / 10)
        if not little < factor < enough:  # another batch more or less changes what is added up
            factor = sqrt(little * enough) if little else enough / 2
    return _with_epsilon(config, epsilon_of(mu / enough, delta))


def _for_a_person(config: Any, ledger: Ledger, visits: Visits) -> tuple[Repeated, ...]:
    """What all of a ledger costs a person; in groups where another agent may be told some rounds
    only, between which there are fewer of its own."""
    if _innermost(config) is not config:
        return tuple(Repeated(part, visits.rounds) for part in ledger.spends)
    return tuple(for_a_person(part, visits) for part in ledger.spends)


def _innermost(config: Any) -> Any:
    inner = getattr(config, "agent", None)
    return _innermost(inner) if hasattr(inner, "make") else config


def _with_epsilon(config: Any, epsilon: float) -> Any:
    """`config`, or what it stands around, with that epsilon."""
    if _innermost(config) is config:
        return replace(config, epsilon=epsilon)
    return replace(config, agent=_with_epsilon(config.agent, epsilon))
