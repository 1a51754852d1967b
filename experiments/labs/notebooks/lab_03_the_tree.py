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
# # Lab 3: The tree, and why much less noise is possible
#
# **Goal.** Count privately while people keep coming: build the tree mechanism in four lines, see
# what replaces it, and find out how much noise is there for privacy and how much for the proof.
#
# **You need.** Lab 2; matrices.

# %%
from math import ceil, log, log2, sqrt

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
from matplotlib.patches import Rectangle

import dpbandit
from dpbandit.agents import DPUCB, ShariffSheffetUCB
from dpbandit.base.random_streams import Streams
from dpbandit.experiments.labs import check, sliders
from dpbandit.privacy.calibrated import least_multiplier
from dpbandit.privacy.curves import epsilon_of, mu_of
from dpbandit.privacy.factors import Honaker
from dpbandit.privacy.noise import Gaussian
from dpbandit.privacy.prefix_sums import BLT, SquareRoot, Tree
from dpbandit.specs.protocols import ContextualSpec

sns.set_theme(style="ticks", palette="colorblind")
plt.rcParams["figure.constrained_layout.use"] = True
BLUE, ORANGE, GREEN, RED, PINK, BROWN, *_ = sns.color_palette("colorblind")
EPSILON, DELTA = 1.0, 1e-4

# %% [markdown]
# ## 1. A count that is published after every customer
#
# Customer $t$ buys ($x_t = 1$) or not ($x_t = 0$). After each customer the shop publishes how many
# have bought so far: $S_t = x_1 + \dots + x_t$, for $t = 1, \dots, T$. This is **continual
# observation**. A private bandit does the same, with matrices in place of counts.
#
# What one customer can change is the **sensitivity**. If she changes the released vector by at most
# $\Delta$ in Euclidean length, and every entry gets Gaussian noise of standard deviation $\sigma$,
# all that matters is the ratio $\mu = \Delta / \sigma$. A function of $\mu$ alone gives the exact
# $\delta$ for each $\varepsilon$ (Gaussian differential privacy, Dong, Roth and Su, 2022). `mu_of`
# inverts it.

# %%
mu = mu_of(EPSILON, DELTA)
print(f"epsilon {EPSILON:g} at delta {DELTA:g} allows mu = {mu:.4f}")
print(f"one number that a customer changes by 1 needs noise of size {1 / mu:.2f}")
assert abs(epsilon_of(mu, DELTA) - EPSILON) < 1e-6  # the two functions are inverse

# %% [markdown]
# **Exercise 3.1.** Two simple ways to publish $T$ counts. (a) Add fresh noise to every $S_t$. (b)
# Add noise to every $x_t$ once, and publish sums of the noisy $x_t$. How large must the noise be in
# each, and how large is the error of the last count? Which customer is the worst in (a)?

# %% [markdown] tags=["hint"]
# How far does one customer move the whole list of $T$ published numbers, in Euclidean length? In
# (b) ask instead how many noises are in the last sum.

# %% [markdown] tags=["solution"]
# (a) The first customer is in all $T$ counts. She changes the vector $(S_1, \dots, S_T)$ by $\sqrt
# T$ in length. So every count gets noise $\sqrt T / \mu$. (b) A customer changes one entry, by 1,
# so the noise is $1 / \mu$ each. But $S_t$ adds up $t$ of them: its error is $\sqrt t / \mu$, at
# the end $\sqrt T / \mu$ as well. Both are hopeless for large $T$.

# %% tags=["check"]
check("3.1")

# %% [markdown]
# ## 2. The binary tree
#
# In (a) a customer is in too many releases. In (b) a release has too many noises. The tree (Dwork,
# Naor, Pitassi and Rothblum, 2010; Chan, Shi and Song, 2011) balances the two. Its **nodes** are
# noisy sums over blocks of length 1, 2, 4, 8, ... Each customer is in one block of each length: few
# nodes. Each count is put together from the blocks in its binary representation: few nodes, too.
# Two sliders choose the count and the customer.

