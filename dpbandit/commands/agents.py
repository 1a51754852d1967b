"""Commands `dpbandit envs`, `agents`, `certify`, `compare` and `audit`.

Slow modules are imported by the functions that need them, so that `--help` answers at once.
"""

from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from dataclasses import fields
from math import inf
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Annotated, Any, cast

import gymnasium as gym
import typer
from gymnasium.envs.registration import load_env_creator
from rich.padding import Padding
from rich.text import Text

from dpbandit.base import (
    Described,
    InputError,
    Streams,
    check_writable,
    described,
    first_line,
    one_of,
    parse_settings,
    privacy_target,
    rounded,
    section,
    tidy_folder,
    write_json,
)
from dpbandit.base.tables import Table
from dpbandit.commands.options import (
    Delta,
    Env,
    Epsilon,
    Horizon,
    Jobs,
    JsonFile,
    Minutes,
    Replicas,
    Saved,
    Seed,
    Settings,
    audit_table,
    complete_agents,
    complete_env,
    print_results,
    print_segments,
    say,
    say_overridden,
    screen,
    specified,
)

if TYPE_CHECKING:
    from dpbandit.results.results import Results
    from dpbandit.specs import AgentConfig, Spec

_SECTIONS = ("Action space", "Observation space", "Rewards", "Arguments")  # of the docstring


def envs(
    env: Annotated[
        str | None,
        typer.Argument(
            help="Show this environment's arguments and units.", autocompletion=complete_env
        ),
    ] = None,
) -> None:
    """List the environments, or show the arguments, rewards and units of one.

    Example: `dpbandit envs GLMBandit`
    """
    from dpbandit.lazy import catalogue

    if env is not None:
        _show_environment(env)
        return
    table = Table("id", "what it is", box=None, pad_edge=False)
    for one in catalogue("dpbandit.envs"):
        table.add_row(one["name"], one["line"])
    screen().print(table)
    screen().print(
        "`dpbandit envs ID` shows the arguments of an environment.", style="dim", highlight=False
    )


def agents(
    agent: Annotated[
        str | None,
        typer.Argument(help="Show this agent's settings.", autocompletion=complete_agents),
    ] = None,
    env: Annotated[
        str | None,
        typer.Option(
            "--for", help="Only agents that play this environment.", autocompletion=complete_env
        ),
    ] = None,
    private: Annotated[
        bool, typer.Option("--private", help="Only agents with a privacy target.")
    ] = False,
    best: Annotated[
        bool, typer.Option("--best", help="Only the agent to start with, by --for and --epsilon.")
    ] = False,
    epsilon: Epsilon = 1.0,
    everyone: Annotated[
        bool, typer.Option("--all", help="Also agents with a score below 50 on the suite.")
    ] = False,
) -> None:
    """List the agents by what they play, best first, or show the settings of one.

    Example: `dpbandit agents --for OJPricing --best` and `dpbandit agents fade`
    """
    from dpbandit.agents.catalogue import RECONSTRUCTED, entries, wrappers

    if best:
        if env is None or agent is not None:
            raise InputError("Expected --best with --for ENV, and without the id of an agent.")
        from dpbandit.running.recommend import recommend

        say(recommend(env, epsilon))
        return
    if agent is not None:
        if env is not None or private:
            raise InputError(f"Expected either agent={agent!r} or --for and --private, got both.")
        _show_agent(agent)
        return
    from dpbandit.running.answers import by_score, folded, score, starting

    able = _able(env, private)
    table = Table("id", "score", "privacy", "what it does", box=None, pad_edge=False)
    fitting = [one for one in entries() if one.id in able]
    rows = [one for one in fitting if everyone or not folded(one.id)]
    for group in dict.fromkeys(one.plays for one in rows):
        table.add_row()
        table.add_row(Text(group, "bold"))
        for one in by_score(one for one in rows if one.plays == group):
            start = one.id in starting()
            name = Text(f"{one.id} *" if start else one.id, "bold" if start else "")
            rebuilt = " (reconstructed)" if one.mark == RECONSTRUCTED else ""
            mean = score(one.id)
            points = "" if mean is None else f"{100 * mean:.0f}"
            table.add_row(name, points, one.privacy, one.line + rebuilt)
    if env is None and not private:
        table.add_row()
        table.add_row(Text(wrappers()[0].plays, "bold"))
        for one in wrappers():
            table.add_row(f"{one.id}ID", "", "", one.line)
    console = screen()
    console.print(table)
    if less := len(fitting) - len(rows):
        say(f"{less} more have a score below 50: --all lists them, too.")
    console.print(
        "* start here. Score at epsilon 1, the mean on the suite's problems that an agent fits: 0 "
        "is random play, 100 the best without privacy. `dpbandit agents ID` shows the settings.",
        style="dim",
    )


