"""Speed beside a plain NumPy loop, in CPU-seconds of one process::

    pytest benchmarks -n 0 --benchmark-columns=min,median,rounds

Absolute times depend on the machine; the asserted ratios held on a noisy two-core one. Each number
is the least time of several runs, in which the two programs alternate.
"""

import time

import numpy as np
import pytest

from dpbandit.agents import LinUCB
from dpbandit.base import Streams
from dpbandit.privacy import BLT, ClippedVectors, Tree
from dpbandit.privacy.calibrated import noisy_prefix_sum
from dpbandit.results.runs import log_marks
from dpbandit.running.environments import problem_maker
from dpbandit.running.loop import play

T = 10_000  # rounds


def plain_linucb(K, d, alpha=0.5, seed=0):
    """Run one replica of disjoint LinUCB in a plain, careful NumPy loop; log regret every round."""
    rng = np.random.default_rng(seed)
    theta = rng.standard_normal((K, d))
    theta /= np.linalg.norm(theta, axis=1, keepdims=True)
    inverse, moment, estimate = np.stack([np.eye(d)] * K), np.zeros((K, d)), np.zeros((K, d))
    regret, total = np.zeros(T), 0.0
    for t in range(T):
        x = rng.standard_normal(d)
        x /= np.sqrt(x @ x)
        Vx = inverse @ x
        a = int((estimate @ x + alpha * np.sqrt(Vx @ x)).argmax())
        means = theta @ x
        reward = means[a] + 0.1 * rng.standard_normal()
        inverse[a] -= np.outer(Vx[a], Vx[a]) / (1 + Vx[a] @ x)
        moment[a] += reward * x
        estimate[a] = inverse[a] @ moment[a]
        total += means.max() - means[a]
        regret[t] = total
    return regret


def batched_linucb(K, d, R):
    """Run replicas of LinUCB in the loop of `compare`, with environment and logging of regret."""
    problem = problem_maker("dpbandit/GLMBandit-v0")(n_actions=K, dim=d, horizon=T)
    seeds = [(0, r) for r in range(R)]
    agent = LinUCB(alpha=0.5, reward_noise=0.5)
    return play(problem, agent, seeds, marks=log_marks(T))


def cpu_seconds(work):
    start = time.process_time()
    work()
    return time.process_time() - start


@pytest.mark.parametrize(
    ("d", "K", "R", "least"),
    [(50, 2, 20, 3.5), (20, 10, 20, 5.0), (5, 5, 100, 14.0), (50, 2, 1, 0.35)],
)
def test_linucb_against_a_plain_loop(benchmark, d, K, R, least):
    """Compare rounds of all replicas per CPU-second with those of the plain loop."""
    ours, plain = [], []

    def timed_pair():
        plain.append(cpu_seconds(lambda: plain_linucb(K, d)))
        ours.append(cpu_seconds(lambda: batched_linucb(K, d, R)))

    benchmark.pedantic(timed_pair, rounds=5)
    ratio = R * min(plain) / min(ours)
    benchmark.extra_info["ratio to the plain loop"] = round(ratio, 2)
    benchmark.extra_info["replica-rounds per CPU-second"] = round(T * R / min(ours))
    assert ratio >= least


@pytest.mark.parametrize("kind", [Tree(), BLT()], ids=str)
def test_private_sums_against_drawing_their_noise(benchmark, kind):
    """Compare the time of a private sum's noise with that of normals of the same shape."""
    R, d, n = 100, 65, 2000
    x, whole, floor = np.zeros((R, d)), [], []

    def release():
        sums = noisy_prefix_sum(
            kind,
            ClippedVectors(d),
            Streams(range(R)),
            horizon=n + 1,
            refresh_every=1,
            noise_multiplier=1.0,
        )
        noise = sums._noise
        whole.append(cpu_seconds(lambda: [noise() for _ in range(n)]))
        normals = Streams(range(R)).normals("floor", d)
        floor.append(cpu_seconds(lambda: [normals() for _ in range(n)]))
        return sums(x)

    benchmark.pedantic(release, rounds=5)
    benchmark.extra_info["times the cost of the normals"] = round(min(whole) / min(floor), 2)
    assert min(whole) <= 1.6 * min(floor)
