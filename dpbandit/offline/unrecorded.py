"""Evaluation on logs without propensities: bounds of a policy's value under hidden confounding.

Let x be the logged context, u hidden confounders, e(a | x) the share of arm a among rows at x, and
e(a | x, u) the probability with which it was really drawn. Confounding has strength G >= 1 if::

    1/G <= odds e(a | x, u) / odds e(a | x) <= G                       for every arm, x and u

A row then has the weight 1 / e(a | x, u) = 1 + R (1 / e(a | x) - 1), with R unknown except for::

    1. 1/G <= R <= G,
    2. E[1(arm is a) h(x) / e(a | x, u)] = E[h(x)]              for every arm a and function h

Bounds at G are the smallest and the largest mean reward of a policy pi under 1 and 2. Functions h
are p = pi(a | x) times the indicator of a cell; an arm's cells are bins of its reward as a
cross-fitted model predicts it. With c = p (1 / e - 1), R weighted by c has mean 1 in a cell, and::

    most = sum over cells of  E[p in the cell]  sum_i (p_i + c_i R_i) r_i / sum_i p_i / e_i
    R    = G for the largest rewards of a cell, until these have 1 / (G + 1) of its c; 1/G below

with sums over rows i of a cell, of rewards r_i. **Exact**: given 1/G <= R <= G and one equality,
a linear function of R is largest if R is G above some reward, 1/G below it, and in between in one
row; `least` is found with -r. **Valid** for any bins, since 2 holds for every h; sharp, for
deterministic policies, if the bins have all information of x about the reward. **With error**: e is
a multinomial logit on x; `low` and `high` are percentiles of both bounds over resamples of rows,
whose logits are one Newton step from that of all rows. In a resample R changes from G to 1/G at the
reward found on all rows, which by duality gives a valid bound. A search for the best reward in each
resample would overfit and give too short intervals (measured).

Tan, JASA 2006 (the model); Zhao, Small and Bhattacharya, JRSS B 2019 (percentiles of bounds); Dorn
and Guo, JASA 2023 (condition 2, for quantiles of the reward); Kallus and Zhou, NeurIPS 2018 (bounds
for policies).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log as ln
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.spatial import cKDTree
from scipy.special import log_softmax, softmax

from dpbandit.base import Floats, InputError, Ints, Streams, abbrev, inside, vector, whole
from dpbandit.offline.cases import fitted_rewards, refuse_rewards
from dpbandit.offline.estimators import ARMS, ArmRows, Parts, Terms, folds_of
from dpbandit.offline.evaluation import too_few
from dpbandit.offline.intervals import student
from dpbandit.offline.logs import Observed
from dpbandit.offline.policies import arm_policy

if TYPE_CHECKING:
    import pandas as pd

_MIN_ARM_ROWS, _MIN_CELL_ROWS, _MAX_CELLS = 30, 200, 10
"""Smallest number of rows of an arm that the policy plays; smallest number of rows in a bin of
predicted rewards if the arm has several bins; largest number of bins of an arm."""
_NEIGHBOUR_ROWS = 200
"""Number of nearest rows in which an arm must occur; at most max(50, a tenth of the log)."""
_RESAMPLES = 1000  # number of bootstrap resamples of the log
_MAX_ARRAY_SIZE = 4_000_000
"""Largest number of entries of an array for several resamples."""
_MAX_GAMMA = 100
"""Largest strength of confounding at which bounds are computed."""
_MIN_OTHER_REWARDS = 10
"""Smallest number of an arm's rows not of its most frequent reward; with fewer, a note."""
_MAX_IMBALANCE = 0.1
"""Largest `Propensities.imbalance` of features, in standard deviations, that leads to no note."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Assessment:
    """Result of `assess`: estimates and bounds of a policy on a log without propensities."""

    logged: tuple[float, float, float]
    """mean reward of the log's own policy and its interval, which needs no assumption"""
    dm: float
    """estimate of the direct method, a fitted model of rewards; no interval covers its error"""
    dr: tuple[float, float, float]
    """doubly robust estimate; its interval, valid if nothing is hidden, NaN with too few rows"""
    bounds: "pd.DataFrame"
    """columns gamma (strength of confounding), least and most (bounds by these rows), low and high
    (bounds with sampling error), gain_low and gain_high (for the gain over the log's own policy)"""
    breaks: float
    """largest confounding <= 100 at which the policy beats the log's own; NaN if not even at 1"""
    overlap: dict[str, float]
    """keys "least" (smallest fitted probability of a logged choice that the policy may make), "ess"
    (effective sample size), "largest" (weight), "balance" (as `Propensities.imbalance`)"""
    notes: tuple[str, ...]
    """sentences about faults of the fitted propensities"""
    level: float
    """confidence level of all intervals"""
    unit: str
    """unit of rewards"""

    def __repr__(self) -> str:
        return f"Assessment({self})"

    def __str__(self) -> str:
        dr, least, ess, largest, balance = self.dr, *self.overlap.values()
        lines = [
            f"The log's own policy: {_interval(self.logged)} {self.unit} a round, "
            f"{100 * self.level:g} % interval.",
            f"Direct method: {self.dm:.4g}; the model's error is in no interval.",
            f"Doubly robust, fitted propensities: {_interval(dr)}, if nothing hidden moved both "
            "the choice and the reward.",
            f"Overlap: least fitted probability {least:.3g}, effective sample size {ess:.4g}, "
            f"largest weight {largest:.4g}, features off balance by {balance:.2g} standard "
            "deviations.",
            *self.notes,
            self.conclusion,
        ]
        return "\n".join(lines)

    @property
    def conclusion(self) -> str:
        """Sentence about the confounding up to which the policy is better than the log's own."""
        if np.isnan(self.breaks):
            return "Better than the log's own policy: not shown, even if nothing is hidden."
        much = (
            f"up to gamma {self.breaks:.3g}"
            if self.breaks < _MAX_GAMMA
            else f"beyond gamma {_MAX_GAMMA:g}"
        )
        return f"Better than the log's own policy: {much}."


