"""`dpbandit envs` and `dpbandit agents`: what there is, and what each takes."""

from collections.abc import Iterator
from typing import Annotated, Any

import gymnasium as gym
import typer
from gymnasium.envs.registration import load_env_creator
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from dpbandit.agents import AGENTS
from dpbandit.base.fields import Described, described, first_line, section
from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.commands.options import complete_agents, complete_env
from dpbandit.commands.tables import screen
from dpbandit.running.given import environment_id, environment_label, spec_given
from dpbandit.running.settings import AROUND, agent_id, agent_kind, around
from dpbandit.specs.protocols import Spec

_SECTIONS = ("Action space", "Observation space", "Rewards", "Arguments")


def envs(
    env: Annotated[
        str | None,
        typer.Argument(help="Show its arguments and units.", autocompletion=complete_env),
    ] = None,
) -> None:
    """The environments, their ids and what they are; of one its arguments, rewards and units.

    Example: `dpbandit envs GLMBandit`
    """
    if env is not None:
        _show_environment(environment_id(env))
        return
    table = Table("id", "what it is", box=None, pad_edge=False)
    for name, entry in gym.registry.items():
        if "problem" in entry.kwargs:
            what = first_line(load_env_creator(entry.kwargs["problem"]))
            table.add_row(environment_label(name), what)
    screen().print(table)
    screen().print("`dpbandit envs ID` shows the arguments of one.", style="dim", highlight=False)


def agents(
    agent: Annotated[
        str | None,
        typer.Argument(help="Show its settings.", autocompletion=complete_agents),
    ] = None,
    env: Annotated[
        str | None,
        typer.Option(help="Only agents that play this environment.", autocompletion=complete_env),
    ] = None,
    private: Annotated[
        bool, typer.Option("--private", help="Only agents with a privacy target.")
    ] = False,
) -> None:
    """The agents, their ids and what they are; of one its settings, defaults and units.

    Example: `dpbandit agents --env OJPricing --private` and `dpbandit agents fade`
    """
    if agent is not None:
        if env is not None or private:
            raise InputError(f"Expected either agent={agent!r} or --env and --private, got both.")
        _show_agent(agent_id(agent))
        return
    spec = None if env is None else spec_given(env)
    table = Table("id", "what it is", box=None, pad_edge=False)
    for name, kind in AGENTS.items():
        if (not private or "epsilon" in _names(kind)) and (spec is None or _plays(kind, spec)):
            table.add_row(name, first_line(kind))
    if spec is None:
        for word, kind in AROUND.items():
            table.add_row(f"{word}ID", first_line(kind))
    screen().print(table)
    screen().print("`dpbandit agents ID` shows the settings.", style="dim", highlight=False)


def _show_environment(known: str) -> None:
    entry = gym.registry.get(known.rpartition(":")[2])
    kind: Any = load_env_creator(known if entry is None else entry.kwargs["problem"])
    console = screen()
    console.print(Text.assemble((environment_label(known), "bold"), f"  {first_line(kind)}"))
    for line in _lines(described(kind)):
        console.print(line)
    for heading in _SECTIONS:
        if text := section(kind, heading):
            console.print(f"\n{heading}", style="bold")
            for line in text.splitlines():
                console.print(Padding(Text(line), (0, 0, 0, 2), expand=False))


def _show_agent(known: str) -> None:
    words, bare = around(known)
    console = screen()
    for kind in [*(AROUND[word] for word in AROUND if word in words), agent_kind(bare)]:
        console.print(Text.assemble((kind.__name__, "bold"), f"  {first_line(kind)}"))
        for line in _lines(tuple(one for one in described(kind) if one.name != "agent")):
            console.print(line)


def _lines(every: tuple[Described, ...]) -> Iterator[Any]:
    """Of each field what is typed, the values it takes, and below it what it means."""
    for one in every:
        default = one.default or "(has to be said)"
        values = f"   {one.values}" if one.values else ""
        yield Text.assemble("  ", (f"{one.name}={default}", "bold"), (values, "dim"))
        if one.text:
            yield Padding(Text(one.text), (0, 0, 0, 6), expand=False)


def _names(kind: Any) -> list[str]:
    return [one.name for one in described(kind)]


def _plays(kind: Any, spec: Spec) -> bool:
    try:
        kind().make(spec, Streams([0]))
    except InputError:
        return False
    return True
