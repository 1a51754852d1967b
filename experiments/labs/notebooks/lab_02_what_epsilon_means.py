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
# # Lab 2: What epsilon means
#
# **Goal.** Read epsilon as a bound on what anybody can find out, and measure it: audit a mechanism
# by hand, catch two broken ones, and know what joint privacy promises and what not.
#
# **You need.** Lab 1 is enough; a little probability.

# %%
from math import exp, log

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
from matplotlib.patches import FancyBboxPatch
from scipy.stats import binom

import dpbandit
from dpbandit.agents import AllocationTS, Thompson
from dpbandit.auditing.bounds import Claim, clopper_pearson, exact_epsilon
from dpbandit.experiments.labs import against, at_end, check, plus_minus, sliders
from dpbandit.privacy import curves

sns.set_theme(style="ticks", palette="colorblind")
plt.rcParams["figure.constrained_layout.use"] = True
BLUE, ORANGE, GREEN, RED, *_ = sns.color_palette("colorblind")

# %% [markdown]
# ## 1. An answer that may be a lie
#
# You ask people an embarrassing question, yes or no. Each throws a coin in secret. With probability
# $p$ she tells the truth, otherwise she says the opposite. This is **randomised response** (Warner,
# 1965). Nobody can be sure of anybody's answer. But over many people the lies average out.
#
# A mechanism is **epsilon-differentially private** if for any two truths, and any set of answers,
#
# $$P(\text{answer in the set} \mid \text{one truth}) \le
#   e^{\varepsilon}\, P(\text{answer in the set} \mid \text{the other}).$$
#
# Here that means $p \le e^{\varepsilon} (1 - p)$. We take the $p$ that meets it exactly.


# %%
def truth_probability(epsilon):
    return exp(epsilon) / (1 + exp(epsilon))


def randomised_response(truth, epsilon, rng):
    """truth: an array of 0 and 1. Returns what is said."""
    lies = rng.random(truth.shape) >= truth_probability(epsilon)
    return np.where(lies, 1 - truth, truth)


rng = np.random.default_rng(0)
people = (rng.random(10_000) < 0.3).astype(int)
said = randomised_response(people, 1.0, rng)
p = truth_probability(1.0)
print(f"truth told with probability {p:.3f}")
print(f"share of yes: in truth {people.mean():.3f}, said {said.mean():.3f}")
assert abs(log(p / (1 - p)) - 1) < 1e-12  # the ratio is e^1, by construction

# %% [markdown]
# **Exercise 2.1.** The share of yes that is said is $q = p s + (1 - p)(1 - s)$, where $s$ is the
# true share. Solve for $s$ to get an estimate without bias. Then repeat it 500 times for epsilon
# 0.1, 0.3, 1 and 3, and print the standard deviation of the estimate. What does privacy cost?
# Collect the deviations in a dict `spread`, with epsilon as its key.

# %% [markdown] tags=["hint"]
# The share of yes that is said, $q$, is linear in $s$: bring $1 - p$ to the other side. All 500
# repetitions are one call of `rng.binomial` with `size=500`.

# %% tags=["solution"]
plain = (people.mean() * (1 - people.mean()) / len(people)) ** 0.5  # of a poll without lies
spread = {}
for epsilon in (0.1, 0.3, 1, 3):
    p = truth_probability(epsilon)
    share = p * people.mean() + (1 - p) * (1 - people.mean())
    q = rng.binomial(len(people), share, size=500) / len(people)
    estimates = (q - (1 - p)) / (2 * p - 1)
    spread[epsilon] = estimates.std()
    print(f"epsilon {epsilon:3}: mean {estimates.mean():.3f}, deviation {spread[epsilon]:.4f}")
print(f"asking without privacy: {plain:.4f}")
# (2p - 1) is about epsilon / 2, so the error grows like 1 / epsilon; 10 % for 500 repetitions
assert abs(spread[0.1] / spread[0.3] - 3) < 0.4

# %% tags=["check"]
check("2.1", spread)

