"""Checks of the exercises: `check("1.1", best_price)` says right, or gives a hint.

For authors of labs. The checks of lab N are in `lab_NN.py` of this package, which `check` imports
by the number before the dot::

    CHECKS: Checks = {
        "1.1": [
            (lambda best_price: 1 < best_price < 2, "One of the twelve, in dollars."),
            (lambda best_price: abs(best_price - 1.69) < 0.001, "Which regret is 0?"),
        ],
        "1.7": "says what a shop loses that never explores.",
    }

* An exercise has rows (test, hint). The first test that is false, or raises, prints its hint. The
  parameters of the first test are the names of the answers, in the order of the call.
* A test is as tolerant as the exercise needs, for instance `median < 50`, and as narrow as other
  seeds allow; it looks up nothing in the notebook, so it computes again what it compares with.
* A test that is false is repeated with `plain` answers: the entry of a list of one, the number in
  "1.69", the letter in " C". Other types that a test does not take have a row with a hint.
* A hint says where to look. Neither hints nor the notebook without solutions may have a number
  that passes as the answer: `tests/experiments/test_labs.py` tries them all.
* An exercise that is answered in words has a string in place of rows: what a good answer does. The
  notebook calls `check("1.7")`, which prints it; a person has to read the answer.
* A choice names every option in its exercise, as its answer is a letter of the text.

Solutions and checks are installed with the package. This keeps a student from reading them in the
notebook, not from cheating.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from typing import Any, NamedTuple

import numpy as np

Test = Callable[..., Any]
"""Function of a student's answers that returns a true value if they are right"""
Checks = Mapping[str, Sequence[tuple[Test, str]] | str]
"""Tests of each exercise with their hints, or what a good answer in words does"""


YES, NO, WORDS = "yes", "no", "words"


class Outcome(NamedTuple):
    """Result of a check: the exercise, whether its answer is right, and a sentence.

    `right` is yes, no, words if a person has to read the answer, or empty if there is none yet.
    """

    exercise: str
    right: str
    sentence: str


listeners: list[Callable[[Outcome], str | None]] = []
"""Functions that get the outcome of each check; their strings follow its sentence."""


def check(exercise: str, *answers: Any) -> None:
    """Print whether the answers to an exercise are right, or a hint; never raise.

    >>> check("1.1", "the highest")
    1.1: not yet. It is one of the twelve prices, in dollars, neither the lowest nor the highest.
    >>> check("1.1", ...)
    1.1: no answer yet: give `best_price` a value in a cell above.
    >>> check("1.99", 3)
    1.99: no such exercise; lab 1 has 1.1 to 1.5.
    """
    outcome = outcome_of(str(exercise), answers)
    notes = [note for listener in listeners if (note := listener(outcome))]
    print(f"{outcome.exercise}: {' '.join([outcome.sentence, *notes])}")


def outcome_of(exercise: str, answers: Sequence[Any]) -> Outcome:
    """Return the outcome of a check, without printing it."""
    known = checks_of(exercise.partition(".")[0])
    if exercise not in known:
        first, last = ([*known] or ["none"])[0], ([*known] or ["none"])[-1]
        where = f"lab {first.partition('.')[0]} has {first} to {last}" if known else "no such lab"
        return Outcome(exercise, "", f"no such exercise; {where}.")
    rows = known[exercise]
    if isinstance(rows, str):
        return Outcome(exercise, WORDS, f"in words, for a person to read. A good answer {rows}")
    names = answer_names(exercise)
    if len(answers) != len(names):
        call = f"`check({exercise!r}, {', '.join(names)})`"
        return Outcome(exercise, "", f"expected {call}, got {len(answers)} answers.")
    for name, answer in zip(names, answers, strict=True):
        if answer is ...:
            return Outcome(exercise, "", f"no answer yet: give `{name}` a value in a cell above.")
    for test, hint in rows:
        if not (_holds(test, answers) or _holds(test, answers, plain)):
            return Outcome(exercise, NO, f"not yet. {hint}")
    return Outcome(exercise, YES, "right.")


def checks_of(lab: str | int) -> Checks:
    """Return the checks of a lab by its number, empty if there is no such lab."""
    number = str(lab)
    name = f"{__name__}.lab_{int(number):02d}" if number.isascii() and number.isdigit() else ""
    return import_module(name).CHECKS if name and find_spec(name) else {}


def answer_names(exercise: str) -> tuple[str, ...]:
    """Return the names of an exercise's answers, none if it is answered in words."""
    rows = checks_of(exercise.partition(".")[0])[exercise]
    return () if isinstance(rows, str) else tuple(signature(rows[0][0]).parameters)


def plain(answer: Any) -> Any:
    """Return the entry of a list or array of one, and a number or lower-case letters for text.

    >>> [plain(answer) for answer in ([1.69], "1,200", " C", [1, 2])]
    [1.69, 1200.0, 'c', [1, 2]]
    """
    if isinstance(answer, list | tuple | set | frozenset) and len(answer) == 1:
        (answer,) = answer
    if isinstance(answer, np.ndarray) and answer.size == 1:
        answer = answer.item()
    if isinstance(answer, str):
        letters = answer.strip().lower()
        try:
            answer = float(letters.removeprefix("$").replace(",", ""))
        except ValueError:
            answer = letters
    return answer


def _holds(test: Test, answers: Sequence[Any], form: Callable[[Any], Any] | None = None) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return bool(test(*(map(form, answers) if form else answers)))
    except Exception:  # an answer may be anything
        return False
