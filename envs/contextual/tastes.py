"""Estimates of how people of a log differ: a hierarchical logit by marginal likelihood.

A row of the log is one offer at price q, scaled to [-1, 1], to one of N people, with features x.
The vector F is (1, x), G is F or the constant 1, and s is the logistic function::

    P(person i buys) = s(F . a + u_i - exp(G . b + v_i) q),   (u_i, v_i) = L z_i,   z_i ~ N(0, I)

A person's likelihood is an integral over z_i, computed by Gauss-Hermite quadrature with 7 x 7 nodes
around the mode of her z_i. (a, b, L) maximise the product over people; with L = 0 people are alike.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import chdtrc, expit, logsumexp

from dpbandit.base import AnyArray, Bools, Floats, InputError, Ints
from dpbandit.specs import Prior

LEAST_VISITS, LEAST_PEOPLE, PEOPLE_PER_COEFFICIENT = 5, 30, 3
"""Smallest median of rows per person; smallest number of people, and of people per coefficient"""
FALSE_ALARM = 0.01
"""Level of the test that people differ; bounds its false-alarm probability if people are many"""
_HINT_P_VALUE = 0.2
"""p-value below which the error message says how many people would be enough for significance"""
LEAST_SPREAD = 1e-6
"""Variance added to every coefficient's, so that the population's law is not singular"""
_MAX_LOG_SLOPE, _MAX_EXPONENT = 10.0, 50.0
"""Largest logarithm of a price slope, as in `OwnLogitSpec`, and of its common or personal part"""
_NODES, _MODE_STEPS, _FIT_ROUNDS = 7, 25, 12  # nodes per axis; most steps to a mode; most rounds
_STEP_TOLERANCE = 1e-3
"""A fit ends with the first round whose step is smaller than this, in standard errors"""
_BLOCK_ENTRIES = 1 << 18
"""Number of rows x quadrature nodes computed at once; changes speed, never values"""
_FOLD_SHARE, _SEED = 5, 20_221
"""Divisor of a person's rows (a fifth is held out), and seed of the draw of held-out rows"""


