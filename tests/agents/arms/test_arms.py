"""Agents of arms: steps by hand, an independent program's numbers, privacy."""

from dataclasses import replace
from itertools import product
from math import inf, log

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar

from dpbandit import audit, certify, compare, play
from dpbandit.agents import (
    DPIMED,
    DPKLUCB,
    DPSE,
    KLUCB,
    AdaPKLUCB,
    AdaPUCB,
    AllocationTS,
    KLUCBSums,
    PrivateTsallis,
    RaceIMED,
    Thompson,
    TreeUCB,
    TsallisINF,
)
from dpbandit.agents.arms.evidence import evidence, private_divergence
from dpbandit.agents.arms.play import kl_upper, tsallis_chances
from dpbandit.auditing.audit import users_of
from dpbandit.auditing.views import columns_of, public_ends
from dpbandit.base import Streams
from dpbandit.domains import Ball
from dpbandit.envs import Arms
from dpbandit.losses import Linear
from dpbandit.privacy.batches import CountedSums
from dpbandit.specs import ContextualSpec, ConvexSpec, CostSpec, PriceListSpec
from dpbandit.testing.checks import check_joint_dp
from tests.broken.arms import EndsByAnExactSum, HalfTheLaplace, Unclipped
from tests.each import by_rota, each, in_turn, refused

SPEC = ContextualSpec(n_actions=2, dim=1, horizon=24)
PRICED = PriceListSpec(
    n_actions=2, dim=1, horizon=24, prices=(1.5, 3.0), unit_cost=0.5, reward_high=2.5
)
ONE = np.ones((1, 1))
OURS = {"ats": AllocationTS(), "kl": KLUCBSums(), "race": RaceIMED()}


def regret(env, agents, T, R=40, **kwargs):
    """Mean and standard error by agent."""
    results = compare(env, agents, horizon=T, replicas=R, progress=False, env_kwargs=kwargs)
    return results.summary().set_index("agent")[["mean", "se"]]


class Short(DPSE):
    """With epochs of 20 rounds of an arm."""

    def rounds(self):
        return np.where(np.isfinite(super().rounds()), 20.0, inf)


def test_upper_bounds_solve_their_equation():
    """Oracle: brentq on kl(m, q) = c; and the ends."""
    for m, c in product((0.0, 1e-3, 0.1, 0.5, 0.9), (1e-6, 1e-3, 0.1, 1.0)):

        def excess(q, m=m, c=c):
            rest = m * log(m / q) if m else 0.0
            return rest + (1 - m) * log((1 - m) / (1 - q)) - c

        wanted = brentq(excess, m + 1e-15, 1 - 1e-15, xtol=1e-15)
        assert float(kl_upper(np.array(m), np.array(c))) == pytest.approx(wanted, abs=1e-10)
    ends = kl_upper(np.array([1.0, 0.3, 2.0, -1.0]), np.array([1.0, 0.0, 1.0, 0.0]))
    assert ends.tolist() == [1, 0.3, 1, 0]


def test_evidence_is_the_exponent_of_a_tail_bound():
    """Oracle: evidence is a bounded maximum by scipy, and bounds the tail of 400,000 noisy sums of
    coins (false alarm 1e-6); a private divergence is the least over a grid of z. A sign, a factor
    of the noise or one noise for all releases would show."""
    n, e, y, epsilon = 60.0, 3.0, 0.7, 0.5
    for x in (-0.2, 0.2, 0.6, 0.8):

        def exponent(v, x=x):
            gain = -v * n * x - n * log(1 - y + y * np.exp(-v))
            return -(gain + e * np.log(1 - (v / epsilon) ** 2))

        wanted = -minimize_scalar(exponent, bounds=(0, epsilon), options={"xatol": 1e-10}).fun
        found = float(evidence(*map(np.array, (x, y, n, e)), epsilon))
        assert found == pytest.approx(max(wanted, 0), abs=1e-6) if x < y else found == 0
    without = evidence(np.array(0.2), np.array(y), np.array(n), np.array(e), inf)
    kl = 0.2 * log(0.2 / y) + 0.8 * log(0.8 / (1 - y))
    assert float(without) == pytest.approx(n * kl)
    sure = evidence(np.array(0.5), np.array(1.0), np.array(n), np.array(e), 100.0)
    assert float(sure) == pytest.approx(n * 40 / 2 + e * log(0.84), rel=1e-5)  # v is at most 40
    rng = np.random.default_rng(3)
    sums = rng.binomial(60, y, 400_000) + rng.laplace(scale=2, size=(3, 400_000)).sum(axis=0)
    for x in (0.45, 0.55):
        share, bound = (sums <= n * x).mean(), np.exp(-evidence(*map(np.array, (x, y, n, e)), 0.5))
        assert 0 < share <= bound + 5 * (bound / 400_000) ** 0.5
    z = np.linspace(0.2, y, 20_001)
    grid = epsilon * (z - 0.2) + z * np.log(z / y) + (1 - z) * np.log((1 - z) / (1 - y))
    found = private_divergence(np.array(0.2), np.array(y), epsilon)
    assert float(found) == pytest.approx(grid.min(), abs=1e-7)


