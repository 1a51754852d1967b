"""Online conditional gradient: one vertex a round, as far as J_t falls, and what that costs."""

import numpy as np
import pytest

from dpbandit import InputError, certify
from dpbandit.agents import OnlineConditionalGradient
from dpbandit.base.random_streams import Streams
from dpbandit.domains import Ball, Hypersimplex, L1Ball, Simplex
from dpbandit.experiments.window import counting
from dpbandit.losses import Kink, Linear, Quadratic
from dpbandit.specs.convex import ConvexSpec
from tests.agents.convex.convex_runs import play, sphere

CASES = [
    Quadratic(Simplex(4)),
    Quadratic(L1Ball(3)),
    Quadratic(Hypersimplex(5, 2)),
    Kink(Ball(3)),
    Linear(Simplex(4)),
    Linear(Ball(3)),
]
every_loss = pytest.mark.parametrize("loss", CASES, ids=str)


def data_of(loss, T, R, seed=0):
    z = sphere(np.random.default_rng(seed), T, R, loss.domain.dim)
    return loss.admissible(z.reshape(-1, z.shape[-1])).reshape(z.shape)


def spec_of(loss, horizon, **more):
    return ConvexSpec(loss=loss, feedback="datum", horizon=horizon, **more)


def objective(loss, x, actions, slopes, start, T):
    """J_t from its definition, (R, points)."""
    total = np.einsum("rpn,rn->rp", x, np.sum(slopes, axis=0))
    if loss.curvature:
        return total + sum(np.square(x - a[:, None]).sum(-1) for a in actions) / 2
    pull = 2 * loss.lipschitz * T**0.75 / loss.domain.diameter
    return total + pull * np.square(x - start[:, None]).sum(-1)


@every_loss
def test_a_step_goes_to_the_lowest_vertex_as_far_as_it_falls(loss):
    """Oracle: of 201 points between x_t and the vertex none is lower than x_{t+1}, which is one
    of that segment, with J_t from its definition; the vertex is the domain's for its gradient."""
    T, R = 20, 3
    data = data_of(loss, T, R)
    actions = play(OnlineConditionalGradient(), loss, data).actions
    domain, start, slopes = loss.domain, actions[0], []
    for t in range(T - 1):
        gradient = loss.gradient(actions[t], data[t])
        slopes.append(domain.embedded(domain.coordinates(gradient)))
        anchor = actions[: t + 1].mean(axis=0) if loss.curvature else start
        kappa = t + 1 if loss.curvature else 4 * loss.lipschitz * T**0.75 / domain.diameter
        slope = np.sum(slopes, axis=0) + kappa * (actions[t] - anchor)
        vertex = domain.lowest(slope)
        share = np.linspace(0, 1, 201)[:, None]
        segment = actions[t][:, None] + share * (vertex - actions[t])[:, None]
        before = actions[: t + 1]
        grid = objective(loss, segment, before, slopes, start, T)
        found = objective(loss, actions[t + 1][:, None], before, slopes, start, T)
        assert (found[:, 0] <= grid.min(axis=1) + 1e-9).all()
        nearest = np.linalg.norm(segment - actions[t + 1][:, None], axis=-1).min(axis=1)
        assert nearest.max() <= domain.diameter / 400 + 1e-12


@pytest.mark.parametrize("loss", [Quadratic(Simplex(4)), Linear(Simplex(4))], ids=str)
def test_a_round_asks_for_one_linear_minimisation_and_no_projection(loss):
    domain, calls = counting(loss.domain)
    spec = spec_of(type(loss)(domain), 30)
    agent, data = OnlineConditionalGradient().make(spec, Streams([0, 1])), data_of(loss, 30, 2)
    calls.clear()
    for z in data:
        agent.update(np.zeros(()), agent.act(np.zeros(())), z)
    assert calls == {"minimisations": 29}  # what the last round tells reaches no point


def test_late_data_are_anchored_where_they_were_taken():
    """Golden, by hand: a delay of one round. x_1 = x_2 = centre 0 of the ball of R^1; told z_1 = 1,
    slope -1 at x_1 = 0: J_1 = -x + x^2 / 2 is least at 1; told z_2 = 1 for x_2 = 0: J_2 = -2 x +
    x^2, least at 1; told z_3 = -1 for x_3 = 1, slope 2: J_3 = x^2 + (x - 1)^2 / 2, least at 1/3."""
    spec = spec_of(Quadratic(Ball(1)), 10, delay=1)
    agent, none = OnlineConditionalGradient().make(spec, Streams([0])), np.zeros(())
    points = []
    for taken, z in ((0.0, 1.0), (0.0, 1.0), (1.0, -1.0)):
        agent.update(none, np.array([[taken]]), np.array([[z]]))
        points.append(agent.act(none)[0, 0])
    assert points == pytest.approx([1.0, 1.0, 1 / 3])


def test_it_promises_nothing_and_refuses_what_it_cannot_play():
    spec = spec_of(Quadratic(Ball(2)), 10)
    assert certify(OnlineConditionalGradient(), spec, accountants=False).epsilon == np.inf
    with pytest.raises(InputError, match="curvature=0"):
        OnlineConditionalGradient(curvature=0)
    with pytest.raises(InputError, match="learns from feedback='datum'"):
        OnlineConditionalGradient().make(ConvexSpec(loss=Linear(Ball(2)), horizon=9), Streams([0]))