class Offers(NamedTuple):
    """Offers of a log as arrays, n rows sorted by person."""

    F: Floats
    """Features, with a constant, on which the level of the logit depends, (n, k)"""
    G: Floats
    """Features, with a constant, on which the logarithm of the price slope depends, (n, h)"""
    q: Floats
    """Prices scaled to [-1, 1], (n,)"""
    yes: Floats
    """1 if the offer was accepted, else 0, (n,)"""
    starts: Ints
    """Index of each of N people's first row, then the number of rows, (N + 1,)"""

    @classmethod
    def of(cls, F: Floats, G: Floats, q: Floats, yes: Floats, person: Ints) -> "Offers":
        """Return rows sorted by `person` (n,), whose values are 0, ..., people - 1, all present."""
        order = np.argsort(person, kind="stable")
        starts = np.append(0, np.cumsum(np.bincount(person)))
        return cls(F[order], G[order], q[order], yes[order], starts)

    @property
    def people(self) -> int:
        """Number of people N."""
        return len(self.starts) - 1

    def some(self, chosen: Bools) -> "Offers":
        """Return rows where the mask `chosen` (n,) is True; each person must have one or more."""
        counts = np.add.reduceat(chosen, self.starts[:-1], dtype=np.int64)
        return self.at(chosen, np.append(0, np.cumsum(counts)))

    def at(self, chosen: Any, starts: Ints) -> "Offers":
        """Return the rows of a mask or slice; `starts` are the indices of first rows among them."""
        F, G, q, yes = self.F[chosen], self.G[chosen], self.q[chosen], self.yes[chosen]
        return Offers(F, G, q, yes, starts)

    def blocks(self, nodes: int) -> Iterator[tuple[slice, "Offers"]]:
        """Yield slices of people with their rows, so few at a time that arrays stay small."""
        first, N = 0, self.people
        while first < N:
            most = self.starts[first] + max(1, _BLOCK_ENTRIES // nodes)
            last = int(np.searchsorted(self.starts, most, side="right")) - 1
            last = min(N, max(first + 1, last))
            rows = slice(self.starts[first], self.starts[last])
            starts = self.starts[first : last + 1] - self.starts[first]
            yield slice(first, last), self.at(rows, starts)
            first = last

    def by_person(self, values: Floats) -> Floats:
        """Return sums of the rows' values (n, ...) over each person's rows, (N, ...)."""
        return np.asarray(np.add.reduceat(values, self.starts[:-1], axis=0))

    def of_rows(self, values: AnyArray) -> Any:
        """Return people's values (N, ...) repeated for each of their rows, (n, ...)."""
        return np.repeat(values, np.diff(self.starts), axis=0)


class Nodes(NamedTuple):
    """Quadrature nodes, J for each of N people, of the integral over her standard normal z."""

    z: Floats
    """Values of z at the nodes, (N, J, 2)"""
    log_weight: Floats
    """Logarithm of each node's weight, (N, J)"""


def alike(_: Any, offers: Offers) -> Nodes:
    """Return a single node at z = 0 for each person, for the model in which people are alike."""
    return Nodes(np.zeros((offers.people, 1, 2)), np.zeros((offers.people, 1)))


class Coefficients(NamedTuple):
    """Coefficients of level (a) and log price slope (b), and covariance root (L), in one vector."""

    values: Floats
    k: int

    @property
    def a(self) -> Floats:
        """Coefficients of the level of the logit, (k,)."""
        return self.values[: self.k]

    @property
    def b(self) -> Floats:
        """Coefficients of the logarithm of the price slope, (h,)."""
        return self.values[self.k : -3]

    @property
    def root(self) -> Floats:
        """Lower triangular root L of the covariance of a person's deviations (u, v), (2, 2)."""
        one, two, three = self.values[-3:]
        return np.array([[one, 0.0], [two, three]])

    def logits(self, offers: Offers, z: Floats) -> tuple[Floats, Floats]:
        """Return logits and price slopes (n, J) of rows at their people's J nodes z, (N, J, 2)."""
        u, v = np.moveaxis(z @ self.root.T, -1, 0)
        shared, personal = (np.exp(np.minimum(x, _MAX_EXPONENT)) for x in (offers.G @ self.b, v))
        steep = np.minimum(shared[:, None] * offers.of_rows(personal), np.exp(_MAX_LOG_SLOPE))
        return (offers.F @ self.a)[:, None] + offers.of_rows(u) - steep * offers.q[:, None], steep


def sales(logits: Floats, yes: Floats) -> tuple[Floats, Floats]:
    """Return log P(answer) for answers `yes` (n,), and its derivative with respect to the logit."""
    sign = np.where(yes > 0, 1.0, -1.0)[:, None]
    m = sign * logits
    e = np.exp(-np.abs(m))
    return np.minimum(m, 0) - np.log1p(e), sign * np.where(m > 0, e, 1.0) / (1 + e)


def around_modes(at: Coefficients, offers: Offers) -> Nodes:
    """Return nodes around the mode of each person's posterior of z, scaled by its width.

    Modes are found by Newton's method with expected information; steps that lower a person's
    posterior are halved.
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
    """Return people's log-likelihoods (N,), scores (N, p) and posterior weights of nodes (N, J)."""
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
    """Maximum likelihood estimate of the coefficients."""

    at: Coefficients
    value: float
    """log-likelihood, without the penalty"""
    covariance: Floats
    """covariance of the p estimates, (p, p), from the outer products of people's scores"""
    nodes: Nodes


def maximise(
    at: Coefficients, offers: Offers, penalty: Floats, nodes_at: Callable[..., Nodes], free: int
) -> Fit:
    """Maximise the likelihood over the first `free` coefficients, starting from `at`.

    Rounds of quasi-Newton steps, in units of standard errors; `nodes_at` returns new nodes for each
    round. `penalty` (p,) is per row, as in `fit_logit`.
    """
    from scipy.optimize import minimize  # not before: slow to import

    n, p, k = len(offers.q), len(at.values), at.k
    for _ in range(_FIT_ROUNDS):
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
        if np.abs(found.x).max() < _STEP_TOLERANCE:
            break
    values, scores, _ = likelihood(at, offers, nodes)
    covariance = np.linalg.pinv(scores.T @ scores)
    return Fit(at, float(values.sum()), covariance, nodes)


@dataclass(frozen=True, kw_only=True)
class Tastes:
    """Estimated differences between people of a log; exact functions of the log, so not private."""

    people: int
    visits: float
    """median number of rows per person"""
    law: Prior
    """distribution of people's coefficients in the population, of level and log price slope"""
    level: tuple[float, float]
    """stddev of personal effects on the logit at the middle price, and its standard error"""
    slope: tuple[float, float]
    """stddev of personal effects on the logarithm of the price slope, and its standard error"""
    correlation: float
    """correlation of the personal effects of `level` and `slope`"""
    ratio: float
    """twice the log-likelihood ratio to the model in which people are alike"""
    p_value: float
    """upper bound of the p-value of `ratio`, for the hypothesis that people are alike"""
    held_out: float
    """mean log-likelihood of a held-out row, given the person's other rows"""
    alike: float
    """mean log-likelihood of a held-out row under the same logit for everybody"""

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
    """Fit the law of people's coefficients, from `start`, those of one logit for everybody.

    Twice the log-likelihood ratio of no differences (L = 0) is compared with an even mixture of
    chi-squares of 2 and 3 degrees of freedom. This bounds the p-value from above, as L L' lies in a
    convex cone of dimension 3 (Perlman, Annals of Mathematical Statistics 1969), if there are many
    people, and visits of a person are dependent only through her tastes.
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
    training = np.empty(len(order), np.bool_)
    training[order] = place >= offers.of_rows(np.diff(offers.starts) // _FOLD_SHARE)
    by_her, by_all = (
        _predicted(maximise(one.at, offers.some(training), penalty, nodes, size), offers, training)
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


def _predicted(fit: Fit, offers: Offers, training: Bools) -> float:
    """Return the mean log-likelihood of held-out rows, given each person's `training` rows."""
    _, _, posteriors = likelihood(fit.at, offers.some(training), fit.nodes)
    chances = []
    for who, part in offers.blocks(posteriors.shape[1]):
        logits, _ = fit.at.logits(part, fit.nodes.z[who])
        at_nodes = np.exp(sales(logits, part.yes)[0])
        chances.append((part.of_rows(posteriors[who]) * at_nodes).sum(axis=1))
    return float(np.log(np.concatenate(chances)[~training]).mean())


def check_people(person: str, count: Ints, price: Floats, groups: Ints, coefficients: int) -> float:
    """Return the R2 of prices regressed on people; raise `InputError` for too few people or visits.

    Args:
        person: name of the column of people's ids.
        count: number of rows of each person, (N,).
        price, groups: price and person of each row, (n,).
        coefficients: number of coefficients that all people share.
    """
    N, median = len(count), float(np.median(count))
    if (least := max(LEAST_PEOPLE, PEOPLE_PER_COEFFICIENT * coefficients)) > N:
        raise InputError(
            f"Expected at least {least} people in {person!r}, got {N}: too few to estimate "
            f"differences between people beside {coefficients} coefficients."
        )
    if median < LEAST_VISITS:
        raise InputError(
            f"Expected people in {person!r} with at least {LEAST_VISITS} rows each, in the median, "
            f"got {median:g}: leave out person=, so that every row counts as another customer."
        )
    mean = np.bincount(groups, price) / count
    within = float(np.square(price - mean[groups]).sum())
    return 1 - within / max(float(np.square(price - price.mean()).sum()), 1e-300)


def refuse_alike(person: str, tastes: Tastes) -> None:
    """Raise `InputError` unless people differ significantly, at level `FALSE_ALARM`."""
    if tastes.p_value < FALSE_ALARM:
        return
    needed = "only many more people or visits"
    if tastes.p_value < _HINT_P_VALUE:
        needed = f"about {tastes.people * _needed_ratio() / tastes.ratio:,.0f} such people"
    raise InputError(
        f"Expected people in {person!r} whose tastes differ by more than noise, got standard "
        f"deviations of {tastes.level[0]:.2g} of the logit and {tastes.slope[0]:.2g} of the "
        f"logarithm of its price slope, with a likelihood ratio of {tastes.ratio:.1f} "
        f"(p = {tastes.p_value:.2g}, needed: below {FALSE_ALARM:g}): {needed} could show that, or "
        "leave out person= to treat all people as alike."
    )


def _needed_ratio() -> float:
    """Return twice the log-likelihood ratio whose p-value is `FALSE_ALARM`."""
    from scipy.optimize import brentq  # not before: slow to import

    found: float = brentq(lambda x: (chdtrc(2, x) + chdtrc(3, x)) / 2 - FALSE_ALARM, 1, 50)
    return found