# %% [markdown]
# ## 2. The game
#
# What does epsilon mean to the person who answers? Imagine an attacker who knows everything about
# her but the answer. There are two worlds: in world A her truth is no, in world B it is yes. He
# sees what is released and says which world it is. Two numbers describe him:
#
# * the **false positive rate**: how often he says B when it is A,
# * the **true positive rate**: how often he says B when it is B.
#
# He wants the first small and the second large. Privacy is a bound on how well he can do:
#
# $$\text{TPR} \le e^{\varepsilon}\,\text{FPR} \qquad\text{and}\qquad
#   1 - \text{FPR} \le e^{\varepsilon}\,(1 - \text{TPR}).$$
#
# Whatever he knows and however he computes: no attack lies above this curve.

# %%
fpr = np.linspace(0, 1, 501)
figure, axes = plt.subplots(figsize=(5.2, 4.8))
for epsilon, color in ((0.1, GREEN), (1, BLUE), (3, RED)):
    axes.plot(fpr, Claim(epsilon, 0.0).highest(fpr), color=color, lw=2, label=f"epsilon {epsilon}")
    p = truth_probability(epsilon)
    axes.plot(1 - p, p, "o", color=color, ms=8)
axes.plot([0, 1], [0, 1], color="0.6", lw=1, ls=":", label="guessing")
axes.set_xlabel("false positive rate")
axes.set_ylabel("true positive rate")
axes.set_title("No attack lies above its curve", loc="left")
axes.legend(loc="lower right")
sns.despine()

# %% [markdown]
# The dots are the attack that believes the answer. Randomised response uses its epsilon up: the dot
# sits in the corner of the curve. On the diagonal the attacker might as well not look.
#
# **Exercise 2.2.** Before looking, the attacker thinks that she is a yes with probability 1/2. How
# sure can he be after he has heard a yes, for epsilon 0.1, 1 and 3? Use Bayes' rule. What if he had
# thought 1/100? Collect the answers in a dict `surest`, with (prior, epsilon) as its key.

# %% [markdown] tags=["hint"]
# Work with odds: Bayes' rule multiplies the odds before by how much more likely the answer is from
# a yes than from a no.

# %% tags=["solution"]
surest = {}
for prior in (0.5, 0.01):
    for epsilon in (0.1, 1, 3):
        odds = exp(epsilon) * prior / (1 - prior)  # a yes is e^epsilon times as likely
        surest[prior, epsilon] = odds / (1 + odds)
        print(f"prior {prior}: epsilon {epsilon} -> at most {surest[prior, epsilon]:.3f}")

# %% [markdown] tags=["solution"]
# Epsilon bounds how far the *odds* may move: by a factor of $e^{\varepsilon}$ at most, from
# wherever they were.

# %% tags=["check"]
check("2.2", surest)

# %% [markdown]
# ## 3. An audit by hand
#
# So far we believed the formula. Now suppose somebody hands us a program and claims epsilon 1. We
# can run it in both worlds and count. Then
#
# $$\hat\varepsilon = \log \frac{\text{TPR}}{\text{FPR}}$$
#
# estimates epsilon. But an estimate may be too high by luck, and we are about to accuse somebody.
# We need a **lower bound** that is wrong rarely. The bounds of Clopper and Pearson (1934) do that
# for one probability. Take the *lower* bound of TPR and the *upper* bound of FPR, each with half of
# the failure probability. Then the statement "epsilon is at least this" is wrong with probability
# at most `failure`.


# %%
def epsilon_at_least(false_positives, true_positives, runs, failure=0.05):
    _, fpr = clopper_pearson(false_positives, runs, failure / 2)
    tpr, _ = clopper_pearson(true_positives, runs, failure / 2)
    return np.log(np.maximum(tpr, fpr) / fpr)  # 0 where nothing is proved


RUNS = 20_000
world_a = randomised_response(np.zeros(RUNS, int), 1.0, rng)
world_b = randomised_response(np.ones(RUNS, int), 1.0, rng)
print(f"estimate    {log(world_b.mean() / world_a.mean()):.3f}")
print(f"lower bound {epsilon_at_least(world_a.sum(), world_b.sum(), RUNS):.3f}")

# %% [markdown]
# Is the bound honest? Audit the same correct mechanism many times, and count how often the bound
# exceeds the truth.

