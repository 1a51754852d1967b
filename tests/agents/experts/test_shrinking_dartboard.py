"""The private shrinking dartboard: its bits, its plans, and its whole transcript by enumeration."""

from functools import partial
from itertools import product
from math import exp, expm1, inf, log, log1p

import numpy as np
import pytest

from dpbandit.agents.experts.shrinking_dartboard import DartboardPlan, steepest
from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.choices.redraw_bits import RedrawBit, bit_epsilon, redraw_probability
from dpbandit.privacy.mechanism import BudgetExceededError


def test_bits_have_the_law_they_are_paid_for():
    """Statistical: 200,000 coins for each of four losses, 5 standard errors (false alarm 3e-6 in
    all); 2 % off in the keep probability is 10 of them or more. Golden: keep with
    (1 - 0.1) e^(-0.5 l), NaN counts as 0, 7 as 1."""
    R, calls = 200, 1000
    for loss, shrunk in ((0.0, 1.0), (0.5, exp(-0.25)), (7.0, exp(-0.5)), (np.nan, 1.0)):
        bit = RedrawBit(Streams(range(R)), "bits", rate=0.5, probability=0.1, uses=calls)
        losses, here = np.full(R, loss), np.full(R, True)
        redraws = np.mean([bit(losses, here) for _ in range(calls)])
        keep = 0.9 * shrunk
        error = (keep * (1 - keep) / (R * calls)) ** 0.5
        assert abs(redraws - (1 - keep)) < 5 * error < 0.0103 * keep


def test_bits_that_are_not_asked_for_and_bits_too_many():
    bit = RedrawBit(Streams([0, 1]), "bits", rate=inf, probability=0.0, uses=1)
    assert bit(np.ones(2), np.array([True, False])).tolist() == [True, False]
    with pytest.raises(BudgetExceededError):
        bit(np.ones(2), np.array([True, True]))
    with pytest.raises(InputError, match=r"shape \(1,\) to be \(2,\)"):
        bit.query(np.ones(1))


@pytest.mark.parametrize(("rate", "p"), [(0.1, 0.05), (0.02, 0.3), (1.0, 0.01), (0.3, 0.9)])
def test_the_price_of_a_bit_is_its_worst_log_ratio(rate, p):
    """Oracle: both outcomes for losses 0 and 1; and the least p for a price pays it exactly."""
    keeps = [(1 - p) * exp(-rate * loss) for loss in (0, 1)]
    worst = max(log(keeps[0] / keeps[1]), log((1 - keeps[1]) / (1 - keeps[0])))
    assert bit_epsilon(rate, p) == pytest.approx(worst)
    price = log1p((1 - p) * -expm1(-rate) / p)
    assert redraw_probability(rate, price) == pytest.approx(p)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize(("d", "T", "epsilon"), [(3, 100, 0.5), (16, 1000, 1.0), (256, 5000, 10.0)])
def test_plans_spend_their_target_and_no_more(d, T, epsilon, delta):
    """And steeper ones, by 1 %, no longer meet it."""
    plan = steepest(d, T, epsilon=epsilon, delta=delta)
    assert plan.rate <= plan.bit_epsilon < epsilon
    assert plan.ledger.delta(epsilon) <= delta
    assert (
        DartboardPlan(1.01 * plan.rate, plan.bit_epsilon, plan.redraws).ledger.delta(epsilon)
        > delta
    )


def test_more_draws_are_allowed_for_where_the_best_expert_errs():
    calm, rough = (steepest(16, 1000, epsilon=1.0, delta=0.0, best_loss=b) for b in (0.0, 900.0))
    assert rough.redraws > calm.redraws
    assert rough.rate < calm.rate


def transcripts(losses, plan, keep=None, soft=True):
    """The law of (first expert, then for each round: kept, or whom was drawn), by multiplication.

    `keep` (a loss -> probability) replaces the proper one; without `soft` draws are uniform.
    """
    T, d = losses.shape
    p = plan.probability
    keep = keep or (lambda loss: (1 - p) * exp(-plan.rate * loss))
    law = {((x,), x, 0): 1 / d for x in range(d)}
    for t in range(1, T):
        total = losses[:t].sum(axis=0)
        weights = np.exp(-plan.rate * total * soft)
        weights /= weights.sum()
        new = {}
        for (seen, x, used), mass in law.items():
            if used == plan.redraws:
                new[(*seen, None), x, used] = mass
                continue
            stays = keep(losses[t - 1, x])
            new[(*seen, None), x, used] = mass * stays
            for y in range(d):
                new[(*seen, y), y, used + 1] = mass * (1 - stays) * weights[y]
        law = new
    return law


def worst_ratio(plan, law, T=4, d=2):
    """The largest log-ratio of a transcript over all 0/1 streams and one replaced round."""
    streams = [np.array(s, float).reshape(T, d) for s in product((0, 1), repeat=T * d)]
    laws = {stream.tobytes(): law(stream, plan) for stream in streams}
    worst = 0.0
    for stream in streams:
        for i in range(T - 1):
            for other in product((0.0, 1.0), repeat=d):
                swapped = stream.copy()
                swapped[i] = other
                one, two = laws[stream.tobytes()], laws[swapped.tobytes()]
                worst = max(worst, *(log(one[key] / two[key]) for key in one))
    return worst


def test_no_transcript_gives_away_more_than_the_ledger_says():
    """Oracle: every transcript of T = 4 rounds, d = 2, K = 1, under all streams of zeros and ones.
    The ledger's pure epsilon is eps_bit + 2 h K. Power: a sixth of p, four times the rate in the
    bit, or a cap that does not hold all exceed it."""
    plan = DartboardPlan(rate=0.3, bit_epsilon=0.4, redraws=1)
    promised = plan.ledger.pure
    assert promised == pytest.approx(1.0)
    assert 0.6 * promised < worst_ratio(plan, transcripts) <= promised
    p, h = plan.probability, plan.rate
    for mutant in (
        lambda loss: (1 - p / 6) * exp(-h * loss),
        lambda loss: (1 - p) * exp(-4 * h * loss),
    ):
        assert worst_ratio(plan, partial(transcripts, keep=mutant)) > promised
    endless = DartboardPlan(plan.rate, plan.bit_epsilon, redraws=3)
    assert worst_ratio(endless, transcripts) > promised


def test_without_a_cap_the_expert_has_hedges_law():
    """Exact identity, fractions among the losses: P(x_t = i) = softmax(-h S_{t-1}) to rounding.
    Power: uniform draws do not have it."""
    losses = np.array([[0.3, 1.0, 0.0], [0.0, 0.9, 1.0], [1.0, 0.2, 0.6], [0.0, 0.0, 0.0]])
    plan = DartboardPlan(rate=0.8, bit_epsilon=1.2, redraws=3)
    hedge = np.exp(-0.8 * losses[:3].sum(axis=0))
    for soft in (True, False):
        marginal = np.zeros(3)
        for (_, x, _), mass in transcripts(losses, plan, soft=soft).items():
            marginal[x] += mass
        same = np.allclose(marginal, hedge / hedge.sum(), rtol=0, atol=1e-14)
        assert same == soft
