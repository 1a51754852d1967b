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
# # Lab 4: Private LinUCB on orange-juice prices
#
# **Goal.** Run a private agent beside its public twin on real purchases, read a certificate, and
# say what decides the cost of privacy: epsilon, the horizon, the dimension, or the model.
#
# **You need.** Labs 1 to 3.

# %%
from dataclasses import replace
from functools import cache
from math import inf, sqrt

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns

import dpbandit
from dpbandit.agents import DPUCB, LinUCB, Priced, ShariffSheffetUCB, Uniform
from dpbandit.base.random_streams import Streams
from dpbandit.envs import GLMBandit
from dpbandit.experiments.labs import against, at_end, check, curves, sliders
from dpbandit.privacy.calibrated import least_multiplier
from dpbandit.privacy.prefix_sums import BLT

sns.set_theme(style="ticks", palette="colorblind")
plt.rcParams["figure.constrained_layout.use"] = True
DELTA, CUSTOMERS, RUNS = 1e-5, 2_000, 100

# %% [markdown]
# ## 1. Three shops, the same customers
#
# LinUCB keeps, for each price, two sums over the customers who saw it: $V = I + \sum x x^\top$ and
# $u = \sum r x$. It predicts with $\theta = V^{-1} u$ and adds a bonus where it knows little.
#
# **DP-UCB** (Shariff and Sheffet, 2018) is the same agent, but the sums reach it only through a
# private running sum, as in Lab 3. Nothing else has to change: whatever is computed from noisy sums
# is private.
#
# We run it twice. `calibration="paper"` adds the noise that its paper prints, `"certified"` the
# least noise for which the exact calculation gives the same epsilon. Both **claim** $\varepsilon =
# = 1$. To save time the printed one, too, releases its sums a hundred times, not in every round.

# %%
EVERY = CUSTOMERS // 100  # DP-UCB publishes a hundred times
agents = {
    "LinUCB, not private": LinUCB(),
    "DP-UCB as printed": ShariffSheffetUCB(
        epsilon=1.0, delta=DELTA, calibration="paper", refresh_every=EVERY
    ),
    "DP-UCB certified": DPUCB(epsilon=1.0, delta=DELTA),
}
results = dpbandit.compare(
    "dpbandit/OJPricing-v0", agents, horizon=CUSTOMERS, replicas=RUNS, seed=0, progress=False
)
columns = ["agent", "mean", "se", "claimed_epsilon", "certified_epsilon"]
table = results.summary()[columns].set_index("agent")
print(table.round(3))

# %% [markdown]
# The last column is the **certificate**: what the noise that was really added is worth, by an exact
# calculation. `inf` means that there is no privacy, 0 that no data was looked at.

# %%
printed, certified = (table.loc[name] for name in ("DP-UCB as printed", "DP-UCB certified"))
assert certified["certified_epsilon"] <= 1 < certified["certified_epsilon"] + 1e-6  # all of it used
assert printed["certified_epsilon"] < 0.1  # printed noise: far more privacy than claimed ...
saved = 1 - table["mean"] / table.loc["Uniform", "mean"]  # of what random play loses
print(saved.round(2))
# the standard error of each is 0.01 to 0.02: printed noise leaves next to nothing
assert saved["DP-UCB as printed"] < 0.1
assert saved["DP-UCB certified"] > 0.15

# %% tags=["picture"]
epsilons = table["certified_epsilon"]
worst_first = table["mean"].sort_values(ascending=False).index
labels = {
    name: f"{name} (epsilon {epsilons[name]:.2g})" if 0 < epsilons[name] < inf else name
    for name in worst_first
}
axes = curves(
    results.runs,
    labels=labels,
    title="Both claim epsilon 1. One has 0.05, and hardly beats guessing",
    xlabel="round (one customer each)",
    ylabel="cumulative regret (dollars)",
)
axes.legend(title="agent (epsilon it certifiably has)", alignment="left")
sns.despine()

# %% [markdown]
# **Exercise 4.1.** The printed agent pays for far more privacy than it claims. Which epsilon would
# it have to *claim*, so that its certificate says about 1? Call it `claim`. Use
# `certify(config).epsilon` with the function below, and search.

# %% [markdown] tags=["hint"]
# The certificate grows with the claim, so try 1 and 100 and halve the interval.
# `replace(agents["DP-UCB as printed"], epsilon=...)` is the same agent with another claim.


