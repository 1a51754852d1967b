"""A ledger that does not name what is called: told by everything that plays."""

import numpy as np
import pytest

from dpbandit import InputError, audit, compare
from dpbandit.agents import FADE
from dpbandit.base.random_streams import Streams
from dpbandit.clients import Player, record
from dpbandit.offline import replay
from dpbandit.privacy.batches import LocalValues
from dpbandit.privacy.fading import FadingSum
from dpbandit.privacy.ledger import Ledger, Sequential
from dpbandit.privacy.mechanism import LedgerCheck, logged_calls
from dpbandit.privacy.moments import ClippedVectors
from dpbandit.privacy.notion import Notion, Trust
from dpbandit.privacy.pure import PureSpend
from dpbandit.privacy.spends import Expiring, Parallel
from dpbandit.specs.protocols import ContextualSpec
from tests.broken.ledgers import HONEST, LIARS, Bookkeeper, mechanism
from tests.clients.worlds import Coins
from tests.each import refused


def compared(with_ledger, env="Recommendation", **more):
    agents, how = (
        {"mine": Bookkeeper(with_ledger=with_ledger)},
        {"horizon": 60, "replicas": 2},
    )
    return compare(env, agents, **how, progress=False, **more)


def looped(with_ledger):
    player = Player(Bookkeeper(with_ledger=with_ledger), Coins(), horizon=60, reward_range=(0, 1))
    for _ in range(60):
        player.update(0, player.act(0), 1.0)


def replayed(with_ledger):
    logged = record("GLMBandit", horizon=200, env_kwargs={"n_actions": 2})
    replay(Bookkeeper(with_ledger=with_ledger), logged, passes=1)


def delayed(with_ledger):
    """Nobody is heard in the first seven rounds."""
    compared(with_ledger, "GLMBandit", env_kwargs={"delay": 7})


@pytest.mark.parametrize("name", LIARS)
def test_whatever_plays_tells_what_a_ledger_leaves_out(name):
    """Each is certified by `certify`, which believes its ledger, with an epsilon of 0.6 or less."""
    with_ledger, why = LIARS[name]
    for played in (compared, looped, replayed, delayed):
        with pytest.raises(InputError, match=f"the ledger of Bookkeeper.*{why}") as told:
            played(with_ledger)
        sentence = str(told.value)
        assert "'local laplace values'" in sentence or "'parallel over disjoint rounds'" in sentence
    spec = ContextualSpec(n_actions=2, dim=1, horizon=45)
    refused(why, audit, Bookkeeper(with_ledger=with_ledger), spec, runs=400, progress=False)


@pytest.mark.smoke
@pytest.mark.parametrize("with_ledger", HONEST)
def test_honest_ledgers_pass(with_ledger):
    """Mechanisms side by side, opened as users come, behind another mechanism; who promises
    nothing."""
    for played in (compared, looped, replayed, delayed):
        played(with_ledger)


ALONE = np.ones(1)


def balanced(ledger, *mechanisms, users=1, datum=ALONE):
    with logged_calls() as call_log:
        for one in mechanisms:
            one(datum)
    LedgerCheck("Mine", ledger, call_log).check(users)


def test_a_ledger_promises_no_more_trust_than_its_mechanisms_can_keep():
    """A local message may be added up, at the server, too; a sum at the server is no message."""
    streams, batches = Streams([0]), {"ends": [2], "horizon": 9, "fade": 0.0}
    sums = FadingSum(ClippedVectors(1), streams, **batches, noise_multiplier=1.0)
    values, other = LocalValues(streams, low=0, high=1, noise_multiplier=2), PureSpend.of("", [1.0])
    for trust in ("local", "central"):
        balanced(Ledger((values.spend, other), Notion(trust=Trust(trust))), values)
    with pytest.raises(InputError, match="trust=central, got"):
        balanced(
            Ledger((sums.spend, other), Notion(trust=Trust("aggregated"))),
            sums,
            datum=np.ones((1, 1)),
        )


def test_sums_of_spends_may_stand_in_a_ledger_part_by_part():
    """A spend is found whole, as parts, or in `Parallel`; mechanisms pay for their own parts."""
    one, two = mechanism(Streams([0])), mechanism(Streams([1]))
    a, b = PureSpend.of("a", [0.1]), PureSpend.of("b", [0.2])
    one.spend = two.spend = both = Sequential((a, Sequential((b,), "rest")), "both")
    for spends in ((both,), (a, b), (Parallel((both,)),)):
        balanced(Ledger(spends), one)
        refused(r"'both'|disjoint rounds", balanced, Ledger(spends), one, two)
    balanced(Ledger((both, b, a)), one, two)
    for spends in ((a,), (b, b), (Parallel((a, b)),)):
        refused("'both', which it calls", balanced, Ledger(spends), one)


def test_parallel_entries_pay_for_their_number_and_what_expires_is_named_as_such():
    """Two such entries: a user may be heard by one mechanism of each. What costs nothing needs no
    entry."""
    one, two, three = (mechanism(Streams([i])) for i in range(3))
    entry, plain = Parallel((one.spend,)), one.spend
    balanced(Ledger((entry, entry)), one, two)
    balanced(Ledger((entry,)), one, two, users=2)
    with pytest.raises(InputError, match="hear no user twice, got 3 calls for 1 users"):
        balanced(Ledger((entry, entry)), one, two, three)
    with (
        logged_calls() as call_log
    ):  # three that share every second user, and one that hears her twice
        for made in (one, two, three):
            made(ALONE)
        call_log.count_users(1)
        call_log.count_users(1)
        with pytest.raises(InputError, match=r"hear no user twice, got .* all for one user"):
            LedgerCheck("Mine", Ledger((entry, entry)), call_log).check(2)
    with logged_calls() as call_log:
        one(ALONE), one(ALONE)
        call_log.count_users(1)
        call_log.count_users(1)
        with pytest.raises(InputError, match=r"hear no user twice, got .* twice for one user"):
            LedgerCheck("Mine", Ledger((entry, entry)), call_log).check(2)
    one.spend, two.spend = Expiring(plain, 7), PureSpend.of("no draws", [])
    balanced(Ledger(), two)
    balanced(Ledger((one.spend,), Notion(window=7)), one)
    refused("each user for 7 rounds", balanced, Ledger((plain,)), one)


class ForgetsTheCentre(FADE):
    """Rewards less a centre of their own sums, which are a twenty-fifth of the budget."""

    def make(self, spec, streams):
        agent = super().make(spec, streams)
        if self.centring == "private":
            agent.ledger = agent.inner.ledger
        return agent


def test_wrappers_pay_for_what_they_add():
    played = {"horizon": 120, "replicas": 2, "progress": False}
    compare("Recommendation", {"mine": FADE(centring="private")}, **played)
    sentence = r"ForgetsTheCentre to name 'fading sum, .*which it calls"
    with pytest.raises(InputError, match=sentence):
        compare("Recommendation", {"mine": ForgetsTheCentre(centring="private")}, **played)
