"""How often answers from a log without propensities hold, where the hidden reason is known.

    python benchmarks/unrecorded_coverage.py 400 [--out DIR]  # logs for each reason; a quarter hour

Prints, or writes into coverage.csv, a row for each hidden reason and answer.

Customers of `dpbandit/OJPricing-v0` were asked the fifth or the ninth price. The log shows the
rival's price, which moved the choice, and hides the loyalty; the policy always asks the ninth
price. Among customers who see the same rival's price the odds of that were up to 3 times as large
or as small, for a reason: `nothing`, they were not; `loyalty`, for the more loyal half; `the sale`,
a seller who knows who would buy asks them less, the worst that there is of this strength.
"""

from argparse import ArgumentParser
from collections import defaultdict
from math import sqrt
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit

from dpbandit.envs.contextual.orange_juice import demand
from dpbandit.offline import Observed, assess
from dpbandit.specs import ContextualSpec

STRENGTH, GAMMAS, N, FIRST_SEED = 3.0, (1.0, 1.5, 2.0, 3.0), 2000, 1000
REASONS = ("nothing", "loyalty", "the sale")
PRICES = demand().prices[[4, 8]]
ROWS = np.arange(len(demand().context))
BUYS = demand().probability(ROWS[:, None], PRICES)
TRUTH = float((BUYS[:, 1] * (PRICES[1] - demand().cost)).mean())
RIVAL, DISLOYAL = demand().context[:, 1:].T
SPEC = ContextualSpec(n_actions=2, dim=1, horizon=N, reward_low=0.0, reward_high=1.2)


def by_rival(values):
    """Of each row the mean of values over the rows that see the same rival's price."""
    return pd.Series(values).groupby(RIVAL).transform("mean").to_numpy()


def ranks(values):
    """Of each row the share of rows with the same rival's price that have less."""
    return pd.Series(values).groupby(RIVAL).rank(method="first").to_numpy() / counts() - 1e-9


def counts():
    return pd.Series(RIVAL).groupby(RIVAL).transform("size").to_numpy()


LOYAL = ranks(-DISLOYAL) >= 0.5
SALE = by_rival(BUYS[:, 1])
CHANCE = expit(0.7 * RIVAL * sqrt(3))
"""Of the ninth price, by what the log shows."""


def observed(reason, n, rng):
    """A log of n rows and nothing of why."""
    row, luck = rng.integers(0, len(ROWS), n), rng.random(n)
    buys, e = luck[:, None] < BUYS[row], CHANCE[row]
    up, down = expit(np.log(e / (1 - e)) + np.log([[STRENGTH], [1 / STRENGTH]]))
    if reason == "loyalty":  # half of them, so that both sides move by the smaller step
        step = np.minimum(up - e, e - down)
        e = np.where(LOYAL[row], e + step, e - step)
    elif reason == "the sale":  # those who would buy, and others by lot, until the odds are full
        share, m = (up - e) / (up - down), SALE[row]
        coin = np.where(buys[:, 1], share / m, (share - m) / (1 - m))
        e = np.where(rng.random(n) < coin, down, up)
    asked = (rng.random(n) < e).astype(int)
    reward = buys[np.arange(n), asked] * (PRICES[asked] - demand().cost)
    return Observed(spec=SPEC, context=RIVAL[row][:, None], action=asked, reward=reward)


def intervals(log):
    """Of every answer."""
    found = assess(np.tile([0.0, 1.0], (len(log.action), 1)), log, gammas=GAMMAS)
    yield "dr, fitted propensities", found.dr[1:]
    for row in found.bounds.itertuples():
        yield f"bounds, gamma {row.gamma:g}", (row.low, row.high)


def coverage(reason, logs):
    """A row for each answer: the share that holds with its error, the mean width, of how many."""
    held, widths = defaultdict(list), defaultdict(list)
    for seed in range(FIRST_SEED, FIRST_SEED + logs):
        for name, (low, high) in intervals(observed(reason, N, np.random.default_rng(seed))):
            held[name].append(low <= TRUTH <= high)
            widths[name].append(high - low)
    for name, hits in held.items():
        share, width = np.mean(hits), np.mean(widths[name])
        error = sqrt(share * (1 - share) / logs)
        row = {"reason": reason, "answer": name, "held": share, "held_se": error}
        yield row | {"width": width, "logs": logs}


if __name__ == "__main__":
    PARSER = ArgumentParser(description=__doc__)
    PARSER.add_argument("logs", type=int)
    PARSER.add_argument("--out", type=Path)
    ASKED = PARSER.parse_args()
    TABLE = pd.DataFrame([row for reason in REASONS for row in coverage(reason, ASKED.logs)])
    if ASKED.out:
        ASKED.out.mkdir(parents=True, exist_ok=True)
        TABLE.to_csv(ASKED.out / "coverage.csv", index=False)
    else:
        print(TABLE.to_string(index=False, float_format="%.4f"))
