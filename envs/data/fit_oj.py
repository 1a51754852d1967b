"""Fit the demand model for orange juice and store it in `oj_demand.json`::

    python envs/data/fit_oj.py           # fit and write oj_demand.json
    python envs/data/fit_oj.py --check   # fit; exit 1 if oj_demand.json differs

The model is a logit of buying Minute Maid (MM) rather than Citrus Hill (CH), by Newton's method::

    P(buy MM) = 1 / (1 + exp(-(b0 + b1 SalePriceMM + b2 SalePriceCH + b3 LoyalCH)))
"""

import csv
import gzip
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

DATA = Path(__file__).with_name("oj.csv.gz")  # one row per purchase
DEMAND_FILE = Path(__file__).with_name("oj_demand.json")  # file that is written
BRAND = "MM"  # the seller, Minute Maid; the rival is CH, Citrus Hill
FEATURES = ("intercept", "SalePriceMM", "SalePriceCH", "LoyalCH")  # columns of the logit
OWN_PRICE = FEATURES.index("SalePriceMM")  # column of the seller's price
PRICES: Array = np.arange(119, 230, 10) / 100  # the seller's 12 prices, US dollars per carton
UNIT_COST = 0.80  # assumed cost of a carton, US dollars


def load() -> tuple[Array, Array, Array]:
    """Read n rows of 4 features, purchases of the seller's brand (0 or 1), and 6 controls.

    The controls, used only as a check, are two promotion flags and four store indicators.
    """
    with gzip.open(DATA, "rt", newline="") as file:
        rows = list(csv.DictReader(file))
    names = (*FEATURES[1:], "SpecialCH", "SpecialMM", "StoreID")
    table = np.array([[float(row[name]) for name in names] for row in rows])
    prices_and_loyalty, promotions, store = np.split(table, [3, 5], axis=1)
    bought = np.array([float(row["Purchase"] == BRAND) for row in rows])
    controls = np.hstack([promotions, store == np.unique(store)[1:]])
    return np.insert(prices_and_loyalty, 0, 1.0, axis=1), bought, controls


def fit_logit(x: Array, y: Array) -> tuple[Array, Array, float]:
    """Maximise the logit likelihood of answers `y` (n,), given `x` (n, k), by Newton's method.

    Returns the coefficients (k,), their standard errors (inverse Fisher information, rows taken as
    independent) and the log-likelihood.
    """
    coef = np.zeros(x.shape[1])
    for _ in range(50):
        p = buy_probability(x @ coef)
        covariance = np.linalg.inv(x.T @ (x * (p * (1 - p))[:, None]))
        step = covariance @ (x.T @ (y - p))
        coef = coef + step
        if np.abs(step).max() < 1e-12:
            log_likelihood = -float(np.logaddexp(0, (1 - 2 * y) * (x @ coef)).sum())
            return coef, np.sqrt(np.diag(covariance)), log_likelihood
    raise RuntimeError("Newton's method did not converge")


def buy_probability(utility: Array) -> Array:
    """Apply the logistic function elementwise."""
    return 1 / (1 + np.exp(-utility))


def expected_margins(x: Array, coef: Array) -> Array:
    """Return the expected margin, in dollars, of each price for each row, (n, 12)."""
    others = np.delete(x, OWN_PRICE, axis=1) @ np.delete(coef, OWN_PRICE)
    return (PRICES - UNIT_COST) * buy_probability(others[:, None] + coef[OWN_PRICE] * PRICES)


def demand() -> dict[str, Any]:
    """Return the content of `oj_demand.json`, numbers rounded to 10 significant digits."""
    x, y, controls = load()
    coef, se, log_likelihood = fit_logit(x, y)
    coef_c, se_c, _ = fit_logit(np.hstack([x, controls]), y)
    margins = expected_margins(x, coef)
    return {
        "data_sha256": hashlib.sha256(DATA.read_bytes()).hexdigest(),
        "rows": len(y),
        "brand": BRAND,
        "features": list(FEATURES),
        "coefficients": rounded(coef),
        "standard_errors": rounded(se),
        "z_values": rounded(coef / se),
        "log_likelihood": rounded(log_likelihood),
        "prices": rounded(PRICES),
        "unit_cost": UNIT_COST,
        "expected_margin": {
            "uniform_price": rounded(margins.mean()),
            "best_fixed_price": rounded(margins.mean(axis=0).max()),
            "contextual_oracle": rounded(margins.max(axis=1).mean()),
        },
        "own_price_with_store_and_promotion_controls": {
            "coefficient": rounded(coef_c[OWN_PRICE]),
            "standard_error": rounded(se_c[OWN_PRICE]),
            "z_value": rounded(coef_c[OWN_PRICE] / se_c[OWN_PRICE]),
        },
    }


def rounded(x: Any) -> Any:
    """Round a number or a vector to plain floats of 10 significant digits."""
    return [rounded(v) for v in x] if np.ndim(x) else float(f"{x:.10g}")


def main() -> None:
    """Write the model's file or, with `--check`, exit 1 if it differs from a fresh fit."""
    fresh = json.dumps(demand(), indent=2) + "\n"
    if sys.argv[1:] != ["--check"]:
        DEMAND_FILE.write_text(fresh)
    elif DEMAND_FILE.read_text() != fresh:
        sys.exit(f"{DEMAND_FILE.name} differs from a fresh fit")


if __name__ == "__main__":
    main()
