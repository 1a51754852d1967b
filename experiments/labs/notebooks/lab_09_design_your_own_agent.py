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
# # Lab 9: Design your own agent, and audit it
#
# **Goal.** Write a small private agent from certified parts, certify it, try to break it, then
# break it on purpose and see which test catches which mistake.
#
# **You need.** Labs 1 to 3, and section 1 of Lab 6.
#
# The agent of this lab is the simplest that can be private: **explore, then commit**. Try every arm
# in turn for a while. Add up what each arm earned, in one noisy sum. Then play the best for good.
#
# Three rules make it private, and they are the rules of every agent in this library.
#
# 1. **Through mechanisms alone.** What users tell reaches the future through a `Mechanism` only.
# 2. **Clip inside the mechanism.** Never trust the world to keep its bounds.
# 3. **The ledger is complete before round 1.** Noise is bought first and used later.

# %%
from dataclasses import dataclass
from math import inf
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns

from dpbandit import Arms, Chance, PrivateAgent, audit, certify, play, started
from dpbandit.agents import FADE, Uniform
from dpbandit.base.arrays import clip_range
from dpbandit.envs import OJPricing
from dpbandit.experiments.labs import against, check, curves, plus_minus
from dpbandit.privacy import Mechanism, ledger_of
from dpbandit.privacy.fading import certified_fading_sum
from dpbandit.privacy.premises import NO_FACTS
from dpbandit.specs import ContextualSpec
from dpbandit.testing.checks import billboard_differences
from dpbandit.testing.tapes import World, run

sns.set_theme(style="ticks", palette="colorblind")
BLUE, _, _, RED, *_ = sns.color_palette("colorblind")

# %% [markdown]
# ## 1. What is summed
#
# Write down what one user adds, clip it, and say how far replacing her can move the sum. All three
# stand on one page, so that they cannot drift apart. Rewards are measured from the middle of their
# public range.
#
#     user:  (context, action, reward)   ->   (0, .., 0, reward - middle, 0, .., 0)
#                                              one entry for each arm
#
# **Exercise 9.1.** Rewards lie in [low, high]. While we explore, arms are played in turn, whoever
# comes. By how much can replacing one user move this vector, in Euclidean length? And if her arm
# could change, too? Why do we measure from the middle?

# %% [markdown] tags=["hint"]
# Which entries of the vector change, if the arm is given? If the arm may change, two entries do:
# how large is each, measured from the middle?

# %% [markdown] tags=["solution"]
# Her arm is fixed, so only one entry moves, by at most high - low. If her arm could change, two
# entries would move, each by at most (high - low) / 2 thanks to the middle: together that times
# sqrt(2), which is less than high - low. Without the middle it would be sqrt(2) times the largest
# |reward|, which is more when, say, rewards lie in [5, 6].

# %% tags=["check"]
check("9.1")

# %%


@dataclass(frozen=True)
class ArmRewards:
    """The sum of clipped rewards of every arm, measured from the middle of their range."""

    needs = NO_FACTS  # the proof takes nothing for granted but the clip
    n_actions: int
    low: float
    high: float
    units: ClassVar[float] = 1.0

    @property
    def shape(self) -> tuple[int]:
        """One number for each arm."""
        return (self.n_actions,)

    @property
    def sensitivity(self) -> float:
        """How far replacing one user moves the sum."""
        return self.high - self.low

    def total(self, context, action, reward) -> np.ndarray:
        """n rounds of R replicas, (n, R, ..) -> (R, arms)."""
        r = clip_range(reward, self.low, self.high) - (self.low + self.high) / 2
        played = action[..., None] == np.arange(self.n_actions)
        return (r[..., None] * played).sum(axis=0)


# %% [markdown]
# ## 2. The agent
#
# An agent is one class. What is annotated in it are **settings**: `ExploreThenCommit(share=0.2)`
# is a frozen value that says what is wanted. Four methods or fewer make it play:
#
# * `start` buys the noise: `certified_fading_sum` with `fade=0.0` releases the sum of each batch
#   once, with the least Gaussian noise that keeps (epsilon, delta). `started` names an attribute
#   that only `start` sets.
# * `act` returns an arm for the user who came, and remembers nothing.
# * `learn` hands the raw round to the mechanism, and keeps what that releases.
#
# `PrivateAgent` brings `epsilon` and `delta`, and what `start` finds: the problem's `spec`, random
# `streams`, and `R`, the number of runs that are played at once, which is the first axis of every
# array.

