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
# # Lab 8: Privacy that expires
#
# **Goal.** Know exactly what "private for the last W rounds" promises, watch an old user lose her
# protection, see what that weaker promise saves, and decide when it may be used.
#
# **You need.** Lab 2 (what epsilon promises) and Lab 3 (the tree).
#
# Sometimes protection is needed for a while only. Today's prices must not give away what a customer
# said last week. What customers said three years ago may be known. Lou and Cheung,
# "Projection-free online empirical risk minimization with privacy-preserving and privacy
# expiration" (WI-IAT 2020), ask what such a weaker promise is worth. This lab is as much about
# reading a promise as about algorithms.

# %%
from math import sqrt

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
from scipy.linalg import solve_triangular
from scipy.special import ndtr

from dpbandit import audit, certify, play
from dpbandit.agents import FTAL, PFTAL, WDPCOCOP, Centre
from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.envs import ConvexPricing
from dpbandit.experiments.labs import against, check, plus_minus, sliders
from dpbandit.privacy.calibrated import least_multiplier, noisy_prefix_sum
from dpbandit.privacy.factors import Window
from dpbandit.privacy.ledger import Ledger
from dpbandit.privacy.moments import ClippedVectors
from dpbandit.privacy.prefix_sums import Tree

sns.set_theme(style="ticks", palette="colorblind")
BLUE, _, GREEN, RED, *_ = sns.color_palette("colorblind")

# %% [markdown]
# ## 1. The promise
#
# **Window-DP.** For every round t: everything released *up to t* is (epsilon, delta)-DP for
# replacing the user of any one of the last W rounds before t.
#
# Read it twice. It does **not** say that all releases together protect her. It says: whoever looks
# *today* cannot tell what she said, if she came within the last W rounds. Whoever looks *later*
# may.
#
# How is it made? In the tree of Lab 3 every user sits in about log2(T) noisy nodes, one for each
# level, for ever. Here blocks of W rounds are trees of their own, and blocks that are old enough
# enter as **exact sums**. Each line shows what the release at round t is made of, for W = 4:
# in brackets noisy nodes, outside exact users.

# %%


def picture(window: int, t: int, mode: str) -> str:
    """The rounds 1..t, the noisy nodes in brackets."""
    nodes = Window(window, lazy=mode == "lazy").tiles(t)
    exact = range(1, nodes[0][0] + 1)
    parts = [" ".join(str(i) for i in exact)]
    parts += ["(" + " ".join(str(i + 1) for i in range(s, s + n)) + ")" for s, n in nodes]
    return " ".join(part for part in parts if part)


for t in range(1, 13):
    print(f"t = {t:2}   {picture(4, t, 'lazy')}")

# %% [markdown]
# **Exercise 8.1.** At t = 7, which users are still protected? Which of them would *have* to be,
# with W = 4? At which t does user 1 lose her noise? Compare with `mode="exact"`, the trees of the
# paper. Why might one prefer the lazy ones? Call the first t at which user 1 is exact, with lazy
# trees and with exact ones, `exact_from`, as a list.

# %% [markdown] tags=["hint"]
# `picture(4, t, "lazy")` for t from 5 to 9: who is in brackets has noise. Count the brackets, too:
# each is a noise in the release.

# %% tags=["solution"]
for t in range(5, 10):
    print(f"t = {t:2}   lazy {picture(4, t, 'lazy'):24} exact {picture(4, t, 'exact')}")
lazy, exact = (
    sum(len(Window(64, lazy=m == "lazy").tiles(t)) for t in range(64, 640)) / 576
    for m in ("lazy", "exact")
)
print(f"W = 64: noisy nodes in a release, on average: lazy {lazy:.2f}, exact {exact:.2f}")
assert lazy < exact
exact_from = [
    next(t for t in range(1, 20) if picture(4, t, mode).startswith("1 "))
    for mode in ("lazy", "exact")
]

# %% [markdown] tags=["solution"]
# At t = 7 users 1 to 7 are protected; 4 to 7 have to be. User 1 becomes exact at t = 8. Lazy trees
# keep the root of the block before, so that they protect up to 2 W - 1 rounds. And they are made of
# fewer nodes: less noise, for the same cost.

