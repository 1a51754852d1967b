"""Options that several commands share, and what TAB offers for them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import gymnasium as gym
import typer
from typer.core import TyperCommand

from dpbandit.agents import AGENTS
from dpbandit.base.inputs import InputError
from dpbandit.commands.tables import screen
from dpbandit.running.settings import AROUND, around


def complete_env(incomplete: str) -> list[str]:
    """Environments for TAB: their ids and, once one of those is begun, their short names."""
    ids = [name for name, entry in gym.registry.items() if "problem" in entry.kwargs]
    short = [name.removeprefix("dpbandit/").removesuffix("-v0") for name in ids]
    return [name for name in [*ids, *(short if incomplete else [])] if name.startswith(incomplete)]


def complete_agents(incomplete: str) -> list[str]:
    """Agents for TAB: their ids, behind those that are there already.

    >>> complete_agents("linucb,dp-u"), complete_agents("priced:gre")
    (['linucb,dp-ucb'], ['priced:greedy'])
    """
    before, comma, last = incomplete.rpartition(",")
    behind = around(last)[0]
    names = [*AROUND, *AGENTS] if last and not behind else [behind + name for name in AGENTS]
    return [f"{before}{comma}{name}" for name in names if name.startswith(last)]


Env = Annotated[str, typer.Option(help="Environment id.", autocompletion=complete_env)]
Epsilon = Annotated[float, typer.Option(help="Privacy target of every private agent, > 0.")]
Delta = Annotated[float, typer.Option(help="Privacy target of every private agent, in [0, 1).")]
Horizon = Annotated[int, typer.Option(help="Rounds, >= 1.")]
Replicas = Annotated[int, typer.Option(help="Independent repetitions, >= 1.")]
Seed = Annotated[int, typer.Option(help="Replica r depends on (seed, r) only.")]
JsonFile = Annotated[Path | None, typer.Option("--json", help="Write the numbers here.")]
Settings = Annotated[list[str] | None, typer.Option("--set", help="KEY=VALUE, as often as needed.")]


class Once(TyperCommand):
    """A command that takes an option once, but for lists: the first of two would be lost unsaid."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As Typer; raises `InputError` for an option that is given twice."""
        if not ctx.resilient_parsing:  # TAB
            *_, order = self.make_parser(ctx).parse_args(args=list(args))
            for option, times in Counter(order).items():
                if times > 1 and not getattr(option, "multiple", True):
                    raise InputError(f"Expected {option.opts[-1]} once, got it {times} times.")
        return super().parse_args(ctx, args)


def given(context: typer.Context, names: Sequence[str]) -> bool:
    """Whether any of these options is on the command line."""
    sources = (context.get_parameter_source(name) for name in names)
    return any(source is not None and source.name == "COMMANDLINE" for source in sources)


def say_overridden(context: typer.Context, agents: Iterable[str]) -> None:
    """Say where an agent's own epsilon or delta stands against the one on the command line."""
    for agent in agents:
        own = [setting.partition("=")[0] for setting in agent.split(":")]
        for name in ("epsilon", "delta"):
            if name in own and given(context, [name]):
                say(f"{agent} says {name} itself: --{name} is not for it.")


def say(sentence: str) -> None:
    """Print a sentence as it is: a path may look like markup, and stays on one line."""
    screen().print(sentence, highlight=False, soft_wrap=True)
