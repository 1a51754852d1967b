"""An adversary's views of runs on two neighbouring streams, and the scores learned from them.

A score is a function of a run, learned to be large on stream B rather than on stream A::

    1. replace a category (vertex, arm, yes or no) by its log-ratio of frequencies on B and on A
    2. leave out the columns whose means on A and B are fewest standard deviations apart
    3. weight the others by Sigma^-1 (mean_B - mean_A), Sigma their covariance     (Fisher 1936)

For sums with Gaussian noise, step 3 is the matched filter; training runs have the same noise on
both streams, so the difference of means is estimated with hardly any noise. A badly learned score
costs power, never validity, because scores are judged on runs that they were not learned from.

Log-ratios are rounded, so that equal ones are equal numbers. The last digits of floating-point
numbers may differ between streams though the law of the noise does not (Mironov, CCS 2012): by the
unrounded score `|v| - |v - 1|` of a release v, correct Laplace noise of epsilon 1 seems to have
epsilon 4.8. An adversary has one of two views::

    released   (white box) every release of every mechanism, and what the differing user's round
               changed in the memory of the agent, which is a function of releases if the agent
               is honest; in a convex problem also the actions
    actions    (black box) everybody else's actions

The adversary knows all other users. From a noisy sum it subtracts their contributions, which follow
from their data and actions, and compares the rest with the differing user's two possible
contributions, on stream A and on stream B, called her ends.

Joint DP does not release the differing user's action, so it is in neither view, and her ends are
averages over separate runs, which are public. In a convex problem all actions are released, hers
too, and her action determines her ends in each run.

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

_MAX_WEIGHTED_COLUMNS = 64
"""Largest number of columns in one score; at most a tenth of the training runs, or 4 if more."""
_COVARIANCE_RIDGE = 1e-6  # added to the diagonal of the covariance of columns of variance 1
_RELATIVE_ROUNDING = 1e-12  # floor on a column's standard deviation, as a share of max(1, maximum)


class Columns(NamedTuple):
    """An adversary's view of n runs, as p columns of numbers."""

    values: Floats
    """numbers of all runs, (n, p)"""
    family: tuple[str, ...]
    """family of each column; a score is learned for each family, and a score for all columns"""
    categorical: Bools
    """mask (p,) of columns that hold categories"""


def joined(parts: Sequence[Columns]) -> Columns:
    """Concatenate the runs of several views with the same columns."""
    return parts[0]._replace(values=np.concatenate([part.values for part in parts]))


def halves(columns: Columns) -> tuple[Columns, Columns]:
    """Split the runs of a view into a first and a second half."""
    one, two = np.array_split(columns.values, 2)
    return columns._replace(values=one), columns._replace(values=two)


Scorer: TypeAlias = Callable[[Columns], Floats]
"""Picklable function from a view of n runs to scores (n,), large if a run looks like stream B."""


class LogRatios(NamedTuple):
    """Table of log-ratios of values' frequencies, stream B to A; 0 for values not in the table."""

    values: Floats
    ratios: Floats

    def __call__(self, column: Floats) -> Floats:
        """Return the log-ratios (n,) of the values (n,) of a column."""
        place = np.searchsorted(self.values, column).clip(0, len(self.values) - 1)
        return np.where(self.values[place] == column, self.ratios[place], 0.0)


def log_ratios(a: Floats, b: Floats) -> LogRatios:
    """Estimate log-ratios from a column's values on streams A and B, adding 0.5 to every count."""
    values, place = np.unique(np.concatenate([a, b]), return_inverse=True)
    counts = [np.bincount(side, minlength=len(values)) + 0.5 for side in np.split(place, [len(a)])]
    return LogRatios(values, np.log(counts[1] / counts[0]))


@dataclass(frozen=True)
class Score:
    """Weighted sum of some columns of a view, categories replaced by their log-ratios."""

    chosen: Ints
    weights: Floats
    tables: dict[int, LogRatios]

    def __call__(self, columns: Columns) -> Floats:
        """Return the scores (n,) of n runs, large if a run looks like stream B."""
        return _numbers(columns, self.chosen, self.tables) @ self.weights


def learned_scores(a: Columns, b: Columns) -> dict[str, Score]:
    """Learn a score for each family of columns, and a score "all", from runs on streams A and B."""
    families = list(dict.fromkeys(a.family))
    wanted = {name: [name] for name in families}
    if len(families) > 1:
        wanted["all"] = families
    return {name: _learned(a, b, parts) for name, parts in wanted.items()}


def separation(score: Score, a: Columns, b: Columns) -> float:
    """Return the distance between the mean scores on streams A and B, in standard deviations."""
    one, two = score(a), score(b)
    spread = np.sqrt((one.var() + two.var()) / 2)
    gap = abs(float(two.mean() - one.mean()))
    return gap / float(max(spread, _RELATIVE_ROUNDING * max(gap, 1.0)))


