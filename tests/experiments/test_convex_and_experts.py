"""The studies of convex problems and of experts: slopes, bounds, certificates, growth."""

from math import inf, sqrt

import numpy as np
import pandas as pd
import pytest

from dpbandit import InputError, play
from dpbandit.agents import FTAL, BanditFTAL, FollowTheLeader, PrivateBandit
from dpbandit.experiments.experts import (
    __main__ as experts_command,
    least_regret,
    news,
    verdict,
    verdicts,
)
from dpbandit.experiments.study import measured, read, runs_of
from dpbandit.results.runs import slope
from dpbandit.running.environments import problem_maker
from dpbandit.studies import LastRound, Study, setup_of
from tests.drawings import points, unsaved
from tests.each import by_rota, in_turn
from tests.experiments.runs import figures_of, quick

CONVEX, EXPERTS = read("convex"), experts_command.STUDY
TINY = {
    "horizons": [8, 10, 12, 16], "adaptive_horizons": [8, 12], "users": 20,
    "epsilons": [1.0, inf], "replicas": 2,
}  # fmt: skip


@pytest.mark.parametrize("power", [0.5, 0.75, 1.0])
def test_fits_recover_a_power_on_the_larger_half_of_horizons(power):
    """Golden: exact powers there have no error; regret that is not positive has no slope."""
    horizons = [10, 20, 40, 80, 160, 320]
    regrets = [np.array([7.0, 7.0, 7.0]) * T**power for T in horizons]
    regrets[:3] = [np.array([1e9, 1.0, 5.0])] * 3
    assert slope(horizons, regrets)[:2] == pytest.approx((power, 0), abs=1e-12)
    assert np.isnan(slope([1, 2, 4, 8], [np.array([1.0, -2.0])] * 4)[:2]).all()


@pytest.mark.parametrize("shared", [False, True])
def test_standard_errors_of_slopes(shared):
    """Statistical: of 500 slopes from 20 replicas with 5 % noise, own or shared by all horizons,
    the spread is the mean standard error within 15 % (false alarm below 1e-4), as shared noise
    cancels."""
    rng, horizons = np.random.default_rng(0), [1, 2, 4, 8]
    found = []
    for _ in range(500):
        noise = 1 + 0.05 * rng.standard_normal((4, 20))
        if shared:
            noise[:] = noise[0] * (1 + 0.005 * rng.standard_normal((4, 20)))
        regrets = [T**0.75 * row for T, row in zip(horizons, noise, strict=True)]
        found.append(slope(horizons, regrets))
    values, errors = np.array(found).T
    naive = 0.05 / sqrt(20) * sqrt(2) / np.log(2)
    assert values.std() == pytest.approx(errors.mean(), rel=0.15)
    assert values.std() == pytest.approx(naive * (0.1 if shared else 1), rel=0.15)
    assert abs(values.mean() - 0.75) <= 4 * values.std() / sqrt(500) + 1e-3


@in_turn(0)
def test_the_study_writes_everything_certifies_what_it_claims_and_pairs_the_excess(tmp_path):
    """Golden: certificates at epsilon 1, where printed noise buys something else; the excess is the
    regret on the same users less that without privacy."""
    quick(CONVEX, TINY, tmp_path)
    names = {"growth", "signs", "regret-p-quad", "lost-pricing", "excess", "adversaries", "sets"}
    assert figures_of(tmp_path) == names
    table = pd.read_csv(tmp_path / "summary.csv")
    assert set(table["question"]) == set(CONVEX.configurations(TINY))
    assert set(table["replicas"]) == {2}
    assert (table["se"] > 0).mean() > 0.9
    slopes = pd.read_csv(tmp_path / "slopes.csv")
    panels = ("p-lin", "p-quad", "partition matroid", "flows")
    assert slopes.groupby("panel").size().to_dict() == dict.fromkeys(panels, 6)

    found = CONVEX.measure(TINY, tmp_path, progress=False)
    table = found.table()
    aimed = table[table["claimed_epsilon"] == 1]
    printed = aimed["line"].str.startswith(("printed, ", "PrivateBandit, printed"))
    np.testing.assert_allclose(aimed.loc[~printed, "certified_epsilon"], 1, rtol=1e-6)
    assert printed.sum() > 10
    assert (abs(aimed.loc[printed, "certified_epsilon"] - 1) > 0.01).all()
    with unsaved() as drawn:
        names = [path.stem for path in CONVEX.draw(found, TINY, tmp_path)]
    excess = drawn[names.index("excess")]
    for axes, lines in zip(excess, found.runs["prices"].values(), strict=True):
        shown = {container.get_label(): points(container[0]) for container in axes.containers}
        for label, (one, public) in ((n, line) for n, line in lines.items() if len(line) > 1):
            assert public.certificate.epsilon == inf
            gap = 1000 * (one.regret[-1] - public.regret[-1]).mean() / TINY["users"]
            assert shown[label] == ([one.certificate.epsilon], [pytest.approx(gap)])


