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
# # Lab 14: Whom do you trust?
#
# **Goal.** Say what a server sees under four models of trust, what each of them costs, and what a
# person pays who comes back.
#
# **You need.** Labs 1, 2 and 4.
#
# So far a server knew everything and let out little. Now it may know less: sums that devices have
# blurred together, messages in random order, or nothing but what each device has blurred alone.

# %%
import numpy as np
import seaborn as sns

from dpbandit import certify, compare
from dpbandit.experiments.labs import against, at_end, check, sliders
from dpbandit.privacy.bits import least_coins
from dpbandit.privacy.curves import mu_of
from dpbandit.privacy.messages import PrivUnit

sns.set_theme(style="ticks", palette="colorblind")
EPSILON, DELTA = 1.0, 1e-5

# %% [markdown]
# ## 1. One bit of each of n people
#
# Who bought? A trusted server adds Laplace noise of scale 1/epsilon to the number of buyers. With
# nobody to trust, everybody tells a coin's side in place of the truth now and then: randomised
# response, the truth with probability p = e^epsilon / (1 + e^epsilon).

# %%
rng = np.random.default_rng(14)
bought = rng.random(10_000) < 0.3


def central(truth, epsilon):
    """The number of buyers, with the noise of a trusted server."""
    return truth.sum() + rng.laplace(scale=1 / epsilon)


def local(truth, epsilon):
    """The same from answers that lie with probability 1 - p, corrected for that."""
    p = np.exp(epsilon) / (1 + np.exp(epsilon))
    answers = np.where(rng.random(len(truth)) < p, truth, ~truth)
    return (answers.sum() - len(truth) * (1 - p)) / (2 * p - 1)


def off(epsilon=EPSILON):
    """Draw by how many buyers both counts are off, for crowds of three sizes."""
    crowds = {n: bought[:n] for n in (100, 1_000, 10_000)}
    errors = {
        name: [
            [abs(count(crowd, epsilon) - crowd.sum()) for _ in range(200)]
            for crowd in crowds.values()
        ]
        for name, count in (("a server", central), ("nobody is trusted", local))
    }
    axes = against(errors, {"people": [*crowds]}, yscale="log", ylim=(0.1, 1e4))
    axes.set_ylabel("buyers by which a count is off")
    axes.set_title(f"One bit of each person, epsilon {epsilon:g}", loc="left")


sliders(off, epsilon=[0.1, 0.3, 1.0, 3.0])

# %% [markdown]
# **Exercise 14.1.** Compute the standard deviation of the local count for n people at epsilon 1,
# and call it `local_noise(n)`. By how much does it grow if there are 100 times as many?

# %% [markdown] tags=["hint"]
# Each answer has variance p (1 - p), whatever the truth is; the correction divides by 2 p - 1.


# %% tags=["solution"]
def local_noise(n):
    """sqrt(n p (1 - p)) / (2 p - 1): ten times as much for 100 times as many."""
    p = np.exp(EPSILON) / (1 + np.exp(EPSILON))
    return np.sqrt(n * p * (1 - p)) / (2 * p - 1)


# %% tags=["check"]
check("14.1", local_noise)

# %% [markdown]
# The central noise does not depend on n at all, at any epsilon. That is what trust is worth: a
# factor of sqrt(n).

# %% [markdown]
# ## 2. A sum that nobody sees the parts of
#
# In between: every device sends its true bits and a few fair coins, and a protocol adds all that up
# or mixes it. The server learns (ones) + Binomial(N, 1/2). How many coins N hide one person who
# moves d such sums by 1 each? The program has the exact law of that, and finds the least N.

# %%
mu = mu_of(EPSILON, DELTA)
for d in (1, 10, 50):
    N = least_coins(bits=d, arms=False, epsilon=EPSILON, delta=DELTA)
    print(f"{d:3} sums: {N:5} coins for each, {4 * d / mu**2:7.1f} by the normal approximation")

# %% [markdown]
# **Exercise 14.2.** A batch has 300 devices, of which a fraction h can be relied on to toss their
# coins. How many coins has each to send for each of ten sums, so that the honest ones have enough?
# Call it `coins_each(h)`.

# %% [markdown] tags=["hint"]
# Nothing is expected of the others: h 300 devices have to bring all N, in whole coins.


# %% tags=["solution"]
def coins_each(h):
    """N / (300 h), rounded up."""
    N = least_coins(bits=10, arms=False, epsilon=EPSILON, delta=DELTA)
    return int(np.ceil(N / (300 * h)))


# %% tags=["check"]
check("14.2", coins_each)

# %% [markdown]
# If only half are honest the others' coins are there, too: the sum is noisier than it had to be.
# And whoever mixes could look: a colluding shuffler sees the true bits.

# %% [markdown]
# ## 3. Nobody but oneself
#
# A message that is private by itself points somewhere near the truth u, a unit vector of R^D. Two
# ways: u plus Gaussian noise, which keeps (epsilon, delta); or a random point of a sphere, more
# often than not in a cap about u (`PrivUnit`), which keeps epsilon and no delta.

# %%
for D in (2, 10, 50):
    gaussian, unit = 4 / mu**2, PrivUnit.of(dim=D, epsilon=EPSILON).variance(D)
    print(f"D = {D:2}: variance of a coordinate {gaussian:.1f} by noise, {unit:.2f} by a cap")

# %% [markdown]
# **Exercise 14.3.** With noise of variance V a message, the mean of n messages knows a coordinate
# up to sqrt(V / n). A server that is trusted adds noise of standard deviation 2 / mu to the sum of
# u, once. How many people does `PrivUnit` at D = 10 need to be as good as the server is with 1,000
# of them? Call it `people`.

