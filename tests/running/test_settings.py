"""What people write for an agent is the agent they mean, or one sentence."""

import warnings

import pytest

from dpbandit.agents import AGENTS, DPHDB, DPUCB, DPHDBChoices, Guard, Priced, ShariffSheffetUCB
from dpbandit.base.inputs import InputError
from dpbandit.running.settings import parse_agent
from dpbandit.studies import Sweep
from dpbandit.studies.sweeps import plan
from tests.each import each


def test_a_papers_name_as_printed_is_the_papers_algorithm():
    """In Python, in words, behind other words and in a sweep, silently. It would catch the word
    going to our own algorithm, whose noise is another, and a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        printed = ShariffSheffetUCB(calibration="paper", noise="wishart", epsilon=0.5)
        assert DPUCB(calibration="paper", noise="wishart", epsilon=0.5) == printed
        assert parse_agent("DP_UCB:calibration=paper:noise=wishart", epsilon=0.5) == printed
        assert parse_agent("guarded:priced:dp-ucb:calibration=paper") == Guard(
            Priced(ShariffSheffetUCB(calibration="paper"))
        )
        choices = DPHDBChoices(calibration="paper", bound="exact")
        assert DPHDB(calibration="paper", bound="exact") == choices
        assert parse_agent("dp-hdb:calibration=paper:bound=exact") == choices
        sweep = Sweep.of(
            {
                "environments": [{"id": "OJPricing"}],
                "agents": [{"id": "dp-ucb", "grid": {"calibration": ["paper", "certified"]}}],
                "epsilons": [1.0],
                "horizons": [50],
                "replicas": 2,
            }
        )
        played = {one.name: one.config for one in plan(sweep).configurations}
        assert played["dp-ucb calibration=paper"] == ShariffSheffetUCB(calibration="paper")
        assert played["dp-ucb calibration=certified"] == DPUCB()


def test_every_id_is_silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for agent, kind in AGENTS.items():
            assert parse_agent(agent) == kind()
        assert parse_agent("priced:LinUCB:alpha=2:explore=7", epsilon=1.0) == Priced(
            AGENTS["linucb"](alpha=2.0), explore=7
        )
        assert parse_agent("priced:dp-ucb", epsilon=3.0).epsilon == 3.0


@each(
    ("text", "sentence"),
    [
        ("linucb:model=demand", "setting of linucb='model' to be one of"),
        ("dp-ubc", r"agent='dp-ubc' \(did you mean dp-ucb\?\)"),
        ("dp-hdb:calibration=papr", r"calibration='papr' \(did you mean paper\?\)"),
        ("dp-ucb:noise=wishart", r"setting of dp-ucb='noise' .* calibration"),
        ("dp-ucb:calibration=paper:shift=2", "setting of shariff-sheffet-ucb='shift'"),
        ("priced:linucb:features=all", "one of additive, interactions"),
        ("priced:linucb:turns=1", "setting of priced:linucb='turns'.*, features, explore"),
        ("priced:", "an agent behind per-person:, guarded"),
        ("my_module:MyAgent", "Cannot import 'my_module' of agent"),
        ("priced:dp-hdb:subset_gap=0.5", "subset_gap=0.5 to be inf for a model of demand"),
    ],
)
def test_wrong_words_get_one_sentence(text, sentence):
    with pytest.raises(InputError, match=sentence):
        parse_agent(text)


def test_settings_of_our_own_algorithm_are_none_of_the_papers():
    with pytest.raises(InputError, match="without shift: it makes a ShariffSheffetUCB"):
        DPUCB(calibration="paper", shift=2.0)
