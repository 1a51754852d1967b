"""Check `camera_population.json` against the answers it was fitted to, and fit it again::

    python envs/data/fit_camera.py camera.RData           # check the data, fit one logit to all
    python envs/data/fit_camera.py camera.RData --refit   # the population, too (a minute)

Exits with 1 if the data differ, or if an estimate is further than 3 posterior standard deviations
from the stored one. dpbandit does not use this program, and it writes no file.

The answers are the data set `camera` of the R package bayesm 3.1-5 (GPL-2 or later), which is not
part of dpbandit. R is not needed: download Debian's package (or CRAN's), and the Python package
rdata reads its file::

    apt-get download r-cran-bayesm && dpkg-deb -x r-cran-bayesm_*.deb bayesm
    find bayesm -name camera.RData
    pip install rdata

The estimator is Metropolis within Gibbs. Person i of 332 has theta_i ~ N(m, C) in R^10 and utility
theta_1..9 . x - exp(theta_10) price + logit error for attributes x, 0 for none. Proposals for
theta_i have covariance s_i^2 (H_i + C^-1)^-1, H_i her information, tuned only while burning in.
Given theta, m is normal (prior N(0, 100 I)) and C inverse Wishart (prior with 13 degrees of freedom
and scale matrix 13 diag(1, ..., 1, 0.25)).
"""

import hashlib
import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax
from scipy.stats import invwishart

Array = NDArray[np.float64]

# stored fit: mean and covariance of part-worths in the population, and their errors
POPULATION = json.loads(Path(__file__).with_name("camera_population.json").read_text())
PEOPLE, TASKS, D = 332, 16, 10  # of the survey; number of coefficients of a person
SWEEPS, BURN_IN, THIN, CHAINS = 16_000, 4_000, 10, 2  # of the Markov chains
ACCEPTANCE = 0.28  # share of accepted proposals to which the step sizes are tuned


def load(path: str) -> tuple[Array, NDArray[np.int64]]:
    """Read the cameras of each person and task, (332, 16, 5, 10), with "none" last, and choices."""
    people: Any = import_module("rdata").read_rda(path)["camera"]
    displayed = np.array([np.asarray(one["X"], float).reshape(TASKS, 5, D) for one in people])
    chosen = np.array([np.asarray(one["y"], int) - 1 for one in people])
    rows = np.concatenate([displayed.reshape(PEOPLE, -1), chosen], axis=1)
    if hashlib.sha256(np.round(rows, 2).tobytes()).hexdigest() != POPULATION["data_sha256"]:
        sys.exit(f"Expected {path} to hold the data set camera of bayesm 3.1-5, got another.")
    return displayed, chosen


def pooled(displayed: Array, chosen: NDArray[np.int64]) -> tuple[Array, float]:
    """Fit one logit to all people; return coefficients and mean log-likelihood per choice task."""
    J, D = displayed.shape[2:]
    x, theta = displayed.reshape(-1, J, D), np.zeros(D)
    taken = x[np.arange(len(x)), chosen.ravel()]
    for _ in range(30):
        p = softmax(x @ theta, axis=1)
        mean = np.einsum("uj,ujd->ud", p, x)
        H = np.einsum("nj,nja,njb->ab", p, x, x) - mean.T @ mean
        theta = theta + np.linalg.solve(H, (taken - mean).sum(axis=0))
    return theta, float(np.mean(taken @ theta - logsumexp(x @ theta, axis=1)))


def part_worths(theta: Array) -> Array:
    """Replace the last entry of theta, log price sensitivity, by the price coefficient -exp(.)."""
    return np.concatenate([theta[..., :-1], -np.exp(theta[..., -1:])], axis=-1)