# %%
LEAVES = 16


def tree(count=13, customer=5):
    _, axes = plt.subplots(figsize=(9, 3.6))
    blocks = [(level, start) for level in range(5) for start in range(0, LEAVES, 2**level)]
    for level, start in blocks:
        length = 2**level
        end = start + length
        unused = (start // length) % 2 == 1  # right children: no count is made of them
        in_count = not unused and count & length and start == count // (2 * length) * 2 * length
        touched = start < customer <= end and not unused
        face = (*BLUE, 0.5) if in_count else "white"
        edge = RED if touched else "0.75" if unused else "0.3"
        look = {"fc": face, "ec": edge, "lw": 2.6 if touched else 1, "ls": ":" if unused else "-"}
        axes.add_patch(Rectangle((start + 0.06, level), length - 0.12, 0.72, **look))
        text = f"{end}" if length == 1 else f"{start + 1}-{end}"
        look = {"ha": "center", "va": "center", "fontsize": 9, "color": "0.75" if unused else "0.1"}
        axes.text(start + length / 2, level + 0.36, text, **look)
    axes.set(xlim=(0, LEAVES), ylim=(-0.1, 5))
    axes.set_yticks(np.arange(5) + 0.36, [f"blocks of {2**k}" for k in range(5)])
    axes.set_xticks([])
    axes.set_title(f"Count {count} is the sum of the blue nodes; customer {customer} is in the "
                   "red ones;\ndotted nodes are never needed", loc="left")  # fmt: skip
    sns.despine(left=True, bottom=True)


everybody = range(1, LEAVES + 1)
sliders(tree, count=everybody, customer=everybody)

# %% [markdown]
# Let `lowbit(t)` be the lowest 1 in the binary representation of $t$. Then node $t$ sums the
# customers $t - \text{lowbit}(t) + 1, \dots, t$, and the noise of count $t$ is that of node $t$
# plus the noise of count $t - \text{lowbit}(t)$. In Python `t & (t - 1)` is `t - lowbit(t)`:


# %%
def tree_noise(T, scale, runs, rng):
    """N_1, ..., N_T: the noise of every count, (T, runs)."""
    N = np.zeros((T + 1, runs))
    for t in range(1, T + 1):
        N[t] = N[t & (t - 1)] + scale * rng.standard_normal(runs)
    return N[1:]


# %% [markdown]
# **Exercise 3.2.** (a) How many noises are in count $t$? Which $t \le 1023$ has most? (b) How many
# nodes is customer 1 in, if there are $T$ counts? So how large is `scale`? (c) Check the size of
# the noise: draw 4,000 runs with $T = 255$ and compare with your formula. Call the numbers of
# noises of `t` below `noises`, the nodes `nodes` and the noise of a node `scale`.

# %% [markdown] tags=["hint"]
# Follow `t & (t - 1)` down to 0 for a few `t`, with `bin(t)` beside it. For (b): of each length 1,
# 2, 4, ..., up to T, customer 1 is in one block; her move of all nodes together has length
# sqrt(nodes).

# %%
T = 255
t = np.arange(1, T + 1)

# %% tags=["solution"]
noises = np.array([int(i).bit_count() for i in t])  # (a): the 1s in binary; 1023 = 1111111111b
nodes = T.bit_length()  # (b): one node of each length 1, 2, 4, ... <= T
scale = sqrt(nodes) / mu
measured = tree_noise(T, scale, 4_000, np.random.default_rng(0)).std(axis=1)
theory = scale * np.sqrt(noises)
print(f"customer 1 is in {nodes} nodes; scale {scale:.2f}; last count {theory[-1]:.1f}")
print(f"measured / theory: from {(measured / theory).min():.3f} to {(measured / theory).max():.3f}")
# a deviation from 4,000 runs errs by 1 / sqrt(8,000) = 1.1 %; the worst of 255 by 5 times that
assert np.abs(measured / theory - 1).max() < 0.056
assert abs(scale - least_multiplier(Tree(), horizon=T + 1, refresh_every=1, epsilon=EPSILON,
                                    delta=DELTA)) < 1e-6  # fmt: skip

# %% tags=["check"]
check("3.2", noises, scale)

# %% [markdown]
# ## 3. Sums are a matrix
#
# All counts together are $A x$, where $A$ is the lower-triangular matrix of ones. Write $A = B\,C$.
# Publish a noisy $C x + z$, and multiply by $B$, which costs no privacy:
#
# $$B (C x + z) = A x + B z.$$
#
# * One customer changes $C x$ by the length of **one column of $C$**. So $\sigma = \max |C_{\cdot
#   j}| / \mu$.
# * Count $t$ has the noise of **one row of $B$**: its standard deviation is $\sigma\, |B_{t
#   \cdot}|$.
#
# Every method so far is a choice of $B$ and $C$. Method (a): $C = A$. Method (b): $B = A$. The
# tree: $C$ lists the nodes. Which choice makes the product of the two lengths small?
#
# The best choices are close to $B = C = \sqrt A$ (Henzinger, Upadhyay and Upadhyay, 2023). The
# square root of $A$ is again lower triangular, with the numbers $c_0 = 1$, $c_k = c_{k-1} (2k - 1)
# / (2k)$ along its diagonals.
#
# **Exercise 3.3.** Build the 64 x 64 square root from these $c_k$. Check that its square is $A$.
# Compute the error of the last count for $C = A$, for $B = A$ and for the square root, with $\mu =
# 1$. Call the matrix `root` and the errors, in this order, `last_errors`.

# %% [markdown] tags=["hint"]
# `c` is a cumulative product. Entry (i, j) is `c[i - j]` on and below the diagonal. An error is
# the longest column of C times the last row of B.

# %% tags=["solution"]
n = 64
c = np.cumprod([1.0] + [(2 * k - 1) / (2 * k) for k in range(1, n)])
root = np.array([[c[i - j] if i >= j else 0.0 for j in range(n)] for i in range(n)])
A = np.tril(np.ones((n, n)))
assert np.abs(root @ root - A).max() < 1e-12  # rounding of 64 products of size 1
last_errors = []
for name, B, C in (("C = A", np.eye(n), A), ("B = A", A, np.eye(n)), ("square root", root, root)):
    column, row = np.linalg.norm(C, axis=0).max(), np.linalg.norm(B, axis=1)
    last_errors.append(column * row[-1])
    print(f"{name:12s} column {column:5.2f}, last row {row[-1]:5.2f}: error {last_errors[-1]:.2f}")

# %% tags=["check"]
check("3.3", root, last_errors)

# %% [markdown]
# Two more names. **Honaker** (2015) keeps the tree, but reads it better: a node and the sum of its
# two children are two readings of the same number, so take their weighted mean. A **BLT** (McMahan,
# Xu and Zhang, 2024; Dvijotham et al., 2024) is nearly the square root, computed by a recursion
# that remembers five numbers instead of all of the past. It is the default in this package.
#
# Every process can say how large its noise is at the moment. Let us ask them, all at the same
# $(\varepsilon, \delta)$. And let us measure two of them, because we trust nobody.

# %%
T, RUNS = 1_024, 300
streams = Streams(list(range(RUNS)))


def scale_of(process, counts=T):
    """Standard deviation of a node, for which all counts together are (EPSILON, DELTA)-DP."""
    return least_multiplier(
        process, horizon=counts + 1, refresh_every=1, epsilon=EPSILON, delta=DELTA
    )


def opened(process):
    """Its noise, as large as it has to be, for RUNS runs at once."""
    return process.start(Gaussian(scale_of(process)), streams, (), T)


theory, noise = {}, {}
for process in (Tree(), Honaker(), SquareRoot(), BLT()):
    source = opened(process)
    draws = [(source().copy(), source.stddev) for _ in range(T)]
    noise[process.word] = np.array([N for N, _ in draws])
    theory[process.word] = np.array([s for _, s in draws])

t = np.arange(1, T + 1)
theory["fresh noise each time"] = np.full(T, sqrt(T) / mu)
theory["noise on each customer"] = np.sqrt(t) / mu
for name, s in theory.items():
    print(f"{name:24s} worst {s.max():6.1f}   root mean square {sqrt((s**2).mean()):6.1f}")

# %%
for process, N in noise.items():
    ratio = (N**2).mean(axis=1) / theory[process] ** 2
    # each ratio errs by sqrt(2 / 300) = 8 %; its mean over counts, correlated as they are, by less
    assert abs(ratio.mean() - 1) < 4 * sqrt(2 / RUNS), process
# the BLT is within 1 % of the square root's worst error, the tree far above; these are formulas
assert theory["blt"].max() < 1.01 * theory["square-root"].max()
assert theory["tree"].max() > 2 * theory["blt"].max()
assert (theory["blt"] < theory["tree"]).mean() > 0.98  # the tree wins at a few powers of 2 at most

# %% tags=["picture"]
figure, axes = plt.subplots(figsize=(9.2, 5))
looks = {
    "fresh noise each time": ("0.5", ":", 2),
    "noise on each customer": ("0.5", "--", 2),
    "tree": (ORANGE, "-", 0.8),
    "honaker": (GREEN, "-", 0.8),
    "blt": (BLUE, "-", 3),
}
labels = {"tree": "binary tree", "honaker": "tree, read by Honaker", "blt": "BLT"}
for name, (color, dashes, width) in looks.items():
    axes.plot(t, theory[name], color=color, ls=dashes, lw=width, label=labels.get(name, name))
sample = slice(63, T, 64)
measured = noise["blt"].std(axis=1)[sample]
band = 2 / sqrt(2 * RUNS) * measured
axes.errorbar(t[sample], measured, band, fmt="o", color=BLUE, ms=4, capsize=2, zorder=5,
              label=f"BLT, measured in {RUNS} runs (95 %)")  # fmt: skip
axes.set(xlim=(0, T), ylim=(0, None))
axes.set_xlabel("count (customers so far)")
axes.set_ylabel("standard deviation of the noise (customers)")
axes.set_title(f"The same privacy, epsilon {EPSILON:g} at delta {DELTA:g}", loc="left")
axes.legend(loc="center right", framealpha=0.95)
sns.despine()

# %% [markdown]
# The tree's noise jumps: it depends on the number of 1s in the binary representation of $t$.
# Nothing about the customers does; it is an artefact. The BLT is smooth and lower nearly
# everywhere.
#
# **Exercise 3.4.** A count that nobody acts on need not be published. Publish only after every
# $k$-th customer: then there are $T / k$ counts. For $T = 10{,}000$, how large is the last error of
# the BLT with $k = 1, 10, 100$? What do you lose instead? Collect the last errors in a dict
# `last_error`, with k as its key.

# %% [markdown] tags=["hint"]
# `scale_of(BLT(), counts)` is the noise for that many counts. A `BLT`, as in
# `dpbandit.privacy.prefix_sums`, says in `stddev` how large its noise is after every call.

# %% tags=["solution"]
last_error = {}
for k in (1, 10, 100):
    counts = 10_000 // k
    blt = BLT().of(Streams([0]).normals("one"), stddev=scale_of(BLT(), counts))
    for _ in range(counts):
        blt()
    last_error[k] = blt.stddev
    print(f"every {k:3d}: {counts:6,} counts, last error {last_error[k]:.2f}")

# %% [markdown] tags=["solution"]
# Fewer counts, less noise, but only a little: it grows with the logarithm of their number. What you
# lose is time: between counts the shop acts on an old one. DP-UCB publishes 100 times by default.

# %% tags=["check"]
check("3.4", last_error)

# %% [markdown]
# ## 4. What "twelve times less noise" means
#
# Papers give a formula for the noise of a node, and a proof. The noise is honest: it is **at
# least** what is needed. But proofs are made to be short, not tight. Here is how such a proof goes,
# for $T = 10{,}000$ counts:
#
# 1. there are $m = 1 + \lceil \log_2 T \rceil$ levels;
# 2. give each node $(\varepsilon / m, \delta / m)$ and add up (basic composition);
# 3. use a tail bound of the Gaussian for each node: noise $\sqrt{2 \ln(1.25\, m / \delta)}\, m /
#    \varepsilon$;
# 4. lose a factor of 2 on the way, for instance by counting a replaced customer as one who leaves
#    and one who comes: $\sqrt{8 \ln(m / \delta)}\, m / \varepsilon$.
#
# The privacy of Gaussian noise on a tree is known exactly. Let us take the losses back, one by one.

# %%
T = 10_000
m = 1 + ceil(log2(T))
nodes = T.bit_length()
steps = {
    "a proof in a paper,\nsqrt(8 ln(m/delta)) m/epsilon": m * sqrt(8 * log(m / DELTA)) / EPSILON,
    "without the factor of 2": m * sqrt(2 * log(1.25 * m / DELTA)) / EPSILON,
    "exact Gaussian for each node,\nstill basic composition": 1 / mu_of(EPSILON / m, DELTA / m),
    "exact composition:\nsquares add up": sqrt(m) / mu,
    "count the nodes that\nare really used": sqrt(nodes) / mu,
}
sizes = np.array(list(steps.values()))
figure, axes = plt.subplots(figsize=(8.4, 3.6))
axes.barh(range(5), sizes, color=[RED, ORANGE, ORANGE, ORANGE, BLUE], alpha=0.8)
for place, size in enumerate(sizes):
    axes.text(size + 1.5, place, f"{size:.1f}", va="center")
axes.set_yticks(range(5), steps, fontsize=9)
axes.invert_yaxis()
axes.set_xlabel("noise of a node (standard deviation, customers)")
axes.set_title(f"One tree, one guarantee, five calculations (T = {T:,})", loc="left")
sns.despine()

print("each step saves a factor of", (sizes[:-1] / sizes[1:]).round(2))
print(f"all together {sizes[0] / sizes[-1]:.2f}")
bought = epsilon_of(sqrt(nodes) / sizes[0], DELTA)
print(f"the noise of the first line really has epsilon {bought:.3f}")
assert abs(sizes[-1] - scale_of(Tree(), T)) < 1e-6  # what the package uses
assert 12 < sizes[0] / sizes[-1] < 12.5

# %% [markdown]
# So **twelve times** is the same tree with the same guarantee: nothing but a better calculation. A
# factor of 2 of it is a constant that not every paper loses. And it is no law of nature: it depends
# on $T$, $\varepsilon$, $\delta$ and on the paper.
#
# **Exercise 3.5.** Compute the factor, with and without step 4, for $T = 10^2, 10^4, 10^6$ and for
# $(\varepsilon, \delta)$ equal to $(1, 10^{-4})$, $(0.1, 10^{-4})$ and $(1, 10^{-6})$. When is it
# large? Collect them in a list `factors` of nine pairs (with, without), T by T.

# %% [markdown] tags=["hint"]
# The least noise of a node is that of the fifth bar, sqrt(T.bit_length()) / mu_of(epsilon, delta).
# With step 4 the printed noise is that of the first bar, without it that of the second.

# %% tags=["solution"]
factors = []
for T in (10**2, 10**4, 10**6):
    for epsilon, delta in ((1, 1e-4), (0.1, 1e-4), (1, 1e-6)):
        m = 1 + ceil(log2(T))
        least = sqrt(T.bit_length()) / mu_of(epsilon, delta)
        with_2 = m * sqrt(8 * log(m / delta)) / epsilon / least
        without = m * sqrt(2 * log(1.25 * m / delta)) / epsilon / least
        factors.append((with_2, without))
        setting = f"T {T:9,}  epsilon {epsilon:3}  delta {delta:g}"
        print(f"{setting}: {with_2:5.1f}, without the 2 {without:4.1f}")
with_2, without = np.array(factors).T
for name, factor in (("with", with_2), ("without", without)):
    print(f"{name} the 2: from {factor.min():.0f} to {factor.max():.0f} times")
assert with_2.min() > 8
assert with_2.max() < 19

# %% [markdown] tags=["solution"]
# It grows with $T$, because basic composition pays $m$ where $\sqrt m$ is enough. It is larger for
# small $\varepsilon$ and for large $\delta$, where the tail bound is at its worst.

# %% tags=["check"]
check("3.5", factors)

# %% [markdown]
# **Exercise 3.6.** A real case: DP-UCB of Shariff and Sheffet (2018) adds noise to a tree of
# matrices. Certify it with `calibration="paper"` and with the tree at its least noise. The ratio of
# the two `ledger.mu` is the ratio of the noises. (Clips and units are the same.) Call it
# `printed_over_least`.

# %% [markdown] tags=["hint"]
# `ShariffSheffetUCB(calibration="paper", ...)` and `DPUCB(prefix_sums="tree", refresh_every=1,
# ...)`, both with EPSILON and DELTA; `dpbandit.certify(config, spec).ledger.mu`. More noise has
# the smaller mu.

# %%
spec = ContextualSpec(n_actions=2, dim=5, horizon=10_000)

# %% tags=["solution"]
target = {"epsilon": EPSILON, "delta": DELTA}
printed = dpbandit.certify(ShariffSheffetUCB(calibration="paper", **target), spec)
least = dpbandit.certify(DPUCB(prefix_sums="tree", refresh_every=1, **target), spec)
printed_over_least = least.ledger.mu / printed.ledger.mu
print(f"claimed {EPSILON:g}, certified {printed.epsilon:.3f}:", end=" ")
print(f"{printed_over_least:.1f} times the least noise")
assert 13 < printed_over_least < 14.5

# %% tags=["check"]
check("3.6", printed_over_least)

# %% [markdown]
# ## 5. And the tree itself
#
# The second gain is of another kind: not a better proof, but a better mechanism. At the same
# privacy:

# %%
T = 10_000
most = max(int(i).bit_count() for i in range(1, T + 1))  # noises in one count
worst = {"tree, noise of a paper": sizes[0] * sqrt(most)}
for process in (Tree(), Honaker(), BLT()):
    source = process.start(Gaussian(scale_of(process, T)), Streams([0]), (), T)
    worst[process.word] = max((source(), source.stddev)[1] for _ in range(T))
for name, size in worst.items():
    less = worst["tree, noise of a paper"] / size
    print(f"{name:24s} worst count {size:6.1f}   {less:5.1f} times less")
assert 3.3 < worst["tree"] / worst["blt"] < 3.5
assert 40 < worst["tree, noise of a paper"] / worst["blt"] < 43

# %% [markdown]
# ## What to remember
#
# * Continual observation: publish sums as they grow. Naive noise grows like $\sqrt T$, the tree's
#   like $\log T$.
# * $A = B C$: privacy pays for a column of $C$, error for a row of $B$. Everything else is a choice
#   of the two.
# * Much printed noise protects the proof, not the people. An exact calculation gives the same
#   guarantee with several times less; by how much depends on $T$, $\varepsilon$, $\delta$ and the
#   paper, so compute it.
# * A better factorisation than the tree saves another factor.
