"""Bare mechanisms in two neighbouring worlds, many runs at once, for audits of known power.

A mechanism comes as a sampler, and where its law is known with the exact scores that tell its
worlds apart best: those of the honest mechanism, and of the fault one may suspect.
"""

import numpy as np

from dpbandit.auditing.audit import audit_views
from dpbandit.auditing.bounds import Claim
from dpbandit.auditing.exact import (
    LaplaceRatio,
    audit_rehearsed,
    choice,
    first_above,
    gumbel_ratio,
    matched_filter,
    outcomes,
)
from dpbandit.auditing.views import Columns
from dpbandit.base.random_streams import Source
from dpbandit.privacy.choices import ExponentialMechanism, GivenScores, ReportNoisyMax
from dpbandit.privacy.curves import mu_of
from dpbandit.privacy.gradients import RecursiveGradients
from dpbandit.privacy.ledger import Ledger
from dpbandit.privacy.moments import ClippedVectors
from dpbandit.privacy.prefix_sums import PrefixSum, Tree
from dpbandit.privacy.sparse_vector import AboveThreshold, SegmentAboveThreshold
from dpbandit.privacy.spends import GaussianSpend
from dpbandit.privacy.vertices import SELECTION_LAWS, NoisyVertex, vertex_scores
from tests.broken.audited import NoThresholdNoise

RUNS = 20_000
GDP = Claim(1.0, 1e-4, mu_of(1.0, 1e-4))
PURE = Claim(1.0, 0.0)


def columns(values, *, categorical=False):
    kinds = np.full(values.shape[1], categorical)
    return Columns(values, ("releases",) * values.shape[1], kinds)


def audited(sample, claim, *, seed=0, runs=RUNS, scores=None):
    return audit_views(sample, claim, runs=runs, seed=seed, chunk=10**6, scores=scores)


def rehearsed(sample, rehearsal, claim, *, scores, seed=0, runs=RUNS, rehearsals=100_000):
    how = {"scores": scores, "runs": runs, "rehearsals": rehearsals, "seed": seed, "chunk": 10**6}
    return audit_rehearsed(sample, rehearsal, claim, **how)


class Together:
    """Streams of n replicas from one generator: other numbers than `Streams`, and 20 times faster.

    The audit gives every chunk a seed of its own, and a whole part of the runs is one chunk.
    """

    def __init__(self, seeds):
        self._rng, self._n = np.random.default_rng(seeds[0]), len(seeds)

    def __len__(self):
        return self._n

    def exponentials(self, name, *shape):
        return _One(self._rng.standard_exponential, (self._n, *shape))

    def uniforms(self, name, *shape):
        return _One(self._rng.random, (self._n, *shape))


class _One(Source):
    """A draw at a time."""

    ahead = 1

    def __init__(self, law, shape):
        self._law, self._shape = law, shape

    def take(self, count):
        return self._law((count, *self._shape))


def identical(world, seeds):
    """Noise that knows nothing: the correct mechanism of epsilon 0."""
    rng = np.random.default_rng((*seeds[0], world))
    return columns(rng.standard_normal((len(seeds), 3)))


def gaussian_tree(factor=1.0, horizon=16):
    """A tree's prefix sums with mu-GDP for (1, 1e-4), noise times `factor`; user 1 turns around."""
    leaves = horizon - 1
    stddev = factor * 2 * Tree().column_norm(leaves) / GDP.mu

    def sample(world, seeds):
        rng, n = np.random.default_rng(seeds[0]), len(seeds)
        noise = Tree().of(lambda: stddev * rng.standard_normal((n, 1)), stddev=stddev)
        spend = GaussianSpend(GDP.mu, "tree")
        sums = PrefixSum(ClippedVectors(1), noise, spend, horizon=horizon)
        of_user, nothing = np.full((n, 1), 2.0 * world - 1), np.zeros((n, 1))
        released = [sums(nothing if t else of_user) for t in range(leaves)]
        return columns(np.concatenate(released, axis=1))

    return sample


