"""Fit `thornton_incentives.json` again, with the numbers that `incentives.md` states::

    pip install causaldata==0.1.5            # or dpbandit[data]
    python envs/data/fit_thornton.py           # rewrite thornton_incentives.json
    python envs/data/fit_thornton.py --check   # exit 1 if it differs from a fresh fit

The data, `thornton_hiv` of the package causaldata, are not part of dpbandit.
"""

import hashlib
import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit
from scipy.stats import linregress

FILE = Path(__file__).with_name("thornton_incentives.json")  # file that is written
COLUMNS = ["got", "tinc", "distvct", "age", "hiv2004"]  # columns of the data that are used
EDGES = [0.05, 0.25, 0.45, 0.5, 0.9, 1.0, 1.8, 2.0]
"""Amounts, in dollars, that separate nine levels of payments, each offered to at least 90 people"""
VALUE = 8.0
"""Assumed value of one fetched test result, in dollars"""


def fit() -> dict[str, Any]:
    """Return the content of `thornton_incentives.json` from a fresh fit."""
    package = find_spec("causaldata")
    if package is None or package.origin is None:
        sys.exit("Expected the package causaldata: pip install causaldata==0.1.5")
    table = pd.read_stata(Path(package.origin).parent / "thornton_hiv" / "thornton_hiv.dta")
    table = table.dropna(subset=COLUMNS)
    rows = np.round(table[COLUMNS].to_numpy(dtype=float), 4)
    got, paid, distance, age, hiv = rows.T
    level = np.searchsorted(EDGES, paid)
    offered, fetched = np.bincount(level), np.bincount(level, got)
    dollars = np.bincount(level, paid) / offered
    x = np.column_stack([np.ones(len(got)), paid > 0, paid, distance])
    theta = np.zeros(4)
    for _ in range(30):  # Newton's method
        p = expit(x @ theta)
        fisher = (x * (p * (1 - p))[:, None]).T @ x
        theta += np.linalg.solve(fisher, x.T @ (got - p))
    z = theta / np.sqrt(np.diag(np.linalg.inv(fisher)))
    logits = theta[0] + theta[1] * (dollars > 0) + theta[2] * dollars
    chance = expit(logits[:, None] + theta[3] * distance).mean(axis=1)
    balance = {
        f"{name} on {by}": linregress(on, of).pvalue
        for name, of in (("age", age), ("distance", distance), ("hiv", hiv))
        for by, on in (("amount", paid), ("any", paid > 0))
    }
    return {
        "data_sha256": hashlib.sha256(rows.tobytes()).hexdigest(),
        "people": len(got),
        "amounts": len(np.unique(paid)),
        "dollars": np.round(dollars, 4).tolist(),
        "offered": offered.tolist(),
        "fetched": fetched.astype(int).tolist(),
        "logit": dict(zip(["1", "any", "amount", "distance"], np.round(theta, 4), strict=True)),
        "z": dict(zip(["1", "any", "amount", "distance"], np.round(z, 2), strict=True)),
        "balance": {name: round(float(p), 4) for name, p in balance.items()},
        "value": VALUE,
        "means": np.round(chance - dollars / VALUE, 4).tolist(),
    }


if __name__ == "__main__":
    FOUND = json.dumps(fit(), indent=1) + "\n"
    if "--check" not in sys.argv:
        FILE.write_text(FOUND)
    elif FILE.read_text() != FOUND:
        sys.exit(f"Expected {FILE.name} to be that of a fresh fit:\n{FOUND}")
