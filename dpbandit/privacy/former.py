"""Ledgers of format 1, which say in a sentence what they promise."""

from typing import Any

from dpbandit.base import made
from dpbandit.privacy.notion import (
    ALL,
    IN_FULL,
    LATER,
    NO_DATA,
    NO_PRIVACY,
    OWN_DATA,
    SHARING,
    Covered,
    Masking,
    Notion,
    Reads,
    Round,
    Trust,
    Visits,
)


def notion_in_words(values: dict[str, Any]) -> Notion:
    """The notion of a ledger of format 1, whose `scope` is a sentence."""
    said, _, masks = str(values["scope"]).partition("; which actions there are ")
    covered, reads = _SCOPES.get(said, (frozenset(), "mechanisms"))
    if values["slip"]:
        raise ValueError(f"Expected slip={values['slip']!r} of a ledger of format 1 to be 0.")
    if said not in _SCOPES or masks not in _MASKS:
        raise ValueError(f"Expected the scope of a ledger of format 1, got {values['scope']!r}.")
    visits, model, condition = values["visits"], values["trust"], values["condition"]
    shares = visits and model in SHARING
    return Notion(
        unit=made(Visits, visits) if visits else Round(),
        adjacency=values["adjacency"],
        covers=covered,
        reads=reads,
        contexts="public" if values["public_contexts"] else "private",
        masks=_MASKS[masks],
        trust=Trust(model, values["honest"], of="slots" if shares else "devices"),
        window=values["window"],
        conditions=tuple(condition.split("; ")) if condition else (),
    )


_SCOPES: dict[str, tuple[frozenset[Covered], Reads]] = {
    "joint DP under continual observation, {} one user's round": (LATER, "mechanisms"),
    "DP of all actions under continual observation, {} one user's round": (ALL, "mechanisms"),
    str(NO_DATA): (LATER, "nothing"),
    str(OWN_DATA): (LATER, "own data"),
    str(NO_PRIVACY): (frozenset(), "exact data"),
    str(IN_FULL): (frozenset(), "releases in full"),
    str(Notion(covers=frozenset())): (frozenset(), "mechanisms"),
}
_MASKS: dict[str, Masking] = {
    "": "none",
    "in a round is public": "public",
    "for her is part of her round": "user",
}
