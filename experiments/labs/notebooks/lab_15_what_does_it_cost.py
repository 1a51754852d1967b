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
# # Lab 15: What does it cost?
#
# **Goal.** Make one row of the project's answer yourself: choose agents on some customers, report
# on others, with an interval and with both zeros; and measure by how much a winner flatters itself.
#
# **You need.** Labs 1, 2 and 4.
#
# "At epsilon 1 the best private agent loses twice as much as the best agent without privacy." The
# README of this project has a table of such rows. Behind each number stand three choices: of the
# private agent, of the agent that it is divided by, and of the runs that are averaged. Each of them
# can be made so that the number looks better. In this lab you make one row by hand, for the shop of
# orange juice with 500 customers, and see what each choice is worth.

# %%
import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns

from dpbandit import certify, compare
from dpbandit.experiments.labs import against, at_end, check

sns.set_theme(style="ticks", palette="colorblind")
plt.rcParams["figure.constrained_layout.use"] = True

CHOICE, REPORT = 77_000, 31_415  # seeds: the customers of a choice, and others
CUSTOMERS, RUNS = 500, 100
PRIVATE = [
    "fade",
    "fade:features=interactions",
    "fade:features=shrunk",
    "fade:growth=0.3",
    "priced:private-glm",
    "dp-ucb",
]  # all of them with epsilon 1 and delta 1e-5, certified


def losses(agents, seed, runs=RUNS):
    """name -> dollars that each run lost, (runs,); also of "Uniform" and "BestFixed"."""
    found = compare(
        "OJPricing", agents, horizon=CUSTOMERS, replicas=runs, seed=seed, progress=False
    )
    return at_end(found)


# %% [markdown]
# ## 1. Eight runs and a winner
#
# Six private agents. Four of them are the same algorithm with one setting changed, as one tries
# when one looks for something better. We let all six serve the same customers, a hundred times.

# %%
pool = losses(PRIVATE, CHOICE)
print(f"{'dollars lost':28} {'8 runs':>8} {'100 runs':>9} {'+-':>4}")
for name in PRIVATE:
    error = pool[name].std(ddof=1) / np.sqrt(RUNS)
    print(f"{name:28} {pool[name][:8].mean():8.1f} {pool[name].mean():9.1f} {error:4.1f}")

# %% [markdown]
# Nobody in a hurry makes a hundred runs of everything. Eight are usual. Pretend that you have the
# first eight alone.
#
# **Exercise 15.1.** Choose by the first eight runs: the name of the agent with the least mean,
# `winner`, and this mean in dollars, `promised`. What is the standard error of that mean, and is
# the winner ahead of the second by more than that?

# %% [markdown] tags=["hint"]
# `min(PRIVATE, key=...)`, with the mean of the first eight entries as the key. For the last
# question look at the differences run by run: all agents met the same customers.

# %% tags=["solution"]
first = {name: pool[name][:8] for name in PRIVATE}
winner, second = sorted(PRIVATE, key=lambda name: first[name].mean())[:2]
promised = first[winner].mean()
ahead = first[second] - first[winner]
print(f"{winner} promises {promised:.1f} +- {first[winner].std(ddof=1) / 8**0.5:.1f} dollars")
print(f"ahead of {second} by {ahead.mean():.1f} +- {ahead.std(ddof=1) / 8**0.5:.1f}")

# %% [markdown] tags=["solution"]
# Four agents are within one or two standard errors of each other. Which of them wins eight runs is
# luck, more than anything else.

# %% tags=["check"]
check("15.1", winner, promised)

# %% [markdown]
# ## 2. The winner's curse
#
# The mean of eight runs is unbiased for every single agent. It is not for the *winner*: of several
# agents that are about as good, the one that wins is the one that was lucky. On these very runs it
# looks better than it is, and on fresh customers the luck is gone.
#
# One choice cannot show a bias. So make it often.
#
# **Exercise 15.2.** 2,000 times: draw eight of the hundred runs (the same eight for all six agents,
# without putting back), choose the agent with the least mean on these eight, and note by how much
# this mean lies *below* the same agent's mean over all hundred. Write it as a function
# `flattery(names, runs)`, in dollars, the average over the 2,000 choices.

# %% [markdown] tags=["hint"]
# Put the losses of `names` into an array, one row for each. `rng.permutation(RUNS)[:runs]` says
# which columns are drawn, and `argmin` which row wins.


# %% tags=["solution"]
def flattery(names, runs, choices=2_000):
    """Mean over all runs minus the mean on the choosing runs, of the winner, in dollars."""
    table, rng = np.array([pool[name] for name in names]), np.random.default_rng(15)
    found = np.zeros(choices)
    for i in range(choices):
        means = table[:, rng.permutation(RUNS)[:runs]].mean(axis=1)
        won = means.argmin()
        found[i] = table[won].mean() - means[won]
    return found.mean()


