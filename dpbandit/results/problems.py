"""Comparison of the problems of runs, and labels of problems by arguments in which they differ."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np

from dpbandit.base import InputError, plain

_TABLE_PATTERN = re.compile(r"\w+ \([\d, ]*\) ([0-9a-f]{32})")
"""Pattern of the text with which `as_words` describes an array or a data frame."""
_MAX_LISTED_NUMBERS = 8
"""Largest size of an array that results contain as a list of numbers, not as a hash."""
_HASH_DIGITS = 6
"""Number of digits of a hash in a label."""
_MAX_ARGUMENT_LETTERS = 40
"""Largest number of letters of an argument in a label; a longer one is replaced by its hash."""
_MAX_LISTED_PROBLEMS = 8
"""Largest number of problems that a message lists."""


@dataclass(frozen=True, kw_only=True)
class Setup:
    """Problem of a run, and the seed of its users."""

    environment: str
    env_kwargs: Mapping[str, Any]
    """arguments of the environment, including `horizon`"""
    horizon: int
    seed: int
    reward_unit: str
    problem: str
    """label of the problem, made of environment and arguments without the horizon"""

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of the environment without `horizon`."""
        return _without_horizon(self.env_kwargs)

    def facts(self) -> dict[str, Any]:
        """Return all fields as plain values for files, with hashes for arrays and tables."""
        return {**vars(self), "env_kwargs": as_words(self.env_kwargs)}


def as_words(value: Any) -> Any:
    """Convert an argument to plain values for results; tables become type, shape and hash.

    NumPy's scalars become Python's, arrays of at most 8 numbers lists. Arrays of equal numbers
    have equal hashes, whatever their memory layout.
    """
    if isinstance(value, Mapping):
        return {key: as_words(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_words(item) for item in value]
    if is_number(value):
        return value.item()
    few = isinstance(value, np.ndarray) and value.size <= _MAX_LISTED_NUMBERS
    if few and value.dtype.kind in "biuf":
        return value.tolist()
    if hasattr(value, "shape"):
        from joblib import hash as digest  # not before: slow to import

        content = np.ascontiguousarray(value) if isinstance(value, np.ndarray) else value
        return f"{type(value).__name__} {tuple(value.shape)} {digest(content)}"
    return value


def is_number(value: Any) -> bool:
    """Return True for a NumPy scalar or an array without axes."""
    return isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0)


def identity(setup: Setup) -> str:
    """Return text that identifies a problem: environment, arguments and a user's label for it.

    A study may play one problem twice under two labels. The text has no horizon and seed, and no
    label that was made from the arguments.
    """
    arguments = _text(as_words(setup.arguments))
    return " ".join([_stem(setup), short_id(setup.environment), arguments])


def short_id(environment: str) -> str:
    """Return the id of an environment without "dpbandit/" and "-v0".

    >>> short_id("dpbandit/OJPricing-v0"), short_id("shops:Kiosk")
    ('OJPricing', 'shops:Kiosk')
    """
    return environment.removeprefix("dpbandit/").removesuffix("-v0")


def label_of(name: str, env_kwargs: Mapping[str, Any]) -> str:
    """Name a problem by its arguments, without horizon and tables.

    >>> label_of("GLMBandit", {"dim": np.int64(5), "horizon": 10, "prior": np.eye(3)})
    'GLMBandit dim=5'
    """
    return " ".join([name, *_argument_words(env_kwargs)])


def _argument_words(env_kwargs: Mapping[str, Any]) -> list[str]:
    words = as_words(_without_horizon(env_kwargs))
    return [f"{key}={value}" for key, value in words.items() if not _is_table(value)]


def labels(setups: Iterable[Setup]) -> dict[str, str]:
    """Return `identity` -> label for the problems of `setups`, a short label for each.

    Labels are distinct. A single problem keeps its `Setup.problem`. Problems that share environment
    or label are named by the arguments that differ; six digits of a hash stand for a table.
    """
    first: dict[str, Setup] = {}
    for setup in setups:
        first.setdefault(identity(setup), setup)
    groups: dict[str, list[str]] = {}
    for key, setup in first.items():
        groups.setdefault(_stem(setup), []).append(key)
    found: dict[str, str] = {}
    for stem, keys in groups.items():
        if len(keys) == 1:
            found[keys[0]] = first[keys[0]].problem
        else:
            found |= _apart(stem, {key: first[key] for key in keys})
    times = Counter(found.values())
    return {
        key: name if times[name] == 1 else f"{name} #{_hash(key)}" for key, name in found.items()
    }


def _stem(setup: Setup) -> str:
    """Return the label that a user chose for a problem, or else the environment's short id."""
    name, left = short_id(setup.environment), f"{setup.problem} "
    for word in _argument_words(setup.env_kwargs):
        left = left.replace(f" {word} ", " ", 1)
    return name if left == f"{name} " else setup.problem


def _apart(stem: str, some: Mapping[str, Setup]) -> dict[str, str]:
    """Return labels of problems, made of a common `stem` and the arguments that differ."""
    by_problem = {
        key: {"environment": short_id(setup.environment), **as_words(setup.arguments)}
        for key, setup in some.items()
    }
    names = dict.fromkeys(name for arguments in by_problem.values() for name in arguments)
    varied = [
        name
        for name in names
        if len({_text(arguments.get(name), name in arguments) for arguments in by_problem.values()})
        > 1
    ]
    return {
        key: " ".join([stem, *(f"{k}={_brief(arguments[k])}" for k in varied if k in arguments)])
        for key, arguments in by_problem.items()
    }


def _without_horizon(env_kwargs: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in env_kwargs.items() if key != "horizon"}


def _text(value: Any, there: bool = True) -> str:
    return json.dumps(plain(value), sort_keys=True, default=repr) if there else ""


def _is_table(value: Any) -> bool:
    """Return True if a value made by `as_words` describes a table, or holds one."""
    if isinstance(value, list):
        return any(map(_is_table, value))
    described = isinstance(value, str) and _TABLE_PATTERN.fullmatch(value)
    return isinstance(value, Mapping) or bool(described)


def _brief(value: Any) -> str:
    """Return an argument as text for a label; a hash replaces tables and texts above 40 letters."""
    if isinstance(value, str):
        table = _TABLE_PATTERN.fullmatch(value)
        return f"table:{table[1][:_HASH_DIGITS]}" if table else value
    text = str(value)
    if len(text) <= _MAX_ARGUMENT_LETTERS:
        return text
    return f"{type(value).__name__}:{_hash(_text(value))}"


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:_HASH_DIGITS]


def several_problems(
    setups: Iterable[Setup], how: str = "choose with where(problem=..., horizon=..., seed=...)"
) -> InputError:
    """Return the error that runs are on several problems, with a list of them."""
    there = list(setups)
    many = len({(identity(one), one.horizon, one.seed) for one in there})
    return InputError(f"Expected runs on one problem, got {many}, {listed(there)}: {how}.")


def listed(setups: Iterable[Setup]) -> str:
    """Describe problems with their horizons and seeds in words, at most eight of them."""
    every = list(setups)
    names = labels(every)
    there = sorted({(names[identity(one)], one.horizon, one.seed) for one in every})
    several_seeds = len({seed for *_, seed in there}) > 1
    labelled = [
        f"{name} for {horizon:,} rounds" + (f" from seed {seed}" if several_seeds else "")
        for name, horizon, seed in there[:_MAX_LISTED_PROBLEMS]
    ]
    hidden = len(there) - _MAX_LISTED_PROBLEMS
    more = f"; and {hidden} more" if hidden > 0 else ""
    return "; ".join(labelled) + more
