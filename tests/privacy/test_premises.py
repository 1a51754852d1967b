"""Premises of proofs, facts taken for public, are declared, provided, and held."""

import ast
import inspect
import re
from collections import deque
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

from dpbandit import InputError, certify, compare
from dpbandit.agents import FADE, AllocationTS, Guard, PerPerson
from dpbandit.agents.contextual import fade as fade_module
from dpbandit.base import reached
from dpbandit.base.random_streams import Streams
from dpbandit.clients import Player
from dpbandit.envs import Arms, ReturningUsers, TwoArms
from dpbandit.privacy.ledger import Ledger
from dpbandit.privacy.mechanism import CallLog, logged_calls, overheard
from dpbandit.privacy.notion import Visits
from dpbandit.privacy.premises import ALL_FACTS, Fact, Hearing
from dpbandit.privacy.spends import Parallel, Repeated
from dpbandit.specs import Bounds
from dpbandit.specs.contract import made_agent
from dpbandit.specs.premises import provided
from dpbandit.specs.protocols import ArmsSpec, ContextualSpec, Step
from dpbandit.specs.selling import PriceListSpec
from dpbandit.testing import check_agent
from dpbandit.testing.checks import (
    billboard_differences,
    check_blind,
    check_sensitivity,
    two_worlds,
)
from tests.broken import premises
from tests.broken.audited import ByTheSign, PlaysTheSign
from tests.broken.ledgers import mechanism
from tests.clients.worlds import Coins

SPEC = ContextualSpec(n_actions=3, dim=2, horizon=40)
ROOT = Path(inspect.getfile(Guard)).parents[2]
GAUSSIAN = {"epsilon": 3.0, "delta": 0.4, "first": 1.0}
"""Settings of allocation-ts with Gaussian noise, which `Guard` and `PerPerson` need."""


def returning(pattern):
    spec = ReturningUsers(horizon=200).spec
    return replace(spec, visits=Visits(3, 2, pattern))


@pytest.mark.parametrize("name", premises.REFUSED)
def test_undeclared_and_false_declarations_are_refused(name):
    """All functions that make agents refuse them, with the class and where to read on."""
    config, why = premises.REFUSED[name]
    made = (
        lambda: certify(config, SPEC),
        lambda: compare("GLMBandit", {"mine": config}, horizon=30, replicas=1, progress=False),
        lambda: Player(config, Coins(), horizon=60, reward_range=(0, 1)),
        lambda: check_agent(config, SPEC),
    )
    for make in made:
        with pytest.raises(InputError, match=why) as told:
            make()
        assert name in ("words", "a property") or "docs/howto/agent.md" in str(told.value)


@pytest.mark.parametrize("config", [premises.Opens, premises.OpensWarm])
def test_what_is_opened_later_is_held_at_its_first_call(config):
    """Also where a mechanism was called while the agent was made."""
    with logged_calls() as call_log:
        agent = made_agent(config(kind=premises.Inherits), SPEC, Streams([0]))
        context, arm = np.ones((1, 2)), np.zeros(1, np.int64)
        for _ in range(9):
            agent.update(context, arm, np.ones(1))
        with pytest.raises(InputError, match=f"Inherits of {config.__name__} to declare"):
            agent.update(context, arm, np.ones(1))
    assert len(call_log.calls) == 1
    assert check_agent(premises.Opens(kind=premises.FadingSum), replace(SPEC, horizon=12))


def test_break_1_and_2_are_refused_and_what_is_sound_beside_them_is_not():
    """A null round told as the first arm, and a veto that reads contexts, reach exact counts."""
    bare = AllocationTS(**GAUSSIAN)
    for config, spec, why in [
        (PerPerson(bare, told=1), returning("private"), "whether anybody came.*a private pattern"),
        (Guard(bare, rate=1.0), SPEC, "which action was played.*Guard does not say so"),
        (PerPerson(Guard(bare), told=1), returning("public"), "which action.*Guard does not say"),
        (bare, replace(SPEC, masks="user"), "which action was played.*masks='user'"),
    ]:
        with pytest.raises(InputError, match=why) as told:
            certify(config, spec)
        assert "'Gaussian sums released by counts'" in str(told.value)
    for config, spec in [
        (PerPerson(bare, told=1), returning("public")),
        (Guard(bare), replace(Arms(horizon=400).spec, delay=3)),
        (Guard(bare), TwoArms(horizon=400).spec),
        (bare, replace(SPEC, masks="public")),
    ]:
        assert 0 < certify(config, spec, accountants=False).epsilon <= GAUSSIAN["epsilon"] + 1e-9