def _able(env: str | None, private: bool) -> Container[str]:
    """Return ids of agents that fit the environment; if `private`, only with a privacy target."""
    from dpbandit.agents import AGENTS

    some = _private() if private else [*AGENTS]
    if env is None:
        return some
    from dpbandit.running.resolve import resolve_spec

    spec = resolve_spec(env)
    return [name for name in some if _plays(AGENTS[name], spec)]


def _show_environment(env: str) -> None:
    from dpbandit.running.environments import environment_id, environment_label

    known = environment_id(env)
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


def _show_agent(agent: str) -> None:
    from dpbandit.running.settings import WRAPPER_KINDS, agent_id, agent_kind, around

    words, bare = around(agent_id(agent))
    console = screen()
    for kind in [
        *(WRAPPER_KINDS[word] for word in WRAPPER_KINDS if word in words),
        agent_kind(bare),
    ]:
        console.print(Text.assemble((kind.__name__, "bold"), f"  {first_line(kind)}"))
        for line in _lines(tuple(one for one in described(kind) if one.name != "agent")):
            console.print(line)


def _lines(every: tuple[Described, ...]) -> Iterator[Any]:
    """Yield lines on each setting or argument: name, default, possible values and description."""
    for one in every:
        default = one.default or "(required)"
        values = f"   {one.values}" if one.values else ""
        yield Text.assemble("  ", (f"{one.name}={default}", "bold"), (values, "dim"))
        if one.text:
            yield Padding(Text(one.text), (0, 0, 0, 6), expand=False)


def _plays(kind: Any, spec: "Spec") -> bool:
    try:
        kind().make(spec, Streams([0]))
    except InputError:
        return False
    return True


def certify(
    context: typer.Context,
    agent: Annotated[
        str,
        typer.Argument(
            help="ID[:KEY=VALUE...], see `dpbandit agents`.", autocompletion=complete_agents
        ),
    ],
    env: Env = "dpbandit/GLMBandit-v0",
    horizon: Horizon = 10_000,
    epsilon: Epsilon = 1.0,
    delta: Delta = 1e-5,
    settings: Settings = None,
    json: JsonFile = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the curve delta(epsilon) to this file.")
    ] = None,
) -> None:
    """Compute the epsilon that an agent's noise gives, by every accountant, beside its claim.

    The noise depends on the problem and on its length; without `--env` and `--horizon` it is
    GLMBandit, for 10,000 rounds.

    Example: `dpbandit certify shariff-sheffet-ucb:calibration=paper --env dpbandit/OJPricing-v0
    --epsilon 1 --plot curve.png`
    """
    from dpbandit.results.results import FORMATS, plot_certificate
    from dpbandit.running.compare import certify as make_certificate
    from dpbandit.running.resolve import resolve_spec
    from dpbandit.running.settings import parse_agent

    privacy_target(epsilon, delta)
    if plot is not None:
        one_of("suffix of the plot", plot.suffix, FORMATS)
    check_writable(json, plot)
    spec = resolve_spec(env, horizon=horizon, env_kwargs=parse_settings(settings))
    proof = make_certificate(parse_agent(agent, epsilon=epsilon, delta=delta), spec)
    saved = Saved()
    if json is not None:
        saved.write("", write_json, json, proof.as_dict())
    if plot is not None:
        title = f"{agent} on {env}, horizon {horizon:,}"
        saved.write(f"Written to {plot}.", plot_certificate, proof, plot, title=title)
    say_overridden(context, [agent])
    screen().print(Text(f"problem     {env}, {spec.horizon:,} rounds\n{proof}"))
    saved.tell()


