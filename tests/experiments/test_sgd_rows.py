"""Rows of the study of SGD: releases, targets, and what they are compared with."""

from dataclasses import dataclass, field
from math import inf, sqrt

import numpy as np
import pytest

from dpbandit import InputError
from dpbandit.agents import DPTOFW, BestFixed, LeastSquares, LocalisedTOFW
from dpbandit.experiments.releases import release, stream_problem
from dpbandit.experiments.sgd import Sizes, entries, measure, on
from dpbandit.experiments.sgd.printed import READINGS, Setting, chosen_rows, lines, rows
from dpbandit.privacy.ledger import no_data
from dpbandit.privacy.prefix_sums import leaves
from dpbandit.running.compare import certify
from dpbandit.specs.models import second_moment
from dpbandit.studies import play_all
from tests.each import each

SMALL = Setting(1.5, 5, 1000)
STREAM = ("dpbandit/StreamingRegression-v0", {"p": 1.5, "dim": 5})


def test_the_table_is_as_printed():
    """Golden: 48 cells of 4 T, 3 d, and OFW and one competitor for each of 2 p; one is missing."""
    cells = {(row.setting, row.algorithm) for row in rows()}
    sizes = [(d, T) for T in (1000, 2000, 5000, 10_000) for d in (5, 10, 20)]
    whole = {(Setting(p, d, T), "OFW") for p in (1.5, inf) for d, T in sizes}
    whole |= {(Setting(1.5, d, T), "NoisySFW") for d, T in sizes}
    whole |= {(Setting(inf, d, T), "NoisySGD") for d, T in sizes}
    assert whole - cells == {(Setting(inf, 5, 10_000), "NoisySGD")}
    assert len(rows()) == len(cells) == 47
    row = rows()[1]
    assert (row.setting, row.algorithm, row.risk) == (SMALL, "OFW", 0.00536)
    assert (row.suboptimality, row.suboptimality_sd, row.seconds) == (0.0172, 0.00987, 0.0929)
    assert row.se == 0.00987 / sqrt(10)


def test_four_rows_are_of_another_problem():
    """Golden: F(0) - F(theta*) = s |theta*|^2 with s = E x_1^2. For d > 5 the rows of NoisySGD with
    T <= 2,000 imply that of a 5-sparse theta*, all others that of a dense one, within 12 %: printed
    digits and 1,000 test users. The two are 20 % apart at least."""
    for row in (row for row in rows() if row.setting.dim > 5):
        (p, d, _), q = row.setting, 3.0 if row.setting.p == 1.5 else 1.0
        dense, sparse = (second_moment(d, q) * k ** (1 - 2 / p) for k in (d, 5))
        own, other = (sparse, dense) if row.sparse else (dense, sparse)
        assert row.baseline == pytest.approx(own, rel=0.12)
        assert abs(row.baseline / own - 1) < abs(row.baseline / other - 1)
    assert [row.number for row in rows() if row.sparse] == [7, 11, 19, 23]


@pytest.mark.parametrize(
    ("selection", "numbers"),
    [
        ("all", range(1, 48)),
        ("1-3,47, 2", [1, 2, 3, 47]),
        ("T=2000,p=inf", [15, 16, 19, 20, 23, 24]),
        ("T=1000,T=2000,d=20,algo=OFW", [10, 12, 22, 24]),
    ],
)
def test_rows_are_chosen_by_number_or_by_value(selection, numbers):
    assert [row.number for row in chosen_rows(selection)] == list(numbers)


WRONG = ["", "0", "48", "3-1", "1-", "-1", "one", "1-3,x", "q=2", "p=", "p=two", "algo=SGD"]


@each("selection", [*WRONG, "1,T=2000"])
def test_rows_that_are_none_get_one_sentence(selection):
    with pytest.raises(InputError, match="Expected rows to be numbers from 1 to 47"):
        chosen_rows(selection)
    with pytest.raises(InputError, match="chooses none"):
        chosen_rows("p=7")


