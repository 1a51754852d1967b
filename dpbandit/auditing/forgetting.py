"""Forgetting a user: what agents do with her and without her, beside the certificate.

Retrained without her, an agent plays for the same users, with nobody in her place::

    her round     context 0, answer 0 (or what is nearest to it of what may be answered)
    a person      all her rounds, which are those of nobody
    others        as they were: same rounds, same contexts, same answers to the same actions

Joint DP bounds the law of everybody else's actions under any replacement, and this is one. So no
observer, who sees these actions and knows everybody else's data, tells the two agents apart with an
advantage, TPR - FPR, above the delta that the certificate has at epsilon 0.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from dpbandit.auditing.audit import audit_twins, check_for_ever
from dpbandit.auditing.bounds import advantage
from dpbandit.auditing.users import Pair, World
from dpbandit.auditing.views import Columns, joined, rounds
from dpbandit.auditing.witness import Witness
from dpbandit.base import MOST_RUNS, AnyArray, Floats, InputError, Seed, Streams, inside, whole
from dpbandit.running.compare import certify, replicas_at_once
from dpbandit.running.given import AnyAgent, AnyProblem, agent_given, problem_given
from dpbandit.specs import NOBODY, AgentConfig, Problem, Spec, begin

_COUNTED = 100
"""Pairs of runs in which actions that differ are counted."""


@dataclass(frozen=True, kw_only=True)
class Forgotten:
    """What forgetting one user changes; errors are standard errors over runs.

    The interval from `low` to `high` is of one observer's `advantage`, wrong with probability
    `failure`; `bound` holds for every observer, 1 where nothing is promised.
    """

    agent: str
    user: int
    later: int
    """actions that others get after her"""
    same_noise: float
    """of these, how many differ once the agent is retrained without her with the same noise"""
    same_noise_se: float
    fresh_noise: float
    """with fresh noise"""
    fresh_noise_se: float
    with_her: float
    """with fresh noise, if she stays"""
    with_her_se: float
    advantage: float
    low: float
    high: float
    bound: float
    epsilon: float
    """certified, at `delta`"""
    delta: float
    restricted: str
    """what restricts the certificate, see `Ledger.brief`"""
    rounds: int
    """to play once more, if an agent is retrained from scratch"""
    seconds: float
    """of a processor, for these"""
    runs: int
    failure: float

    @property
    def refuted(self) -> bool:
        """Whether an observer had more than the certificate allows."""
        return self.low > self.bound

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    def __str__(self) -> str:
        promised = "promises nothing"
        if self.bound < 1:
            promised = f"at most {self.bound:.4f} for any observer (epsilon {self.epsilon:.6g} at "
            promised += f"delta {self.delta:g}" + f", {self.restricted}" * bool(self.restricted)
            promised += ")" + "   REFUTED" * self.refuted
        return "\n".join(
            [
                f"without     user {self.user}, after whom others get {self.later:,} actions",
                f"same noise  {self.same_noise:.4g} of these differ",
                f"fresh noise {self.fresh_noise:.4g} differ; {self.with_her:.4g} if she stays",
                f"observer    advantage {self.advantage:.3f}, {self.low:.3f} to {self.high:.3f}",
                f"certified   {promised}",
                f"retraining  {self.rounds:,} rounds, {self.seconds:.2g} CPU-seconds",
                f"runs        {self.runs:,} of either; interval wrong with probability <= "
                f"{self.failure:g}",
            ]
        )


def forget(
    agent: AnyAgent,
    env: AnyProblem,
    *,
    user: int,
    horizon: int = 1000,
    env_kwargs: Mapping[str, Any] | None = None,
    runs: int = 2000,
    seed: int = 0,
    failure: float = 0.05,
    advance: Callable[[int], None] = lambda runs: None,
) -> Forgotten:
    """Play an agent, and the same agent retrained without one user, and tell the two apart.

    Users are those of `seed`, the same in all runs. Without her nobody is in her place, whose
    context and answer are 0; everybody else stays in her own round. An observer who sees all later
    actions, and knows everybody else's data, learns from half of the runs how to tell; the other
    half says how often that is right.

    Args:
        agent: a config, or an id with settings.
        env: an environment in any form that `compare` takes.
        user: her round, from 1; where people return the person's number, all of whose rounds go.
        horizon: number of rounds.
        env_kwargs: further arguments of the environment.
        runs: number of runs with her, and of runs without, >= 400.
        seed: random seed, of users and runs.
        failure: probability that the interval of the advantage is wrong, at most.
        advance: function that is called with the number of runs that are done.

    Raises:
        InputError: a user who does not come or whom nobody follows, an agent that does not fit, a
            promise that ends, or a problem with delays, masks, or users who depend on actions.

    >>> forget("follow-the-leader", "Experts", user=3, horizon=9, runs=400).bound
    1.0
    """
    whole("runs", runs, 400, MOST_RUNS)
    whole("seed", seed, 0, 2**32 - 1)
    inside("failure", failure, 0, 1, ends=False)
    given = problem_given(env, horizon=horizon, env_kwargs=env_kwargs)
    make = partial(given.make, **given.arguments)
    config, spec = agent_given(agent), make().spec
    proof = certify(config, spec, accountants=False)
    check_for_ever(proof.ledger)
    pair = _pair(make, spec, user, seed)
    sample = partial(_seen, config, spec, pair)
    start = time.process_time()
    sample([(seed, 0)])
    seconds = (time.process_time() - start) / 2  # of two worlds
    together = replicas_at_once(spec)
    seeds = [(seed, 1, run) for run in range(2 * _COUNTED)]
    counted = [sample(seeds[i : i + together]) for i in range(0, len(seeds), together)]
    later = len(_others(spec, pair.first.context, pair.rounds))
    (hers, hers_again), (without, without_again) = (
        joined([both[world] for both in counted]).values.reshape(2, _COUNTED, later, -1)
        for world in (0, 1)
    )
    pairs = ((hers, without), (hers, without_again), (hers, hers_again))
    changed = [(one != two).any(axis=2).sum(axis=1) for one, two in pairs]
    (same, same_se), (fresh, fresh_se), (stays, stays_se) = (
        (float(n.mean()), float(n.std(ddof=1)) / _COUNTED**0.5) for n in changed
    )
    found = audit_twins(
        sample,
        partial(advantage, failure=failure),
        runs=runs,
        seed=seed,
        chunk=together,
        advance=advance,
    )
    return Forgotten(
        agent=agent if isinstance(agent, str) else repr(config),
        user=user,
        later=later,
        same_noise=same,
        same_noise_se=same_se,
        fresh_noise=fresh,
        fresh_noise_se=fresh_se,
        with_her=stays,
        with_her_se=stays_se,
        advantage=found.value,
        low=found.low,
        high=found.high,
        bound=proof.ledger.delta(0.0),
        epsilon=proof.epsilon,
        delta=proof.claimed_delta,
        restricted=proof.ledger.brief,
        rounds=spec.horizon,
        seconds=seconds,
        runs=runs,
        failure=failure,
    )


class _Population:
    """The users of one seed, who answer any number of agents at once, round by round.

    Contexts (T, ...) of a first run, if known, have to come again, whatever is played.
    """

    def __init__(
        self, make: Callable[[], Problem], seed: int, context: Floats | None = None
    ) -> None:
        self._make, self._seed, self._context = make, seed, context

    def answer(self, t: int, action: AnyArray) -> Floats:
        """What agents are told in round t, after all rounds before it."""
        if t == 0:
            self._problem = self._make()
            begin(self._problem, Streams([self._seed] * len(action)))
        self.shown = self._problem.context()
        if self._context is not None and not np.allclose(self.shown, self._context[t]):
            raise _refused(_INDEPENDENT)
        step = self._problem.step(action)
        return step.reward if step.datum is None else step.datum

    def nothing(self, nearest: float, t: int, action: AnyArray) -> Floats:
        """What agents are told of nobody."""
        return np.full_like(self.answer(t, action), nearest)


_INDEPENDENT = "users who do not depend on earlier actions"


def _refused(name: str) -> InputError:
    return InputError(f"Expected a problem with {name}, to play it again without a user.")


def _pair(make: Callable[[], Problem], spec: Any, user: int, seed: int) -> Pair:
    """The users of an environment, and the same with nobody in place of one."""
    for name, wrong in (
        ("answers that come at once", spec.delay > 0),
        ("all actions in every round", spec.masks != "none"),
        (_INDEPENDENT, spec.carries),
    ):
        if wrong:
            raise _refused(name)
    T, known = spec.horizon, _Population(make, seed)
    context = np.zeros((T, *spec.context_shape))
    for t in range(T):
        known.answer(t, np.asarray([spec.default_action]))
        context[t] = known.shown[0]
    hers = _rounds_of(spec, context, user)
    gone, empty = context.copy(), np.zeros(spec.context_shape)
    if spec.returning:
        empty[0] = user if spec.visits.pattern == "public" else NOBODY
    late = int(spec.full_information)  # a context is the datum of the round before
    gone[[t + late for t in hers if t + late < T]] = empty
    nearest = 0.0 if spec.datum_shape else min(max(0.0, spec.reward_low), spec.reward_high)
    with_her, without = (_Population(make, seed, context) for _ in range(2))
    answers = [
        partial(without.nothing, nearest, t) if t in hers else partial(without.answer, t)
        for t in range(T)
    ]
    return Pair(
        f"without user {user}",
        hers[0],
        World(context, tuple(partial(with_her.answer, t) for t in range(T))),
        World(gone, tuple(answers)),
        more=tuple(hers[1:]),
        person=user if spec.returning else None,
    )


def _rounds_of(spec: Any, context: Floats, user: int) -> list[int]:
    """Her rounds, from 0."""
    if not spec.returning:
        whole("user", user, 1, spec.horizon)
        hers = [user - 1]
    else:
        whole("user", user, 0, spec.people - 1)
        hers = np.flatnonzero(spec.person(context) == user).tolist()
        if not hers:
            raise InputError(f"Expected user={user} to come in {spec.horizon} rounds.")
    if not _others(spec, context, hers):
        raise InputError(f"Expected others to come after user={user}, in {spec.horizon} rounds.")
    return hers


def _others(spec: Any, context: Floats, hers: Sequence[int]) -> list[int]:
    """Rounds in which others come after her, from 0."""
    here = spec.person(context) != NOBODY if spec.returning else np.ones(spec.horizon, np.bool_)
    here[[*range(hers[0]), *hers]] = False
    return np.flatnonzero(here).tolist()


def _seen(
    config: AgentConfig, spec: Spec, pair: Pair, seeds: Sequence[Seed]
) -> tuple[Columns, Columns]:
    """The actions of everybody else after her, one run of either world for each seed."""
    worlds, seen = (pair.first, pair.second), []
    others = {*_others(spec, pair.first.context, pair.rounds)}
    for event, t, _, action in rounds(config, spec, worlds, pair.rounds, seeds, Witness()):
        if event == "act" and t in others:
            seen.append(np.asarray(action, dtype=float).reshape(len(action), -1))
    values = np.concatenate(seen, axis=1)
    kinds = np.full(values.shape[1], spec.action_space().dtype != np.float64)
    one, two = (Columns(half, ("actions",) * len(kinds), kinds) for half in np.split(values, 2))
    return one, two
