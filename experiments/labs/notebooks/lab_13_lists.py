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
# # Lab 13: A list, and what was clicked
#
# **Goal.** Say what a user tells who is shown a list, compute what hiding it costs, and see why
# the clicked item should count and not the list.
#
# **You need.** Labs 1, 2 and 4.
#
# A page shows several items in order. What was clicked is known; what was looked at and not
# clicked is known only by a model of how people read.

# %%
from itertools import product

import numpy as np
import seaborn as sns

from dpbandit import audit, compare
from dpbandit.agents import ListFADE
from dpbandit.experiments.labs import against, at_end, check
from dpbandit.losses.click_models import Cascade, PositionBased
from dpbandit.privacy.clicks import ListClicks, features
from dpbandit.privacy.curves import epsilon_of, mu_of

sns.set_theme(style="ticks", palette="colorblind")
RUNS = 100

# %% [markdown]
# ## 1. How people read
#
# In a *cascade* she goes down the list and stops at the first item that attracts her. By
# *positions* she looks at place k with probability chi_k, whatever stands there.

# %%
attraction = np.array([[0.1, 0.5, 0.2, 0.4]])  # of the four items on a list, to one user
cascade, positions = Cascade(4), PositionBased((1.0, 0.5, 1 / 3, 0.25))
print("a click at all, cascade:", cascade.expected(attraction))
print("clicks, by positions:", positions.expected(attraction))
best = -np.sort(-attraction, axis=1)
print("sorted:", cascade.expected(best), positions.expected(best))

# %% [markdown]
# **Exercise 13.1.** By positions sorting helps, in a cascade it changes nothing. Show it for the
# cascade: write `any_click(a)`, the probability that a list with attractions a gets a click.

# %% [markdown] tags=["hint"]
# She leaves without a click if every item in turn fails to attract her.


# %% tags=["solution"]
def any_click(a):
    """1 minus the product of 1 - a: symmetric in its entries."""
    return 1 - np.prod(1 - np.asarray(a))


# %% tags=["check"]
check("13.1", any_click)

# %% [markdown]
# Order still matters for *learning* in a cascade: what comes after the first click was not looked
# at, and tells nothing.