# %% [markdown] tags=["hint"]
# The server's mean of 1,000 is off by 2 / (1,000 mu). Ignore what people differ by.

# %% tags=["solution"]
V = PrivUnit.of(dim=10, epsilon=EPSILON).variance(10)
people = V / (2 / (1_000 * mu)) ** 2
print(f"{people:,.0f}")

# %% tags=["check"]
check("14.3", people)

# %% [markdown]
# ## 4. In regret
#
# One agent, `broadcast`, under all four: it broadcasts a model, devices choose and answer. Same
# users, same epsilon. Watch what the certificates say of the server.

# %%
models = {"central": "a server", "aggregated": "a sum", "shuffled": "a mixer", "local": "nobody"}
for trust in models:
    print(certify(f"broadcast:trust={trust}", "GLMBandit", accountants=False).notion)

# %%
world = {"shared": True, "link": "logistic", "signal": 4.0}
names = [f"broadcast:trust={trust}:epsilon={e}" for trust in models for e in (1, 4)]
found = compare(
    "GLMBandit",
    [*names, "broadcast:epsilon=inf"],
    horizon=1_500,
    replicas=100,
    seed=14,
    env_kwargs=world,
    progress=False,
)
print(found.summary().set_index("agent").loc[[*names, "Uniform"], ["mean", "se"]].round(0))
regret = at_end(found)
assert regret[names[6]].mean() > 1.5 * regret[names[0]].mean()  # nobody against a server
assert np.allclose(regret[names[0]], regret[names[2]])  # a sum is as good as a server

# %% tags=["picture"]
axes = against(
    {f"epsilon {e}": [regret[name] for name in names[k::2]] for k, e in enumerate((1, 4))},
    {"who is trusted": [*models.values()]},
    title="A sum costs nothing, nobody costs a lot",
    ylabel="regret after 1,500 rounds",
)
axes.axhline(regret["broadcast:epsilon=inf"].mean(), color=".3", ls=":", label="no privacy")
axes.legend(frameon=False, loc="upper left")
sns.despine()

# %% [markdown]
# **Exercise 14.4.** "A server" and "a sum" lose the same, to the last digit. Why? And which agent
# could a trusted server play that aggregation cannot? Write your answer as one of these letters,
# `answer`: (a) one that adds more noise, (b) one that uses a user in more than one release, (c) one
# that keeps no sums.

# %% [markdown] tags=["hint"]
# What does the server have to keep, exactly, to use a batch twice?

# %% tags=["solution"]
answer = "b"

# %% [markdown] tags=["solution"]
# Honest shares of noise add up to the server's noise, and every user is in one sum. A trusted
# server may keep exact sums and let them fade over several releases, as `fade` does.

# %% tags=["check"]
check("14.4", answer)

# %% [markdown]
# ## 5. She comes back
#
# Now people come 20 times, and what is protected is a person, in all her visits. A sum that she
# enters k times moves k times as far, if she is unlucky with batches.
#
# **Exercise 14.5.** There are m releases, each of one batch; she comes k times. How many times
# further do all releases together move than for one visit, in Euclidean length, if what is summed
# is (a) her first visit ever, (b) her first visit of each batch, (c) every visit, all of them in
# one batch? Write `further(k, m)` that returns the three.

# %% [markdown] tags=["hint"]
# (b) moves as many releases as she has batches, each by 1: what is the length of (1, 1, .., 1)?


# %% tags=["solution"]
def further(k, m):
    """1, sqrt(min(k, m)) and k."""
    return 1, np.sqrt(min(k, m)), k


# %% tags=["check"]
check("14.5", further)

# %%
ways = {
    "personal-fade": "what memories say, and memory",
    "personal-fade:trust=aggregated:honest=0.5": "the same by a sum, half honest",
    "personal-fade:counted=visits": "every visit, and memory",
    "memory-alone": "memory alone, epsilon 0",
}
back = compare(
    "ReturningUsers",
    list(ways),
    horizon=1_000,
    replicas=100,
    seed=14,
    env_kwargs={"people": 50, "visits": 20},
    progress=False,
)
later = back.summary().set_index("agent")["mean"]
for name, words in ways.items():
    print(f"{later[name]:6.0f}  {words}")
assert later["personal-fade"] < later["Uniform"]

# %% [markdown]
# Her own memory stays on her device, is exact, and costs nothing: it reaches no action but hers.

# %% [markdown]
# ## 6. Her own price
#
# A shop quotes customers who come back a price each. A public survey says how tastes differ; what
# she bought before says which are hers. Both agents below have epsilon 0: why may she pay a price
# that was made of her own purchases?

# %%
history, nothing = (
    f"personal-pricing:population=survey:memory={kept}" for kept in ("true", "false")
)
for agent in (history, nothing):
    assert certify(agent, "ReturningPricing", accountants=False).epsilon == 0
shop = compare(
    "ReturningPricing",
    [history, nothing],
    horizon=500,
    replicas=100,
    seed=14,
    env_kwargs={"people": 25, "visits": 20},
    progress=False,
)
lost = shop.summary().set_index("agent")["mean"]
print(f"cents lost: {lost[history]:.0f} with her history, {lost[nothing]:.0f} without")
assert lost[history] < lost[nothing]

# %% [markdown]
# Joint privacy of a person speaks of what all *others* see. It does not promise that she pays what
# they pay: whoever minds prices less is asked more.

# %% [markdown]
# ## What to remember
#
# * Trust is a factor of sqrt(n): a server's noise does not grow with the crowd, everybody's own
#   does.
# * Adding up by a protocol is as good as a server, if the devices are honest. Say how many have to
#   be.
# * At one's own door pure messages are cheaper than Gaussian ones.
# * A person who comes back should be paid for once, and remembered at home.
