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
# # Lab 1: Bandits and regret
#
# **Goal.** Play a bandit by hand, write a learner in ten lines, and tell from a curve of regret
# whether an agent learns.
#
# **You need.** Python and NumPy; no earlier lab.

# %%
import gymnasium as gym
import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns

import dpbandit
from dpbandit.agents import LinUCB
from dpbandit.experiments.labs import against, check, curves, sliders

sns.set_theme(style="ticks", palette="colorblind")
plt.rcParams["figure.constrained_layout.use"] = True

# %% [markdown]
# ## 1. One customer at a time
#
# A shop sells orange juice. A customer comes in, and the shop sees a few numbers about her: the
# **context**. It then shows her one of twelve prices: the **action**. She buys or she does not: the
# **reward** is what the shop earns. Then she leaves, and nobody ever learns what she would have
# paid at another price. That is all there is to a contextual bandit:
#
# ```
# context  ->  action  ->  reward of that action only
# ```
#
# The customers below are drawn from real purchases; how likely each is to buy at a price comes from
# a model fitted to those purchases.

# %%
env = gym.make("dpbandit/OJPricing-v0")
context, _ = env.reset(seed=1)
print("context: ", context.round(2))
print("prices:  ", env.unwrapped.prices, "dollars")

action = 7
next_context, reward, terminated, truncated, info = env.step(action)
print(f"charged {env.unwrapped.prices[action]:.2f} dollars, earned {reward:.2f}")
print({name: round(value, 3) for name, value in info.items()})

# %% [markdown]
# The dictionary `info` is for us, the observers. It knows the model, so it can say
#
# * `expected_reward`: what the action earns on average from such a customer,
# * `oracle_reward`: what the best action for her would have earned on average,
# * `regret`: the difference of the two.
#
# An agent must never look at it.
#
# **Exercise 1.1.** `env.reset(seed=1)` brings back the same first customer. Show her each of the
# twelve prices in turn. Which price has regret 0? Is it the highest price, or the lowest? Call the
# price, in dollars, `best_price`.

# %% [markdown] tags=["hint"]
# `env.reset(seed=1)` before every `env.step(k)`, and `step` returns `info` last. Collect its
# `regret` for k = 0, ..., 11.

# %% tags=["solution"]
first_customer = []
for k in range(12):
    env.reset(seed=1)
    first_customer.append(env.step(k)[-1])
for price, facts in zip(env.unwrapped.prices, first_customer, strict=True):
    print(f"{price:.2f}  earns {facts['expected_reward']:.3f}  regret {facts['regret']:.3f}")

best = int(np.argmin([facts["regret"] for facts in first_customer]))
best_price = env.unwrapped.prices[best]
print(f"The best price for her is {best_price:.2f} dollars.")
# the oracle is the best of these twelve prices, no more: its regret is exactly zero
assert first_customer[best]["regret"] == 0
assert 0 < best < 11  # neither the lowest price nor the highest

# %% tags=["check"]
check("1.1", best_price)

# %% [markdown]
# ## 2. Explore or exploit
#
# Which price is best for a shop that shows everybody the same one? It has to try them: **explore**.
# But every customer who is shown a bad price costs money, so it should soon use what it has
# learned: **exploit**.
#
# The simplest learner keeps the mean reward of each price. Most of the time it takes the price with
# the best mean. With a small probability it takes a random price instead. The literature calls this
# *epsilon-greedy*. Here epsilon will be the name of a privacy parameter from Lab 2 on, so we call
# the probability `exploration`.
#
# `gym.make_vec` runs many shops side by side. Everything below has one row for each of them: these
# are independent repetitions, so that we can say how much is luck.

# %%
HORIZON, SHOPS = 3_000, 100


