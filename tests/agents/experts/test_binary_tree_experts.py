"""Binary tree experts: published regrets, the certified plan, phases that end, edges."""

from math import inf

import numpy as np
import pytest

from dpbandit import certify
from dpbandit.agents import BinaryTreeExperts
from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.envs.experts.advice import Experts
from dpbandit.privacy.accounting.zcdp import epsilon_of, loose_rho
from dpbandit.specs.experts import ExpertsSpec
from tests.agents.experts.test_sparse_vector_experts import play

TABLE = """
1 16 317.3 12.3 285.2
1 256 385.3 5.9 331.2
1 4096 475.2 5.8 353.1
10 16 173.8 14.8 137.5
10 256 185.0 13.8 165.2
10 4096 215.0 13.0 188.5
"""
"""epsilon, d; mean regret of 100 runs of 1,000 rounds, its standard error, mean switches."""


def same_rho(epsilon):
    """What CKS certifies of the rho that BS turns into (epsilon, 1e-6), as in the tables."""
    return epsilon_of(loose_rho(epsilon, 1e-6), 1e-6)


@pytest.mark.parametrize("row", TABLE.strip().split("\n"))
def test_published_regret(row):
    """Statistical: an independent program's runs on one sequence of coins, B = 4 and tau = 2 sigma
    sqrt(log2 T), within 4 combined standard errors. Uniform play loses 466 to 500."""
    epsilon, d, mean, error, _ = (float(x) for x in row.split())
    config = BinaryTreeExperts(epsilon=same_rho(epsilon), parameters="small")
    problem = Experts(n_actions=int(d), horizon=1000, shared_table=True)
    regret, _ = play(problem, config.make, 100)
    assert abs(regret.mean() - mean) <= 4 * np.hypot(error, regret.std() / 10)


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "mean", "error"), [(1, 3655.6, 98.5), (10, 3608.6, 136.8)])
def test_published_regret_of_ten_thousand_rounds(epsilon, mean, error):
    """Statistical: as above, d = 16: little better than uniform play, 4,696."""
    config = BinaryTreeExperts(epsilon=same_rho(epsilon), parameters="small")
    regret, _ = play(Experts(n_actions=16, horizon=10_000, shared_table=True), config.make, 100)
    assert abs(regret.mean() - mean) <= 4 * np.hypot(error, regret.std() / 10)


def test_certified_plan():
    """Golden: d = 256, T = 1e4, c = 4, beta = 1e-4. a = -ln(1 - (1 - e^-2) / 2) = 0.5663, N =
    ceil(5.545 / a) + 1 = 11, B = ceil(log2(44e4)) = 19; h = 14, picks = 190; sigma =
    sqrt(B h / rho) = 123.4 and eta = sqrt(4 rho / 190) at rho = 0.017469; err = sigma sqrt(28
    ln(2 T B N / beta)) = 3229; N B (c/eta + 2 err + 1) = 1.39e6."""
    spec = ExpertsSpec(n_actions=256, horizon=10_000)
    plan = BinaryTreeExperts(epsilon=same_rho(1)).plan(spec)
    assert (plan.phases, plan.size, plan.picks) == (11, 19, 190)
    assert plan.scale == pytest.approx(123.4, rel=1e-3)
    assert plan.eta == pytest.approx(0.019177, rel=1e-3)
    assert plan.bound == pytest.approx(1.3936e6, rel=1e-3)
    assert plan.threshold == pytest.approx(4 / plan.eta + 3229, rel=1e-3)


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("d", [3, 40])
def test_what_it_costs(noise, d):
    """Picks and trees add up to the target; where one set holds everybody there are no picks."""
    spec = ExpertsSpec(n_actions=d, horizon=500)
    proof = certify(BinaryTreeExperts(noise=noise, size=4), spec)
    assert proof.holds
    assert len(proof.ledger.spends) == (1 if d == 3 else 2)
    if d == 40:
        assert proof.mu is None
        name = "zCDP (CKS)" if noise == "gaussian" else "pure"
        assert proof.accountants[name] == pytest.approx(1)
    assert certify(BinaryTreeExperts(noise="laplace", delta=1e-5), spec).holds


def test_sets_are_followed_until_nobody_is_left():
    """Golden: without noise, everybody loses 1 each round, tau = 2: sets of 2 of 5 experts last 3
    rounds, their leader alternates; then the last one alone, for ever. Nobody comes back."""
    config = BinaryTreeExperts(epsilon=inf, size=2, threshold=2.0, phases=5, delta=0.0)
    agent = config.make(ExpertsSpec(n_actions=5, horizon=30), Streams(range(20)))
    played = []
    for _ in range(30):
        played.append(agent.act(None))
        agent.update(None, played[-1], np.ones((20, 5)))
    played = np.array(played)
    sets = [set(played[:, r][first:last]) for r in range(20) for first, last in ((0, 3), (3, 6))]
    assert all(len(s) <= 2 for s in sets)
    assert (played[6:] == played[6]).all()
    for r in range(20):
        assert not set(played[:3, r]) & set(played[3:, r])
        assert not set(played[3:6, r]) & set(played[6:, r])


def test_last_phase_lasts():
    """Golden: N = 1: the first set stays however much it loses."""
    config = BinaryTreeExperts(epsilon=inf, size=2, threshold=1.0, phases=1, delta=0.0)
    regret, agent = play(Experts(n_actions=8, horizon=200), config.make, 50)
    assert set(np.round(regret.astype(float), 6) > 50) == {True, False}
    assert (agent._phase == 0).all()


@pytest.mark.parametrize("config", [BinaryTreeExperts(), BinaryTreeExperts(parameters="small")])
@pytest.mark.parametrize("d", [1, 2, 5, 70])
@pytest.mark.parametrize("T", [1, 2, 30])
def test_edges(config, d, T):
    """One expert, fewer than B; one round; all lose nothing, everything, no numbers."""
    for loss in (0.0, 1.0, np.nan):
        agent = config.make(ExpertsSpec(n_actions=d, horizon=T), Streams(range(4)))
        for _ in range(T):
            action = agent.act(None)
            assert ((action >= 0) & (action < d)).all()
            agent.update(None, action, np.full((4, d), loss))


@pytest.mark.parametrize(
    "settings",
    [{"size": 0}, {"phases": 0}, {"threshold": -1.0}, {"c": 0.0}, {"beta": 1.0}, {"delta": 0.0}],
)
def test_bad_settings(settings):
    with pytest.raises(InputError, match=next(iter(settings))):
        BinaryTreeExperts(**settings)
