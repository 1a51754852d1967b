"""Training curves: their ends are what is released, and NoisySGD stopped is NoisySGD on its way."""

import json

import numpy as np
import pytest

from dpbandit import InputError
from dpbandit.agents import DPTOFW, NoisySFW, NoisySGD
from dpbandit.base.random_streams import Streams
from dpbandit.domains import LpBall
from dpbandit.experiments.paper_tables import TABLES
from dpbandit.experiments.releases import CurveConfiguration, looks, seconds, suboptimality
from dpbandit.experiments.sgd import __main__ as figures, on, printed
from dpbandit.experiments.sgd.printed import Setting, StoppedSGD
from dpbandit.losses import LinearRegression
from dpbandit.specs.convex import StreamSpec
from dpbandit.studies import play_all

SMALL = Setting(1.5, 5, 40)


def curve(config):
    """Three replicas on a small problem."""
    one = on(SMALL, "a", config, seed=2)
    run = play_all(CurveConfiguration(one.setup, one.name, config), 3, progress=False)
    return run, play_all(one, 3, progress=False)


def test_a_curve_ends_at_the_release():
    """Oracle: the point that `release` judges after all users, replicas played together there and
    alone here; the baseline is that of the origin, F(0) - F(theta*) = s |theta*|^2."""
    run, released = curve(DPTOFW(delta=1e-3))
    ratio = released.measures["excess"] / suboptimality(run)[-1]
    np.testing.assert_allclose(ratio, ratio[0])
    np.testing.assert_array_equal(run.regret[-1], released.regret[-1])
    times = np.array(seconds(run))
    assert times.shape == (len(looks(40)), 3)
    assert (np.diff(times, axis=0) > 0).all()


def test_noisy_sfw_stands_still_for_half_of_the_users():
    run, _ = curve(NoisySFW(delta=1e-3))
    values = dict(zip(looks(40).tolist(), suboptimality(run), strict=True))
    assert all((value == 1).all() == (t < 20) for t, value in values.items())


def test_a_stopped_noisy_sgd_is_on_the_way():
    """Stopped at the last step it is NoisySGD, exactly; before, noise and step are the same."""
    how = {"delta": 1e-3, "steps": 80, "refit": "once"}
    whole, last = (
        play_all(on(SMALL, "a", config, seed=0), 2, progress=False).measures["excess"]
        for config in (NoisySGD(**how), StoppedSGD(**how, made=80))
    )
    np.testing.assert_array_equal(whole, last)
    spec = StreamSpec(loss=LinearRegression(LpBall(5, 1.5, 2.0)), horizon=40)
    (full,), (half,) = (
        config.make(spec, Streams([0])).blocks
        for config in (NoisySGD(**how), StoppedSGD(**how, made=40))
    )
    assert (half.steps, half.sigma, half.eta) == (40, full.sigma, full.eta)


@pytest.mark.parametrize(("name", "curves"), [("sgd/figure-5-2", 11), ("sgd/figure-5-3", 4)])
def test_the_figures_are_drawn(name, curves, tmp_path, monkeypatch):
    """At 20 users, of two scales; Figure 5.3 has the best of each agent at both of its sizes."""
    for place in (printed, figures):
        few = {p: scales[-2:] for p, scales in printed.FRANK_WOLFE_SCALES.items()}
        monkeypatch.setattr(place, "FRANK_WOLFE_SCALES", few)
        monkeypatch.setattr(place, "BATCH_SCALES", printed.BATCH_SCALES[-2:])
    made = TABLES[name].run("certified", "T=20", replicas=2, seed=0, out=tmp_path)
    assert made.tables[0].row_count == curves
    assert {path.suffix for path in made.files} == {".csv", ".png"}
    assert json.dumps(made.records)
    assert all(0.99 < r["certified_epsilon"] <= 1 for r in made.records if r["after"] >= 20)
    with pytest.raises(InputError, match="rows to be all, or T=200"):
        TABLES[name].run("certified", "none", replicas=2, seed=0, out=tmp_path)