GROWING = {"p-lin": PrivateBandit(noise="gaussian"), "p-tilt": BanditFTAL(beta="adaptive")}


@pytest.mark.parametrize("instance", by_rota(GROWING, 2))
def test_growth_meets_its_targets(instance):
    """Statistical, one-sided: the slope of log mean regret from T = 2^13 to 2^14 is at most the
    theorem's 3/4 + 0.1, at a standard error below 0.025 (asserted): false alarm 3e-5, and linear
    regret passes as seldom."""
    horizons = [2**11, 2**12, 2**13, 2**14]
    found = slope(
        horizons, [final(GROWING[instance], "ConvexBandit", instance, T) for T in horizons]
    )
    assert found.value <= 0.75 + 0.1
    assert found.se < 0.025


@pytest.mark.slow
def test_ftal_grows_like_the_logarithm():
    """Golden: on p-kink every doubling of T adds L^2 / (8 H) ln 2 = 0.347 without any noise."""
    small, large = (final(FTAL(), "OnlineConvex", "p-kink", T, 1) for T in (2**10, 2**12))
    assert (large - small) / (2 * np.log(2)) == pytest.approx(0.5, abs=0.003)


def final(config, environment, instance, horizon, replicas=16):
    """Regret in the end, (R,)."""
    problem = problem_maker(environment)(instance=instance, horizon=horizon)
    seeds = [(7, r) for r in range(replicas)]
    return play(problem, config, seeds, marks=np.array([horizon])).regret[-1]


SMALL = {
    "horizons": [6, 8, 12], "d": 8, "sizes": [2, 4, 8], "sizes_horizon": 12,
    "epsilons": [1.0, 10.0, 100.0], "stages": [4], "users": 12, "rankers": 4,
    "tails": [[8, 1.0]], "audited": 20, "replicas": 2,
}  # fmt: skip


