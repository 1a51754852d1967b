"""Wrapper that plays any single-round agent with people who return."""

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

_SEARCH_STEPS = 12
"""Largest number of trial agents in the search for the epsilon of one round; usually two."""
_COST_TOLERANCE = 1e-8  # relative error of the privacy cost at which the search ends


class PerPerson(Around[ReturningSpec]):
    """Wraps an agent for single rounds, with a budget that covers all rounds of a person.

    Time is cut into slots of one visit or none; a person has at most k visits, at least b slots
    apart. `agent` learns from a visit if it learned from fewer than n = min(k, `told`) visits of
    hers before, and from none in the last b slots. Otherwise, and in empty slots, it gets a public
    null round: the first arm (or items), with NaN as context and feedback, which add nothing to
    sums. So its rounds go on, and the count of a person's rounds is stored for her alone.

    Guarantee:
        (epsilon, delta)-joint DP for a PERSON, as `agent` claims it for a round. Replacing her
        changes at most n = min(k, `told`) rounds of `agent`, or 2 n if her visits may move to other
        slots (n rounds that she leaves, n that she takes). By group privacy n changed rounds cost
        n times the mu of one round under Gaussian noise, whatever `agent` is. Fading and prefix
        sums over every round cost less, depending on b and on how long a round contributes
        (`for_a_person`), and up to twice as much if visits may move. `agent` gets the epsilon for
        which the total cost is the mu of the claim. An agent with noise that is not Gaussian is
        refused; a wrapper, or an agent that opens mechanisms during the run, has the cost of group
        privacy. Learning all visits is the baseline of `PersonalFADE`, which pays for a person
        once, as `PerPerson` does with `told` = 1. Without a trusted server it is visible who sends:
        visits must not move, and devices also send in empty slots (`honest` is the share of slots
        with a reliable device). If visits may move, exact contexts are refused.

    Raises:
        InputError: `agent` is missing, or adds noise that is not Gaussian.

    >>> from dpbandit import certify
    >>> from dpbandit.agents import FADE
    >>> proof = certify(PerPerson(FADE(epsilon=1.0)), "ReturningUsers", accountants=False)
    >>> round(proof.epsilon, 6), proof.ledger.brief
    (1.0, 'person, 20 rounds')
    """

    # "its rounds go on": null rounds depend on who came, and if anybody did
    hands_on = ALL_FACTS
    # "a budget that covers all rounds of a person"
    pays_for = frozenset({Fact.ONCE})

    plays = ReturningSpec
    agent: Inner = field(kw_only=False)
    """agent for single rounds that chooses the arms"""
    told: Count | None = None
    """largest number of a person's rounds that `agent` learns from; None for all visits"""

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
        agent = gaussian(self.agent, self.spec.visit)  # whose cost for a person is known
        inner = one_round(agent, replace(self.spec, visits=visits))
        self.inner = inner.make(self.spec.visit, self.streams)
        self.turnstile = Turnstile(self.R, self.spec.people, visits)
        ledger = self.inner.ledger
        if ledger.mu is None:
            raise InputError(
                f"Expected {type(inner).__name__} to add Gaussian noise alone, to be per person: "
                "the cost of several rounds is not known for other noise."
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
            _where_admitted(admitted, self.spec.visit_context(context), nan),
            _where_admitted(admitted, action, self.spec.default_action),
            _where_admitted(admitted, feedback, nan),
        )


def _where_admitted(
    admitted: npt.NDArray[np.bool_], array: npt.NDArray[Any], null: Any
) -> npt.NDArray[Any]:
    """Return `array` (R, ...) in replicas with an admitted visit, else `null`."""
    axes = tuple(range(1, array.ndim))
    return np.where(np.expand_dims(admitted, axes), array, null)


class Turnstile:
    """Filter that admits up to `cap` visits of a person, at least `separation` slots apart."""

    def __init__(self, replicas: int, people: int, visits: Visits) -> None:
        self._visits, self._slot = visits, 0
        self._admitted = PersonalMemory(replicas, people=people, shape=(2,))
        """number of admitted visits of every person, and the slot of the last one"""

    def admits(self, person: Ints) -> npt.NDArray[np.bool_]:
        """Return the mask (R,) of replicas whose next person is admitted, and record her visits."""
        self._slot += 1
        times, last = self._admitted.of(person).T
        fresh = (times == 0) | (self._slot - last >= self._visits.separation)
        through: npt.NDArray[np.bool_] = (person >= 0) & (times < self._visits.cap) & fresh
        step = np.column_stack([through, (self._slot - last) * through])
        self._admitted.add(person, step.astype(float))
        return through


def one_round(config: Any, spec: ReturningSpec) -> Any:
    """Return `config` with the epsilon for which all rounds of a person cost the claimed epsilon.

    The cost may depend on this epsilon through the lengths of batches. So epsilon is searched,
    starting at group privacy's, which never exceeds the claim.
    """
    inner = _innermost(config)
    epsilon, delta = (getattr(inner, name, None) for name in ("epsilon", "delta"))
    if epsilon in (None, inf) or not delta:  # no noise, or none that is Gaussian
        return config
    mu = mu_of(epsilon, delta)
    factor = enough = float(spec.visits.rounds)
    little = 0.0
    for _ in range(_SEARCH_STEPS):
        share = epsilon_of(mu / factor, delta)
        if share < 1e-50:  # no agent accepts less
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
        if 1 - _COST_TOLERANCE <= cost <= 1:
            break
        factor *= cost * (1 + _COST_TOLERANCE / 10)
        if not little < factor < enough:  # the cost jumps where the number of batches changes
            factor = sqrt(little * enough) if little else enough / 2
    return _with_epsilon(config, epsilon_of(mu / enough, delta))


def _for_a_person(config: Any, ledger: Ledger, visits: Visits) -> tuple[Repeated, ...]:
    """Return a ledger's costs for a person; wrappers, which may skip rounds, use group privacy."""
    if _innermost(config) is not config:
        return tuple(Repeated(part, visits.rounds) for part in ledger.spends)
    return tuple(for_a_person(part, visits) for part in ledger.spends)


def _innermost(config: Any) -> Any:
    inner = getattr(config, "agent", None)
    return _innermost(inner) if hasattr(inner, "make") else config


def _with_epsilon(config: Any, epsilon: float) -> Any:
    """Return `config` with `epsilon` set in its innermost agent."""
    if _innermost(config) is config:
        return replace(config, epsilon=epsilon)
    return replace(config, agent=_with_epsilon(config.agent, epsilon))