# %%
AUDITS = 20_000
p = truth_probability(1.0)
bounds = epsilon_at_least(
    rng.binomial(RUNS, 1 - p, size=AUDITS), rng.binomial(RUNS, p, size=AUDITS), RUNS
)
print(f"mean of the bound {bounds.mean():.3f}; above the true epsilon in {(bounds > 1).mean():.2%}")
# promised: at most 5 %; both rates have to be unlucky together, so it is far less
assert (bounds > 1).mean() < 0.05
assert 0.9 < bounds.mean() < 1  # and yet it is not far below the truth

# %% [markdown]
# An audit can **refute** a claim. It can never confirm one: there may be a better attack, or a
# worse pair of worlds.
#
# **Exercise 2.3.** How many runs does an audit take? Draw the mean lower bound for the correct
# mechanism against the number of runs, from 100 to a million. (`rng.binomial` saves you the loop
# over runs.) How many do you need to prove an epsilon of 0.9? Call the mean bounds after 1,000,
# 3,000 and 100,000 runs, in this order, `mean_bounds`.

# %% [markdown] tags=["hint"]
# With two binomials the audit of n runs is two numbers. Draw 2,000 of each at once, give both to
# `epsilon_at_least`, and take the mean.

# %% tags=["solution"]
sizes = [100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 1_000_000]
proved = np.array(
    [
        epsilon_at_least(rng.binomial(n, 1 - p, size=2_000), rng.binomial(n, p, size=2_000), n)
        for n in sizes
    ]
)
figure, axes = plt.subplots(figsize=(6.5, 3.8))
low, high = np.quantile(proved, [0.05, 0.95], axis=1)
axes.plot(sizes, proved.mean(axis=1), "o-")
axes.fill_between(sizes, low, high, alpha=0.2, lw=0, label="90 % of the audits")
axes.axhline(1, color="0.5", ls=":", label="the truth")
axes.set_xscale("log")
axes.set_xlabel("runs of each world")
axes.set_ylabel("epsilon proved")
axes.set_title("An audit proves less than the truth", loc="left")
axes.legend(loc="lower right")
sns.despine()
enough = next(n for n, mean in zip(sizes, proved.mean(axis=1), strict=True) if mean > 0.9)
print(f"of these sizes, {enough:,} runs are the first to prove 0.9 on average")
mean_bounds = [proved[sizes.index(n)].mean() for n in (1_000, 3_000, 100_000)]

# %% tags=["check"]
check("2.3", mean_bounds)

# %% [markdown]
# ## 4. Two broken programs
#
# Both claim epsilon 1.
#
# * `rounded` tells the truth with probability 3/4, because that is so easy with two coins.
# * `hurried` gets the probability right. But it takes a little longer to make up a lie, and the web
#   page shows how long it took.


# %%
def correct(truth, rng):
    return randomised_response(truth, 1.0, rng), np.ones(truth.shape, int)


def rounded(truth, rng):
    lies = rng.integers(4, size=truth.shape) == 0
    return np.where(lies, 1 - truth, truth), np.ones(truth.shape, int)


def hurried(truth, rng):
    answer = randomised_response(truth, 1.0, rng)
    return answer, np.where(answer == truth, 1, 2)  # milliseconds


# %% [markdown]
# The attacker may use **everything he sees**, here a pair (answer, milliseconds). What is his best
# attack? By Neyman and Pearson (1933): call B whatever is more likely in B than in A, in order of
# the likelihood ratio. He does not know the ratios, so he learns them.
#
# **He must not learn and measure on the same runs.** Otherwise he picks what was luckiest. So one
# half of the runs chooses the attack, and the other half measures it, once.


# %%
def view(program, truth, runs, rng):
    """One number for each pair (answer, milliseconds)."""
    answer, time = program(np.full(runs, truth), rng)
    return 2 * answer + (time - 1)


def audit(program, runs, rng, failure=0.05):
    """Bounds (FPR from above, TPR from below), and the epsilon they prove."""
    choose, measure = ([view(program, world, runs, rng) for world in (0, 1)] for _ in range(2))
    a, b = (np.bincount(v, minlength=4) / runs for v in choose)
    order = np.argsort(-(b + 1 / runs) / (a + 1 / runs))  # most telling first
    chosen = [set(order[: k + 1]) for k in range(3)]
    attack = max(chosen, key=lambda s: epsilon_at_least(*hits(s, *choose), runs, failure))
    false, true = hits(attack, *measure)
    _, fpr = clopper_pearson(false, runs, failure / 2)
    tpr, _ = clopper_pearson(true, runs, failure / 2)
    return float(fpr), float(tpr), float(epsilon_at_least(false, true, runs, failure))


