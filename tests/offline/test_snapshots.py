"""Snapshots, recorded logs and several agents on one: estimates meet the truth."""

import numpy as np
import pandas as pd
import pytest

from dpbandit import InputError
from dpbandit.agents import DPUCB, FADE, LinTS, LinUCB, Uniform
from dpbandit.base.random_streams import Streams
from dpbandit.clients import read_log, record
from dpbandit.offline import LoggedLists, LoggedPrices, evaluate, replay, snapshot
from tests.each import each

SMALL = {"n_actions": 3, "dim": 2}


def taught(config, log):
    """An agent that was told a log."""
    agent = config.make(log.spec, Streams([0]))
    for i in range(len(log.action)):
        rows = slice(i, i + 1)
        agent.update(log.context[rows], log.action[rows], log.reward[rows])
    return agent


def test_a_snapshot_is_what_the_agent_would_play():
    """Row by row, again and again the same, while the agent goes on; shares of draws sum to 1."""
    log = record("GLMBandit", horizon=300, env_kwargs=SMALL)
    agent = taught(LinUCB(), log)
    policy = snapshot(agent, log.spec)
    law = policy.probabilities(log.context)
    arms = [agent.act(log.context[i : i + 1])[0] for i in range(300)]
    np.testing.assert_array_equal(law, np.eye(3)[arms])
    agent.update(log.context[:1], log.action[:1], np.full(1, -1e3))
    np.testing.assert_array_equal(law, policy.probabilities(log.context))
    drawn = snapshot(taught(LinTS(), log), log.spec, draws=20).probabilities(log.context)
    assert ((drawn > 0) & (drawn < 1)).any()
    np.testing.assert_allclose(drawn.sum(axis=1), 1.0)


def test_you_would_have_known():
    """What a snapshot, trained on other users, earns on the same environment, by the problem's own
    means, lies in the interval that a log of an exploring agent gives; false alarm about 5e-5
    (betting at level .9999). Propensities that are off by a factor show as 'propensities wrong'."""
    train = record("GLMBandit", horizon=1000, seed=1, env_kwargs={**SMALL, "world_seed": 3})
    policy = snapshot(taught(LinUCB(), train), train.spec)
    log = record(
        "GLMBandit",
        horizon=3000,
        seed=2,
        agent="linucb",
        explore=0.3,
        env_kwargs={**SMALL, "world_seed": 3},
    )
    found = evaluate(policy, log, ("ips",), intervals="betting", level=0.9999).iloc[0]
    fresh = record("GLMBandit", horizon=20_000, seed=4, env_kwargs={**SMALL, "world_seed": 3})
    arms = policy.probabilities(fresh.context).argmax(axis=1)
    truth = fresh.reward[arms == fresh.action].mean()  # of uniform play: unbiased
    assert found.low < truth < found.high
    assert found.high - found.low < 0.5


def test_recorded_logs_have_true_propensities():
    """Of an agent that explores, of prices and of lists; a table of it is read back the same."""
    log = record("OJPricing", horizon=400, agent=LinUCB(), explore=0.5)
    assert log.adaptive
    np.testing.assert_allclose(log.probabilities.sum(axis=1), 1)
    assert (log.propensity == log.probabilities[np.arange(400), log.action]).all()
    often = (log.probabilities.argmax(axis=1) == log.action).mean()
    assert abs(often - (0.5 + 0.5 / 12)) < 4 * (0.25 / 400) ** 0.5
    prices = record("OJContinuousPricing", horizon=50)
    assert isinstance(prices, LoggedPrices)
    assert prices.density[0] == pytest.approx(1 / 1.1)
    lists = record("ListRecommendation", horizon=50, env_kwargs={"n_items": 10, "length": 2})
    assert isinstance(lists, LoggedLists)
    assert lists.prefix[0].tolist() == pytest.approx([1 / 10, 1 / 90])


def test_several_agents_on_one_log():
    """Each as alone; differences are paired: an agent and itself differ by 0, exactly known."""
    log = record("GLMBandit", horizon=600, env_kwargs=SMALL)
    agents = {"LinUCB": LinUCB(), "again": LinUCB(), "DP-UCB": DPUCB(), "random": Uniform()}
    found = replay(agents, log, passes=2)
    alone = replay(DPUCB(), log, passes=2)
    assert (found["DP-UCB"].mean, found["DP-UCB"].interval) == (alone.mean, alone.interval)
    table = found.table().set_index("agent")
    assert isinstance(table, pd.DataFrame)
    assert table.loc["again", ["difference", "difference_low", "difference_high"]].eq(0).all()
    row = table.loc["random"]
    assert row.difference_low < row.difference < row.difference_high
    assert table.epsilon.round(6).tolist() == [np.inf, np.inf, 1.0, 0.0]
    assert "DP-UCB" in repr(found)


@each(
    ("asked", "words"),
    [
        (lambda log: snapshot(FADE()), "running agent"),
        (lambda log: snapshot(3), "running agent"),
        (lambda log: snapshot(taught(FADE(), log)), "spec="),
        (lambda log: snapshot(LinUCB().make(log.spec, Streams([0, 1])), log.spec), "one replica"),
        (lambda log: snapshot(taught(LinUCB(), log), log.spec, draws=0), "draws=0"),
        (lambda log: snapshot(taught(LinUCB(), log), log.spec).prices(log.context), "prices"),
        (
            lambda log: snapshot(taught(LinUCB(), log), record("OJPricing", horizon=1).spec),
            "made for",
        ),
        (
            lambda log: snapshot(taught(LinUCB(), log), log.spec).probabilities(np.ones((9, 5))),
            r"contexts of shape \(9, 2\)",
        ),
        (lambda log: record("OJPricing", horizon=3, env_kwargs="drift"), "env_kwargs='drift'"),
        (lambda log: replay({}, log), "at least one agent"),
        (lambda log: replay("linucb", log), "to be a config"),
        (lambda log: replay({"a": LinUCB}, log), "to be a config"),
        (lambda log: record("OJPricing", horizon=3, agent="linucb", explore=0), "explore=0"),
        (lambda log: record("OJPricing", horizon=3, agent="best-fixed"), "hindsight"),
        (lambda log: record("AssortmentBandit", horizon=3), "arms, prices or lists"),
    ],
)
def test_mistakes_get_one_sentence(asked, words):
    with pytest.raises(InputError, match=words):
        asked(record("GLMBandit", horizon=40, env_kwargs=SMALL))


def test_a_log_travels_as_a_table(tmp_path):
    """Through a file and back, all that estimates rest on."""
    log = record("GLMBandit", horizon=60, agent="linucb", explore=0.5, env_kwargs=SMALL)
    log.to_frame().to_csv(tmp_path / "log.csv", index=False)
    back = read_log(
        tmp_path / "log.csv",
        action="action",
        reward="reward",
        propensity="propensity",
        probabilities=["p0", "p1", "p2"],
        context=["x0", "x1"],
        context_bound=1.0,
        arms=range(3),
        reward_range=(log.spec.reward_low, log.spec.reward_high),
        adaptive=True,
    )
    for name in ("context", "action", "reward", "propensity", "probabilities"):
        np.testing.assert_allclose(getattr(back, name), getattr(log, name), rtol=1e-12)


def test_rows_of_a_log_are_a_log():
    """Half of it, with its own propensities."""
    log = record("GLMBandit", horizon=60, agent="linucb", explore=0.5, env_kwargs=SMALL)
    half = log[30:]
    np.testing.assert_array_equal(half.probabilities, log.probabilities[30:])
    assert (len(half.action), half.adaptive, half.lowest) == (30, True, log.lowest)