# %%


class ExploreThenCommit(PrivateAgent, Arms):
    """Every arm in turn for a share of the rounds, then the best by one noisy sum."""

    share: Chance = 0.1
    sums = started(Mechanism)

    def start(self) -> None:
        """Buy the noise."""
        arms = self.spec.n_actions
        self.explore = arms * max(1, int(self.share * self.spec.horizon / arms))
        self.played, self.best = 0, np.zeros(self.R, int)
        self.buy([self.explore])

    def buy(self, ends: list[int]) -> None:
        """Noisy sums of the batches that end after these rounds, and the ledger that says so."""
        target = {"epsilon": self.epsilon, "delta": self.delta}
        batches = {"ends": ends, "horizon": self.spec.horizon, "fade": 0.0}
        self.sums = certified_fading_sum(self.statistic(), self.streams, **batches, **target)
        self.ledger = ledger_of(self.epsilon, self.sums.spend)

    def statistic(self) -> ArmRewards:
        """What is summed."""
        return ArmRewards(self.spec.n_actions, self.spec.reward_low, self.spec.reward_high)

    def act(self, context: np.ndarray) -> np.ndarray:
        """(R,) arms."""
        if self.played < self.explore:
            return np.full(self.R, self.played % self.spec.n_actions)
        return self.best.copy()

    def learn(self, context, action, feedback) -> None:
        """Hand the round to the mechanism; keep what comes back."""
        self.played += 1
        release = self.sums(context, action, feedback)
        if release is not None:
            self.best = release.argmax(axis=1)


# %% [markdown]
# Does it work? Orange-juice prices, twelve of them, 3,000 customers. The best single price in
# hindsight is what such an agent can hope for.

# %%
T, RUNS = 3_000, [(0, run) for run in range(100)]
prices = OJPricing(horizon=T)
print(certify(ExploreThenCommit(), prices.spec, accountants=False))
assert certify(ExploreThenCommit(), prices.spec, accountants=False).holds

# %%
MARKS = np.unique(np.linspace(1, T, 60).astype(int))
regret = {}
for name, config in {
    "random prices": Uniform(),
    "explore-commit, epsilon 0.1": ExploreThenCommit(epsilon=0.1),
    "explore-commit, epsilon 1": ExploreThenCommit(epsilon=1.0),
    "explore-commit, no privacy": ExploreThenCommit(epsilon=inf),
    "FADE, epsilon 1": FADE(epsilon=1.0),
}.items():
    regret[name] = play(prices, config, RUNS, marks=MARKS).regret
    print(f"{name:28} {plus_minus(regret[name][-1])} dollars")

gap = regret["explore-commit, epsilon 1"][-1] - regret["explore-commit, no privacy"][-1]
print(f"privacy at epsilon 1 costs {plus_minus(gap)}")
# measured 0.85, with an error of 0.03
assert regret["explore-commit, epsilon 1"][-1].mean() < 0.95 * regret["random prices"][-1].mean()
assert gap.mean() < 0.2 * regret["explore-commit, epsilon 1"][-1].mean()
assert regret["FADE, epsilon 1"][-1].mean() < regret["explore-commit, no privacy"][-1].mean() / 2

# %% [markdown]
# At epsilon 1 privacy is the small part of what is lost. The large parts are the exploration, and
# that everybody is shown one price: FADE, which looks at customers and shares what it learns
# between prices, loses less, privately, than this agent does without privacy.
#
# **Exercise 9.2.** How long to explore? Measure the loss for `share` in 0.02, 0.05, 0.1, 0.2, 0.4
# at epsilon 1. What pulls the best share up, what down? Is the choice you make now covered by the
# certificate? Collect the mean losses in a dict `loss_of`, with the share as its key.

# %% [markdown] tags=["hint"]
# `ExploreThenCommit(share=share)`, played like the agents above with one mark at T. For the last
# question: which data have you looked at to choose?

# %% tags=["solution"]
loss_of, ends = {}, {}
for share in (0.02, 0.05, 0.1, 0.2, 0.4):
    config = ExploreThenCommit(share=share)
    end = play(prices, config, RUNS, marks=np.array([T])).regret[-1]
    loss_of[share], ends[share] = end.mean(), end
    print(f"share {share:4}: {plus_minus(end)}")
