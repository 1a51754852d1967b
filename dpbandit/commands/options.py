"""Options that several commands share, and tables that they print."""

from collections.abc import Callable, Iterable, Sequence
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import gymnasium as gym
import typer
from rich.console import Console

from dpbandit.base import InputError, rounded
from dpbandit.base.tables import Table

if TYPE_CHECKING:
    from dpbandit.results.results import Results


Jobs = Annotated[
    int | None, typer.Option(help="Most worker processes, 1 to 1024; by default one per core.")
]

_NAME_LETTERS = 14
"""Names of agents with more letters are wrapped in tables, so that numbers have room."""


def features_of(texts: Iterable[str]) -> dict[str, list[Any]]:
    """Parse --feature options: name -> bounds or levels; refuse a repeated name."""
    features: dict[str, list[Any]] = {}
    for name, bounds in map(_feature, texts):
        if name in features:
            raise InputError(f"Expected --feature {name} once, got it twice.")
        features[name] = bounds
    return features


def listed(text: str) -> list[str]:
    """Split a text at commas; return words without blanks around them."""
    return [word.strip() for word in text.split(",")]


def words_of(text: str) -> list[Any]:
    """Split a text at commas; return numbers if all words are numbers, else words.

    >>> words_of("1, 2"), words_of("a,2")
    ([1.0, 2.0], ['a', '2'])
    """
    words = listed(text)
    try:
        return [float(word) for word in words]
    except ValueError:
        return list(words)


def range_of(option: str, text: str) -> list[float]:
    """Parse an option's value LOW:HIGH to two numbers."""
    low, colon, high = text.partition(":")
    if not colon:
        raise InputError(f"Expected {option}={text!r} to be LOW:HIGH, such as 1:3.")
    return [_number(option, low), _number(option, high)]


def _feature(text: str) -> tuple[str, list[Any]]:
    """Parse NAME=LOW:HIGH or NAME=LEVEL,LEVEL,...; levels may be numbers, such as postcodes."""
    name, equals, bounds = text.partition("=")
    if not (name and equals and bounds):
        raise InputError(
            f"Expected --feature {text!r} to be NAME=LOW:HIGH or NAME=LEVEL,LEVEL,...: a range "
            "read off the log would be data that no certificate covers."
        )
    if ":" in bounds and "," not in bounds:
        return name, range_of(f"--feature {name}", bounds)
    return name, listed(bounds)


def _number(option: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"Expected {option} to have numbers, got {text!r}.") from None


def screen() -> Console:
    """Return a console that prints text as it is, as names may look like markup."""
    return Console(markup=False, emoji=False)


def print_segments(results: "Results", by: str) -> None:
    """Print a table of regret and rounds by the levels of a column."""
    title = f"regret ({results.reward_unit}) by {by}; exact counts of users: not private"
    table = Table("agent", by, title=title, keys=2, letters=_NAME_LETTERS)
    for column in ("rounds", "mean", "se", "per 1,000 rounds"):
        table.add_column(column, justify="right")
    for row in results.summary(by).to_dict("records"):
        numbers = [row["rounds"], row["mean"], row["se"]]
        numbers.append(1000 * row["mean"] / row["rounds"] if row["rounds"] else nan)
        cells = ("-" if x != x else rounded(x, 4) for x in numbers)
        table.add_row(row["agent"], row["segment"], *cells)
    screen().print(table)