def _interval(ends: tuple[float, float, float]) -> str:
    return "{:.4g} ({:.4g} to {:.4g})".format(*ends)


def assess(
    policy: Any,
    log: Observed,
    *,
    gammas: Sequence[float] = (1.0, 1.5, 2.0, 3.0),
    level: float = 0.95,
    folds: int = 5,
    seed: int = 0,
) -> Assessment:
    """Evaluate a policy on a log without propensities, with bounds under hidden confounding.

    Without propensities no estimate is unbiased. Three answers are left: a model of the reward;
    doubly robust estimates, if no hidden reason moved both the choice and the reward; bounds for
    hidden reasons of strength gamma, an odds ratio. See `dpbandit.offline.unrecorded`.

    Args:
        policy: as in `evaluate`, a policy that does not learn and was made without these rows.
        log: independent rows, all chosen by one random function of what was seen, logged or not.
        gammas: strengths of hidden confounding, from 1, nothing hidden, to 100.
        level: confidence level of the intervals.
        folds: number of folds of cross-fitting.
        seed: random seed of folds and resamples.

    Raises:
        InputError: as of `evaluate`; a log with a context for each arm; or choices of the policy
            without support: fewer than 30 rows show the arm, or none of the 200 nearest does (a
            tenth of the log, if that is less, but at least 50).

    >>> rng = np.random.default_rng(0)
    >>> arm = rng.integers(0, 2, 1000)
    >>> from dpbandit.specs import ContextualSpec
    >>> spec = ContextualSpec(n_actions=2, dim=1, horizon=1, reward_low=0.0)
    >>> log = Observed(spec=spec, context=np.ones((1000, 1)), action=arm,
    ...                reward=1.0 * (rng.random(1000) < 0.4 + 0.3 * arm))
    >>> found = assess(np.tile([0.0, 1.0], (1000, 1)), log)
    >>> print(found.conclusion)
    Better than the log's own policy: up to gamma 1.82.
    """
    inside("level", level, 0, 1, ends=False)
    whole("folds", folds, 2)
    whole("seed", seed, 0)
    strengths = vector("gammas", gammas, None).tolist()
    for gamma in strengths:
        inside("gammas", gamma, 1, _MAX_GAMMA, ends=True)
    if not isinstance(log, Observed):
        raise InputError(f"Expected log={abbrev(log)} to be Observed, rows of arms.")
    if len(log.spec.context_shape) != 1:
        raise InputError(
            "Expected one context a row, not one for each arm, to fit propensities to."
        )
    pi, spec, n = arm_policy(policy, log), log.spec, len(log.action)
    refuse_rewards(log.reward, (spec.reward_low, spec.reward_high))
    _refuse_unsupported(pi, log)
    parts = folds_of(n, folds, seed)
    q, model = fitted_rewards(log, parts), Propensities(log)
    rows = ArmRows(
        action=log.action,
        reward=log.reward,
        propensity=_cross_fitted(log, parts),
        policy=pi,
        model=lambda: q,
    )
    dr, alpha = ARMS["dr"](rows), 1 - level
    few = too_few(dr)
    ends = (np.nan, np.nan) if few else student(dr, alpha)
    balance = model.imbalance(pi)
    notes = [f"No interval of dr: {few}."] if few else []
    if balance > _MAX_IMBALANCE:
        notes.append(
            "The fitted propensities leave an arm's features off balance: the logit is wrong, or "
            "too few rows are alike; neither dr nor the bounds hold then."
        )
    if rare := _nearly_constant(pi, log):
        notes.append(
            f"Fewer than {_MIN_OTHER_REWARDS} rows of arm {log.name_of(rare[0])} have another "
            "reward than its commonest one: the bounds and intervals may be far too short."
        )
    logged = Terms(log.reward, np.zeros(n), np.ones(n))
    bounds, breaks = _bounds(strengths, log, pi, cells_of(log, pi, q), model, alpha, seed)
    return Assessment(
        logged=(logged.estimate, *student(logged, alpha)),
        dm=float(rows.value.mean()),
        dr=(dr.estimate, *ends),
        bounds=bounds,
        breaks=breaks,
        overlap={
            "least": float(rows.propensity[rows.weight > 0].min()),
            "ess": dr.effective,
            "largest": float(rows.weight.max()),
            "balance": balance,
        },
        notes=tuple(notes),
        level=level,
        unit=spec.reward_unit,
    )


