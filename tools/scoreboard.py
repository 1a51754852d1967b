"""The scoreboard of the suite, `docs/suite.md` and `docs/suite.png`, from the results it ships.

    python tools/scoreboard.py                  write the page and the figure anew
    python tools/scoreboard.py FOLDER ...       first verify what `dpbandit suite run` wrote there
    python tools/scoreboard.py --play fade,vpo  first play, test and audit these agents
    python tools/scoreboard.py --play all       all that are shipped, for a table of them alone

`--play` goes on in the folder `--out` after an interruption. What is shipped was played here, never
read from a file: the last rounds of all runs, with their certificates, seeds and provenance, and
what tests and audits found. `tests/suite/test_suite.py` fails where the page is stale.
"""

import json
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence
from functools import partial
from math import inf
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from dpbandit.base import write_atomically, write_json  # noqa: E402
from dpbandit.results.plots import save_figure  # noqa: E402
from dpbandit.results.runs import AgentRun  # noqa: E402
from dpbandit.running.settings import listed  # noqa: E402
from dpbandit.suite import Submission, frozen, problems, run_suite, scores, verify  # noqa: E402
from dpbandit.suite.card import OURS, best_of, heat_map  # noqa: E402
from dpbandit.suite.catalogue import epsilons, references, replicas  # noqa: E402
from dpbandit.suite.playing import freeze, frozen_file  # noqa: E402
from dpbandit.suite.scoring import ends_of  # noqa: E402
from dpbandit.suite.verifying import accepted  # noqa: E402

RIVALS = ROOT / "experiments" / "rivals" / "numbers.csv"
PRINTED = RIVALS.with_name("printed.csv")
PAGE, FIGURE = ROOT / "docs" / "suite.md", ROOT / "docs" / "suite.png"
BEGIN, END = "<!-- scoreboard -->\n", "<!-- end of scoreboard -->\n"
WINS = ("<!-- wins -->\n", "<!-- end of wins -->\n")
THEIRS = ("<!-- printed -->\n", "<!-- end of printed -->\n")
SOURCE = "<!-- not measured: from the results that are shipped, held to them by tests/suite -->"
BROAD = 10
"""Problems that an agent plays which has a column of the figure"""


def ship(done: Submission, *, whole: bool = False) -> None:
    """Put what was played here into the package's table, in place of what the same agents had there
    with other defaults, or of the `whole` table."""
    runs = {} if whole else {_place(run): run for run in frozen("small")}
    found = {} if whole else findings()
    runs |= {_place(run): run for run in done.runs}
    found |= {
        name: {"failed": one["failed"], "audit": one["audit"]}
        for name, one in done.findings.items()
    }
    freeze(runs.values(), frozen_file("small"))
    write_json(frozen_file("small").with_suffix(".json"), found)
    frozen.cache_clear()


def shipped() -> list[str]:
    """Agents of the table but for those that are there for the ends of scores; all must exist."""
    ends = {(one.setup.problem, one.name) for one in references("small")}
    names = [run.name for run in frozen("small") if (run.setup.problem, run.name) not in ends]
    return list(dict.fromkeys(names))


def _place(run: AgentRun) -> tuple[str, str, float]:
    return run.setup.problem, run.name, run.certificate.claimed_epsilon


def findings() -> dict[str, dict[str, object]]:
    """What tests and audits of the shipped agents found."""
    file = frozen_file("small").with_suffix(".json")
    return json.loads(file.read_text()) if file.exists() else {}


def board() -> tuple[str, pd.DataFrame]:
    """The tables of the page, in Markdown, and all scores."""
    runs = frozen("small")
    table = scores(runs, ends_of(runs))
    both = pd.concat([table, best_of(table)])
    tables = [SOURCE, *_by_capability(both), "", SOURCE, *_by_agent(table), "", *_made(runs)]
    tables += ["", _full_size(runs)]
    return "\n".join(tables) + "\n", both


def _by_capability(table: pd.DataFrame) -> list[str]:
    own = table[(table["agent"] == OURS) & (table["problem"] != "")]
    lines = ["| problem | capability |" + "".join(f" ε {e:g} |" for e in epsilons())]
    lines += ["|---|---|" + "---|" * len(epsilons())]
    for one in problems().values():
        cells = []
        for epsilon in epsilons():
            row = own[(own["problem"] == one.name) & (own["epsilon"] == epsilon)]
            cells += [f"{_score(r)} `{r.by}`" for r in row.itertuples()] or [""]
        lines.append(f"| {one.name} | {one.capability} | {' | '.join(cells)} |")
    return lines


def _by_agent(table: pd.DataFrame) -> list[str]:
    own, found = table[table["problem"] != ""], findings()
    lines = ["| agent | problems |" + "".join(f" ε {e:g} |" for e in epsilons())]
    lines[0] += " without privacy | audit: ε ≥ |"
    lines += ["|---|---|" + "---|" * (len(epsilons()) + 2)]
    for name, part in own.groupby("agent", sort=True):
        means = part.groupby("epsilon")["score"].mean()
        cells = [f"{round(100 * means[e])}" if e in means else "" for e in (*epsilons(), inf)]
        told = found.get(str(name), {})
        audit = told.get("audit")
        broken = told.get("failed") or (isinstance(audit, dict) and audit["flagged"])
        called = f"~~`{name}`~~" if broken else f"`{name}`"
        shown = f"{audit['eps_lower']:.2f}" if isinstance(audit, dict) else ""
        lines.append(f"| {called} | {part['problem'].nunique()} | {' | '.join(cells)} | {shown} |")
    return lines


