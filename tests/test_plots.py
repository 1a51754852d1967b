"""What figures draw, read back from their axes and compared with numbers by hand."""

from dataclasses import replace
from math import inf, sqrt

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from dpbandit import compare
from dpbandit.agents import DPUCB
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
    assert points(within[0]) == ([0.5, 2], [2, 4])
    assert points(beyond[0]) == ([5], [1])  # no line leads there
    ends = (2 - T1, 2 + T1), (4, 4), (1 - T1, 1 + T1)
    assert [*bars(within), *bars(beyond)] == [pytest.approx(end) for end in ends]
    assert [within.get_label(), beyond.get_label()[0]] == ["dp", "_"]
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
