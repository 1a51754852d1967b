"""Tables of rates, training curves to what is released, and errors of estimated parameters."""

import json
from math import log

import numpy as np
import pytest

from dpbandit import InputError, play
from dpbandit.agents import DPTOFW, NoisySFW, NoisySGD, OnlineFrankWolfe, Uniform
from dpbandit.base import Streams
from dpbandit.domains import LpBall
from dpbandit.experiments import CASES
from dpbandit.experiments.estimation import EstimateConfiguration, errors, places
from dpbandit.experiments.paper_tables import TABLES, Request
from dpbandit.experiments.rates import Point, draw, measure, report, tables
from dpbandit.experiments.releases import CurveConfiguration, ReleaseConfiguration, curve, looks
from dpbandit.experiments.sgd import STUDY, Setting, setup_of_regression
from dpbandit.experiments.sgd.all_steps import Problem, curves, descend, noise_of, step_of
from dpbandit.experiments.sgd.printed import StoppedSGD
from dpbandit.losses import LinearRegression
from dpbandit.results.runs import standard_error
from dpbandit.specs import StreamSpec
from dpbandit.studies import AgentRecorder, Configuration, play_all, setup_of
from tests.each import by_rota, in_turn, refused

TABLES_OF_RATES = {name: rows for name, (rows, _) in tables().items()}
CONVEX_1, CONVEX_RUN = TABLES_OF_RATES["convex/table-1"], TABLES["convex/table-1"].run
FAR = {
    "T": (Point(2**400, 8), Point(2**500, 8)),
    "d": (Point(2**300, 2**140), Point(2**300, 2**240)),  # many users for each coordinate
    "epsilon": (Point(2**20, 8, 2.0**-90), Point(2**20, 8, 2.0**-80)),
}
"""Where the largest term of a bound is alone."""


def test_a_printed_exponent_is_that_of_its_bound():
    """Golden, by another way: log of the bound far out, where logarithms add at most 0.02. A row
    whose formula, or whose exponent, was copied wrongly fails."""
    for name, rates in TABLES_OF_RATES.items():
        assert [rate.number for rate in rates] == [*range(1, len(rates) + 1)]
        assert f"from 1 to {len(rates)} " in TABLES[name].rows
        for rate in rates:
            assert bool(rate.problem) == bool(rate.agent)
            assert rate.exponents
            for axis, exponent in rate.exponents.items():
                near, far = FAR[axis]
                growth = log(rate.value_at(far) / rate.value_at(near))
                place = {"T": 0, "d": 1, "epsilon": 2}[axis]
                slope = growth / log(far[place] / near[place])
                assert slope == pytest.approx(exponent, abs=0.02), (rate.source, axis)


@in_turn(1)
def test_the_study_fits_and_draws(tmp_path):
    """Two rows at a small size; the bound of row 3 has the exponent (T/16 to T, T = 128) that
    logarithms of T lend it."""
    rates = [CONVEX_1[2], CONVEX_1[4]]
    assert json.dumps(
        CONVEX_RUN("public", "1,T=64", replicas=2, seed=0, out=tmp_path / "one").records
    )
    readings = ("certified", "public")
    how = {"name": "rates", "rows": "", "saved": True, "drawn": True, "replicas": 3, "seed": 1}
    asked = Request(readings=readings, out=tmp_path, **how)
    entries = measure(asked, rates, 128, progress=False)
    assert [(e.rate.number, e.axis, e.reading) for e in entries] == [
        *((3, axis, reading) for axis in ("T", "d") for reading in readings),
        (3, "epsilon", "certified"),
        *((5, "T", reading) for reading in readings),
    ]
    private, public = (e.record() for e in entries[:2])
    assert private["mean_at_the_last"] > 10 * public["mean_at_the_last"] > 0
    assert private["certified_epsilon_at_the_last"] == pytest.approx(1)
    x = np.log([32, 64, 128])
    by_hand = np.polyfit(x, 2.5 * np.log(x), 1)[0]
    assert entries[0].bound_exponent == pytest.approx(by_hand)
    assert entries[0].places == [8, 16, 32, 64, 128]
    draw(entries, tmp_path / "rates.png")
    assert (tmp_path / "rates.png").read_bytes()[:4] == b"\x89PNG"
    printed, exponents = report(rates, entries)
    assert (printed.row_count, exponents.row_count) == (2, 7)
    for text in ["", "0", "7", "1-", "3-1", "²", "T=²", "one", "T=63", "1-999"]:
        wrong = r"Expected (rows to be numbers from 1 to 6|T=63)"
        refused(wrong, CONVEX_RUN, "public", text, replicas=2, seed=0, out=None)


