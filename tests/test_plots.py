"""What figures draw, read back from their axes: numbers by hand, and the runs of a report."""

from dataclasses import replace
from math import inf, sqrt

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from dpbandit import Results, compare
from dpbandit.agents import DPUCB
from dpbandit.report.page import pictures, problems
from dpbandit.results.comparisons import bootstrap_band
from dpbandit.results.plots import (
    Curve,
    Front,
    delta_curve,
    frontier,
    half_band,
    line,
    panels,
    regret_curves,
    rounds,
    style,
    tradeoff,
)
from dpbandit.results.runs import label, slope
from tests.drawings import band, bars, points, unsaved

T1, T2 = 12.706205, 4.302653
"""Student's 97.5 % quantiles with 1 and 2 degrees of freedom, from a printed table"""


@pytest.fixture
def drawn():
    with unsaved() as seen:
        yield seen


def test_regret_by_round(drawn, tmp_path):
    """Golden: means 2, 3, 10 with standard errors 1, 1, 2, at their rounds; the curve that ends
    highest is named first; one replica has no band; a look is kept."""
    two = Curve("two", np.array([[1.0, 3.0], [2.0, 4.0], [8.0, 12.0]]))
    one = Curve("one", np.array([[0.0], [5.0], [11.0]]))
    marks = np.array([1, 2, 10])
    regret_curves(tmp_path / "f.png", marks, [two, one], title="what", unit="dollars")
    ((axes,),) = drawn
    lines = {line.get_label(): line for line in axes.get_lines()}
    assert list(lines) == ["one", "two"]
    assert points(lines["two"]) == ([1, 2, 10], [2, 3, 10])
    assert points(lines["one"]) == ([1, 2, 10], [0, 5, 11])
    (only,) = axes.collections
    assert to_hex(only.get_facecolor()[0]) == to_hex(lines["two"].get_color())
    ends = {1: (2 - T1, 2 + T1), 2: (3 - T1, 3 + T1), 10: (10 - 2 * T1, 10 + 2 * T1)}
    assert band(only) == {at: pytest.approx(pair) for at, pair in ends.items()}
    assert axes.get_title("left") == "what"
    assert axes.get_ylabel() == "cumulative regret (dollars)"
    looks = [curve._replace(look=place) for curve, place in ((two, 7), (one, 3))]
    how = {"title": "", "unit": "", "band": lambda rows: (rows.min(axis=1), rows.max(axis=1))}
    regret_curves(tmp_path / "f.png", marks, looks, **how)
    (axes,) = drawn[-1]
    assert [line.get_color() for line in axes.get_lines()] == [style(3)[0], style(7)[0]]
    assert band(axes.collections[0]) == {1: (1, 3), 2: (2, 4), 10: (8, 12)}


def test_results_plot_their_regret(drawn, tmp_path):
    """Mean regret at every logged round, under the agent's name and what it certifiably has."""
    results = compare("GLMBandit", {}, horizon=30, replicas=3, progress=False)
    results.plot(tmp_path / "f.png")
    lines = {line.get_label(): points(line) for line in drawn[0][0].get_lines()}
    names = {"Uniform": "Uniform (no data used)", "BestFixed": "BestFixed (not private)"}
    for run in results.runs:
        mean = run.regret.mean(axis=1)
        assert lines.pop(names[run.name]) == (list(range(1, 31)), pytest.approx(mean.tolist()))
    assert not lines


def test_a_frontier_is_over_what_is_certified(drawn, tmp_path):
    """Golden: means 2 and 4 where 0.5 and 2 are certified; where nothing is, drawn at 5, the mean
    is 1; where epsilon is 0, a level. Claims, all of them 3, are nowhere."""
    (dp, *_) = compare("GLMBandit", {"dp": DPUCB(epsilon=3.0)}, horizon=2, replicas=2).runs
    ends = {2.0: [4.0, 4.0], 0.5: [1.0, 3.0], inf: [0.0, 2.0], 0.0: [6.0, 6.0]}
    runs = [
        replace(dp, regret=np.array([[9.0, 9.0], end]), certificate=proof)
        for epsilon, end in ends.items()
        for proof in [replace(dp.certificate, epsilon=epsilon)]
    ]
    with panels(tmp_path / "f.png", [""], size=(4, 3)) as (axes,):
        frontier(axes, [Front("dp", runs, look=4)], [("random", np.array([7.0, 8.0]))])
    within, beyond = axes.containers
    assert points(within[0]) == (pytest.approx([0.5, 2]), [2, 4])
    assert points(beyond[0]) == ([5], [1])  # no line leads there
    ends = (2 - T1, 2 + T1), (4, 4), (1 - T1, 1 + T1)
    assert [*bars(within), *bars(beyond)] == [pytest.approx(end) for end in ends]
    assert [(one.get_label(), one[0].get_marker()) for one in axes.containers] == [
        ("dp", "v"),
        ("_unlisted", "v"),
    ]
    assert sorted(axes.get_legend_handles_labels()[1]) == ["dp", "dp", "random"]  # bars, and levels
    levels = {one.get_label(): one.get_ydata()[0] for one in axes.get_lines()}
    assert (levels["dp"], levels["random"]) == (6.0, 7.5)
    ticks = dict(zip(axes.get_xticks(), axes.get_xticklabels(), strict=True))
    names = {0.5: "0.5", 1: "1", 2: "2", 5: "∞"}
    assert {at: text.get_text() for at, text in ticks.items()} == names
    below = "certified epsilon at delta 1e-5,\njoint DP under continual observation"
    assert axes.get_xlabel() == below