def _score(row: object) -> str:
    score, low, high = (100 * getattr(row, name) for name in ("score", "low", "high"))
    return f"{round(score)} ({round(low)} to {round(high)})"


def _made(runs: object) -> list[str]:
    made = sorted({(r.provenance["source"], r.provenance["cpu"], r.setup.seed) for r in runs})
    return [
        f"Made by source `{source}` on {cpu}, seed {seed}, {len(runs[0].replicas)} replicas, the "
        "small size."
        for source, cpu, seed in made
    ]


def _full_size(runs: Sequence[AgentRun]) -> str:
    """What the full size would take, from the seconds of the small one."""
    more = replicas("full") / replicas("small")
    seconds = [
        run.seconds * np.array([1, more * problems()[run.setup.problem].horizon["full"] / T])
        for run in runs
        if (T := run.setup.horizon)
    ]
    every = sum(seconds)
    fade = sum(s for s, run in zip(seconds, runs, strict=True) if run.name == "fade")
    return (
        f"{SOURCE} The small size took {every[0] / 3600:.1f} hours of one core, of which "
        f"{fade[0] / 60:.1f} minutes for `fade`. The full size was not played: extrapolated "
        f"linearly in rounds and replicas, it takes {every[1] / 3600:.0f} hours of one core, of "
        f"which {fade[1] / 3600:.1f} hours for `fade`."
    )


def win_rates() -> str:
    """Of each two agents the share of classification sets on which the row loses less, in %.

    Equal means count half. At epsilon 1, and at 8 after a stroke.
    """
    won = _won()
    names, many = [*won[1].index], pd.read_csv(RIVALS, comment="#")["run"].nunique()
    lines = [f"| in % of {many} sets, ε 1 / 8 |" + "".join(f" `{n}` |" for n in names)]
    lines += ["|---|" + "---|" * len(names)]
    for name in names:
        cells = [
            "" if name == other else f"{won[1].at[name, other]:.0f} / {won[8].at[name, other]:.0f}"
            for other in names
        ]
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
    return "\n".join([SOURCE, *lines]) + "\n"


def _won() -> dict[int, pd.DataFrame]:
    """Win rates in % by epsilon: of the row, over the column."""
    rows = pd.read_csv(RIVALS, comment="#")
    rows = rows.assign(agent=rows["agent"].str.replace(r":epsilon=.*", "", regex=True))
    found = {}
    for epsilon in (1, 8):
        at = rows[rows["claimed_epsilon"] == epsilon]
        lost = at.pivot(index="agent", columns="run", values="mean")
        rates = {
            other: 100 * (lost.lt(theirs) + 0.5 * lost.eq(theirs)).mean(axis=1)
            for other, theirs in lost.iterrows()
        }
        found[epsilon] = pd.DataFrame(rates)
    return found


def printed() -> str:
    """Win rates that the authors of VPO publish, beside those of the same pairs here."""
    won, theirs = _won(), pd.read_csv(PRINTED, comment="#")
    lines = ["| wins of | over | ε 1: printed | measured here | ε 8: printed | measured here |"]
    lines += ["|---|---|" + "---|" * 4]
    for (row, column), pair in theirs.groupby(["row", "column"], sort=False):
        cells = [
            f"{one.rate:.0f} | {won[one.epsilon].at[row, column]:.0f}" for one in pair.itertuples()
        ]
        lines.append(f"| `{row}` | `{column}` | {' | '.join(cells)} |")
    return "\n".join([SOURCE, *lines]) + "\n"


def draw(path: Path, table: pd.DataFrame) -> None:
    """All agents that play many problems, at epsilon 1, and the best of all."""
    one = table[(table["epsilon"] == 1.0) & (table["problem"] != "")]
    many = one.groupby("agent")["problem"].nunique()
    means = one.groupby("agent")["score"].mean().sort_values(ascending=False)
    names = [name for name in means.index if many[name] >= BROAD and name not in (OURS, "uniform")]
    columns = [(name, 1.0) for name in (*names, OURS)]
    figure = Figure(figsize=(8, 11), layout="constrained")
    figure.suptitle("What uniform play loses and these save at epsilon 1, in %", x=0.02, ha="left")
    axes = figure.subplots()
    heat_map(axes, table, columns, 12)
    axes.set_xticks([i + 0.5 for i in range(len(columns))], [n for n, _ in columns], rotation=90)
    axes.tick_params(
        axis="x", labelsize=12, top=True, labeltop=True, bottom=False, labelbottom=False
    )
    save_figure(figure, path)


def written(text: str, tables: str) -> str:
    """The page with these tables, and with win rates."""
    parts = {(BEGIN, END): tables, WINS: win_rates(), THEIRS: printed()}
    for (begin, end), new in parts.items():
        head, _, rest = text.partition(begin)
        text = head + begin + new + end + rest.partition(end)[2]
    return text


def main() -> None:
    """Write what is stale."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER")
    parser.add_argument("--play", help="agents, with commas in between, or all")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "suite")
    parser.add_argument("--jobs", type=int, default=1)
    asked = parser.parse_args()
    for folder in asked.folders:
        ship(accepted(verify(folder, jobs=asked.jobs, tell=print)))
    if asked.play:
        whole = asked.play == "all"
        agents = shipped() if whole else listed(asked.play)
        ship(run_suite(agents, asked.out, jobs=asked.jobs, with_references=whole), whole=whole)
    tables, table = board()
    PAGE.write_text(written(PAGE.read_text(), tables))
    write_atomically(FIGURE, partial(draw, table=table))


if __name__ == "__main__":
    main()
