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
# # Lab 16: Would one price do?
#
# **Goal.** Tell a shop whether private prices for each customer are worth it: against the price of
# today, against the best single price, and from how many customers on.
#
# **You need.** Labs 1, 4 and 12; lab 15 for the two zeros.
#
# A shop that asks about private pricing has a question before yours: *do I need a learning agent at
# all?* Charging everybody the same is perfectly private, takes no data and nobody complains. This
# lab answers for two shops. In one of them the honest answer is no.

# %%
import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns

from dpbandit import compare, play, recommend
from dpbandit.agents.baselines import Fixed
from dpbandit.clients import record
from dpbandit.envs import OJPricing, SyntheticPricing
from dpbandit.experiments.labs import against, at_end, check, curves
from dpbandit.offline import evaluate
from dpbandit.results.plots import half_band
from dpbandit.running.cost_of_privacy import cost_of_privacy

sns.set_theme(style="ticks", palette="colorblind")
plt.rcParams["figure.constrained_layout.use"] = True

CUSTOMERS, RUNS, SEED = 1_000, 100, 16
SHOPS = {
    "orange juice": OJPricing(horizon=CUSTOMERS),
    "flat shop": SyntheticPricing(slope=1.0, horizon=CUSTOMERS),
}
PRICES = {name: shop.spec.prices for name, shop in SHOPS.items()}
for name, prices in PRICES.items():
    print(f"{name}: {', '.join(f'{price:.2f}' for price in prices)} dollars")

# %% [markdown]
# In the flat shop customers differ little in what they want, and a dollar more or less changes
# their minds slowly. In the shop of orange juice some are loyal to the brand and some wait for a
# bargain.
#
# ## 1. What is lost by doing nothing
#
# Every price, charged to the same 1,000 customers, in a hundred runs. The loss is regret: what the
# best price for *each* customer would have earned, minus what this price earns.

# %%
lost = {}
for name, shop in SHOPS.items():
    lost[name] = np.array([
        play(shop, Fixed(answer=(k,) * RUNS), [(SEED, run) for run in range(RUNS)],
             marks=np.array([CUSTOMERS])).regret[-1]
        for k in range(len(PRICES[name]))
    ])  # fmt: skip
    print(name, lost[name].mean(axis=1).round(0))

# %% [markdown]
# **Exercise 16.1.** The shop of orange juice charges 1.59 dollars today. That is its **status
# quo**. How many dollars per 1,000 customers does it lose? Call that `today`. How many would it
# gain by just changing to the best single price? Call that `by_changing`. And how many more could
# be gained beyond that, by an agent that knew everything? Call that `beyond`.

# %% [markdown] tags=["hint"]
# `PRICES["orange juice"]` says which row of `lost` is today's. The loss of the agent that knows
# everything is zero, by definition.

# %% tags=["solution"]
means = lost["orange juice"].mean(axis=1)
today = means[np.argmin(np.abs(np.array(PRICES["orange juice"]) - 1.59))]
by_changing = today - means.min()
beyond = means.min()
print(f"today {today:.0f}; a better price gains {by_changing:.0f}, knowing customers {beyond:.0f}")
assert by_changing > 20  # errors are below one dollar

# %% [markdown] tags=["solution"]
# A third of what is lost today has nothing to do with learning about *customers*: the price is
# wrong. An agent that is compared with the status quo alone is praised for that third, too.

# %% tags=["check"]
check("16.1", today, by_changing, beyond)

# %% [markdown]
# ## 2. Who told you the best price?
#
# We read it off a simulator. A shop has to find it, for instance in a trial: 4,000 customers, each
# with a price drawn at random, and a log of that. Lab 12 showed how a log judges a policy that it
# did not play. `evaluate` also says what the policy would **gain** on what the log itself earned.

# %%
log = record("OJPricing", horizon=4_000, seed=SEED)
always = np.eye(len(PRICES["orange juice"]))  # row k: the policy that always charges price k
found = evaluate(np.tile(always[0], (4_000, 1)), log, "dr")
print(found[["estimate", "logged", "gain", "gain_low", "gain_high", "percent"]].round(3))

# %% [markdown]
# The lowest price of the list, everybody's: it would have earned less than the trial itself.
#
# **Exercise 16.2.** Choose a price by the first half of the log, and let the second half judge it:
# call the index of the chosen price `chosen`, and its gain per customer on the trial's own prices,
# as the second half sees it, `gain = (gain, gain_low, gain_high)`. Why not judge it on the half
# that chose it?

