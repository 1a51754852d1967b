"""Table 5.1: what an agent releases after n users, and how that is judged."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from dpbandit import InputError
from dpbandit.agents import DPTOFW, BestFixed, LeastSquares
from dpbandit.experiments.releases import release, stream_problem
from dpbandit.experiments.sgd.printed import Setting
from dpbandit.experiments.sgd.questions import on
from dpbandit.privacy.accounting.ledger import no_data
from dpbandit.privacy.sums.prefix_sums import leaves
from dpbandit.studies import play_all

SMALL = Setting(1.5, 5, 1000)
STREAM = ("dpbandit/StreamingRegression-v0", {"p": 1.5, "dim": 5})


@dataclass(frozen=True, kw_only=True)
class Counting:
    """Plays the centre; counts what it was told of."""

    refit: str = "doubling"
    seen: list = field(default_factory=list)

    def make(self, spec, streams):
        """A running agent."""
        agent = LeastSquares().make(spec, streams)
        learn = agent.update

        def update(*arguments):
            self.seen.append(spec.horizon)
            learn(*arguments)

        agent.update = update
        return agent


@pytest.mark.parametrize(("refit", "horizon"), [("doubling", 31), ("once", 30)])
def test_a_release_is_made_by_n_users(refit, horizon):
    """30 users; the horizon is 31, so that of the prefix sums 30 leaves count, or 30 for agents
    that release when all is over."""
    config = Counting(refit=refit)
    problem = stream_problem(*STREAM, config, users=30)
    found = release(problem, config, [0, 1], users=30)
    assert config.seen == [horizon] * 30
    assert leaves(31, 1) == 30
    assert found.suboptimality.shape == found.risk.shape == (2,)


def test_suboptimality_and_risk_are_those_of_the_released_point():
    """Oracle: an exact learner without noise of answers has 0; the centre has 1 and the risk
    E y^2 = s |theta*|^2 + noise^2."""
    exact = stream_problem(STREAM[0], {**STREAM[1], "noise": 0.0}, LeastSquares(), users=40)
    found = release(exact, LeastSquares(growth=1.001), [0, 1], users=40)
    np.testing.assert_allclose(found.suboptimality, 0, atol=1e-9)
    still = Counting(refit="once")
    object.__setattr__(still, "make", lambda spec, streams: _Still(spec.loss.domain, len(streams)))
    problem = stream_problem(*STREAM, still, users=3)
    at_rest = release(problem, still, [0, 1], users=3)
    assert (at_rest.suboptimality == 1).all()
    np.testing.assert_allclose(at_rest.risk, problem.risk(np.zeros((2, 5))))


class _Still:
    def __init__(self, domain, replicas):
        self.point = np.tile(domain.centre, (replicas, 1))
        self.ledger = no_data()

    def act(self, context):
        return self.point

    def update(self, *arguments):
        pass


def test_what_is_no_stream_is_refused():
    with pytest.raises(InputError, match="stream of users"):
        stream_problem("OnlineConvex", {}, DPTOFW(), users=10)
    with pytest.raises(InputError, match="users=0"):
        stream_problem(*STREAM, DPTOFW(), users=0)
    with pytest.raises(InputError, match="answer"):
        release(stream_problem(*STREAM, DPTOFW(), users=10), BestFixed(), [0], users=10)


def test_replicas_do_not_depend_on_who_runs_beside_them(monkeypatch):
    one = on(SMALL._replace(users=40), "a", DPTOFW(delta=1e-3), seed=1)
    together = play_all(one, 3, progress=False)
    monkeypatch.setattr("dpbandit.studies.run.replicas_at_once", lambda spec: 2)
    apart = play_all(one, 3, progress=False)
    for what in ("suboptimality", "risk"):
        np.testing.assert_array_equal(together.measures[what], apart.measures[what])
    assert together.certificate.epsilon == apart.certificate.epsilon == pytest.approx(1)
