"""Agents for people who return: memory is hers alone, capping, posteriors, reference numbers."""

from dataclasses import replace
from itertools import product
from math import inf, sqrt

import numpy as np
import pytest

from dpbandit import certify, play
from dpbandit.agents import (
    DPUCB,
    FADE,
    LDPETC,
    Guard,
    LinUCB,
    MemoryAlone,
    MixedEffects,
    PerPerson,
    PersonalFADE,
    PersonalPricing,
    Priced,
)
from dpbandit.agents.people.per_person import Turnstile
from dpbandit.agents.people.personal import (
    Population,
    directions,
    expected_counts,
    expected_memories,
    gain_of,
)
from dpbandit.base import Streams
from dpbandit.envs import ReturningUsers
from dpbandit.privacy import SignedDirections, Visits
from dpbandit.privacy.mechanism import PersonalMemory
from dpbandit.privacy.person_sums import PersonSum
from dpbandit.specs import ContextualSpec, ReturningSpec
from dpbandit.testing.checks import check_joint_dp
from tests.broken.people import BROKEN
from tests.each import by_rota, each, refused
from tests.harness import PEOPLE, SHOPPERS


def sums(counted, *, cap=2, apart=1, epsilon=inf, ends=(3, 6), horizon=9, honest=1.0):
    statistic, visits = SignedDirections(n_actions=1, dim=1), Visits(cap, apart)
    target = {"epsilon": epsilon, "delta": 1e-5, "honest": honest}
    told = {"people": 3, "visits": visits, "counted": counted, "ends": ends, "horizon": horizon}
    return PersonSum(statistic, Streams([0]), **told, **target)


def released(mechanism, people, said=None):
    """Exact sums of visits that say 1, or what is told."""
    arm, releases = np.zeros(1, np.int64), []
    for i, r in zip(people, said or [1.0] * len(people), strict=True):
        releases.append(mechanism(np.array([i]), np.ones((1, 1)), arm, np.array([r])))
    return [release.item() for release in releases if release is not None]


def test_what_counts():
    """By hand: first visits ever, of a batch, or k of them b slots apart; nobody is 0. The latest
    of all who have come, each once, and what is no number is none. A turnstile admits her at most
    k times, b apart, whoever else comes; what is not finite is not kept, and a person's number is
    all that opens her memory."""
    people = [0, 0, 1, 0, 1, -1, 0, 0, 0]
    assert released(sums("latest"), people) == [2, 2]
    assert released(sums("latest"), [0, -1, 7, 2, 2, 1]) == [1, 3]
    said = [1.0, 1.0, -1.0, -1.0, np.nan, 1.0]
    assert released(sums("latest"), [0, 0, 0, 0, 0, 1], said) == [-1, 1]
    assert released(sums("first"), people) == [2, 0]
    assert released(sums("batch"), people) == [2, 2]
    assert released(sums("batch", cap=1), people) == [2, 0]
    assert released(sums("visits"), people) == [3, 1]
    assert released(sums("visits", apart=3), people) == [2, 1]
    assert released(sums("first"), [7, -1, 0]) == [1]
    for others in ([1] * 7, [-1] * 7):
        gate = Turnstile(2, 3, Visits(2, 3))
        told = [gate.admits(np.array([0, other]))[0] for other in others]
        assert told == [True, False, False, True, False, False, False]
    memory = PersonalMemory(2, people=3, shape=(2,))
    memory.add(np.array([0, -1]), np.ones((2, 2)))
    memory.add(np.array([1, 1]), np.full((2, 2), np.nan))
    assert memory.of(np.array([0, 2])).tolist() == [[1, 1], [0, 0]]
    assert memory.everybody().sum() == 2


