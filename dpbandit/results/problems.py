"""Tell problems apart by what they are, and name them by what differs."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np

from dpbandit.base import InputError, plain

_TABLE = re.compile(r"\w+ \([\d, ]*\) ([0-9a-f]{32})")
"""An array or a data frame, as `as_words` describes it"""
_FEW = 8
"""Numbers of an array that are said as they are"""
_SHORT = 6
"""Digits of a hash in a label"""
_LONGEST = 40
"""Letters of an argument in a label that has to tell problems apart"""
_MOST = 8
"""Problems that a sentence lists"""


@dataclass(frozen=True, kw_only=True)
class Setup:
    """The problem of a run, and the seed of its users."""

    environment: str
    env_kwargs: Mapping[str, Any]
    """arguments of the environment, `horizon` among them"""
    horizon: int
    seed: int
    reward_unit: str
    problem: str
    """what to call environment and arguments, without the horizon"""

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of the environment without `horizon`."""
        return _without_horizon(self.env_kwargs)

    def facts(self) -> dict[str, Any]:
        """Return all of it, arrays and tables by their hash, for files and hashes."""
        return {**vars(self), "env_kwargs": as_words(self.env_kwargs)}


def as_words(value: Any) -> Any:
    """Describe an argument for results: size and hash of arrays and data frames.

    NumPy's scalars are Python's, an array of few numbers is a list. Arrays of equal numbers are
    equal, however they lie in memory.
    """
    if isinstance(value, Mapping):
        return {key: as_words(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_words(item) for item in value]
    if is_number(value):
        return value.item()
    if isinstance(value, np.ndarray) and value.size <= _FEW and value.dtype.kind in "biuf":
        return value.tolist()
    if hasattr(value, "shape"):
        from joblib import hash as digest  # not before: slow to import

        content = np.ascontiguousarray(value) if isinstance(value, np.ndarray) else value
        return f"{type(value).__name__} {tuple(value.shape)} {digest(content)}"
    return value


def is_number(value: Any) -> bool:
    """Whether it is a scalar of NumPy, or an array without axes, which is no table."""
    return isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0)


def identity(setup: Setup) -> str:
    """What a problem is: its environment and arguments, and the label that somebody chose for it.

    A study may play one problem twice under two labels. Horizon and seed are not part of it, nor is
    the label that a problem has by itself, which leaves out tables.
    """
    arguments = _text(as_words(setup.arguments))
    return " ".join([_stem(setup), short_id(setup.environment), arguments])


def short_id(environment: str) -> str:
    """Leave "dpbandit/" and "-v0" out of an id.

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
    """Name each problem, by its `identity`, by the shortest label that tells all of them apart.

    A problem alone is called as it was said. Where several have an environment, or a label, in
    common, they are called by the arguments that differ, tables by the first digits of their hash.
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
    """The environment; or a label that somebody chose, which says more than the arguments."""
    name, left = short_id(setup.environment), f"{setup.problem} "
    for word in _argument_words(setup.env_kwargs):
        left = left.replace(f" {word} ", " ", 1)
    return name if left == f"{name} " else setup.problem


def _apart(stem: str, some: Mapping[str, Setup]) -> dict[str, str]:
    """Labels of problems with a stem in common: the stem, and which arguments differ."""
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
        key: " ".join([stem, *(f"{k}={_brief(own[k])}" for k in varied if k in own)])
        for key, own in by_problem.items()
    }


def _without_horizon(env_kwargs: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in env_kwargs.items() if key != "horizon"}


def _text(value: Any, there: bool = True) -> str:
    return json.dumps(plain(value), sort_keys=True, default=repr) if there else ""


def _is_table(value: Any) -> bool:
    """Of what `as_words` makes."""
    if isinstance(value, list):
        return any(map(_is_table, value))
    return isinstance(value, Mapping) or bool(isinstance(value, str) and _TABLE.fullmatch(value))


def _brief(value: Any) -> str:
    """An argument in a label: a table, or what is as long as one, by its hash."""
    if isinstance(value, str):
        table = _TABLE.fullmatch(value)
        return f"table:{table[1][:_SHORT]}" if table else value
    text = str(value)
    return text if len(text) <= _LONGEST else f"{type(value).__name__}:{_hash(_text(value))}"


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:_SHORT]


def several(
    setups: Iterable[Setup], how: str = "choose with where(problem=..., horizon=..., seed=...)"
) -> InputError:
    """The refusal of several problems, horizons or seeds where one is needed; it lists them."""
    there = list(setups)
    many = len({(identity(one), one.horizon, one.seed) for one in there})
    return InputError(f"Expected runs on one problem, got {many}, {listed(there)}: {how}.")


def listed(setups: Iterable[Setup]) -> str:
    """Problems, horizons and seeds in words, the first few of many."""
    every = list(setups)
    names = labels(every)
    there = sorted({(names[identity(one)], one.horizon, one.seed) for one in every})
    several_seeds = len({seed for *_, seed in there}) > 1
    labelled = [
        f"{name} for {horizon:,} rounds" + (f" from seed {seed}" if several_seeds else "")
        for name, horizon, seed in there[:_MOST]
    ]
    more = f"; and {len(there) - _MOST} more" if len(there) > _MOST else ""
    return "; ".join(labelled) + more
