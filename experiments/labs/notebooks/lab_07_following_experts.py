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
# # Lab 7: Following experts
#
# **Goal.** Learn from many experts without telling what any user lost: build Hedge, make it
# private, see why asking "has my expert become bad?" is cheaper than choosing anew every round,
# and measure the price against epsilon and the number of experts.
#
# **You need.** Labs 1 and 2.
#
# A web shop has 256 ways to rank its products. One click of a customer tells for *each* of them
# whether it would have been right. So this is not a bandit: after every round you see the losses
# of all d experts, not only of the one you followed. What a customer wants to hide is her whole
# vector of losses: it says what she clicked on.

# %%
from math import exp, log, sqrt

import numpy as np
import seaborn as sns

from dpbandit import certify, play
from dpbandit.agents import (
    ExponentialLeader,
    Hedge,
    ShrinkingDartboard,
    SparseVectorExperts,
    Uniform,
)
from dpbandit.envs import Experts
from dpbandit.experiments.labs import against, check, curves, plus_minus
from dpbandit.privacy.ledger import Ledger
from dpbandit.privacy.pure import BoundedRangeSpend
from dpbandit.specs.convex import ExpertsSpec

sns.set_theme(style="ticks", palette="colorblind")
DELTA = 1e-6

# %% [markdown]
# ## 1. Hedge, without privacy
#
# Keep the total loss S_i of every expert. Follow expert i with probability proportional to
# exp(-eta S_i). Bad experts fade away exponentially fast.
#
# We begin with coins: expert 0 never errs, all others lose every second round, by chance. Regret is
# your total loss minus that of the best expert, here 0.

# %%
rng = np.random.default_rng(7)


def coins(rounds: int, experts: int) -> np.ndarray:
    """Losses (rounds, experts) of 0 or 1; expert 0 never errs."""
    losses = rng.integers(0, 2, (rounds, experts))
    losses[:, 0] = 0
    return losses


def hedge(losses: np.ndarray, eta: float) -> float:
    """The expected total loss of Hedge."""
    total, suffered = np.zeros(losses.shape[1]), 0.0
    for loss in losses:
        weight = np.exp(-eta * (total - total.min()))
        suffered += weight @ loss / weight.sum()
        total = total + loss
    return suffered


ETA = 1.0
for d in (4, 16, 64, 256, 1024):
    suffered = hedge(coins(500, d), ETA)
    bound = log(d) / (1 - exp(-ETA))
    print(f"d = {d:5}: Hedge loses {suffered:5.2f}, the theorem allows {bound:5.2f}")
    assert suffered <= bound  # holds for every sequence of losses, not only in the mean

# %% [markdown]
# Loss is logarithmic in the number of experts, and does not grow with the rounds at all. That is
# what we would like to keep.
#
# **Exercise 7.1.** Why does it stop losing? After how many rounds is the weight of all wrong
# experts together below 1 percent, for d = 256 and eta = 1? (A wrong expert has lost t/2 after t
# rounds, more or less.) Check with losses of exactly 1/2 for all of them. And with d = 16? Call the
# first such rounds, for the two d, `first_rounds`, as a list.

# %% [markdown] tags=["hint"]
# The right expert keeps weight 1, each of the others has exp(-t/2) after t rounds. Write down the
# share of the 255 and solve for t, or try t = 0, 1, 2, ...

# %% [markdown] tags=["solution"]
# The 255 wrong experts have weight exp(-t/2) each, the right one has 1. So 255 exp(-t/2) < 0.01
# roughly, t > 2 ln(25,500), which the cell computes.

# %% tags=["solution"]
first_rounds = []
for others in (255, 15):
    needed = 2 * log(others * 99)  # weight w of the wrong with w / (1 + w) = 1 percent: w = 1/99
    wrong = [1 - 1 / (1 + others * exp(-0.5 * t)) for t in range(50)]
    first_rounds.append(int(np.argmax(np.less(wrong, 0.01))))
    print(f"predicted {needed:.1f}; first round below 1 percent: {first_rounds[-1]}")
    assert first_rounds[-1] == np.ceil(needed)