def one_price_for_all(exploration):
    """Ignore the context. Returns what each round lost and earned, (HORIZON, SHOPS) each."""
    shops = gym.make_vec("dpbandit/OJPricing-v0", num_envs=SHOPS, horizon=HORIZON)
    shops.reset(seed=1)
    luck, every = np.random.default_rng(1), np.arange(SHOPS)
    plays, earned = np.zeros((2, SHOPS, 12))
    oracle, expected, received = np.zeros((3, HORIZON, SHOPS))
    for t in range(HORIZON):
        means = np.where(plays > 0, earned / np.maximum(plays, 1), np.inf)  # try each price once
        explore = luck.random(SHOPS) < exploration
        action = np.where(explore, luck.integers(12, size=SHOPS), means.argmax(axis=1))
        _, reward, _, _, info = shops.step(action)
        plays[every, action] += 1
        earned[every, action] += reward
        oracle[t], expected[t], received[t] = info["oracle_reward"], info["expected_reward"], reward
    return oracle, expected, received


oracle, expected, received = one_price_for_all(exploration=0.1)
for name, table in (("oracle", oracle), ("expected", expected), ("received", received)):
    print(f"{name:9s} {table.mean():.4f} dollars a customer")

# %% [markdown]
# **Exercise 1.2.** Play with `exploration` equal to 0, 0.01, 0.03, 0.1, 0.3 and 1. Draw the mean
# regret per customer against it, with an error bar for each mean. Which is best? Look at the spread
# between shops, too: what happens to a shop that never explores? Call the mean regrets, in this
# order, `mean_regrets`.

# %% [markdown] tags=["hint"]
# One call of `one_price_for_all` for each value; regret is what the oracle expects minus what is
# expected of the played price. Take the mean over rounds first: that leaves one number for each
# shop. `plt.errorbar` draws means with bars.

# %% tags=["solution"]
tried = [0, 0.01, 0.03, 0.1, 0.3, 1]
per_shop = []  # regret a customer, one row for each exploration
for exploration in tried:
    o, e, _ = one_price_for_all(exploration)
    per_shop.append((o - e).mean(axis=0))
per_shop = np.array(per_shop)
mean_regrets = per_shop.mean(axis=1)

axes = against(
    {"mean": per_shop},
    {"exploration (probability of a random price)": tried},
    title="Too little is a gamble, too much is a waste",
    ylabel="regret (dollars a customer)",
)
for place, shops in zip(axes.get_xticks(), per_shop, strict=True):
    axes.plot([place] * SHOPS, shops, ".", color="0.5", alpha=0.3, zorder=0)

for exploration, values in zip(tried, per_shop, strict=True):
    print(f"{exploration:5}: mean {values.mean():.4f}, worst of the shops {values.max():.4f}")
# differences of paired means (same customers) are several standard errors in either direction
gain = per_shop[5] - per_shop[3]
assert gain.mean() > 5 * gain.std() / SHOPS**0.5  # 0.1 beats always exploring
assert per_shop[0].std() > 2 * per_shop[3].std()  # never exploring: luck decides

# %% [markdown] tags=["solution"]
# A shop that never explores settles on whatever looked good after a few customers. Some are lucky.
# The others never find out.

# %% tags=["check"]
check("1.2", mean_regrets)

# %% [markdown]
# ## 3. What is lost, counted in three ways
#
# Add up the rounds, and you have **cumulative regret**. There is more than one way to count:
#
# * **regret** (also pseudo-regret): best expected reward minus the *expected* reward of what was
#   played. The luck of the sale is averaged out.
# * **noisy regret**: best expected reward minus the reward that was *received*. The same on
#   average, but a lucky customer makes it smaller.
# * **regret against the best single price**: regret, minus the regret of that one price.

# %%
oracle, expected, received = one_price_for_all(exploration=0.1)  # as in section 2
regret = (oracle - expected).cumsum(axis=0)
noisy = (oracle - received).cumsum(axis=0)
rounds = np.arange(1, HORIZON + 1)

figure, axes = plt.subplots(figsize=(7, 4))
for shop, color in zip(range(4), sns.color_palette("colorblind"), strict=False):
    axes.plot(rounds[:1500], regret[:1500, shop], color=color, lw=2)
    axes.plot(rounds[:1500], noisy[:1500, shop], color=color, lw=0.7)