def test_no_two_people_are_further_apart():
    """2 S / stddev is the mu of the claim, and no legal pattern of 8 slots moves the releases, in
    noises, by more; one is nearly that bad. All that she may say in four slots, 1, -1 or nothing,
    against all that another may: the two farthest are exactly as far apart as is paid for. A sum
    that pays for one release is caught."""
    legal = [pattern for pattern in product((0, -1), repeat=8) if pattern.count(0) <= 5]
    lives = list(product((0, 1, -1), repeat=4))
    for counted, S in (("latest", sqrt(2)), ("first", 1), ("batch", sqrt(2)), ("visits", sqrt(15))):
        mechanism = sums(counted, cap=5, epsilon=1.0)
        assert 2 * S / mechanism.stddev == pytest.approx(mechanism.spend.mu, rel=1e-12)
        moves = [np.linalg.norm(released(sums(counted, cap=5), slots)) for slots in legal]
        assert 1.1 * S < 2 * max(moves) <= 2 * S * (1 + 1e-12)
        found = []
        for life in lives:
            mechanism = sums(counted, cap=5, ends=(2, 3), horizon=4)
            found.append(released(mechanism, [-(r == 0) for r in life], [float(r) for r in life]))
        apart = np.linalg.norm(np.array(found)[:, None] - found, axis=2).max()
        assert apart == pytest.approx(2 * mechanism.person_norm)


@pytest.mark.parametrize("name", BROKEN)
def test_leaks_between_people_are_seen(name):
    """Memory that a neighbour reads, a clock that stops, a cap that is everybody's, and none."""
    with pytest.raises(
        AssertionError,
        match=r"no other round|mechanisms only|to be public|at most \d times|their sensitivity",
    ):
        check_joint_dp(BROKEN[name], PEOPLE, range(0, 24, 3), replicas=1)


def test_the_population_is_found_without_noise():
    """Of many people's first visits, by a model that is right; quadrature against draws."""
    rng = np.random.default_rng(0)
    d, K, s = 4, 3, 0.6
    theta = np.array([1.0, 0, 0, 0])
    law = directions(d, K, s)
    x = rng.standard_normal((200_000, K, d))
    x /= np.linalg.norm(x, axis=2, keepdims=True)
    t = (x @ theta).max(axis=1)
    assert law.along == pytest.approx((t**2).mean(), rel=0.01)
    model = Population(1, d, K, counts=[50_000.0, 50_000.0], stddev=0.0, spread=s)
    for batch in range(2):
        rows = x[batch * 50_000 : (batch + 1) * 50_000]
        pick = (rows @ model.mean[0]).argmax(axis=1) if batch else np.zeros(50_000, int)
        chosen = rows[np.arange(50_000), pick]
        r = chosen @ theta + s * rng.standard_normal(50_000)
        before = np.trace(model._moved[0])
        model.learn((np.sign(r)[:, None] * chosen).sum(axis=0)[None])
        kappa = directions(d, K if batch else 1, s).kappa  # tr xx' is 1, of whoever is chosen
        assert np.trace(model._moved[0]) - before == pytest.approx(d * 50_000 * kappa)
    assert np.abs(model.mean[0] - theta).max() < 0.04
    expected = expected_counts((50, 150), counted="batch", people=10, horizon=200, robin=False)
    assert expected == pytest.approx([10 * (1 - 0.75**20), 10 * (1 - 0.5**20)])


def test_directions_of_memories_point_to_the_population():
    """Statistical: 3,000 people (replicas) with three visits, rows at random: theta_0 to 0.13 and
    `gain` to 0.05, some six standard errors each."""
    rng, d, s, R = np.random.default_rng(3), 4, 0.5, 3000
    theta = np.array([0.6, 0.0, 0.8, 0.0])
    visit = ContextualSpec(n_actions=2, dim=d, horizon=9, shared=True)
    spec = ReturningSpec(visit=visit, people=2, visits=Visits(9), horizon=18)
    agent = PersonalFADE(tastes=0.0).make(spec, Streams(range(R)))
    she = np.zeros(R, np.int64)
    for _ in range(3):
        x = rng.standard_normal((R, d))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        r = x @ theta + s * rng.standard_normal(R)
        told = np.concatenate([x[:, :, None] * x[:, None], (r[:, None] * x)[:, None]], axis=1)
        agent.memories.add(she, told)
    u = agent.estimate_of(she)
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    model = Population(1, d, 1, counts=[float(R)], stddev=0.0, spread=s, gains=[1.0])
    model.learn(u.sum(axis=0)[None])
    assert np.abs(model.mean[0] / np.linalg.norm(model.mean[0]) - theta).max() < 0.13
    assert (u @ theta).mean() == pytest.approx(gain_of(3, d, noise=s, tastes=0.0), abs=0.05)


