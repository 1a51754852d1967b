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
# # Lab 11: Choice and stock
#
# **Goal.** Say which set of products to offer and why it is not the set of the best products,
# learn it privately, and say why a shop that runs empty tells who bought the last unit.
#
# **You need.** Labs 1, 2 and 4.
#
# Two things that one price cannot show: a customer who chooses among products, and a shelf that
# runs empty.

# %%
from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
from scipy.stats import norm

from dpbandit import certify, compare
from dpbandit.envs import StockPricing
from dpbandit.experiments.labs import check
from dpbandit.specs.choice import best_levels

sns.set_theme(style="ticks", palette="colorblind")

# %% [markdown]
# ## 1. Which set?
#
# In a multinomial logit a customer who is offered a set buys product j with probability v_j / (1
# + sum of v over the set), v_j = exp(utility). What is offered takes customers from the rest of
# the set.

# %%
v = np.array([1.0, 0.8, 0.6, 2.0])
margin = np.array([10.0, 9.0, 7.0, 3.0])  # dollars


def earned(offered) -> float:
    """Expected dollars of a customer who is offered these products."""
    offered = list(offered)
    return float((v[offered] * margin[offered]).sum() / (1 + v[offered].sum()))


for offered in ([0], [0, 1], [0, 1, 2], [0, 1, 2, 3]):
    print(offered, round(earned(offered), 2))
best, value = best_levels(v[:, None], margin[:, None], 4)
best_set = np.flatnonzero(best)
print("the best set:", best_set, round(float(value), 2))
assert best_set.tolist() == [0, 1, 2]  # the bestseller is not in it

# %% [markdown]
# **Exercise 11.1.** The product that sells most, number 3, is not in the best set, and product 2
# is. What separates them? Find the smallest margin at which product 3 would belong into the set,
# to a tenth of a dollar. Call it `least_margin`.

# %% [markdown] tags=["hint"]
# Adding a product helps exactly if its margin is larger than what a customer brings without it.
# Compare `earned([0, 1, 2])` with the margins.

# %% tags=["solution"]
least_margin = earned([0, 1, 2])
print(f"{least_margin:.2f} dollars: what a customer brings without it")

# %% [markdown] tags=["solution"]
# R(A with j) is an average of R(A) and margin j, weighted by 1 + sum of v and v_j. So j belongs
# into the set if and only if its margin is above R, and the best set is "all margins above R":
# ordered by revenue, not by sales. With at most S products that is no longer so, but one number
# still decides: the S largest v_j (margin_j - R), R such that they add up to R.

# %% tags=["check"]
check("11.1", least_margin)

# %% [markdown]
# **Exercise 11.2.** Often there is room for few products. A manager begins with the product that
# earns most alone, and then adds the one that helps most. Prove him wrong: find three products of
# which the one that earns most alone is *not* in the best set of two, and his set of two earns less
# than the best by 2 % or more. Call their weights v_j `weights` and their margins `margins`, two
# lists.

# %% [markdown] tags=["hint"]
# Give one product a weight so large that hardly anybody leaves, at a small margin. What does it do
# to a second one beside it? Write a loop over sets, and try margins.

# %% tags=["solution"]
weights, margins = [10.0, 0.5, 0.5], [1.0, 2.5, 2.5]


def value_of(offered) -> float:
    """Return the expected earnings of a set of these products."""
    total = sum(weights[j] for j in offered)
    return sum(weights[j] * margins[j] for j in offered) / (1 + total)


for size in (1, 2, 3):
    for offered in combinations(range(3), size):
        print(offered, round(value_of(offered), 3))

# %% [markdown] tags=["solution"]
# Product 0 alone earns 10/11, each of the others 0.83. But 0 leaves nothing for a second one: with
# it customers buy what earns 1 in place of what earns 2.50. Whoever adds products one after the
# other cannot take that back. The best set for *each* size has to be searched afresh, with R.

# %% tags=["check"]
check("11.2", weights, margins)

