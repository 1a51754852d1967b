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
# # Lab 12: Would you have known?
#
# **Goal.** Say from a log what another policy would have earned and how sure that is, find out
# whether you were right, and what happens if the log lies.
#
# **You need.** Labs 1 and 2.
#
# In the world a policy that was not played can only be guessed at. A simulator can play it
# afterwards, so here every estimate meets the truth.

# %%
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns

from dpbandit import InputError
from dpbandit.agents import LinUCB
from dpbandit.base.random_streams import Streams
from dpbandit.clients import record
from dpbandit.experiments.labs import check
from dpbandit.offline import evaluate, snapshot

sns.set_theme(style="ticks", palette="colorblind")
world = {"n_actions": 3, "dim": 2, "noise": 0.3, "world_seed": 12}

# %% [markdown]
# ## 1. A log, and a policy that it did not play
#
# 800 users were served at random, each arm with probability 1/3. An agent learns from the first
# half; its *snapshot* is a frozen policy.

# %%
log = record("GLMBandit", horizon=800, seed=1, env_kwargs=world)
taught, judged = log[:400], log[400:]
learner = LinUCB(alpha=0.1).make(log.spec, Streams([0]))
for i in range(400):
    row = slice(i, i + 1)
    learner.update(taught.context[row], taught.action[row], taught.reward[row])
policy = snapshot(learner, log.spec)
print(f"served at random, users gave {judged.reward.mean():.3f} on average")

# %% [markdown]
# **Exercise 12.1.** In a row of propensity p the policy plays the logged arm with probability pi.
# Estimate what it would have earned on `judged` without any function of `dpbandit.offline`: the
# mean of pi / p times the reward. Call it `by_hand`.

# %% [markdown] tags=["hint"]
# `policy.probabilities(judged.context)` has shape (400, 3), and `judged.action` says which column
# was logged.

# %% tags=["solution"]
law = policy.probabilities(judged.context)
pi = law[np.arange(400), judged.action]
by_hand = float((pi / judged.propensity * judged.reward).mean())
print(f"{by_hand:.3f}")

# %% tags=["check"]
check("12.1", by_hand)

# %%
answer = evaluate(policy, judged, ("ips", "snips", "dr"))
print(answer[["estimator", "estimate", "low", "high", "interval"]].round(3))

# %% [markdown]
# ## 2. The truth
#
# The same world, 20,000 other users. On them the policy is played, as often as it agrees with
# random play, which is a fair draw of users.

# %%
fresh = record("GLMBandit", horizon=20_000, seed=2, env_kwargs=world)
agrees = policy.probabilities(fresh.context).argmax(axis=1) == fresh.action
truth = float(fresh.reward[agrees].mean())
print(f"truth: {truth:.3f}")
answer["held"] = (answer["low"] < truth) & (truth < answer["high"])
print(answer[["estimator", "low", "high", "held"]].round(3))

# %% [markdown]
# Of such intervals one in twenty misses the truth; whether it is one in twenty takes many logs.
# Here are 40 of 400 users, each with an interval at 80 %, so that enough of them miss:

# %%
rows = []
for seed in range(40):
    again = record("GLMBandit", horizon=400, seed=100 + seed, env_kwargs=world)
    found = evaluate(policy, again, ("ips", "dr"), level=0.8)
    rows += found.assign(log=seed).to_dict("records")
table = pd.DataFrame(rows)
held = ((table["low"] < truth) & (truth < table["high"])).groupby(table["estimator"]).mean()
width = (table["high"] - table["low"]).groupby(table["estimator"]).mean()
print(pd.DataFrame({"held": held, "width": width}).round(3))
assert held.between(0.6, 0.98).all()  # 80 % +- 3 errors of 40 logs
assert width["dr"] < width["ips"]

# %% tags=["picture"]
figure, axes = plt.subplots(figsize=(5.5, 3.6), layout="constrained")
for place, (name, found) in enumerate(table.groupby("estimator")):
    axes.errorbar(
        found["estimate"],
        found["log"] + 0.4 * place,
        xerr=[found["estimate"] - found["low"], found["high"] - found["estimate"]],
        fmt="o",
        markersize=3,
        label=name,
    )
axes.axvline(truth, color="0.3", linestyle="--", label="truth")
axes.set(xlabel="reward a user, 80 % intervals", ylabel="log", title="Would you have known?")
axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
sns.despine()

# %% [markdown]
# **Exercise 12.2.** Would 400 users have told two policies apart? Let `early` be a snapshot of a
# learner that saw the first twelve rows of `taught` alone. Estimate on `judged`, by inverse
# propensities, by how much `policy` earns more than `early`: the mean of the 400 paired
# differences, `ahead`. From their standard deviation compute how many users it takes until the mean
# is two standard errors from zero, `users`. Then look at `fresh`: was the sign right?

# %% [markdown] tags=["hint"]
# The terms of 12.1 for both policies, row by row, then their difference. A standard error is the
# standard deviation over the root of n: solve 2 sd / sqrt(n) = mean for n.

# %%
learner = LinUCB(alpha=0.1).make(log.spec, Streams([0]))
for i in range(12):
    row = slice(i, i + 1)
    learner.update(taught.context[row], taught.action[row], taught.reward[row])