# %%
def certify(config):
    return dpbandit.certify(config, "OJPricing", horizon=CUSTOMERS, accountants=False)


print(certify(agents["DP-UCB as printed"]))

# %% tags=["solution"]
low, high = 1.0, 100.0
while high - low > 0.01:
    claim = (low + high) / 2
    proof = certify(replace(agents["DP-UCB as printed"], epsilon=claim))
    low, high = (claim, high) if proof.epsilon < 1 else (low, claim)
print(f"claiming epsilon {claim:.1f}, it has {proof.epsilon:.3f}")
assert 10 < claim < 25  # Lab 3 had 13 to 14.5 at another horizon and delta

# %% [markdown] tags=["solution"]
# It is the factor by which printed noise exceeds the least noise of a tree, as in Lab 3, for this
# horizon and this delta: printed noise is a constant over the claim.

# %% tags=["check"]
check("4.1", claim)

# %% [markdown]
# ## 2. How many customers is the noise worth?
#
# The sums grow with every customer. The noise hardly grows. So compare the two. (In units of
# $|x| \le 1$ and $|r| \le 1$, where one customer adds at most 1 to an entry.)

# %%
SENSITIVITY = sqrt(4.5)  # of (x x', r x) together, if |x| <= 1 and |r| <= 1: one customer replaced

scale = SENSITIVITY * least_multiplier(
    BLT(), horizon=CUSTOMERS, refresh_every=EVERY, epsilon=1.0, delta=DELTA
)
source = BLT().of(Streams([0]).normals("noise"), stddev=scale)
noise = np.array([(source(), source.stddev)[1] for _ in range(100)])
customers = EVERY * np.arange(1, 101)
print(f"noise of an entry: {noise[0]:.0f} at the first release, {noise[-1]:.0f} at the last")
print(f"customers for each of 12 prices: {customers[0] / 12:.0f}, then {customers[-1] / 12:.0f}")
assert noise[-1] < 3 * noise[0]  # a hundred times the customers, hardly more noise

# %% [markdown]
# Most entries of $x x^\top$ are far smaller than 1, and each of the 12 prices has sums of its own,
# with noise of its own. The price of privacy is **a number of customers**, and it is paid again for
# every quantity that is learned on its own.
#
# **Exercise 4.2.** So learn fewer quantities. Twelve prices are not twelve unknown things: demand
# falls with the price. `Priced(agent)` learns one model of P(sale | customer, price). Compare
# LinUCB and DP-UCB with and without it, at epsilon 1, on the same customers as above. What matters
# more here, privacy or the model? Call the mean regret of the private agent with the model
# `private`.

# %% [markdown] tags=["hint"]
# The comparison of section 1 once more, with the same horizon, replicas and seed, and each agent
# wrapped in `Priced(...)`. Means stand in the column `mean` of `summary()`.

# %% tags=["solution"]
with_model = dpbandit.compare(
    "dpbandit/OJPricing-v0",
    {
        "LinUCB, demand": Priced(LinUCB()),
        "DP-UCB, demand": Priced(DPUCB(epsilon=1.0, delta=DELTA)),
    },
    horizon=CUSTOMERS,
    replicas=RUNS,
    seed=0,
    progress=False,
)
better = with_model.summary()[columns].set_index("agent")
print(better.round(3))
private, public = better.loc["DP-UCB, demand", "mean"], table.loc["LinUCB, not private", "mean"]
print(f"private with the model loses {private:.0f} dollars, public without it {public:.0f}")
assert private < certified["mean"]  # by about 40 dollars, with an error of 5
assert better.loc["LinUCB, demand", "mean"] < public < private

# %% [markdown] tags=["solution"]
# With 2,000 customers privacy: the model saves the private agent a fifth of its loss, and LinUCB
# without noise is still ahead. With 4,000 the two come near to each other. That would not make
# privacy free, either: what it costs is told against the *best* agent without it, which for prices
# is Thompson sampling with a logit of sales (`dpbandit.recommend(problem, inf)` names it; Lab 10).

# %% tags=["check"]
check("4.2", private)

# %% [markdown]
# ## 3. Regret against epsilon
#
# One epsilon is one point. Here is the curve, for both models, for 1,000 customers. The last
# point, at infinity, is the very same code without noise.