def test_a_certified_curve(drawn, tmp_path):
    """delta(epsilon) = e^-epsilon / 10 with the claim (1, 1e-3) and the certificate, 4.6."""
    how = {"title": "", "claim": (1.0, 1e-3), "certified": 4.6}
    delta_curve(tmp_path / "f.png", delta_at=lambda epsilon: np.exp(-epsilon) / 10, **how)
    curved, claim, certificate, level = drawn[0][0].get_lines()
    epsilons, deltas = map(np.array, points(curved))
    np.testing.assert_allclose(deltas, np.exp(-epsilons) / 10)
    assert (epsilons[0], epsilons[-1]) == (0, pytest.approx(6.9))
    assert points(claim) == ([1.0], [1e-3])
    assert points(certificate) == ([4.6], [1e-3])
    assert set(level.get_ydata()) == {1e-3}


def test_a_trade_off(drawn, tmp_path):
    """What is allowed and what is proven, which is at least guessing, and the measured rates."""
    how = {"point": (0.25, 0.4), "title": "", "certified": "allowed", "measured": "proven"}
    tradeoff(tmp_path / "f.png", allowed=np.sqrt, proven=lambda fpr: 0.5 * fpr + 0.1, **how)
    allowed, proven, measured, guessing = drawn[0][0].get_lines()
    fpr = np.linspace(0, 1, 401)
    assert points(allowed) == (fpr.tolist(), np.sqrt(fpr).tolist())
    assert points(proven) == (fpr.tolist(), np.maximum(fpr, 0.5 * fpr + 0.1).tolist())
    assert points(measured) == ([0.25], [0.4])
    assert points(guessing) == ([0, 1], [0, 1])
    assert band(drawn[0][0].collections[0])[0.0] == (0, 0.1)


def test_lines_and_rounds(tmp_path):
    """Golden: the same means and bands wherever something is drawn; 1 and 3 have standard error 1,
    and 0, 1 and 2 have 1 / sqrt(3)."""
    assert half_band(np.array([1.0, 3.0])) == pytest.approx(T1)
    three = np.array([[0.0, 1.0, 2.0], [1.0, 1.0, 1.0], [3.0, 2.0, 1.0]])
    assert half_band(three) == pytest.approx([T2 / sqrt(3), 0, T2 / sqrt(3)])
    axes = Figure().add_subplot()
    line(axes, [100, 200], [np.array([1.0, 3.0]), np.array([4.0, 4.0])], "dp", 0)
    values = np.array([[1.0, 3.0], [0.0, 0.0]])
    rounds(axes, np.array([5, 6]), values, "b", color="black", dashes="-")
    (container,) = axes.containers
    assert points(container[0]) == ([100, 200], [2, 4])
    assert points(axes.get_lines()[-1]) == ([5, 6], [2, 0])
    wide = pytest.approx((2 - T1, 2 + T1))
    assert bars(container) == [wide, [4, 4]]
    assert band(axes.collections[1]) == {5: wide, 6: (0, 0)}


EPSILONS = {"DP 1": (1.0, 0.9), "DP 4": (4.0, 3.5)}
"""Claimed and certified"""
HORIZONS = (4, 8, 16, 32)