# %% tags=["check"]
check("8.1", exact_from)

# %% [markdown]
# ## 2. Watching somebody expire
#
# A running sum of answers between -1 and +1. The attacker knows all users but the first, sees every
# release, and has to guess whether user 1 said -1 or +1. A coin has a chance of one half.
#
# All noise is Gaussian, so we can say exactly how well anybody can do. A mechanism that is mu-GDP
# allows a guess that is right with probability Phi(mu / 2), and no better one.

# %%
W, ROUNDS, TARGET = 16, 1_025, {"epsilon": 2.0, "delta": 1e-3}


def running_sum(window: int | None, streams: Streams):
    """A noisy running sum with the least noise that keeps its promise; None: for ever."""
    process = Window(window, lazy=True) if window else Tree()
    size = {"horizon": ROUNDS, "refresh_every": 1}
    multiplier = least_multiplier(process, **size, **TARGET)
    answers = ClippedVectors(1)
    return noisy_prefix_sum(process, answers, streams, noise_multiplier=multiplier, **size)


def nodes_per_user(window: int | None) -> int:
    """How many noisy nodes one user is in, at most."""
    return Window(window or ROUNDS).nodes(ROUNDS - 1)


expiring, for_ever = running_sum(W, Streams([0])), running_sum(None, Streams([0]))
for sums, window in ((expiring, W), (for_ever, None)):
    node = sums.sensitivity * sqrt(nodes_per_user(window)) / sums.spend.mu
    print(f"{sums.spend.note}:")
    print(f"    mu = {sums.spend.mu:.3f}; a user is in {nodes_per_user(window)} nodes,", end=" ")
    print(f"each with noise of standard deviation {node:.2f}")
allowed = float(ndtr(expiring.spend.mu / 2))
print(f"so the best guess is right with probability {allowed:.3f}, as long as the promise holds")
assert abs(expiring.spend.mu - for_ever.spend.mu) < 1e-6  # the same promise, but for how long?

# %% [markdown]
# Both have the same mu. The windowed one reaches it with less noise, because a user is in fewer
# noisy nodes. Now the attack. What is left of release t, when the other users are subtracted, is
#
#     (answer of user 1)  +  noise of the nodes that make up release t.
#
# Every release has exactly one node that no earlier release had, so the attacker can solve for the
# nodes one after the other: linear algebra, no cleverness. `weights` tells how strongly each
# release, cleared of what is known from earlier ones, shows the answer.

# %%


def nodes_of(t: int, window: int | None) -> list[tuple[int, int]]:
    """(start, size) of the noisy nodes of release t: of a window, or of the tree for ever."""
    whole = window or 1 << ROUNDS.bit_length()  # before a window ends it is the ordinary tree
    return Window(whole, lazy=True).tiles(t)


def unmixing(window: int | None) -> np.ndarray:
    """Which release holds which node, (releases, nodes): lower triangular."""
    seen: dict[tuple[int, int], int] = {}
    matrix = np.zeros((ROUNDS - 1, ROUNDS - 1))
    for t in range(1, ROUNDS):
        for node in nodes_of(t, window):
            matrix[t - 1, seen.setdefault(node, len(seen))] = 1.0
    assert (np.diag(matrix) == 1).all()
    assert (np.triu(matrix, 1) == 0).all()
    return matrix


def best_guess(window: int | None) -> np.ndarray:
    """The probability that the best guess after t = 1, 2, .. releases is right."""
    weights = solve_triangular(unmixing(window), np.ones(ROUNDS - 1), lower=True)
    looks = np.cumsum(weights**2)  # at her answer, each as good as one noisy node
    mu = running_sum(window, Streams([0])).spend.mu
    return ndtr(mu * np.sqrt(looks / nodes_per_user(window)) / 2)


chance = {"window": best_guess(W), "for ever": best_guess(None)}
for t in (1, 8, 16, 31, 32, 64, 256, 1024):
    print(f"after {t:4} releases:", end="")
    print("".join(f"   {name} {values[t - 1]:.3f}" for name, values in chance.items()))