# %% [markdown] tags=["hint"]
# `log[:2_000]` and `log[2_000:]` are logs. A policy needs one row for each customer of the half.
# Twelve calls of `evaluate` for the choice, one for the judgement. For the question: Lab 15.

# %% tags=["solution"]
half = np.ones((2_000, 1))
estimates = [evaluate(half * row, log[:2_000], "dr")["estimate"][0] for row in always]
chosen = int(np.argmax(estimates))
judged = evaluate(half * always[chosen], log[2_000:], "dr").iloc[0]
gain = (judged["gain"], judged["gain_low"], judged["gain_high"])
print(f"{PRICES['orange juice'][chosen]:.2f} dollars gain {gain[0]:.3f} a customer", end=" ")
print(f"({gain[1]:.3f} to {gain[2]:.3f}); the first half estimated {max(estimates):.3f}")
assert means[chosen] < means.min() + 25  # a good price, if not the best of all

# %% [markdown] tags=["solution"]
# Twelve prices were candidates, so the winner of the first half is flattered: the winner's curse.
# And look at the interval: 2,000 customers, of whom a twelfth saw the price, hardly tell one price
# from its neighbour. The trial costs something, too: it charged random prices.

# %% tags=["check"]
check("16.2", chosen, gain)

# %% [markdown]
# ## 3. A shop's sentence
#
# Now the agents. FADE at epsilon 1 sets a price for each customer; beside it the agent that
# `recommend` names without privacy. The last sentence of a comparison of prices is made for a shop.

# %%
public = recommend("OJPricing", float("inf"))
results = compare(SHOPS["orange juice"], [public, "fade"], replicas=RUNS, seed=SEED, progress=False)
print(cost_of_privacy(results)[-1])
regret = {run.name: run.regret for run in results.runs}  # (marks, runs) in dollars
marks = results.marks

# %% [markdown]
# **Exercise 16.3.** Do not believe it; compute it. From `regret` and `marks`: the dollars per 1,000
# customers that privacy costs against no privacy, `costs`; and the number of customers from which
# on the mean curve of `"fade"` stays below that of `"BestFixed"`, to the end, `pays_from`.

# %% [markdown] tags=["hint"]
# Where is fade still behind? The last such mark, and then one further. `regret[public]` is the
# agent without privacy.

# %% tags=["solution"]
costs = (regret["fade"][-1] - regret[public][-1]).mean() * 1_000 / CUSTOMERS
behind = regret["fade"].mean(axis=1) >= regret["BestFixed"].mean(axis=1)
pays_from = marks[np.flatnonzero(behind)[-1] + 1]
print(f"privacy costs {costs:.0f} dollars per 1,000 customers, and pays from {pays_from} on")
assert 300 < pays_from < 900  # measured about 500; marks are a tenth apart

# %% tags=["check"]
check("16.3", costs, pays_from)

# %% [markdown]
# "Pays" means against the best fixed price, which the shop does not know. Against the price of
# today it pays sooner. And a mean curve that has crossed is not yet a mean that is *surely* below.

# %%
price_of_today = Fixed(answer=(4,) * RUNS)  # 1.59 dollars, on the customers of `results`
same = play(SHOPS["orange juice"], price_of_today, [(SEED, r) for r in range(RUNS)], marks=marks)
regret["today"] = same.regret

# %% tags=["picture"]
axes = curves(
    regret,
    rounds=marks,
    labels={
        "today": "1.59 for all, today",
        "BestFixed": "the best fixed price",
        "fade": "FADE, epsilon 1",
        public: "without privacy",
    },
    title="Privacy has to earn its first customers back",
    xlabel="customers served",
    ylabel="cumulative regret (dollars)",
)

# %% [markdown]
# **Exercise 16.4.** From how many customers on is FADE ahead of the price of today, by the mean
# curves? Call it `pays_today`. And from how many on is it *surely* ahead of the best fixed price:
# the mean of the paired differences (fixed minus FADE) more than two standard errors above zero,
# to the end? Call it `surely_from`.

# %% [markdown] tags=["hint"]
# The same search as in 16.3, for another opponent; and then for `difference.mean(axis=1) <= 2 *
# error`, with `error` the standard error over runs at each mark.