def hits(attack, a, b):
    return np.isin(a, list(attack)).sum(), np.isin(b, list(attack)).sum()


found = {f.__name__: audit(f, RUNS, np.random.default_rng(1)) for f in (correct, rounded, hurried)}
for name, (_, _, epsilon) in found.items():
    verdict = "FLAGGED: the claim of 1 is refuted" if epsilon > 1 else "not refuted"
    print(f"{name:8s} epsilon >= {epsilon:.3f}   {verdict}")
# correct passes with probability 95 % or more (far more, see above); the others must be caught
assert found["correct"][2] <= 1 < found["rounded"][2] < found["hurried"][2]

# %% [markdown]
# Draw it. Each dot is the best attack that was found, with both rates taken pessimistically. A dot
# above the blue curve is a proof, up to the stated failure probability, that the claim is false.

# %% tags=["picture"]
figure, axes = plt.subplots(figsize=(6.4, 5.8))
claim = Claim(1.0, 0.0).highest(fpr)
axes.fill_between(fpr, claim, 1.02, color=RED, alpha=0.08, lw=0)
axes.fill_between(fpr, 1 - claim[::-1], claim, color=BLUE, alpha=0.12, lw=0)
axes.plot(fpr, claim, color=BLUE, lw=2.5, label="the claim, epsilon 1")
axes.plot([0, 1], [0, 1], color="0.6", lw=1, ls=":", label="guessing")
for (name, (x, y, epsilon)), color, mark in zip(
    found.items(), (GREEN, ORANGE, RED), "osD", strict=True
):
    axes.plot(x, y, mark, color=color, ms=10, label=f"{name}: epsilon at least {epsilon:.2f}")
axes.text(0.03, 0.9, "forbidden by the claim", color=RED, fontsize=11)
axes.text(0.42, 0.34, "what the claim allows", color=BLUE, fontsize=11)
axes.set(xlim=(-0.01, 1), ylim=(0, 1.02))
axes.set_xlabel("false positive rate: A taken for B")
axes.set_ylabel("true positive rate: B recognised")
axes.set_title(f"An audit of {RUNS:,} runs a world, failure 5 %", loc="left")
axes.legend(loc="lower right")
sns.despine()

# %% [markdown]
# `rounded` is only a little wrong: its epsilon is $\log 3$. The audit sees it because it has enough
# runs. `hurried` gives everything away: its epsilon is infinite. But what an audit *proves* is
# limited by its runs: no false positive in $N$ runs only shows that the rate is below about $4/N$.
#
# **Exercise 2.4.** With how many runs does the audit catch `rounded` in 9 of 10 cases? Try 1,000,
# 5,000, 10,000 and 20,000, with 100 audits each. Collect the share of audits that catch it in a
# dict `caught_share`, with the runs as its key.

# %% [markdown] tags=["hint"]
# `audit` returns the bound last; `rounded` is caught if that is above the claim of 1. Every audit
# needs a seed of its own.

# %% tags=["solution"]
caught_share = {}
for runs in (1_000, 5_000, 10_000, 20_000):
    caught = [audit(rounded, runs, np.random.default_rng((runs, i)))[2] > 1 for i in range(100)]
    caught_share[runs] = np.mean(caught)
    print(f"{runs:6,} runs: caught in {caught_share[runs]:.0%}")
assert caught_share[20_000] > 0.9

# %% tags=["check"]
check("2.4", caught_share)

# %% [markdown]
# **Exercise 2.5.** What goes wrong if one half does both? Take a program that ignores the truth and
# says a random number from 0 to 49. Its epsilon is 0. Choose the best set of answers, then compute
# the bound **on the same runs**, with 400 runs of each world. How often does this "prove" an
# epsilon above 0? And on fresh runs? Call the shares of false alarms `same` and `fresh`.

# %% [markdown] tags=["hint"]
# The best set has the answers that came more often in one world than in the other (`np.bincount`).
# Count how often each world hits the set, and give the counts to `epsilon_at_least`.

