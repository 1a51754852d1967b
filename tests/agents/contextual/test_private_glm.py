"""PrivateGLM: the noise of its refits, what they find without it, regret beside a reference."""

import numpy as np
import pytest
from scipy.stats import chi2

from dpbandit.agents.contextual.private_glm import NewtonRefits
from dpbandit.base.random_streams import Streams
from dpbandit.experiments import reproduce
from dpbandit.privacy.mechanism import BudgetExceededError
from dpbandit.specs.models import LINKS

LOGISTIC = LINKS["logistic"]


def newton(replicas, *, mu, norm=4.0, most=1, steps=1, uses=9, dim=2):
    noise = np.array(Streams(range(replicas)).normals("noise", most, steps, dim).take(1)[0])
    return NewtonRefits(LOGISTIC, noise, mu=mu, uses=uses, norm=norm)


def identities(replicas, dim=2):
    return np.tile(np.eye(dim), (replicas, 1, 1))


def test_refits_are_as_noisy_as_they_pay_for():
    """Statistical: 2 x 3 steps at mu = 3 ask for s = 2 sqrt(6) / 3. The first step from 0 on a row
    of zeros is -s z / (1 + s sqrt(2) / S) with S = 10^6. Two-sided chi-square of 8,000 numbers,
    false alarm 1e-6 per change of seed; a fifth less noise is caught (asserted)."""
    R, s = 4000, 2 * 6**0.5 / 3
    refits = newton(R, mu=3.0, norm=1e6, most=2, steps=3)
    refits._noise = refits._noise[:, :, :1]
    zeros, due = np.zeros((R, 2)), np.ones(R, bool)
    theta = refits(zeros, np.zeros(R), due, zeros, identities(R))
    size = (theta**2).sum()
    tails = (chi2.cdf(size / v**2, 2 * R) for v in (s, 0.8 * s))
    right, wrong = (2 * min(p, 1 - p) for p in tails)
    assert right > 1e-6 > wrong


def test_refits_find_the_maximum_likelihood():
    """Oracle: without noise, and P above the Hessian, steps lead where the gradient of all rows is
    0; a replica that is not due keeps its parameter, and nobody has more fits than are paid for."""
    rng = np.random.default_rng(0)
    refits = newton(2, mu=np.inf, steps=90, uses=401)
    start = np.full((2, 2), 0.5)
    X = rng.standard_normal((400, 2, 2)) / 4
    Y = 1.0 * (rng.random((400, 2)) < LOGISTIC.mean(X @ np.array([2.0, -1.0])))
    due, nobody = np.array([True, False]), np.zeros(2, bool)
    for t in range(400):
        theta = refits(X[t], Y[t], due if t == 399 else nobody, start, 30 * identities(2))
    gradient = ((LOGISTIC.mean(X[:, 0] @ theta[0]) - Y[:, 0])[:, None] * X[:, 0]).sum(axis=0)
    assert np.abs(gradient).max() < 1e-6
    assert (theta[1] == start[1]).all()
    with pytest.raises(BudgetExceededError, match="more than 1 fits"):
        refits(X[0], Y[0], due, start, identities(2))


@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_regret_is_that_of_the_reference(epsilon):
    """Both are means of 20 replicas of an independent program; |z| <= 4 has a false-alarm rate of
    6e-5. Uniform play loses 2,150."""
    record = reproduce(
        "contextual/pr2",
        "private-glm",
        settings={"epsilon": epsilon},
        horizon=5000,
        replicas=20,
        seed=11,
        progress=False,
    )
    assert abs(record["z"]) < 4
    assert record["certified_epsilon"] <= epsilon