def chain(displayed: Array, chosen: NDArray[np.int64], seed: int) -> tuple[Array, Array]:
    """Run one Markov chain; return thinned draws of mean (n, d) and covariance of theta."""
    rng = np.random.default_rng(seed)
    person, task = np.indices(chosen.shape)
    N, tasks, J, D = displayed.shape
    flat = displayed.reshape(N, -1, D)

    def utilities(theta: Array) -> Array:
        return (flat @ part_worths(theta)[..., None]).reshape(N, tasks, J)

    def log_likelihood(theta: Array) -> Array:
        u = utilities(theta)
        return np.asarray((u[person, task, chosen] - logsumexp(u, axis=2)).sum(axis=1))

    m, C = np.zeros(D), np.diag(np.r_[np.full(D - 1, 4.0), 0.5])
    theta = np.zeros((N, D))
    fit, running, log_s = log_likelihood(theta), theta, np.zeros(N)
    roots, draws_m, draws_C = np.zeros((N, D, D)), [], []
    for sweep in range(SWEEPS):
        P = np.linalg.inv(C)
        burning = sweep < BURN_IN
        if burning and sweep % 100 == 0:
            x = displayed * np.append(np.ones(D - 1), 0.0)  # derivatives of the utility
            x[..., -1] = displayed[..., -1] * -np.exp(running[:, -1])[:, None, None]
            p = softmax(utilities(running), axis=2)
            mean = np.einsum("itj,itjd->itd", p, x)
            H = np.einsum("itj,itja,itjb->iab", p, x, x) - np.einsum("ita,itb->iab", mean, mean)
            roots = np.linalg.cholesky(np.linalg.inv(H + P))
        walk = (roots @ rng.standard_normal((N, D, 1)))[..., 0]
        tried = theta + np.exp(log_s)[:, None] * walk
        new = log_likelihood(tried)
        prior = np.einsum("ia,ab,ib->i", tried - m, P, tried - m)
        prior -= np.einsum("ia,ab,ib->i", theta - m, P, theta - m)
        won = np.log(rng.random(N)) < new - fit - prior / 2
        theta, fit = np.where(won[:, None], tried, theta), np.where(won, new, fit)
        if burning:
            log_s += 0.05 * (won - ACCEPTANCE)
            running = running + (theta - running) / min(sweep + 1, 500)
        inside = np.linalg.inv(N * P + np.eye(D) / 100)
        m = rng.multivariate_normal(inside @ P @ theta.sum(axis=0), inside)
        scatter = (D + 3) * np.diag(np.r_[np.ones(D - 1), 0.25]) + (theta - m).T @ (theta - m)
        C = np.asarray(invwishart.rvs(D + 3 + N, scatter, random_state=rng))
        if not burning and sweep % THIN == 0:
            draws_m.append(m)
            draws_C.append(C)
    return np.array(draws_m), np.array(draws_C)


def agree(chains: list[tuple[Array, Array]], estimates: dict[str, Any]) -> bool:
    """Print fresh and stored means and standard deviations; return True if both agree."""
    m = np.concatenate([one for one, _ in chains])
    sd = np.sqrt(np.diagonal(np.concatenate([one for _, one in chains]), axis1=1, axis2=2))
    found = (("mean", m.mean(axis=0)), ("sd", sd.mean(axis=0)))
    same = [
        compare(name, now, np.array(estimates[name]), np.array(estimates[f"{name}_posterior_sd"]))
        for name, now in found
    ]
    return all(same)


def compare(name: str, found: Array, frozen: Array, posterior_sd: Array) -> bool:
    """Print fresh and stored values; return True if all agree within 3 posterior stddevs."""
    z = (found - frozen) / posterior_sd
    print(f"{name:>8}  now {np.round(found, 2)}")
    print(f"{'':>8}  frozen {frozen}, off by at most {np.abs(z).max():.1f} posterior sd")
    return bool(np.abs(z).max() <= 3)


def main(*words: str) -> None:
    """Check the data, refit with `--refit`, and exit with 1 if numbers disagree."""
    paths = [word for word in words if word != "--refit"]
    if len(paths) != 1:
        sys.exit(__doc__)
    displayed, chosen = load(paths[0])
    theta, fit = pooled(displayed, chosen)
    print(f"332 people, 16 tasks; none chosen in {100 * (chosen == 4).mean():.1f} %")
    print(f"one logit for everybody: price {theta[-1]:.3f}, log-likelihood a task {fit:.4f}")
    if "--refit" not in words:
        return
    chains = [chain(displayed, chosen, seed) for seed in range(CHAINS)]
    sys.exit(0 if agree(chains, POPULATION) else 1)


if __name__ == "__main__":
    main(*sys.argv[1:])
