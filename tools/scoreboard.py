"""The answers of README and of the suite's page, from the table that `dpbandit suite freeze` wrote.

    python tools/scoreboard.py

It writes the tables of README.md and of docs/suite.md, and docs/suite.png, from
`dpbandit/running/answers.csv`. `tests/suite/test_suite.py` fails where they are stale.
"""

import sys
from collections.abc import Mapping
from functools import partial
from math import floor, inf, log10
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from dpbandit.agents.catalogue import entries  # noqa: E402
from dpbandit.base import write_atomically  # noqa: E402
from dpbandit.results.plots import save_figure  # noqa: E402
from dpbandit.running.answers import (  # noqa: E402
    CHOSEN,
    HORIZON,
    ZERO,
    Answer,
    UsersNeeded,
    answer_file,
    answers,
    chosen,
    mean_scores,
    ranked,
    users_needed,
)
from dpbandit.suite.card import OURS, heat_map  # noqa: E402
from dpbandit.suite.catalogue import epsilons, problems, suite  # noqa: E402
from dpbandit.suite.playing import findings  # noqa: E402

RIVALS = ROOT / "experiments" / "rivals" / "numbers.csv"
PRINTED = RIVALS.with_name("printed.csv")
README = ROOT / "README.md"
PAGE, FIGURE = ROOT / "docs" / "suite.md", ROOT / "docs" / "suite.png"
SOURCE = "<!-- not measured: from dpbandit/running/answers.csv, held to it by tests/suite -->"
BROAD = 10
"""Problems that an agent plays which has a column of the figure"""
NOTHING = 1e-6
"""Regret below this is rounding"""
LONG_TAIL = 3
"""Medians above which the quantile at 95 % has to be, for the worst run to be told"""
COLUMNS = 16
"""Agents in the figure, at most"""