axes.plot([], [], color="0.3", lw=2, label="regret")
axes.plot([], [], color="0.3", lw=0.7, label="noisy regret")
axes.legend()
axes.set_xlabel("round (one customer each)")
axes.set_ylabel("cumulative regret (dollars)")
axes.set_title("Four shops: regret, and the luck of the sale on top", loc="left")
sns.despine()

luck = noisy[-1] - regret[-1]
print(f"regret:       mean {regret[-1].mean():.0f} dollars")
print(f"noisy regret: mean {noisy[-1].mean():.0f} dollars")
print(f"they differ by {luck.mean():.0f} on average, by {luck.std():.0f} in a typical shop")
print(f"noisy regret falls in {(oracle < received).mean():.0%} of all rounds, regret in none")
# mean zero by definition; 4 standard errors are exceeded by chance in 1 of 16,000 seeds
assert abs(luck.mean()) < 4 * luck.std() / SHOPS**0.5
assert (expected <= oracle).all()  # nobody expects more than the oracle

# %% [markdown]
# Both count the same loss on average. Noisy regret adds the luck of every single sale: it falls
# whenever somebody buys. Regret never falls, and it needs fewer repetitions to show a difference.
# Every table and figure of this project uses it. But it needs the model: a real shop, which sees
# rewards only, cannot compute it.
#
# A band says where the mean of *all* shops may be, by the shops that were seen. The slider takes
# the first 2, 5, 10, 30 or 100 of them: which of the two bands is narrower, early and late?
# (Outside a notebook a slider stays where it begins.)


# %%
def first_shops(shops=10):
    curves(
        {"noisy regret": noisy[:, :shops], "regret": regret[:, :shops]},
        title="The band is where the mean of all shops may be",
        xlabel="round (one customer each)",
        ylabel="cumulative regret (dollars)",
        ylim=(0, 320),
    )


sliders(first_shops, shops=[2, 5, 10, 30, 100])

# %% [markdown]
# **Exercise 1.3.** Let twelve groups of shops play one price each, for ever (`exploration=0` will
# not do: write a small loop). Which single price is best? Subtract its regret from the learner's.
# How much of the learner's regret is left? Call that difference at the end, its mean over shops in
# dollars, `learning_cost`.

# %% [markdown] tags=["hint"]
# `info["regret"]` of a step is what every shop lost in it. Keep the seed 1, so that the customers
# are those of `regret`.

# %% tags=["solution"]
fixed = np.zeros((12, SHOPS))  # regret of each price after all rounds
for k in range(12):
    shops = gym.make_vec("dpbandit/OJPricing-v0", num_envs=SHOPS, horizon=HORIZON)
    shops.reset(seed=1)  # the same customers as above
    same_price = np.full(SHOPS, k)
    for _ in range(HORIZON):
        fixed[k] += shops.step(same_price)[-1]["regret"]

best = fixed.mean(axis=1).argmin()
learning = regret[-1] - fixed[best]
learning_cost = learning.mean()
print(f"best single price: {env.unwrapped.prices[best]:.2f} dollars")
print(f"it loses {fixed[best].mean():.0f} dollars, because customers differ")
print(f"the learner loses {learning_cost:.0f} more, because it has to find it")
assert learning_cost < fixed[best].mean() / 2  # most of the loss is no fault of the learning

# %% [markdown] tags=["solution"]
# The larger part of the regret never goes away, however well the shop learns: one price cannot suit
# everybody. Only an agent that **reads the context** can do better. And so a regret curve has to
# say what it is measured against.

# %% tags=["check"]
check("1.3", learning_cost)

# %% [markdown]
# ## 4. Linear or square root
#
# Now let us read the context. We leave the shop for a cleaner world, `dpbandit/GLMBandit-v0`: four
# arms, and arm $a$ pays $x \cdot \theta_a$ plus noise, where $x$ is the context and $\theta_a$ is
# unknown. A learner fits one ridge regression for each arm and plays the arm with the largest
# prediction, or, with probability `exploration(t)`, a random one.