# %% tags=["solution"]
false_alarms = np.zeros(2)
for _ in range(500):
    a, b, fresh_a, fresh_b = np.random.default_rng(_).integers(50, size=(4, 400))
    more = np.bincount(b, minlength=50) > np.bincount(a, minlength=50)
    false_alarms[0] += epsilon_at_least(more[a].sum(), more[b].sum(), 400) > 0
    false_alarms[1] += epsilon_at_least(more[fresh_a].sum(), more[fresh_b].sum(), 400) > 0
same, fresh = false_alarms / 500
print(f"false alarms: same runs {same:.0%}, fresh runs {fresh:.1%}, allowed 5 %")
assert same > 0.5
assert fresh < 0.05

# %% tags=["check"]
check("2.5", same, fresh)

# %% [markdown]
# ## 5. Asking again
#
# Ask the same person twice, with fresh coins, and epsilon adds up: two answers at epsilon 0.1 are
# 0.2-private together. This is **basic composition**. It is the truth about the very worst case,
# all answers alike. But if we forgive an event of probability $\delta$, the sum grows far more
# slowly: luck partly cancels. This is why privacy over many rounds is stated with two numbers,
# $(\varepsilon, \delta)$.
#
# For randomised response we can compute the exact answer: the number of yeses is binomial in both
# worlds. And there is a bound that holds for all mechanisms of that epsilon, by zero-concentrated
# differential privacy (zCDP, Bun and Steinke, 2016). The slider moves epsilon of each answer.

# %%
DELTA = 1e-5
counts = np.array([1, 2, 5, 10, 20, 50, 100, 200, 500])


def of_all(each):
    """Epsilon of that many answers together: basic, by zCDP, and exactly."""
    p = truth_probability(each)
    exact = []
    for k in counts:
        yeses = np.arange(k + 1)
        exact.append(exact_epsilon(binom.pmf(yeses, k, 1 - p), binom.pmf(yeses, k, p), DELTA))
    concentrated = [curves.zcdp_epsilon_of(k * each**2 / 2, DELTA) for k in counts]
    return counts * each, np.array(concentrated), np.array(exact)


def together(each=0.1):
    _, axes = plt.subplots(figsize=(6.8, 4))
    names = "basic: add up epsilon", "zCDP: add up epsilon squared", "exact, for these answers"
    for name, values, look in zip(names, of_all(each), ("s--", "o-.", "D-"), strict=True):
        axes.plot(counts, values, look, label=name)
    axes.set(xscale="log", yscale="log", ylim=(0.01, 600))
    axes.set_xlabel(f"answers of one person (epsilon {each} each)")
    axes.set_ylabel(f"epsilon of all of them, at delta {DELTA:g}")
    axes.set_title("A sum, and the square root of a sum of squares", loc="left")
    axes.legend()
    sns.despine()


sliders(together, each=[0.02, 0.05, 0.1, 0.2, 0.5, 1.0])

# %%
basic, concentrated, exact = of_all(0.1)
for row in zip(counts, basic, concentrated, exact, strict=True):
    print("{:4d} answers: basic {:6.2f}   zCDP {:5.2f}   exact {:5.2f}".format(*row))
assert (exact <= np.minimum(basic, concentrated) + 1e-9).all()  # both are upper bounds
assert concentrated[-1] < 50 / 4  # 500 answers: far below the plain sum of 50

# %% [markdown]
# **Exercise 2.6.** For few answers the zCDP bound is the worse of the two. From how many on is it
# better? What happens to that number if epsilon of each answer is 0.5? Call the two numbers
# `from_on`, as a list.

# %% [markdown] tags=["hint"]
# Basic composition of k answers has k times epsilon of each. zCDP has rho = k epsilon^2 / 2;
# `curves.zcdp_epsilon_of(rho, DELTA)` turns that into epsilon. Try k = 1, 2, ...

# %% tags=["solution"]
from_on = []
for each in (0.1, 0.5):
    k = next(
        k for k in range(1, 10_000) if curves.zcdp_epsilon_of(k * each**2 / 2, DELTA) < k * each
    )
    from_on.append(k)
    print(f"epsilon {each} each: zCDP is better from {k} answers on")

# %% tags=["check"]
check("2.6", from_on)

