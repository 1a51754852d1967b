"""Lower bounds on regret under differential privacy, and shapes of published bounds.

Part 1. Fisher information under DP, a bound on what a private view of n users tells of a parameter.

Lemma. Let M be mu-GDP for replacing one of n independent records, each with score s and
information I_1 = E s s'. Then the output of M has information I_M with::

    tr I_M <= n^2 (e^(mu^2) - 1) lambda_max(I_1)     and     I_M <= n I_1.

Proof. h(y) = E[s_1 + ... + s_n | M = y] is the score of the output, so tr I_M is the sum over i
of E<s_i, h(M(D))>, with records D. If D^i redraws record i, E<s_i, h(M(D^i))> = 0. For fixed D
the two outputs have a chi-square divergence of at most e^(mu^2) - 1, that of N(mu, 1) from N(0,
1), by data processing. So each term is at most sqrt(e^(mu^2) - 1) sqrt(E<s_i, h(M(D^i))>^2), where
s_i is independent of M(D^i): at most sqrt((e^(mu^2) - 1) lambda_max(I_1) tr I_M). Sum over i and
divide by sqrt(tr I_M). The second inequality, I_M <= n I_1, follows from data processing.

This is the score attack of Cai, Wang and Zhang (arXiv 2303.07152) in the form that van Trees'
inequality needs. A rho-zCDP mechanism has the same bound with mu^2 = 2 rho.

Part 2. Published bounds on regret under joint differential privacy, without their constants.

All are quoted from abstracts, none is re-derived here. They hold in the worst case, and measured
averages may be far below. They are drawn for their shape alone, scaled to touch a measured curve
(`Shape.touching`).

Part 3. A lower bound on regret for two arms whose parameters are on a sphere, as in GLMBandit.

Theorem. Two arms, contexts x uniform on the unit sphere of R^d, parameters theta_0, theta_1
independent and uniform on the sphere of radius S, rewards x . theta_a + N(0, sigma^2). The agent
chooses by x_t and its view of the n = t - 1 earlier users, which is mu-GDP for replacing one of
them. Then::

    E regret_t >= (c_d / sqrt 2) E rho (1 - sqrt(I / (q + I))),    q = (d - 2)^2 / rho^2,
    I = min(n (d - 2), n^2 (e^(mu^2) - 1)) / (d sigma^2),

with `rho = |theta_1 - theta_0| / sqrt 2` and
`c_d = E|x_1| = Gamma(d/2) / (sqrt(pi) Gamma((d+1)/2))`.

Proof. Let D = (theta_1 - theta_0) / sqrt 2 and u = sqrt 2 x . D. An arm, as a = 1 or -1, costs
`(|u| - a u) / 2`, so a round costs `E(|u| - |E[u | view, x]|) / 2` at least. x is isotropic and
independent of view and D, so `E|x . v| = c_d |v|`, and::

    E regret_t >= (c_d / sqrt 2) (E|D| - E|m|),    m = E[D | view].

Let the agent also see theta_0 + theta_1 and every user's other reward: E|m| can only grow. D is
then uniform on the sphere of the known radius rho in the d - 1 dimensions orthogonal to the sum.
Let s be the part of the view's score of D that is tangent to that sphere, and Q = E|m|^2 = E m . D.
The divergence theorem on the sphere gives the first of::

    E m.s = (d - 2) Q / rho^2,    E m.s = E (m - (Q / rho^2) D).s <= sqrt(Q (1 - Q / rho^2) I),

and the second holds for all I >= E|s|^2, as s is orthogonal to D. So Q <= rho^2 I / (q + I), and
E|m| <= sqrt Q. A record gives (r_1 - r_0) / sqrt 2 = x . D + N(0, sigma^2), whose information is
1 / (d sigma^2) along each of d - 2 tangents: `information` bounds E|s|^2. QED

This is van Trees' inequality on a sphere, where the uniform prior has score 0.

Part 4. A lower bound on regret for two arms with Gaussian parameters, by van Trees' inequality.

Theorem. In the setting of part 3, but with theta_0, theta_1 independent N(0, S^2/d I), and with
I_t the I of part 3 with d in place of d - 2::

    E regret_t >= (c_d / sqrt 2) sum_j P(j) [E_j|D| - sqrt(E_j|D|^2 - d^2 / (J_j + I_t))]_+

where j numbers windows `cos^2(pi (|D| - j w) / (2 w))` of half-width w around j w, which add up to
1, with probability P(j) and mean E_j under prior times window, and with `rho = |D|` J_j is
E_j (-(pi/w) tan(pi (rho - j w) / (2 w)) - rho d / S^2)^2. Each round may use its best w.

Proof. Draw j with the window's probability and show it to the agent, with theta_0 + theta_1,
which is independent of D. Given j, van Trees' inequality in trace form bounds the mean square
error of any estimate of D by d^2 / (J_j + tr I_view): a window vanishes at its ends, and the
score of a density that is invariant under rotations is radial. E_j|E[D | view]| is at most the
root of E_j|D|^2 minus this error. QED
"""