def test_memories_are_expected_as_they_come():
    """Statistical: how many of 100 people have come by some slot, and how often, in 200 draws of
    their order, to 3 %: seven standard errors or more."""
    rng, tastes = np.random.default_rng(0), {"noise": 0.5, "tastes": 0.5}
    gains = np.array([0, *(gain_of(v, 3, **tastes) for v in range(1, 9))])
    for end in (30, 150, 300):
        drawn = [rng.permutation(np.repeat(np.arange(100), 4))[:end] for _ in range(200)]
        often = np.stack([np.bincount(slots, minlength=100) for slots in drawn])
        world = {"people": 100, "horizon": 400, "robin": False, **tastes}
        (counts,), (gain,) = expected_memories((end,), dim=3, **world)
        assert counts == pytest.approx((often > 0).sum(axis=1).mean(), rel=0.03)
        assert gain == pytest.approx(gains[often].sum() / (often > 0).sum(), rel=0.03)


def test_clicks_are_measured_from_a_fair_coin():
    """Played again is what was clicked two times of three; what was clicked once of three is worse
    than a row of zeros, which earns 1/2. Without the 1/2 it is played again, too."""
    visit = ContextualSpec(n_actions=2, dim=1, horizon=10, shared=True, link="logistic")
    spec = ReturningSpec(visit=visit, people=1, visits=Visits(10), horizon=10)
    shown = spec.context(np.array([0]), np.array([[[1.0], [0.0]]]))
    for config in (MemoryAlone(), MixedEffects(pooled=True, first_batch=1)):
        for clicks in ((1.0, 1.0, 0.0), (1.0, 0.0, 0.0)):
            agent = config.make(spec, Streams([0]))
            for click in clicks:
                agent.update(shown, np.array([0]), np.array([click]))
            assert agent.act(shown) == [0 if sum(clicks) == 2 else 1]


def test_told_of_everybody_the_agent_plays_itself():
    """Oracle, without noise: `agent` alone, where each person comes once. It learns."""
    spec, fade = replace(PEOPLE, people=24, visits=Visits(1)), FADE(epsilon=inf, first_batch=2)
    alone = fade.make(spec.visit, Streams([0, 1]))
    mine, rng, played = PerPerson(fade).make(spec, Streams([0, 1])), np.random.default_rng(0), []
    for person in range(24):
        x, r = rng.standard_normal((2, 3, 2)) / 3, rng.uniform(-0.5, 1.0, 2)
        shown = spec.context(np.full(2, person), x)
        arms = alone.act(x)
        np.testing.assert_array_equal(mine.act(shown), arms)
        alone.update(x, arms, r)
        mine.update(shown, arms, r)
        played.append(arms)
    assert np.ptp(played[-8:]) > 0


