"""Write the tables of README.md, docs/suite.md and docs/howto/compare.md, and docs/suite.png.

    python tools/scoreboard.py

Their source is `dpbandit/running/answers.csv`, written by `dpbandit suite freeze`.
`tests/suite/test_suite.py` fails where a table is stale.
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
    answer_file,
    answers,
    chosen,
    mean_scores,
    ranked,
)
from dpbandit.suite.card import PACKAGE_BEST, heat_map  # noqa: E402
from dpbandit.suite.catalogue import epsilons, problems, suite  # noqa: E402
from dpbandit.suite.growing import AFFORDABLE, UsersNeeded, users_needed  # noqa: E402
from dpbandit.suite.playing import findings  # noqa: E402

RIVALS = ROOT / "experiments" / "rivals" / "numbers.csv"  # regrets that give the win rates
PRINTED_RATES = RIVALS.with_name("printed.csv")  # win rates printed in a paper
README = ROOT / "README.md"
PAGE, FIGURE = ROOT / "docs" / "suite.md", ROOT / "docs" / "suite.png"
START = ROOT / "docs" / "howto" / "compare.md"
SIX = ("orange juice", "flat shop", "recommendation", "digits", "lists of 200", "points by datum")
"""Problems in README: two of prices, one of each other kind, and where privacy costs most"""
SOURCE = "<!-- not measured: from dpbandit/running/answers.csv, held to it by tests/suite -->"
MIN_PROBLEMS = 10
"""Smallest number of problems of an agent that has a column in the figure"""
MIN_REGRET = 1e-6
"""Regret below which a number is only rounding, and printed as 0"""
LONG_TAIL_RATIO = 3
"""The worst replica is reported if the 95 % quantile of regret exceeds this x the median"""
MAX_COLUMNS = 16
"""Largest number of agents in the figure"""


def answer_table() -> str:
    """Return the table of all problems at epsilon 1, a row for each."""
    heads = ["problem (users)", "best agent without privacy", "it loses", "best private agent"]
    heads += ["loses at ε 1", "times", "best fixed action", "random play"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name, problem in problems().items():
        free, private = chosen()[name, inf], chosen()[name, 1.0]
        fixed, uniform = zero(name, "best-fixed"), zero(name, "uniform")
        unit = problem.setup("small").reward_unit
        size = f"{private.horizon:,}" + ("" if unit in ("reward", "loss") else f"; {unit}")
        cells = [f"{name} ({size})", _agent(free), _mean(free), _agent(private), _mean(private)]
        cells.append(_times(private))
        cells += [f"**{_mean(fixed)}**" if private.above_fixed > 1 else _mean(fixed)]
        lines.append(f"| {' | '.join([*cells, _mean(uniform)])} |")
    return "\n".join([SOURCE, *lines]) + "\n"


def short_answers() -> str:
    """Return the table of README at epsilon 1, a row for each of the six problems."""
    heads = ["problem (users)", "no privacy", "ε = 1", "times (95 %)", "best fixed", "random"]
    heads += ["users to beat best fixed", f"users to lose ≤ {AFFORDABLE:g} times"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name in SIX:
        free, private = chosen()[name, inf], chosen()[name, 1.0]
        unit = problems()[name].setup("small").reward_unit
        size = f"{private.horizon:,}" + ("" if unit in ("reward", "loss") else f"; {unit}")
        ends = [with_error(one.mean, one.se) for one in (free, private)]
        zeros = [_mean(zero(name, one)) for one in ("best-fixed", "uniform")]
        zeros[0] = f"**{zeros[0]}**" if private.above_fixed > 1 else zeros[0]
        needed = users_needed(name, 1.0)
        users = (needed.beats_fixed, needed.affordable) if needed else ()
        counts = [f"{n:,}" if n else f"> {needed.measured:,}" if needed else "" for n in users]
        lines.append(
            f"| {' | '.join([f'{name} ({size})', *ends, _times(private), *zeros, *counts])} |"
        )
    return "\n".join([SOURCE, *lines]) + "\n"


KIND_EXAMPLES = {
    "contextual arms": (
        'one of a few options ("arms") for each user',
        "`GLMBandit`, `Recommendation`",
    ),
    "arms": ("one of a few arms, knowing nothing of the user", "`Arms`"),
    "prices": ("a price", "`OJPricing`, `PricingFromLog`"),
    "experts": ("an expert to follow", "`Experts`"),
    "points by value": ("a point; its loss is observed", "`ConvexBandit`"),
    "points by datum": ("a point; the loss function is observed", "`OnlineConvex`"),
    "streams": ("a point, for data that come once", "`StreamingRegression`"),
    "sets": ("a set of products", "`AssortmentBandit`"),
    "lists": ("an ordered list", "`ListRecommendation`"),
    "people": ("an arm, for people who come back", "`ReturningUsers`"),
    "prices for people": ("a price, for people who come back", "`ReturningPricing`"),
    "lists for people": ("a list, for people who come back", "`ReturningLists`"),
}
"""Kind of problem -> the decision in words, and examples; optional parts of the code come last"""


def start_table() -> str:
    """Return the table of recommended agents by kind of problem."""
    lines = ["| you choose | a problem to try | with privacy | without privacy |"]
    lines += ["|---|---|---|---|"]
    for kind, (words, some) in KIND_EXAMPLES.items():
        cells = [_linked(ranked(kind, epsilon)[0]) for epsilon in (1.0, inf)]
        lines.append(f"| {words} | {some} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _linked(agent: str) -> str:
    """Return an agent's id in Markdown, with a link to the page of its algorithm."""
    pages = {one.id: one.page for one in entries()}
    page = next(pages[word] for word in agent.split(":") if word in pages)
    return f"[`{agent}`](../algorithms/{page}.md)"


