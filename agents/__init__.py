"""Agents: a config class for each algorithm, whose `make` returns the running agent.

`catalogue.csv` lists the id on the command line, class and file of every agent. A file is imported
when its class is first used; the folder of the file is the agent's family.
"""

from dpbandit.agents.catalogue import (
    Kinds as _Kinds,
    entries as _entries,
    tabulate as _tabulate,
    wrappers as _wrappers,
)
from dpbandit.lazy import lazily as _lazily

_AGENT_MODULES = {one.config: f"{__name__}.{one.file}" for one in (*_entries(), *_wrappers())}
__all__ = sorted(_AGENT_MODULES)
__getattr__, __dir__ = _lazily(__name__, _AGENT_MODULES, _tabulate)

_ON_POINTS = ("net-experts", "ball-experts")  # experts that are points of a convex set
_ON_PRICES = ("ldp-etc", "fade-prices", "fade-curve")  # agents that play price lists only


def _family(folder: str, but: tuple[str, ...] = (), also: tuple[str, ...] = ()) -> _Kinds:
    """Return the agents of a folder except the ids `but`, with the ids `also` and two baselines."""
    of = ("uniform", "best-fixed", *also)
    some = [one for one in _entries() if one.file.startswith(f"{folder}.") or one.id in of]
    return _Kinds(one for one in some if one.id not in but)


AGENTS = _Kinds(_entries())
"""Classes of all agents, by command-line id."""
CONTEXTUAL = _family("contextual", but=_ON_PRICES)
"""Agents that choose arms or prices, by command-line id."""
PRICING = _Kinds(one for one in _entries() if one.id in _ON_PRICES)
"""Agents that choose from price lists and play no other problem, by command-line id."""
CONVEX = _family("convex", also=_ON_POINTS)
"""Agents that choose points of a convex domain, by command-line id."""
STOCHASTIC = _family("streams", also=("centre",))
"""Agents for streams of independent users, by command-line id."""
EXPERTS = _family("experts", but=_ON_POINTS)
"""Agents that follow experts, by command-line id."""
CHOICE = _family("choice")
"""Agents that offer sets of products, by command-line id."""
LISTS = _family("lists")
"""Agents that show ordered lists, by command-line id."""
PEOPLE = _family("people")
"""Agents for people who return, by command-line id."""
ARMS = _family("arms")
"""Agents that play arms and ignore contexts, by command-line id."""