# %%
EPSILONS = [0.1, 1.0, 3.0, 10.0, inf]
configs = {
    (model, e): config
    for e in EPSILONS
    for model, config in {
        "arms": DPUCB(epsilon=e, delta=DELTA),
        "demand": Priced(DPUCB(epsilon=e, delta=DELTA)),
    }.items()
}
sweep = dpbandit.compare(
    "dpbandit/OJPricing-v0",
    {f"{model} {e}": config for (model, e), config in configs.items()},
    horizon=1_000,
    replicas=RUNS,
    seed=1,
    progress=False,
)
final = at_end(sweep)

names = {"arms": "twelve unrelated prices", "demand": "one model of demand"}
axes = against(
    {name: [final[f"{model} {e}"] for e in EPSILONS] for model, name in names.items()},
    {"epsilon of joint differential privacy (∞: without privacy)": EPSILONS},
    title="A model of demand makes use of epsilon, twelve separate prices hardly do",
    ylabel="regret after 1,000 customers (dollars)",
)
for name, dashes in (("Uniform", ":"), ("BestFixed", (0, (5, 1, 1, 1)))):
    axes.axhline(final[name].mean(), color="0.5", ls=dashes, lw=1.2, label=name)
axes.legend(frameon=False)

# paired differences on the same customers, in standard errors of their mean
for model in ("arms", "demand"):
    gain = final[f"{model} 0.1"] - final[f"{model} inf"]
    assert gain.mean() > 4 * gain.std(ddof=1) / sqrt(RUNS)  # privacy costs
gain = final["arms 3.0"] - final["demand 3.0"]
assert gain.mean() > 4 * gain.std(ddof=1) / sqrt(RUNS)  # the model saves
falls = {m: final[f"{m} 10.0"].mean() / final[f"{m} 1.0"].mean() for m in ("arms", "demand")}
assert falls["arms"] > 0.75 > 0.5 > falls["demand"]  # measured 0.85 to 0.88, and 0.42 to 0.44
worse = final["demand 0.1"] - final["Uniform"]
assert worse.mean() > 4 * worse.std(ddof=1) / sqrt(RUNS)

# %% [markdown]
# From 1 to 10 the solid curve falls by a seventh or so: twelve separate models suffer from the
# noise, and from the safety margin against it, at any of these epsilons. One model makes use of a
# larger epsilon: its regret falls to less than half. At 0.1 its few numbers are drowned, and it
# does worse than random play: confident nonsense.
#
# **Exercise 4.3.** A colleague runs this sweep on her customers, picks the epsilon with the best
# regret, and publishes the curve together with the epsilon. What does the certificate of that
# epsilon not cover?

# %% [markdown] tags=["hint"]
# A certificate is about one run whose epsilon was fixed before any data were seen. What else here
# was computed from her customers?

# %% [markdown] tags=["solution"]
# The choice. The certificate holds for one run with an epsilon fixed beforehand. The curve is a
# function of all customers' data, at all epsilons, one of them infinity; the choice made after
# looking at it is, too. Regret itself is computed from exact data. In research with a simulator
# nobody is harmed. A shop has to fix epsilon first, or pay for the choice.

# %% tags=["check"]
check("4.3")

# %% [markdown]
# ## 4. Sliders: epsilon, horizon, dimension
#
# Now a synthetic world, where everything can be turned. Three arms, contexts in $d$ dimensions. We
# measure the **share of the loss of random play** that an agent still has: 0 is the oracle, 1 is
# guessing.


# %%
@cache
def regret_of(config, horizon, dim):
    """Regret in that world at a hundred rounds, (100, RUNS)."""
    problem = GLMBandit(n_actions=3, dim=dim, horizon=horizon)
    marks = np.linspace(2, horizon, 100).astype(int)
    return dpbandit.play(problem, config, [(2, run) for run in range(RUNS)], marks=marks).regret


def shares(epsilon, horizon, dim):
    """name -> share of random play's regret at a hundred rounds, (100, RUNS)."""
    random = regret_of(Uniform(), horizon, dim).mean(axis=1, keepdims=True)
    agents = {"private": DPUCB(epsilon=epsilon, delta=DELTA), "public": LinUCB()}
    return {name: regret_of(config, horizon, dim) / random for name, config in agents.items()}


