"""`play` takes what `compare` takes, and is the same run."""

import numpy as np
import pytest

from dpbandit import InputError, compare, play
from dpbandit.agents import FADE
from dpbandit.envs import GLMBandit
from dpbandit.results.runs import log_marks
from tests.each import each

HOW = {"horizon": 30, "env_kwargs": {"dim": 3}}


def test_every_form_is_the_run_of_a_comparison():
    """By functions whose forms tests/running/test_given.py goes through."""
    run = compare("GLMBandit", "fade:epsilon=2", replicas=2, progress=False, **HOW).runs[0]
    for env, agent, how in (
        ("GLMBandit", FADE(epsilon=2.0), HOW),
        (GLMBandit(horizon=30, dim=3), "fade:epsilon=2", {}),
    ):
        log = play(env, agent, [(0, 0), (0, 1)], **how)
        np.testing.assert_array_equal(log.regret, run.regret)
        np.testing.assert_array_equal(log_marks(30), run.marks)


def test_marks_are_rounds_however_they_are_written():
    some, every = (play("GLMBandit", "fade", marks=m, **HOW) for m in ([10, 30], None))
    np.testing.assert_array_equal(some.regret, every.regret[[9, 29]])


@each(
    ("call", "sentence"),
    [
        (lambda: play("GLMBandit", "fade", 5), "seeds=5 to be several, such as range"),
        (lambda: play("GLMBandit", "fade", []), "at least one seed"),
        (lambda: play("GLMBandit", "fade", marks=9), "marks=9 to be rounds, such as"),
        (lambda: play("GLMBandit", "fade", marks=[0.5]), "to be rounds"),
        (lambda: play("GLMBandit", "fade", marks=[9, 3]), "marks=.9, 3. to increase from 1"),
        (lambda: play("GLMBandit", "best-fixed", **HOW), "needs an answer to play"),
        (lambda: play(GLMBandit(), "fade", horizon=5), "with an environment, got a problem"),
        (
            lambda: play("fade", "GLMBandit"),
            "the environment 'GLMBandit': certify and audit are told the agent",
        ),
        (lambda: play(3, "fade"), "Expected env=3 to be an id"),
        (lambda: play("GLMBandit", FADE), r"to be a config, such as FADE\(\)"),
    ],
)
def test_what_cannot_be_played(call, sentence):
    with pytest.raises(InputError, match=sentence):
        call()