def test_certificates_say_who_is_protected():
    """A person, in `brief` and in the notion; what needs no mechanism is free, group privacy is
    exact. The promise is of the honest half; of all who add noise there is sqrt(2) as much."""
    every, spec = PersonalFADE(counted="visits"), ReturningUsers().spec
    guarded = PerPerson(Guard(FADE()))
    for config in (PersonalFADE(), every, PerPerson(FADE()), PerPerson(FADE(), told=1), guarded):
        proof = certify(config, spec, accountants=False)
        assert (round(proof.epsilon, 6), proof.ledger.brief) == (1.0, "person, 20 rounds")
        assert "replace one person, of at most 20 rounds, which may move" in str(proof.notion)
    for config, world, epsilon in (
        (MemoryAlone(), spec, 0),
        (MixedEffects(), spec, inf),
        (PerPerson(LinUCB()), spec, inf),
        (PersonalPricing(), SHOPPERS, 1.0),
        (PersonalPricing(memory=False), SHOPPERS, 1.0),
        (PersonalPricing(epsilon=inf), SHOPPERS, inf),
        (PersonalPricing(population="survey"), SHOPPERS, 0.0),
        (PersonalPricing(population="guess", memory=False), SHOPPERS, 0.0),
    ):
        assert certify(config, world, accountants=False).epsilon == pytest.approx(epsilon)
    sure, half = (
        certify(PersonalFADE(trust="aggregated", honest=h), PEOPLE, accountants=False)
        for h in (1.0, 0.5)
    )
    assert sure.ledger.brief == "person, 3 rounds, aggregated"
    assert half.ledger.brief == sure.ledger.brief + ", 50 % of slots honest"
    assert sure.mu == half.mu
    noisy = sums("first", epsilon=1.0, honest=0.5).stddev
    assert noisy == pytest.approx(sqrt(2) * sums("first", epsilon=1.0).stddev)


@each(
    ("config", "sentence"),
    [
        (lambda: PerPerson(PerPerson(FADE())), "for single rounds"),
        (lambda: PersonalFADE(counted="last"), "counted='last'"),
        (lambda: PersonalFADE(noise=0.0), "noise=0.0"),
        (lambda: PersonalFADE(trust="local"), "trust='local'"),
        (lambda: PersonalFADE(honest=0.5), "trust='aggregated'"),
        (lambda: sums("first", epsilon=1.0, honest=4.0), "honest=4.0"),
        (lambda: PersonalFADE(counted="latest", memory=False), "'latest' with a memory"),
        (lambda: PerPerson(FADE(), told=0), "told=0"),
        (
            lambda: PerPerson(FADE(epsilon=1e-40)).make(PEOPLE, Streams([0])),
            "epsilon=1e-40 .* rounds of a person an epsilon above 0",
        ),
        (lambda: PerPerson(LDPETC()).make(PEOPLE, Streams([0])), "list of prices"),
        (lambda: PerPerson(Priced(DPUCB())).make(PEOPLE, Streams([0])), "price"),
        (lambda: FADE().make(PEOPLE, Streams([0])), "PerPerson|plays"),
    ],
)
def test_mistakes_get_one_sentence(config, sentence):
    refused(sentence, config)


REFERENCE = {
    "mixed effects": (MixedEffects(), {}, 430, 2),
    "pooled": (MixedEffects(pooled=True), {}, 460, 2),
    "personal only": (MemoryAlone(), {}, 2254, 6),
    "population only": (PersonalFADE(memory=False), {}, 1238, 56),
    "first visit": (PersonalFADE(counted="first"), {}, 1038, 38),
    "once a batch": (PersonalFADE(counted="batch"), {}, 1025, 31),
    "every visit": (PersonalFADE(counted="visits"), {}, 1751, 50),
    "100 people": (PersonalFADE(counted="first"), {"people": 100, "visits": 100}, 909, 21),
}


@pytest.mark.parametrize("name", by_rota(REFERENCE, 4))
def test_regret_is_that_of_an_independent_program(name):
    """Within 4 combined standard errors; 8 replicas, T = 10,000. False alarm 1 % for all; an
    agent that forgets its memory, or reads noise of the wrong size, is seen in "100 people"."""
    config, world, mean, error = REFERENCE[name]
    log = play(ReturningUsers(**world), config, range(1000, 1008), marks=np.array([10_000]))
    spread = log.regret[-1].std(ddof=1) / sqrt(8)
    assert abs(log.regret[-1].mean() - mean) < 4 * np.hypot(spread, error)


