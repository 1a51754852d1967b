"""The figures of a report, read back from their axes and compared with the runs they show."""

from dataclasses import replace

import numpy as np
import pytest

from dpbandit import Results, compare
from dpbandit.agents import DPUCB
from dpbandit.report.page import pictures, problems
from dpbandit.results.comparisons import bootstrap_band
from dpbandit.results.runs import label, slope
from tests.drawings import band, bars, points

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
def drawn(results, monkeypatch, tmp_path):
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


def test_regret_by_round_is_that_of_the_longest_horizon(results, drawn):
    """Every logged round, with bootstrap bands, of the runs that claim this epsilon; a frontier is
    of the last round at the certified epsilon."""
    for figure, claim in (("regret-1-1", 1.0), ("regret-1-2", 4.0)):
        (axes,) = drawn[figure]
        runs = [at(results, "DP", claim=claim), at(results, "Uniform"), at(results, "BestFixed")]
        parts = zip(axes.get_lines(), axes.collections, strict=True)
        lines = {line.get_label(): (line, fill) for line, fill in parts}
        assert set(lines) == {label(run) for run in runs}
        for run in runs:
            line, fill = lines[label(run)]
            assert points(line) == (list(range(1, 33)), run.regret.mean(axis=1).tolist())
            low, high = bootstrap_band(run.regret)
            assert band(fill) == {t: pytest.approx((low[t - 1], high[t - 1])) for t in range(1, 33)}
    (axes,) = drawn["frontier-1"]
    (container,) = axes.containers
    runs = [at(results, "DP", claim=claim) for claim in (1.0, 4.0)]
    means = [run.regret[-1].mean() for run in runs]
    assert points(container[0]) == ([0.9, 3.5], pytest.approx(means))
    ends = [bootstrap_band(run.regret[-1]) for run in runs]
    assert bars(container) == [pytest.approx(pair) for pair in ends]
    levels = {line.get_label(): line.get_ydata()[0] for line in axes.get_lines()}
    for run in (at(results, "Uniform"), at(results, "BestFixed")):
        assert levels[label(run)] == pytest.approx(run.regret[-1].mean())


def test_growth_is_of_the_last_round_of_every_horizon(results, drawn):
    """Of private agents for the largest claim, with the exponent of the larger horizons. Costs by
    hand: 32 rounds less 0, 1 and 2 are 31 changes on average; k microseconds for the k-th."""
    (axes,) = drawn["horizons-1"]
    shown = {container.get_label(): container for container in axes.containers}
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
    left, right = drawn["cost-1"]
    names = [text.get_text() for text in left.get_yticklabels()]
    order = {label(at(results, "BestFixed")): 4, label(at(results, "DP", claim=1.0)): 1}
    order |= {label(at(results, "DP", claim=4.0)): 2, label(at(results, "Uniform")): 3}
    assert names == list(order)
    assert [patch.get_width() for patch in left.patches] == [31] * 4
    assert [bar.get_width() for bar in right.patches] == pytest.approx(list(order.values()))
