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
# # Lab 5: Many features, and a published figure
#
# **Goal.** See why many features make privacy expensive, build the private Frank-Wolfe step that
# is meant to help, and then examine a published figure in which it seems to win.
#
# **You need.** Labs 1 to 4: regret, epsilon, certificates, private LinUCB.
#
# A shop knows 50 things about a customer. Perhaps five of them matter. Without privacy that is an
# easy problem. With privacy every one of the 50 numbers wants its own noise. This lab is about an
# idea to avoid that, *release a choice and not a vector*, and about how to read a figure.

# %%
from math import inf, log, sqrt

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns

import dpbandit
from dpbandit.agents import (
    DPHDB,
    FADE,
    DPHDBChoices,
    DPMoments,
    OnlineFrankWolfe,
    ShariffSheffetUCB,
)
from dpbandit.base.random_streams import Streams
from dpbandit.experiments.figure_5_1.__main__ import HORIZON, PUBLISHED
from dpbandit.experiments.labs import check, curves
from dpbandit.privacy.choices import ExponentialMechanism, GivenScores
from dpbandit.privacy.ledger import Ledger

sns.set_theme(style="ticks", palette="colorblind")
RED = sns.color_palette("colorblind")[3]

# %% [markdown]
# ## 1. A vector is dearer than a choice
#
# Two ways to tell something private about d numbers.
#
# * **All of them.** Add noise to each. The noise has d parts, and its length grows like sqrt(d).
# * **Only which one is largest.** Add noise to each, look in secret, and say the index. A wrong
#   index can only come out if two noises differ by more than the lead of the best number. The
#   largest of d noises grows like log d.
#
# We draw both and look.

# %%
rng = np.random.default_rng(0)
print("      d   length of d noises   largest of d noises   (noises of standard deviation 1)")
for d in (5, 50, 500, 5000):
    normal = rng.standard_normal((200, d))
    gumbel = rng.gumbel(size=(200, d)) * sqrt(6) / np.pi
    length = np.linalg.norm(normal, axis=1).mean()
    largest = gumbel.max(axis=1).mean()
    print(f"{d:7}   {length:18.1f}   {largest:19.1f}")
    assert abs(length / sqrt(d) - 1) < 0.1  # the length spreads by 0.7, so 0.05 in 200 draws

# %% [markdown]
# From d = 5 to d = 5,000 the length grows as sqrt(1000), the largest noise by a few units only.
#
# **Exercise 5.1.** A mean of Gumbel noises is log(d) + 0.577 before we scale it. Predict the last
# column for d = 5,000 and for d = 5,000,000 without drawing anything. Call the two predictions
# `predicted`, as a list.

# %% [markdown] tags=["hint"]
# A column is in noises of standard deviation 1; that of a standard Gumbel variable is pi /
# sqrt(6).

# %% tags=["solution"]
predicted = []
for d in (5_000, 5_000_000):
    predicted.append((log(d) + 0.5772) * sqrt(6) / np.pi)
    print(f"d = {d:9,}: {predicted[-1]:.1f}")
assert abs(largest - predicted[0]) < 0.3  # spread 1, 200 draws: 0.07

# %% tags=["check"]
check("5.1", predicted)

# %% [markdown]
# ## 2. Frank and Wolfe release choices
#
# To fit a sparse parameter, look for the best theta with |theta|_1 <= 1. That set is a diamond with
# 2d corners, +e_j and -e_j. The Frank-Wolfe method walks from corner to corner:
#
#     theta = 0
#     for i = 0, 1, 2, ...
#         g = gradient of the loss at theta
#         v = the corner with the smallest <g, v>         <- a choice, one of 2d
#         theta = theta + c_i (v - theta),  c_i = 2 / (i + 2)
#
# All that is learned from data is *which corner*. After i steps theta has at most i entries that
# are not 0. Here is a linear regression with 50 features, of which 5 matter.

# %%
SIZE, FEATURES, STEPS = 4_000, 50, 40