# %% tags=["check"]
check("7.1", first_rounds)

# %% [markdown]
# ## 2. Privacy, the obvious way
#
# Hedge is a famous private mechanism in disguise. Drawing i with probability proportional to
# exp(-h S_i) **is** the exponential mechanism: one customer moves every S_i by at most 1, and one
# draw has a privacy loss of range 2 h. So a smaller rate is privacy.
#
# But we draw in every round, and a customer's losses stay in S for ever. All draws must be paid
# for. How large may h be if T draws together are to be (1, 1e-6)-DP?

# %%


def steepest(draws: int, epsilon: float = 1.0) -> float:
    """The largest h for which that many draws are (epsilon, DELTA)-DP, by bisection."""
    low, high = 0.0, 10.0
    for _ in range(30):
        middle = (low + high) / 2
        spend = BoundedRangeSpend.of("draws", [2 * middle] * draws)
        if Ledger((spend,)).delta(epsilon) <= DELTA:
            low = middle
        else:
            high = middle
    return low


rates = {T: steepest(T) for T in (1, 16, 256, 4096)}
for T, h in rates.items():
    print(f"{T:5} draws: h = {h:.5f}   h sqrt(T) = {h * sqrt(T):.3f}")
assert 14 < rates[16] / rates[4096] < 18  # sqrt(256) = 16, as Gaussian composition has it

# %% [markdown]
# A draw in each of T rounds leaves a rate of order 1 / sqrt(T), and a regret of order ln(d) / h,
# which is sqrt(T). The price of privacy now grows with T. Most of these draws changed nothing: they
# confirmed the expert we had.
#
# ## 3. Asking instead of drawing
#
# Stay with your expert. After each round ask only: **has she lost too much?** If the answer is no,
# nothing happens. The answers are released, and there are T of them. Do they not cost just as much?
#
# No, and that is the surprise called **sparse vector**. Compare a noisy loss with a noisy
# threshold:
#
#     rho: Laplace noise of scale 2 / epsilon, drawn ONCE
#     each round: fires if  loss so far + z > threshold + rho,
#                 z: Laplace noise of scale 4 / epsilon, FRESH
#
# One customer moves the loss in *all later* questions by up to 1. We compute exactly how much the
# answers "no, no, ..., no" tell about her, with and without the threshold's own noise.

# %%


def laplace_cdf(x: np.ndarray, scale: float) -> np.ndarray:
    """P(noise <= x)."""
    tail = np.exp(-np.abs(x) / scale) / 2
    return np.where(x < 0, tail, 1 - tail)


def all_no(questions: int, loss: float, epsilon: float, threshold_noise: bool) -> float:
    """The probability that none of the questions fires; the threshold is 10, losses stay put."""
    if not threshold_noise:
        return float(laplace_cdf(np.array(10 - loss), 4 / epsilon)) ** questions
    rho = np.linspace(-80, 80, 200_001)  # at scale 2 the rest has weight exp(-40)
    density = np.exp(-np.abs(rho) * epsilon / 2) * epsilon / 4
    silent = laplace_cdf(10 + rho - loss, 4 / epsilon) ** questions
    return float(np.trapezoid(density * silent, rho))


print("log-ratio of P(all answers are no) when one customer's loss is 0 or 1, epsilon = 1")
print("questions   with rho   without rho")
for n in (1, 10, 100, 1_000, 10_000):
    ratios = [log(all_no(n, 0, 1.0, noisy) / all_no(n, 1, 1.0, noisy)) for noisy in (True, False)]
    print(f"{n:9,}   {ratios[0]:8.3f}   {ratios[1]:11.3f}")
    assert ratios[0] < 1  # epsilon

