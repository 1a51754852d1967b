"""What was spelt otherwise, and how it is spelt now: the old words go after the next release."""

import warnings
from collections.abc import Mapping
from functools import wraps
from inspect import signature
from typing import Any

from dpbandit.agents.contextual.demand import PRICED, Priced

_SELLERS = ("linucb", "lints", "greedy", "glm-ucb", "logistic-ts", "dp-ucb", "dp-hdb")

OLD: dict[tuple[str, str, str], tuple[str, dict[str, Any]]] = {
    **{(agent, "model", "arms"): (agent, {}) for agent in _SELLERS},
    **{(agent, "model", "demand"): (PRICED, {}) for agent in _SELLERS},
}
"""(agent, setting, value) -> what the agent is called now, and what it has to be told; `PRICED` is
the same agent behind that word. Of several rows that apply a later one is right."""


class OldSpelling(DeprecationWarning):
    """Something is spelt as it will not be after the next release."""


def renewed(agent: str, settings: Mapping[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """The id and the settings as they are spelt now; None where nothing is old."""
    behind, bare = agent.startswith(PRICED), agent.removeprefix(PRICED)
    told = {(bare, key, value) for key, value in settings.items() if isinstance(value, str)}
    rows = {row: now for row, now in OLD.items() if row in told}
    if not rows:
        return None
    kept = {k: v for k, v in settings.items() if k not in {key for _, key, _ in rows}}
    for name, extra in rows.values():
        behind, kept = behind or name == PRICED, {**kept, **extra}
        bare = bare if name == PRICED else name
    return (PRICED if behind else "") + bare, kept


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
        found = renewed(agent, settings)
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
        found = renewed(agent, settings)
        usual(self, *args, **(settings if found is None else found[1]))

    kind.__signature__ = signature(kind)
    kind.__new__, kind.__init__ = new, init


def _called(kind: Any, settings: Mapping[str, Any]) -> str:
    return f"{kind.__name__}({', '.join(f'{key}={value!r}' for key, value in settings.items())})"
