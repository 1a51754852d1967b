"""The error of DP-HDB's parameters: by hand, and without a trace in the run it is taken from."""

import numpy as np
import pytest

from dpbandit import InputError
from dpbandit.agents import OnlineFrankWolfe, Uniform
from dpbandit.experiments import CASES
from dpbandit.experiments.estimation import EstimateConfiguration, errors, places, selected
from dpbandit.experiments.paper_tables import TABLES
from dpbandit.experiments.releases import Watched
from dpbandit.running.loop import play
from dpbandit.studies import Configuration, play_all, setup_of

P1 = CASES["contextual/p1"]


def one(kind, config, horizon=640):
    """A run on `contextual/p1`."""
    setup = setup_of("GLMBandit", P1.env_kwargs, horizon=horizon, label="p1")
    return kind(setup, "a", config)


def test_errors_by_hand():
    """Oracle: the same play to the end, its parameters against those of the problem; regret is what
    it is without anybody looking."""
    config = OnlineFrankWolfe(warm_up=50, radius=1.0)
    looked = play_all(one(EstimateConfiguration, config), 3, progress=False)
    plain = one(Configuration, config)
    np.testing.assert_array_equal(looked.regret, play_all(plain, 3, progress=False).regret)
    seen, problem = Watched(config), plain.problem()
    play(problem, seen, [(0, r) for r in range(3)], marks=np.array([640]))
    true, theta = problem.true_parameters, seen.agents[0].theta
    share = np.abs(theta - true).sum(2) ** 2 / np.abs(true).sum(2) ** 2
    np.testing.assert_allclose(errors(looked)[-1], share.mean(axis=1))
    assert len(errors(looked)) == len(places(640)) == 7


def test_what_does_not_estimate_is_refused():
    with pytest.raises(InputError, match="estimates by Frank-Wolfe"):
        one(EstimateConfiguration, Uniform()).play(0, 1)
    for text in ("none", "cauchy", "T=", "T=639"):
        with pytest.raises(InputError, match=r"Expected (rows to be links|T=639)"):
            selected(text)


def test_the_command_measures_and_draws(tmp_path):
    """All links without privacy at a small size: the error falls where something is learned."""
    table = TABLES["contextual/theorem-4-2"]
    made = table.run("public", "T=1280", replicas=3, seed=0, out=tmp_path)
    assert [record["link"] for record in made.records] == ["identity", "logistic", "probit"]
    assert all(record["exponent"] < -0.3 for record in made.records)
