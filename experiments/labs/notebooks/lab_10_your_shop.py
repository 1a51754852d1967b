# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Lab 10: Your shop
#
# **Goal.** Turn a table of offers into a shop that can be played, say what its fit can and cannot
# know, and draw what privacy costs there in dollars.
#
# **You need.** Labs 1, 2 and 4. A table of your own, if you have one.
#
# One row of such a table is one offer to one customer: the price, whether she bought, and what was
# known of her. Ours are 1,070 purchases of orange juice of two brands. We sell one of them. `rival`
# is the price of the other, `loyalty` how faithful the customer was to the other so far, from 0 to
# 1, and `week` the store and the week.

# %%
import warnings
from importlib.resources import files
from math import inf

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns

from dpbandit import InputError, compare, recommend
from dpbandit.envs import PricingFromLog
from dpbandit.experiments.labs import check

sns.set_theme(style="ticks", palette="colorblind")

juice = pd.read_csv(files("dpbandit.envs") / "data" / "oj.csv.gz")
table = pd.DataFrame(
    {
        "price": juice["SalePriceMM"],
        "sold": (juice["Purchase"] == "MM").astype(int),
        "rival": juice["SalePriceCH"],
        "loyalty": juice["LoyalCH"],
        "week": juice["StoreID"].astype(str) + "/" + juice["WeekofPurchase"].astype(str),
    }
)
table.head()

# %% [markdown]
# ## 1. From a table to a shop
#
# `PricingFromLog` fits a logit of sales once and freezes it: the chance of a sale is
# $1 / (1 + e^{-s})$, where $s$ depends on the price and the features. The **slope** is what one
# dollar more adds to $s$, on average over rows, and **z** is the slope divided by its standard
# error. All bounds are given and public: none is read off the data, because contexts are scaled by
# them.

# %%
PUBLIC = {
    "features": {"rival": (1.39, 2.09), "loyalty": (0, 1)},
    "price_range": (1.19, 2.29),
    "unit_cost": 0.8,
}


def shop_of(log: pd.DataFrame, **settings) -> PricingFromLog:
    """The shop of a log, with the bounds above unless others are given."""
    return PricingFromLog(log, **{**PUBLIC, **settings})


warnings.simplefilter("ignore", UserWarning)  # `print(shop)` has every caution
shop = shop_of(table)
print(shop)
assert -3.2 < shop.diagnostics.slope < -2.2  # dollars; three standard errors either way

# %% [markdown]
# **Exercise 10.1.** Many shops keep a table of their sales only. What happens if you hand one over,
# and why could no program do better? Try it, and catch the `InputError`. Call its text `refused`.

# %% [markdown] tags=["hint"]
# `table[table["sold"] == 1]`. How many customers did *not* buy at 1.99?

# %% tags=["solution"]
try:
    shop_of(table[table["sold"] == 1])
except InputError as refusal:
    refused = str(refusal)
    print(refused)

# %% [markdown] tags=["solution"]
# Sales at a price are customers at that price times the probability of buying. Who never bought is
# in no row, so the probability is anybody's guess: 100 sales at 1.99 may be all of 100 customers or
# one in ten of 1,000.

# %% tags=["check"]
check("10.1", refused)

# %% [markdown]
# ## 2. What the fit knows
#
# Held out: five fits, each without a fifth of the rows, say how likely a sale was in that fifth. If
# they are calibrated, tenths of the log lie on the diagonal.

# %%
held = shop.diagnostics.held_out
print(held)
axes = held.plot(ax=plt.subplots(figsize=(4.5, 4.5))[1])
assert held.calibrated
assert held.log_likelihood > held.constant + 0.2  # nats a row; folds move it by 0.01

# %% [markdown]
# **Exercise 10.2.** The z of the slope takes rows for independent. But a store has one price for a
# whole week, and whatever else happened that week happened to all its customers. Fit again with
# `clusters="week"` and compare `z` with `z_clustered`. Would you still believe the slope? Call the
# diagnostics of that fit `clustered`.

