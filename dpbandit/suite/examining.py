"""Examine an agent: run its tests, replay it at the suite's horizons, and audit it."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from math import inf, log, prod
from typing import Any

import numpy as np

from dpbandit.auditing import audit_all
from dpbandit.auditing.small_problems import SMALL_PROBLEMS
from dpbandit.base import (
    AgentError,
    InputError,
    OverTime,
    Progress,
    Streams,
    TimeLimit,
    rows,
    time_limit,
)
from dpbandit.privacy.ledger import Ledger
from dpbandit.privacy.mechanism import parts_of
from dpbandit.privacy.spends import Parallel
from dpbandit.running.compare import certify
from dpbandit.running.settings import parse_agent
from dpbandit.running.strangers import Stranger
from dpbandit.specs import AgentConfig, Spec, made_agent
from dpbandit.studies import AgentRecorder, Configuration, certificate_of
from dpbandit.suite.catalogue import Assignment, Size, assignment_of
from dpbandit.testing import check_agent
from dpbandit.testing.checks import (
    check_billboard,
    check_sensitivity,
)
from dpbandit.testing.returning import with_other_people
from dpbandit.testing.tapes import (
    Tape,
    World,
    expect,
    extreme_users,
    memory,
    run,
)

_FEWEST_ROUNDS, _MOST_ROUNDS = 24, 1536
"""Range of the horizon in tests, which is doubled until every mechanism has released."""
_REPLICAS = 6
"""Number of replicas with extreme users in a replay, and of replicas with users within bounds."""
_MAX_CONTEXT_NUMBERS = 4_000_000
"""Largest number of entries in contexts of a replay, unless all problems of a kind have more."""
_AUDIT_RUNS = {"small": 2000, "full": 20_000}
"""Number of pairs of runs after which an audit ends if it has refuted nothing, by size."""
# fields of an audit's result that a submission states
_AUDITED = ("claimed_epsilon", "certified_epsilon", "eps_lower", "runs", "failure", "flagged")


def examined(
    agent: str,
    size: Size,
    *,
    assignment: Assignment | None = None,
    limit: TimeLimit | None = None,
    progress: bool = False,
) -> dict[str, Any]:
    """Test and audit an agent at epsilon 1, and list the problems that it does not fit.

    Args:
        agent: an id with settings, or MODULE:NAME.
        size: size of the suite.
        assignment: result of `assignment_of` for the agent, if that is known already.
        limit: limit of the agent's time for all tests, and for the audit.
        progress: show a bar after two seconds.

    Returns:
        `unfit` (problem -> reason), `tests` (lines of a report), `failed` (the first failure or
        error in words, or "") and `audit`, see `audited`.

    Raises:
        InputError: for an unknown agent, or one that fits no problem.
    """
    assignment = assignment_of(agent, size, limit) if assignment is None else assignment
    config = parse_agent(agent, epsilon=1.0, delta=1e-5)
    found: dict[str, Any] = {"unfit": assignment.unfit, "failed": "", "tests": [], "audit": None}
    if isinstance(config, Stranger) or not assignment.configurations:
        return found  # it promises nothing, or was never made
    try:
        with time_limit(limit), Progress(len(assignment.configurations), visible=progress) as bar:
            bar.working_on(f"tests of {agent}", rate=1)
            for line in lines_of_tests(config, assignment):
                found["tests"].append(line)
                bar.advance(1)
    except AssertionError as broken:
        found["failed"] = " ".join(str(broken).split())
    except AgentError as error:
        found["failed"] = f"It {error.message}."
    except OverTime as over:
        found["failed"] = f"It took more than {over}."
    try:
        with time_limit(limit):
            found["audit"] = audited(config, size, progress=progress)
    except (AgentError, OverTime) as error:
        found["failed"] = found["failed"] or f"Its audit ended early. {error}"
    return found


def lines_of_tests(config: AgentConfig, assignment: Assignment) -> Iterator[str]:
    """Test an agent on a small problem, replay it on each kind of problem; yield lines of a report.

    Raises `AssertionError` if a test fails, or if a mechanism of the ledger never releases, as
    that mechanism was not tested then.
    """
    problem = assignment.configurations[0].problem().spec
    spec = next((small for small in SMALL_PROBLEMS if _fits(config, small)), problem)
    enough = long_enough(config, spec)
    yield from check_agent(config, enough, rounds=enough.horizon)
    for one in _to_replay(assignment.configurations):
        yield replayed(one)


def long_enough(config: AgentConfig, spec: Spec) -> Spec:
    """Return the spec with a horizon long enough for every mechanism of the agent to release.

    The first release comes in the first half, so that later actions may depend on it. Raises
    `AssertionError` if no horizon in the range of the tests is long enough.
    """
    rounds, idle = _FEWEST_ROUNDS, ["everything"]
    while rounds <= _MOST_ROUNDS:
        one = replace(spec, horizon=rounds, delay=min(spec.delay, rounds))
        with suppress(InputError):  # some agents refuse so few rounds
            ledger = made_agent(config, one, Streams([0])).ledger
            if not _promises(ledger):
                return one
            with np.errstate(all="ignore"):  # extreme users have NaN and infinity
                tape = run(config, one, extreme_users(one, 2, seed=1), remember=False)
            idle = unreleased(ledger, tape)
            nothing = not ledger.spends and getattr(config, "epsilon", inf) == inf
            if nothing or (ledger.spends and not idle and _early(tape)):
                return one
            if not (ledger.spends or tape.mechanisms or rounds < _MOST_ROUNDS):
                return replace(one, horizon=_FEWEST_ROUNDS)  # it never learns, whatever it claims
        rounds *= 2
    raise AssertionError(
        f"Expected all mechanisms to release within {_MOST_ROUNDS} rounds, and one of them in the "
        f"first half: nothing was checked of {', '.join(idle) or 'what the agent does then'}."
    )


def unreleased(ledger: Ledger, tape: Tape) -> list[str]:
    """Return the descriptions of ledger entries whose mechanisms have released nothing."""
    calls = zip(tape.mechanisms, tape.releases, strict=True)
    released = {
        id(mechanism): mechanism for mechanism, release in calls if release is not None
    }.values()
    paid = Counter(part for mechanism in released for part in parts_of(mechanism.spend))
    entries = Counter(part for spend in ledger.spends for part in parts_of(spend))
    return [
        entry.note
        for entry in entries - paid
        if not (isinstance(entry, Parallel) and any(m.spend in entry.parts for m in released))
    ]


def replayed(one: Configuration) -> str:
    """Play a problem of the suite twice, with one user replaced but the same releases.

    Raises `AssertionError` if an action of another user or the agent's final memory differs, if an
    input of a mechanism changes by more than its sensitivity, or if a mechanism never releases.
    """
    spec, recorder = one.problem().spec, _RecordingConfig(one.config)
    ledger = made_agent(one.config, spec, Streams([0])).ledger
    world, other = _users(spec, seed=1), _users(spec, seed=2)
    R = world.context.shape[1]
    t = rows(R) % _REPLICAS * spec.horizon // _REPLICAS
    with np.errstate(all="ignore"):  # extreme users have NaN and infinity
        if spec.returning:
            changed, t = with_other_people(spec, world, other, t)
        else:
            changed = world.swapped(t, other, answers_only=ledger.notion.contexts == "public")
        first = recorder.at_the_end(run(recorder, spec, world, remember=False))
        second = recorder.at_the_end(run(recorder, spec, changed, replay=first, remember=False))
    check_sensitivity(first, second, t)
    check_billboard(first, second, t)
    idle, where = unreleased(ledger, first), f"{spec.horizon:,} rounds of {one.setup.problem}"
    expect(
        not idle,
        f"Expected all mechanisms to release within {where}: nothing was checked of "
        f"{', '.join(idle)}.",
    )
    return f"replay: in {where} nothing but releases reaches anybody else"


class _RecordingConfig(AgentRecorder):
    """Config that records the agents it makes, to read their memory after the last round."""

    def at_the_end(self, tape: Tape) -> Tape:
        """Return the recorded run with the present memory of the agent that was made last."""
        remembered, personal = memory(self.agents[-1])
        return tape._replace(memories=[remembered], personal=[personal])


def _users(spec: Spec, seed: int) -> World:
    """Return replicas of extreme users, whose infinities may hide leaks, and of users in bounds.

    If people return, all users are extreme, as visits within bounds would use few person numbers.
    """
    extreme = extreme_users(spec, _REPLICAS, seed)
    if spec.returning:
        return extreme
    bounded = extreme.within_bounds()

    def joined(one: Any, two: Any) -> Any:
        return None if one is None else np.concatenate([one, two], axis=1)

    return extreme._replace(
        context=joined(extreme.context, bounded.context),
        reward=joined(extreme.reward, bounded.reward),
        mask=joined(extreme.mask, bounded.mask),
    )


def _to_replay(configurations: Sequence[Configuration]) -> Iterator[Configuration]:
    """Yield for each kind of problem the configuration with epsilon nearest 1, of longest horizon.

    Problems whose contexts exceed `_MAX_CONTEXT_NUMBERS` are passed over if a problem is smaller.
    """
    kinds: dict[type[Spec], list[tuple[Any, Configuration]]] = {}
    for one in configurations:
        epsilon = certificate_of(one).epsilon  # a config need not have a field `epsilon`
        if epsilon == inf:
            continue
        spec = one.problem().spec
        numbers = spec.horizon * prod(spec.context_shape) * 2 * _REPLICAS
        small = numbers <= _MAX_CONTEXT_NUMBERS
        far = round(abs(log(epsilon)), 6) if epsilon else inf
        order = (far, not small, -spec.horizon if small else numbers)
        kinds.setdefault(type(spec), []).append((order, one))
    for several in kinds.values():
        one = min(several, key=lambda each: each[0])[1]
        if _promises(made_agent(one.config, one.problem().spec, Streams([0])).ledger):
            yield one


def _promises(ledger: Ledger) -> bool:
    return all(spend.mu != inf for spend in ledger.spends)


def _early(tape: Tape) -> bool:
    """Return True if any mechanism released in the first half of the rounds."""
    middle = tape.marks[len(tape.marks) // 2]
    return any(release is not None for release in tape.releases[:middle])


def audited(config: AgentConfig, size: Size, *, progress: bool = False) -> dict[str, Any] | None:
    """Audit an agent by sequential bets on pairs of runs, up to the first refutation.

    Returns None if the agent claims no privacy on any problem that audits use.
    """
    most = _AUDIT_RUNS[size]
    reports = audit_all({"": config}, runs=most, until_known=True, progress=progress)
    for report in reports.values():
        findings = report.as_dict()
        return {"most": most, **{name: findings[name] for name in (*_AUDITED, "verdict")}}
    return None


def _fits(config: AgentConfig, spec: Spec) -> bool:
    with suppress(InputError):
        return bool(certify(config, spec, accountants=False))
    return False