# %% [markdown]
# While user 1 is inside the window, the guess is never better than allowed. Afterwards every block
# of 16 rounds holds her exactly, under fresh noise. Each is another look, and looks can be
# averaged. With the tree for ever no look is worth more than was paid for, however long he waits.
# The slider moves the window.


# %%
def watched(window=16):
    _, axes = plt.subplots(figsize=(6.8, 4), layout="constrained")
    for name, values in ((f"last {window}", best_guess(window)), ("for ever", chance["for ever"])):
        axes.plot(np.arange(1, ROUNDS), values, label=name)
    axes.axvspan(1, window, color=GREEN, alpha=0.15, lw=0)
    axes.axhline(allowed, color="0.3", ls=":", label="allowed by the promise")
    axes.set(xscale="log", xlim=(1, ROUNDS), ylim=(0.47, 1), xlabel="releases seen since user 1")
    axes.set_ylabel("probability to guess her answer")
    axes.set_title(f"Protected for {window} rounds", loc="left")
    axes.legend(frameon=False, loc="upper left")
    sns.despine()


sliders(watched, window=[4, 8, 16, 32, 64, 128, 256, 512])

# %% [markdown]
# That was a formula. We attack the real mechanism, too: 3,000 independent runs with user 1 at +1.

# %%
REPLICAS, STOPS = 3_000, np.array([4, 16, 64, 128, 256, 512, 1024])


def attacked(window: int | None) -> np.ndarray:
    """How often the attacker is right after `STOPS` releases, on real releases."""
    sums = running_sum(window, Streams(range(REPLICAS)))
    others = np.random.default_rng(8).uniform(-1, 1, ROUNDS)
    others[0] = 1.0  # user 1, who is to be guessed
    left = np.empty((ROUNDS - 1, REPLICAS))
    for t in range(ROUNDS - 1):
        release = sums(np.full((REPLICAS, 1), others[t]))
        left[t] = release[:, 0] - others[1 : t + 1].sum()
    matrix = unmixing(window)
    weights = solve_triangular(matrix, np.ones(ROUNDS - 1), lower=True)
    cleared = solve_triangular(matrix, left, lower=True)
    evidence = np.cumsum(weights[:, None] * cleared, axis=0)
    return (evidence[STOPS - 1] > 0).mean(axis=1)


right = {"window": attacked(W), "for ever": attacked(None)}
for name, share in right.items():
    print(f"{name:9}", share.round(3))
    error = 0.5 / sqrt(REPLICAS)
    assert np.abs(share - chance[name][STOPS - 1]).max() < 4 * error
    # 14 comparisons at 4 standard errors: a false alarm for fewer than 1 in 1,000 seeds
assert (chance["window"][:W] <= allowed + 1e-9).all()
assert (chance["for ever"] <= allowed + 1e-9).all()
assert right["window"][-1] > allowed + 0.1

# %% [markdown]
# **Exercise 8.2.** Find the first release after which the guess is better than the promise of
# `allowed`. It is not W = 16. Why not? Then let W be 1 (only the last user is protected). How long
# does it take until the guess is right in 80 percent of cases? Call the first release
# `first_better`, and the number of releases for W = 1 `until_80`.

# %% [markdown] tags=["hint"]
# `chance["window"]` has the probability after 1, 2, ... releases, so index 0 is release 1;
# `np.argmax` of a condition is the first place where it holds. For W = 1 there is `best_guess(1)`.

# %% tags=["solution"]
first_better = int(np.argmax(chance["window"] > allowed + 1e-9)) + 1
until_80 = int(np.argmax(best_guess(1) > 0.8)) + 1
print(f"W = 16: better than promised from release {first_better} on")
for window, values in ((1, best_guess(1)), (W, chance["window"])):
    print(f"W = {window}: right in 80 percent of cases after {int(np.argmax(values > 0.8)) + 1}")
assert first_better == 2 * W

# %% [markdown] tags=["solution"]
# Lazy trees keep their noise for up to 2 W - 1 rounds, and user 1, the first of her block, has all
# of them. With W = 1 every release is another look at her; with W = 16 nearly all releases of one
# block share the noise of the block before, and a new look comes every 16 rounds or so.