def zero(problem: str, agent: str) -> Answer:
    """Return the row of the table of answers on a baseline, an agent that does not learn."""
    return next(
        one for one in answers() if (one.problem, one.role, one.agent) == (problem, ZERO, agent)
    )


def cost_table() -> str:
    """Return the table of best agents without privacy, and ratios of regret by epsilon."""
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
    """Return the table of scores by epsilon, and of regret of the best fixed action."""
    lines = ["| problem | capability |" + "".join(f" ε {e:g} |" for e in epsilons())]
    lines[0] += " against the best fixed action at ε 1 |"
    lines += ["|---|---|" + "---|" * (len(epsilons()) + 1)]
    for name, problem in problems().items():
        cells = [_score(chosen()[name, epsilon]) for epsilon in epsilons()]
        over = chosen()[name, 1.0].above_fixed
        cells.append("best fixed loses 0" if over == inf else f"{_digits(over)} times its regret")
        lines.append(f"| {name} | {problem.capability} | {' | '.join(cells)} |")
    return "\n".join([SOURCE, *lines]) + "\n"


def users_table() -> str:
    """Return the table of users needed for affordable privacy, and to beat a fixed action."""
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
    """Format the users needed for affordable privacy and to beat a fixed action; "-" if unknown."""
    if one is None:
        return ""
    return " / ".join(f"{n:,}" if n else "-" for n in (one.affordable, one.beats_fixed))


def agent_table() -> str:
    """Return the table of all agents' mean scores on the problems that each played."""
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
    """Return a key that sorts private agents by score at epsilon 1, then others by score."""
    private = name in scores[1.0]
    return not private, -scores[1.0 if private else inf][name]


def _agent(one: Answer) -> str:
    return f"`{one.agent}`"


def _mean(one: Answer) -> str:
    """Format mean regret with its standard error, and the worst replica if the tail is long."""
    text = with_error(one.mean, one.se)
    long = one.q95 > LONG_TAIL_RATIO * one.median and one.worst > MIN_REGRET
    return f"{text}, worst {one.worst:,.0f}" if long else text


def with_error(value: float, error: float) -> str:
    """Format a number with its standard error, to two digits of the error; 0 below `MIN_REGRET`.

    >>> with_error(1234.56, 12.3), with_error(1e-12, 1e-13)
    ('1,235 ± 12', '0')
    """
    if abs(value) < MIN_REGRET:
        return "0"
    digits = max(0, 1 - floor(log10(error))) if error > 0 else 1
    return f"{value:,.{digits}f} ± {error:,.{digits}f}"


def _times(one: Answer) -> str:
    """Format a regret ratio and its 95 % interval: 2.4 (2.0 to 2.8)."""
    low, high = _digits(one.times_low), _digits(one.times_high)
    return f"{_digits(one.times)} ({low} to {high})"


def _digits(times: float) -> str:
    """Format a ratio with two significant digits below 10, and three or more above.

    >>> _digits(2.437), _digits(16.81), _digits(0.957)
    ('2.4', '16.8', '0.96')
    """
    return f"{times:.2f}" if times < 1 else f"{times:.1f}" if times < 100 else f"{times:,.0f}"


def _score(one: Answer) -> str:
    score, low, high = (100 * x for x in (one.score, one.score_low, one.score_high))
    return f"{round(score)} ({round(low)} to {round(high)})"


def commands() -> str:
    """Return the commands that reproduce the rows of `answer_table`, one for each problem."""
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
    """Return seeds, versions and processor, from the head of the table of answers."""
    lines = answer_file().read_text(encoding="utf-8").splitlines()
    return " ".join(line[2:] for line in lines if line[:1] == "#") + "\n"


def win_rates() -> str:
    """Return the table of win rates, the % of data sets on which a row's agent beats a column's.

    The agent with less mean regret wins; equal means count half. Cells: epsilon 1, then epsilon 8.
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
    """Return win rates of each row's agent over each column's agent, in %, by epsilon."""
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
    """Return the table of win rates of the authors of VPO, beside our measured rates."""
    won, theirs = _won(), pd.read_csv(PRINTED_RATES, comment="#")
    lines = ["| wins of | over | ε 1: printed | measured here | ε 8: printed | measured here |"]
    lines += ["|---|---|" + "---|" * 4]
    for (row, column), pair in theirs.groupby(["row", "column"], sort=False):
        cells = [
            f"{one.rate:.0f} | {won[one.epsilon].at[row, column]:.0f}" for one in pair.itertuples()
        ]
        lines.append(f"| `{row}` | `{column}` | {' | '.join(cells)} |")
    return "\n".join([SOURCE, *lines]) + "\n"


def draw(path: Path) -> None:
    """Draw scores at epsilon 1 by problem, of agents that play many and of the best agents."""
    rows = [one for one in answers() if one.epsilon == 1.0 and one.role != HORIZON]
    table = pd.DataFrame(
        [
            {
                "agent": PACKAGE_BEST if one.role == CHOSEN else one.agent,
                "problem": one.problem,
                "epsilon": 1.0,
                "score": one.score,
            }
            for one in rows
        ]
    )
    many = table.groupby("agent")["problem"].nunique()
    means = table.groupby("agent")["score"].mean().sort_values(ascending=False)
    names = [name for name in means.index if many[name] >= MIN_PROBLEMS and name != PACKAGE_BEST]
    columns = [(name, 1.0) for name in (*names[:MAX_COLUMNS], PACKAGE_BEST)]
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
    """Return page -> name -> text between comments `<!-- name -->` and `<!-- end of name -->`."""
    return {
        README: {"answers": short_answers()},
        START: {"starts": start_table()},
        PAGE: {
            "answers": answer_table(),
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
    """Return the text of a page with updated tables."""
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
