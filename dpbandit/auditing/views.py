"""What an adversary sees of runs on two neighbouring streams, and how it scores them.

Scores learned from training runs: which way a run leans, world A or world B::

    1. categories (vertices, arms, yes or no): their log-ratio of frequencies, column by column
    2. columns that tell the worlds apart least are left out
    3. the rest is weighted by w = Sigma^-1 (mean_B - mean_A)               (Fisher 1936)

Where releases are sums with Gaussian noise, step 3 is the matched filter; both worlds of a training
run share their noise, so the difference of means is hardly noisy at all. Any function of a run may
be a score: what is learned badly costs power, never honesty, because scores are judged on
runs that they were not learned from.

Ratios are rounded, because equal ones have to be equal numbers. Last digits tell worlds apart that
laws do not: audited by `|v| - |v - 1|` as it stands, correct Laplace noise of epsilon 1 shows 4.8,
which is true of floating-point numbers (Mironov, CCS 2012) and of no law. Views::

    released   (white box) every release of every mechanism, and what the differing user's round
               changed in the memory of the agent, which is a function of releases if the agent
               is honest; in a convex problem also the actions
    actions    (black box) everybody else's actions

The adversary knows all other users. From a noisy sum it subtracts what they added, which follows
from their data and actions, and weighs what is left against what the differing user adds in the
first world and what in the second, her two ends.

Joint DP does not release her own action to others, so it is in neither view and the ends are
public numbers, averages over runs. In a convex problem all actions are released, hers with
them, and the ends are those of the run, which her action determines.

A random choice counts as a category.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from dpbandit.auditing.users import Pair, World, answers_of, contexts_of
from dpbandit.auditing.witness import Part, WithoutOthers, Witness
from dpbandit.base import Bools, Floats, Ints, Seed, Source, Streams, reached
from dpbandit.privacy import Ledger, Mechanism
from dpbandit.privacy.mechanism import LedgerCheck, PersonalMemory, logged_calls, witnessed
from dpbandit.running.episode import Episode
from dpbandit.specs import AgentConfig, Spec, Step, made_agent

_MOST = 64
"""Columns that are weighted together."""
_RIDGE = 1e-6
_TINY = 1e-12


class Columns(NamedTuple):
    """What an adversary sees of n runs, as numbers."""

    values: Floats
    """(n, p)"""
    family: tuple[str, ...]
    """of each column; columns of one family are weighted together, and all of them once more"""
    categorical: Bools
    """(p,)"""


def joined(parts: Sequence[Columns]) -> Columns:
    """All their runs."""
    return parts[0]._replace(values=np.concatenate([part.values for part in parts]))


def halves(columns: Columns) -> tuple[Columns, Columns]:
    """Of the first half of the runs, and of the others."""
    one, two = np.array_split(columns.values, 2)
    return columns._replace(values=one), columns._replace(values=two)


Scorer: TypeAlias = Callable[[Columns], Floats]
"""What tells runs apart, (n,), large where a run looks like world B. To be picklable."""


class LogRatios(NamedTuple):
    """log P_B(value) - log P_A(value) of one column, 0 for values that were never met."""

    values: Floats
    ratios: Floats

    def __call__(self, column: Floats) -> Floats:
        """(n,) -> (n,)."""
        place = np.searchsorted(self.values, column).clip(0, len(self.values) - 1)
        return np.where(self.values[place] == column, self.ratios[place], 0.0)


def log_ratios(a: Floats, b: Floats) -> LogRatios:
    """Learned from a column's values in two worlds, half a run added to every count."""
    values, place = np.unique(np.concatenate([a, b]), return_inverse=True)
    counts = [np.bincount(side, minlength=len(values)) + 0.5 for side in np.split(place, [len(a)])]
    return LogRatios(values, np.log(counts[1] / counts[0]))


@dataclass(frozen=True)
class Score:
    """One weighted sum of columns."""

    chosen: Ints
    weights: Floats
    tables: dict[int, LogRatios]

    def __call__(self, columns: Columns) -> Floats:
        """(n,): large where a run looks like world B."""
        return _numbers(columns, self.chosen, self.tables) @ self.weights


def learned_scores(a: Columns, b: Columns) -> dict[str, Score]:
    """A score for each family of columns, and "all" where there are several."""
    families = list(dict.fromkeys(a.family))
    wanted = {name: [name] for name in families}
    if len(families) > 1:
        wanted["all"] = families
    return {name: _learned(a, b, parts) for name, parts in wanted.items()}