def _learned(a: Columns, b: Columns, families: Sequence[str]) -> Score:
    mine = np.flatnonzero(np.isin(np.array(a.family), families))
    tables = {int(j): log_ratios(a.values[:, j], b.values[:, j]) for j in mine if a.categorical[j]}
    one, two = (_numbers(columns, mine, tables) for columns in (a, b))
    gap = two.mean(axis=0) - one.mean(axis=0)
    spread = np.sqrt((one.var(axis=0) + two.var(axis=0)) / 2)
    rounding = _RELATIVE_ROUNDING * np.maximum(1.0, np.abs(one).max(axis=0))
    size = np.maximum(spread, np.maximum(1e-6 * np.abs(gap), rounding))
    most = min(_MAX_WEIGHTED_COLUMNS, max(4, len(one) // 10))
    best = np.sort(np.argsort(-np.abs(gap) / size, kind="stable")[:most])
    one, two = one[:, best] / size[best], two[:, best] / size[best]
    centred = np.concatenate([one - one.mean(axis=0), two - two.mean(axis=0)])
    covariance = centred.T @ centred / len(centred) + _COVARIANCE_RIDGE * np.eye(len(best))
    weights = np.linalg.solve(covariance, two.mean(axis=0) - one.mean(axis=0))
    return Score(mine[best], weights / size[best], tables)


def _numbers(columns: Columns, chosen: Any, tables: dict[int, LogRatios]) -> Floats:
    values = np.nan_to_num(columns.values[:, chosen], posinf=1e300, neginf=-1e300).clip(-1e9, 1e9)
    for place, j in enumerate(chosen):
        if int(j) in tables:
            values[:, place] = tables[int(j)](columns.values[:, j])
    return values


_SCORE_DECIMALS = 9
"""Number of decimals of scored numbers. Later digits may show the addends of a sum, whatever its
noise (Mironov, CCS 2012), a known flaw of floating-point numbers that audits do not look for."""


View: TypeAlias = Literal["released", "actions"]
VIEWS: tuple[View, ...] = ("released", "actions")  # what an adversary sees


class SumEnds(NamedTuple):
    """Mean contributions of the differing user to a sum of n numbers, on both streams, (2, n)."""

    without_others: list[Floats]
    """the differing user's mean contribution to each release, without contributions of others"""
    nodes: list[Floats]
    """the differing user's mean contribution to each node of a tree that contains her round"""


Ends: TypeAlias = list[SumEnds | None]
"""The differing user's `SumEnds` for each mechanism, in order of first use; None without sums."""

_END_RUNS = 64
"""Number of runs on each stream over which `public_ends` averages, with seeds of their own."""


def all_see_actions(spec: Spec) -> bool:
    """Tell whether all actions are released, the differing user's own included."""
    return "own action" in spec.covers


def public_ends(config: AgentConfig, spec: Spec, pair: Pair, seed: int) -> Ends:
    """Estimate the differing user's mean contribution to each sum from separate runs.

    The list is empty if actions are released, because then her action determines her contribution.
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
    """Play a run on both streams for each seed; return the views of runs on A and of runs on B."""
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
        parts += [Part("ratios", False, r.round(_SCORE_DECIMALS)) for r in witness.ratios()]
        parts += _sum_scores(witness, None if public else ends)
    if action_of_her is not None and spec.domain is None:
        parts = [_beside(action_of_her, spec.context_shape[0], part) for part in parts]
    parts = parts or [Part("nothing", False, np.zeros((runs, 1)))]
    values = np.concatenate([part.values for part in parts], axis=1)
    widths = [part.values.shape[1] for part in parts]
    families = np.repeat([part.family for part in parts], widths).tolist()
    kinds = np.repeat([part.categorical for part in parts], widths)
    one, two = (Columns(half, tuple(families), kinds) for half in np.split(values, 2))
    return one, two


def _sum_scores(witness: Witness, ends: Ends | None) -> list[Part]:
    """Subtract others' contributions from each released sum; score the rest v by its log-ratio.

    Let a and b be the differing user's contributions on streams A and B: the means in `ends` or, if
    `ends` is None, those in each run. Up to a factor, the score is <v - (a + b) / 2, b - a> for
    Gaussian noise (family "sums"). For nodes of a tree it is `|v - a| - |v - b|`, with the l_1 norm
    for Laplace noise and the l_2 norm for K-norm noise.
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
            found.append(_ratio_column("sums", ratio / known.sensitivity**2))
        for order in (1, 2):
            ends_of = ends_of_sum.nodes if ends_of_sum else [None] * len(nodes)
            for (v, contribution), end in zip(nodes, ends_of, strict=True):
                one, two = _ends_in_worlds(contribution, end)
                ratio = _norm(v - one, order) - _norm(v - two, order)
                found.append(_ratio_column(f"nodes l_{order}", ratio / known.sensitivity))
    return found


def _ends_in_worlds(contribution: Floats, end: Floats | None) -> tuple[Floats, Floats]:
    """Return the differing user's contributions on A and B: means `end`, or those of each run."""
    if end is not None:
        return end[:1], end[1:]
    one, two = np.split(contribution, 2)
    return np.tile(one, (2, 1)), np.tile(two, (2, 1))


def _ratio_column(family: str, ratio: Floats) -> Part:
    return Part(family, False, ratio.round(_SCORE_DECIMALS)[:, None])


def _norm(v: Floats, order: int) -> Floats:
    return np.linalg.norm(v, ord=order, axis=-1)


def _of_action(spec: Spec, action: Any, action_of_her: Any) -> list[Part]:
    """Return an action's columns, and a point's inner product with the differing user's point."""
    seen = np.asarray(action, dtype=float).reshape(len(action), -1).round(_SCORE_DECIMALS)
    found = [Part("actions", spec.action_space().dtype != np.float64, seen)]
    if action_of_her is not None and spec.domain is not None:
        centre = spec.domain.centre
        found.append(_ratio_column("turned", np.vecdot(seen - centre, action_of_her - centre)))
    return found


def _beside(action_of_her: Any, experts: int, part: Part) -> Part:
    """Replace a category by the pair (category, expert that the differing user followed).

    The loss of this expert decides how much a later choice reveals of her.
    """
    if not part.categorical:
        return part
    # a choice of -1 is no expert, so that there are `experts` + 1 choices
    return part._replace(values=part.values + (experts + 1) * action_of_her[:, None])


def memory(agent: Any, replicas: int, person: int | None = None) -> dict[str, Floats]:
    """Return all arrays (R, ...) that an agent holds outside mechanisms and random streams.

    Arrays for single people (`PersonalMemory`) are included without the entry of `person`.
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
    """Yield an agent's arrays, mechanisms and `PersonalMemory` items, each with its path."""
    found = (np.ndarray, Mechanism, PersonalMemory)
    for path, item in reached(agent, *found, Source, Streams, Ledger):
        if isinstance(item, found):
            yield path, item


def _changes(before: dict[str, Floats], after: dict[str, Floats]) -> list[Part]:
    """Return the differences between an agent's arrays before and after, and masks of changes."""
    found = []
    for path in sorted(after):
        old = before.get(path)
        change = after[path] - (old if old is not None and old.shape == after[path].shape else 0.0)
        found.append(Part("memory", False, np.nan_to_num(change).round(_SCORE_DECIMALS)))
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
    """Play all streams `worlds` side by side, each with one replica and the same noise per seed.

    Yields events (name, user, agent, action): "before" the differing user's action, "act" after any
    user's action, "after" learning from the differing user's round. The users of a block act at
    once, and the agent learns from one after the other.
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
    """Problem made of the users of several streams, each stream with one replica for each run."""

    def __init__(self, spec: Spec, worlds: Sequence[World], runs: int) -> None:
        self.spec = spec
        self._worlds, self._runs, self._t = worlds, runs, 0
        self._actions: deque[Any] = deque()
        self.replicas = runs * len(worlds)
        self._nothing = np.zeros(self.replicas)
        self._all_available: Bools | None = None  # mask of a schedule in which all is available
        if spec.masks != "none":
            self._all_available = np.ones((self.replicas, spec.mask_size[0]), np.bool_)

    @property
    def in_blocks(self) -> bool:
        """True if users of several rounds can be served at once."""
        spec = self.spec
        return spec.n_arms is not None and not (
            spec.full_information or spec.returning or spec.delay
        )

    def context(self) -> Floats:
        """Return the contexts of the current round, `(R, *context_shape)`."""
        return contexts_of(self._worlds, self._t, self._runs)

    def contexts_ahead(self, most: int) -> Floats:
        """Return the contexts of the next n <= `most` rounds, `(n, R, *context_shape)`."""
        rounds = range(self._t, min(self._t + most, self.spec.horizon))
        return np.array([contexts_of(self._worlds, t, self._runs) for t in rounds])

    def mask(self) -> Bools | None:
        """Return the mask of available actions, all True, (R, K); None if the spec has no masks."""
        return self._all_available

    def masks_ahead(self, most: int) -> Any:
        """Return the masks of the next n = `most` rounds, (n, R, K)."""
        return np.array([self._all_available] * most)

    def step(self, action: Any) -> Step:
        """Take a round's actions (R, ...); return the answers to the actions `delay` rounds ago."""
        self._actions.append(action)
        self._t += 1
        if len(self._actions) <= self.spec.delay:
            return Step(self._nothing, self._nothing, self._nothing, self._nothing)
        user = self._t - 1 - self.spec.delay
        answer = answers_of(self._worlds, user, self._actions.popleft())
        return Step(answer, self._nothing, self._nothing, self._nothing)

    def steps(self, action: Any) -> Step:
        """Take the actions (n, R) of n rounds; return their answers."""
        answers = np.array([self.step(one).reward for one in action])
        return Step(answers, answers, answers, answers)
