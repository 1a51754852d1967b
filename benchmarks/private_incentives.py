"""What privacy adds to the intervals of a randomised experiment's effects.

    python benchmarks/private_incentives.py 15 [--out DIR]  # draws of the noise; fifteen seconds

Prints, or writes into effects.csv, a row for each payment in `thornton_incentives.json`: by how
much it raised the share of people who fetched their result over that of those who were offered
nothing, without and with privacy, and half the width of the intervals. Private ones come from nine
releases at half of an epsilon of 1, which is what two of them cost that one person can be in.
"""

import json
from argparse import ArgumentParser
from importlib.resources import files
from math import sqrt
from pathlib import Path

import numpy as np
import pandas as pd

from dpbandit.offline import Logged, release
from dpbandit.specs import ContextualSpec

EPSILON, FIRST_SEED = 1.0, 1000
FROZEN = json.loads((files("dpbandit.envs") / "data" / "thornton_incentives.json").read_text())
OFFERED, FETCHED = (np.array(FROZEN[name]) for name in ("offered", "fetched"))
SHARE = OFFERED / OFFERED.sum()


def log():
    """Nobody's row: the counts, one after the other."""
    n, K = int(OFFERED.sum()), len(OFFERED)
    action = np.repeat(np.arange(K), OFFERED)
    pairs = zip(OFFERED, FETCHED, strict=True)
    return Logged(
        spec=ContextualSpec(n_actions=K, dim=1, horizon=n, reward_low=0.0),
        context=np.ones((n, 1)),
        action=action,
        reward=np.concatenate([1.0 * (np.arange(m) < f) for m, f in pairs]),
        propensity=SHARE[action],
        probabilities=np.tile(SHARE, (n, 1)),
    )


def effects(draws):
    """A row for each payment."""
    rows, every = log(), np.eye(len(OFFERED))
    private = [
        [
            release(law, rows, epsilon=EPSILON / 2, clip=1 / share, seed=seed)
            for law, share in zip(every, SHARE, strict=True)
        ]
        for seed in range(FIRST_SEED, FIRST_SEED + draws)
    ]
    mean = FETCHED / OFFERED
    error = np.sqrt(mean * (1 - mean) / OFFERED)
    for k in range(1, len(mean)):
        found = np.array([one[k].value - one[0].value for one in private])
        width = np.array(
            [(one[k].high - one[k].low + one[0].high - one[0].low) / 2 for one in private]
        )
        yield {
            "dollars": f"{FROZEN['dollars'][k]:.2f}",
            "people": OFFERED[k],
            "exact": mean[k] - mean[0],
            "exact_se": sqrt(error[k] ** 2 + error[0] ** 2),
            "exact_half": 1.96 * sqrt(error[k] ** 2 + error[0] ** 2),
            "private": found.mean(),
            "private_se": found.std(ddof=1),
            "private_half": width.mean(),
            "private_half_se": width.std(ddof=1) / sqrt(draws),
        }


if __name__ == "__main__":
    PARSER = ArgumentParser(description=__doc__)
    PARSER.add_argument("draws", type=int)
    PARSER.add_argument("--out", type=Path)
    ASKED = PARSER.parse_args()
    TABLE = pd.DataFrame(effects(ASKED.draws))
    if ASKED.out:
        ASKED.out.mkdir(parents=True, exist_ok=True)
        TABLE.to_csv(ASKED.out / "effects.csv", index=False)
    else:
        print(TABLE.to_string(index=False, float_format="%.4f"))