def test_races_by_hand():
    """Golden: after first batches of both arms, means .25 and .5, the rules are written out for
    `race-imed`, which plays its leader while the other has more than half of its rounds, and for
    the two of NeurIPS 2025."""
    two = np.array([0])
    spec = replace(SPEC, horizon=10**6)

    def begun(config, n):
        agent = config.make(spec, Streams([0]))
        assert agent.length.tolist() == [max(1, np.ceil(agent.first / config.epsilon))]
        agent.n, agent.e = np.array([n]), np.array([[1.0, 2.0]])
        agent.t = int(agent.n.sum())
        return agent.contest(np.array([[0.25, 0.5]]), two)

    arm, growth = begun(RaceIMED(), [60.0, 100.0])
    assert (arm.item(), growth.item()) == (1, 3)
    E = evidence(*map(np.array, (0.25, 0.5, 40.0, 1.0)), 1.0)
    assert E + log(40) < log(10**6) - 2.5
    arm, growth = begun(RaceIMED(), [40.0, 100.0])
    assert (arm.item(), growth.item()) == (0, pytest.approx(min((log(25_000) - 2.5) / E, 3)))
    arm, growth = begun(RaceIMED(anytime=True), [40.0, 100.0])
    assert (arm.item(), growth.item()) == (0 if E + log(40) < log(100) else 1, 3)
    d = float(private_divergence(np.array(0.25), np.array(0.5), 1.0))
    for n in ([40.0, 100.0], [8.0, 100.0]):
        arm, growth = begun(DPIMED(), n)
        assert (arm.item(), growth.item()) == (int(n[0] * d + log(n[0]) > log(n[1])), 2)
    upper = [
        brentq(lambda y, m=m, n=n: n * private_divergence(m, y, 1.0) - log(108), m, 1 - 1e-9)
        for m, n in ((0.25, 8.0), (0.5, 100.0))
    ]
    arm, growth = begun(DPKLUCB(), [8.0, 100.0])
    assert (arm.item(), growth.item()) == (int(np.argmax(upper)), 1.5)


def test_tsallis_chances_are_the_minimum():
    """Property: at the least <w, L> - (4 / eta) sum sqrt(w), L_a - 2 / (eta sqrt(w_a)) is one
    number for all arms; for losses of all sizes and 300 arms."""
    losses = np.random.default_rng(0).exponential(size=(6, 300)) * 10.0 ** np.arange(6)[:, None]
    for eta in (2.0, 0.02):
        w = tsallis_chances(losses, np.full((6, 1), eta))
        np.testing.assert_allclose(w.sum(axis=1), 1)
        slopes = losses - 2 / (eta * np.sqrt(w))
        assert (np.ptp(slopes, axis=1) < 1e-6 * np.abs(slopes).max(axis=1)).all()


def test_allocations_by_hand():
    """Golden: K = 2 at epsilon = 2, first = 1, growth = 1/2. Turns for ceil(2 / 2) rounds, but 2;
    then batches of max(1, ceil(t / 2)); arm a is released where pending >= max(1/2, n_a / 2)."""
    agent = AllocationTS(epsilon=2.0, first=1.0, growth=0.5, draws=10).make(SPEC, Streams([0]))
    ends, ready = [], []
    for t in range(1, 13):
        if t <= 2:
            agent.act(ONE)
        before = agent.e.copy()
        agent.update(ONE, np.array([0 if t != 2 else 1]), np.ones(1))
        if (agent.e != before).any():
            ends.append(t)
            ready.append((agent.n[0].tolist(), agent.e[0].tolist()))
    assert ends == [2, 3, 5, 8, 12]
    # arm 0 is played but in round 2: pending 1, 2, 3, 4 against n / 2 = .5, 1, 2, 3.5
    assert ready == [([n, 1], [e, 1]) for n, e in ((1, 1), (2, 2), (4, 3), (7, 4), (11, 5))]
    assert agent.p.sum() == pytest.approx(1)