def test_readings_are_what_they_say():
    """Golden: the grids of the authors' program; certified and the floor have nothing to choose.
    Certificates at delta = 1/T: misprints at p = 1.5 none, at p = infinity 6.78 with the stated
    S = 16; the stated law too much noise; what is called certified 1, to rounding of PLDs."""
    everything = {row.number: lines(row, READINGS) for row in chosen_rows("1,2,4")}
    grids = {
        n: [tuple(x.configs) for x in made if len(x.configs) > 1] for n, made in everything.items()
    }
    assert grids[1] == [(0.01, 0.02, 0.04, 0.06, 0.08, 0.1)] * 2
    assert grids[2] == [(0.4, 0.6, 1.0)] * 3
    assert grids[4] == [(0.6, 0.7, 0.8, 1.0)] * 3
    for number, printed in ((2, inf), (4, 6.779)):
        row = rows()[number - 1]
        spec = stream_problem(
            *STREAM[:1], {"p": row.setting.p, "dim": 5}, DPTOFW(), users=1000
        ).spec
        for line in everything[number]:
            config = next(iter(line.configs.values()))
            assert getattr(config, "delta", 1e-3) == row.setting.delta
            if line.label in ("local-md", "noisy-sgd"):  # seconds of accounting, tested elsewhere
                continue
            epsilon = certify(config, spec, accountants=False).epsilon
            if line.reading == "certified":
                assert len(line.configs) == 1
                assert 0.99 < epsilon <= 1
            elif line.reading == "stated":
                assert epsilon < 0.5
            else:
                assert epsilon == pytest.approx(
                    printed if line.reading == "printed" else inf, abs=1e-3
                )


def test_unknown_readings_are_refused():
    with pytest.raises(InputError, match="reading='clever' to be one of printed"):
        Sizes(readings=("clever",))


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


def kwargs_of(problem):
    """Of the environment."""
    return {"p": problem.p, "dim": problem.dim}


def measured(problem, config, replicas, seed=3):
    """SubOpt on test users, (R,)."""
    stream = stream_problem(STREAM[0], kwargs_of(problem), config, users=problem.users)
    seeds = [(seed, r) for r in range(replicas)]
    return release(stream, config, seeds, users=problem.users).suboptimality


@pytest.mark.slow
@pytest.mark.parametrize(
    "row",
    chosen_rows("algo=OFW,T=2000,d=5"),
    ids=lambda row: str(row.setting),
)
def test_one_certified_configuration_is_as_good_as_printed(row):
    """Statistical: SubOpt of LocalisedTOFW with its defaults, truly (1, 1/T)-DP, 40 replicas, is
    at or below the printed OFW value by 3 standard errors. A mean equal to what is printed would
    pass with probability 1.4e-3."""
    config, env_kwargs = LocalisedTOFW(delta=row.setting.delta), kwargs_of(row.setting)
    found = measured(row.setting, config, 40)
    assert found.mean() + 3 * found.std(ddof=1) / sqrt(40) <= row.suboptimality
    spec = stream_problem(STREAM[0], env_kwargs, config, users=row.setting.users).spec
    assert certify(config, spec, accountants=False).epsilon <= 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("selection", "reading"),
    [
        ("algo=OFW,p=1.5,T=2000,d=10", "printed"),
        ("algo=OFW,p=inf,T=2000,d=5", "stated"),
        ("algo=NoisySFW,T=1000,d=5", "printed"),
    ],
)
def test_readings_agree_with_an_independent_program(selection, reading, tmp_path):
    """Golden, 40 replicas against 200 (NoisySFW: 20): within 4 combined standard errors."""
    sizes = Sizes(
        rows=chosen_rows(selection), readings=(reading,), scales_at=(), replicas=40, seed=7
    )
    found = entries(sizes, measure(sizes, tmp_path, progress=False))[0]
    assert abs(found.z_reference) <= 4, (found.mean, found.se, found.reference)
