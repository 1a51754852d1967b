"""Ratings files for tests: a known truth in the formats of MovieLens."""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

from tests.envs.contextual.logs import CLICKS, DRINKS, SHOP, clicks, drinks, shop

FORMATS = {"ratings.csv": ",", "u.data": "\t", "ratings.dat": "::"}


def truth(users=240, items=30, rank=2, seed=3):
    """Stars of every user for every item: 3 + means + taste . item, users' tastes on a circle.

    Tastes are evenly spaced, so they sum to 0 and singular vectors have rows of one length.
    """
    rng = np.random.default_rng(seed)
    angle = 2 * np.pi * np.arange(users) / users
    taste = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    loadings = rng.normal(size=(items, rank)) * [0.7, 0.5]
    return taste, 3 + 0.3 * rng.normal(size=items) + taste @ loadings.T


def write(path, stars, observed, header=None):
    """Write the observed cells in the format that the file's name stands for; items are m0, ..."""
    separator = FORMATS[path.name]
    header = path.name == "ratings.csv" if header is None else header
    lines = [separator.join(("userId", "movieId", "rating", "timestamp"))] * header
    for user, item in zip(*np.nonzero(observed), strict=True):
        stamp = 978300000 + user
        lines.append(
            separator.join((f"{user}", f"m{item}", f"{stars[user, item]:.17g}", f"{stamp}"))
        )
    path.write_text("\n".join(lines) + "\n")
    return path


@cache
def example():
    """A ratings.csv whose first items have most ratings: about 4,300 by 240 users, 30 items."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    _, stars = truth()
    rng = np.random.default_rng(4)
    noisy = (2 * (stars + 0.5 * rng.normal(size=stars.shape))).round().clip(1, 10) / 2
    share = np.linspace(0.9, 0.3, stars.shape[1])
    return write(folder / "ratings.csv", noisy, rng.random(stars.shape) < share)


ARGUMENTS = {
    "dpbandit/AssortmentFromLog-v0": {"frame": drinks(n=1000), **DRINKS},
    "dpbandit/PricingFromLog-v0": {"frame": shop(n=1000), **SHOP},
    "dpbandit/RecommendationFromLog-v0": {"frame": clicks(n=1000), **CLICKS},
    "dpbandit/RatingsBandit-v0": {"path": str(example())},
    "dpbandit/RatingsLists-v0": {"path": str(example()), "n_items": 20, "length": 3},
}
"""Arguments without a default, by environment, for tests that try every environment."""
