"""Speed, in CPU-seconds of one process, beside a plain NumPy loop timed in the same process::

    pytest benchmarks -n 0 --benchmark-columns=min,median,rounds

Absolute times depend on the machine; the asserted ratios held on a noisy two-core one. Each
figure is the least of several runs of either side, taken in turn.
"""

import time
import tracemalloc

import numpy as np
import pytest

from dpbandit import audit, compare
from dpbandit.agents import (
    DPUCB,
    ExponentialLeader,
    LinUCB,
    PrivateBandit,
    ShrinkingDartboard,
    SparseVectorExperts,
)
from dpbandit.base import Streams
from dpbandit.experiments import CASES
from dpbandit.privacy import BLT, ClippedVectors, Tree
from dpbandit.privacy.calibrated import noisy_prefix_sum
from dpbandit.results.runs import log_marks
from dpbandit.running.environments import problem_maker
from dpbandit.running.loop import play

T = 10_000


def plain_linucb(K, d, alpha=0.5, seed=0):
    """What a careful student writes: one run, disjoint LinUCB, regret logged every round."""
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
    """The same through the loop of `compare`: environment, agent and regret logging."""
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
    """Replica-rounds per CPU-second over those of the plain loop."""
    ours, plain = [], []

    def both():
        plain.append(cpu_seconds(lambda: plain_linucb(K, d)))
        ours.append(cpu_seconds(lambda: batched_linucb(K, d, R)))

    benchmark.pedantic(both, rounds=5)
    ratio = R * min(plain) / min(ours)
    benchmark.extra_info["ratio to the plain loop"] = round(ratio, 2)
    benchmark.extra_info["replica-rounds per CPU-second"] = round(T * R / min(ours))
    assert ratio >= least


def test_dp_ucb_in_five_cpu_seconds(benchmark):
    """d = 5, K = 2, T = 10^5, R = 20, a release every 100 rounds, with both baselines."""
    seconds = []

    def work():
        arguments = {"n_actions": 2, "dim": 5}
        agents = {"DPUCB": DPUCB(refresh_every=100)}
        return compare(
            "dpbandit/GLMBandit-v0",
            agents,
            horizon=100_000,
            replicas=20,
            env_kwargs=arguments,
            progress=False,
        )

    benchmark.pedantic(lambda: seconds.append(cpu_seconds(work)), rounds=2)
    assert min(seconds) <= 5.0


@pytest.mark.parametrize(
    ("agent", "settings", "most"),
    [
        ("dp-hdb", {}, 10.0),
        ("dp-hdb-choices", {}, 10.0),
        ("batch-moment", {}, 10.0),
        ("fade", {}, 10.0),
        ("fliphat", {}, 20.0),
        ("dp-ucb", {}, 60.0),
    ],
)
def test_reference_problem_p1(benchmark, agent, settings, most):
    """P1 (T = 10^4, d = 50, K = 2), 50 replicas, environment and calibration included."""
    case, seconds = CASES["contextual/p1"], []
    problem = problem_maker(case.environment)(**{**case.env_kwargs, "horizon": T})
    config = case.config(agent, settings)

    def work():
        return play(problem, config, [(0, r) for r in range(50)], marks=log_marks(T))

    benchmark.pedantic(lambda: seconds.append(cpu_seconds(work)), rounds=2)
    assert min(seconds) <= most


@pytest.mark.parametrize("kind", [Tree(), BLT()], ids=str)
def test_private_sums_against_drawing_their_noise(benchmark, kind):
    """100 replicas x 65 coordinates: the whole release over the floor, drawing the normals."""
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


def test_audit_of_dp_ucb(benchmark):
    """`dpbandit audit dp-ucb` in one process: d = K = 5, T = 40, 20,000 runs of each world, pilot
    included. A third of it is the agent's 5 x 5 inverses, a fifth its noise."""
    spec = problem_maker("dpbandit/GLMBandit-v0")(horizon=40).spec
    seconds = []

    def work():
        return audit(DPUCB(delta=1e-4), spec, progress=False)

    benchmark.pedantic(lambda: seconds.append(cpu_seconds(work)), rounds=1)
    assert min(seconds) <= 30.0


@pytest.mark.parametrize("instance", ["p-lin", "p-quad"])
def test_private_bandit_of_a_million_rounds(benchmark, instance):
    """64 replicas in five dimensions, certified K-norm noise, environment and loop included: the
    first 50,000 rounds of a million, which shall take a minute in all. The floor is drawing the
    directions."""
    rounds, R, k = 50_000, 64, 5
    problem = problem_maker("dpbandit/ConvexBandit-v0")(instance=instance, horizon=10**6)
    marks, config = log_marks(rounds), PrivateBandit(noise="k-norm")
    whole, floor = [], []

    def work():
        return play(problem, config, [(0, r) for r in range(R)], marks=marks)

    def draw():
        return Streams([(0, r) for r in range(R)]).normals("exploration", k).take(rounds)

    def once():
        whole.append(cpu_seconds(work))
        floor.append(cpu_seconds(draw))

    benchmark.pedantic(once, rounds=3)
    benchmark.extra_info["times the cost of the directions"] = round(min(whole) / min(floor), 2)
    benchmark.extra_info["microseconds a round"] = round(1e6 * min(whole) / rounds, 1)
    assert min(whole) <= 60 * rounds / 10**6


def test_sparse_vector_experts_in_a_minute(benchmark):
    """Certified Algorithm 1, 4096 experts, 100 replicas: the first tenth of 100,000 rounds, which
    shall take a minute in all, and 100 replicas take the memory of a few (R, d) arrays."""
    rounds, R, d = 10_000, 100, 4096
    problem = problem_maker("dpbandit/Experts-v0")(
        n_actions=d, horizon=10 * rounds, shared_table=True
    )
    seconds = []

    def work():
        seeds = [(0, r) for r in range(R)]
        return play(problem, SparseVectorExperts(), seeds, marks=np.array([rounds]))

    benchmark.pedantic(lambda: seconds.append(cpu_seconds(work)), rounds=2)
    tracemalloc.start()
    play(problem, SparseVectorExperts(), [(0, r) for r in range(R)], marks=np.array([200]))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    benchmark.extra_info["(R, d) arrays at most"] = round(most / (8 * R * d), 1)
    assert min(seconds) <= 60 / 10
    assert most <= 20 * 8 * R * d


@pytest.mark.parametrize(
    ("config", "most"), [(ShrinkingDartboard(), 5.0), (ExponentialLeader(), 10.0)], ids=repr
)
def test_experts_that_draw_more_often(benchmark, config, most):
    """10,000 rounds of 256 experts, 100 replicas, environment and calibration included."""
    problem = problem_maker("dpbandit/Experts-v0")(n_actions=256, horizon=10_000, shared_table=True)
    seconds = []

    def work():
        return play(problem, config, [(0, r) for r in range(100)], marks=np.array([10_000]))

    benchmark.pedantic(lambda: seconds.append(cpu_seconds(work)), rounds=2)
    assert min(seconds) <= most