early = snapshot(learner, log.spec)


# %% tags=["solution"]
def terms(one, rows):
    """pi / p times the reward, for each row."""
    law = one.probabilities(rows.context)
    return law[np.arange(len(law)), rows.action] / rows.propensity * rows.reward


difference = terms(policy, judged) - terms(early, judged)
ahead = difference.mean()
users = (2 * difference.std(ddof=1) / ahead) ** 2
really = (terms(policy, fresh) - terms(early, fresh)).mean()
print(f"ahead by {ahead:.3f}, sure after {users:,.0f} users; by 20,000 users {really:.3f}")

# %% [markdown] tags=["solution"]
# The sign was right by luck: 400 users know the difference no better than to its own size. Rows on
# which both policies play the same arm say nothing, and in the others the log seldom played what
# either of them would. So a log tells *that* a policy is good long before it tells *which* of two
# is better.

# %% tags=["check"]
check("12.2", ahead, users)

# %% [markdown]
# **Exercise 12.3.** `dr` is narrower though it uses a model of the reward that is wrong. Why is it
# not biased? Which of the two would you report if the propensities had been estimated?

# %% [markdown] tags=["hint"]
# Write `dr` as the model's value plus weighted *errors* of the model. What is the mean of the
# second part?

# %% [markdown] tags=["solution"]
# Whatever the model predicts is added for the policy's arms and, weighted, taken away for the
# logged ones; with true propensities the two have the same mean, so only the variance changes.
# With wrong propensities neither is unbiased. `dr` errs less where its model is good; the honest
# answer is that the log does not say.

# %% tags=["check"]
check("12.3")

# %% [markdown]
# ## 3. A log that lies
#
# Now somebody's memory fails. Arm 0 was favoured: it was served three times as often as each of the
# others. But the column of propensities says 1/3 for everybody. We make such a log of the 20,000
# fresh users: all rows of arm 0 stay, of the others one in three.

# %%
coin = np.random.default_rng(12).random(len(fresh.action))
kept = (fresh.action == 0) | (coin < 1 / 3)
seen = {name: getattr(fresh, name)[kept] for name in ("context", "action", "reward", "propensity")}
print(f"{kept.sum():,} rows, their propensities say {np.unique(seen['propensity']).round(3)}")

# %% [markdown]
# **Exercise 12.4.** How wrong is the estimate by hand on `seen`, with these propensities? Call the
# estimate minus `truth` `off`. And is there a check that needs no rewards? Take the sum of 1 / p
# over the rows in which arm a was logged, divided by the number of all rows. What is it on average,
# if p is true, whatever p is? Compute the three numbers for `seen`, `ones`.

# %% [markdown] tags=["hint"]
# `policy.probabilities(seen["context"])`, and then as in 12.1. For the check: a row counts 1 / p
# with probability p, and else nothing.

# %% tags=["solution"]
law = policy.probabilities(seen["context"])
weight = law[np.arange(len(law)), seen["action"]] / seen["propensity"]
off = (weight * seen["reward"]).mean() - truth
ones = [((seen["action"] == a) / seen["propensity"]).mean() for a in range(3)]
print(f"off by {off:.3f}; the three numbers {np.round(ones, 2)}")

# %% [markdown] tags=["solution"]
# Eleven thousand rows, and an estimate that is wrong by almost four times its standard error. The
# three numbers have mean 1 if propensities are true, so that 1.8 and 0.6 are a plain contradiction.
# No reward is needed for that, and no policy. But it finds only lies about *shares*: a log whose
# arms depend on something hidden may have three perfect ones.

# %% tags=["check"]
check("12.4", off, ones)

# %% [markdown]
# The program makes this check before it takes a log:

# %%
try:
    replace(fresh, **seen)
except InputError as refusal:
    print(refusal)

# %% [markdown]
# ## 4. A learner logged it
#
# Now the log comes from an agent that learns and explores. Its arms depend on what came before.

# %%
adaptive = record("GLMBandit", horizon=800, seed=3, agent="linucb", explore=0.2, env_kwargs=world)
found = evaluate(policy, adaptive, ("ips", "dr"))
print(found[["estimator", "estimate", "low", "high", "interval", "max_weight"]].round(3))
assert (found["interval"] == "betting").all()

# %% [markdown]
# The interval is another one, by *betting*: t rests on independent rows, and rows are not. It
# holds for every n, whatever the logging agent has learned.
#
# **Exercise 12.5.** Which share of exploration would make the largest weight w? Write `explore(w)`.

# %% [markdown] tags=["hint"]
# Of three arms the least propensity is a third of the share, and a policy that is sure has pi = 1.


# %% tags=["solution"]
def explore(w):
    """The share: pi / p = 1 / (share / 3) = w."""
    return 3 / w


# %% tags=["check"]
check("12.5", explore)

# %% [markdown]
# ## What to remember
#
# * A log with true propensities knows what other policies would have earned, and how well it knows.
# * Learn on one half, judge on the other.
# * Where a learner logged, bet.
# * Check propensities before rewards: the mean of 1(arm) / p is 1.
# * An estimate is an exact statistic of people's data, and no certificate covers it.
