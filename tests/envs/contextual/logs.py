"""Logs of shops and of clicks, drawn from models that are known."""

import warnings

import numpy as np
import pandas as pd
from scipy.special import expit

from dpbandit.envs import PricingFromLog

SHOP = {
    "features": {"age": (18, 90), "shop": ("A", "B", "C")},
    "price_range": (1.0, 3.0),
    "unit_cost": 0.8,
}


def shop(n=5000, *, slope=-2.0, seed=0, hidden=0.0):
    """Offers at prices drawn at random, or moved by `hidden` times what nobody recorded, u.

    The logit of a sale is 4.4 + .4 age + .5 [shop B] + u + slope price, ages on [-1, 1].
    """
    rng = np.random.default_rng(seed)
    age, where = rng.integers(18, 91, n), rng.choice(list("ABC"), n)
    u = 1.5 * rng.standard_normal(n) if hidden else np.zeros(n)
    price = rng.choice(np.linspace(1, 3, 9), n) if not hidden else 2 + hidden * np.tanh(u)
    if hidden:
        price = (price + rng.uniform(-0.1, 0.1, n)).clip(1, 3)
    logit = -2.2 * slope + 0.4 * (age - 54) / 36 + 0.5 * (where == "B") + u + slope * price
    return pd.DataFrame(
        {"price": price, "sold": 1 * (rng.random(n) < expit(logit)), "age": age, "shop": where}
    )


DRINKS = {
    "products": {"cola": "price_cola", "water": "price_water", "juice": "price_juice"},
    "features": {"age": (18, 90)},
    "price_range": (1.0, 3.0),
    "unit_cost": 0.5,
}


def drinks(n=2000, *, slope=-1.5, seed=0):
    """Visits to two or three drinks at random prices; cola appeals to the young.

    Utility is -5/3 slope + (-.8, 0, .4) age + slope price, ages on [-1, 1], none is 0.
    """
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 91, n)
    price = rng.choice(np.linspace(1, 3, 9), (n, 3))
    price[np.arange(n), rng.integers(4, size=n) % 3] = np.where(rng.random(n) < 0.5, np.nan, 2.0)
    utility = -5 / 3 * slope + np.array([-0.8, 0, 0.4]) * (age[:, None] - 54) / 36 + slope * price
    utility = np.where(np.isnan(price), -np.inf, utility)
    gumbel = rng.gumbel(size=(n, 4))
    choice = np.hstack([utility, np.zeros((n, 1))]) + gumbel
    names = np.array([*DRINKS["products"], "none"])
    table = {name: price[:, j] for j, name in enumerate(DRINKS["products"].values())}
    return pd.DataFrame({**table, "bought": names[choice.argmax(axis=1)], "age": age})


CLICKS = {"features": {"age": (18, 90)}, "items": ("news", "sport", "games")}


def clicks(n=3000, *, seed=0, appeal=1.0):
    """Items shown at random; sport appeals to the old, games to the young, `appeal` is how much."""
    rng = np.random.default_rng(seed)
    age, item = rng.integers(18, 91, n), rng.choice(CLICKS["items"], n)
    taste = {"news": 0.0, "sport": 1.5, "games": -1.5}
    logit = -1 + appeal * np.array([taste[i] for i in item]) * (age - 54) / 36
    return pd.DataFrame({"item": item, "click": 1 * (rng.random(n) < expit(logit)), "age": age})


MANY = {"price_range": (1, 3), "prices": (1.5, 2, 2.5), "units": "units", "at_most": 3}
COSTS = {"features": {"cost": (0.4, 1.0)}, "unit_cost": "cost", "unit": "EUR"}


def many(n=4000):
    """Units sold, binomial of 3; the logit of a unit is 3 - 2 price + 5 (cost - .7) / 3."""
    rng = np.random.default_rng(0)
    price, cost = rng.choice(MANY["prices"], n), rng.uniform(0.4, 1.0, n).round(2)
    units = rng.binomial(3, expit(3 - 2 * price + 5 * (cost - 0.7) / 3))
    return pd.DataFrame({"price": price, "cost": cost, "units": units})


def quietly(*args, kind=PricingFromLog, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return kind(*args, **settings)


PERSONAL = {"features": {"age": (18, 90)}, "price_range": (1.0, 3.0), "unit_cost": 0.8}
PERSONAL["person"] = "who"


def visits(people=100, times=8, *, tastes=(1.0, 0.5), seed=0):
    """Offers at random prices to people of one age each; the logit falls by 1.2 a dollar or so."""
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(people), times)
    age, price = rng.integers(18, 91, people)[who], rng.choice(np.linspace(1, 3, 9), len(who))
    level, slope = (sd * rng.standard_normal(people)[who] for sd in tastes)
    logit = 0.3 + 0.4 * (age - 54) / 36 + level - 1.2 * np.exp(slope) * (price - 2)
    sold = 1 * (rng.random(len(who)) < expit(logit))
    return pd.DataFrame({"who": who, "age": age, "price": price, "sold": sold})