def separation(score: Score, a: Columns, b: Columns) -> float:
    """How many standard deviations the worlds' mean scores are apart."""
    one, two = score(a), score(b)
    spread = np.sqrt((one.var() + two.var()) / 2)
    gap = abs(float(two.mean() - one.mean()))
    return gap / float(max(spread, _TINY * max(gap, 1.0)))


def _learned(a: Columns, b: Columns, families: Sequence[str]) -> Score:
    mine = np.flatnonzero(np.isin(np.array(a.family), families))
    tables = {int(j): log_ratios(a.values[:, j], b.values[:, j]) for j in mine if a.categorical[j]}
    one, two = (_numbers(columns, mine, tables) for columns in (a, b))
    gap = two.mean(axis=0) - one.mean(axis=0)
    spread = np.sqrt((one.var(axis=0) + two.var(axis=0)) / 2)
    rounding = _TINY * np.maximum(1.0, np.abs(one).max(axis=0))
    size = np.maximum(spread, np.maximum(1e-6 * np.abs(gap), rounding))
    most = min(_MOST, max(4, len(one) // 10))
    best = np.sort(np.argsort(-np.abs(gap) / size, kind="stable")[:most])
    one, two = one[:, best] / size[best], two[:, best] / size[best]
    centred = np.concatenate([one - one.mean(axis=0), two - two.mean(axis=0)])
    covariance = centred.T @ centred / len(centred) + _RIDGE * np.eye(len(best))
    weights = np.linalg.solve(covariance, two.mean(axis=0) - one.mean(axis=0))
    return Score(mine[best], weights / size[best], tables)


def _numbers(columns: Columns, chosen: Any, tables: dict[int, LogRatios]) -> Floats:
    values = np.nan_to_num(columns.values[:, chosen], posinf=1e300, neginf=-1e300).clip(-1e9, 1e9)
    for place, j in enumerate(chosen):
        if int(j) in tables:
            values[:, place] = tables[int(j)](columns.values[:, j])
    return values


_DECIMALS = 9
"""Of numbers that are weighed: lower bits may show what was added, whatever the noise (Mironov, CCS
2012), which is known and not what is looked for."""


View: TypeAlias = Literal["released", "actions"]
VIEWS: tuple[View, ...] = ("released", "actions")


class SumEnds(NamedTuple):
    """What the differing user adds in either world, on average, (2, n) each."""

    without_others: list[Floats]
    """to each release of a sum"""
    nodes: list[Floats]
    """to each node of a tree that she is in"""


Ends: TypeAlias = list[SumEnds | None]
"""For each mechanism, in the order of first use, if it releases a sum."""

_END_RUNS = 64


def all_see_actions(spec: Spec) -> bool:
    """Whether all actions are released, the differing user's own with them."""
    return "own action" in spec.covers


def public_ends(config: AgentConfig, spec: Spec, pair: Pair, seed: int) -> Ends:
    """What the differing user adds to each sum, averaged over a few runs of their own.

    None are needed where actions are released: there the ends are those of the run.
    """
    if all_see_actions(spec):
        return []
    witness, seeds = Witness(), [(seed, 0, run) for run in range(_END_RUNS)]
    deque(rounds(config, spec, (pair.first, pair.second), pair.rounds, seeds, witness), maxlen=0)

    def ends(parts: Iterable[WithoutOthers]) -> list[Floats]:
        return [
            contribution.reshape(2, -1, contribution.shape[-1]).mean(axis=1)
            for _, contribution in parts
        ]

    return [
        SumEnds(ends(known.without_others), ends(known.nodes() if known.is_tree else ()))
        if known.released and known.contribution is not None
        else None
        for known in witness.sums
    ]


def columns_of(
    config: AgentConfig,
    spec: Spec,
    pair: Pair,
    seeds: Sequence[Seed],
    view: View,
    ends: Ends,
) -> tuple[Columns, Columns]:
    """One run of either world for each seed, as `view` shows it."""
    witness, parts, before, action_of_her = Witness(), list[Part](), dict[str, Floats](), None
    worlds, runs = (pair.first, pair.second), 2 * len(seeds)
    public = all_see_actions(spec)
    for event, user, agent, action in rounds(config, spec, worlds, pair.rounds, seeds, witness):
        differs = user in pair.rounds
        if event == "act" and differs and public:
            action_of_her = action
        elif event == "act" and not differs and user > pair.round and (public or view == "actions"):
            parts += _of_action(spec, action, action_of_her)
        elif event == "before" and view == "released":
            before = memory(agent, runs, pair.person)
        elif event == "after" and view == "released":
            parts += _changes(before, memory(agent, runs, pair.person))
    if view == "released":
        parts += witness.others
        parts += [Part("ratios", False, r.round(_DECIMALS)) for r in witness.ratios()]
        parts += _weighed(witness, None if public else ends)
    if action_of_her is not None and spec.domain is None:
        parts = [_beside(action_of_her, spec.context_shape[0], part) for part in parts]
    parts = parts or [Part("nothing", False, np.zeros((runs, 1)))]
    values = np.concatenate([part.values for part in parts], axis=1)
    widths = [part.values.shape[1] for part in parts]
    families = np.repeat([part.family for part in parts], widths).tolist()
    kinds = np.repeat([part.categorical for part in parts], widths)
    one, two = (Columns(half, tuple(families), kinds) for half in np.split(values, 2))
    return one, two


def _weighed(witness: Witness, ends: Ends | None) -> list[Part]:
    """What is left of each release of a sum, weighed against its two public ends or the run's.

    As log-ratios have it, up to a factor: <v - middle, two - one> for Gaussian noise (family
    "sums"), and on the nodes of a tree `|v - one| - |v - two|`, the norm being l_1 for Laplace and
    l_2 for K-norm noise.
    """
    found = []
    for place, known in enumerate(witness.sums):
        ends_of_sum = None if ends is None else ends[place]
        if (
            not known.released
            or known.contribution is None
            or (ends is not None and ends_of_sum is None)
        ):
            continue
        releases, nodes = list(known.without_others), list(known.nodes()) if known.is_tree else []
        for (v, contribution), end in zip(
            releases,
            ends_of_sum.without_others if ends_of_sum else [None] * len(releases),
            strict=True,
        ):
            one, two = _ends_in_worlds(contribution, end)
            ratio = np.vecdot(v - (one + two) / 2, two - one)
            found.append(_weight("sums", ratio / known.sensitivity**2))
        for order in (1, 2):
            ends_of = ends_of_sum.nodes if ends_of_sum else [None] * len(nodes)
            for (v, contribution), end in zip(nodes, ends_of, strict=True):
                one, two = _ends_in_worlds(contribution, end)
                ratio = _norm(v - one, order) - _norm(v - two, order)
                found.append(_weight(f"nodes l_{order}", ratio / known.sensitivity))
    return found


def _ends_in_worlds(contribution: Floats, end: Floats | None) -> tuple[Floats, Floats]:
    """What she adds in the first world and in the second, public or of the run and its twin."""
    if end is not None:
        return end[:1], end[1:]
    one, two = np.split(contribution, 2)
    return np.tile(one, (2, 1)), np.tile(two, (2, 1))


def _weight(family: str, ratio: Floats) -> Part:
    """One number a run."""
    return Part(family, False, ratio.round(_DECIMALS)[:, None])


def _norm(v: Floats, order: int) -> Floats:
    return np.linalg.norm(v, ord=order, axis=-1)


def _of_action(spec: Spec, action: Any, action_of_her: Any) -> list[Part]:
    """A choice, a number, or a point; of a point also the part along the differing user's own."""
    seen = np.asarray(action, dtype=float).reshape(len(action), -1).round(_DECIMALS)
    found = [Part("actions", spec.action_space().dtype != np.float64, seen)]
    if action_of_her is not None and spec.domain is not None:
        centre = spec.domain.centre
        found.append(_weight("turned", np.vecdot(seen - centre, action_of_her - centre)))
    return found


def _beside(action_of_her: Any, experts: int, part: Part) -> Part:
    """A choice together with the expert that she followed, whose loss decides what it shows."""
    if not part.categorical:
        return part
    return part._replace(
        values=part.values + (experts + 1) * action_of_her[:, None]
    )  # -1 is nobody


def memory(agent: Any, replicas: int, person: int | None = None) -> dict[str, Floats]:
    """All arrays (R, ...) that an agent holds outside mechanisms and random streams.

    Without what it keeps of that person for herself.
    """
    return {
        path: item.reshape(replicas, -1).astype(float)
        for path, item in _personal_or_shared(agent, person)
        if isinstance(item, np.ndarray)
        and item.ndim
        and len(item) == replicas
        and item.dtype.kind in "biuf"
    }


def _personal_or_shared(agent: Any, person: int | None) -> Iterator[tuple[str, Any]]:
    for path, item in _reached(agent):
        if isinstance(item, PersonalMemory):
            others = item.everybody()
            yield path, others if person is None else np.delete(others, person, axis=1)
        else:
            yield path, item


def _reached(agent: Any) -> Iterator[tuple[str, Any]]:
    """All arrays, mechanisms and memories of people; not what is inside of these."""
    found = (np.ndarray, Mechanism, PersonalMemory)
    for path, item in reached(agent, *found, Source, Streams, Ledger):
        if isinstance(item, found):
            yield path, item


def _changes(before: dict[str, Floats], after: dict[str, Floats]) -> list[Part]:
    """By how much her round changed every number remembered, and whether it did at all."""
    found = []
    for path in sorted(after):
        old = before.get(path)
        change = after[path] - (old if old is not None and old.shape == after[path].shape else 0.0)
        found.append(Part("memory", False, np.nan_to_num(change).round(_DECIMALS)))
        found.append(Part("memory", False, (change != 0).astype(float)))
    return found


def rounds(
    config: AgentConfig,
    spec: Spec,
    worlds: Sequence[World],
    differing: Sequence[int],
    seeds: Sequence[Seed],
    witness: Witness,
) -> Generator[tuple[str, int, Any, Any]]:
    """Play all worlds side by side, each with one replica for each seed, noise in common.

    Events (name, user, agent, action): "before" the differing user acts, "act" of any user,
    "after" the differing one was learned from, each time. Users of a block act at once and are
    learned from one by one.
    """
    with witnessed(witness), logged_calls() as call_log, np.errstate(all="ignore"):
        agent = made_agent(config, spec, Streams([*seeds] * len(worlds)))
        ledger_check = LedgerCheck(type(config).__name__, agent.ledger, call_log)
        for _, item in _reached(agent):
            if isinstance(item, Mechanism):
                witness.attach(item, len(seeds) * len(worlds))
        problem: Any = SideBySide(spec, worlds, len(seeds))
        how: dict[str, Any] = {"checked": 0, "shortest_block": 2}
        episode = Episode(problem, agent, problem.replicas, Streams([0]), **how)
        while (t := episode.served) < spec.horizon:
            ahead = min(spec.horizon - t, episode.longest_block())
            for user in differing:
                if t <= user < t + ahead:
                    yield "before", user, agent, None
            served = episode.serve(ahead)
            for user, action in enumerate(served.actions(), start=t):
                yield "act", user, agent, action
            while episode.unlearned:
                user = episode.learned
                witness.differs = user in differing
                episode.learn(1)
                ledger_check.check(users=user + 1)
                if user in differing:
                    yield "after", user, agent, None


class SideBySide:
    """The users of several worlds as a problem, each world with one replica for each run."""

    def __init__(self, spec: Spec, worlds: Sequence[World], runs: int) -> None:
        self.spec = spec
        self._worlds, self._runs, self._t = worlds, runs, 0
        self._actions: deque[Any] = deque()
        self.replicas = runs * len(worlds)
        self._nothing = np.zeros(self.replicas)
        self._everything: Bools | None = None  # is there, a schedule like any other
        if spec.masks != "none":
            self._everything = np.ones((self.replicas, spec.mask_size[0]), np.bool_)

    @property
    def in_blocks(self) -> bool:
        """True if users of several rounds can be served at once, as those of problems can."""
        spec = self.spec
        return spec.n_arms is not None and not (
            spec.full_information or spec.returning or spec.delay
        )

    def context(self) -> Floats:
        """Contexts of the round, `(R, *context_shape)`."""
        return contexts_of(self._worlds, self._t, self._runs)

    def contexts_ahead(self, most: int) -> Floats:
        """Contexts of the next rounds, `(n, R, *context_shape)`."""
        rounds = range(self._t, min(self._t + most, self.spec.horizon))
        return np.array([contexts_of(self._worlds, t, self._runs) for t in rounds])

    def mask(self) -> Bools | None:
        """Masks, (R, K), where actions come and go."""
        return self._everything

    def masks_ahead(self, most: int) -> Any:
        """Masks of the next rounds, (n, R, K)."""
        return np.array([self._everything] * most)

    def step(self, action: Any) -> Step:
        """Answer the action, or what was played `delay` rounds before."""
        self._actions.append(action)
        self._t += 1
        if len(self._actions) <= self.spec.delay:
            return Step(self._nothing, self._nothing, self._nothing, self._nothing)
        user = self._t - 1 - self.spec.delay
        answer = answers_of(self._worlds, user, self._actions.popleft())
        return Step(answer, self._nothing, self._nothing, self._nothing)

    def steps(self, action: Any) -> Step:
        """Answer the actions (n, R) of n rounds."""
        answers = np.array([self.step(one).reward for one in action])
        return Step(answers, answers, answers, answers)