# %%
ROUNDS, RUNS = 3_000, 100
WORLD = {"n_actions": 4, "dim": 3, "noise": 0.3}


def ridge_greedy(exploration, *, read_context=True):
    """Cumulative regret, (ROUNDS, RUNS)."""
    envs = gym.make_vec("dpbandit/GLMBandit-v0", num_envs=RUNS, horizon=ROUNDS, **WORLD)
    x, _ = envs.reset(seed=2)
    luck, every = np.random.default_rng(2), np.arange(RUNS)
    d = x.shape[1] if read_context else 1
    V = np.tile(np.eye(d), (RUNS, 4, 1, 1))  # I + sum of x x', for each run and arm
    u, theta = np.zeros((2, RUNS, 4, d))  # sum of r x, and V^-1 u
    regret = np.zeros((ROUNDS, RUNS))
    for t in range(ROUNDS):
        if not read_context:
            x = np.ones((RUNS, 1))
        explore = luck.random(RUNS) < exploration(t + 1)
        arm = np.where(explore, luck.integers(4, size=RUNS), np.matvec(theta, x).argmax(axis=1))
        next_x, reward, _, _, info = envs.step(arm)
        V[every, arm] += x[:, :, None] * x[:, None, :]
        u[every, arm] += reward[:, None] * x
        theta[every, arm] = np.linalg.solve(V[every, arm], u[every, arm][..., None])[..., 0]
        regret[t], x = info["regret"], next_x
    return regret.cumsum(axis=0)


lost = {
    "random": ridge_greedy(lambda t: 1.0),
    "ignores the context": ridge_greedy(lambda t: t**-0.5, read_context=False),
    "explores 10 % for ever": ridge_greedy(lambda t: 0.1),
    r"explores less and less, $t^{-1/2}$": ridge_greedy(lambda t: t**-0.5),
}


