"""What used to be spelt otherwise still works, says how it is spelt now, and is the same agent."""

import subprocess
import sys
import warnings
from dataclasses import fields

import pytest

import dpbandit
from dpbandit.agents import AGENTS, DPHDBChoices, DPMoments, Priced
from dpbandit.agents.contextual.demand import PRICED
from dpbandit.agents.old_spellings import OLD, OldSpelling
from dpbandit.base.inputs import InputError
from dpbandit.running.settings import parse_agent


@pytest.mark.parametrize(("row", "now"), OLD.items(), ids=str)
def test_every_old_word_in_python_and_on_the_command_line(row, now):
    """A row of the table whose new spelling is not accepted, or an agent without an entry."""
    agent, key, value = row
    kind = AGENTS[agent if now == PRICED else now]
    takes = key in {field.name for field in fields(kind)}
    expected = kind(**{key: value}) if takes else kind()
    expected = Priced(expected) if now == PRICED else expected
    with pytest.warns(OldSpelling, match=f"{key}='{value}'.* is spelt .* now") as seen:
        assert AGENTS[agent](**{key: value}) == expected
    assert seen[0].filename == __file__
    with pytest.warns(OldSpelling, match=f"{agent}:{key}={value} is spelt .* now"):
        assert parse_agent(f"{agent}:{key}={value}") == expected


def test_the_old_name_of_a_mistake_is_the_new_one():
    with pytest.warns(DeprecationWarning, match="BadInput is called InputError now"):
        assert dpbandit.BadInput is InputError


def test_old_words_that_go_together():
    """Two old words, one of which is a setting now; settings that said what was so anyhow; two
    that are different agents."""
    words = (
        "dp-hdb:calibration=paper:selection=laplace:bound=exact",
        "dp-ucb:statistics=moment:alpha=0",
    )
    with pytest.warns(OldSpelling):
        choices, moments = map(parse_agent, words)
    assert choices == DPHDBChoices(calibration="paper", selection="laplace", bound="exact")
    assert moments == DPMoments()
    with pytest.raises(InputError, match="dp-moments and shariff-sheffet-ucb: they are different"):
        parse_agent("dp-ucb:statistics=moment:noise=wishart")


def test_new_words_are_silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for agent, name in AGENTS.items():
            assert parse_agent(agent) == name()
        assert parse_agent("priced:LinUCB:alpha=2:explore=7", epsilon=1.0) == Priced(
            AGENTS["linucb"](alpha=2.0), explore=7
        )
        assert parse_agent("priced:dp-ucb", epsilon=3.0).epsilon == 3.0


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("linucb:model=demnd", "setting of linucb='model' to be one of"),
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


def test_the_command_line_says_it_once_on_stderr():
    """Nothing but the sentence: no file and line of ours, and the output is as ever."""
    line = [
        "compare",
        "OJPricing",
        "--agents",
        "linucb:model=demand",
        "--horizon",
        "2",
        "--replicas",
        "1",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "dpbandit", *line], capture_output=True, text=True, check=True
    )
    assert done.stderr == (
        "dpbandit: linucb:model=demand is spelt priced:linucb now: the old spelling goes after the "
        "next release.\n"
    )
    assert "linucb:model=demand" in done.stdout