from collections.abc import Callable, Iterator
from math import exp, expm1, inf, log, pi, sqrt
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, ndtr

from dpbandit.base import Floats, InputError, Ints, abbrev, at_least, positive, whole
from dpbandit.envs.contextual.glm import GLMBandit

_MAX_MU_SQUARED = 500.0
"""mu^2 from which the bound without privacy is the smaller one; above it e^(mu^2) may overflow."""
_SINGLE_ROUNDS = 2000
"""Number of first rounds whose bounds are computed one by one; later ones form groups, each of
1 / 2,000 of the rounds before it, so that a group's bounds hardly differ."""


def information(users: Ints, directions: int, each: float, mu: float) -> Floats:
    """Bound the trace of the Fisher information in a mu-GDP mechanism's output, (n,), by part 1.

    Args:
        users: n numbers of records that the output depends on, (n,).
        directions: number of orthogonal directions over which information is summed.
        each: information of one record along a direction, equal in all directions.
        mu: parameter of Gaussian DP; infinity is no privacy, 0 is an output without data.
    """
    exact = directions * each * users
    if mu**2 >= _MAX_MU_SQUARED or mu == inf:
        return np.asarray(exact, dtype=float)
    return np.minimum(exact, expm1(mu**2) * each * users.astype(float) ** 2)


def groups(horizon: int) -> tuple[Ints, Ints]:
    """Return the last round of each group of rounds, and the size of each group.

    The first 2,000 rounds are groups of one; a later group has 1/2,000 of the rounds before it. For
    a bound that falls by round, the last round's value times the group's size is never too large.
    """
    first = _SINGLE_ROUNDS
    last = np.arange(1, min(horizon, first) + 1)
    if horizon > first:
        steps = int(np.ceil(np.log(horizon / first) * first)) + 1
        last = np.unique(np.r_[last, np.geomspace(first, horizon, steps).astype(np.int64), horizon])
    return last, np.diff(last, prepend=0)


class Shape(NamedTuple):
    """A published bound on regret, without its constants."""

    name: str
    statement: str
    """formula as published, without constants"""
    of: str
    """problem and kind of privacy for which the bound holds"""
    source: str
    at: Callable[[float, int, int, int, float], float]
    """function from (epsilon, horizon, dim, n_actions, delta) to the value of the formula"""

    def touching(
        self, epsilon: float, regret: float, *, horizon: int, dim: int, n_actions: int, delta: float
    ) -> Callable[[float], float]:
        """Return the bound as a function of epsilon, scaled to equal `regret` at `epsilon`.

        Raises:
            InputError: `regret`, or the formula at `epsilon`, is not positive.
        """
        size = self.at(epsilon, horizon, dim, n_actions, delta)
        if not (regret > 0 and size > 0):
            raise InputError(f"Expected regret={abbrev(regret)} to be a number > 0.")
        return lambda e: regret / size * self.at(e, horizon, dim, n_actions, delta)