def users(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Contexts with entries in [-1, 1], and answers."""
    x = rng.uniform(-1, 1, (n, FEATURES))
    return x, x @ TRUTH + 0.05 * rng.standard_normal(n)


TRUTH = np.zeros(FEATURES)
TRUTH[[3, 11, 19, 28, 42]] = 0.2
CORNERS = np.concatenate([np.eye(FEATURES), -np.eye(FEATURES)])


def gradient(theta: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Of the mean squared error; every user's residual is clipped to [-1, 1]."""
    return -2 * x.T @ np.clip(y - x @ theta, -1, 1) / len(x)


def frank_wolfe(x: np.ndarray, y: np.ndarray, choose) -> np.ndarray:
    """`choose` takes the 2d scores -<g, v>, the larger the better, and returns one index."""
    theta = np.zeros(FEATURES)
    for i in range(STEPS):
        scores = -CORNERS @ gradient(theta, x, y)
        theta = theta + 2 / (i + 2) * (CORNERS[choose(scores)] - theta)
    return theta


x, y = users(SIZE)
exact = frank_wolfe(x, y, np.argmax)
print("features used:", np.flatnonzero(exact), " error |theta - truth|_1 =", end=" ")
print(f"{np.abs(exact - TRUTH).sum():.3f} (theta = 0 has {np.abs(TRUTH).sum():.1f})")
assert np.abs(exact - TRUTH).sum() < 0.2
assert set(np.flatnonzero(TRUTH)) <= set(np.flatnonzero(exact))

# %% [markdown]
# **Exercise 5.2.** Make it private. The exponential mechanism with Gumbel noise chooses the corner.
# First do the accounting by hand: the entries of x are in [-1, 1], residuals are clipped to
# [-1, 1]. How far can *replacing* one user move one score, which is an average over n users? Then
# fill it in: `ExponentialMechanism(GivenScores(2 * FEATURES, sensitivity=...), Streams([0]),
# "corner", epsilon=..., uses=STEPS)`, call it with an array of shape (1, 2d), and find an epsilon
# for one step such that `Ledger((mechanism.spend,)).epsilon(1e-6)` is about 1. Call the epsilon of
# one step `EACH`.

# %% [markdown] tags=["hint"]
# A user's term is `x_j * residual * 2 / n` up to its sign: between which two numbers? Forty steps
# compose to far less than forty times one, so begin a little above 1/40 and look at the ledger.

# %% [markdown] tags=["solution"]
# One user adds -2 x_j residual / n to coordinate j, a number between -2/n and 2/n. Replacing her
# moves it by at most 4/n. The ledger composes the forty steps; the plain sum of their epsilons is
# printed beside it, and is much larger.

# %% tags=["solution"]
EACH = 0.068


def private_fit(n: int, seed: int) -> tuple[np.ndarray, float]:
    """The private fit to n users, and its epsilon at delta 1e-6."""
    source = GivenScores(2 * FEATURES, sensitivity=4 / n)
    corner = ExponentialMechanism(source, Streams([seed]), "corner", epsilon=EACH, uses=STEPS)
    theta = frank_wolfe(*users(n), lambda scores: corner(scores[None])[0])
    return theta, Ledger((corner.spend,)).epsilon(1e-6)


for n in (4_000, 16_000, 64_000):
    theta, epsilon = private_fit(n, seed=1)
    print(f"n = {n:6,}   epsilon {epsilon:.2f} (plain sum {STEPS * EACH:.2f})", end="")
    print(f"   error {np.abs(theta - TRUTH).sum():.2f}")
assert 0.95 < epsilon < 1
assert np.abs(theta - TRUTH).sum() < 0.4

# %% tags=["check"]
check("5.2", EACH)

# %% [markdown]
# A bandit repeats that while users keep coming: one step for every arm in every round. This is
# **DP-HDB** of Han, Liang, Liang, Wang, Yao and Zhang, "On private online convex optimization:
# optimal algorithms in l_p-geometry and high dimensional contextual bandits" (2022).
#
# ## 3. A published figure
#
# Figure 5.1 of that paper compares DP-HDB with DP-UCB, the private LinUCB of Lab 4:
# 10,000 rounds, 50 features, two arms, epsilon 1, delta 1/T. This is how its curves end, read off
# the picture:

# %%
for curve in PUBLISHED:
    print(f"{curve.label}: cumulative regret {curve.regret} +- {curve.reading} (reading error)")
print(f"ratio: {PUBLISHED[0].regret / PUBLISHED[1].regret:.0f}")

# %% [markdown]
# So much less regret! Both curves are straight lines from round 0 on, as far as the eye can
# tell. Before you read on:
#
# **Exercise 5.3.** What does the regret curve of an agent that learns look like? And of one that
# does not? What would you plot beside these two lines before you believe the figure?

# %% [markdown] tags=["hint"]
# Regret is a sum over rounds: what is its slope if every round loses the same? And which agent
# learns nothing by construction?

# %% [markdown] tags=["solution"]
# Who learns loses less and less per round, so the curve bends towards the horizontal. Who does not
# learn loses the same in every round: a straight line. The line to plot is *uniform play*, which
# knows nothing and is perfectly private. If a curve lies on it, its agent has not learned.

# %% tags=["check"]
check("5.3")

# %% [markdown]
# We rebuild the problem. Contexts are normal vectors, scaled so that the largest of the 50 numbers
# is 1 (max-norm 1). Parameters have 1/5 on five coordinates. We play four agents:
#
# * uniform play;
# * uniform play where contexts are scaled to **l_1 norm 1** instead: the 50 numbers add up to 1;
# * DP-UCB and DP-HDB, both with the constants of their papers. To save time DP-UCB releases only
#   every 50th round; the paper has every round, and a little more noise.

# %%
PROBLEM = {
    "n_actions": 2,
    "dim": 50,
    "contexts": "sphere",
    "parameters": "sparse-draws",
    "sparsity": 5,
    "noise": 0.05,
}
TARGET = {"epsilon": 1.0, "delta": 1 / HORIZON}
REPLICAS = 40


def play(agents: dict, norm: float = inf) -> dpbandit.Results:
    """All agents meet the same users, whose contexts have length 1 in that norm."""
    arguments = {**PROBLEM, "context_order": norm}
    return dpbandit.compare(
        "dpbandit/GLMBandit-v0",
        agents,
        horizon=HORIZON,
        replicas=REPLICAS,
        env_kwargs=arguments,
        progress=False,
    )


printed = {
    "DP-UCB, printed": ShariffSheffetUCB(calibration="paper", refresh_every=50, **TARGET),
    "DP-HDB, printed": DPHDBChoices(calibration="paper", warm_up=120, **TARGET),
}
as_printed = play(printed)
in_l1 = play({}, norm=1)


def curve(results: dpbandit.Results, agent: str) -> np.ndarray:
    """Cumulative regret, (marks, replicas)."""
    return next(run.regret for run in results.runs if run.name == agent)


certificates = as_printed.summary().set_index("agent")["certified_epsilon"]
assert (certificates[list(printed)] < 0.6).all()
uniform, uniform_l1 = curve(as_printed, "Uniform"), curve(in_l1, "Uniform")
as_printed.summary().set_index("agent")[["mean", "se", "claimed_epsilon", "certified_epsilon"]]

# %% [markdown]
# `mean` is the regret after 10,000 rounds, `se` its standard error. (BestFixed plays the better of
# the two arms all along. That is no use here: each arm is best for half of the users.)
#
# Two things to see. The agents lose what uniform play loses. And what they are certified to have is
# *more* privacy than they claim: noise that was never needed. Now the two comparisons that explain
# the figure.

# %%
for results, name in ((as_printed, "DP-UCB, printed"), (as_printed, "DP-HDB, printed")):
    apart = curve(results, name)[-1] - uniform[-1]  # on the same users
    error = apart.std(ddof=1) / sqrt(REPLICAS)
    print(f"{name}: {apart.mean():+.0f} +- {error:.0f} from uniform play on the same users")
    assert abs(apart.mean()) < 3 * error

for here, there in zip((uniform, uniform_l1), PUBLISHED, strict=True):
    error = here[-1].std(ddof=1) / sqrt(REPLICAS)
    print(f"uniform play {here[-1].mean():.0f} +- {error:.0f};", end=" ")
    print(f"published {there.label}: {there.regret} +- {there.reading}")
    assert abs(here[-1].mean() - there.regret) < there.reading + 2 * error

straight = np.interp(HORIZON / 2, as_printed.marks, uniform.mean(axis=1)) / uniform[-1].mean()
print(f"share of its regret that uniform play has after half of the rounds: {straight:.3f}")
assert abs(straight - 0.5) < 0.01

# %% [markdown]
# The published curve of DP-UCB coincides with random play on contexts of max-norm 1. The published
# curve of DP-HDB coincides with random play on contexts of l_1 norm 1. On those, everything is
# smaller: contexts, rewards, and every regret.
#
# **Exercise 5.4.** How much smaller? Draw normal vectors of 50 features, and compare the size of
# `<x, theta>` under the two scalings. Compare with the ratio of the two published end points. Call
# the ratio of the two standard deviations `size_ratio`.

# %% [markdown] tags=["hint"]
# Divide each vector once by its largest entry in size and once by the sum of the sizes. Take the
# standard deviation of the products with `TRUTH`.

# %% tags=["solution"]
z = rng.standard_normal((20_000, 50))
by_max = (z @ TRUTH) / np.abs(z).max(axis=1)
by_sum = (z @ TRUTH) / np.abs(z).sum(axis=1)
size_ratio = by_max.std() / by_sum.std()
print(f"rewards are {size_ratio:.1f} times smaller on contexts of l_1 norm 1")
print(f"published end points: {PUBLISHED[0].regret / PUBLISHED[1].regret:.1f} times")
assert abs(size_ratio / (uniform[-1].mean() / uniform_l1[-1].mean()) - 1) < 0.1

# %% [markdown] tags=["solution"]
# That is an **inference from the picture**, not a proof of what the authors ran. The programs of
# theirs that could be seen scale contexts to max-norm 1 for both agents. What we can say is:
# neither curve can be told from random play, each in its own units. A difference of units is not
# a difference of algorithms.

# %% tags=["check"]
check("5.4", size_ratio)

# %% [markdown]
# ## 4. What is possible with the same privacy?
#
# A figure that fails does not make the question go away. With exact accounting the same
# (epsilon, delta) buys less noise. Three certified agents and one without privacy:
#
# * DP-HDB, certified: noisy sums in place of noisy choices, clipped, in a smaller diamond;
# * DP-UCB on moments alone: no matrix of 50 x 50 products is released, only the vector;
# * FADE, this project's own: see its page;
# * Frank-Wolfe without any noise.

# %%
certified = play(
    {
        "DP-HDB, certified": DPHDB(warm_up=120, radius=0.2, gradient_clip=0.4, **TARGET),
        "DP-UCB, moments": DPMoments(moment_clip=0.32, **TARGET),
        "FADE": FADE(**TARGET),
        "Frank-Wolfe, no privacy": OnlineFrankWolfe(warm_up=120),
    }
)
certified.summary().set_index("agent")[["mean", "se", "certified_epsilon"]]

# %% [markdown]
# The clips and the radius of the first two were chosen by looking at a problem like this one; no
# certificate covers such a choice, and a fair comparison says so. Even so: the picture to remember.

# %% tags=["picture"]
figure, panels = plt.subplots(1, 3, figsize=(13, 4.4), layout="constrained")
marks = as_printed.marks
titles = (
    "contexts of max-norm 1:\nnobody learns",
    "contexts of $\\ell_1$ norm 1 (look at the axis):\nother units, same story",
    "max-norm 1, certified epsilon 1:\nwhat is possible",
)
rerun = {name.replace("printed", "rerun"): curve(as_printed, name) for name in printed}
possible = {run.name: run.regret for run in certified.runs[:4]}
shown = (
    {"uniform play": uniform, **rerun},
    {"uniform play": uniform_l1},
    {"uniform play": uniform, **possible},
)
for axes, lines, title in zip(panels, shown, titles, strict=True):
    curves(lines, rounds=marks, ax=axes, title=title, xticks=(0, 5_000, 10_000))
for axes, (label, end, reading) in zip(panels, PUBLISHED, strict=False):
    share = marks / HORIZON
    axes.plot(marks, end * share, color=RED, ls="--", lw=2.5, label=f"{label}, published")
    low, high = (end - reading) * share, (end + reading) * share
    axes.fill_between(marks, low, high, color=RED, alpha=0.15, lw=0)
for axes in panels:
    axes.legend(loc="upper left", frameon=False)
    axes.xaxis.set_major_formatter("{x:,.0f}")
panels[1].set_ylim(top=85)  # with the band of the published curve
panels[2].set_ylim(top=1250)
sns.despine()

# %%
final = {run.name: run.regret[-1].mean() for run in certified.runs}
assert final["FADE"] < final["DP-UCB, moments"] < uniform[-1].mean() / 3
assert final["DP-HDB, certified"] < uniform[-1].mean() / 3
assert final["FADE"] < 1.3 * final["Frank-Wolfe, no privacy"]  # privacy is hardly to be seen
assert all(certified.summary().query("agent == 'FADE'")["certified_epsilon"] < 1 + 1e-6)

# %% [markdown]
# **Exercise 5.5.** Privately learning 50 features is possible, if rounds are many. Play the same
# problem with `horizon=2_000` rounds (use `dpbandit.compare` directly). Which agents still beat
# uniform play? Why does a shorter horizon hurt, although less noise per release is needed? Collect
# the shares of uniform play's regret in a dict `short_share`, with the agent as its key.

# %% [markdown] tags=["hint"]
# The agents and settings are those above, only the horizon changes. `summary()` has a column
# `mean` for every agent, "Uniform" among them.

# %% tags=["solution"]
short = dpbandit.compare(
    "dpbandit/GLMBandit-v0",
    {"DP-HDB": DPHDB(radius=0.2, gradient_clip=0.4, **TARGET), "FADE": FADE(**TARGET)},
    horizon=2_000,
    replicas=REPLICAS,
    env_kwargs={**PROBLEM, "context_order": inf},
    progress=False,
)
table = short.summary().set_index("agent")[["mean", "se"]]
table["share of uniform play's"] = table["mean"] / table.loc["Uniform", "mean"]
assert table.loc["FADE", "mean"] < table.loc["DP-HDB", "mean"] < table.loc["Uniform", "mean"]
assert table.loc["FADE"].iloc[-1] > 2 * final["FADE"] / uniform[-1].mean()
table
short_share = table["share of uniform play's"].to_dict()

# %% [markdown] tags=["solution"]
# Both still beat uniform play, but they keep a much larger share of its regret than before. The
# sum of what users tell grows with the number of users, the noise hardly does. So the first users
# are always drowned, and in a short run most users are among the first.

# %% tags=["check"]
check("5.5", short_share)

# %% [markdown]
# ## What to remember
#
# * Noise on d numbers has length sqrt(d); noise on *which is best* costs log d. Algorithms for many
#   features try to release choices.
# * A regret curve that is straight from the first round on belongs to an agent that does not learn,
#   however low it is.
# * Put uniform play on every plot, on the same users. Ask for the units of every axis.
# * What we know about the figure is an inference. Say so, and say what would change your mind.
# * "As printed" and "as possible" are two questions. Here the same epsilon, accounted for exactly,
#   learns.