def show(epsilon=1.0, horizon=1_000, dim=4):
    lines = shares(epsilon, horizon, dim)
    axes = curves(
        lines,
        rounds=np.linspace(2, horizon, 100),
        labels={name: f"{name}: {lines[name][-1].mean():.2f} at the end" for name in lines},
        title=f"epsilon {epsilon:.2g}, horizon {horizon:,}, dimension {dim}",
        ylabel="share of random play's regret",
        ylim=(0, 1.2),
    )
    axes.axhline(1, color="0.6", ls=":", lw=1)
    axes.legend(loc="upper right")


sliders(
    show,
    epsilon=[0.1, 0.3, 1.0, 3.0, 10.0, 30.0],
    horizon=[250, 500, 1_000, 2_000, 4_000],
    dim=[2, 4, 8, 12],
)

# %% [markdown]
# **Exercise 4.4.** Turn one slider at a time and write down how the private share moves. Then make
# three figures: the share at the end against epsilon (0.1 to 10), the horizon (250 to 1,000) and
# the dimension (2 to 8), with the other two at 1, 1,000 and 4. Which of the three would you change
# in practice? Collect the private shares at the end in a dict `private_ends`:
# "epsilon", "horizon" and "dim" with a list each.

# %% [markdown] tags=["hint"]
# `shares(**{**base, what: value})` with `base` the three settings; the last row of `["private"]`
# has the shares at the end, one for each replica.

# %% tags=["solution"]
base = {"epsilon": 1.0, "horizon": 1_000, "dim": 4}
turned = {
    "epsilon": [0.1, 0.3, 1.0, 3.0, 10.0],
    "horizon": [250, 500, 1_000],
    "dim": [2, 4, 8],
}
titles = {"epsilon": "epsilon", "horizon": "horizon (users)", "dim": "dimension (features)"}
private_ends = {}
for what, values in turned.items():
    found = [shares(**{**base, what: value}) for value in values]
    ends = {name: np.array([lines[name][-1] for lines in found]) for name in found[0]}
    private_ends[what] = ends["private"].mean(axis=1)
    setting = {titles[what]: values}
    against(ends, setting, ylabel="share of random play's regret", ylim=(0, 1.2))
for what, grows in (("epsilon", -1), ("horizon", -1), ("dim", 1)):
    # ends differ by 0.3 and more, their standard errors are a few hundredths
    assert grows * (private_ends[what][-1] - private_ends[what][0]) > 0.2

# %% tags=["check"]
check("4.4", private_ends)

# %% [markdown]
# **Exercise 4.5.** The noise is proportional to $1 / \varepsilon$, and the sums to the number of
# users. So what should happen if you halve epsilon and double the horizon? Try $(8, 250)$, $(4,
# 500)$, $(2, 1000)$ and $(1, 2000)$. Call the four private shares at the end `last_shares`.

# %% [markdown] tags=["hint"]
# `shares(epsilon, horizon, 4)["private"][-1]` is the share of every replica at the end; take
# its mean.

# %% tags=["solution"]
pairs = [(8.0, 250), (4.0, 500), (2.0, 1_000), (1.0, 2_000)]
last_shares = [shares(e, T, 4)["private"][-1].mean() for e, T in pairs]
for (e, T), share in zip(pairs, last_shares, strict=True):
    print(f"epsilon {e}, {T:,} users: share {share:.2f}")
# nearly the same: the largest is about a quarter above the smallest
assert max(last_shares) < 1.7 * min(last_shares)

# %% [markdown] tags=["solution"]
# Nearly nothing happens: the *share* depends on $\varepsilon T$. Twice the users buy twice the
# privacy. (The regret in total still grows: it is this share of a larger loss.)

# %% tags=["check"]
check("4.5", last_shares)

# %% [markdown]
# ## What to remember
#
# * A claim is a number in a config. A certificate is a calculation about the noise that is really
#   there.
# * Noise that is more than a claim needs protects more than was promised, and costs nearly
#   everything: who wants that protection should claim it, and who does not should not pay for it.
# * Privacy costs a number of users, roughly proportional to $1 / \varepsilon$, for every quantity
#   that is learned on its own: more users, fewer quantities and better models make it cheap.
# * Epsilon is chosen before looking.