PUBLISHED = (
    Shape(
        "best known upper bound",
        "d sqrt(T) log T + d^(3/4) sqrt(T log(1/delta)) / sqrt(epsilon)",
        "linear contextual bandits, (epsilon, delta)-joint DP, worst case",
        "Azize and Basu, open problem, COLT 2024, PMLR 247:5306-5311",
        lambda epsilon, T, d, K, delta: (
            d * sqrt(T) * log(T) + d**0.75 * sqrt(T * log(1 / delta) / epsilon)
        ),
    ),
    Shape(
        "best known lower bound",
        "sqrt(d T log K) + d / (epsilon + delta)",
        "linear contextual bandits, (epsilon, delta)-joint DP, worst case",
        "Azize and Basu, open problem, COLT 2024, PMLR 247:5306-5311",
        lambda epsilon, T, d, K, delta: sqrt(d * T * log(K)) + d / (epsilon + delta),
    ),
    Shape(
        "almost free",
        "sqrt(T) + 1 / epsilon",
        "linear contextual bandits, stochastic contexts, joint DP; dimensions left out",
        "Chen, Li, Rakhlin and Simchi-Levi, arXiv 2502.13115",
        lambda epsilon, T, d, K, delta: sqrt(T) + 1 / epsilon,
    ),
    Shape(
        "generalised linear",
        "d sqrt(T) log T + d^(3/4) sqrt(T / epsilon) log T (d + log T)^(1/4)",
        "generalised linear bandits, adversarial contexts, joint DP",
        "Sarmasarkar, arXiv 2602.00417, second version",
        lambda epsilon, T, d, K, delta: (
            d * sqrt(T) * log(T) + d**0.75 * sqrt(T / epsilon) * log(T) * (d + log(T)) ** 0.25
        ),
    ),
    Shape(
        "K arms",
        "max(sqrt(K T), K / epsilon)",
        "K arms without contexts, epsilon-global DP, minimax, constants not verified",
        "Azize and Basu, arXiv 2209.02570",
        lambda epsilon, T, d, K, delta: max(sqrt(K * T), K / epsilon),
    ),
)
"""Published bounds that figures draw as dotted lines."""


_ANGLE_NODES = 400
"""Number of quadrature nodes for means over the angle between the two parameters."""


def least_regret(horizon: int, *, dim: int, signal: float, noise: float, mu: float) -> float:
    """Compute a lower bound on the expected regret after `horizon` rounds of mu-GDP agents.

    Args:
        horizon: number of rounds.
        dim: number of features, 3 or more.
        signal: norm of each arm's parameter.
        noise: standard deviation of the Gaussian noise of rewards.
        mu: Gaussian DP parameter of the agent's view of other users; infinity for no privacy.

    Guarantee:
        The theorem of part 3, proved in the docstring of this module. It does not cover agents that
        are (epsilon, delta)-DP but not mu-GDP, and it holds on average over the parameters that are
        drawn, not for one fixed pair.

    Raises:
        InputError: an argument is outside its range.

    >>> round(least_regret(10_000, dim=50, signal=1.0, noise=0.5, mu=0.268), 1)
    84.4
    """
    _check(horizon, dim, signal, noise, mu)
    return float(_cumulated(horizon, dim, signal, noise, mu)[1][-1])


def _check(horizon: int, dim: int, signal: float, noise: float, mu: float) -> None:
    whole("horizon", horizon, 1)
    whole("dim", dim, 3)
    positive("signal", signal)
    positive("noise", noise)
    if not mu >= 0:
        raise InputError(f"Expected mu={abbrev(mu)} to be a number >= 0, or infinity.")


def _cumulated(
    horizon: int, dim: int, signal: float, noise: float, mu: float
) -> tuple[Ints, Floats]:
    """Return the last rounds of groups of rounds, and the lower bound on regret after each."""
    last, each = groups(horizon)
    known = information(last - 1, dim - 2, 1 / (dim * noise**2), mu)
    angle, weights = _angles(dim)
    rho = signal * np.sqrt(1 - np.cos(angle))
    q = (dim - 2) ** 2 / rho**2
    lost = np.array([weights @ (rho * (1 - np.sqrt(info / (q + info)))) for info in known])
    return last, mean_length(dim) / sqrt(2) * (each * lost).cumsum()


def least_regret_for(problem: GLMBandit, mu: float) -> float:
    """Compute `least_regret` for a GLMBandit that meets the conditions of the theorem.

    Args:
        problem: two arms with separate, dense parameters; contexts on the sphere of order 2; linear
            rewards with Gaussian noise cut off at 6 standard deviations or more; no drift.
        mu: Gaussian DP parameter of the agent's view of other users; infinity for no privacy.

    With probability 4 n Phi(-z) at most, where Phi is the standard normal distribution function,
    cutting off noise at z standard deviations changes a reward of either arm to one of n users. A
    round costs at most twice the signal. The products, summed over rounds, are subtracted from
    the bound after each round; as regret never falls, the largest difference holds at the end.

    Raises:
        InputError: the problem does not meet a condition, which the message names.
    """
    requested = {
        "n_actions": 2,
        "shared": False,
        "contexts": "sphere",
        "context_order": 2,
        "parameters": "dense",
        "link": "identity",
        "noise_law": "gaussian",
        "drift": "none",
    }
    if not isinstance(problem, GLMBandit):
        raise InputError(f"Expected problem={abbrev(problem)} to be a GLMBandit.")
    for name, right in requested.items():
        if getattr(problem, name) != right:
            wrong = abbrev(getattr(problem, name))
            raise InputError(f"Expected {name}={wrong} to be {right!r}: there the bound is proved.")
    at_least("tail", problem.tail, 6)
    T, d, S, sigma = problem.horizon, problem.dim, problem.signal, problem.noise
    _check(T, d, S, sigma, mu)
    last, found = _cumulated(T, d, S, sigma, mu)
    edges = 4 * S * float(ndtr(-problem.tail)) * last.astype(float) * (last - 1.0)
    return max(0.0, float((found - edges).max()))


