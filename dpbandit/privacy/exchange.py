"""Ledgers for other programs: a JSON schema, events of dp-accounting, measurements of OpenDP.

These formats describe noise alone; `Ledger.notion`, which says whom the noise protects, has to be
stated as well. Ledgers of format 1 hold it as a sentence, which `notion_in_words` reads.
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

_VALUE_SCHEMAS: dict[Any, dict[str, Any]] = {  # type of a field -> its JSON schema
    bool: {"type": "boolean"},
    int: {"type": "integer", "minimum": 0},
    float: {"anyOf": [{"type": "number", "minimum": 0}, {"enum": ["inf", inf]}]},
    str: {"type": "string"},
    NoneType: {"type": "null"},
}


def ledger_schema() -> dict[str, Any]:
    """Return a JSON Schema (2020-12) of the dicts of `ledger_as_dict` and `ledger_from_dict`.

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
    schema = {field.name: _typed(hints[field.name]) for field in known}
    if name is None:
        return {"type": "object", "properties": schema, "required": needed}
    schema = {"kind": {"const": name}, **schema}
    return {"type": "object", "properties": schema, "required": ["kind", *needed]}


def _typed(hint: Any) -> dict[str, Any]:
    origin, parts = get_origin(hint), get_args(hint)
    if hint in _VALUE_SCHEMAS:
        return _VALUE_SCHEMAS[hint]
    if origin is Literal:
        return {"enum": list(parts)}
    if origin in (Union, UnionType):
        return {"anyOf": [_typed(part) for part in parts]}
    if origin is tuple and parts[1:] == (...,):
        return {"type": "array", "items": _typed(parts[0])}
    if origin is tuple:
        return {"type": "array", "prefixItems": [_typed(part) for part in parts], "items": False}
    if origin is frozenset:
        return {"type": "array", "items": _typed(parts[0]), "uniqueItems": True}
    name = "Slots" if hint.__name__ == "Factorisation" else hint.__name__
    return {"$ref": f"#/$defs/{name}"}


def as_event(ledger: Ledger) -> Any:
    """Return a `dp_accounting` event at least as revealing as all spends of the ledger.

    Exact for Gaussian and Laplace noise; any other spend becomes an event of its zCDP parameter.
    Noise is in units of the change by REPLACING a user: compose the event with an accountant of
    `NeighboringRelation.ADD_OR_REMOVE_ONE`, as REPLACE_ONE would double the sensitivity once more.
    zCDP events need the `RdpAccountant` of dp-accounting.

    Raises `InputError` for a notion that protects a window of rounds, which no event can express,
    and for a spend without a zCDP parameter or pure epsilon.
    """
    import dp_accounting

    _check(ledger)
    if not ledger.notion.covers:
        return dp_accounting.NonPrivateDpEvent()
    events = [_event(spend) for spend in ledger.spends]
    return dp_accounting.ComposedDpEvent(events) if events else dp_accounting.NoOpDpEvent()


def _check(ledger: Ledger) -> None:
    """Raise `InputError` for a notion of a window of rounds, which no other program can express."""
    if ledger.notion.window is not None:
        raise InputError(
            f"Expected a promise for ever, got window={ledger.notion.window}: other programs have "
            "no such notion."
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
        raise InputError(f"Expected noise with a dp-accounting event, got {spend.note!r}.")
    return dp.ZCDpEvent(rho)


def as_measurements(ledger: Ledger) -> list[Any]:
    """Return an OpenDP measurement for each spend: its noise on vectors that a user moves by 1.

    Gaussian noise is for the Euclidean norm, and `map(1.0)` returns rho; Laplace noise is for l_1,
    composed `count` times, and `map(1.0)` returns epsilon. Raises `InputError` for other noise or
    none. Needs the package `opendp`, and turns on its contributed constructors.
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
    """Return the notion of a ledger of format 1, whose `scope` is a sentence."""
    scope, _, masks = str(values["scope"]).partition("; which actions there are ")
    covered, reads = _SCOPES.get(scope, (frozenset(), "mechanisms"))
    if values["slip"]:
        raise ValueError(f"Expected slip={values['slip']!r} of a ledger of format 1 to be 0.")
    if scope not in _SCOPES or masks not in _MASKS:
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


_SCOPES: dict[str, tuple[frozenset[Covered], Reads]] = {  # sentence of format 1 -> (covers, reads)
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
_MASKS: dict[str, Masking] = {  # after "which actions there are" in a sentence -> `masks`
    "": "none",
    "in a round is public": "public",
    "for her is part of her round": "user",
}