def test_a_guard_round_exact_counts_looks_at_no_constant_context():
    """The guard vetoes arms, and its vetoes do not depend on a replaced user, although her context
    is not the constant that the spec promises."""
    spec = ArmsSpec(n_actions=3, dim=1, horizon=300)
    config = Guard(AllocationTS(epsilon=3.0, delta=0.4, first=1.0), rate=5.0)
    vetoes = []
    with patch("dpbandit.agents.contextual.guard.SafetyNet.widths", _narrow):
        one, two, t = two_worlds(config, spec, (0, 60), replicas=2)
        agent = made_agent(config, spec, Streams([0]))
        for _ in range(spec.horizon):
            action = agent.act(np.ones((1, 1)))
            vetoes.append(
                int(agent.net.without_inferior(np.ones((1, 1)), np.zeros(1, np.int64))[0] != 0)
            )
            agent.update(np.ones((1, 1)), action, 1.0 * (action == 2))
    assert sum(vetoes) > 20
    assert not billboard_differences(one, two, t)
    step = Step(*np.full((4, 2), 0.5))
    with pytest.raises(InputError, match="contexts other than 1 in some coordinate"):
        Bounds(spec, replicas=2, rounds=9).see(np.full((2, 1), 1.5), step)


def _narrow(self, x):
    return np.full((len(x), self._plan.spec.n_actions), 1e-3)


def test_who_stands_around_has_to_say_what_it_hands_on():
    inner = AllocationTS(epsilon=1.0)
    for kind, why in [
        (premises.Passing, "Passing, which declares no hands_on"),
        (premises.Overrides, "Overrides, which declares no hands_on"),
        (premises.Vetoes, "which action was played.*Vetoes does not say so"),
        (premises.GivesBack, "which action was played.*GivesBack does not say so"),
    ]:
        with pytest.raises(InputError, match=why):
            certify(premises.Around(config=inner, kind=kind), SPEC)
    for kind, spec in [(premises.Declared, SPEC), (premises.GivesBack, Arms(horizon=90).spec)]:
        assert certify(premises.Around(config=inner, kind=kind), spec).epsilon < 1.1


@pytest.mark.parametrize("hide", premises.HIDING)
def test_what_is_held_is_found_wherever_it_is(hide):
    """Slots by one word and of private names, attributes of containers, methods of C."""
    inner = object()
    assert any(part is inner for _, part in reached(hide(inner)))
    assert any(part is inner for _, part in reached([hide(inner)]))


def test_a_price_in_turn_is_counted_whatever_was_asked():
    """FadeCurve behind a veto: its counts are of coins of its own. One that counts what it is
    told is refused, and if it says that it does not, the billboard names the argument."""
    spec = PriceListSpec(n_actions=2, dim=2, horizon=80, prices=(1.0, 2.0), reward_high=2.0)
    fade = FADE(epsilon=1.0, delta=0.2, model="prices", features="curve")
    config = premises.Around(config=fade, kind=premises.Vetoes)
    assert not billboard_differences(*two_worlds(config, spec, (0, 5), replicas=16))
    with patch.object(fade_module, "FadeCurve", premises.CountsWhatItIsTold):
        with pytest.raises(InputError, match=r"action was played.*Vetoes does not say so"):
            certify(config, spec)
        with patch.object(premises.CountsWhatItIsTold, "own_coins", ("_counts",), create=True):
            found = billboard_differences(*two_worlds(config, spec, (0, 5), replicas=16))
    assert "argument 2 of CountedSums, which its proof takes for public" in found


def test_controls_that_are_functions_of_data_are_named_by_the_billboard():
    one, two, t = two_worlds(premises.Making(kind=premises.DueByData), SPEC, (0, 5), replicas=8)
    found = billboard_differences(one, two, t)
    assert "argument 3 of CountedSums, which its proof takes for public" in found
    assert not any("argument 2" in words for words in found)


def test_no_call_of_a_mechanism_is_out_of_hearing():
    agents = {"mine": premises.Making(kind=premises.Elsewhere)}
    with pytest.raises(InputError, match=r"Expected Making to call 'fading .*' in the thread that"):
        compare("GLMBandit", agents, horizon=30, replicas=1, progress=False)
    with pytest.raises(InputError, match="Expected Loud to override _release, not __call__"):
        type("Loud", (premises.Inherits,), {"__call__": lambda self, *datum: self.query(*datum)})


def test_no_user_decides_which_of_two_mechanisms_is_told():
    """It moves no input of either further than it may, and both pay for one."""
    config = premises.Making(kind=premises.ChoosesASum)
    one, two, t = two_worlds(config, SPEC, range(5, 25), replicas=1)  # each chooses with 1/2
    with pytest.raises(AssertionError, match="replica not to decide which mechanism is told"):
        check_sensitivity(one, two, t)