def mean_length(dim: int) -> float:
    """Compute the mean of `|x_1|` for x uniform on the unit sphere in `dim` dimensions."""
    return exp(gammaln(dim / 2) - gammaln((dim + 1) / 2)) / sqrt(pi)


def _angles(dim: int) -> tuple[Floats, Floats]:
    """Return quadrature nodes and weights for the angle of two random directions in R^`dim`."""
    nodes, weights = np.polynomial.legendre.leggauss(_ANGLE_NODES)
    angle = pi * (nodes + 1) / 2
    density = weights * np.sin(angle) ** (dim - 2)
    return angle, density / density.sum()


_WINDOW_NODES = 200
"""Number of quadrature nodes in a window of `|D|`, the distance of parameters / sqrt(2)."""
_WINDOW_WIDTHS = 40
"""Number of tried widths of windows of `|D|`, from 0.05 / sqrt(dim) to 3 times the signal."""
_MAX_DEVIATIONS = 12.0
"""Standard deviations of a coordinate of D by which `|D|` may exceed the signal in windows."""
_MIN_WINDOW_MASS = 1e-13
"""Prior probability below which a window of `|D|` is left out, which lowers the bound."""


def least_regret_for_gaussian_parameters(
    horizon: int, *, dim: int, signal: float, noise: float, mu: float
) -> float:
    """Compute a lower bound on the expected regret of mu-GDP agents for Gaussian parameters.

    Arguments, errors and whom the bound covers are as in `least_regret`, but `signal^2` is the mean
    square norm of a parameter and dim = 2 is allowed. Part 4 of the module has the proof.

    >>> bound = least_regret_for_gaussian_parameters
    >>> round(bound(1_000, dim=50, signal=1.0, noise=0.5, mu=0.268), 1)
    37.1
    """
    whole("horizon", horizon, 1)
    whole("dim", dim, 2)
    positive("signal", signal)
    positive("noise", noise)
    if mu != np.inf:
        at_least("mu", mu, 0)
    last, each = groups(horizon)
    known = information(last - 1, dim, 1 / (dim * noise**2), mu)
    best = np.zeros(len(last))
    for width in np.geomspace(0.05 / sqrt(dim), 3, _WINDOW_WIDTHS):
        lost = np.zeros(len(last))
        for mass, length, square, J in _windows(dim, float(width)):
            error = dim**2 / (J + signal**2 * known)  # in units of the signal
            lost += mass * np.maximum(length - np.sqrt(np.maximum(square - error, 0)), 0)
        best = np.maximum(best, lost)
    return float(signal * mean_length(dim) / sqrt(2) * (each @ best))


def _windows(dim: int, width: float) -> Iterator[tuple[float, float, float, float]]:
    """Yield each window's P(j), E_j|D|, E_j|D|^2 and Fisher information J_j (part 4), for S = 1."""
    nodes, weights = np.polynomial.legendre.leggauss(_WINDOW_NODES)
    for centre in np.arange(0, 1 + _MAX_DEVIATIONS / sqrt(dim) + width, width):
        low, high = max(0.0, centre - width), centre + width
        rho = low + (high - low) * (nodes + 1) / 2
        phase = pi * (rho - centre) / (2 * width)
        p = weights * (high - low) / 2 * _density(rho, dim) * np.cos(phase) ** 2
        mass = float(p.sum())
        if mass > _MIN_WINDOW_MASS:
            J = p @ (pi / width * np.tan(phase) + rho * dim) ** 2 / mass
            yield mass, float(p @ rho) / mass, float(p @ rho**2) / mass, float(J)


def _density(rho: Floats, dim: int) -> Floats:
    """Return the density at `rho` of the norm of a N(0, I / dim) vector in `dim` dimensions."""
    power = (dim - 1) * np.log(rho) - dim * rho**2 / 2
    return np.exp(power + dim / 2 * log(dim) - (dim / 2 - 1) * log(2) - gammaln(dim / 2))