def print_results(results: "Results") -> None:
    """Print tables of regret and certificates, and sentences on the cost of privacy."""
    from dpbandit.agents.catalogue import is_reconstructed  # not before: help needs none of these
    from dpbandit.privacy.certificate import HONESTY
    from dpbandit.running.cost_of_privacy import cost_of_privacy
    from dpbandit.specs import CLIPPED

    records, unit = results.records(), results.reward_unit
    labels = {
        run.name: f"{run.name} (reconstructed)" if is_reconstructed(run.config) else run.name
        for run in results.runs
    }
    console = screen()
    one = results.runs[0]
    after = f"{one.setup.horizon:,} rounds, {len(one.replicas)} replicas"
    title = f"{one.setup.problem}: cumulative regret ({unit}) after {after}"
    table = Table("agent", title=title, letters=_NAME_LETTERS)
    columns = {"mean": "mean", "se": "se", "5 %": "q05", "median": "q50", "95 %": "q95"}
    clips = any((record["clipped"] or 0.0) > 0 for record in records)
    columns |= {"clipped": "clipped", "seconds": "seconds"} if clips else {"seconds": "seconds"}
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    for record in records:
        numbers = [record[key] for key in columns.values()]
        table.add_row(
            labels[record["agent"]], *("-" if x is None else rounded(x, 4) for x in numbers)
        )
    console.print(table)
    if clips:
        console.print(CLIPPED, highlight=False)
    proofs = Table("agent", title="certificates", letters=_NAME_LETTERS)
    for column in ("claimed\nepsilon", "certified\nepsilon", "at delta"):
        proofs.add_column(column, justify="right", no_wrap=True)
    proofs.add_column("privacy")
    notions = list(dict.fromkeys(run.certificate.notion for run in results.runs))
    for run in results.runs:
        proof = run.certificate
        excess = "" if proof.holds else "EXCEEDS THE CLAIM"
        proofs.add_row(
            labels[run.name],
            rounded(proof.claimed_epsilon, 6),
            rounded(proof.epsilon, 4),
            rounded(proof.claimed_delta, 6),
            f"({notions.index(proof.notion) + 1}) {proof.ledger.brief} {excess}".strip(),
        )
    console.print(proofs)
    for number, notion in enumerate(notions, start=1):
        console.print(f"({number}) {notion}", highlight=False)
    for sentence in (*results.warnings, *cost_of_privacy(results)):
        console.print(sentence, style="bold", highlight=False)
    console.print(HONESTY, style="dim", highlight=False)