def tree_scores(horizon=16):
    """The matched filter of that tree: row t of B says which nodes are in N_t, Sigma ~ B B'."""
    nodes = iter(np.eye(horizon - 1))
    noise = Tree().of(lambda: next(nodes), stddev=1.0)
    B = np.array([noise() for _ in range(horizon - 1)])
    return {"matched filter": matched_filter(np.full(horizon - 1, 2.0), B @ B.T)}


def laplace(factor=1.0, dim=1):
    """`dim` numbers with Laplace noise for pure epsilon 1 together; each moves from 0 to 1."""

    def sample(world, seeds):
        rng = np.random.default_rng(seeds[0])
        return columns(world + factor * dim * rng.laplace(size=(len(seeds), dim)))

    return sample


def laplace_scores(dim=1):
    return {"ratio": LaplaceRatio(np.zeros(dim), np.ones(dim), float(dim))}


class AllForTheQueries(NoThresholdNoise):
    """Spends the budget that the threshold noise would cost on the queries: Lap(2 s / epsilon)."""

    def __init__(self, *args, **named):
        super().__init__(*args, **named)
        noise = self._query_noise
        self._query_noise = lambda: noise() / 2


def svt(kind=AboveThreshold, *, queries=8, threshold=0.0):
    """Sparse vector at pure 1; what is seen is when it fires, `queries` if never.

    The user moves every query but the last from 0 to 1, the last one from 1 to 0.
    """

    def sample(world, seeds):
        n = len(seeds)
        mechanism = kind(Together(seeds), "svt", epsilon=1.0, uses=queries)
        fired = np.full(n, queries)
        for i, query in enumerate(svt_queries(world, queries)):
            fired[mechanism(np.full(n, query), np.full(n, threshold))] = i
        return columns(fired[:, None], categorical=True)

    return sample


def svt_queries(world, queries):
    return np.append(np.full(queries - 1, float(world)), 1.0 - world)


SCALES = {AboveThreshold: (2.0, 4.0), NoThresholdNoise: (0.0, 4.0), AllForTheQueries: (0.0, 2.0)}
"""Of threshold and query noise at epsilon 1, sensitivity 1."""


def svt_laws(kind, *, queries=8, threshold=0.0):
    rho, query = SCALES[kind]
    return tuple(
        first_above(svt_queries(w, queries), threshold, threshold_scale=rho, query_scale=query)
        for w in (0, 1)
    )


def svt_scores(suspected=NoThresholdNoise, **settings):
    """The ratio that is claimed, and that of a suspected fault."""
    kinds = {"textbook": AboveThreshold, "suspected": suspected}
    return {name: outcomes(svt_laws(kind, **settings)) for name, kind in kinds.items()}


class NeverHalts(AboveThreshold):
    """One threshold noise and the price of one firing, for as many firings as there are."""

    needs = AboveThreshold.needs

    def _release(self, *datum):
        self._rho = np.where(self._ended, self._threshold_noise(), self._rho)
        self._ended[:] = False
        return self.query(*datum) + self._query_noise() >= datum[1] + self._rho


def counts(queries=20, threshold=0.5):
    """Sampler of `NeverHalts`: the numbers of firing queries in the first and in the second half.

    A user raises the first half of the queries by 1 and lowers the second, so that noise of the
    threshold, which moves both halves alike, hides neither.
    """

    def sample(world, seeds):
        n = len(seeds)
        mechanism = NeverHalts(Together(seeds), "svt", epsilon=1.0, uses=queries)
        seen = np.zeros((n, 2))
        for i in range(queries):
            half = 2 * i // queries
            seen[:, half] += mechanism(np.full(n, float(world != half)), np.full(n, threshold))
        return columns(seen)

    return sample


