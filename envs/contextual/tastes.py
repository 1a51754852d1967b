"""How people of a log differ: a hierarchical logit by maximum marginal likelihood.

A row is one offer to one of N people, x its features, q its price on [-1, 1], F = (1, x), and G = F
or (1,)::

    P(person i buys) = s(F . a + u_i - exp(G . b + v_i) q),   (u_i, v_i) = L z_i,   z_i ~ N(0, I)

Her likelihood is an integral over z_i, here a sum over 7 x 7 nodes of Gauss and Hermite that are
laid around her own mode. (a, b, L) maximise the product of all; with L = 0 people are alike.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import chdtrc, expit, logsumexp

from dpbandit.base import AnyArray, Bools, Floats, InputError, Ints
from dpbandit.specs import Prior

LEAST_VISITS, LEAST_PEOPLE, A_COEFFICIENT = 5, 30, 3
"""Rows of a person, in the median, and people, in all and for each coefficient that all share"""
FALSE_ALARM = 0.01
"""Chance, at most, that people who are all alike are taken to differ, where there are many"""
_HINT = 0.2
"""p-value below which it is worth saying how many people would show a difference"""
LEAST_SPREAD = 1e-6
"""Variance that is added to every coefficient's, those that all people share included"""
_STEEPEST, _MOST = 10.0, 50.0
"""Logarithm of a slope, as in `OwnLogitSpec`, and that of a part of it, at most"""
_NODES, _MODE_STEPS, _ROUNDS = 7, 25, 12
_CLOSE = 1e-3
"""Standard errors by which the last round of a fit may move anything"""
_ENTRIES = 1 << 18
"""Rows times nodes at once; changes speed alone"""
_HELD_OUT, _SEED = 5, 20_221