@pytest.mark.parametrize("name", by_rota(TABLES_OF_RATES, 3, slow=False))
def test_every_row_is_played(name):
    """The agents of each row play its problem at the first point of every axis."""
    rates = [rate for rate in TABLES_OF_RATES[name] if rate.agent]
    for rate in rates:
        for reading in rate.readings:
            for axis in rate.exponents:
                one = rate.configuration(reading, rate.points(axis, 64)[0], seed=0)
                run = one.play(0, 2)
                assert rate.measured(run).shape == (2,)
    assert len(rates) > 1


SMALL = Setting(1.5, 5, 40)


def played(kind, config, replicas, seed=2):
    """Replicas on a small problem."""
    one = kind(setup_of_regression(SMALL, seed=seed), "a", config)
    return play_all(one, replicas, progress=False)


def test_a_curve_ends_at_the_release():
    """Oracle: the point that `release` judges after all users, replicas played together there and
    alone here; the baseline is that of the origin. NoisySFW stands still for half of the users."""
    config = DPTOFW(delta=1e-3)
    run, released = (played(kind, config, 3) for kind in (CurveConfiguration, ReleaseConfiguration))
    ratio = released.measures["excess"] / curve(run, "suboptimality")[-1]
    np.testing.assert_allclose(ratio, ratio[0])
    np.testing.assert_array_equal(run.regret[-1], released.regret[-1])
    times = np.array(curve(run, "seconds"))
    assert times.shape == (len(looks(40)), 3)
    assert (np.diff(times, axis=0) > 0).all()
    run = played(CurveConfiguration, NoisySFW(delta=1e-3), 3)
    values = dict(zip(looks(40).tolist(), curve(run, "suboptimality"), strict=True))
    assert all((value == 1).all() == (t < 20) for t, value in values.items())


def test_a_stopped_noisy_sgd_is_on_the_way():
    """Stopped at the last step it is NoisySGD, exactly; before, noise and step are the same."""
    how = {"delta": 1e-3, "steps": 80, "refit": "once"}
    whole, last = (
        played(ReleaseConfiguration, config, 2, seed=0).measures["excess"]
        for config in (NoisySGD(**how), StoppedSGD(**how, made=80))
    )
    np.testing.assert_array_equal(whole, last)
    spec = StreamSpec(loss=LinearRegression(LpBall(5, 1.5, 2.0)), horizon=40)
    (full,), (half,) = (
        config.make(spec, Streams([0])).blocks
        for config in (NoisySGD(**how), StoppedSGD(**how, made=40))
    )
    assert (half.steps, half.sigma, half.eta) == (40, full.sigma, full.eta)


@pytest.mark.parametrize(
    "figure", by_rota([("sgd/figure-5-2", 11), ("sgd/figure-5-3", 4)], 2, slow=False)
)
def test_the_figures_are_drawn(figure, tmp_path, monkeypatch):
    """At 20 users, of two scales; Figure 5.3 has the best of each agent at both of its sizes."""
    name, curves = figure
    for scales in ("small_p_scales", "large_p_scales", "batch_scales"):
        monkeypatch.setitem(STUDY.sizes, scales, STUDY.sizes[scales][-2:])
    made = TABLES[name].run("certified", "T=20", replicas=2, seed=0, out=tmp_path)
    assert made.tables[0].row_count == curves
    assert {path.suffix for path in made.files} == {".csv", ".png"}
    assert json.dumps(made.records)
    assert all(0.99 < r["certified_epsilon"] <= 1 for r in made.records if r["after"] >= 20)
    with pytest.raises(InputError, match="rows to be all, or fewer users: T=200"):
        TABLES[name].run("certified", "none", replicas=2, seed=0, out=tmp_path)