@in_turn(1)
def test_the_study_of_experts_writes_everything_and_certifies_what_it_claims(monkeypatch, tmp_path):
    """Golden: certified agents spend the epsilon of their line; what is printed costs 3/4 of it
    (Algorithm 1), 3/2 and a little (Algorithm 5), or has no bound (Algorithm 2). Nobody private is
    below the lower bound, and nothing is played a second time."""
    said = quick(experts_command, SMALL, tmp_path)
    asked = set(EXPERTS.configurations(SMALL))
    assert figures_of(tmp_path) == asked == {*pd.read_csv(tmp_path / "summary.csv")["question"]}
    assert {*pd.read_csv(tmp_path / "slopes.csv")["axis"]} == {"T", "ln d", "epsilon"}
    for words in ("switches on halving", "no private agent is below", "exponent in epsilon"):
        assert words in said

    monkeypatch.setattr("dpbandit.studies.configurations.play_any", None)  # would not be callable
    found = EXPERTS.measure(SMALL, tmp_path, progress=False)
    certified = found.runs["growth"]["certified"] | found.runs["tails"]["8 experts, epsilon 1"]
    printed = {
        "Algorithm 1 as printed": (0.75, 0.76),
        "Algorithm 1 as printed, delta": (0.3, 0.8),
        "Algorithm 2 as printed": (inf, inf),
        "Algorithm 5 as printed": (1.5, 1.52),
        "Algorithm 5, threshold 2/eta": (1.5, 1.52),
        **dict.fromkeys(("Hedge", "Hedge, eta 1", "leader"), (inf, inf)),
        "uniform play": (0, 0),
    }
    for label, line in certified.items():
        low, high = printed.get(label, (0.9, 1 + 1e-3))
        assert low <= line[0].certificate.epsilon <= high, label
    (judged,) = verdicts(found.runs["tails"]).values()
    assert len(judged) > 15
    assert not any(v.refuted for label, v in judged.items() if label not in printed)
    for lines in (lines for panels in found.runs.values() for lines in panels.values()):
        assert any("uniform" in one or "leader" in one or "centre" in one for one in lines)
    with unsaved() as drawn:
        names = [path.stem for path in EXPERTS.draw(found, SMALL, tmp_path)]
    (axes,) = drawn[names.index("prices")]
    shown = {c.get_label().partition(":")[0]: points(c[0])[0] for c in axes.containers}
    assert shown["Algorithm 1 as printed"] == pytest.approx([0.75, 7.5, 75], rel=0.02)


def test_switches_are_counted(tmp_path):
    """Oracle: on halving a lazy leader changes after each of her mistakes and at no other time."""
    setup = setup_of("Experts", {"kind": "halving", "n_actions": 16}, horizon=40)
    leader = LastRound(setup, "x", FollowTheLeader(lazy=True))
    study = Study(configurations=(leader,), replicas=30)
    (lazy,) = measured(study, tmp_path, progress=False).runs
    np.testing.assert_array_equal(lazy.switches, lazy.regret)
    assert lazy.switches.max() > 2


def test_the_audit_catches_broken_agents_and_no_private_agent(tmp_path):
    """256 experts, epsilon 0.1: who is private loses 45.99 at least, Hedge at rate 1 only 6.04, a
    margin of 13 for Hoeffding's limit of 150 replicas."""
    (lines,) = EXPERTS.configurations({**SMALL, "tails": [[256, 0.1]]})["tails"].values()
    asked = ("Hedge, eta 1", "leader", "sparse vector", "noisy sums, delta", "uniform play")
    some = {label: lines[label][0] for label in asked}
    runs = runs_of("tails", some.values(), tmp_path, replicas=150, progress=False)
    judged = {label: verdict(runs[one.key], 60) for label, one in some.items()}
    assert [label for label, v in judged.items() if v.refuted] == ["Hedge, eta 1", "leader"]
    assert judged["Hedge, eta 1"].mean == pytest.approx(6.04, abs=0.5)
    assert judged["sparse vector"].least == pytest.approx(45.99, abs=0.01)
    assert judged["sparse vector"].mean > 50


def test_least_regrets():
    """Golden, from the specification; and by hand: for d = 4, epsilon = ln 2 it is 3/4 + (1 - 2/4),
    with delta = 0.1 less 0.1 in the second term; without privacy the first guess."""
    for d, at_1, at_tenth in ((16, 2.306, 18.82), (256, 5.085, 45.99), (4096, 7.849, 73.68)):
        assert least_regret(d, 1.0) == pytest.approx(at_1, abs=6e-4)
        assert least_regret(d, 0.1) == pytest.approx(at_tenth, abs=6e-3)
    assert least_regret(4, np.log(2)) == pytest.approx(1.25)
    assert least_regret(4, np.log(2), 0.1) == pytest.approx(1.15)
    assert least_regret(4, inf) == 0.75
    assert least_regret(4, 0.1, tail=0) == least_regret(1, 0.1) == 0
    assert least_regret(4, 1e-3, tail=3) == pytest.approx(2.25, abs=0.01)
    assert news(256, 0.1) == 56
    with pytest.raises(InputError):
        least_regret(4, 0.0)