# %% tags=["check"]
check("8.2", first_better, until_80)

# %% [markdown]
# ## 3. The restriction travels with the number
#
# An epsilon of window-DP must not be read as an ordinary one. In this library it cannot be: the
# ledger carries the window, and everything that shows the number shows it.

# %%
spec = ConvexPricing(feedback="datum", retention=100, horizon=5_000).spec
proof = certify(WDPCOCOP(epsilon=1.0, window=None), spec, accountants=False)
print("in words:", proof.notion)
print("in short:", proof.ledger.brief)
assert proof.ledger.notion.window == 100

# %% [markdown]
# **Exercise 8.3.** Try to get around it. (a) Build `Ledger((expiring.spend,))`, without a window.
# (b) Audit `WDPCOCOP(epsilon=1.0, window=100)` on this problem. Both should fail. Why is it right
# that the audit refuses? Catch both `InputError`s and call the list of their texts
# `refusals`.

# %% [markdown] tags=["hint"]
# `try: ... except InputError as mistake: print(mistake)`, once for each. For the reason: about
# which user does an audit guess, and when?

# %% tags=["solution"]
attempts = {
    "a ledger without a window": lambda: Ledger((expiring.spend,)),
    "an audit": lambda: audit(WDPCOCOP(epsilon=1.0, window=100), spec, progress=False),
}
refusals = []
for name, attempt in attempts.items():
    try:
        attempt()
    except InputError as mistake:
        refusals.append(str(mistake))
        print(f"{name}: {mistake}")
assert len(refusals) == 2

# %% [markdown] tags=["solution"]
# An audit looks at *all* releases of a run and guesses about one user. After she has expired it may
# guess right, and that refutes nothing: nobody promised otherwise.

# %% tags=["check"]
check("8.3", refusals)

# %% [markdown]
# ## 4. What it saves
#
# Prices for three goods, 2,000 customers, at epsilon 2. Each tells her demand, and prices follow.
# `retention` is a public fact of the problem: how many customers a customer is protected for.
# `window=None` means: take it from the problem. The last two stay the same for all windows: `PFTAL`
# protects for ever, and list prices look at nobody.

# %%
WINDOWS, CUSTOMERS, RUNS = (1, 10, 100, 2_000), 2_000, [(0, run) for run in range(100)]


def lost(config, retention: int | None) -> np.ndarray:
    """Dollars lost against the best fixed prices, one number for each replica."""
    problem = ConvexPricing(feedback="datum", retention=retention, horizon=CUSTOMERS)
    return play(problem, config, RUNS, marks=np.array([CUSTOMERS])).regret[-1]


window_dp = WDPCOCOP(epsilon=2.0, noise="gaussian", window=None)
by_window = {window: lost(window_dp, window) for window in WINDOWS}
baselines = {
    "protected for ever": lost(PFTAL(epsilon=2.0, noise="gaussian"), None),
    "list prices": lost(Centre(), None),
    "no privacy": lost(FTAL(), None),
}
for window, dollars in by_window.items():
    print(f"last {window:5,}: {plus_minus(dollars)}")
for name, dollars in baselines.items():
    print(f"{name:18}: {plus_minus(dollars)}")

means = [dollars.mean() for dollars in by_window.values()]
assert means == sorted(means)
assert np.array_equal(by_window[CUSTOMERS], baselines["protected for ever"])

# %% [markdown]
# The last assertion is a nice check: a window as long as the game **is** ordinary privacy, and the
# two agents play the same prices to the last bit.

# %% tags=["picture"]
figure, left = plt.subplots(figsize=(6.8, 5), layout="constrained")
left.axvspan(1, W, color=GREEN, alpha=0.15, lw=0)
left.text(1.15, 0.955, f"protected:\nthe last {W} rounds", color=GREEN, va="top")
releases = np.arange(1, ROUNDS)
looks = {"window": (RED, "-", "o", f"window-DP, last {W}"), "for ever": (BLUE, "--", "s", "DP")}
for name, (color, dashes, mark, label) in looks.items():
    left.plot(releases, chance[name], color=color, ls=dashes, lw=2, label=f"{label}")
    error = 2 * np.sqrt(right[name] * (1 - right[name]) / REPLICAS)
    style = {"fmt": mark, "ms": 5, "capsize": 3, "color": color}
    left.errorbar(STOPS, right[name], error, label=f"{label}: {REPLICAS:,} attacks", **style)