# %% [markdown]
# Ten thousand answers cost less than epsilon: with rho. Shifting the *threshold* by 1 hides her in
# all questions at once, and rho pays for that shift. Without rho every "no" leaks a little, and the
# leaks add up without end.
#
# **Exercise 7.2.** The price stays below epsilon/2, in fact. Why? And who pays for the other half?

# %% [markdown] tags=["hint"]
# Read the scales off the two lines of the drawing: what does a Laplace noise of scale 2 / epsilon
# pay for a shift by 1? And which round has an answer that is not no?

# %% [markdown] tags=["solution"]
# rho has scale 2 / epsilon, and a shift by 1 costs (epsilon/2). The other half is spent when a
# question *does* fire: that round's own noise, of scale 4 / epsilon, has to hide a shift of 2, the
# customer's 1 and the threshold's 1. Firing ends the game; going on needs a new rho.

# %% tags=["solution"]
assert ratios[0] < 0.5 + 1e-4  # the integral is a sum over a grid of steps of 0.0008

# %% tags=["check"]
check("7.2")

# %% [markdown]
# ## 4. Sparse vector experts
#
# Now put both together (Asi, Feldman, Koren and Talwar, "Near-optimal algorithms for private online
# optimization in the realizable regime", ICML 2023, Algorithm 1): stay until the test fires, then
# draw a new expert by the exponential mechanism. If somebody never errs, few draws are enough, each
# can be steep, and **T does not enter** (but for a logarithm).

# %%
d, T, EPSILON = 256, 2_500, 2.0
spec = ExpertsSpec(n_actions=d, horizon=T)
plan = SparseVectorExperts(epsilon=EPSILON).plan(spec)
each_round = ExponentialLeader(epsilon=EPSILON, delta=DELTA).rate(T - 1)
print(f"prepared for {plan.draws} draws, each with h = {plan.eta / 2:.4f};")
print(f"an expert is left after a loss of about {plan.margin:.0f};")
print(f"a draw in every round would have h = {each_round:.5f}")
proof = certify(SparseVectorExperts(epsilon=EPSILON), spec, accountants=False)
print(f"certified: epsilon {proof.epsilon:.3f} at delta {proof.claimed_delta:g}")
assert plan.eta / 2 > 4 * each_round

# %% [markdown]
# **Exercise 7.3.** We are about to play four agents for 2,500 rounds with 256 experts: uniform
# play, Hedge at rate 1, a draw a round, and the sparse vector, the private ones at (2, 1e-6). Write
# down what you expect each to lose, from the theorem of section 1 (a draw a round is Hedge at rate
# h) and from `plan.bound`. Collect them in a dict `guesses`, with the names "uniform play", "a draw
# a round, epsilon 2", "sparse vector, epsilon 2" and "Hedge, not private".

# %% [markdown] tags=["hint"]
# Uniform play errs in every second round. The theorem is log(d) / (1 - exp(-rate)); the rate of a
# draw a round is `each_round`. The plan for delta 1e-6 is `SparseVectorExperts(epsilon=EPSILON,
# delta=DELTA).plan(spec)`.

# %% tags=["solution"]
guesses = {
    "uniform play": T / 2,
    "a draw a round, epsilon 2": log(d) / (1 - exp(-each_round)),
    "sparse vector, epsilon 2": SparseVectorExperts(epsilon=EPSILON, delta=DELTA).plan(spec).bound,
    "Hedge, not private": log(d) / (1 - exp(-1)),
}
for name, guess in guesses.items():
    print(f"{name:27} {guess:6.0f}" + ("" if name == "uniform play" else " at most"))

# %% tags=["check"]
check("7.3", guesses)

# %% [markdown]
# Now play. (`shared_table=True`: all replicas meet the same public coins, so that runs differ by
# the agents' own randomness only.)