def compare(
    context: typer.Context,
    env: Annotated[
        str,
        typer.Argument(help="Environment id, see `dpbandit envs`.", autocompletion=complete_env),
    ],
    more: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
    agents: Annotated[
        list[str] | None,
        typer.Option(
            help="Agent ids with settings, ID[:KEY=VALUE...], separated by commas; MODULE:NAME is "
            "an agent of your own: a config, or any class, object or function with act and update.",
            autocompletion=complete_agents,
        ),
    ] = None,
    horizon: Horizon = 10_000,
    replicas: Replicas = 20,
    epsilon: Epsilon = 1.0,
    delta: Delta = 1e-5,
    seed: Seed = 0,
    jobs: Jobs = None,
    settings: Settings = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the tables, results.json and regret.png.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the results that --out already holds.")
    ] = False,
    json: JsonFile = None,
    minutes: Minutes = None,
    counts: Annotated[
        bool, typer.Option(help="In more than 20,000 rounds, draw users as counts where possible.")
    ] = True,
    by: Annotated[
        str | None,
        typer.Option(help="Also count regret by a feature with levels, of a file that fit wrote."),
    ] = None,
) -> None:
    """Compare agents by cumulative regret, with a certificate for each and a plot.

    Uniform play and the best fixed action are always in the table; sentences below it say what
    privacy costs. Without `--agents` it takes the agents that are recommended for this problem:
    without privacy, at epsilon, and at a tenth of it; without `--out`, too, it draws regret.png in
    the current folder. `--set` sets an argument of the environment. A folder `--out` that already
    holds results is refused, unless `--overwrite` is given.

    Exit code 1 if an agent raised an error, which is reported in a sentence; the results of other
    agents are written.

    Example: `dpbandit compare dpbandit/OJPricing-v0 --agents
    priced:logistic-ts,fade,dp-ucb:alpha=2 --epsilon 1 --out out`
    """
    from dpbandit.results.results import FILES
    from dpbandit.running.compare import compare as run_comparison
    from dpbandit.running.foreign import limit_of
    from dpbandit.running.settings import listed

    privacy_target(epsilon, delta)
    ids = [name for part in [*(agents or []), *(more or [])] for name in listed(part)]
    picture = Path("regret.png") if not ids and out is None else None
    if not ids:
        from dpbandit.running.recommend import recommend

        options: dict[str, Any] = {"horizon": horizon, "env_kwargs": parse_settings(settings)}
        targets = dict.fromkeys([inf, epsilon, epsilon / 10])
        ids = [*dict.fromkeys(recommend(env, target, **options) for target in targets)]
    configs = _different(ids, epsilon=epsilon, delta=delta)
    files = [] if out is None else [out / name for name in FILES]
    if out is not None:
        with suppress(OSError, ValueError):  # an impossible path, which `check_writable` refuses
            tidy_folder(out)
    check_writable(json, picture, *files)
    there = [] if overwrite else [file.name for file in files if file.exists()]
    if there:
        raise InputError(
            f"Expected --out={out} to hold no results yet, found {', '.join(there)}: name another "
            "folder, or --overwrite."
        )
    say_overridden(context, configs)
    results = run_comparison(
        env,
        configs,
        horizon=horizon,
        replicas=replicas,
        seed=seed,
        env_kwargs=parse_settings(settings),
        jobs=jobs,
        limit=limit_of(minutes),
        counts=counts,
        by=by,
    )
    saved = Saved()
    if out is not None:
        saved.write(f"Written to {out}: {', '.join(FILES)}.", _save, results, out)
    if picture is not None:
        saved.write(f"Written to {picture}.", results.plot, picture)
    if json is not None:
        saved.write("", write_json, json, results.records())
    if not (agents or more):
        say(f"These agents fit {env}, to start with; --agents chooses others.")
    print_results(results)
    if by is not None:
        print_segments(results, by)
    saved.tell()
    if results.failed:
        raise typer.Exit(1)


def _save(results: "Results", out: Path) -> None:
    """Write the results into the folder `out`; if that fails, into a new temporary folder.

    Raises:
        InputError: if `out` cannot be written; the message names the temporary folder used instead.
    """
    try:
        results.save(out)
    except InputError as mistake:
        place: Path | None = None
        with suppress(InputError, OSError):
            place = results.save(mkdtemp(prefix="dpbandit-"))
        if place is None:
            raise
        raise InputError(f"{mistake} Written to {place} instead: move it.") from mistake


def _different(names: Iterable[str], **targets: float) -> "dict[str, AgentConfig]":
    """Return the config of each agent by its name; raise `InputError` if two of them are equal."""
    from dpbandit.running.settings import parse_agent

    configs: dict[str, AgentConfig] = {}
    for name in names:
        config = parse_agent(name, **targets)
        for other, same in configs.items():
            if config == same:
                raise InputError(f"Expected every agent once: {other} and {name} are the same.")
        configs[name] = config
    return configs


_SINGLE_AGENT_OPTIONS = ("env", "horizon", "settings", "plot")
"""Options of `audit` that need a single agent, so that `--all` refuses them."""