def test_draws_know_the_noise():
    """Statistical: scores have mean (s + 1) / nn and variance 1 / (4 nn) + 2 e / (epsilon nn)^2, or
    with Gaussian noise e / (mu nn)^2 in place of the second. On a price list q (1 - q) is in place
    of 1 / 4, times the margin squared. 100,000 draws; false alarm 1e-6."""
    for delta, spec, margins in ((1e-4, SPEC, ONE), (0.3, SPEC, ONE), (1e-4, PRICED, [1.0, 2.5])):
        agent = AllocationTS(epsilon=0.5, delta=delta, draws=100_000).make(spec, Streams([0]))
        agent.n, agent.s, agent.e = (np.array([x]) for x in ([98.0, 38.0], [49.0, 9.0], [3.0, 1.0]))
        d, nn = agent.scores_of(0) / margins, np.array([100.0, 40.0])
        noise = 2 * agent.e[0] / 0.25 if delta < 0.1 else agent.e[0] / agent.mu**2
        variance = (np.array([0.25, 0.1875]) if spec is PRICED else 0.25) / nn + noise / nn**2
        slack = 5 * variance.max() ** 0.5 / 300
        np.testing.assert_allclose(d.mean(axis=0), [0.5, 0.25], atol=slack)
        np.testing.assert_allclose(d.var(axis=0), variance, rtol=0.05)


def test_sums_of_prices_count_sales():
    """Golden, without noise: a sale adds 1 at either price, and no reward adds more. If margins
    vary by customer, dollars are summed, divided by the largest margin, 1.3."""
    spec = replace(PRICED, horizon=9)
    agent = AllocationTS(epsilon=inf, first=1.0, growth=0.1).make(spec, Streams([0]))
    for arm, reward in ((0, 1.0), (1, 2.5), (1, 0.0), (1, 7.0), (0, -1.0)):
        agent.act(ONE)
        agent.update(ONE, np.array([arm]), np.array([reward]))
    assert (agent.s.tolist(), agent.n.tolist()) == ([[1, 2]], [[2, 3]])
    costs = CostSpec.of((1.0, 1.5), (0.2, 0.8), feature=1, length=2**0.5, dim=2, horizon=9)
    agent = AllocationTS(epsilon=inf, first=1.0).make(costs, Streams([0]))
    for arm, reward in ((0, 0.65), (1, 1.3)):
        agent.act(np.ones((1, 2)))
        agent.update(np.ones((1, 2)), np.array([arm]), np.array([reward]))
    np.testing.assert_allclose(agent.s, [[0.5, 1]])


def test_indices_by_hand():
    """Golden, formulas written out: kl-ucb-sums with both widths and AdaP's two at t = 100."""
    b, lg = 2.0, log(100)
    for widths, w in (("practice", (3 * lg) ** 0.5 + lg / 2), ("proved", 8 * lg)):
        agent = KLUCBSums(epsilon=0.5, widths=widths).make(SPEC, Streams([0]))
        agent.t, agent.n, agent.e = 100, np.array([[400.0, 0.0]]), np.array([[3.0, 0.0]])
        agent.s = np.array([[100.0, 0.0]])
        wanted = kl_upper(np.array((100 + b * w) / 400), np.array(lg / 400))
        np.testing.assert_allclose(agent.index(np.array([0]))[0], [wanted, inf])
    m, N = np.array([[0.2]]), np.array([[64.0]])
    for kind in (AdaPKLUCB, AdaPUCB):
        agent = kind(epsilon=0.5).make(SPEC, Streams([0]))
        agent.t, extra = 100, 3.1 * lg / (0.5 * 64)
        wanted = 0.2 + (3.1 * lg / 128) ** 0.5 + extra
        if kind is AdaPKLUCB:
            wanted = kl_upper(np.array(0.2 + extra), np.array(3.1 * lg / 64))
        np.testing.assert_allclose(agent.index(m, N), wanted)