# %%
RUNS = [(0, run) for run in range(100)]
MARKS = np.unique(np.geomspace(1, T, 60).astype(int))
private = {
    "a draw a round, epsilon 2": ExponentialLeader(epsilon=EPSILON, delta=DELTA),
    "sparse vector, epsilon 2": SparseVectorExperts(epsilon=EPSILON, delta=DELTA),
}
agents = {"uniform play": Uniform(), **private, "Hedge, not private": Hedge(rate=1.0)}
problem = Experts(n_actions=d, horizon=T, shared_table=True)
lost = {name: play(problem, c, RUNS, marks=MARKS).regret for name, c in agents.items()}
for name, regret in lost.items():
    print(f"{name:27} {plus_minus(regret[-1])}")
finals = [regret[-1].mean() for regret in lost.values()]
assert finals[0] > 1.5 * finals[1] > 3 * finals[2] > 30 * finals[3]

# %% [markdown]
# **Exercise 7.4.** Play a quarter of the rounds, 625: make a new problem (both agents read the
# horizon and set themselves accordingly) and compare the losses of the two private agents with
# those above. Which grew with T, and how fast? Collect the factors, after over before, in a dict
# `grew_by`, with the names of the two agents as its keys.

# %% [markdown] tags=["hint"]
# `Experts(n_actions=d, horizon=625, shared_table=True)` and one mark at 625. The agents are in
# `private`, their losses at 2,500 in `lost[name][-1]`.

# %% tags=["solution"]
grew_by = {}
quarter = Experts(n_actions=d, horizon=625, shared_table=True)
for name, config in private.items():
    before = play(quarter, config, RUNS, marks=np.array([625])).regret[-1].mean()
    after = lost[name][-1].mean()
    grew_by[name] = after / before
    print(f"{name:27} {before:6.0f} -> {after:6.0f}, a factor of {grew_by[name]:.2f}")
assert before > after / 1.5  # the sparse vector; sqrt(4) = 2 is what the other one is near to

# %% tags=["check"]
check("7.4", grew_by)

# %% [markdown]
# ## 5. The price of privacy
#
# Theory says: about log(d)^2 / epsilon mistakes with pure privacy. So ten times less epsilon should
# cost ten times as much, and 16 times more experts at most 4 times as much: (log 256 / log 16)^2.
# We measure, with pure privacy (delta = 0), 1,000 rounds.

# %%
EPSILONS, SIZES, SHORT = (2.0, 6.0, 20.0), (16, 256, 1024), 1_000
prices = {}
for size in SIZES:
    made = Experts(n_actions=size, horizon=SHORT, shared_table=True)
    for epsilon in EPSILONS:
        config = SparseVectorExperts(epsilon=epsilon)
        prices[size, epsilon] = play(made, config, RUNS, marks=np.array([SHORT])).regret[-1]
print("experts " + "".join(f"     epsilon {epsilon:2g}" for epsilon in EPSILONS))
for size in SIZES:
    cells = (plus_minus(prices[size, epsilon]) for epsilon in EPSILONS)
    print(f"{size:7,} " + "".join(f"{cell:>15}" for cell in cells))

for size in SIZES:
    slope = log(prices[size, 20.0].mean() / prices[size, 2.0].mean()) / log(10)
    print(f"{size:5,} experts: regret ~ epsilon^{slope:.2f} from 2 to 20")
    assert -1.1 < slope < -0.9  # -1, two means of 100 runs that spread by half of their mean each
growth = prices[1024, 6.0].mean() / prices[16, 6.0].mean()
print(f"64 times as many experts cost {growth:.1f} times as much (epsilon 6)")
assert 1.8 < growth < 7  # (ln 1024 / ln 16)^2 = 6.25 at most, give or take the errors

# %% tags=["picture"]
left = curves(lost, rounds=MARKS, xscale="log", yscale="log", ylim=(0.4, 2e4), xlabel="round",
              ylabel="losses so far; the best expert has 0",
              title="To draw every round, or to ask first (256 experts)")  # fmt: skip
left.legend(frameon=False, loc="upper left")