# %% tags=["solution"]
def for_good(behind):
    """The first mark after the last one at which somebody is behind."""
    return marks[np.flatnonzero(behind)[-1] + 1]


pays_today = for_good(regret["fade"].mean(axis=1) >= regret["today"].mean(axis=1))
difference = regret["BestFixed"] - regret["fade"]
error = difference.std(axis=1, ddof=1) / np.sqrt(RUNS)
surely_from = for_good(difference.mean(axis=1) <= 2 * error)
print(f"against today from {pays_today} on; surely against the best price from {surely_from}")
assert pays_today < surely_from

# %% [markdown] tags=["solution"]
# Three numbers, all of them "the users from whom on privacy pays", and they differ by a factor of
# three. A number without its opponent is no answer. (Nor without its plan: this agent knew that
# 1,000 customers come. Told that 10,000 come, it explores longer and crosses later.)

# %% tags=["check"]
check("16.4", pays_today, surely_from)

# %% [markdown]
# ## 4. The other shop
#
# Now the flat shop, the same agent, as many customers.

# %%
flat = compare(SHOPS["flat shop"], "fade", replicas=RUNS, seed=SEED, progress=False)
fade_loses = {
    "orange juice": regret["fade"][-1],
    "flat shop": at_end(flat)["fade"],
}
print(cost_of_privacy(flat)[0])

# %% [markdown]
# "Keep the fixed price, *if you know it*." How well would one have to know it?
#
# **Exercise 16.5.** In each shop, count the prices of the list that lose less than FADE does after
# 1,000 customers, on average. Call the counts `good_enough = {"orange juice": ..., "flat shop":
# ...}`. How far off may the owner of the flat shop be, in dollars, and still do better than the
# agent?

# %% [markdown] tags=["hint"]
# `lost[name].mean(axis=1)` has a mean for each price, and `fade_loses[name].mean()` is one number.

# %% tags=["solution"]
good_enough = {}
for name in SHOPS:
    better = np.flatnonzero(lost[name].mean(axis=1) < fade_loses[name].mean())
    good_enough[name] = len(better)
    print(f"{name}: FADE loses {fade_loses[name].mean():.0f}; better prices:", end=" ")
    print([round(PRICES[name][k], 2) for k in better])
assert good_enough["orange juice"] == 0
assert good_enough["flat shop"] >= 3

# %% [markdown] tags=["solution"]
# In the flat shop the owner may be 40 cents off, either way, and still lose less than an agent that
# learns. A rough trial finds such a price. In the shop of orange juice no single price will do,
# however well it is known.

# %% tags=["check"]
check("16.5", good_enough)

# %%
for name in SHOPS:
    axes = against({"one price for all": lost[name]}, {"price (dollars)": PRICES[name]},
                   title=name, ylim=(0, 250),
                   ylabel="dollars lost per 1,000 customers")  # fmt: skip
    level, error = fade_loses[name].mean(), half_band(fade_loses[name][None])[0]
    axes.axhline(level, color="C1", ls="--", label="FADE, epsilon 1")
    axes.axhspan(level - error, level + error, color="C1", alpha=0.2, lw=0)
    axes.legend(frameon=False)

# %% [markdown]
# **Exercise 16.6.** Write to both owners, three sentences each: what you advise, from how many
# customers on, and what you do *not* know. They have read a newspaper and no paper.

# %% [markdown] tags=["hint"]
# Whom did you compare with? What is assumed of tomorrow's customers? What would change your mind?

# %% [markdown] tags=["solution"]
# *Orange juice.* First raise your price: that alone wins back a third of what you lose. If you
# serve more than about a thousand customers, prices for each of them gain about as much again, and
# nobody can tell from them what a single customer did. I measured this on customers made from your
# past purchases; if tomorrow's are others, or prices followed demand, I do not know.
#
# *Flat shop.* Keep one price; find it by charging a few hundred customers random prices near
# today's. An agent would cost you more in its first thousand customers than a price that is 40
# cents wrong. If you serve ten thousands, or if customers begin to differ, ask me again.

# %% tags=["check"]
check("16.6")

# %% [markdown]
# ## What to remember
#
# * Three opponents: the status quo, the best fixed price, and no privacy. Say which one, always.
# * "Pays from N customers on" has an opponent, an error and a plan.
# * Where customers hardly differ, one price does: it is private and cheap, and need not be exact.
# * Whoever knows the best fixed price has learned it somewhere. That costs, too.