def _nearly_constant(pi: Floats, log: Observed) -> list[int]:
    """Return the policy's arms whose reward so rarely varies that resamples may miss it."""
    found = []
    for arm in np.flatnonzero(pi.any(axis=0)).tolist():
        _, times = np.unique(log.reward[log.action == arm], return_counts=True)
        if times.sum() - times.max() < _MIN_OTHER_REWARDS:
            found.append(arm)
    return found


def _refuse_unsupported(pi: Floats, log: Observed) -> None:
    """Raise `InputError` if the policy chooses an arm with too few rows, or with none nearby."""
    n = len(log.action)
    nearest = min(n, max(50, min(_NEIGHBOUR_ROWS, n // 10)))
    places, at, count = np.unique(log.context, axis=0, return_inverse=True, return_counts=True)
    at, reach = at.ravel(), _neighbour_distance(places, count, nearest)[at.ravel()]
    lost = np.zeros(n)
    for arm in np.flatnonzero(pi.any(axis=0)).tolist():
        shows = (log.action == arm) & (pi[:, arm] > 0)
        if shows.sum() < _MIN_ARM_ROWS:
            raise InputError(
                f"Expected at least {_MIN_ARM_ROWS} rows in which the policy may play the logged "
                f"arm {log.name_of(arm)}, got {shows.sum()}: fewer rows cannot say what it earns."
            )
        near = np.asarray(cKDTree(places[np.unique(at[log.action == arm])]).query(places)[0])
        lost += np.where(near[at] > reach, pi[:, arm], 0)
    if lost.any():
        raise InputError(
            f"Expected every arm of the policy to have been played nearby: in "
            f"{np.count_nonzero(lost)} rows, the first of them row {int((lost > 0).argmax())}, for "
            f"{100 * lost.mean():.3g} % of its choices, none of the {nearest} nearest rows shows "
            "the arm, and no estimate or bound can make up for that."
        )


def _neighbour_distance(places: Floats, count: Ints, nearest: int) -> Floats:
    """Return for each distinct context the distance within which its `nearest` nearest rows lie."""
    tree, k, found = cKDTree(places), np.arange(1, min(nearest, len(places)) + 1), []
    for some in np.array_split(places, 1 + len(places) // 10_000):
        distance, which = map(np.asarray, tree.query(some, k=k))
        enough = (np.cumsum(count[which], axis=1) >= nearest).argmax(axis=1)
        found.append(distance[np.arange(len(some)), enough])
    return np.concatenate(found)


_SLOPE_PENALTY, _CONSTANT_PENALTY = 1.0, 0.01
"""Ridge penalties of the logit, on features of standard deviation 1 and on the constant."""


class Propensities:
    """Fitted propensities, by a multinomial logit of the logged arm on the context."""

    def __init__(self, log: Observed, rows: Any = slice(None)) -> None:
        spread = log.context.std(axis=0)
        varies = spread > 1e-9
        x = (log.context[:, varies] - log.context[:, varies].mean(axis=0)) / spread[varies]
        self.x = np.column_stack([np.ones(len(x)), x])
        self._action, self._K = log.action, log.spec.n_actions
        self._shape = (self.x.shape[1], self._K - 1)
        self._penalty = np.where(np.arange(self._shape[0]) > 0, _SLOPE_PENALTY, _CONSTANT_PENALTY)[
            :, None
        ]
        seen, played = self.x[rows], np.eye(self._K)[log.action[rows]]

        def loss(flat: Floats) -> tuple[float, Floats]:
            theta = flat.reshape(self._shape)
            logits = log_softmax(self._logits(seen, theta), axis=1)
            gradient = seen.T @ (np.exp(logits) - played)[:, 1:] + self._penalty * theta
            size = float(np.sum(self._penalty * theta**2)) / 2
            return size - float(np.sum(logits * played)), gradient.ravel()

        found = minimize(
            loss,
            np.zeros(self._shape).ravel(),
            jac=True,
            method="L-BFGS-B",
            options={"gtol": 1e-7 * len(seen), "ftol": 1e-15, "maxiter": 1000},
        )
        self.theta = np.asarray(found.x).reshape(self._shape)

    def of_logged(self, thetas: Floats | None = None) -> Floats:
        """Return the probabilities (..., n) of logged arms, given coefficients (..., d, K - 1)."""
        theta = self.theta if thetas is None else thetas
        free = [theta[..., k] @ self.x.T for k in range(self._K - 1)]
        logits, logged = [np.zeros_like(free[0]), *free], np.zeros_like(free[0])
        for arm, logit in enumerate(logits):
            logged[..., self._action == arm] = logit[..., self._action == arm]
        return np.asarray(1 / np.sum([np.exp(logit - logged) for logit in logits], axis=0))

    def resampled(self, counts: Floats) -> Floats:
        """Return coefficients (B, d, K - 1) for B resamples with row `counts`: one Newton step."""
        p = softmax(self._logits(self.x, self.theta), axis=1)[:, 1:]
        surprise = np.eye(self._K)[self._action][:, 1:] - p
        score = (self.x[:, :, None] * surprise[:, None]).reshape(len(p), -1)
        pull = (self._penalty * self.theta).ravel()
        curve = np.diag(np.broadcast_to(self._penalty, self._shape).ravel()).reshape(
            *self._shape, *self._shape
        )
        for arm in range(self._K - 1):
            weighted = self.x * p[:, [arm]]
            curve[:, arm, :, arm] += weighted.T @ self.x
            cross = weighted.T @ (self.x[:, :, None] * p[:, None]).reshape(len(p), -1)
            curve[:, arm] -= cross.reshape(-1, *self._shape)
        step = np.linalg.solve(curve.reshape(len(pull), -1), (counts @ score - pull).T).T
        return np.asarray(self.theta + step.reshape(-1, *self._shape))

    def imbalance(self, pi: Floats) -> float:
        """Return the largest distance of an arm's weighted mean feature to the mean, in stddevs."""
        weight, most = 1 / self.of_logged(), 0.0
        for arm in np.flatnonzero(pi.any(axis=0)).tolist():
            w = np.where(self._action == arm, weight, 0)
            most = max(most, *np.abs(w @ self.x[:, 1:] / w.sum()).tolist(), 0.0)
        return most

    @staticmethod
    def _logits(x: Floats, theta: Floats) -> Floats:
        free = x @ theta
        return np.concatenate([np.zeros((*free.shape[:-1], 1)), free], axis=-1)


def _cross_fitted(log: Observed, parts: Parts) -> Floats:
    """Return the probabilities (n,) of the logged arms; no row's logit is fitted to that row."""
    found = np.empty(len(log.action))
    for part in range(parts.number):
        rows = parts.part == part
        found[rows] = Propensities(log, ~rows).of_logged()[rows]
    return found


class Cell(NamedTuple):
    """Rows of one arm whose predicted rewards are alike; the sum of their weights is known."""

    rows: Ints
    """numbers of the rows in which the arm was played, by falling reward"""
    share: Floats
    """probability of the arm under the policy in rows with such predictions, else 0, (n,)"""


def cells_of(log: Observed, pi: Floats, q: Floats) -> list[Cell]:
    """Return for all arms that the policy plays their bins of predicted rewards `q` (n, K)."""
    found = []
    for arm in np.flatnonzero(pi.any(axis=0)).tolist():
        mine = np.flatnonzero((log.action == arm) & (pi[:, arm] > 0))
        edges = list(_edges(q[mine, arm], max(_MIN_CELL_ROWS, len(mine) // _MAX_CELLS)))
        place = np.searchsorted(edges, q[:, arm], side="right")
        for k in range(len(edges) + 1):
            rows = mine[place[mine] == k]
            falling = rows[np.argsort(-log.reward[rows], kind="stable")]
            found.append(Cell(falling, np.where(place == k, pi[:, arm], 0.0)))
    return found


def _edges(values: Floats, least: int) -> Iterator[float]:
    """Split `values` into bins of at least `least` values; yield the lower edges but the first."""
    inside, left = 0, len(values)
    for value, count in zip(*np.unique(values, return_counts=True), strict=True):
        if inside >= least and left >= least:
            yield value
            inside = 0
        inside, left = inside + count, left - count


class Sums(NamedTuple):
    """Sums over the rows of a `Cell` in each of B resamples, from which bounds are computed."""

    share: Floats
    """the cell's mean probability under the policy, divided by the cell's sum of weights, (B,)"""
    fixed: Floats
    """sum of policy probability x reward, (B,)"""
    levels: Floats
    """the m different rewards in falling order, (m,)"""
    c: Floats
    """sums of policy probability x (1 / propensity - 1) over rewards >= each of `levels`, (B, m)"""
    cr: Floats
    """the same sums with policy probability x (1 / propensity - 1) x reward as addend, (B, m)"""

    def level(self, share: Floats) -> Ints:
        """Return the indices in `levels` at which `c` reaches the given shares of its total."""
        found = np.searchsorted(self.c[0], share * self.c[0, -1])
        return np.minimum(found, len(self.levels) - 1)

    def weighted(self, level: Ints, above: Floats, below: Floats) -> Floats:
        """Return sums (B,) of weighted rewards; weights' unknown factor changes at a level."""
        at, t = np.arange(len(self.c)), self.levels[level]
        over = self.cr[at, level] - t * self.c[at, level]
        under = self.cr[:, -1] - t * self.c[:, -1] - over
        return np.asarray(t * self.c[:, -1] + above * over + below * under)


class Resamples:
    """Bounds of the policy's mean reward in B bootstrap resamples of the log.

    The unknown factors of rows' weights change from gamma, the strength of confounding, to
    1 / gamma at the rewards that are optimal for the full log `whole`. By duality the bound is
    valid; it does not overfit.
    """

    def __init__(
        self,
        log: Observed,
        cells: list[Cell],
        model: Propensities,
        pi: Floats,
        counts: Floats,
        whole: "Resamples | None" = None,
    ) -> None:
        self.logged = counts @ log.reward / counts.sum(axis=1)
        odds = 1 / model.of_logged(model.resampled(counts)) - 1
        chosen = np.take_along_axis(pi, log.action[:, None], axis=1)[:, 0]
        self._sums = [
            _sums(cell, log.reward[cell.rows], (counts * chosen)[:, cell.rows], odds, counts)
            for cell in cells
        ]
        self._where = self._sums if whole is None else whole._sums

    def ends(self, gamma: Floats) -> tuple[Floats, Floats]:
        """Return bounds (B,) of the policy's mean reward at confounding of strength `gamma`."""
        least, most = np.zeros((2, len(gamma)))
        for cell, where in zip(self._sums, self._where, strict=True):
            few, many = where.level(1 / (gamma + 1)), where.level(gamma / (gamma + 1))
            most += cell.share * (cell.fixed + cell.weighted(few, gamma, 1 / gamma))
            least += cell.share * (cell.fixed + cell.weighted(many, 1 / gamma, gamma))
        return least, most

    def breaks(self) -> Floats:
        """Return the confounding (B,), at most 100, up to which the policy gains; 0 if never."""
        low, high = np.zeros((2, len(self.logged)))
        high += ln(_MAX_GAMMA)
        # a policy that equals the log's own must not count as better
        logged = self.logged + 1e-9 * np.abs(self.logged)
        first = self.ends(np.exp(low))[0] > logged
        last = self.ends(np.exp(high))[0] > logged
        for _ in range(20):
            middle = (low + high) / 2
            wins = self.ends(np.exp(middle))[0] > logged
            low, high = np.where(wins, middle, low), np.where(wins, high, middle)
        return np.where(last, _MAX_GAMMA, np.where(first, np.exp(low), 0.0))


def _sums(cell: Cell, reward: Floats, p: Floats, odds: Floats, counts: Floats) -> Sums:
    c = p * odds[:, cell.rows]
    last = np.flatnonzero(np.append(reward[1:] != reward[:-1], True))  # rows of a level
    return Sums(
        share=counts @ cell.share / counts.sum(axis=1) / (p + c).sum(axis=1),
        fixed=p @ reward,
        levels=reward[last],
        c=np.cumsum(c, axis=1)[:, last],
        cr=np.cumsum(c * reward, axis=1)[:, last],
    )


def _counts(n: int, spec: Any, seed: int) -> Iterator[Floats]:
    """Yield how often each row occurs in B resamples, (B, n); memory limits B."""
    draw = Streams([seed]).uniforms("resamples of a log", n)
    size = max(1, _MAX_ARRAY_SIZE // (n * spec.n_actions))
    for start in range(0, _RESAMPLES, size):
        taken = [
            np.bincount((draw()[0] * n).astype(np.int64), minlength=n)
            for _ in range(min(size, _RESAMPLES - start))
        ]
        yield np.array(taken, dtype=float)


def _bounds(
    gammas: list[float],
    log: Observed,
    pi: Floats,
    cells: list[Cell],
    model: Propensities,
    alpha: float,
    seed: int,
) -> tuple["pd.DataFrame", float]:
    """Return the table of bounds, and the gamma up to which 1 - alpha / 2 of resamples gain."""
    import pandas as pd  # not before: slow to import

    n = len(log.action)
    whole_log = Resamples(log, cells, model, pi, np.ones((1, n)))
    ends, gains, breaks = [], [], []
    for counts in _counts(n, log.spec, seed):
        some = Resamples(log, cells, model, pi, counts, whole_log)
        found = np.array([some.ends(np.full(len(counts), gamma)) for gamma in gammas])
        ends.append(found)
        gains.append(found - some.logged)
        breaks.append(some.breaks())
    low, high = alpha / 2, 1 - alpha / 2
    value, gain = (np.concatenate(each, axis=2) for each in (ends, gains))  # (gammas, 2, resamples)
    here = np.array([whole_log.ends(np.array([gamma])) for gamma in gammas])[..., 0]
    columns = {
        "gamma": gammas,
        "least": here[:, 0],
        "most": here[:, 1],
        "low": np.quantile(value[:, 0], low, axis=1),
        "high": np.quantile(value[:, 1], high, axis=1),
        "gain_low": np.quantile(gain[:, 0], low, axis=1),
        "gain_high": np.quantile(gain[:, 1], high, axis=1),
    }
    at = float(np.quantile(np.concatenate(breaks), low, method="lower"))
    return pd.DataFrame(columns), at or np.nan
