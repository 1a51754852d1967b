"""Agents for people who return: memory is hers alone, capping, the posterior, reference numbers."""

from itertools import product
from math import inf, sqrt

import numpy as np
import pytest

from dpbandit import InputError, certify, play
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
from dpbandit.base.random_streams import Streams
from dpbandit.envs import ReturningUsers
from dpbandit.privacy.fading import PersonSum
from dpbandit.privacy.ledger import Visits
from dpbandit.privacy.mechanism import PersonalMemory
from dpbandit.privacy.residuals import SignedDirections
from dpbandit.specs.lists import ReturningSpec
from dpbandit.specs.protocols import ContextualSpec
from dpbandit.testing.checks import check_joint_dp
from tests.broken.people import BROKEN
from tests.harness import PEOPLE


def sums(counted, *, cap=2, apart=1, epsilon=inf, ends=(3, 6), horizon=9, honest=1.0):
    return PersonSum(
        SignedDirections(n_actions=1, dim=1),
        Streams([0]),
        people=3,
        visits=Visits(cap, apart),
        counted=counted,
        ends=ends,
        horizon=horizon,
        epsilon=epsilon,
        delta=1e-5,
        honest=honest,
    )


def released(mechanism, people):
    """Exact sums of visits that all say 1."""
    arm = np.zeros(1, np.int64)
    fed = [mechanism(np.array([i]), np.ones((1, 1)), arm, np.ones(1)) for i in people]
    return [release.item() for release in fed if release is not None]


def test_what_counts():
    """By hand: first visits ever, of a batch, or k of them b slots apart; nobody is 0. The latest
    of all who have come, each once, and what is no number is none."""
    people = [0, 0, 1, 0, 1, -1, 0, 0, 0]
    assert released(sums("latest"), people) == [2, 2]
    assert released(sums("latest"), [0, -1, 7, 2, 2, 1]) == [1, 3]
    said, mechanism, arm = (
        [1.0, 1.0, -1.0, -1.0, np.nan, 1.0],
        sums("latest"),
        np.zeros(1, np.int64),
    )
    fed = [
        mechanism(arm + (t > 4), np.ones((1, 1)), arm, np.array([r])) for t, r in enumerate(said)
    ]
    assert [fed[2].item(), fed[5].item()] == [-1, 1]
    assert released(sums("first"), people) == [2, 0]
    assert released(sums("batch"), people) == [2, 2]
    assert released(sums("batch", cap=1), people) == [2, 0]
    assert released(sums("visits"), people) == [3, 1]
    assert released(sums("visits", apart=3), people) == [2, 1]
    assert released(sums("first"), [7, -1, 0]) == [1]


def test_a_person_is_paid_for():
    """2 S / stddev is the mu of the claim, and no legal pattern of slots moves the releases, in
    noises, by more: all of them for a horizon of 8, and one is nearly that bad."""
    legal = [pattern for pattern in product((0, -1), repeat=8) if pattern.count(0) <= 5]
    for counted, S in (("latest", sqrt(2)), ("first", 1), ("batch", sqrt(2)), ("visits", sqrt(15))):
        mechanism = sums(counted, cap=5, epsilon=1.0)
        assert 2 * S / mechanism.stddev == pytest.approx(mechanism.spend.mu, rel=1e-12)
        moves = [np.linalg.norm(released(sums(counted, cap=5), slots)) for slots in legal]
        assert 1.1 * S < 2 * max(moves) <= 2 * S * (1 + 1e-12)


def test_no_two_people_are_further_apart():
    """All that she may say in four slots, 1, -1 or nothing, against all that another may: the two
    farthest are exactly as far apart as is paid for. A sum that pays for one release is caught."""
    arm, lives = np.zeros(1, np.int64), list(product((0, 1, -1), repeat=4))
    for counted in ("latest", "first", "batch", "visits"):
        found = []
        for life in lives:
            mechanism = sums(counted, cap=5, ends=(2, 3), horizon=4)
            fed = [mechanism(arm - (r == 0), np.ones((1, 1)), arm, arm + r) for r in life]
            found.append([release.item() for release in fed if release is not None])
        apart = np.linalg.norm(np.array(found)[:, None] - found, axis=2).max()
        assert apart == pytest.approx(2 * mechanism.person_norm)


def test_half_of_the_devices_carry_the_noise():
    """The promise is of the honest half; of all who add noise there is sqrt(2) as much."""
    (all_honest, half) = (
        certify(PersonalFADE(trust="aggregated", honest=h), PEOPLE, accountants=False)
        for h in (1.0, 0.5)
    )
    assert (all_honest.ledger.brief, half.ledger.brief) == (
        "person, 3 rounds, aggregated",
        "person, 3 rounds, aggregated, 50 % honest",
    )
    assert all_honest.mu == half.mu
    assert sums("first", epsilon=1.0, honest=0.5).stddev == pytest.approx(
        sqrt(2) * sums("first", epsilon=1.0).stddev
    )