print(f"six agents, eight runs: the winner looks {flattery(PRIVATE, 8):.1f} dollars better")
print(f"one agent, eight runs: {flattery(PRIVATE[:1], 8):.1f} dollars")
assert flattery(PRIVATE, 8) > 1  # the error of 2,000 choices is below 0.1

# %% tags=["check"]
check("15.2", flattery)

# %% [markdown]
# How does that depend on the number of runs, and of agents? The picture makes the same choices with
# bands.


# %%
def looks_better(names, runs, choices=400):
    """The flattery of each of `choices` choices in dollars."""
    table, rng = np.array([pool[name] for name in names]), np.random.default_rng(16)
    drawn = rng.permuted(np.tile(np.arange(RUNS), (choices, 1)), axis=1)[:, :runs]
    means = table[:, drawn].mean(axis=2)  # (agents, choices)
    won = means.argmin(axis=0)
    return table.mean(axis=1)[won] - means[won, np.arange(choices)]


# %% tags=["picture"]
sizes = [2, 4, 8, 16, 32, 64]
pools = {"one agent, no choice": 1, "the best of 2": 2, "the best of 4": 4}
axes = against(
    {name: [looks_better(PRIVATE[:k], runs) for runs in sizes] for name, k in pools.items()},
    {"runs by which the winner was chosen": sizes},
    title="More agents and fewer runs: the winner flatters itself more",
    ylabel="dollars by which the winner looks better\non these runs than it is",
)
axes.axhline(0, color="0.5", lw=1)
sns.despine()

# %%
alone, four = looks_better(PRIVATE[:1], 8), looks_better(PRIVATE[:4], 8)
assert abs(alone.mean()) < 4 * alone.std() / 20  # no choice, no bias: 4 standard errors
assert four.mean() > 4 * four.std() / 20
assert four.mean() > looks_better(PRIVATE[:4], 64).mean()

# %% [markdown]
# **Exercise 15.3.** Are more agents always worse? Compute the flattery at eight runs among the
# first four names, `close`, and among three: the first name and the last two, `clear`. Which of the
# two is larger, and why? What does that say about trying twenty settings of one algorithm?

# %% [markdown] tags=["hint"]
# Look at the table of section 1: how often can `dp-ucb` win eight runs?

# %% tags=["solution"]
close = flattery(PRIVATE[:4], 8)
clear = flattery([PRIVATE[0], *PRIVATE[-2:]], 8)
print(f"four that are close: {close:.1f} dollars; three that are far apart: {clear:.2f}")
assert close > 5 * abs(clear)

# %% [markdown] tags=["solution"]
# What counts is the number of agents that *could* win. Where one is far ahead, it wins by what it
# is, and is not flattered. Twenty settings of one algorithm are twenty lottery tickets: the less
# they differ, the more of the winner is luck.

# %% tags=["check"]
check("15.3", close, clear)

# %% [markdown]
# The cure costs one more run: **choose on some customers, report on others**. This project chooses
# on the seed 77000 and reports on the seed 31415. What was chosen does not matter then; on the
# second seed it is one agent like any other.
#
# ## 3. The zero without privacy
#
# A cost needs a zero. "Without privacy" is not an agent, so it has to be the *best* one, and it has
# to be chosen as carefully as the private one. Otherwise privacy looks cheap.

# %%
PUBLIC = ["linucb", "priced:linucb", "priced:logistic-ts", "priced:glm-ucb"]
public_pool = losses(PUBLIC, CHOICE)
fresh = losses([PRIVATE[1], *PUBLIC], REPORT)  # for your report: do not choose by these
for name in PUBLIC:
    print(f"{name:20} {public_pool[name].mean():5.1f} dollars on the customers of the choice")

# %% [markdown]
# **Exercise 15.4.** Make the ratio. Divide the mean loss of `"fade:features=interactions"` on the
# *fresh* customers by that of the best agent of `PUBLIC`, chosen on the customers of the choice.
# For the interval draw the hundred runs with replacement, 2,000 times, the *same* runs for both
# agents, and take the 2.5 % and 97.5 % quantiles of the ratio of means. Call it `times = (ratio,
# low, high)`. Then do it with `"linucb"` in place of the best one: `weak`.

# %% [markdown] tags=["hint"]
# `rng.integers(RUNS, size=(2_000, RUNS))` has a row of runs for each resample. Index both arrays
# with it before you take means over the second axis.


# %% tags=["solution"]
def ratio(private, public):
    """Ratio of the means of two agents' losses (runs,), with a paired 95 % bootstrap interval."""
    drawn = np.random.default_rng(17).integers(RUNS, size=(2_000, RUNS))
    found = private[drawn].mean(axis=1) / public[drawn].mean(axis=1)
    return private.mean() / public.mean(), *np.quantile(found, [0.025, 0.975])