def test_episodes_double_and_epochs_eliminate():
    """Golden: without noise AdaP plays 1, 1 and then episodes of twice the arm's last; DP-SE at
    T = 6,000 plays R = ceil(32 ln(8 x 2 x 6000) / .25) + 1 = 1470 rounds of each, and then one."""
    adap = AdaPKLUCB(epsilon=inf).make(SPEC, Streams([0]))
    arms = []
    for _ in range(24):
        arms.append(int(adap.act(ONE)[0]))
        adap.update(ONE, np.array(arms[-1:]), np.ones(1))
    assert arms[:2] == [0, 1]
    lengths = [len(run) for run in "".join(map(str, arms[2:])).replace("01", "0 1").split()]
    assert sum(lengths) == 22
    assert (adap.N[0] == [2 ** int(log(n, 2)) for n in adap.N[0]]).all()
    assert adap.N.sum() >= 8
    assert float(np.ceil(32 * log(8 * 2 * 6000) / 0.25)) + 1 == 1470
    log_ = play(Arms(horizon=6000), DPSE(), [(0, r) for r in range(6)])
    np.testing.assert_allclose(log_.regret[-1], 0.2 * 1470)


PROGRAM = {"ats": (30, 2.9), "kl": (48, 2.9), "adap": (287, 33.4), "thompson": (11, 1.2)}
PROGRAM |= {"race": (18.4, 0.5), "dp-imed": (21, 0.4), "dp-klucb": (27, 0.5)}


@pytest.mark.parametrize("name", by_rota(PROGRAM, 4))
def test_regret_of_an_independent_program(name):
    """Reference (10 to 100 runs of the prototype, `two`, T = 20,000, epsilon 1), within 4 combined
    standard errors of 20 runs; UCB1 and uniform play are far off (asserted power)."""
    agents = {**OURS, "adap": AdaPKLUCB(), "thompson": Thompson()}
    agents |= {"dp-imed": DPIMED(), "dp-klucb": DPKLUCB()}
    found, (mean, se) = regret("Arms", {name: agents[name]}, 20_000, R=20), PROGRAM[name]
    combined = (found["se"][name] ** 2 + se**2) ** 0.5
    assert abs(found["mean"][name] - mean) < 4 * combined
    assert abs(found["mean"]["Uniform"] - mean) > 40 * combined


@in_turn(2)
def test_all_learn_where_they_play():
    """Instances where contexts are ignored; the experts instance by its vertices; where answers
    come 30 rounds late; where .9 and .1 change places after a quarter of the rounds.
    With more arms than rounds all play, and none is wrong about it."""
    private, exact = {"private": PrivateTsallis(epsilon=4.0)}, {"exact": TsallisINF()}
    for env, agents, share, T, kwargs in (
        ("TwoArms", OURS, 0.5, 1500, {}),
        ("ConvexBandit", OURS, 0.5, 4000, {"instance": "experts"}),
        ("ConvexBandit", private, 0.5, 4000, {"instance": "experts"}),
        ("Arms", OURS, 0.5, 1500, {"delay": 30}),
        ("Arms", private | exact, 0.5, 3000, {"means": [0.9, 0.1], "adversary": "switching"}),
    ):
        found = regret(env, agents, T, R=8, **kwargs)["mean"]
        assert (found[list(agents)] < share * found["Uniform"]).all(), (env, found)
    everybody = [*OURS.values(), DPSE(), AdaPKLUCB(), TreeUCB(), Thompson(), KLUCB()]
    assert (regret("Arms", everybody, 5, R=2, means=[0.5] * 9)["mean"] == 0).all()


def test_late_losses_have_the_chances_of_their_round():
    """Golden: in the first round each of two arms has chance 1/2, so that its loss of 1 counts as
    2, also when it is told two rounds later, after other chances."""
    agent = TsallisINF().make(replace(SPEC, delay=2), Streams([0]))
    arms = [agent.act(ONE) for _ in range(3)]
    agent.update(ONE, arms[0], np.zeros(1))
    assert agent.s.sum() == 2
    agent.act(ONE)
    assert agent.w.max() > 0.5
    agent.update(ONE, arms[1], np.zeros(1))
    assert agent.s.sum() == 4