# %% [markdown]
# ## 2. Learn it privately
#
# `fade-mnl` takes private Newton steps of that logit. Ten products, four at a time, 1,500
# customers.

# %%
sets = compare(
    "AssortmentBandit",
    ["mnl-ucb", "fade-mnl:epsilon=4", "fade-mnl:epsilon=1"],
    horizon=1_500,
    replicas=100,
    seed=11,
    progress=False,
)
lost = sets.summary().set_index("agent")["mean"]
print(lost.round(1))
assert lost["fade-mnl:epsilon=4"] < lost["Uniform"] / 10  # measured at a twentieth or less
assert lost["mnl-ucb"] < lost["fade-mnl:epsilon=1"]

# %% [markdown]
# **Exercise 11.3.** `mnl-bandit` offers a set until somebody buys nothing, and then counts.
# Certify it: `certify("mnl-bandit", "AssortmentBandit", ...)` has no epsilon. Would noise on its
# counts help? Think of customer t + 1, who sees the same set again or another one.

# %% [markdown] tags=["hint"]
# The set changes exactly if customer t bought nothing. Who has to see a count for that?

# %% [markdown] tags=["solution"]
# No. That the set stayed the same says that customer t bought; with another answer it would have
# changed for sure. The *end* of an epoch tells it, not what is counted in it. So no epsilon holds
# with a delta below 1 less the chance that the next set happens to be the same. `mnl-counts`
# counts in batches whose ends are public.

# %% tags=["check"]
check("11.3")

# %% [markdown]
# ## 3. A shelf that runs empty
#
# The same orange juice as in lab 4, but 900 cartons for 3,000 customers. No policy can earn more
# than the fluid bound: there is a price of a unit of stock, the *bid price*, and nobody earns
# more from a customer than margin less bid price, plus what the stock is worth.

# %%
shop = StockPricing(horizon=3_000, stock=900)
print(f"no policy earns more than {shop.fluid:.0f} dollars")
for config in ("fade", "uniform"):
    proof = certify(config, shop, accountants=False)
    print(f"{config}: epsilon {proof.epsilon}, {proof.ledger.brief}")
assert np.isinf(certify("uniform", shop, accountants=False).epsilon)

# %% [markdown]
# Even random prices, which look at nobody, are **not covered**: the shop itself says "sold out".
#
# **Exercise 11.4.** Let 899 of the 900 cartons be sold. Customer i wants a carton at any price,
# or at none. What does customer i + 1 read in each case, with which probability? Which is the
# smallest delta that a promise of any epsilon could have? Write one of these letters,
# `least_delta`: (a) 0, (b) 1/900, (c) 1, (d) 1 - e^-epsilon.

# %% [markdown] tags=["hint"]
# delta >= P(event) - e^epsilon P'(event), whichever event you choose. Choose one that never
# happens in the other world.

# %% tags=["solution"]
least_delta = "c"  # "sold out" for sure, and never: e^epsilon times 0 is 0

# %% [markdown] tags=["solution"]
# "Sold out" has probability 1 if customer i bought and 0 if not, whatever prices did before. So
# delta = 1: nothing is promised. The same for "only three left", and for a price that follows the
# stock one to one.

# %% tags=["check"]
check("11.4", least_delta)

# %% [markdown]
# ## 4. A shop without a sign
#
# The leak is what the shop says, not what it charges. With `oversold="order"` it refuses nobody:
# it buys each carton beyond the stock for 2 dollars more, and its answers depend on nobody else.

# %%
ordering = StockPricing(horizon=3_000, stock=900, oversold="order")
proof = certify("fade", ordering, accountants=False)
print(f"fade: epsilon {proof.epsilon:.3f}")
assert proof.epsilon <= 1
RUNS = 100


def earned_in(world) -> np.ndarray:
    """Dollars that `fade` earns in a shop in each run: the fluid bound minus its regret."""
    found = compare(world, "fade", replicas=RUNS, seed=11, progress=False)
    return world.fluid - next(run.regret[-1] for run in found.runs if run.name == "fade")