def audit(
    context: typer.Context,
    agent: Annotated[
        str | None,
        typer.Argument(
            help="ID[:KEY=VALUE...], see `dpbandit agents`; or use --all.",
            autocompletion=complete_agents,
        ),
    ] = None,
    env: Env = "dpbandit/GLMBandit-v0",
    everyone: Annotated[
        bool,
        typer.Option(
            "--all", help="Audit every private agent, also as printed, on a small problem."
        ),
    ] = False,
    horizon: Horizon = 40,
    epsilon: Epsilon = 1.0,
    delta: Delta = 1e-5,
    runs: Annotated[
        int, typer.Option(help="Runs on each of two neighbouring data sets, >= 400.")
    ] = 20_000,
    view: Annotated[
        str,
        typer.Option(help="What the adversary sees: released (white box) or actions (of others)."),
    ] = "released",
    failure: Annotated[
        float, typer.Option(help="Probability that the report is wrong, at most.")
    ] = 0.05,
    seed: Seed = 0,
    jobs: Annotated[int, typer.Option(help="Number of processes.")] = 1,
    until_known: Annotated[
        bool,
        typer.Option(
            "--until-known", help="Stop when the certificate is refuted, after --runs at most."
        ),
    ] = False,
    settings: Settings = None,
    out: Annotated[Path | None, typer.Option(help="Write the report to this JSON file.")] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the trade-off curves to this file.")
    ] = None,
) -> None:
    """Try to refute an agent's certificate by running it many times.

    Runs the agent on two data sets that differ in one user, and reports the largest epsilon that
    the difference between the runs proves: a lower bound, beside the certified epsilon.

    Example: `dpbandit audit dp-ucb --env dpbandit/OJPricing-v0 --epsilon 1 --runs 20000
    --out report.json --plot tradeoff.png`
    """
    from dpbandit.agents import AGENTS
    from dpbandit.auditing.audit import SUFFIXES, audit as run_audit, plot_audit
    from dpbandit.auditing.small_problems import audit_all, with_printed
    from dpbandit.running.resolve import resolve_spec
    from dpbandit.running.settings import parse_agent

    privacy_target(epsilon, delta)
    if everyone == (agent is not None) or (everyone and specified(context, _SINGLE_AGENT_OPTIONS)):
        raise InputError(
            "Expected either one AGENT, with --env, --horizon, --set and --plot if wanted, or "
            "--all, which chooses a small problem for each."
        )
    if plot is not None:
        one_of("suffix of the plot", plot.suffix, SUFFIXES)
        if until_known:
            raise InputError("Expected --plot without --until-known, which has no point to draw.")
    check_writable(out, plot)
    how: dict[str, Any] = {
        "runs": runs,
        "view": cast(Any, view),
        "seed": seed,
        "failure": failure,
        "jobs": jobs,
        "until_known": until_known,
    }
    console, saved = screen(), Saved()
    if agent is None:
        configs: dict[str, AgentConfig] = {}
        for name in AGENTS:
            with suppress(InputError):  # some noise needs delta > 0
                configs[name] = parse_agent(name, epsilon=epsilon, delta=delta)
        reports = audit_all(with_printed(configs), **how)
        document: dict[str, Any] = {name: report.as_dict() for name, report in reports.items()}
    else:
        spec = resolve_spec(env, horizon=horizon, env_kwargs=parse_settings(settings))
        report = run_audit(parse_agent(agent, epsilon=epsilon, delta=delta), spec, **how)
        document = {"agent_id": agent, "environment": env, "horizon": horizon, **report.as_dict()}
        if plot is not None:
            title = f"{agent} on {env}, horizon {horizon:,}"
            saved.write(f"Written to {plot}.", plot_audit, report, plot, title=title)
    if out is not None:
        saved.write(f"Written to {out}.", write_json, out, document)
    if agent is None:
        console.print(audit_table(reports))
        if unfit := [name for name in _private() if name not in reports]:
            target = f"epsilon {rounded(epsilon, 6)}, delta {rounded(delta, 6)}"
            console.print(f"Not audited at {target}: ", end="")
            console.print(f"{', '.join(unfit)}.", highlight=False)
    else:
        say_overridden(context, [agent])
        console.print(Text(str(report)))
    saved.tell()


def _private() -> list[str]:
    """Return ids of agents that have a privacy target."""
    from dpbandit.agents import AGENTS

    return [n for n, config in AGENTS.items() if "epsilon" in {f.name for f in fields(config)}]