def test_all_steps_are_those_of_the_agent():
    """Oracle: the steps written out, in double precision; sigma and eta are the agent's, whose L is
    the true 6.5 in place of 4."""
    rng = np.random.default_rng(0)
    w, x, z = (rng.standard_normal(shape) for shape in ((2, 2, 3, 4), *[(9, 2, 1, 3, 4)] * 2))
    y = rng.standard_normal((9, 2, 1, 3))
    eta, by_hand, total = np.array([0.1, 0.9]).reshape(1, 2, 1, 1), w.copy(), 0
    for a, b, n in zip(x, y, z, strict=True):
        slope = (by_hand * a).sum(axis=-1) - b
        by_hand = np.clip(by_hand - eta * (2 * slope[..., None] * a + n), -2, 2)
        total = total + by_hand
    np.testing.assert_allclose(descend(w, x, y, z, eta), total)
    np.testing.assert_allclose(w, by_hand)
    spec = StreamSpec(loss=LinearRegression(LpBall(5, float("inf"), 2.0), 1.25), horizon=1000)
    agent = NoisySGD(calibration="paper", delta=1e-3, steps=10**6).make(spec, Streams([0]))
    steps, sigma, eta = agent.numbers(1000)
    assert (steps, sigma * 4 / 6.5) == (10**6, pytest.approx(noise_of(1000)))
    assert eta * 6.5 / 4 == pytest.approx(step_of(1000, 5))


def test_all_steps_have_the_noise_of_the_paper():
    """Oracle: 20^2 steps of one row at a time. The means of 400 runs differ by less than 5 errors,
    at one and at four times the paper's step size, and half way, too."""
    T, R, rng = 20, 400, np.random.default_rng(1)
    problems = [Problem(5, sparse=False), Problem(10, sparse=True)]
    for problem, found in zip(problems, curves(problems, T, R, seed=0), strict=True):
        x, y = problem.users(rng, R, T)
        for scale, ours in ((1, found[0]), (4, found[2])):
            w, total, by_hand = np.zeros((R, problem.dim)), 0, []
            for t in range(T * T):
                user = np.arange(R), rng.integers(T, size=R)
                slope = 2 * ((w * x[user]).sum(axis=-1) - y[user])[:, None] * x[user]
                slope += noise_of(T) * rng.standard_normal(w.shape)
                w = np.clip(w - scale * step_of(T, problem.dim) * slope, -2, 2)
                total = total + w
                if t + 1 in (T * T // 2, T * T):
                    by_hand.append(problem.suboptimality(total / (t + 1)))
            for one, other in zip(by_hand, ours.T[[4, 9]], strict=True):
                error = np.hypot(standard_error(one), standard_error(other))
                assert abs(one.mean() - other.mean()) < 5 * error


SMALL_TABLES = [
    ("contextual/theorem-4-3", "public", "T=640,d=80", 2),
    ("sgd/all-steps", "printed", "T=20", 150),
]


@pytest.mark.parametrize("table", by_rota(SMALL_TABLES, 2, slow=False))
def test_small_tables_have_their_rows(table, tmp_path):
    """Dimensions up to the largest that is asked for; three rows, five scales and ten stops."""
    name, reading, rows, count = table
    made = TABLES[name].run(reading, rows, replicas=2, seed=0, out=tmp_path)
    assert len(made.records) == count
    assert json.dumps(made.records)


P1 = CASES["contextual/p1"]


def one(kind, config, horizon=640):
    """A run on `contextual/p1`."""
    setup = setup_of("GLMBandit", P1.env_kwargs, horizon=horizon, label="p1")
    return kind(setup, "a", config)


def test_errors_of_estimates_by_hand(tmp_path):
    """Oracle: the same play to the end, its parameters against those of the problem; regret is what
    it is without anybody looking. All links without privacy: the error falls where it learns."""
    config = OnlineFrankWolfe(warm_up=50, radius=1.0)
    looked = play_all(one(EstimateConfiguration, config), 3, progress=False)
    plain = one(Configuration, config)
    np.testing.assert_array_equal(looked.regret, play_all(plain, 3, progress=False).regret)
    seen, problem = AgentRecorder(config), plain.problem()
    play(problem, seen, [(0, r) for r in range(3)], marks=np.array([640]))
    true, theta = problem.true_parameters, seen.agents[0].theta
    share = np.abs(theta - true).sum(2) ** 2 / np.abs(true).sum(2) ** 2
    np.testing.assert_allclose(errors(looked)[-1], share.mean(axis=1))
    assert len(errors(looked)) == len(places(640)) == 7
    refused("estimates by Frank-Wolfe", one(EstimateConfiguration, Uniform()).play, 0, 1)
    table = TABLES["contextual/theorem-4-2"]
    for text in ("none", "cauchy", "T=", "T=639"):
        wrong = r"Expected (rows to be links|T=639)"
        refused(wrong, table.run, "public", text, replicas=2, seed=0, out=None)
    made = table.run("public", "T=1280", replicas=3, seed=0, out=tmp_path)
    assert [record["link"] for record in made.records] == ["identity", "logistic", "probit"]
    assert all(record["exponent"] < -0.3 for record in made.records)