axes = against(
    {"epsilon 1": [*ends.values()]},
    {"share of rounds to explore": [*ends]},
    title="Too short is a gamble",
    ylabel=f"regret after {T:,} customers (dollars)",
)

# %% [markdown] tags=["solution"]
# A long exploration plays bad prices, a short one may choose a bad price for good, and its loss is
# uncertain. In between the loss is rather flat. With less epsilon the noise is larger and the sums
# have to grow further, so expect a longer exploration. The certificate does not cover the choice:
# we looked at regret on these customers to make it. On synthetic ones, or on a part of the data
# that is not used again, fine.

# %% tags=["check"]
check("9.2", loss_of)

# %% [markdown]
# ## 3. Two tests of honesty
#
# The certificate says what the noise *would* be worth if the code did what the proof says. Does it?
# Two experiments can be run on any agent, without reading it.
#
# **Sensitivity at the mechanism.** Run two worlds that differ in one extreme user. What the
# mechanism is fed may differ by no more than the sensitivity that its noise was scaled to.
#
# **The billboard.** Record everything that came out of the mechanisms. Swap one user, and play
# again, but *hand out the recorded releases*. If the agent is honest, all it knows comes from
# releases: then nobody else's action and nothing in its memory may differ, not in a single bit.

# %%
SMALL = ContextualSpec(n_actions=2, dim=2, horizon=24, reward_low=-1.0, reward_high=1.0)


def users(seed: int, replicas: int = 50) -> World:
    """Contexts (T, R, d) and answers to all arms (T, R, K), some of which break their bounds."""
    rng, T = np.random.default_rng(seed), SMALL.horizon
    answers = rng.choice([-1.0, 1.0, -50.0, 50.0], (T, replicas, SMALL.n_actions))
    return World(rng.standard_normal((T, replicas, SMALL.dim)), answers)


def two_tests(config, swapped: int = 3) -> tuple[float, list[str]]:
    """The largest move over its sensitivity, and what the billboard test finds."""
    world, others = users(9), users(10)
    t = np.full(50, swapped)  # the round that differs, in each of 50 replicas
    one = run(config, SMALL, world)
    two = run(config, SMALL, world.swapped(t, others), replay=one)
    moved = np.linalg.norm(one.queries[swapped] - two.queries[swapped], axis=1)  # in her round
    move = moved.max() / one.mechanisms[swapped].sensitivity
    return float(move), billboard_differences(one, two, t)


honest = ExploreThenCommit(epsilon=1.0, delta=1e-4, share=0.5)
move, found = two_tests(honest)
print(f"moves it by {move:.2f} sensitivities; the billboard test finds: {found or 'nothing'}")
assert move <= 1 + 1e-9
assert not found

# %% [markdown]
# `run` from `dpbandit.testing` plays a `World` of users and writes down what goes into mechanisms,
# what comes out, all actions, and what the agent remembers; `replay` hands out recorded releases.
# Every agent of this library meets these two tests.

# %% [markdown]
# ## 4. The audit
#
# Both tests look at the code's logic. Neither looks at the noise. The audit plays thousands of runs
# of two neighbouring worlds and tries to tell them apart; what it proves is a lower bound on
# epsilon. Small problems are enough for most mistakes.

# %%
report = audit(honest, SMALL, runs=4_000, progress=False)
print(report)
assert not report.flagged

# %% [markdown]
# "Not refuted" is all an audit can say in favour of an agent. The certificate is the proof; the
# tests tell you whether the program is the one that the proof is about.
#
# **Exercise 9.3.** Read the report. With `epsilon >=` at delta the audit proves much less than
# `as Gaussian noise epsilon >=`. Where does the difference come from? (Lab 2.)

# %% [markdown] tags=["hint"]
# One of the two looks at how often an event happens in 4,000 runs. What has the other one assumed
# about the noise, and what follows from one point then?

# %% [markdown] tags=["solution"]
# The first compares two frequencies and needs no assumption about the noise, at a delta that 4,000
# runs can hardly see. The second uses that noise is Gaussian: then one point of the trade-off curve
# gives the whole curve. It refutes certificates of Gaussian noise only.

# %% tags=["check"]
check("9.3")

