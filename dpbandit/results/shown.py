"""Results as a notebook shows them: regret and certificate of every run, side by side."""

from collections.abc import Sequence
from math import isinf

from dpbandit.base.files import html_table
from dpbandit.results.labels import short
from dpbandit.results.runs import AgentRun, standard_error

_MOST = 30
"""Runs that are shown; a sweep may have thousands"""
_HEAD = ("agent", "regret", "se", "claimed epsilon", "certified epsilon", "at delta", "privacy")


def as_text(runs: Sequence[AgentRun]) -> str:
    """A few lines for a console: one for each run, `_MOST` at most."""
    rows = [_HEAD, *_rows(runs)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if place in (0, len(_HEAD) - 1) else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    return "\n".join([_title(runs), *lines, *_left_out(runs)])


def as_html(runs: Sequence[AgentRun]) -> str:
    """The same as a table."""
    return html_table(_HEAD, _rows(runs), ". ".join([_title(runs), *_left_out(runs)]))


def _title(runs: Sequence[AgentRun]) -> str:
    where = {(run.setup.problem, run.setup.horizon, run.setup.reward_unit) for run in runs}
    if len(where) != 1:
        return f"{len(runs)} runs on {len(where)} problems"
    ((problem, horizon, unit),) = where
    replicas = sorted({len(run.replicas) for run in runs})
    counts = " to ".join(f"{count:,}" for count in dict.fromkeys((replicas[0], replicas[-1])))
    return f"{problem}: regret ({unit}) after {horizon:,} rounds, mean of {counts} replicas"


def _rows(runs: Sequence[AgentRun]) -> list[tuple[str, ...]]:
    several = len({run.setup.problem for run in runs}) > 1
    return [
        (
            f"{run.name} on {run.setup.problem}" if several else run.name,
            f"{run.regret[-1].mean():.4g}",
            f"{standard_error(run.regret[-1]):.2g}",
            *_privacy(run),
        )
        for run in runs[:_MOST]
    ]


def _privacy(run: AgentRun) -> tuple[str, str, str, str]:
    proof = run.certificate
    if isinf(proof.epsilon) and isinf(proof.claimed_epsilon):
        return "-", "-", "-", "not private"
    if proof.pure == 0:
        return "-", "-", "-", "no data used"
    excess = "" if proof.holds else "EXCEEDS THE CLAIM"
    words = " ".join(filter(None, [proof.ledger.brief or proof.notion.partition(",")[0], excess]))
    return f"{proof.claimed_epsilon:g}", f"{proof.epsilon:.4g}", short(proof.claimed_delta), words


def _left_out(runs: Sequence[AgentRun]) -> list[str]:
    more = len(runs) - _MOST
    return [f"and {more:,} runs more, see summary()"] if more > 0 else []