def test_an_agent_that_says_it_is_blind_is_held_to_it():
    with pytest.raises(AssertionError, match="LooksAtTheContext, which is `blind`, to act alike"):
        check_blind(premises.LooksAtTheContext(first=0.1), SPEC)
    check_blind(AllocationTS(first=0.1), SPEC)
    with pytest.raises(AssertionError, match="PlaysTheSign, whose ledger says that it reads"):
        check_blind(ByTheSign(agent=PlaysTheSign), SPEC)
    with pytest.raises(InputError, match=r"which action was played.*LooksHonestly, which is not"):
        certify(LooksHonestly(first=0.1), SPEC)


class LooksHonestly(premises.LooksAtTheContext):
    """Subclass with an `act` of its own, to which `blind` of the base class does not apply."""

    def act(self, context):
        return super().act(context)


def test_no_problem_provides_everything_and_each_fact_is_lost_somewhere():
    arms, people = Arms(horizon=90).spec, returning("private")
    plain, masked = provided(SPEC), provided(replace(SPEC, masks="user"))
    followed = provided(PriceListSpec(n_actions=2, dim=1, horizon=9, prices=(1, 2), followed=True))
    assert ALL_FACTS - plain == {Fact.CELL, Fact.CONTEXT, Fact.PEOPLE, Fact.LOSS}
    assert provided(arms) - plain == {Fact.CONTEXT}
    assert plain - masked == {Fact.AS_CHOSEN}
    assert plain - followed == {Fact.WORLD}
    assert plain - provided(people) == {Fact.ONCE, Fact.PRESENCE}
    assert provided(people) - plain == {Fact.PEOPLE}


def test_rolls_know_which_users_a_mechanism_heard():
    """Users come one by one, or many at once, when two mechanisms may share them."""
    one, two, alone = mechanism(Streams([0])), mechanism(Streams([1])), np.ones(1)
    with logged_calls(CallLog()) as call_log:
        for heard in ([one], [two], [one], []):
            for made in heard:
                made(alone)
            call_log.count_users(1)
        for made in (one, one, two):
            made(alone)
        call_log.count_users(3)
    assert call_log.users == 7
    assert call_log.overlap([one, two]) == ""
    with logged_calls(call_log):
        for made in (one, one, two):
            made(alone)
        call_log.count_users(2)
    assert "both for one user" in call_log.overlap([one, two])
    assert call_log.overlap([one]) == call_log.overlap([two]) == ""
    with logged_calls(call_log):
        two(alone), two(alone)
        call_log.count_users(1)
    assert "twice for one user" in call_log.overlap([two])
    assert Parallel((one.spend,)).needs == {Hearing.APART}
    agent = made_agent(FADE(), SPEC, Streams([0]))
    (part,) = agent.ledger.spends
    assert Repeated(part, 3).needs == frozenset()
    assert Repeated(part, 3, 1.5).needs == {Hearing.EVERY}
    assert Ledger((part,)).mu == part.mu


def test_listeners_hear_blocks_as_blocks():
    agent, heard = made_agent(FADE(first_batch=20), SPEC, Streams([0])), deque()
    context = np.ones((agent.rounds_to_release, 1, 2))
    with overheard(lambda mechanism, datum, calls: heard.append((calls, len(datum[-1])))):
        agent.update(context, np.zeros((len(context), 1), np.int64), np.ones((len(context), 1)))
    assert list(heard) == [(len(context), len(context))]


def declarations():
    """Every class that declares `needs`: file, name, comment above, words of the module."""
    for folder in ("dpbandit", "agents"):
        for file in (ROOT / folder).rglob("*.py"):
            text = file.read_text()
            if "\n    needs = " not in text:
                continue
            tree = ast.parse(text)
            words = [
                part.value
                for part in ast.walk(tree)
                if isinstance(part, ast.Constant) and isinstance(part.value, str)
            ]
            prose = " ".join(" ".join(words).split())
            for node in tree.body:
                for part in node.body if isinstance(node, ast.ClassDef) else ():
                    if isinstance(part, ast.Assign) and ast.unparse(part.targets[0]) == "needs":
                        yield file, node.name, said_above(text.splitlines(), part.lineno), prose


def said_above(lines, place):
    """The comment that stands above a line."""
    words = []
    for line in reversed(lines[: place - 1]):
        if not line.strip().startswith("#"):
            break
        words.insert(0, line.strip()[1:])
    return " ".join(" ".join(words).split())


def test_every_declaration_repeats_the_sentence_of_its_proof():
    """The comment above each declaration quotes a sentence of a docstring in the same module."""
    found = list(declarations())
    assert len(found) > 50
    for file, name, comment, prose in found:
        quoted = re.findall(r'"([^"]+)"', comment)
        assert quoted, (file, name)
        assert quoted[0] in prose, (file, name, quoted[0])
