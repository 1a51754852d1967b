"""Tables of real data, one user per row, with features and an answer of 1 or -1."""

import csv
import gzip
from functools import cache
from importlib import import_module
from importlib.resources import files

import numpy as np

from dpbandit.base import Floats, Ints, not_installed, whole

_JUICE = ("SalePriceMM", "SalePriceCH", "LoyalCH")  # columns used as features


@cache
def oj() -> Floats:
    """Return 1,070 purchases of orange juice (see `envs/data/README.md`), one per row, (1070, 5).

    Columns: a constant 1; both sale prices and loyalty to Citrus Hill, each scaled to [-1, 1]; the
    answer, 1 where Minute Maid was bought, -1 where Citrus Hill was.
    """
    packed = (files("dpbandit.envs") / "data" / "oj.csv.gz").read_bytes()
    data = list(csv.DictReader(gzip.decompress(packed).decode().splitlines()))
    x = np.array([[float(row[name]) for name in _JUICE] for row in data])
    x = 2 * (x - x.min(axis=0)) / (x.max(axis=0) - x.min(axis=0)) - 1
    y = np.array([1.0 if row["Purchase"] == "MM" else -1.0 for row in data])
    return np.column_stack([np.ones(len(x)), x, y])


@cache
def images() -> tuple[Floats, Ints]:
    """Return scikit-learn's 1,797 images of digits, 64 pixels in [0, 1] each, and the digits.

    Raises `InputError` without scikit-learn. The arrays must not be changed.
    """
    try:
        bundled = import_module("sklearn.datasets").load_digits()
    except ImportError:
        raise not_installed("scikit-learn", "data='digits'", "data") from None
    return np.asarray(bundled.data, dtype=np.float64) / 16, bundled.target.astype(np.int64)


@cache
def digits(digit: int) -> Floats:
    """Return rows of 64 pixels of an image and the answer, 1 if it shows `digit`, else -1."""
    whole("digit", digit, 0, 9)
    pixels, target = images()
    return np.column_stack([pixels, np.where(target == digit, 1.0, -1.0)])