def segments(kind=SegmentAboveThreshold, *, before=12, of_user=4, threshold=2.0, epsilon=1.0):
    """Sparse vector on segments; the user is first in the last one, with loss 0 or 1.

    What is seen: how often others' segments of one round fired, and how long hers lasted.
    """

    def sample(world, seeds):
        n = len(seeds)
        mechanism = kind(Together(seeds), "svt", epsilon=epsilon, uses=before + of_user)
        nothing, every, level = np.zeros(n), np.ones(n, dtype=bool), np.full(n, threshold)
        early = sum(mechanism(nothing, level, every).astype(int) for _ in range(before))
        lasts, open_ = np.zeros(n), every
        for i in range(of_user):
            open_ = open_ & ~mechanism(np.full(n, float(world and i == 0)), level, every & (i == 0))
            lasts += open_
        return columns((early * 100 + lasts)[:, None], categorical=True)

    return sample


NOISES = {ExponentialMechanism: "gumbel", ReportNoisyMax: "laplace"}


SELECTION_WORLDS = np.array([[-2.0, 1.0, 1.0], [-1.0, 0.0, 0.0]])
"""Exact scores: the user puts candidate 0 up and all others down by 1."""


def selection(kind=ExponentialMechanism, factor=1.0):
    """One selection of three at pure epsilon 1, noise times `factor`."""

    def sample(world, seeds):
        mechanism = kind(GivenScores(3), Together(seeds), "em", epsilon=1.0 / factor, uses=1)
        chosen = mechanism(np.tile(SELECTION_WORLDS[world], (len(seeds), 1)))
        return columns(chosen[:, None], categorical=True)

    return sample


def selection_scores(kind=ExponentialMechanism):
    return {"ratio": outcomes([choice(u, 2.0, noise=NOISES[kind]) for u in SELECTION_WORLDS])}


VERTEX_BUDGETS = 0.8 / np.sqrt(np.arange(1, 9))
VERTEX_CLAIM = Claim.of(Ledger((SELECTION_LAWS["gumbel"][1].of("", VERTEX_BUDGETS),)), 1e-4)


def vertices(kind=NoisyVertex, *, dim=2):
    """Eight Frank-Wolfe steps by noisy minima; user 1 turns her gradient around, others push.

    What is seen is the log-likelihood ratio of all vertices. An auditor knows everybody else, so
    knows the sums of both worlds once vertices are released.
    """
    n_steps = len(VERTEX_BUDGETS)

    def sample(world, seeds):
        n = len(seeds)
        bounds = {"shared": True, "reward_low": -1.0, "residual_clip": 1.0}
        gradients = RecursiveGradients(n_actions=1, dim=dim, mean=lambda z: z, **bounds)
        how = {"noise": "gumbel", "budgets": VERTEX_BUDGETS, "horizon": n_steps}
        mechanism = kind(gradients, Together(seeds), "fw", **how)
        theta, previous = np.zeros((2, n, 1, dim))
        shift, total = np.full(dim, 2.0), np.zeros(n)  # gradients of +1 and -1: -x, x
        for i in range(n_steps):
            reward = np.full(n, 1.0 - 2 * world if i == 0 else 1.0)
            x = np.ones((n, 1, dim))
            chosen = mechanism(theta, previous, np.array([i + 1]), x, np.zeros(n), reward)[:, 0]
            own = mechanism._exact[:, 0]
            first, second = (own, own + shift) if world == 0 else (own - shift, own)
            scale = NoisyVertex._scales(mechanism).item()
            total += gumbel_ratio(chosen, -vertex_scores(first), -vertex_scores(second), scale)
            vertex = np.where(chosen < dim, 1.0, -1.0)[:, None] * np.eye(dim)[chosen % dim]
            theta, previous = theta + (vertex[:, None] - theta) / (i + 2), theta
        return columns(total[:, None])

    return sample


def shown(columns):
    """The score of a sampler that shows the log-likelihood ratio itself."""
    return columns.values[:, 0]