def answer_table() -> str:
    """The table of README: at epsilon 1, on every problem."""
    heads = ["problem (users)", "best agent without privacy", "it loses", "best private agent"]
    heads += ["loses at ε 1", "times", "best fixed action", "random play"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name, problem in problems().items():
        free, private = chosen()[name, inf], chosen()[name, 1.0]
        fixed, uniform = zero(name, "best-fixed"), zero(name, "uniform")
        unit = problem.setup("small").reward_unit
        said = f"{private.horizon:,}" + ("" if unit in ("reward", "loss") else f"; {unit}")
        cells = [f"{name} ({said})", _agent(free), _mean(free), _agent(private), _mean(private)]
        cells.append(_times(private))
        cells += [f"**{_mean(fixed)}**" if private.above_fixed > 1 else _mean(fixed)]
        lines.append(f"| {' | '.join([*cells, _mean(uniform)])} |")
    return "\n".join([SOURCE, *lines]) + "\n"


KINDS = {
    "contextual arms": (
        'one of a few options ("arms") for each user',
        "`GLMBandit`, `Recommendation`",
    ),
    "arms": ("one of a few arms, knowing nothing of the user", "`Arms`"),
    "prices": ("a price", "`OJPricing`, `PricingFromLog`"),
    "experts": ("an expert to follow", "`Experts`"),
    "points by value": ("a point, told its loss", "`ConvexBandit`"),
    "points by datum": ("a point, told the loss function", "`OnlineConvex`"),
    "streams": ("a point, for data that come once", "`StreamingRegression`"),
    "sets": ("a set of products", "`AssortmentBandit`"),
    "lists": ("an ordered list", "`ListRecommendation`"),
    "people": ("an arm, for people who come back", "`ReturningUsers`"),
    "prices for people": ("a price, for people who come back", "`ReturningPricing`"),
    "lists for people": ("a list, for people who come back", "`ReturningLists`"),
}
"""Kind of problem -> what one chooses there, and problems to try; those of the core first."""


def start_table() -> str:
    """The table of README: the agents to start with, by kind of problem."""
    lines = ["| you choose | a problem to try | with privacy | without privacy |"]
    lines += ["|---|---|---|---|"]
    for kind, (words, some) in KINDS.items():
        cells = [_linked(ranked(kind, epsilon)[0]) for epsilon in (1.0, inf)]
        lines.append(f"| {words} | {some} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _linked(agent: str) -> str:
    """An agent, and a link to the page of the innermost one."""
    pages = {one.id: one.page for one in entries()}
    page = next(pages[word] for word in agent.split(":") if word in pages)
    return f"[`{agent}`](docs/algorithms/{page}.md)"


def zero(problem: str, agent: str) -> Answer:
    """What play that learns nothing loses."""
    return next(
        one for one in answers() if (one.problem, one.role, one.agent) == (problem, ZERO, agent)
    )


def cost_table() -> str:
    """Of every problem who stands for no privacy, and what privacy costs at every epsilon."""
    lines = ["| problem | without privacy |" + "".join(f" ε {e:g} |" for e in epsilons())]
    lines += ["|---|---|" + "---|" * len(epsilons())]
    for name in problems():
        cells = [_agent(chosen()[name, inf])]
        for epsilon in epsilons():
            one = chosen()[name, epsilon]
            cells.append(f"{_times(one)} {_agent(one)}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join([SOURCE, *lines]) + "\n"


def saved_table() -> str:
    """Of every problem the share of what random play, and the best fixed action, lose more."""
    lines = ["| problem | capability |" + "".join(f" ε {e:g} |" for e in epsilons())]
    lines[0] += " against the best fixed action at ε 1 |"
    lines += ["|---|---|" + "---|" * (len(epsilons()) + 1)]
    for name, problem in problems().items():
        cells = [_score(chosen()[name, epsilon]) for epsilon in epsilons()]
        over = chosen()[name, 1.0].above_fixed
        cells.append("it loses nothing" if over == inf else f"{_digits(over)} times its regret")
        lines.append(f"| {name} | {problem.capability} | {' | '.join(cells)} |")
    return "\n".join([SOURCE, *lines]) + "\n"


def users_table() -> str:
    """From how many users on privacy is affordable, and beats the best fixed action."""
    if not any(one.role == HORIZON for one in answers()):
        return "Not measured yet: the second command above does it.\n"
    lines = ["| problem | users played |" + "".join(f" ε {e:g} |" for e in epsilons())]
    lines += ["|---|---|" + "---|" * len(epsilons())]
    for name in problems():
        found = [users_needed(name, epsilon) for epsilon in epsilons()]
        cells = [_users(one) for one in found]
        most = max((one.measured for one in found if one), default=0)
        lines.append(f"| {name} | up to {most:,} | {' | '.join(cells)} |" if most else "")
    return "\n".join([SOURCE, *filter(None, lines)]) + "\n"


def _users(one: UsersNeeded | None) -> str:
    """Both numbers, with a stroke between; - where the last number played was too few."""
    if one is None:
        return ""
    return " / ".join(f"{n:,}" if n else "-" for n in (one.affordable, one.beats_fixed))


def agent_table() -> str:
    """Mean scores of all agents on the problems that each competed on, the best first."""
    scores = {epsilon: mean_scores(epsilon) for epsilon in (*epsilons(), inf)}
    many: dict[str, set[str]] = {}
    for one in answers():
        if one.role != HORIZON and (one.agent in scores[1.0] or one.agent in scores[inf]):
            many.setdefault(one.agent, set()).add(one.problem)
    lines = ["| agent | problems |" + "".join(f" ε {e:g} |" for e in epsilons())]
    lines[0] += " without privacy | audit: ε ≥ |"
    lines += ["|---|---|" + "---|" * (len(epsilons()) + 2)]
    for name in sorted(many, key=partial(_place, scores)):
        cells = [f"{round(100 * by[name])}" if name in by else "" for by in scores.values()]
        audit = findings().get(name, {}).get("audit")
        cells.append(f"{audit['eps_lower']:.2f}" if isinstance(audit, dict) else "")
        lines.append(f"| `{name}` | {len(many[name])} | {' | '.join(cells)} |")
    return "\n".join([SOURCE, *lines]) + "\n"


def _place(scores: Mapping[float, Mapping[str, float]], name: str) -> tuple[bool, float]:
    """Private agents first, by their score at epsilon 1; then the others, by theirs."""
    private = name in scores[1.0]
    return not private, -scores[1.0 if private else inf][name]


def _agent(one: Answer) -> str:
    return f"`{one.agent}`"


def _mean(one: Answer) -> str:
    """Regret and its standard error, and its tail where that is long."""
    text = with_error(one.mean, one.se)
    long = one.q95 > LONG_TAIL * one.median and one.worst > NOTHING
    return f"{text}, worst {one.worst:,.0f}" if long else text


def with_error(value: float, error: float) -> str:
    """A number with its standard error, to two digits of that; 0 where both are rounding.

    >>> with_error(1234.56, 12.3), with_error(1e-12, 1e-13)
    ('1,235 ± 12', '0')
    """
    if abs(value) < NOTHING:
        return "0"
    digits = max(0, 1 - floor(log10(error))) if error > 0 else 1
    return f"{value:,.{digits}f} ± {error:,.{digits}f}"


def _times(one: Answer) -> str:
    """Times, and its interval: 2.4 (2.0 to 2.8)."""
    low, high = _digits(one.times_low), _digits(one.times_high)
    return f"{_digits(one.times)} ({low} to {high})"


def _digits(times: float) -> str:
    """Two digits below 10, three above.

    >>> _digits(2.437), _digits(16.81), _digits(0.957)
    ('2.4', '16.8', '0.96')
    """
    return f"{times:.2f}" if times < 1 else f"{times:.1f}" if times < 100 else f"{times:,.0f}"


def _score(one: Answer) -> str:
    score, low, high = (100 * x for x in (one.score, one.score_low, one.score_high))
    return f"{round(score)} ({round(low)} to {round(high)})"


def commands() -> str:
    """For each problem the command that plays its row of README."""
    lines = ["```text"]
    for name, one in problems().items():
        row = chosen()[name, 1.0]
        agents = f"{chosen()[name, inf].agent},{row.agent}"
        if one.trust != "central":
            agents += f":trust={one.trust}"
        options = "".join(f" --set {key}={_word(value)}" for key, value in one.arguments.items())
        lines.append(
            f"dpbandit compare {one.environment}{options} --agents {agents} --horizon "
            f"{row.horizon} --replicas {row.replicas} --seed {suite().seed}  # {name}"
        )
    return "\n".join([*lines, "```"]) + "\n"


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def made() -> str:
    """The head of the table: seeds, versions and processor."""
    lines = answer_file().read_text(encoding="utf-8").splitlines()
    return " ".join(line[2:] for line in lines if line[:1] == "#") + "\n"


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


def draw(path: Path) -> None:
    """Mean scores at epsilon 1 of the agents that play many problems, and the chosen of each."""
    rows = [one for one in answers() if one.epsilon == 1.0 and one.role != HORIZON]
    table = pd.DataFrame(
        [
            {
                "agent": OURS if one.role == CHOSEN else one.agent,
                "problem": one.problem,
                "epsilon": 1.0,
                "score": one.score,
            }
            for one in rows
        ]
    )
    many = table.groupby("agent")["problem"].nunique()
    means = table.groupby("agent")["score"].mean().sort_values(ascending=False)
    names = [name for name in means.index if many[name] >= BROAD and name != OURS][:COLUMNS]
    columns = [(name, 1.0) for name in (*names, OURS)]
    figure = Figure(figsize=(8, 11), layout="constrained")
    figure.suptitle("Score at epsilon 1: 0 is random play, 100 no privacy", x=0.02, ha="left")
    axes = figure.subplots()
    heat_map(axes, table, columns, 12)
    axes.set_xticks([i + 0.5 for i in range(len(columns))], [n for n, _ in columns], rotation=90)
    axes.tick_params(
        axis="x", labelsize=12, top=True, labeltop=True, bottom=False, labelbottom=False
    )
    save_figure(figure, path)


def tables() -> dict[Path, dict[str, str]]:
    """What stands on each page between `<!-- name -->` and `<!-- end of name -->`."""
    return {
        README: {"answers": answer_table(), "starts": start_table()},
        PAGE: {
            "costs": cost_table(),
            "saved": saved_table(),
            "users": users_table(),
            "agents": agent_table(),
            "made": made(),
            "commands": commands(),
            "wins": win_rates(),
            "printed": printed(),
        },
    }


def written(page: Path) -> str:
    """The page with these tables."""
    text = page.read_text(encoding="utf-8")
    for name, new in tables()[page].items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
        head, _, rest = text.partition(begin)
        text = head + begin + new + end + rest.partition(end)[2]
    return text


if __name__ == "__main__":
    for some in tables():
        some.write_text(written(some), encoding="utf-8")
    write_atomically(FIGURE, draw)