def test_the_turnstile():
    """By hand: at most k times, b apart, nobody never; others' visits change nothing."""
    for others in ([1] * 7, [-1] * 7):
        gate = Turnstile(2, 3, Visits(2, 3))
        told = [gate.admits(np.array([0, other]))[0] for other in others]
        assert told == [True, False, False, True, False, False, False]


def test_memory_is_read_by_nobody_else():
    """What is not finite is not kept; a person's number is all that opens it."""
    memory = PersonalMemory(2, people=3, shape=(2,))
    memory.add(np.array([0, -1]), np.ones((2, 2)))
    memory.add(np.array([1, 1]), np.full((2, 2), np.nan))
    assert memory.of(np.array([0, 2])).tolist() == [[1, 1], [0, 0]]
    assert memory.everybody().sum() == 2


@pytest.mark.parametrize("name", BROKEN)
def test_leaks_between_people_are_seen(name):
    """Memory that a neighbour reads, a clock that stops, a cap that is everybody's."""
    with pytest.raises(
        AssertionError,
        match=r"no other round|mechanisms only|to be public|at most 1 times|their sensitivity",
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
        model.learn((np.sign(r)[:, None] * chosen).sum(axis=0)[None])
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
    u = agent.made_of(she)
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    model = Population(1, d, 1, counts=[float(R)], stddev=0.0, spread=s, gains=[1.0])
    model.learn(u.sum(axis=0)[None])
    assert np.abs(model.mean[0] / np.linalg.norm(model.mean[0]) - theta).max() < 0.13
    assert (u @ theta).mean() == pytest.approx(gain_of(3, d, noise=s, tastes=0.0), abs=0.05)


def test_memories_are_expected_as_they_come():
    """Statistical: how many of 100 people have come by some slot, and how often, in 200 draws of
    their order, to 3 %: seven standard errors or more."""
    rng, gains = (
        np.random.default_rng(0),
        [gain_of(v, 3, noise=0.5, tastes=0.5) for v in range(1, 9)],
    )
    world = {"people": 100, "horizon": 400, "robin": False, "noise": 0.5, "tastes": 0.5}
    for end in (30, 150, 300):
        drawn = [rng.permutation(np.repeat(np.arange(100), 4))[:end] for _ in range(200)]
        often = np.stack([np.bincount(slots, minlength=100) for slots in drawn])
        (counts,), (gain,) = expected_memories((end,), dim=3, **world)
        assert counts == pytest.approx((often > 0).sum(axis=1).mean(), rel=0.03)
        assert gain == pytest.approx(
            np.array([0, *gains])[often].sum() / (often > 0).sum(), rel=0.03
        )


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


def test_certificates_say_who_is_protected():
    """A person, in `brief` and in the notion; memory alone is free, group privacy is exact."""
    spec = ReturningUsers().spec
    every = PersonalFADE(counted="visits")
    for config in (
        PersonalFADE(),
        every,
        PerPerson(FADE()),
        PerPerson(FADE(), told=1),
        PerPerson(Guard(FADE())),
    ):
        proof = certify(config, spec, accountants=False)
        assert (round(proof.epsilon, 6), proof.ledger.brief) == (1.0, "person, 20 rounds")
        assert "replace one person, of at most 20 rounds, which may move" in proof.notion
    assert certify(MemoryAlone(), spec, accountants=False).epsilon == 0
    assert (
        certify(MixedEffects(), spec, accountants=False).epsilon
        == certify(PerPerson(LinUCB()), spec, accountants=False).epsilon
        == inf
    )


def test_mistakes_get_one_sentence():
    for config, sentence in (
        (lambda: PerPerson(PerPerson(FADE())), "for single rounds"),
        (lambda: PersonalFADE(counted="last"), "counted='last'"),
        (lambda: PersonalFADE(noise=0.0), "noise=0.0"),
        (lambda: PersonalFADE(trust="local"), "trust='local'"),
        (lambda: PersonalFADE(honest=0.5), "trust='aggregated'"),
        (lambda: PersonalFADE(counted="latest", memory=False), "'latest' with a memory"),
        (lambda: PerPerson(FADE(), told=0), "told=0"),
        (lambda: PerPerson(LDPETC()).make(PEOPLE, Streams([0])), "list of prices"),
        (lambda: PerPerson(Priced(DPUCB())).make(PEOPLE, Streams([0])), "price"),
        (lambda: FADE().make(PEOPLE, Streams([0])), "PerPerson|plays"),
    ):
        with pytest.raises(InputError, match=sentence):
            config()


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


@pytest.mark.slow
def test_regret_is_that_of_an_independent_program():
    """Within 4 combined standard errors; 8 replicas, T = 10,000. False alarm 1 % for all; an
    agent that forgets its memory, or reads noise of the wrong size, is seen in "100 people"."""
    for name, (config, world, mean, error) in REFERENCE.items():
        log = play(ReturningUsers(**world), config, range(1000, 1008), marks=np.array([10_000]))
        regret = log.regret[-1]
        own = regret.std(ddof=1) / sqrt(8)
        assert abs(regret.mean() - mean) < 4 * np.hypot(own, error), (name, regret.mean(), own)