TWO_VISITORS = np.array([2, -1])
"""Whoever comes in two replicas; nobody in the second"""


def visits(agent, actions, sales, person=TWO_VISITORS):
    """Feed her visits, with the same rivals each time; returns their context."""
    visit = SHOPPERS.visit
    offers = np.array([[[1.0, 2.0], [0.0, 1.0]]] * 2)
    context = SHOPPERS.context(person, visit.context_of(offers))
    for k, sold in zip(actions, sales, strict=True):
        agent.update(context, np.array([k, k]), np.array([visit.margins[k] * sold] * 2))
    return context


def by_hand(agent, actions, sales):
    """log P(what she did) at each point, a logit of three offers."""
    a, slope = agent.theta[0, :, 0], np.exp(agent.theta[0, :, 1])
    theirs, total = np.exp(a - 2 * slope) + np.exp(-slope), 0.0
    for k, sold in zip(actions, sales, strict=True):
        ours = np.exp(a - slope * SHOPPERS.visit.prices[k])
        total += np.log((ours if sold else theirs) / (ours + theirs))
    return total


def test_what_is_remembered_by_hand():
    """Of three visits, of which the fourth is beyond the cap; anew after a release has moved the
    points; nothing of nobody. A sign, a price or a visit too few would show."""
    actions, sales = [0, 2, 1], [1, 0, 1]
    agent = PersonalPricing(epsilon=inf, particles=8, first_batch=2).make(SHOPPERS, Streams([0, 1]))
    before = agent.theta.copy()
    visits(agent, [*actions, 0], [*sales, 0])
    assert agent.batch == 1
    assert np.abs(agent.theta[0] - before[0]).max() > 0.01
    of_visitor, nobody = (
        agent.remembered(who)[0, :8] for who in (TWO_VISITORS, -TWO_VISITORS[::-1])
    )
    assert of_visitor == pytest.approx(by_hand(agent, actions, sales), abs=1e-9)
    assert nobody == pytest.approx(np.zeros(8), abs=1e-9)
    survey = PersonalPricing(population="survey", particles=8).make(SHOPPERS, Streams([0, 1]))
    context = visits(survey, actions, sales)
    of_visitor = by_hand(survey, actions, sales)
    assert survey.remembered(TWO_VISITORS)[0, :8] == pytest.approx(of_visitor)
    weights = np.exp(of_visitor) / np.exp(of_visitor).sum()
    offers = SHOPPERS.visit.offers(SHOPPERS.visit_context(context))
    earned = SHOPPERS.visit.margins * (weights @ survey.visit.sales(survey.theta, offers)[0])
    assert survey.act(context)[0] == earned.argmax()


def test_a_release_moves_the_population_if_it_is_longer_than_its_noise():
    """By hand, D = 2: a release of (a, (A - I) / 2), off-diagonals times sqrt(2), without noise; a
    release shorter than its noise moves nothing."""
    exact, noisy = (
        PersonalPricing(epsilon=e, particles=8, first_batch=2).make(SHOPPERS, Streams([0]))
        for e in (inf, 1.0)
    )
    a, A = np.array([0.2, -0.1]), np.array([[1.5, 0.3], [0.3, 0.8]])
    told = np.concatenate([a, [0.25, 0.15 * 2**0.5, -0.1]])[None]
    exact.learn(exact.counts[0] * told)
    assert exact.mean[0].tolist() == pytest.approx([0.4, -0.2])  # the guess has stddev 2
    cov = exact.root[0] @ exact.root[0].T
    np.testing.assert_allclose(cov, 4 * (A - np.outer(a, a)), atol=1e-9)
    noisy.learn(told)
    assert noisy.mean.tolist() == [[0, 0]]
    np.testing.assert_allclose(noisy.root[0], 2 * np.eye(2), atol=1e-9)