def slope(regret):
    """The exponent p of regret ~ T^p, between a tenth of the rounds and all of them."""
    mean = regret.mean(axis=1)
    return np.log10(mean[-1] / mean[ROUNDS // 10 - 1])


for name, curve in lost.items():
    print(f"{name:38s} regret {curve[-1].mean():6.0f}   exponent {slope(curve):.2f}")

# %% [markdown]
# An agent that goes on making the same mistakes loses the same amount in every round: its regret
# grows like $T$. An agent that **learns** makes fewer and fewer mistakes. If the chance of a
# mistake falls like $1/\sqrt{t}$, the sum grows like $\sqrt{T}$, which is as good as any agent can
# promise for all worlds of this kind. The exponent measured here is below 1/2, because the sum also
# has what the first rounds lost before anything was learned, and that part hardly grows.
#
# On ordinary axes all curves are just curves. On **log-log axes** a power $T^p$ is a straight line
# of slope $p$, and the difference is plain to see.

# %% tags=["picture"]
unit = "cumulative regret (units of reward)"
left = curves(lost, title="Ordinary axes: who is ahead", ylabel=unit)
left.set_ylim(top=lost["explores 10 % for ever"][-1].mean() * 2)
right = curves(lost, xscale="log", yscale="log", xlim=(10, ROUNDS), ylim=(1, None),
               title="Log-log axes: who learns", ylabel=unit)  # fmt: skip
t = np.arange(1, ROUNDS + 1)
for power, place in ((1, "slope 1"), (0.5, "slope 1/2")):
    start = {1: 0.04, 0.5: 0.9}[power]
    right.plot(t, start * t**power, color="0.5", lw=1)
    right.annotate(place, (ROUNDS, start * ROUNDS**power), xytext=(4, -3), color="0.4",
                   textcoords="offset points", annotation_clip=False)  # fmt: skip
left.legend(loc="upper right", framealpha=0.9)
right.get_legend().remove()

# %%
# Exponents are means over 100 runs; their spread from seed to seed is about 0.02
assert abs(slope(lost["random"]) - 1) < 0.05
assert abs(slope(lost["ignores the context"]) - 1) < 0.1
assert slope(lost["explores 10 % for ever"]) > 0.8  # on its way to 1: a tenth is thrown away
assert slope(lost[r"explores less and less, $t^{-1/2}$"]) < 0.6

# %% [markdown]
# **Exercise 1.4.** What exponent do you expect if exploration falls like $t^{-1/3}$? Guess first:
# add up $t^{-1/3}$ from 1 to $T$. Then measure it. Call the measured exponent `measured_exponent`.

# %% [markdown] tags=["hint"]
# A sum over t is nearly an integral: what is the integral of $t^{-1/3}$? To measure, use
# `ridge_greedy` and `slope` as above.

# %% tags=["solution"]
third = ridge_greedy(lambda t: t ** (-1 / 3))
measured_exponent = slope(third)
print(f"exponent {measured_exponent:.2f}: the sum of t^(-1/3) grows like T^(2/3)")
assert abs(measured_exponent - 2 / 3) < 0.08  # three to four times the spread from seed to seed

# %% tags=["check"]
check("1.4", measured_exponent)

# %% [markdown]
# **Exercise 1.5.** In this world even a **greedy** agent, which never explores, does well: contexts
# differ, so it tries different arms by itself. Compare it with $t^{-1/2}$ twice: by the **mean**
# regret over runs, and by the **worst** run. Which would you choose for your own shop? Call the
# greedy agent's regret at the end, one number for each run, `greedy_end`.

# %% [markdown] tags=["hint"]
# `ridge_greedy` takes a function of t, also where nothing is explored. The agent with $t^{-1/2}$
# is in `lost` already. Runs are columns: the last row has the regret of every run at the end.

# %% tags=["solution"]
greedy = ridge_greedy(lambda t: 0.0)
greedy_end = greedy[-1]
careful = lost[r"explores less and less, $t^{-1/2}$"]
for name, curve in (("greedy", greedy), ("careful", careful)):
    final = curve[-1]
    print(f"{name:8s} mean {final.mean():4.0f}, median {np.median(final):4.0f}, "
          f"worst of {RUNS} runs {final.max():4.0f}")  # fmt: skip
assert np.median(greedy[-1]) < np.median(careful[-1])
assert greedy[-1].max() / np.median(greedy[-1]) > 3 * careful[-1].max() / np.median(careful[-1])

# %% [markdown] tags=["solution"]
# In most runs greedy wins: it wastes nothing. In a few it never looks again at an arm that was
# unlucky at first, and pays for that in every round from then on. A mean over runs hides this, a
# quantile does not. Exploring is an insurance, and regret bounds are about what is insured.

# %% tags=["check"]
check("1.5", greedy_end)

# %% [markdown]
# ## 5. The same in one call
#
# You will not write this loop again. `dpbandit.compare` runs several agents on the same users,
# keeps the regret, and adds two baselines: random play (`Uniform`), and the best single action in
# hindsight (`BestFixed`). `LinUCB` explores where it knows little, not at random: it plays the arm
# with the largest prediction *plus* uncertainty. The table has the mean regret, its standard error,
# and the regret that 5 % and 95 % of runs stay below.

# %%
results = dpbandit.compare(
    "dpbandit/GLMBandit-v0",
    {"LinUCB": LinUCB()},
    horizon=ROUNDS,
    replicas=RUNS,
    seed=0,
    env_kwargs=WORLD,
    progress=False,
)
table = results.summary().set_index("agent")[["mean", "se", "q05", "q95"]]
print(table.round(1))
assert table.loc["LinUCB", "mean"] < table.loc["BestFixed", "mean"] / 5  # it reads the context
assert table.loc["LinUCB", "mean"] < lost["explores 10 % for ever"][-1].mean()

# %% [markdown]
# ## What to remember
#
# * A bandit sees the reward of what it did, never of what it might have done. So it has to explore.
# * Regret is what the best action would have earned, minus what yours earns, on average. Always
#   ask: the best among what?
# * Linear regret: it does not learn. Regret like $\sqrt{T}$: it does. Look at log-log axes.
# * Say how much is luck: repeat, and draw a band.
