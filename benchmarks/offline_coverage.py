"""How often intervals of off-policy evaluation hold, and how wide they are.

    python benchmarks/offline_coverage.py 4000 [--out DIR]  # logs of each problem; half an hour

Prints, or writes into coverage.csv, a row for each problem and interval.

Problems: `easy`, weights up to 3, and `hard`, weights of 50 or 0, are five arms with three normal
features; in `adaptive` somebody greedy logs, who explores with probability t^-decay.
"""

from argparse import ArgumentParser
from collections import defaultdict
from itertools import product
from math import sqrt
from pathlib import Path

import numpy as np
import pandas as pd

from dpbandit.offline import TypeLaw
from dpbandit.offline.estimators import Terms
from dpbandit.offline.intervals import (
    Stakes,
    betting,
    bootstrap,
    empirical_bernstein,
    stable,
    student,
    weighted,
)

ALPHA, FIRST_SEED = 0.05, 1000
THETA = np.random.default_rng(7).normal(size=(3, 5))
MEANS = np.array([[0.5, 0.5, 0.2], [0.4, 0.4, 0.4], [0.2, 0.6, 0.4], [0.7, 0.3, 0.5]])
"""Of four types of users, equally many, and three arms."""
TARGETS = {"best": np.eye(3)[MEANS.argmax(axis=1)], "arm 0": np.tile([1.0, 0, 0], (4, 1))}


def logistic(z):
    return 1 / (1 + np.exp(-z))


def softmax(s):
    e = np.exp(s - s.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def independent(kind, n, rng):
    """w, r, a wrong model's value of the policy and of the logged arm, the policy's true value."""
    s = rng.normal(size=(n, 3)) @ THETA
    mean, q = logistic(s - 1), logistic(s / 2 - 1)
    if kind == "easy":
        logging, target = 0.9 * softmax(s / 2) + 0.02, softmax(3 * s)
    else:
        logging, target = np.full((n, 5), 0.02), np.eye(5)[s.argmax(axis=1)]
        logging[np.arange(n), s.argmin(axis=1)] += 0.9
    u = rng.random((n, 1)) * logging.sum(axis=1, keepdims=True)
    arm, row = (logging.cumsum(axis=1) < u).sum(axis=1).clip(0, 4), np.arange(n)
    r = (rng.random(n) < mean[row, arm]) * 1.0
    w = target[row, arm] / logging[row, arm]
    return w, r, (target * q).sum(axis=1), q[row, arm], (target * mean).sum(axis=1).mean()


def adaptive(n, decay, seed):
    """Types, laws (n, 4, 3), arms, rewards, and q from earlier rows of the type."""
    rng = np.random.default_rng(seed)
    tries, won = np.zeros((2, 4, 3))
    kind, luck, answer = rng.integers(0, 4, n), rng.random(n), rng.random(n)
    law, arm, r, q = np.empty((n, 4, 3)), np.empty(n, dtype=int), np.empty(n), np.empty((n, 3))
    for i in range(n):
        explore, s = (i + 1.0) ** -decay, kind[i]
        greedy = np.where(tries == 0, np.inf, won / np.maximum(tries, 1)).argmax(axis=1)
        law[i] = explore / 3
        law[i, np.arange(4), greedy] += 1 - explore
        q[i] = (won[s] + 0.5) / (tries[s] + 1)
        arm[i] = min((law[i, s].cumsum() < luck[i]).sum(), 2)
        r[i] = answer[i] < MEANS[s, arm[i]]
        tries[s, arm[i]] += 1
        won[s, arm[i]] += r[i]
    return kind, law, arm, r, q


def ends(w, r, value, q, w_max):
    """Of every interval that needs no law."""
    zero = np.zeros(len(w))
    terms = {
        "ips": Terms(zero, w * r, w),
        "snips": Terms(zero, w * r, w, normalised=True),
        "dr": Terms(value, w * (r - q), w),
    }
    found = {f"{name} t": student(t, ALPHA) for name, t in terms.items()}
    stakes = Stakes(w * r, w * (1 - r))
    found["empirical Bernstein"] = empirical_bernstein(stakes, ALPHA, w_max)
    for how in ("betting", "betting-cv", "sequence"):
        found[how] = betting(stakes, ALPHA, how, w_max)
    return found, terms


def independent_logs(kind, n, logs):
    rng = np.random.default_rng(99)
    truth = np.mean([independent(kind, 10**5, rng)[-1] for _ in range(20)])
    for seed in range(FIRST_SEED, FIRST_SEED + logs):
        rows = independent(kind, n, np.random.default_rng(seed))[:-1]
        found, terms = ends(*rows, 3.0 if kind == "easy" else 50.0)
        if seed < FIRST_SEED + logs // 8:  # the slowest by far
            found["snips bootstrap"] = bootstrap(terms["snips"], ALPHA, seed)
        yield truth, found


def adaptive_logs(target, decay, n, logs):
    policy = TARGETS[target]
    truth = (policy * MEANS).sum(axis=1).mean()
    for seed in range(FIRST_SEED, FIRST_SEED + logs):
        kind, law, arm, r, q = adaptive(n, decay, seed)
        pi, row = policy[kind], np.arange(n)
        w = pi[row, arm] / law[row, kind, arm]
        found, terms = ends(w, r, (pi * q).sum(axis=1), q[row, arm], 3 * n**decay)
        h = stable(TypeLaw(kind, law, policy), np.zeros((n, 1)), pi)
        for name, weight in (("weighted", h), ("weighted-minvar", h * h)):
            found[name] = weighted(terms["dr"].values, weight, ALPHA)[1:3]
        yield truth, found


def coverage(problem, logs):
    """A row for each interval: the share that holds with its error, the mean width, of how many."""
    held, widths = defaultdict(list), defaultdict(list)
    for truth, found in logs:
        for name, (low, high) in found.items():
            held[name].append(low <= truth <= high)
            widths[name].append(high - low)
    for name, hits in held.items():
        share, n = np.mean(hits), len(hits)
        error, width = sqrt(share * (1 - share) / n), np.mean(widths[name])
        row = {"problem": problem, "interval": name, "held": share, "held_se": error}
        yield row | {"width": width, "logs": n}


if __name__ == "__main__":
    PARSER = ArgumentParser(description=__doc__)
    PARSER.add_argument("logs", type=int)
    PARSER.add_argument("--out", type=Path)
    ASKED = PARSER.parse_args()
    PROBLEMS = {
        f"{kind} {n}": independent_logs(kind, n, ASKED.logs)
        for kind, n in product(("easy", "hard"), (300, 1500))
    } | {
        f"{target}, decay {decay}": adaptive_logs(target, decay, 1500, ASKED.logs)
        for decay, target in product((0.5, 0.8), TARGETS)
    }
    ROWS = pd.DataFrame([row for one, found in PROBLEMS.items() for row in coverage(one, found)])
    if ASKED.out:
        ASKED.out.mkdir(parents=True, exist_ok=True)
        ROWS.to_csv(ASKED.out / "coverage.csv", index=False)
    else:
        print(ROWS.to_string(index=False, float_format="%.4f"))