# %% [markdown]
# ## 5. Broken on purpose
#
# Four mistakes that real programs have. Each is a line or two away from the honest agent, and none
# of them needs to show in the regret.

# %%


class NoClip(ArmRewards):
    """Trusts the world: rewards are not clipped."""

    needs = NO_FACTS

    def total(self, context, action, reward) -> np.ndarray:
        """As above, without the clip."""
        played = action[..., None] == np.arange(self.n_actions)
        return (reward[..., None] * played).sum(axis=0)


class HalfTheWidth(ArmRewards):
    """Forgets that a reward may turn around: `|reward - middle|` for the whole range."""

    needs = ArmRewards.needs

    @property
    def sensitivity(self) -> float:
        """How far one user's reward is from the middle. Wrong!"""
        return (self.high - self.low) / 2


class KeepsAContext(ExploreThenCommit):
    """Remembers the last customer, "for debugging"."""

    def learn(self, context, action, feedback) -> None:
        """As above, and a copy."""
        super().learn(context, action, feedback)
        self.last = context.copy()


class Summing(ExploreThenCommit):
    """The agent with another statistic."""

    kind: type = ArmRewards

    def statistic(self) -> ArmRewards:
        """What is summed."""
        return self.kind(self.spec.n_actions, self.spec.reward_low, self.spec.reward_high)


class Stingy(ExploreThenCommit):
    """Adds half the noise that its ledger was paid for."""

    def start(self) -> None:
        """The honest agent, less noise."""
        super().start()
        self.sums.stddev /= 2


settings = {"epsilon": 1.0, "delta": 1e-4, "share": 0.5}
ZOO = {
    "honest": honest,
    "keeps a context": KeepsAContext(**settings),
    "skips the clip": Summing(kind=NoClip, **settings),
    "half the sensitivity": Summing(kind=HalfTheWidth, **settings),
    "half the noise": Stingy(**settings),
}
assert all(certify(config, SMALL, accountants=False).holds for config in ZOO.values())

# %% [markdown]
# The assertion is the point: **every one of them holds a certificate for epsilon 1.** A ledger
# believes what it is told.
#
# **Exercise 9.4.** Before you go on: which of the three tests (sensitivity, billboard, audit)
# catches which of the four?

# %% [markdown] tags=["hint"]
# The sensitivity test compares what goes *into* the mechanism with what was paid for. The
# billboard finds what goes *around* it. Which mistake is neither?

# %% [markdown] tags=["solution"]
# The sensitivity test sees what goes into the mechanism, next to what was paid for: the missing
# clip and the halved sensitivity. The billboard sees what goes around it: the kept context.
# Neither looks at noise, so half the noise is left to the audit. That one looks at everything,
# releases and memory, but only at some users and with the power of its runs.

# %% tags=["check"]
check("9.4")

# %%
verdicts = {}
for name, config in ZOO.items():
    move, found = two_tests(config)
    report = audit(config, SMALL, runs=4_000, failure=0.05 / len(ZOO), progress=False)
    verdicts[name] = (move > 1 + 1e-9, bool(found), report.flagged, report)
    print(f"{name:21} sensitivity: {move:6.2f}   billboard: {len(found)} differences", end="")
    gdp = report.eps_lower_gdp
    print(f"   audit: epsilon >= {report.eps_lower:.2f}, as Gaussian {gdp:5.2f}", end="")
    print("   FLAGGED" if report.flagged else "")

caught = {name: tuple(v[:3]) for name, v in verdicts.items()}
assert caught["honest"] == (False, False, False)
assert caught["keeps a context"] == (False, True, True)
assert caught["skips the clip"][:2] == (True, False)
assert caught["half the sensitivity"] == (True, False, True)
assert caught["half the noise"] == (False, False, True)

# %% [markdown]
# No single test is enough. Half the noise passes sensitivity and billboard: only runs show
# it. A kept context passes the former. And an audit has limits of its own. It tries *some*
# users. Look at the agent that skips the clip: its sensitivity shows it at once. Whether the audit
# does depends on whether its list has the right two users, whose *rewards* are far out in opposite
# directions. (This agent does not look at contexts, so users whose contexts differ are all the same
# to it.)
#
# **Exercise 9.5.** Prove by hand that the agent that skips the clip is not private. Use `run` on
# 2,000 replicas and two worlds that differ in the reward of user 1, and look only at what the
# *last* user is served. If an event has frequency p in one world and never happens in n runs of the
# other, its probability there is below 3 / n (95 percent), and epsilon is at least
# ln((p - delta) n / 3), give or take the error of p. Call your lower bound `proved`.