def test_blocks_have_the_law_of_rounds():
    """Statistical: regret, reward and switches of 40 runs played in blocks against 40 played
    round by round, `steps` of 1,200 rounds with marks 200 apart; 5 standard errors each. A lone
    replica equals itself in company, exactly; totals are clipped as single values are."""
    marks = np.arange(200, 1201, 200)

    def played(agent, seeds, blocks):
        return play(Arms(means="steps", horizon=1200, blocks=blocks), agent, seeds, marks=marks)

    for agent in (AllocationTS(draws=100), KLUCBSums(), AdaPKLUCB(), RaceIMED()):
        one = played(agent, [(0, r) for r in range(40)], True)
        two = played(agent, [(1, r) for r in range(40)], False)
        for name in ("regret", "reward", "switches"):
            a, b = getattr(one, name)[[0, -1]], getattr(two, name)[[0, -1]]
            error = ((a.var(axis=1) + b.var(axis=1)) / 40) ** 0.5
            assert (np.abs(a.mean(axis=1) - b.mean(axis=1)) <= 5 * error + 1e-9).all(), name
        alone = played(agent, [(0, 3)], True)
        np.testing.assert_array_equal(alone.regret[:, 0], one.regret[:, 3])
        np.testing.assert_array_equal(alone.switches[:, 0], one.switches[:, 3])
    sums = CountedSums(Streams([0]), 3, low=0, high=1, epsilon=inf, uses=1)
    totals, counts = np.array([[np.nan, 9.0, -1.0]]), np.array([[2.0, 3.0, 4.0]])
    assert sums(totals, counts, counts > 0).tolist() == [[0, 3, 0]]


def test_a_batch_that_ends_by_an_exact_sum_is_caught():
    """Caught by the replay, which sees when it releases; a forgotten clip by the sensitivity. An
    epoch of DP-SE has 20 rounds here, as none ends in 24. No noise, no promise."""
    assert certify(AllocationTS(epsilon=inf), SPEC, accountants=False).epsilon == inf
    with pytest.raises(AssertionError, match="to enter CountedSums in no other round"):
        check_joint_dp(EndsByAnExactSum(), SPEC, (0, 5))
    with pytest.raises(AssertionError, match="sensitivity"):
        check_joint_dp(Unclipped(), SPEC, (0, 5))
    moved, tape = check_joint_dp(Short(), replace(SPEC, horizon=60), (5, 30), replicas=8)
    assert moved <= 1 + 1e-12
    assert sum(release is not None for release in tape.releases) >= 1


@pytest.mark.parametrize("config", [KLUCBSums(first=1.0), TreeUCB()], ids=["counts", "trees"])
def test_audits_with_power(config):
    """Audit sums that counts release, and trees: 2,000 runs against the promise, and 4,000 of a
    twin with half of the noise. The others feed the same two mechanisms."""
    spec = replace(SPEC, horizon=6)
    assert not audit(config, spec, runs=2000, failure=1e-3, progress=False).flagged
    assert audit(HalfTheLaplace(config=config), spec, runs=4000, progress=False).flagged


def test_what_an_auditor_sees_of_a_run_does_not_depend_on_its_company():
    """Runs release at different times where counts decide when sums are released: a column that
    moved with the releases of others would make scores of runs depend on each other."""
    pair = next(iter(users_of(SPEC).extreme_pairs(np.random.default_rng(7))))
    seeds = [(5, run) for run in range(6)]
    for config in (KLUCBSums(first=1.0), AdaPKLUCB()):
        ends = public_ends(config, SPEC, pair, 0)
        parts = [seeds, *([seed] for seed in seeds)]
        seen = [columns_of(config, SPEC, pair, some, "released", ends)[0] for some in parts]
        together, *alone = (columns.values for columns in seen)
        np.testing.assert_array_equal(together, np.concatenate(alone))
    problem = Arms(horizon=300, delay=30)  # a lone replica's batches end when others' do
    together, alone = (play(problem, PrivateTsallis(), seeds) for seeds in ([1, 2, 3], [3]))
    np.testing.assert_array_equal(together.reward[:, 2], alone.reward[:, 0])


@each(
    ("call", "named"), [
        (lambda: AllocationTS(epsilon=0), "epsilon"), (lambda: AllocationTS(growth=0), "growth"),
        (lambda: AllocationTS(delta=1), "delta"), (lambda: AllocationTS(draws=10**10), "draws"),
        (lambda: KLUCBSums(widths="wide"), "widths"), (lambda: AdaPKLUCB(alpha=-1), "alpha"),
        (
            lambda: KLUCB().make(ConvexSpec(loss=Linear(Ball(2)), horizon=9), Streams([0])),
            "simplex",
        ),
    ],
)  # fmt: skip
def test_bad_settings(call, named):
    refused(named, call)