left.axhline(allowed, color="0.3", ls=":", lw=2)
left.text(1.15, allowed + 0.008, "allowed by the promise", color="0.3")
left.axhline(0.5, color="0.6", lw=1)
left.text(1.15, 0.508, "a coin", color="0.5")
left.set(xscale="log", xlim=(1, 1_300), ylim=(0.47, 1))
left.set_xlabel("releases seen since user 1")
left.set_ylabel("probability to guess her answer")
left.set_title("Privacy that expires, seen by an attacker", loc="left")
left.legend(frameon=False, loc="upper left", bbox_to_anchor=(0.36, 1.0))
left.xaxis.set_major_formatter("{x:,g}")
sns.despine()

right_axes = against(
    {"window-DP, epsilon 2": [*by_window.values()]},
    {"customers for whom one is protected, W": WINDOWS},
    title="What the weaker promise saves",
    ylim=(0, 175),
    ylabel=f"dollars lost with {CUSTOMERS:,} customers",
)
levels = {"protected for ever": (BLUE, "--"), "list prices": ("black", ":")}
for name, (color, dashes) in levels.items():
    level = baselines[name].mean()
    right_axes.axhline(level, color=color, ls=dashes, lw=2, label=name)
right_axes.legend(loc="lower right")

# %% [markdown]
# **Exercise 8.4.** Repeat the second picture with K-norm noise (`noise="k-norm"`), which is
# private with delta = 0. Is the saving larger or smaller? Why? Call what W = 10 loses, as a share
# of what W = 2,000 loses, `pure_share`.

# %% [markdown] tags=["hint"]
# `lost(WDPCOCOP(epsilon=2.0, window=None, noise="k-norm"), window)` for the two windows. How does
# noise of each kind grow with the number of nodes that one user is in?

# %% tags=["solution"]
pure = {window: lost(WDPCOCOP(epsilon=2.0, window=None), window) for window in (10, 2_000)}
for name, found in (("gaussian", by_window), ("k-norm", pure)):
    share = found[10].mean() / found[2_000].mean()
    print(f"{name:9} W = 10 loses {share:.2f} of what W = 2,000 loses")
assert pure[10].mean() / pure[2_000].mean() < by_window[10].mean() / by_window[2_000].mean()
pure_share = pure[10].mean() / pure[2_000].mean()

# %% [markdown] tags=["solution"]
# Larger. Gaussian noise grows like the square root of the number of nodes a user is in, pure noise
# like the number itself.

# %% tags=["check"]
check("8.4", pure_share)

# %% [markdown]
# **Exercise 8.5.** A shop has 200 customers a day and promises that "data are protected for 30
# days". Which W is that? What does the shop have to tell its customers, in one honest sentence? And
# what if an attacker simply *keeps* all old prices?

# %% [markdown] tags=["hint"]
# W counts rounds, here customers. In the sentence say what holds during the 30 days *and* what may
# happen afterwards.

# %% [markdown] tags=["solution"]
# W = 6,000, if days are always that busy; W counts rounds, so take the busiest 30 days. Honest:
# "For 30 days nobody can learn much from our prices about what you told us; after that somebody may
# find out exactly." Keeping old prices does not help while the promise lasts, since it covers
# everything released up to today. But he only has to wait, and to keep the newer ones as well.

# %% tags=["check"]
check("8.5")

# %% [markdown]
# ## What to remember
#
# * Window-DP protects the users of the last W rounds against who looks *now*. Later releases may
#   reveal them completely, and more surely with every block.
# * It is not differential privacy of the whole sequence. An epsilon without its window is a lie.
# * The gain is real: noise grows with log W in place of log T. It is no miracle, either.
# * W as long as the game is ordinary DP. If you cannot say why data may be known later, choose
#   that.
