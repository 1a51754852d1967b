"""`dpbandit suite`: list its problems, run agents on it, verify what others submit."""

import os
from collections.abc import Iterable
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from dpbandit.base import one_of
from dpbandit.base.tables import Table
from dpbandit.commands.options import Jobs, say, screen
from dpbandit.commands.usage import Once
from dpbandit.running.settings import listed
from dpbandit.suite import problems, run_suite, verify, write_card
from dpbandit.suite.card import scores_of
from dpbandit.suite.catalogue import SIZES, Size
from dpbandit.suite.playing import MINUTES
from dpbandit.suite.verifying import accepted

if TYPE_CHECKING:
    import pandas as pd

Backend = Annotated[str, typer.Option(help="loky (processes), threading or dask (a cluster).")]
Scheduler = Annotated[
    str | None, typer.Option(help="Address of a Dask scheduler, tcp://HOST:8786.")
]

app = typer.Typer(
    add_completion=False, help="Score agents on a fixed list of problems, or verify a result."
)


@app.callback(invoke_without_command=True)
def _alone(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        show()
        line = "`dpbandit suite play` writes a page of results; `dpbandit suite -h` lists the rest."
        screen().print(line, highlight=False)


@app.command("list", cls=Once)
def show() -> None:
    """List the problems: what agents can do there, rounds, and the agent with the score 1.

    Example: `dpbandit suite list`
    """
    table = Table(
        "problem", "capability", "rounds", "full", "without privacy", box=None, pad_edge=False
    )
    for one in problems().values():
        rounds = (f"{one.horizon[size]:,}" for size in SIZES)
        table.add_row(one.name, one.capability, *rounds, one.without_privacy)
    screen().print(table)


@app.command("run", cls=Once)
def run(
    agents: Annotated[
        str,
        typer.Argument(
            help="Ids, or MODULE:NAME of any class, object or function, with commas in between."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder; what it holds already is kept.")] = Path(
        "suite"
    ),
    size: Annotated[str, typer.Option(help="small or full.")] = "small",
    jobs: Jobs = None,
    backend: Backend = "loky",
    scheduler: Scheduler = None,
    minutes: Annotated[
        float,
        typer.Option(
            help="Minutes of an agent on a problem at one epsilon, and a sixtieth for one call."
        ),
    ] = MINUTES,
) -> None:
    """Play, certify, test and audit agents on the suite, and write their card.

    Only these agents run: results of the package's own are shipped. After an interruption the same
    command goes on. If an agent raises an error on a problem, returns an invalid action, or takes
    more than `--minutes`, its card reports that, other runs go on, and the exit code is 1.

    Example: `dpbandit suite run mine:Agent --out card`
    """
    one_of("size", size, SIZES)
    chosen_size = cast(Size, size)
    done = run_suite(
        listed(agents),
        out,
        size=chosen_size,
        jobs=jobs,
        backend=backend,
        scheduler=scheduler,
        minutes=minutes,
    )
    card = write_card(done, out)
    say_scores(card.table, done.findings)
    for name, found in done.findings.items():
        if found["failed"]:
            say(f"{name} fails its tests: {found['failed']}")
        for one in found["raised"]:
            say(f"{name} on {one['problem']} {one['told']}.")
    say(f"Written: {card.page}, {card.picture}")
    if any(found["raised"] for found in done.findings.values()):
        raise typer.Exit(1)


@app.command("freeze", cls=Once)
def freeze(
    out: Annotated[
        Path, typer.Option(help="Folder; what was played in it already is kept.")
    ] = Path("frozen"),
    problem: Annotated[
        list[str] | None,
        typer.Option(help="Name of a problem, once for each; all of them by default."),
    ] = None,
    jobs: Annotated[int, typer.Option(help="Number of workers; all cores by default.")] = 0,
    backend: Backend = "loky",
    scheduler: Scheduler = None,
    users: Annotated[
        int | None,
        typer.Option(
            help="Instead, with the chosen agents: users from a sixteenth up to 2^USERS times."
        ),
    ] = None,
    again: Annotated[
        bool,
        typer.Option(
            "--again", help="Instead, only runs that are no longer played as stored; no choices."
        ),
    ] = False,
    ship: Annotated[
        bool, typer.Option("--ship", help="Put the files into the package, in a checkout.")
    ] = False,
) -> None:
    """Measure the cost of privacy anew: choose agents on some users, and report them on others.

    It takes hours, and goes on after an interruption: stored runs are reused if their first rounds
    come out the same again. It writes the runs, the table of answers from which best agents are
    recommended, and findings of tests and audits of the chosen agents.

    Example: `dpbandit suite freeze --out frozen --ship`, then the same with `--users 4`
    """
    from dpbandit.base import InputError
    from dpbandit.suite.freezing import Blocks, freeze_suite
    from dpbandit.suite.growing import grow
    from dpbandit.suite.renewing import renew
    from dpbandit.suite.tabulating import ship_frozen, write_frozen, write_grown, write_renewed

    some = problem or [*problems()]
    workers = jobs or os.cpu_count() or 1
    blocks = Blocks(out, jobs=workers, backend=backend, scheduler=scheduler)
    if again and users is not None:
        raise InputError(f"Expected --again or --users, not both; got --users {users}.")
    if again:
        done = renew(some, blocks)
        files = write_renewed(done.runs, done.rows, done.findings, out)
        say(f"Played again: {', '.join(done.played) or 'nothing, all is played as stored'}.")
        for place in done.doubtful:
            say(f"Another agent now has the least mean regret: {place}; choose anew.")
    elif users is None:
        files = write_frozen(freeze_suite(some, blocks), out)
    else:
        files = write_grown(grow(some, blocks, users), out)
    if ship:
        files = ship_frozen(files)
    say(f"Written: {', '.join(map(str, files))}")


@app.command("play", cls=Once)
def play(
    out: Annotated[Path, typer.Option(help="The HTML file.")] = Path("play.html"),
    card: Annotated[
        list[Path] | None,
        typer.Option(help="Folder of a `suite run`, whose agents are shown, too; once for each."),
    ] = None,
) -> None:
    """Write an interactive page that shows the cost of privacy on every problem, by sliders.

    It holds the shipped results of all agents, and needs neither a server nor a network.

    Example: `dpbandit suite play --card card --out play.html`
    """
    from dpbandit.suite.play import write_page

    say(f"Written: {write_page(out, card or ())}; open it in a browser.")


@app.command("verify", cls=Once)
def check_file(
    file: Annotated[Path, typer.Argument(help="suite.parquet, or the folder that holds it.")],
    out: Annotated[
        Path | None, typer.Option(help="A new folder, for what was played here, and its card.")
    ] = None,
    trust: Annotated[
        bool, typer.Option("--trust", help="Import modules, and take priors, that the file names.")
    ] = False,
    jobs: Jobs = None,
    minutes: Annotated[
        float, typer.Option(help="Minutes of an agent, as of `dpbandit suite run`.")
    ] = MINUTES,
) -> None:
    """Play, test and audit a submitted result again, all of it, and show the numbers found here.

    Numbers in the file are not shown. If it is refused, the reasons are, and the exit code is 2.

    Example: `dpbandit suite verify card/suite.parquet --trust --out verified`
    """
    found = verify(file, out=out, trust=trust, jobs=jobs, minutes=minutes, tell=say)
    done = accepted(found)
    same = f"{found.different} of {found.replayed} replicas differ from the file's"
    say(f"Verified: {', '.join(found.agents)}, {found.size}; {same}. What was played here:")
    say_scores(scores_of(done), done.findings)
    if out is not None:
        say(f"Written: {out / 'card.html'}, {out / 'card.png'}")


def say_scores(table: "pd.DataFrame", agents: Iterable[str]) -> None:
    """Print the mean score of each agent at each epsilon."""
    for name in agents:
        rows_of_agent = table[(table["agent"] == name) & (table["problem"] != "")]
        for epsilon, part in rows_of_agent.groupby("epsilon"):
            mean = 100 * part["score"].mean()
            many = f"{len(part)} of {len(problems())} problems"
            at = "without privacy" if epsilon == inf else f"at epsilon {epsilon:g}"
            say(f"{name} {at}: {mean:.0f} %, the mean on {many}.")