# %% [markdown]
# ## 6. Joint privacy, in one drawing
#
# A bandit has to show a user something made for her: her own action depends on her own context, and
# should. So the promise cannot be about her own action. **Joint differential privacy** (Kearns et
# al., 2014; for bandits Shariff and Sheffet, 2018) is about everybody else's:
#
# > Replace one user by anybody else. The actions of **all other users, together**, are as good as
# > indistinguishable: $(\varepsilon, \delta)$.
#
# The attacker may be all other users, putting their heads together.

# %%
figure, axes = plt.subplots(figsize=(9.5, 4.8))
axes.set(xlim=(0, 10), ylim=(0, 5.6))
axes.axis("off")


def box(x, y, width, text, color, **look):
    shape = FancyBboxPatch((x, y), width, 0.62, boxstyle="round,pad=0.04", fc=color, **look)
    axes.add_patch(shape)
    axes.text(x + width / 2, y + 0.31, text, ha="center", va="center", fontsize=10)


def arrow(start, end, **look):
    axes.annotate("", end, start, arrowprops={"arrowstyle": "->", "lw": 1.4, **look})


pale, grey = (*BLUE, 0.18), "0.93"
for t in range(1, 5):
    x, changed = 2.35 * t - 1.65, t == 2
    look = {"color": RED} if changed else {"color": "0.4"}
    box(x, 4.6, 1.9, f"user {t}", (*RED, 0.3) if changed else grey, ec=look["color"], lw=1.5)
    if changed:
        box(x, 2.8, 1.3, "action 2,\nfor her alone", "white", ec="0.6", lw=1.5, ls="--")
    else:
        box(x, 2.8, 1.3, f"action {t}", pale, ec=BLUE, lw=1.5)
    arrow((x + 0.4, 4.5), (x + 0.4, 3.52), **look)
    axes.text(x + 0.48, 3.95, "context", fontsize=8, color="0.3")
    arrow((x + 1.65, 4.5), (x + 1.65, 1.72), ls=":", **look)
    if t > 1:
        arrow((x + 0.4, 1.72), (x + 0.4, 2.7), color="0.4")
        axes.text(x + 0.48, 2.1, "noisy sum", fontsize=8, color="0.3")
box(0.7, 1.0, 8.95, "mechanism: adds up what users bring, and releases the sum with noise",
    (*GREEN, 0.2), ec=GREEN, lw=1.5)  # fmt: skip
axes.text(0.7, 0.45, "dotted: context and reward go into the mechanism", fontsize=9, color="0.3")
axes.set_title("Joint DP: replace user 2; the blue boxes together hardly change", loc="left")

# %% [markdown]
# **Exercise 2.7.** Which of these agents keep joint privacy with a small epsilon?
#
# * (a) It plays the sign of the user's context and learns nothing.
# * (b) It learns without noise, but shows nobody what it has learned, only its actions.
# * (c) It learns through a noisy sum, and also greets every user with the previous user's action.
# * (d) It learns through a noisy sum, but it updates the sum only if the user clicked.

# %% [markdown] tags=["hint"]
# Joint privacy of a user is about what *all others* are served, and whether it can depend on her.
# Ask of each: by which way does her data reach another user, and is there noise on that way?

# %% [markdown] tags=["solution"]
# * (a) **Yes, epsilon 0.** Her own action reveals her context completely, but to her alone.
# * (b) **No.** Later actions are a function of exact data. One user can tip the choice between two
#   arms.
# * (c) **No.** The previous user's action depends on her context, and is now shown to somebody
#   else.
# * (d) **It depends on where the noise is.** If the *number* of updates can be seen, the tick
#   itself reveals a click. The sum has to move on in every round, whatever the user did.

# %% tags=["check"]
check("2.7")

# %% [markdown]
# ## 7. Two arms, and one kind of noise
#
# Now a bandit, the smallest there is. One arm pays a dollar with probability 0.6, the other with
# 0.4, so whoever plays the wrong one loses 0.2 a round, on average, and random play loses 200 in
# 2,000 rounds. **Thompson sampling** draws what each arm may be worth, and plays the better draw.
#
# Each reward is somebody's secret, and whoever watches which arms are played learns something of
# it. A remedy: add **Laplace noise** of size $1 / \varepsilon$ to what the learner sees. Its
# density falls by a factor of $e^{\varepsilon}$ over a distance of 1, and one reward can move by
# no more than 1. So noise on every reward keeps epsilon. It costs nearly all there is to gain:

