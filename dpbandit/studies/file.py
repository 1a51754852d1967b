"""Sweep files: environments x agents x epsilons x deltas x horizons, in TOML."""

import os
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dpbandit.base.files import named, read_text
from dpbandit.base.inputs import MOST_REPLICAS, MOST_ROUNDS, MOST_RUNS, InputError, shown

Value = bool | int | float | str
Values = dict[str, Value]
Choices = dict[str, Annotated[list[Value], Field(min_length=1)]]
Epsilon = Annotated[float, Field(gt=0)]
"""infinity without noise"""
Delta = Annotated[float, Field(ge=0, lt=1)]
Count = Annotated[int, Field(ge=1, le=MOST_REPLICAS)]
Rounds = Annotated[int, Field(ge=1, le=MOST_ROUNDS)]
Runs = Annotated[int, Field(ge=400, le=MOST_RUNS)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Environment(_Strict):
    """An environment and its arguments."""

    id: str = Field(
        description="see `dpbandit envs`; MODULE:ID imports MODULE first, or MODULE:CLASS"
    )
    label: str | None = Field(None, description="what to call it; id and arguments if left out")
    arguments: Values = Field({}, description="arguments but for the horizon")
    grid: Choices = Field({}, description="arguments with several values each: all combinations")


class Agent(_Strict):
    """An agent and its settings; epsilon and delta come from the sweep."""

    id: str = Field(description="see `dpbandit agents`; or MODULE:CLASS, a config of your own")
    label: str | None = Field(None, description="what to call it; id and settings if left out")
    settings: Values = Field({}, description="settings; epsilon here overrides the sweep's")
    grid: Choices = Field({}, description="settings with several values each: all combinations")


class Audit(_Strict):
    """Whether and how to audit every private agent beside the runs."""

    runs: Annotated[int, Field(ge=400, le=MOST_RUNS)] = Field(
        4000, description="runs of each of two worlds"
    )
    horizon: Rounds = Field(40, description="rounds of the audited problem")


class Sweep(_Strict):
    """A study: every agent on every environment, for every epsilon, delta and horizon.

    Agents without a privacy target run once for each environment and horizon. Uniform play and the
    best fixed action are added where missing. Replica r of a configuration depends on (seed, r) and
    the configuration only.
    """

    name: str = Field("sweep", description="title of the report")
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    replicas: Count = 20
    horizons: Annotated[list[Rounds], Field(min_length=1)] = [10_000]
    epsilons: Annotated[list[Epsilon], Field(min_length=1)] = [1.0]
    deltas: Annotated[list[Delta], Field(min_length=1)] = [1e-5]
    environments: Annotated[list[Environment], Field(min_length=1)]
    agents: Annotated[list[Agent], Field(min_length=1)]
    leave_out_unfit: bool = Field(
        False, description="leave out agents where they do not fit, and say so; else refuse them"
    )
    audit: Audit | None = Field(None, description="also audit every private agent")

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "Sweep":
        """The sweep in a TOML file.

        Raises:
            InputError: no such file, no TOML, an unknown key (the nearest is named), a wrong value.
        """
        try:
            values = tomllib.loads(read_text(path))
        except RecursionError:
            raise InputError(f"Expected {named(path)} to be nested 5 levels at most.") from None
        except InputError:
            raise
        except ValueError as error:  # no TOML, no text, or a number of 5,000 digits
            raise InputError(f"Expected {named(path)} to be TOML: {error}.") from None
        return cls.of(values, source=named(path))

    @classmethod
    def of(cls, values: Mapping[str, Any], *, source: str = "the sweep") -> "Sweep":
        """The sweep with these values; raises `InputError` on the first mistake."""
        try:
            return cls.model_validate(dict(values))
        except ValidationError as error:
            unknown = [e for e in error.errors() if e["type"] == "extra_forbidden"]
            raise InputError(_sentence([*unknown, *error.errors()][0], source)) from None


_PARTS: dict[str, type[BaseModel]] = {
    "environments": Environment,
    "agents": Agent,
    "audit": Audit,
}


def _sentence(error: Any, source: str) -> str:
    *place, last = error["loc"] or ("",)
    where = ".".join(str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        known = list(_PARTS.get(str(place[0]) if place else "", Sweep).model_fields)
        near = get_close_matches(str(last), known, n=1, cutoff=0.5)
        hint = f" (did you mean {near[0]}?)" if near else ""
        return f"Unknown key {where} in {source}{hint}: expected one of {', '.join(known)}."
    if error["type"] == "missing":
        return f"Expected {where} in {source}: it is missing."
    value = shown(error["input"])
    if error["loc"][-1] in ("bool", "int", "float", "str"):  # of a union
        where = where.rpartition(".")[0]
        return f"Expected {where}={value} in {source} to be a number, text, true or false."
    return f"Expected {where}={value} in {source} to be {_right(error, value)}."


def _right(error: Any, value: str) -> str:
    """What would be right, from Pydantic's name of the mistake and its limits."""
    kind, limits = error["type"], error.get("ctx", {})
    bounds = {"greater_than": "gt", "greater_than_equal": "ge", "less_than": "lt"}
    bounds |= {"less_than_equal": "le", "too_short": "min_length", "too_long": "max_length"}
    signs = {"gt": "> {}", "ge": ">= {}", "lt": "< {}", "le": "<= {}"}
    if kind in bounds:
        limit = bounds[kind]
        return signs.get(limit, "of {} or more items").format(limits[limit])
    kinds = {"list_type": f"a list, such as [{value}]", "dict_type": "a table, { KEY = VALUE }"}
    kinds |= {"model_type": "a table: [[agents]], and below it id = 'fade'", "string_type": "text"}
    kinds |= {"int_type": "a whole number", "float_type": "a number", "bool_type": "true or false"}
    return kinds.get(kind, f"right: {error['msg'].lower()}")