with_sign, without = earned_in(shop), earned_in(ordering)
for name, dollars in (("refuses", with_sign), ("orders", without)):
    error = dollars.std(ddof=1) / np.sqrt(RUNS)
    print(f"a shop that {name} earns {dollars.mean():.0f} +- {error:.0f} dollars")
assert without.mean() < 0.7 * with_sign.mean()  # by many standard errors

# %% [markdown]
# That is the price of the promise: `fade` does not look at the stock, and orders what it oversells.
#
# **Exercise 11.5.** What would an extra carton have to cost (`order_cost`) so that the promise is
# free? How many cartons `fade` oversells does not depend on their cost, as it looks at neither, so
# two shops are enough to know all. Call the mean number of cartons that are ordered `ordered`, and
# the cost at which both shops earn the same `break_even`.

# %% [markdown] tags=["hint"]
# What an ordering shop earns is a straight line in `order_cost`. Make one more shop, with another
# cost: the slope of the line is minus the number of cartons.

# %% tags=["solution"]
for_nothing = earned_in(StockPricing(horizon=3_000, stock=900, oversold="order", order_cost=0.0))
ordered = (for_nothing - without).mean() / 2
break_even = (for_nothing - with_sign).mean() / ordered
print(f"{ordered:.0f} cartons are ordered; the promise is free at {break_even:.2f} dollars each")

# %% [markdown] tags=["solution"]
# An extra carton is sold for its margin. If it costs less than that, the shop with a sign turns
# away money, and the promise is no price at all but a gain. The margin differs from sale to sale,
# so the break-even point is a mean over what `fade` charges late in the season.

# %% tags=["check"]
check("11.5", ordered, break_even)

# %% [markdown]
# **Exercise 11.6.** A shop that refuses could hide its sign by keeping cartons back: it plans to
# sell fewer than it has. Let 3,000 independent customers buy with probability 0.3 each. How many
# cartons more than the expected sales does it need, so that all are sold with a probability of one
# in a million? Call it `held_back`.

# %% [markdown] tags=["hint"]
# Sales vary by sqrt(T q (1 - q)), and a normal variable exceeds 4.75 standard deviations once in a
# million.

# %% tags=["solution"]
held_back = 4.75 * np.sqrt(3_000 * 0.3 * 0.7)
print(f"{held_back:.0f} cartons kept back")

# %% [markdown] tags=["solution"]
# About 119 cartons. If "sold out" has probability beta at most in both of two neighbouring worlds,
# the shop is within beta of one that never refuses, and delta' = delta + (1 + e^epsilon) beta. But
# beta was computed from a law of customers, and a certificate holds whoever they are: if all want
# a carton, the sign shows. So the certificate still says "not covered".

# %% tags=["check"]
check("11.6", held_back)

# %% tags=["picture"]
spare = np.arange(0, 161, 5)
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for chance in (0.3, 0.1, 0.02):
    beta = norm.sf(spare / np.sqrt(3_000 * chance * (1 - chance)))
    axes.plot(spare, (1 + np.e) * beta, label=f"sales with probability {chance:g}")
axes.axhline(1e-5, color="0.3", linestyle="--", label="delta = 1e-5")
axes.set_yscale("log")
axes.set_ylim(1e-9, 3)
axes.set(xlabel="cartons kept back", ylabel="what the sign adds to delta at epsilon 1")
axes.set_title("Hiding a sign that says sold out, if customers are independent")
axes.legend(frameon=False)
axes.grid(alpha=0.3)
sns.despine(figure)

# %% [markdown]
# ## What to remember
#
# * The best set is ordered by revenue: a product belongs into it if its margin is above what a
#   customer brings without it.
# * When something ends, who sees it end? Lengths of epochs and empty shelves tell single answers,
#   and no noise elsewhere helps.
# * Look at what the world says, not only at what the agent does: who refuses nobody keeps a
#   promise that no agent can keep in a shop with a sign.