class Offers(NamedTuple):
    """Rows of a log, those of one person together."""

    F: Floats
    """(n, k)"""
    G: Floats
    """(n, h)"""
    q: Floats
    """(n,)"""
    yes: Floats
    """(n,)"""
    starts: Ints
    """(N + 1,), where each person's rows begin, and n"""

    @classmethod
    def of(cls, F: Floats, G: Floats, q: Floats, yes: Floats, person: Ints) -> "Offers":
        """Rows in any order; people's numbers (n,) are 0, .., N - 1, each there."""
        order = np.argsort(person, kind="stable")
        starts = np.append(0, np.cumsum(np.bincount(person)))
        return cls(F[order], G[order], q[order], yes[order], starts)

    @property
    def people(self) -> int:
        """N."""
        return len(self.starts) - 1

    def some(self, chosen: Bools) -> "Offers":
        """Those of the rows (n,), of which everybody keeps one or more."""
        kept = np.add.reduceat(chosen, self.starts[:-1], dtype=np.int64)
        return self.at(chosen, np.append(0, np.cumsum(kept)))

    def at(self, chosen: Any, starts: Ints) -> "Offers":
        """The rows that are chosen, by a mask or a slice."""
        F, G, q, yes = self.F[chosen], self.G[chosen], self.q[chosen], self.yes[chosen]
        return Offers(F, G, q, yes, starts)

    def blocks(self, nodes: int) -> Iterator[tuple[slice, "Offers"]]:
        """People by turns, so many that arrays stay small, and their rows."""
        first, N = 0, self.people
        while first < N:
            most = self.starts[first] + max(1, _ENTRIES // nodes)
            last = int(np.searchsorted(self.starts, most, side="right")) - 1
            last = min(N, max(first + 1, last))
            rows = slice(self.starts[first], self.starts[last])
            starts = self.starts[first : last + 1] - self.starts[first]
            yield slice(first, last), self.at(rows, starts)
            first = last

    def by_person(self, values: Floats) -> Floats:
        """Sums (N, ...) of what rows (n, ...) have."""
        return np.asarray(np.add.reduceat(values, self.starts[:-1], axis=0))

    def of_rows(self, values: AnyArray) -> Any:
        """What people (N, ...) have, by rows (n, ...)."""
        return np.repeat(values, np.diff(self.starts), axis=0)


class Nodes(NamedTuple):
    """Where each person's integral is evaluated."""

    z: Floats
    """(N, J, 2)"""
    log_weight: Floats
    """(N, J)"""


def alike(_: Any, offers: Offers) -> Nodes:
    """One node at 0: nobody differs."""
    return Nodes(np.zeros((offers.people, 1, 2)), np.zeros((offers.people, 1)))


class Coefficients(NamedTuple):
    """(a, b, L) in one vector: L is lower triangular and its entries come last, row by row."""

    values: Floats
    k: int

    @property
    def a(self) -> Floats:
        """(k,)."""
        return self.values[: self.k]

    @property
    def b(self) -> Floats:
        """(h,)."""
        return self.values[self.k : -3]

    @property
    def root(self) -> Floats:
        """L."""
        one, two, three = self.values[-3:]
        return np.array([[one, 0.0], [two, three]])

    def logits(self, offers: Offers, z: Floats) -> tuple[Floats, Floats]:
        """Of rows at their people's nodes z (N, J, 2), and the steepness, both (n, J)."""
        u, v = np.moveaxis(z @ self.root.T, -1, 0)
        ours, taste_factor = (np.exp(np.minimum(part, _MOST)) for part in (offers.G @ self.b, v))
        steep = np.minimum(ours[:, None] * offers.of_rows(taste_factor), np.exp(_STEEPEST))
        return (offers.F @ self.a)[:, None] + offers.of_rows(u) - steep * offers.q[:, None], steep


def sales(logits: Floats, yes: Floats) -> tuple[Floats, Floats]:
    """log P(what was done) of rows (n,) at nodes (n, J), and its slope in the logit."""
    sign = np.where(yes > 0, 1.0, -1.0)[:, None]
    m = sign * logits
    e = np.exp(-np.abs(m))
    return np.minimum(m, 0) - np.log1p(e), sign * np.where(m > 0, e, 1.0) / (1 + e)


def around_modes(at: Coefficients, offers: Offers) -> Nodes:
    """Nodes around each person's mode of z, as far apart as her posterior is wide.

    Newton's method with expected information, steps halved for whom they would lose.
    """
    node, weight = np.polynomial.hermite_e.hermegauss(_NODES)
    t = np.stack(np.meshgrid(node, node, indexing="ij"), axis=-1).reshape(-1, 2)
    log_w = np.log(np.outer(weight, weight)).ravel() + (t * t).sum(axis=1) / 2 - np.log(2 * np.pi)
    z: Floats = np.zeros((offers.people, 2))
    root = at.root

    def log_posterior(z: Floats) -> Floats:
        logits, _ = at.logits(offers, z[:, None])
        return offers.by_person(sales(logits, offers.yes)[0])[:, 0] - (z * z).sum(axis=1) / 2

    value, J = log_posterior(z), np.eye(2)
    for _ in range(_MODE_STEPS):
        logits, steep = at.logits(offers, z[:, None])
        s, slope = expit(logits[:, 0]), -steep[:, 0] * offers.q
        along = np.outer(np.ones(len(s)), root[0]) + np.outer(slope, root[1])  # d logit / d z
        gradient = offers.by_person((offers.yes - s)[:, None] * along) - z
        spread = (s * (1 - s))[:, None, None] * along[:, :, None] * along[:, None]
        J = offers.by_person(spread) + np.eye(2)
        step = np.linalg.solve(J, gradient[..., None])[..., 0]
        if np.abs(step).max() < 1e-6:
            break
        for _ in range(20):
            new = log_posterior(z + step)
            worse = new < value - 1e-12
            if not worse.any():
                break
            step[worse] /= 2
        z, value = np.where(worse[:, None], z, z + step), np.where(worse, value, new)
    R = np.linalg.cholesky(np.linalg.inv(J))
    nodes = z[:, None] + t @ R.swapaxes(1, 2)
    log_det = np.log(R[:, 0, 0] * R[:, 1, 1])
    return Nodes(nodes, log_w + log_det[:, None] - (nodes * nodes).sum(axis=2) / 2)


def likelihood(at: Coefficients, offers: Offers, nodes: Nodes) -> tuple[Floats, Floats, Floats]:
    """log likelihoods of people (N,), their scores (N, p), and posteriors of nodes (N, J)."""
    N, J = nodes.log_weight.shape
    values, scores, posteriors = np.zeros(N), np.zeros((N, len(at.values))), np.zeros((N, J))
    for who, part in offers.blocks(J):
        z = nodes.z[who]
        logits, steep = at.logits(part, z)
        log_chance, level = sales(logits, part.yes)
        joint = nodes.log_weight[who] + part.by_person(log_chance)
        values[who] = logsumexp(joint, axis=1)
        posteriors[who] = posterior = np.exp(joint - values[who, None])
        slope = level * -steep * part.q[:, None]
        of_row = part.of_rows(posterior)
        rows = (np.einsum("nj,nj->n", of_row, change)[:, None] for change in (level, slope))
        fixed = np.hstack([known * row for known, row in zip(part[:2], rows, strict=True)])
        u, v = (part.by_person(change) * posterior for change in (level, slope))
        pairs = ((u, 0), (v, 0), (v, 1))
        taste_scores = np.column_stack([(change * z[..., i]).sum(axis=1) for change, i in pairs])
        scores[who] = np.hstack([part.by_person(fixed), taste_scores])
    return values, scores, posteriors


class Fit(NamedTuple):
    """What maximises the likelihood."""

    at: Coefficients
    value: float
    """log likelihood, without the penalty"""
    covariance: Floats
    """of the estimates (p, p), from the outer product of people's scores"""
    nodes: Nodes


def maximise(
    at: Coefficients, offers: Offers, penalty: Floats, nodes_at: Callable[..., Nodes], free: int
) -> Fit:
    """The first `free` coefficients, by quasi-Newton steps in units of standard errors.

    Nodes are laid anew each round. `penalty` (p,) is a row's, as in `fit_logit`.
    """
    from scipy.optimize import minimize  # not before: slow to import

    n, p, k = len(offers.q), len(at.values), at.k
    for _ in range(_ROUNDS):
        nodes = nodes_at(at, offers)
        scores = likelihood(at, offers, nodes)[1][:, :free]
        information = scores.T @ scores
        information += np.diag(0.01 * np.diag(information) + n * penalty[:free] + 1e-9 * n)
        unit = np.linalg.cholesky(np.linalg.inv(information))
        start = at.values

        def lost(
            x: Floats, start: Floats = start, unit: Floats = unit, nodes: Nodes = nodes
        ) -> tuple[float, Floats]:
            values = start + np.append(unit @ x, np.zeros(p - free))
            each, scores, _ = likelihood(Coefficients(values, k), offers, nodes)
            slope = scores.sum(axis=0) - n * penalty * values
            value = each.sum() - n * (penalty * values**2).sum() / 2
            return -float(value), -(slope[:free] @ unit)

        found: Any = minimize(
            lost, np.zeros(free), jac=True, method="BFGS", options={"maxiter": 15, "gtol": 1e-4}
        )
        at = Coefficients(start + np.append(unit @ found.x, np.zeros(p - free)), k)
        if np.abs(found.x).max() < _CLOSE:
            break
    values, scores, _ = likelihood(at, offers, nodes)
    covariance = np.linalg.pinv(scores.T @ scores)
    return Fit(at, float(values.sum()), covariance, nodes)


@dataclass(frozen=True, kw_only=True)
class Tastes:
    """How people of a log differ; exact functions of the log, so not private."""

    people: int
    visits: float
    """rows of a person, in the median"""
    law: Prior
    """of (a, b) in the population"""
    level: tuple[float, float]
    """standard deviation of u, the logit amid the price range, and its standard error"""
    slope: tuple[float, float]
    """that of v, of the logarithm of the price slope"""
    correlation: float
    """of u and v"""
    ratio: float
    """twice the log likelihood ratio to people who are alike"""
    p_value: float
    """an upper bound of its p-value if they are"""
    held_out: float
    """log likelihood of a row that was held out, by her other rows"""
    alike: float
    """the same by one logit for everybody"""

    def __str__(self) -> str:
        (u, du), (v, dv) = self.level, self.slope
        return (
            f"{self.people} people, {self.visits:g} offers each in the median; tastes: sd {u:.3f} "
            f"+- {du:.3f} of the logit at the middle of the price range, {v:.3f} +- {dv:.3f} of "
            f"the logarithm of its price slope, correlation {self.correlation:.2f}; likelihood "
            f"ratio {self.ratio:.1f} (p = {self.p_value:.2g})\n"
            "held-out log-likelihood by her other offers "
            f"{self.held_out:.4f} a row (people alike: {self.alike:.4f})"
        )


def fit_tastes(offers: Offers, start: Floats, penalty: Floats) -> Tastes:
    """Fit the population; `start` (p - 3,) is (a, b) of people who are alike, or nearly.

    Twice the log likelihood ratio of L = 0 is compared with an even mixture of chi-squares of 2 and
    3 degrees, an upper bound: L L' lies in a convex cone of three dimensions (Perlman, Annals of
    Mathematical Statistics 1969), where people are many and nothing but tastes ties the visits of
    one together.
    """
    k, free = offers.F.shape[1], len(start)
    penalty = np.append(penalty, np.zeros(3))
    none = Coefficients(np.append(start, np.zeros(3)), k)
    same = maximise(none, offers, penalty, alike, free)
    some = Coefficients(np.append(same.at.values[:-3], [0.5, 0.0, 0.3]), k)
    fit = maximise(some, offers, penalty, around_modes, free + 3)
    ratio = max(0.0, 2 * (fit.value - same.value))
    (level, _), (along, rest) = fit.at.root
    slope = float(np.hypot(along, rest))
    turn = np.zeros(free + 3)
    turn[-2:] = [along / slope, rest / slope] if slope else [1.0, 0.0]
    law = LEAST_SPREAD * np.eye(free)
    free_index = [0, k]
    law[np.ix_(free_index, free_index)] += fit.at.root @ fit.at.root.T
    rng = np.random.default_rng(_SEED)
    order = np.lexsort((rng.random(len(offers.q)), offers.of_rows(np.arange(offers.people))))
    place = np.arange(len(order)) - offers.of_rows(offers.starts[:-1])
    kept = np.empty(len(order), np.bool_)
    kept[order] = place >= offers.of_rows(np.diff(offers.starts) // _HELD_OUT)
    by_her, by_all = (
        _predicted(maximise(one.at, offers.some(kept), penalty, nodes, size), offers, kept)
        for one, nodes, size in ((fit, around_modes, free + 3), (same, alike, free))
    )
    return Tastes(
        people=offers.people,
        visits=float(np.median(np.diff(offers.starts))),
        law=Prior(fit.at.values[:-3], law, source="a log that is taken as public"),
        level=(abs(level), float(fit.covariance[-3, -3] ** 0.5)),
        slope=(slope, float((turn @ fit.covariance @ turn) ** 0.5)),
        correlation=float(np.sign(level) * along / slope) if slope and level else 0.0,
        ratio=ratio,
        p_value=float(chdtrc(2, ratio) + chdtrc(3, ratio)) / 2,
        held_out=by_her,
        alike=by_all,
    )


def _predicted(fit: Fit, offers: Offers, kept: Bools) -> float:
    """Mean log likelihood of the rows that were not kept, by what people did in the others."""
    _, _, posteriors = likelihood(fit.at, offers.some(kept), fit.nodes)
    chances = []
    for who, part in offers.blocks(posteriors.shape[1]):
        logits, _ = fit.at.logits(part, fit.nodes.z[who])
        told = np.exp(sales(logits, part.yes)[0])
        chances.append((part.of_rows(posteriors[who]) * told).sum(axis=1))
    return float(np.log(np.concatenate(chances)[~kept]).mean())


def check_people(person: str, count: Ints, price: Floats, groups: Ints, coefficients: int) -> float:
    """The share of prices that people explain; refuses logs of too few people or visits.

    Args:
        person: the column's name.
        count: rows of each person (N,).
        price, groups: of each row (n,).
        coefficients: those that all people share.
    """
    N, median = len(count), float(np.median(count))
    if (least := max(LEAST_PEOPLE, A_COEFFICIENT * coefficients)) > N:
        raise InputError(
            f"Expected at least {least} people in {person!r}, got {N}: how people differ beside "
            f"{coefficients} coefficients cannot be told from so few."
        )
    if median < LEAST_VISITS:
        raise InputError(
            f"Expected people in {person!r} with at least {LEAST_VISITS} rows each, in the median, "
            f"got {median:g}: leave out person=, and every row is a customer of her own."
        )
    mean = np.bincount(groups, price) / count
    within = float(np.square(price - mean[groups]).sum())
    return 1 - within / max(float(np.square(price - price.mean()).sum()), 1e-300)


def refuse_alike(person: str, tastes: Tastes) -> None:
    """Raise `InputError` where what differs between people may be noise."""
    if tastes.p_value < FALSE_ALARM:
        return
    needed = "only many more people or visits"
    if tastes.p_value < _HINT:
        needed = f"about {tastes.people * _needed() / tastes.ratio:,.0f} such people"
    raise InputError(
        f"Expected people in {person!r} whose tastes differ by more than noise, got standard "
        f"deviations of {tastes.level[0]:.2g} of the logit and {tastes.slope[0]:.2g} of the "
        f"logarithm of its price slope, with a likelihood ratio of {tastes.ratio:.1f} "
        f"(p = {tastes.p_value:.2g}, needed: below {FALSE_ALARM:g}): {needed} could show that, or "
        "leave out person=, and all are alike."
    )


def _needed() -> float:
    """The likelihood ratio whose p-value is `FALSE_ALARM`."""
    from scipy.optimize import brentq  # not before: slow to import

    found: float = brentq(lambda x: (chdtrc(2, x) + chdtrc(3, x)) / 2 - FALSE_ALARM, 1, 50)
    return found