# %% [markdown] tags=["hint"]
# Rewards of 50 and of -50 are as far apart as one likes, without the clip. Everybody else says 0;
# contexts may be 0. `run(config, SMALL, World(contexts, answers)).actions[-1]` is what the last
# user is served in each of 2,000 runs.

# %% tags=["solution"]
quiet = np.zeros((SMALL.horizon, 2_000, SMALL.dim))
served = []
for reward in (50.0, -50.0):  # of arm 0, which user 1 is served
    answers = np.zeros((SMALL.horizon, 2_000, SMALL.n_actions))
    answers[0] = reward
    tape = run(ZOO["skips the clip"], SMALL, World(quiet, answers), remember=False)
    served.append(tape.actions[-1])
often, never = np.mean(served[0] == 0), np.sum(served[1] == 0)
assert never == 0
print(f"arm 0 is served in {often:.3f} and {never} of 2,000 runs:", end=" ")
proved = np.log((often - 1e-4) * 2_000 / 3)
print(f"epsilon >= {proved:.1f}")

# %% tags=["check"]
check("9.5", proved)

# %% tags=["picture"]
left = curves(regret, rounds=MARKS, title="Your agent at work", ylim=(0, 560),
              xlabel="round (one customer each)", ylabel="cumulative regret (dollars)")  # fmt: skip
left.legend(frameon=False, loc="upper left")

_, right = plt.subplots(figsize=(6.8, 5), layout="constrained")
TESTS, labels = np.array(["sensitivity", "billboard", "audit"]), []
for place, (name, (*tests, report)) in enumerate(verdicts.items()):
    color = RED if report.flagged else BLUE
    right.barh(place, report.eps_lower_gdp, color=color, alpha=0.3, height=0.6)
    right.barh(place, report.eps_lower, color=color, height=0.3)
    by = ", ".join(TESTS[list(tests)])
    labels.append(f"{name}:\n{'caught by ' + by if by else 'passes all three'}")
right.barh(9, 1, color="0.3", label="from two frequencies")  # outside, for the legend
right.barh(9, 1, color="0.3", alpha=0.3, label="if noise is Gaussian")
right.axvline(1, color="0.3", ls="--", lw=2, label="certified, all five")
right.legend(loc="lower right", framealpha=1)
right.set_yticks(range(len(ZOO)), labels)
right.set(xscale="log", xlim=(0.1, 50), ylim=(len(ZOO) - 0.4, -0.6))
right.set_xticks([0.1, 1, 10], ["0.1", "1", "10"])
right.minorticks_off()
right.set_xlabel("epsilon that the audit proves (at least)")
right.set_title("Five agents with the same certificate", loc="left")
sns.despine()

# %% [markdown]
# **Exercise 9.6.** Write a worse one. It should pass the sensitivity test and hold the same
# certificate, and yet let exact data choose the arm. For example: keep exact sums beside the
# mechanism and use them to choose between the two best arms of the release. Which tests catch it?
# Call the class `Peeking`, and what the billboard test finds `billboard_found`.

# %% [markdown] tags=["hint"]
# Subclass `ExploreThenCommit` and let its `learn` add up the raw feedback for itself, before it
# calls `super().learn(...)`.

# %% tags=["solution"]


class Peeking(ExploreThenCommit):
    """Chooses among the two best by exact sums, "only to break ties"."""

    exact = 0.0

    def learn(self, context, action, feedback) -> None:
        """As above, with a memory of its own."""
        arms = action[:, None] == np.arange(self.spec.n_actions)
        self.exact = self.exact + feedback[:, None] * arms
        best = self.best
        super().learn(context, action, feedback)
        if self.best is not best:
            self.best = self.exact.argmax(axis=1)  # of two arms both are the two best


move, billboard_found = two_tests(Peeking(**settings))
white = audit(Peeking(**settings), SMALL, runs=2_000, progress=False)
black = audit(Peeking(**settings), SMALL, runs=2_000, view="actions", progress=False)
print(f"move {move:.2f}, billboard {billboard_found},", end=" ")
print(f"audit {white.verdict}; actions alone: {black.verdict}")
assert move <= 1 + 1e-9
assert "what the agent remembers" in billboard_found
assert white.flagged

