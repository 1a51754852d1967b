"""Baselines beside every agent: uniform play, and the best fixed action in hindsight."""

from collections.abc import Callable, Mapping, Sequence

from dpbandit.base.arrays import Ints
from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Seed
from dpbandit.running.loop import Log, play
from dpbandit.specs.convex import ConvexSpec
from dpbandit.specs.protocols import AgentConfig, Hindsight, Problem, Spec


def with_baselines(agents: Mapping[str, AgentConfig], spec: Spec) -> dict[str, AgentConfig]:
    """The agents, and uniform play and the best fixed action where they are missing.

    On a convex domain staying in the centre is one, too, and often better than uniform play.
    Raises `InputError` where another agent has the name of one of them.
    """
    from dpbandit.agents import BestFixed, Centre, Uniform  # not before: 60 files

    configs = dict(agents)
    baselines: dict[str, AgentConfig] = {"Uniform": Uniform(), "BestFixed": BestFixed()}
    if isinstance(spec, ConvexSpec):
        baselines["Centre"] = Centre()
    for name, baseline in baselines.items():
        if baseline in configs.values():
            continue
        if name in configs:
            raise InputError(
                f"Expected a name other than {name!r} for {configs[name]}: a baseline has it."
            )
        configs[name] = baseline
    return configs


def play_any(
    problem: Problem,
    config: AgentConfig,
    seeds: Sequence[Seed],
    *,
    marks: Ints,
    advance: Callable[[int], None] = lambda rounds: None,
) -> Log:
    """As `play`; for a baseline that needs an answer somebody else meets the users first."""
    if isinstance(config, Hindsight):
        from dpbandit.agents import Uniform

        config = config.with_answer(play(problem, Uniform(), seeds, marks=marks).best_fixed)
    return play(problem, config, seeds, marks=marks, advance=advance)
