"""Settings as people write them: KEY=VALUE."""

import re
from collections.abc import Iterable
from typing import Any

from dpbandit.base.inputs import InputError


def parse_settings(texts: Iterable[str] | None) -> dict[str, Any]:
    """KEY=VALUE texts as a dictionary; raises `InputError` where one is malformed or said twice."""
    pairs = [parse_setting(text) for text in texts or ()]
    keys = [key for key, _ in pairs]
    for key in keys:
        if keys.count(key) > 1:
            raise InputError(f"Expected {key} once, got it {keys.count(key)} times.")
    return dict(pairs)


def parse_setting(text: str) -> tuple[str, Any]:
    """KEY=VALUE, the value a number, true, false, none, a word, or several of them, [1,2].

    >>> parse_setting("refresh_every=50"), parse_setting("alpha=theory")
    (('refresh_every', 50), ('alpha', 'theory'))
    >>> parse_setting("prices=[1,1.5]"), parse_setting("attributes=[canon,video]")
    (('prices', [1, 1.5]), ('attributes', ['canon', 'video']))
    """
    key, equals, value = text.partition("=")
    if re.fullmatch(r"\[[^\[\],=]+(,[^\[\],=]+)*\]", value):
        return key, [_one(part.strip()) for part in value[1:-1].split(",")]
    if re.fullmatch(r"[^,=]+(,\w+=[^,=]+)+", value):
        raise InputError(f"Expected one KEY=VALUE in each --set, got {text!r}.")
    if not (key and equals and value):
        raise InputError(f"Expected KEY=VALUE, got {text!r}.")
    return key, _one(value)


def _one(value: str) -> Any:
    """A number, a word, or what a word stands for."""
    words = {"true": True, "false": False, "none": None}
    if value.lower() in words:
        return words[value.lower()]
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value