# %% tags=["check"]
check("9.6", Peeking, billboard_found)

# %% [markdown]
# **Exercise 9.7.** A better agent for the same price. Explore in *stages*: play all arms, release
# the sums, keep the better half, and so on. A user is in one stage only. What does that do to the
# ledger? Write it, with `ends=[..]` for the ends of the stages, and compare at epsilon 0.1 and 1.
# (Which arms are kept differs from replica to replica, so `kept` is an array (R, k).) Call the
# class `Halving`.

# %% [markdown] tags=["hint"]
# The lengths of stages depend on public numbers only, so they can be fixed in `start`:
# `ends=np.cumsum(lengths).tolist()`. `learn` gets a release at the end of each stage and None
# otherwise; sort the kept arms by their sums.

# %% tags=["solution"]


class Halving(ExploreThenCommit):
    """Sequential halving: the better half of the arms goes on to the next stage."""

    share: Chance = 0.2

    def start(self) -> None:
        """Stages, whose sizes and lengths are public."""
        sizes = [self.spec.n_actions]
        while sizes[-1] > 1:
            sizes.append(sizes[-1] // 2)
        budget = self.share * self.spec.horizon / len(sizes[:-1])
        lengths = [max(1, int(budget / k)) * k for k in sizes[:-1]]
        self.buy(np.cumsum(lengths).tolist())
        self.kept = np.tile(np.arange(self.spec.n_actions), (self.R, 1))  # (R, k)
        self.totals, self.turn = np.zeros((self.R, self.spec.n_actions)), 0

    def act(self, context: np.ndarray) -> np.ndarray:
        """(R,) arms: those that are left, in turn."""
        return self.kept[:, self.turn % self.kept.shape[1]].copy()

    def learn(self, context, action, feedback) -> None:
        """Hand the round to the mechanism; after a stage keep the better half."""
        self.turn += 1
        release = self.sums(context, action, feedback)
        if release is None:
            return
        # all that is kept was played equally often, so that sums can be compared
        self.totals = self.totals + release
        score = np.take_along_axis(self.totals, self.kept, axis=1)
        best = np.argsort(-score, axis=1)[:, : self.kept.shape[1] // 2]
        self.kept, self.turn = np.take_along_axis(self.kept, best, axis=1), 0


one, many = (certify(a, prices.spec, accountants=False) for a in (ExploreThenCommit(), Halving()))
print(f"mu of one stage {one.mu:.4f}, of all stages {many.mu:.4f}: nobody pays twice")
assert one.mu == many.mu
lost = {}
for epsilon in (0.1, 1.0):
    for name, config in {
        "explore-commit": ExploreThenCommit(epsilon=epsilon, share=0.2),
        "halving": Halving(epsilon=epsilon),
    }.items():
        end = play(prices, config, RUNS, marks=np.array([T])).regret[-1]
        print(f"epsilon {epsilon:3}: {name:15} {plus_minus(end)}")
        lost[epsilon, name] = end.mean()
assert lost[1.0, "halving"] < lost[1.0, "explore-commit"]
move, found = two_tests(Halving(**settings))
assert move <= 1 + 1e-9
assert not found

# %% [markdown] tags=["solution"]
# Users of different stages are different users: nobody pays twice, and the ledger does not change.
# At epsilon 1 the rounds that are saved on bad prices pay. At epsilon 0.1 it is the noise that
# decides, and noise does not shrink with a stage: cutting the sum into stages then gains nothing.

# %% tags=["check"]
check("9.7", Halving)

# %% [markdown]
# ## What to remember
#
# * Decide what one user adds, clip it, say how far replacing her moves it. Buy noise for that.
# * Keep nothing else. What you remember must be computable from releases and public facts.
# * A certificate is as good as the code behind it. Swap one user, replay the releases, compare
#   every bit; then let thousands of runs look at the noise.
# * An audit refutes. It never confirms.
# * Disjoint batches cost a user once: explore in stages for the price of one.
# * In this library an agent that has a row in `agents/catalogue.csv` meets these tests, and harder
#   ones, without anybody writing a line.