baseline = min(PUBLIC, key=lambda name: public_pool[name].mean())
chosen = fresh["fade:features=interactions"]
times, weak = ratio(chosen, fresh[baseline]), ratio(chosen, fresh["linucb"])
for name, (value, low, high) in ((baseline, times), ("linucb", weak)):
    print(f"{value:.2f} times the loss of {name} ({low:.2f} to {high:.2f})")
assert times[1] > 1.4  # privacy costs something; measured near 2
assert weak[0] < 1.3  # and with a weak zero hardly anything

# %% [markdown] tags=["solution"]
# LinUCB learns each of twelve prices by itself, and after 500 customers it has hardly begun.
# Divided by that, privacy seems free. Nothing in the second line is false; it answers a question
# that nobody asked.

# %% tags=["check"]
check("15.4", times, weak)

# %% [markdown]
# The intervals are of the mean over *these kinds of runs*: a shop has one run. Look at the spread
# of single runs before you promise anything to anybody.
#
# ## 4. The other zero
#
# There is a second way to be private: learn nothing. Whoever charges everybody the same price has
# epsilon 0. So a private agent has to beat not only random prices, but the best *fixed* price,
# which is in every table as `BestFixed`.
#
# **Exercise 15.5.** How many dollars does the private agent of 15.4 save against the best fixed
# price, on the fresh customers? Call it `saved`: the mean difference (fixed minus private) with the
# ends of its 95 % interval, `(mean, low, high)`, by the standard error of the paired differences.
# And the other way round: how many dollars would the best agent without privacy save? Call it
# `saved_public`, a number.

# %% [markdown] tags=["hint"]
# `fresh["BestFixed"]` has a loss for each run, too. An interval of a mean: 1.96 standard errors
# either way.

# %% tags=["solution"]
difference = fresh["BestFixed"] - fresh["fade:features=interactions"]
half = 1.96 * difference.std(ddof=1) / np.sqrt(RUNS)
saved = (difference.mean(), difference.mean() - half, difference.mean() + half)
baseline = min(PUBLIC, key=lambda name: public_pool[name].mean())
saved_public = (fresh["BestFixed"] - fresh[baseline]).mean()
print(f"privately {saved[0]:.1f} dollars ({saved[1]:.1f} to {saved[2]:.1f})")
print(f"without privacy {saved_public:.1f}")
assert saved_public > 3 * abs(saved[0])  # measured 21 and 3 dollars, with errors of 1

# %% [markdown] tags=["solution"]
# After 500 customers the private agent has saved a tenth of what one good price loses, and privacy
# has cost six times that. "Twice as much as without privacy" and "hardly better than one price" are
# both true, and a table with the first number alone hides the second. (With 5,000 customers the
# private agent is far ahead of any fixed price.)

# %% tags=["check"]
check("15.5", saved, saved_public)

# %% [markdown]
# ## 5. What may stand in the column
#
# A colleague wants to add rows to your column "epsilon 1, delta 1e-5". The column promises that for
# replacing a customer's *whole* round, what was known of her and what she did.

# %%
ROWS = [
    "fade:epsilon=3",
    "priced:dp-ucb",
    "shariff-sheffet-ucb:calibration=paper",
    "priced:ada-c-oful:calibration=paper",
    "fade:delta=0.01",
]

# %% [markdown]
# **Exercise 15.6.** Certify the five with `certify(name, "OJPricing", horizon=CUSTOMERS)` and print
# the certificates. Which of them may stand there? Call the set of names `allowed`. Which one would
# have been the most tempting mistake?

# %% [markdown] tags=["hint"]
# Read all of a certificate: the epsilon, the delta at which it holds, and the first line, which
# says who is replaced and what of her. More privacy than the column asks for is welcome.

# %% tags=["solution"]
allowed = set()
whole = certify("fade", "OJPricing", horizon=CUSTOMERS, accountants=False).notion
for name in ROWS:
    proof = certify(name, "OJPricing", horizon=CUSTOMERS, accountants=False)
    fits = proof.epsilon <= 1 and proof.claimed_delta <= 1e-5 and proof.notion.implies(whole)
    allowed |= {name} if fits else set()
    print(f"{name}: epsilon {proof.epsilon:.3f}, delta {proof.claimed_delta:g}, {proof.notion}")
print(*sorted(allowed), sep=", ")

# %% [markdown] tags=["solution"]
# The printed agent of Shariff and Sheffet has far more privacy than the column asks for: allowed,
# if useless. `ada-c-oful` as printed certifies a small epsilon too, but takes what is known of
# customers for public. Its number looks like all the others, and only the words beside it differ.

# %% tags=["check"]
check("15.6", allowed)

# %% [markdown]
# ## What to remember
#
# * Choose on some customers, report on others. The winner of few runs among many agents looks
#   better than it is.
# * A cost has two zeros: the best agent without privacy, chosen as carefully, and the best fixed
#   action.
# * Divide on the same runs, and say the interval.
# * An epsilon without the words beside it is half a number.