# %%
clicks = np.array([[0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
print("looked at, cascade:\n", cascade.looked_at(clicks))

# %% [markdown]
# ## 2. What one user adds to a sum
#
# The features of item v for a user with tastes u are phi = (1, u * v) / sqrt(2). They are unit
# vectors, and no two of them, of any items and any users, point away from each other: phi . phi'
# >= 0. `list-fade` sums z = phi of the clicked items, clipped to length 1. Let us look for the
# two users that differ most, among all tastes in {-1, 1}^2, on one item.

# %%
v = np.array([[0.6, 0.8]])
tastes = np.array(list(product((-1.0, 1.0), repeat=2)))
phi = features(tastes, np.tile(v, (4, 1, 1)))[:, 0]  # one row for each user
inner = phi @ phi.T
print(inner.round(2))
assert (inner >= -1e-12).all()
farthest = np.sqrt(((phi[:, None] - phi[None]) ** 2).sum(axis=2)).max()
print(f"farthest apart, both clicked: {farthest:.3f}")

# %% [markdown]
# **Exercise 13.2.** Had she a vector of any direction, two users could be 2 apart. Here they are
# not. Find the bound for z, and with it the sensitivity of (z, g G), where G = phi phi' has
# Frobenius norm 1 at most and any two of them have trace(G G') >= 0. Call it `bound(g)`.

# %% [markdown] tags=["hint"]
# |z - z'|^2 = |z|^2 + |z'|^2 - 2 z . z', and the last term is never positive.


# %% tags=["solution"]
def bound(g):
    """sqrt(2 + 2 g^2): 2 for z, 2 g^2 for g G."""
    return np.sqrt(2 + 2 * g**2)


# %% tags=["check"]
check("13.2", bound)

# %% [markdown]
# The program's own statistic, on random users who may say anything: it comes close to its
# sensitivity and never above.

# %%
statistic = ListClicks(model=PositionBased((1.0, 1.0, 1.0)), taste=2, gram_weight=0.5)
rng = np.random.default_rng(13)
users = 4000
u = rng.choice([-1.0, 1.0], size=(1, users, 2))
items = rng.standard_normal((1, users, 3, 2))
items /= np.linalg.norm(items, axis=3, keepdims=True)
said = rng.integers(0, 2, size=(1, users, 3)).astype(float)
each = statistic.total(u, items, said) / statistic.units
moved = np.linalg.norm(each[: users // 2] - each[users // 2 :], axis=1)
print(f"largest of {users // 2:,} differences {moved.max():.3f}, bound {statistic.sensitivity:.3f}")
assert moved.max() <= statistic.sensitivity

# %% [markdown]
# ## 3. A longer list, for less
#
# Three clicks or one: z is never longer than 1. So a user of a longer list costs no more noise,
# and tells about more places. The same 200 items, lists of one and of five, at epsilon 1 and
# without noise.

# %%
LENGTHS = (1, 5)
share = {"epsilon 1": [], "without noise": []}  # % of the regret of uniform lists, for each length
for length in LENGTHS:
    found = compare(
        "ListRecommendation",
        ["list-fade:epsilon=1", "list-fade:epsilon=inf"],
        horizon=1_500,
        replicas=RUNS,
        seed=13,
        env_kwargs={"n_items": 200, "length": length},
        progress=False,
    )
    regret = at_end(found)
    uniform, private = regret["Uniform"].mean(), regret["list-fade:epsilon=1"]
    share["epsilon 1"].append(100 * private / uniform)
    share["without noise"].append(100 * regret["list-fade:epsilon=inf"] / uniform)
    print(f"{length} shown: {private.mean():.0f} at epsilon 1, {uniform:.0f} by uniform lists")
one, five = (values.mean() for values in share["epsilon 1"])
assert five < 0.7 * one  # measured: 54 % against 89 %

# %% tags=["picture"]
axes = against(
    share,
    {"items shown": LENGTHS},
    title="A longer list tells more for the same noise",
    ylabel="regret, % of uniform lists'",
)

# %% [markdown]
# **Exercise 13.3.** Somebody sums the *mean* of y phi over the five places, y = 1 for a click and
# -1 for none, with noise for sensitivity 2. Signal per click: each place has weight 1/5. The
# clicked item of `list-fade` has weight 1, with noise for sqrt(2 + 2 g^2) at g = 1/2. How many
# times more does one click say, in units of noise? Call it `more`.

# %% [markdown] tags=["hint"]
# Weight over sensitivity, for both; a click moves y from -1 to 1.

# %% tags=["solution"]
more = (1 / bound(0.5)) / ((2 / 5) / 2)
print(f"{more:.2f} times")

# %% [markdown] tags=["solution"]
# 3.16 times. A mean hides one user among her own five answers, which nobody asked for: it is the
# user who has to be hidden, and she is hidden by the clip.

# %% tags=["check"]
check("13.3", more)

# %% [markdown]
# ## 4. Who makes the features?
#
# The bound rests on tastes in [-1, 1] and on vectors from the *public* catalogue: the statistic
# makes phi itself. An agent that takes features as they come has no cone, and users can be
# opposite. `check_agent` and audits find that; here is the honest agent before an audit.

# %%
report = audit(ListFADE(epsilon=1.0), "ListRecommendation", env_kwargs={"n_items": 20}, runs=400)
print(report.verdict)
assert not report.flagged

# %% [markdown]
# **Exercise 13.4.** A shop sends phi with every user, "to save time". Let two users have phi and
# -phi, both with a click. By how much more than `bound(0.5)` does (z, g G) move, and what is the
# mu of noise that was made for a mu of 1? Call it `real_mu`. And of noise that was made for epsilon
# 1 at delta 1e-5, which epsilon does it really have at that delta? Call that `real_epsilon`.

# %% [markdown] tags=["hint"]
# z moves by 2. G = phi phi' does not move at all here. `mu_of(epsilon, delta)` and
# `epsilon_of(mu, delta)` turn the two numbers of Gaussian noise into each other.

# %% tags=["solution"]
real_mu = 2 / bound(0.5)
real_epsilon = epsilon_of(real_mu * mu_of(1.0, 1e-5), 1e-5)
print(f"mu {real_mu:.2f}; epsilon {real_epsilon:.2f} in place of 1")

# %% [markdown] tags=["solution"]
# A promise broken by more than a quarter, without a single number in the log that looks wrong.
# Bounds belong to the code that enforces them.

# %% tags=["check"]
check("13.4", real_mu, real_epsilon)

# %% [markdown]
# ## 5. What was shown decides what is clicked
#
# Before there was an agent there was a habit: seven times in ten the shop showed its four items in
# the order 1, 3, 0, 2, otherwise in a random one. Here are 20,000 such lists. Users looked by the
# positions of section 1; how attractive the items are is drawn and is the same for everybody.

# %%
LISTS, CHI = 20_000, np.array([1, 1 / 2, 1 / 3, 1 / 4])
draws = np.random.default_rng(135)
hidden = draws.permutation([0.2, 0.25, 0.3, 0.4])  # attraction of each item
usual = draws.random(LISTS)[:, None] < 0.7
mixed = draws.permuted(np.tile(range(4), (LISTS, 1)), axis=1)
order = np.where(usual, (1, 3, 0, 2), mixed)  # (list, place)
clicked = draws.random((LISTS, 4)) < CHI * hidden[order]
print("the first list:", order[0], "clicked:", clicked[0])
print(f"{clicked.sum():,} clicks, in the four places {clicked.sum(axis=0)}")

# %% [markdown]
# **Exercise 13.5.** How attractive are the items, by these lists? First as dashboards do it: clicks
# on an item over lists that had it, `naive`, four numbers. Then count only what was looked at, on
# average: clicks on an item over the sum of chi over the places where it stood, `corrected`. Does
# the shop's habit follow the better of the two?

# %% [markdown] tags=["hint"]
# `order == item` says where an item stood, in which list and place. Sum `clicked` there, and for
# the second estimate `CHI`, broadcast over lists.

# %% tags=["solution"]
stood = [order == item for item in range(4)]
naive = [clicked[where].sum() / LISTS for where in stood]
corrected = [clicked[where].sum() / (where * CHI).sum() for where in stood]
print("item        0      1      2      3")
for name, values in (("naive", naive), ("corrected", corrected), ("truth", hidden)):
    print(f"{name:9}", " ".join(f"{value:.3f} " for value in values))

# %% [markdown] tags=["solution"]
# The naive estimate repeats the habit: what stood on top was clicked, so it stays on top. Dividing
# by what was looked at undoes it, because chi is known. Where it is not, the three lists in ten
# with a random order tell it: there every item stands equally often in every place.

# %% tags=["check"]
check("13.5", naive, corrected)

# %% [markdown]
# **Exercise 13.6.** Back to section 3. A sum of z has the same noise for lists of any length, so
# what counts is how often z is not 0: how often there is *any* click. Let every item have an
# attraction of 0.2, and place k chi = 1 / k. The users needed for a precision go with one over the
# square of that chance. How many times more users does a list of one need than a list of five? Call
# it `times_more`. And how many more than a list of any length, for ever? Then look at the picture:
# is a longer list always worth its place?

# %% [markdown] tags=["hint"]
# No click on a list of m: a product of 1 - 0.2 / k over its places. It goes to 0 slowly, like a
# power of m.

# %% tags=["solution"]
any_of = {m: 1 - np.prod(1 - 0.2 / np.arange(1, m + 1)) for m in (1, 5, 25, 10_000)}
times_more = (any_of[5] / any_of[1]) ** 2
for m, chance in any_of.items():
    print(f"{m:6,} shown: a click with {chance:.2f}; {(chance / any_of[1]) ** 2:.1f} times fewer")

# %% [markdown] tags=["solution"]
# Nearly four times as many, and never more than 25 times: a user counts once, however much she
# clicks. And the chance grows slowly with the length: to need half of the users that five places
# need takes about 25 places.

# %% tags=["check"]
check("13.6", times_more)

# %% [markdown]
# ## What to remember
#
# * A list is one round of one user: what is protected is the user, not an item of hers.
# * Count the clicked item, not the list: a longer list then tells more for the same noise.
# * A sensitivity is a fact about code: about who makes a feature and who clips it.
# * Divide clicks by what was looked at, not by what was shown.
