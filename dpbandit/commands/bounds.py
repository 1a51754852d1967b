"""Public bounds and lists as they are written on the command line."""

from collections.abc import Iterable
from typing import Any

from dpbandit.base.inputs import InputError


def features_of(texts: Iterable[str]) -> dict[str, list[Any]]:
    """Bounds of each feature, which is named once."""
    features: dict[str, list[Any]] = {}
    for name, bounds in map(_feature, texts):
        if name in features:
            raise InputError(f"Expected --feature {name} once, got it twice.")
        features[name] = bounds
    return features


def words_of(text: str) -> list[Any]:
    """What commas part; numbers where all are.

    >>> words_of("1, 2"), words_of("a,2")
    ([1.0, 2.0], ['a', '2'])
    """
    words = [word.strip() for word in text.split(",")]
    try:
        return [float(word) for word in words]
    except ValueError:
        return list(words)


def range_of(option: str, text: str) -> list[float]:
    """LOW:HIGH as numbers."""
    low, colon, high = text.partition(":")
    if not colon:
        raise InputError(f"Expected {option}={text!r} to be LOW:HIGH, such as 1:3.")
    return [_number(option, low), _number(option, high)]


def _feature(text: str) -> tuple[str, list[Any]]:
    """NAME=LOW:HIGH, or NAME=LEVEL,LEVEL,...; levels are numbers where all are."""
    name, equals, bounds = text.partition("=")
    if not (name and equals and bounds):
        raise InputError(
            f"Expected --feature {text!r} to be NAME=LOW:HIGH or NAME=LEVEL,LEVEL,...: a range "
            "read off the log would be data that no certificate covers."
        )
    if ":" in bounds and "," not in bounds:
        return name, range_of(f"--feature {name}", bounds)
    return name, words_of(bounds)


def _number(option: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"Expected {option} to have numbers, got {text!r}.") from None
