"""Ledgers for other programs: a JSON schema, events of dp-accounting, measurements of OpenDP.

What these say is about noise; `Ledger.notion` says whom it protects, and has to go with them.
Ledgers of format 1 say it in a sentence, which `notion_in_words` reads.
"""

from dataclasses import MISSING, fields, is_dataclass
from math import inf
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from dpbandit.base import InputError, made
from dpbandit.privacy.certificate import SLOTS, SPEND_KINDS
from dpbandit.privacy.ledger import Ledger, Sequential
from dpbandit.privacy.notion import (
    ALL_ACTIONS,
    IN_FULL,
    LATER_ACTIONS,
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
from dpbandit.privacy.pure import LaplaceSpend
from dpbandit.privacy.spends import Parallel, Repeated, Spend
from dpbandit.shelf import open_shelves

_PLAIN: dict[Any, dict[str, Any]] = {
    bool: {"type": "boolean"},
    int: {"type": "integer", "minimum": 0},
    float: {"anyOf": [{"type": "number", "minimum": 0}, {"enum": ["inf", inf]}]},
    str: {"type": "string"},
    NoneType: {"type": "null"},
}


def ledger_schema() -> dict[str, Any]:
    """A JSON Schema (2020-12) of what `ledger_as_dict` writes and `ledger_from_dict` reads.

    Infinity is the word "inf" in strict JSON. Every kind of spend is an object with its `kind`.
    """
    open_shelves("privacy.certificate")
    kinds = {name: _object(kind, name) for name, kind in (SPEND_KINDS | SLOTS).items()}
    spends = {"anyOf": [{"$ref": f"#/$defs/{name}"} for name in SPEND_KINDS]}
    slots = {"anyOf": [{"$ref": f"#/$defs/{name}"} for name in SLOTS]}
    notion = _object(Notion)
    notions = {
        "Round": _object(Round, "Round"),
        "Visits": _object(Visits, "Visits"),
        "Trust": _object(Trust),
        "Notion": {**notion, "required": [*notion["properties"]], "additionalProperties": False},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A ledger of dpbandit",
        **_object(Ledger),
        "$defs": {**kinds, **notions, "Spend": spends, "Slots": slots},
    }


def _object(kind: type, name: str | None = None) -> dict[str, Any]:
    hints = get_type_hints(kind)
    known = [field for field in fields(kind) if field.init] if is_dataclass(kind) else []
    needed = [f.name for f in known if f.default is MISSING and f.default_factory is MISSING]
    schema = {field.name: _of(hints[field.name]) for field in known}
    if name is None:
        return {"type": "object", "properties": schema, "required": needed}
    schema = {"kind": {"const": name}, **schema}
    return {"type": "object", "properties": schema, "required": ["kind", *needed]}


def _of(hint: Any) -> dict[str, Any]:
    origin, parts = get_origin(hint), get_args(hint)
    if hint in _PLAIN:
        return _PLAIN[hint]
    if origin is Literal:
        return {"enum": list(parts)}
    if origin in (Union, UnionType):
        return {"anyOf": [_of(part) for part in parts]}
    if origin is tuple and parts[1:] == (...,):
        return {"type": "array", "items": _of(parts[0])}
    if origin is tuple:
        return {"type": "array", "prefixItems": [_of(part) for part in parts], "items": False}
    if origin is frozenset:
        return {"type": "array", "items": _of(parts[0]), "uniqueItems": True}
    name = "Slots" if hint.__name__ == "Factorisation" else hint.__name__
    return {"$ref": f"#/$defs/{name}"}


def as_event(ledger: Ledger) -> Any:
    """A `dp_accounting` event that is at least as revealing as all spends of the ledger.

    Exact for Gaussian and Laplace noise; anything else becomes its zCDP. The noise is in units of
    how far REPLACING a user moves the query: give it to an accountant with
    `NeighboringRelation.ADD_OR_REMOVE_ONE`, as replacing doubles the sensitivity there once more.
    zCDP takes its `RdpAccountant`.

    Raises `InputError` for a window, which no event can say, and for a spend that has neither a
    zCDP parameter nor a pure epsilon.
    """
    import dp_accounting

    _check(ledger)
    if not ledger.notion.covers:
        return dp_accounting.NonPrivateDpEvent()
    events = [_event(spend) for spend in ledger.spends]
    return dp_accounting.ComposedDpEvent(events) if events else dp_accounting.NoOpDpEvent()


def _check(ledger: Ledger) -> None:
    """Raise `InputError` for what neither can say."""
    if ledger.notion.window is not None:
        raise InputError(
            f"Expected a promise for ever, got window={ledger.notion.window}: other programs have "
            "no word for it."
        )


def _event(spend: Spend) -> Any:
    import dp_accounting as dp

    if isinstance(spend, Sequential):
        return dp.ComposedDpEvent([_event(part) for part in spend.parts])
    if spend.pure == 0:
        return dp.NoOpDpEvent()
    if spend.mu is not None:
        if spend.mu == inf:
            return dp.NonPrivateDpEvent()
        return dp.GaussianDpEvent(1 / spend.mu)
    if isinstance(spend, LaplaceSpend):
        return dp.SelfComposedDpEvent(dp.LaplaceDpEvent(1 / spend.epsilon), spend.count)
    rho = min(spend.rho, spend.pure**2 / 2)
    if rho == inf:
        raise InputError(f"Expected noise that dp-accounting can be told of, got {spend.note!r}.")
    return dp.ZCDpEvent(rho)


def as_measurements(ledger: Ledger) -> list[Any]:
    """An OpenDP measurement for each spend: its noise on vectors that a user moves by 1.

    Gaussian noise in the Euclidean norm, `map(1.0)` is rho; Laplace noise in l_1, composed
    `count` times, `map(1.0)` is epsilon. Raises `InputError` for any other noise, or none. It takes
    the package `opendp`, and turns on its contributed constructors.
    """
    _check(ledger)
    if not ledger.notion.covers:
        raise InputError(f"Expected a ledger that promises something, got one of {ledger.notion}.")
    return [_measurement(part) for spend in ledger.spends for part in _single(spend)]


def _single(spend: Spend) -> tuple[Spend, ...]:
    return spend.parts if isinstance(spend, Sequential) else (spend,)


def _measurement(spend: Spend) -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False))
    if spend.mu is not None and 0 < spend.mu < inf and not isinstance(spend, Parallel | Repeated):
        return dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=1 / spend.mu)
    if isinstance(spend, LaplaceSpend) and spend.pure:
        space = domain, dp.l1_distance(T=float)
        one = dp.m.make_laplace(*space, scale=1 / spend.epsilon)
        return dp.c.make_composition([one] * spend.count)
    raise InputError(f"Expected Gaussian or Laplace noise for OpenDP, got {spend.note!r}.")


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
    "joint DP under continual observation, {} one user's round": (LATER_ACTIONS, "mechanisms"),
    "DP of all actions under continual observation, {} one user's round": (
        ALL_ACTIONS,
        "mechanisms",
    ),
    str(NO_DATA): (LATER_ACTIONS, "nothing"),
    str(OWN_DATA): (LATER_ACTIONS, "own data"),
    str(NO_PRIVACY): (frozenset(), "exact data"),
    str(IN_FULL): (frozenset(), "releases in full"),
    str(Notion(covers=frozenset())): (frozenset(), "mechanisms"),
}
_MASKS: dict[str, Masking] = {
    "": "none",
    "in a round is public": "public",
    "for her is part of her round": "user",
}