# %% [markdown] tags=["hint"]
# `shop_of(table, clusters="week").diagnostics`.

# %% tags=["solution"]
clustered = shop_of(table, clusters="week").diagnostics
print(f"by rows {clustered.z:.2f}, by {table['week'].nunique()} weeks {clustered.z_clustered:.2f}")

# %% [markdown] tags=["solution"]
# By weeks there are 250 experiments and not 1,070, so the error is larger and z nearer to 0. It is
# still far from 0. What both leave out: whether prices were lowered *because* of demand.

# %% tags=["check"]
check("10.2", clustered)

# %% [markdown]
# ## 3. What nobody can know
#
# A world of ours, so that we know the truth: a dollar costs 1 in the logit. Somebody runs
# promotions whenever demand is high, and writes down neither.

# %%
TRUE = -1.0


def offers(n: int, promoted: bool, seed: int) -> pd.DataFrame:
    """A log; prices follow a demand that is in no column, or are drawn at random."""
    rng = np.random.default_rng(seed)
    demand = 1.5 * rng.standard_normal(n)
    price = 2 - 0.8 * np.tanh(demand) if promoted else rng.uniform(1, 3, n)
    price = (price + rng.uniform(-0.2, 0.2, n)).clip(1, 3)
    bought = rng.random(n) < 1 / (1 + np.exp(-(2 + demand + TRUE * price)))
    return pd.DataFrame({"price": price, "sold": bought.astype(int)})


OURS = {"features": {}, "price_range": (1, 3)}
promotions = shop_of(offers(5_000, promoted=True, seed=0), **OURS).diagnostics
print(f"truth {TRUE}, fitted {promotions.slope:.2f}, z {promotions.z:.0f}")
print(promotions.held_out)
assert promotions.slope < 2 * TRUE  # an error of more than 100 %, with z beyond -20
assert promotions.z < -20
assert promotions.held_out.calibrated

# %% [markdown]
# The held-out rows were promoted in the same way, so they confirm the wrong slope. No test on such
# a log can tell.
#
# **Exercise 10.3.** What can tell is chance. Take 1,000 offers at prices drawn at random (seed 1)
# and fit them. How far is the slope from the truth, in standard errors? Why is it not exactly on
# it, even with endless data? Call the slope `random_slope`.

# %% [markdown] tags=["hint"]
# The standard error is the slope over z. For the last question: what does averaging over a hidden
# demand do to a logistic curve?

# %% tags=["solution"]
random_prices = shop_of(offers(1_000, promoted=False, seed=1), **OURS).diagnostics
error = random_prices.slope / random_prices.z
print(f"{random_prices.slope:.2f} +- {error:.2f}")
random_slope = random_prices.slope

# %% [markdown] tags=["solution"]
# The truth is about what *one* customer does. The average of logistic curves that are shifted
# against each other is flatter than each, so the slope of the average customer is nearer to 0; and
# that is the slope a shop needs that cannot see the hidden demand. A thousand random prices tell it
# better than five thousand that were chosen.

# %% tags=["check"]
check("10.3", random_slope)

# %% [markdown]
# **Exercise 10.4.** How many random offers does it take? You want the standard error of the slope
# to be a tenth of the slope. Fit 600, 1,200, 3,600 and 7,200 offers at random prices (seed 2), look
# at how the error falls, and say from how many offers on it is small enough: a number,
# `offers_needed`. What would the same demand cost in offers if the price moved by a fifth as much?

# %% [markdown] tags=["hint"]
# The z of the slope is the slope over its error, so you want a z of -10. z grows like the root of
# the number of offers: each of the four fits tells a number on its own, and you may average them.