def audit_table(reports: dict[str, Any]) -> Table:
    """Return a table of audits; a row "as printed" is the agent above with its paper's noise."""
    from dpbandit.auditing.small_problems import PRINTED_SUFFIX  # not before: slow to import

    table = Table("agent", title="audits", box=None, pad_edge=False, letters=_NAME_LETTERS)
    for column in ("claimed", "certified", "epsilon >=", "by GDP", "seconds"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("verdict")
    for name, report in reports.items():
        by_gdp = "-" if report.eps_lower_gdp is None else f"{report.eps_lower_gdp:.3f}"
        table.add_row(
            "  as printed" if name.endswith(PRINTED_SUFFIX) else name,
            rounded(report.claimed_epsilon, 6),
            rounded(report.certified_epsilon, 4)
            + (f" {report.restricted}" if report.restricted else ""),
            f"{report.eps_lower:.3f}",
            by_gdp,
            f"{report.seconds:.1f}",
            report.verdict,
        )
    if reports:
        one, *_ = reports.values()
        table.caption = f"{one.runs:,} runs of each world, view {one.view}; each line wrong with "
        table.caption += f"probability <= {rounded(one.failure, 2)}"
    return table


def complete_env(incomplete: str) -> list[str]:
    """Complete an environment's id; once a letter is typed, also its short name."""
    ids = [name for name, entry in gym.registry.items() if "problem" in entry.kwargs]
    short = [name.removeprefix("dpbandit/").removesuffix("-v0") for name in ids]
    return [name for name in [*ids, *(short if incomplete else [])] if name.startswith(incomplete)]


def complete_agents(incomplete: str) -> list[str]:
    """Complete the last id in a comma-separated list of agents.

    >>> complete_agents("linucb,dp-u"), complete_agents("priced:gre")
    (['linucb,dp-ucb'], ['priced:greedy'])
    """
    from dpbandit.agents import AGENTS  # not before: 60 files
    from dpbandit.running.settings import WRAPPER_KINDS, around

    before, comma, last = incomplete.rpartition(",")
    behind = around(last)[0]
    names = [*WRAPPER_KINDS, *AGENTS] if last and not behind else [behind + name for name in AGENTS]
    return [f"{before}{comma}{name}" for name in names if name.startswith(last)]


Env = Annotated[
    str, typer.Option(help="Environment id, see `dpbandit envs`.", autocompletion=complete_env)
]
Epsilon = Annotated[float, typer.Option(help="Target epsilon of every private agent, > 0.")]
Delta = Annotated[float, typer.Option(help="Target delta of every private agent, in [0, 1).")]
Horizon = Annotated[int, typer.Option(help="Number of rounds, >= 1.")]
Replicas = Annotated[int, typer.Option(help="Number of independent repetitions, >= 1.")]
Seed = Annotated[int, typer.Option(help="Random seed; replica r depends on (seed, r) only.")]
Minutes = Annotated[
    float | None,
    typer.Option(
        help="Minutes that an agent may take for a block of replicas, and a sixtieth of that for a "
        "call; by default ten minutes for a call of an agent that is not dpbandit's own."
    ),
]
JsonFile = Annotated[Path | None, typer.Option("--json", help="Write the numbers to this file.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", help="Set an argument, KEY=VALUE; repeatable.")
]


Sep = Annotated[
    str | None, typer.Option(help="What separates cells of the file: ',' (default), ';' or tab.")
]
Decimal = Annotated[
    str | None, typer.Option(help="The decimal mark in numbers of the file: . (default) or ,")
]
Yes = Annotated[
    str | None,
    typer.Option(help="WORD,...: words that mean 1 where the answer is a word; another means 0."),
]
DropMissing = Annotated[
    bool, typer.Option("--drop-missing", help="Leave out rows with an empty cell, and say so.")
]


def reading_of(
    sep: str | None, decimal: str | None, yes: str | None, drop_missing: bool
) -> dict[str, Any]:
    """Return options of the command line as the argument `reading`, without those not given."""
    words = None if yes is None else listed(yes)
    options = {"sep": sep, "decimal": decimal, "yes": words, "drop_missing": drop_missing or None}
    return {name: value for name, value in options.items() if value is not None}


def specified(context: typer.Context, names: Sequence[str]) -> bool:
    """Return True if any of these options is on the command line."""
    sources = (context.get_parameter_source(name) for name in names)
    return any(source is not None and source.name == "COMMANDLINE" for source in sources)


def say_overridden(context: typer.Context, agents: Iterable[str]) -> None:
    """Print a note for each agent whose settings override --epsilon or --delta."""
    for agent in agents:
        named = [setting.partition("=")[0] for setting in agent.split(":")]
        for name in ("epsilon", "delta"):
            if name in named and specified(context, [name]):
                say(f"{agent} says {name} itself: --{name} is not for it.")


class Saved:
    """Writer of a command's files, used before anything is printed, so that files are never lost.

    If a file cannot be written, the others still are, and results are printed: `tell` raises the
    first error at the end.
    """

    def __init__(self) -> None:
        self._sentences: list[str] = []
        self._mistake: InputError | None = None

    def write(self, sentence: str, write: Callable[..., Any], *arguments: Any, **how: Any) -> bool:
        """Call the function `write`; if it succeeds, store the sentence and return True."""
        try:
            write(*arguments, **how)
        except InputError as mistake:
            self._mistake = self._mistake or mistake
            return False
        if sentence:
            self._sentences.append(sentence)
        return True

    def tell(self) -> None:
        """Print the sentences that `write` stored; raise its first `InputError`, if it met any."""
        for sentence in self._sentences:
            say(sentence)
        if self._mistake is not None:
            raise self._mistake


def say(sentence: str) -> None:
    """Print a sentence without markup or line breaks, so that paths stay as they are."""
    screen().print(sentence, highlight=False, soft_wrap=True)
