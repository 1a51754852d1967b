"""What was spelt otherwise, and how it is spelt now: the old words go after the next release."""

import warnings
from collections.abc import Mapping
from dataclasses import fields
from functools import wraps
from inspect import signature
from typing import Any

from dpbandit.agents.contextual.demand import PRICED, Priced
from dpbandit.base.inputs import InputError

_SELLERS = ("linucb", "lints", "greedy", "glm-ucb", "logistic-ts", "dp-ucb", "dp-hdb")

OLD: dict[tuple[str, str, str], str] = {
    **{(agent, "model", "arms"): agent for agent in _SELLERS},
    **{(agent, "model", "demand"): PRICED for agent in _SELLERS},
    ("dp-ucb", "statistics", "gram"): "dp-ucb",
    ("dp-ucb", "statistics", "moment"): "dp-moments",
    ("dp-ucb", "noise", "gaussian"): "dp-ucb",
    ("dp-ucb", "noise", "wishart"): "shariff-sheffet-ucb",
    ("dp-ucb", "calibration", "certified"): "dp-ucb",
    ("dp-ucb", "calibration", "paper"): "shariff-sheffet-ucb",
    ("dp-hdb", "selection", "gaussian"): "dp-hdb",
    ("dp-hdb", "selection", "gumbel"): "dp-hdb-choices",
    ("dp-hdb", "selection", "laplace"): "dp-hdb-choices",
    ("dp-hdb", "calibration", "certified"): "dp-hdb",
    ("dp-hdb", "calibration", "paper"): "dp-hdb-choices",
    ("dp-hdb", "bound", "exact"): "dp-hdb",
}
"""(agent, setting, value) -> what the agent is called now, which is told that setting if it has it;
`PRICED` is the same agent behind that word."""
_IDLE = {"alpha": 0, "prefix_sums": "tree"}
"""Said what was so anyhow, where the agent now has no such setting."""


class OldSpelling(DeprecationWarning):
    """Something is spelt as it will not be after the next release."""


def renewed(
    agents: Mapping[str, Any], agent: str, settings: Mapping[str, Any]
) -> tuple[str, dict[str, Any]] | None:
    """The id and the settings as they are spelt now; None where nothing is old.

    Raises:
        InputError: old words that are different agents now.
    """
    before = agent.removeprefix(PRICED)
    told = {(before, key, value) for key, value in settings.items() if isinstance(value, str)}
    rows = {row: now for row, now in OLD.items() if row in told}
    if not rows:
        return None
    others = sorted({*rows.values()} - {before, PRICED})
    if len(others) > 1:
        raise InputError(f"Expected one of {' and '.join(others)}: they are different agents.")
    now = others[0] if others else before
    takes, old = {field.name for field in fields(agents[now])}, {key for _, key, _ in rows}
    kept = {
        key: value
        for key, value in settings.items()
        if key in takes or not (key in old or (now != before and _IDLE.get(key) == value))
    }
    behind = agent != before or PRICED in rows.values()
    return (PRICED if behind else "") + now, kept


def warn(old: str, new: str, *, stacklevel: int) -> None:
    """One sentence that names the new spelling, once for each old one."""
    sentence = f"{old} is spelt {new} now: the old spelling goes after the next release."
    warnings.warn(sentence, OldSpelling, stacklevel=stacklevel + 1)


def accept(agents: Mapping[str, Any]) -> None:
    """Let the classes of `agents`, by id, be called with old words: what they are now is made."""
    for agent in {agent for agent, *_ in OLD}:
        _accept(agents, agent)


def _accept(agents: Mapping[str, Any], agent: str) -> None:
    kind = agents[agent]
    usual = kind.__init__

    def new(cls: Any, *args: Any, **settings: Any) -> Any:
        found = renewed(agents, agent, settings)
        if found is None:
            return object.__new__(cls)
        name, told = found
        inner, behind = agents[name.removeprefix(PRICED)], name.startswith(PRICED)
        words = _called(inner, told)
        warn(_called(kind, settings), f"Priced({words})" if behind else words, stacklevel=2)
        if inner is kind and not behind:
            return object.__new__(cls)  # and `init` leaves the old words out
        return Priced(inner(**told)) if behind else inner(**told)

    @wraps(usual)
    def init(self: Any, *args: Any, **settings: Any) -> None:
        found = renewed(agents, agent, settings)
        usual(self, *args, **(settings if found is None else found[1]))

    kind.__signature__ = signature(kind)
    kind.__new__, kind.__init__ = new, init


def _called(kind: Any, settings: Mapping[str, Any]) -> str:
    return f"{kind.__name__}({', '.join(f'{key}={value!r}' for key, value in settings.items())})"