@pytest.fixture(scope="module")
def results():
    """Regret T^a, a by agent and replica, growing with the round to the power of a half; changes of
    action are the round less the replica's number."""
    runs, agents = [], {name: DPUCB(epsilon=claim) for name, (claim, _) in EPSILONS.items()}

    def made_up(run, place):
        T, certified = run.setup.horizon, EPSILONS.get(run.name, (0, run.certificate.epsilon))[1]
        return replace(
            run,
            name=run.name.split()[0],
            regret=np.sqrt(run.marks / T)[:, None] * T ** (np.array([0.5, 0.55, 0.7]) + place / 10),
            switches=run.marks[:, None] - np.arange(3),
            seconds=1e-6 * T * 3 * (place + 1),
            certificate=replace(run.certificate, epsilon=certified),
        )

    for T in HORIZONS:
        played = compare("GLMBandit", agents, horizon=T, replicas=3, progress=False)
        runs += [made_up(run, place) for place, run in enumerate(played.runs)]
    return Results(tuple(runs))


@pytest.fixture
def pictured(results, monkeypatch, tmp_path):
    """The axes of every figure, by its name, nothing being saved."""
    (problem,), figures = problems(results), {}
    for place in ("results.plots", "report.page"):
        monkeypatch.setattr(
            f"dpbandit.{place}.save_figure", lambda figure, path: figures.update({name: figure})
        )
    for picture in pictures(problem):
        name = picture.name
        picture.draw(tmp_path / "f.svg")
    return {name: figure.axes for name, figure in figures.items()}


def at(results, name, T=32, claim=None):
    found = results.where(agent=name, horizon=T)
    return (found if claim is None else found.where(epsilon=claim)).runs[0]


def test_regret_by_round_is_that_of_the_longest_horizon(results, pictured):
    """Every logged round, with bootstrap bands, of the runs that claim this epsilon; a frontier is
    of the last round at the certified epsilon."""
    for figure, claim in (("regret-1-1", 1.0), ("regret-1-2", 4.0)):
        (axes,) = pictured[figure]
        runs = [at(results, "DP", claim=claim), at(results, "Uniform"), at(results, "BestFixed")]
        parts = zip(axes.get_lines(), axes.collections, strict=True)
        lines = {line.get_label(): (line, fill) for line, fill in parts}
        assert set(lines) == {label(run) for run in runs}
        for run in runs:
            line, fill = lines[label(run)]
            assert points(line) == (list(range(1, 33)), run.regret.mean(axis=1).tolist())
            low, high = bootstrap_band(run.regret)
            assert band(fill) == {t: pytest.approx((low[t - 1], high[t - 1])) for t in range(1, 33)}
    (axes,) = pictured["frontier-1"]
    (container,) = axes.containers
    runs = [at(results, "DP", claim=claim) for claim in (1.0, 4.0)]
    means = [run.regret[-1].mean() for run in runs]
    assert points(container[0]) == ([0.9, 3.5], pytest.approx(means))
    ends = [bootstrap_band(run.regret[-1]) for run in runs]
    assert bars(container) == [pytest.approx(pair) for pair in ends]
    levels = {line.get_label(): line.get_ydata()[0] for line in axes.get_lines()}
    for run in (at(results, "Uniform"), at(results, "BestFixed")):
        assert levels[label(run)] == pytest.approx(run.regret[-1].mean())


def test_growth_is_of_the_last_round_of_every_horizon(results, pictured):
    """Of private agents for the largest claim, with the exponent of the larger horizons. Costs by
    hand: 32 rounds less 0, 1 and 2 are 31 changes on average; k microseconds for the k-th."""
    (axes,) = pictured["horizons-1"]
    shown = {one.get_label(): one for one in axes.containers}
    words = {"DP": "DP, claims 4", "Uniform": "Uniform", "BestFixed": "BestFixed, not private"}
    assert len(shown) == 3
    for name, word in words.items():
        runs = [at(results, name, T, 4.0 if name == "DP" else None) for T in HORIZONS]
        finals = [run.regret[-1] for run in runs]
        found = slope(HORIZONS, finals)
        assert found.se > 0.02
        container = shown[f"{word}: exponent {found.value:.2f} ± {2 * found.se:.2f}"]
        means = [final.mean() for final in finals]
        assert points(container[0]) == (list(HORIZONS), pytest.approx(means))
        assert bars(container) == [pytest.approx(bootstrap_band(final)) for final in finals]
    left, right = pictured["cost-1"]
    names = [text.get_text() for text in left.get_yticklabels()]
    order = {label(at(results, "BestFixed")): 4, label(at(results, "DP", claim=1.0)): 1}
    order |= {label(at(results, "DP", claim=4.0)): 2, label(at(results, "Uniform")): 3}
    assert names == list(order)
    assert [patch.get_width() for patch in left.patches] == [31] * 4
    assert [bar.get_width() for bar in right.patches] == pytest.approx(list(order.values()))