# %% tags=["solution"]
found = []
for n in (600, 1_200, 3_600, 7_200):
    z = shop_of(offers(n, promoted=False, seed=2), **OURS).diagnostics.z
    found.append(n * (10 / z) ** 2)
    print(f"{n:5} offers: z {z:6.1f}, so {found[-1]:,.0f} offers for a z of -10")
offers_needed = float(np.mean(found))

# %% [markdown] tags=["solution"]
# An error falls with the root of the number of offers and with the spread of prices. A fifth of the
# spread costs 25 times as many offers. So a short trial with bold prices tells more than a year of
# timid ones; and what bold prices lose meanwhile is the price of knowing.

# %% tags=["check"]
check("10.4", offers_needed)

# %% [markdown]
# ## 4. Dollars lost against epsilon
#
# Now play in the shop of section 1. FADE learns demand privately, at four epsilons. Beside it has
# to stand a good agent *without* privacy, which `recommend(shop, inf)` names: it learns a logit of
# sales, too. Against an agent that learns each price by itself, such as LinUCB, privacy would seem
# to earn money.

# %%
EPSILONS = (0.1, 0.3, 1.0, 3.0)
PUBLIC_AGENT = recommend(shop, inf)
agents = [PUBLIC_AGENT, *(f"fade:epsilon={epsilon}" for epsilon in EPSILONS)]
results = compare(shop, agents, horizon=1_000, replicas=100, seed=10, progress=False)
results.summary()[["agent", "mean", "se", "certified_epsilon"]]

# %% tags=["picture"]
axes = results.frontier(ax=plt.subplots(figsize=(8, 4), layout="constrained")[1])
axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
axes.set_title("Orange juice: what privacy costs in dollars", loc="left")
end = results.summary().set_index("agent")["mean"]
assert end["fade:epsilon=0.1"] > end["fade:epsilon=1.0"]  # by more than 4 standard errors
assert end["fade:epsilon=1.0"] < end["BestFixed"]

# %% [markdown]
# In words: times the regret of the agent without privacy, and dollars per 1,000 customers, beside
# what one fixed price would lose.

# %%
for epsilon in EPSILONS:
    private = end[f"fade:epsilon={epsilon}"]
    more = private - end[PUBLIC_AGENT]  # of 1,000 customers
    print(
        f"epsilon {epsilon}: {private / end[PUBLIC_AGENT]:.1f} times, {more:.0f} dollars more per "
        f"1,000 customers; one fixed price loses {end['BestFixed']:.0f}"
    )
assert end["fade:epsilon=0.1"] > end[PUBLIC_AGENT]  # by more than 30 standard errors

# %% [markdown]
# **Exercise 10.5.** Somebody wants to publish this figure and writes "epsilon 1 protects the 1,070
# buyers in our log". What is wrong? In how many of 8,000 rounds does one row of the log occur, on
# average? And what else in this notebook is a function of the log? Call the number `rounds_a_row`.

# %% [markdown] tags=["hint"]
# Customers are rows drawn with replacement. For the list: go through the notebook from above, and
# ask of every output whether another log would have changed it.

# %% tags=["solution"]
rounds_a_row = 8_000 / len(table)
print(f"{rounds_a_row:.1f} rounds a row")

# %% [markdown] tags=["solution"]
# The certificate is about one simulated customer of one round. A row is several of them, and above
# all it is in the demand curve itself, which was fitted without any noise. So are the diagnostics,
# the calibration plot, the contexts and the regret in the figure. What the figure answers is
# another question: if *future* customers are like these, and are served by such an agent, what does
# their privacy cost?

# %% tags=["check"]
check("10.5", rounds_a_row)

# %% [markdown]
# ## What to remember
#
# * A log of offers, sold or not, with **public bounds**, becomes a shop in one call; one that
#   cannot tell what a price does is refused.
# * Held-out tests find a bad fit. They **do not find a wrong cause**: randomise a few prices.
# * Regret is under the fitted model, and a certificate protects **future** customers, not the log.