# %%
ROUNDS, REPLICAS = 2_000, 100


def noise_on_every_reward(epsilon):
    """Regret of upper confidence bounds that know how large the noise is, a number for each run."""
    every, plays, sums = np.arange(REPLICAS), *np.zeros((2, REPLICAS, 2))
    for t in range(1, ROUNDS + 1):
        width = np.sqrt(2 * np.log(t) * (1 / 4 + 2 / epsilon**2) / np.maximum(plays, 1))
        means = np.where(plays == 0, np.inf, sums / np.maximum(plays, 1) + width)
        arm = means.argmax(axis=1)
        reward = rng.random(REPLICAS) < np.array([0.6, 0.4])[arm]
        plays[every, arm] += 1
        sums[every, arm] += reward + rng.laplace(scale=1 / epsilon, size=REPLICAS)
    return 0.2 * plays[:, 1]


lost = noise_on_every_reward(0.1)
print(f"one noise for each reward, epsilon 0.1: regret {plus_minus(lost)}")

# %% [markdown]
# One noise for the *sum* of a whole batch protects everybody in the batch as well, because each is
# in one sum only. `AllocationTS` is Thompson sampling from such sums, in batches that grow. At the
# end of a batch it draws 100 times, and plays each arm as often as it came out best. What does
# privacy cost now?

# %%
EPSILONS = [0.1, 0.3, 1.0, 3.0]
agents = {f"{e:g}": AllocationTS(epsilon=e, draws=100) for e in EPSILONS}
results = dpbandit.compare(
    "Arms",
    {"Thompson": Thompson(), **agents},
    horizon=ROUNDS,
    replicas=REPLICAS,
    progress=False,
)
print(results.summary().set_index("agent")[["mean", "se"]].round(1))
regret = at_end(results)

axes = against(
    {"AllocationTS": [regret[name] for name in agents]},
    {"epsilon": EPSILONS},
    title="One noise for each batch: regret falls with epsilon",
    ylabel="regret after 2,000 rounds (dollars)",
    yscale="log",
)
axes.axhline(regret["Thompson"].mean(), color="0.5", ls=":", label="without privacy")
axes.legend()
# the two means are 90 apart and more, each with a standard error below 10
assert regret["0.1"].mean() < lost.mean() / 2

# %% [markdown]
# The audit by hand of section 3 is one call for any agent. `dpbandit.audit` plays the agent in each
# of two worlds that differ in one user, looks for the best attack on one half of the runs, and
# measures it on the other. Its report has `eps_lower`, the epsilon that the agent has *at least*.
#
# **Exercise 2.8.** A seller says that this agent has epsilon 1, but it has half of the noise that
# this takes: `AllocationTS(epsilon=2.0, draws=100)`. Audit it on `"Arms"`, with a horizon of 9
# rounds and 3,000 runs of each world, and call what is proven `proven`. Is the seller refuted?

# %% [markdown] tags=["hint"]
# Like `compare`, `audit` takes the environment by name and numbers by keyword, but a single agent,
# and that first; `progress=False` keeps it quiet. To refute a claim, what is proven must exceed it.

# %% tags=["solution"]
half = AllocationTS(epsilon=2.0, draws=100)
report = dpbandit.audit(half, "Arms", horizon=9, runs=3_000, progress=False)
proven = report.eps_lower
print(f"the seller says 1, at least {proven:.2f} is proven")
assert 1 < proven <= 2  # refuted; and no more than it has, by its certificate

# %% tags=["check"]
check("2.8", proven)

# %% [markdown]
# ## What to remember
#
# * Epsilon bounds the odds: whatever an attacker knows, what he sees moves them by at most a factor
#   of $e^\varepsilon$.
# * A proof bounds epsilon from above, an audit from below. An audit refutes; it never confirms.
# * Choose the attack on one half of the runs, measure it once on the other.
# * The view is everything that can be seen, response times included.
# * Composition: at worst the sum; with a small $\delta$, about the root of the sum of squares.
# * Joint DP hides a user from everybody *else*. Her own action is hers.
# * One noise for the sum of a batch protects everybody in it, and costs far less than one for each.