right = against(
    {f"{size:,} experts": [prices[size, epsilon] for epsilon in EPSILONS] for size in SIZES},
    {"epsilon": EPSILONS},
    title="Sparse vector: the price goes like 1 / epsilon",
    yscale="log",
    ylim=(3, 6e3),
    ylabel=f"losses in {SHORT:,} rounds; the best expert has 0",
)
right.axhline(SHORT / 2, color="black", ls=":", lw=2, label="uniform play")
guide = np.array([2.0, 20.0])
right.plot(guide, 90 / guide, color="0.5", lw=1, label="slope -1")
right.legend(frameon=False, loc="upper right", ncols=2)
for axis in (left.xaxis, left.yaxis, right.yaxis):
    axis.set_major_formatter("{x:,g}")

# %% [markdown]
# In the first picture: for a while both private agents do what chance does. One of them wakes up
# after some hundred rounds and is done. The other has to pay for a draw in every round, so that its
# rate is tiny, and it wakes up when half of the game is over.
#
# **Exercise 7.5.** All of this used that somebody never errs. (a) Let the best expert lose in 10
# percent of 2,000 rounds (`best_loss=0.1`, `n_actions=16`). Compare
# `SparseVectorExperts(epsilon=2.0, delta=1e-6)` as it is, which believes in L* = 0, with
# `best_loss=200`, which is true, and with `ShrinkingDartboard(epsilon=2.0)`. Regret is now your
# loss minus the best expert's. Who wins? (b) The winner of (a) stands on an assumption that is
# false. Make a table of losses (`kind="table", table=...`, shape (2000, 16)) on which it pays for
# that. Collect the mean regrets in dicts, `friendly` for (a) and `fierce` for (b), with the keys
# "sparse vector, L* = 0", "sparse vector, L* = 200" and "shrinking dartboard".

# %% [markdown] tags=["hint"]
# L* = 0 means that draws are planned for few firings. Build a table on which they are all spent
# before there is anything to learn.

# %% tags=["solution"]
erring = Experts(n_actions=16, best_loss=0.1, horizon=2_000, shared_table=True)
table = np.full((2_000, 16), 0.5)  # nothing can be learned from the first 1,200 rounds ...
table[1_200:, 0] = 0.0  # ... and then expert 0 stops losing
nasty = Experts(kind="table", table=table, horizon=2_000)
players = {
    "sparse vector, L* = 0": SparseVectorExperts(epsilon=2.0, delta=DELTA),
    "sparse vector, L* = 200": SparseVectorExperts(epsilon=2.0, delta=DELTA, best_loss=200),
    "shrinking dartboard": ShrinkingDartboard(epsilon=2.0),
}
friendly, fierce = (
    {n: play(p, c, RUNS, marks=np.array([2_000])).regret[-1].mean() for n, c in players.items()}
    for p in (erring, nasty)
)
print("                          coins   table")
for name in players:
    print(f"{name:24} {friendly[name]:6.0f}  {fierce[name]:6.0f}")
assert friendly["sparse vector, L* = 0"] < friendly["shrinking dartboard"]
assert fierce["sparse vector, L* = 0"] > 2 * fierce["shrinking dartboard"]

# %% [markdown] tags=["solution"]
# On coins the false belief does not hurt: every firing buys a draw from sums that have grown, and
# the last draw is a good one. On the table all draws are spent before there is anything to learn,
# and then the expert stays for good. The dartboard, a lazy Hedge whose customers decide one bit
# each, has a guarantee for any losses. To be better on one problem is not to be better. (And L*
# has to be public. One that is read off the data voids the guarantee.)

# %% tags=["check"]
check("7.5", friendly, fierce)

# %% [markdown]
# ## What to remember
#
# * Hedge is the exponential mechanism. Its rate is its privacy.
# * What you release is what you pay for. A draw a round costs sqrt(T); a question with a noisy
#   threshold costs nothing until the answer is yes.
# * The noise on the threshold is not decoration. Without it every "no" leaks.
# * If somebody never errs, privacy costs about 1 / epsilon, once, however long you play, and grows
#   slowly with the number of experts.
# * Know which assumption you stand on: here, that L* is small and public.
