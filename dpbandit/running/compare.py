"""Comparison of agents on the same users, with certificates and baselines."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from math import ceil
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from dpbandit.base import (
    MOST_REPLICAS,
    MOST_ROUNDS,
    AgentError,
    Board,
    InputError,
    Ints,
    Note,
    OverTime,
    Progress,
    Streams,
    TimeLimit,
    check_jobs,
    check_length,
    check_picklable,
    is_picklable,
    one_thread,
    provenance,
    time_limit,
    useful_jobs,
    warnings_on_stderr,
    whole,
)
from dpbandit.privacy import Certificate, Ledger
from dpbandit.privacy.certificate import certificate
from dpbandit.privacy.mechanism import checked_ledger, logged_calls
from dpbandit.results.problems import Setup, as_words
from dpbandit.results.results import Results
from dpbandit.results.runs import AgentRun, describe, log_marks
from dpbandit.running.foreign import PATIENT, each_apart, is_of_others, limit_for
from dpbandit.running.loop import (
    Log,
    Mark,
    check_callback,
    consecutive,
    joined,
    levels_of,
    play,
    replicas_at_once,
)
from dpbandit.running.resolve import (
    AnyAgent,
    AnyAgents,
    AnyProblem,
    ResolvedProblem,
    resolve_agent,
    resolve_agents,
    resolve_problem,
    resolve_spec,
)
from dpbandit.specs import AgentConfig, Hindsight, Spec, made_agent


def with_baselines(agents: Mapping[str, AgentConfig], spec: Spec) -> dict[str, AgentConfig]:
    """Add the baselines Uniform and BestFixed, on a convex domain also Centre, unless present.

    Raises `InputError` if another agent has the name of a baseline.
    """
    from dpbandit.agents import BestFixed, Centre, Uniform  # imports 60 files: only when needed

    configs = dict(agents)
    baselines: dict[str, AgentConfig] = {"Uniform": Uniform(), "BestFixed": BestFixed()}
    if spec.domain is not None:
        baselines["Centre"] = Centre()
    for name, baseline in baselines.items():
        if configs.get(name, baseline) != baseline:
            raise InputError(
                f"Expected a name other than {name!r} for {configs[name]}: a baseline has it."
            )
        if baseline not in configs.values():
            configs[name] = baseline
    return configs


def certify(
    config: AnyAgent,
    spec: Spec | AnyProblem,
    *,
    horizon: int | None = None,
    env_kwargs: Mapping[str, Any] | None = None,
    accountants: bool = True,
) -> Certificate:
    """Compute the epsilon that the noise of `config` gives on `spec`, beside its claim.

    The claim is the config's `epsilon` and `delta`, if it has them; the problem determines the kind
    of privacy. If the environment itself reveals users to others (`Spec.carries`), epsilon is
    infinite unless the agent's ledger states that the agent prevents it. The ledger is not checked
    here; `play` checks that it names every mechanism.

    Args:
        config: an agent's config, or its id with settings, such as "fade:epsilon=2".
        spec: public facts of a problem, or an environment in any form that `compare` takes.
        horizon: number of rounds of an environment; by default its own, or 10,000.
        env_kwargs: further arguments of an environment.
        accountants: also report the epsilon of every other accountant; some are slow to import.

    Raises:
        InputError: an argument is no config or environment, or they do not fit together.

    >>> round(certify("fade", "OJPricing", accountants=False).epsilon, 3)
    1.0
    """
    config = resolve_agent(config)
    spec = resolve_spec(spec, horizon=horizon, env_kwargs=env_kwargs)
    with logged_calls():  # apart from a run that goes on
        agent = made_agent(config, spec, Streams([0]))
    ledger = checked_ledger(type(config).__name__, getattr(agent, "ledger", None))
    return certificate(ledger.on(spec), claim=claim_of(config), accountants=accountants)


def claim_of(config: AgentConfig) -> tuple[float, float] | None:
    """Return the epsilon and delta that a config claims; None if it has no epsilon."""
    epsilon = getattr(config, "epsilon", None)
    return None if epsilon is None else (epsilon, getattr(config, "delta", 0.0))


def compare(
    env: AnyProblem,
    agents: AnyAgents,
    *,
    horizon: int | None = None,
    replicas: int = 20,
    seed: int = 0,
    env_kwargs: Mapping[str, Any] | None = None,
    jobs: int | None = 1,
    progress: bool = True,
    on_mark: Callable[[Mark], None] | None = None,
    limit: TimeLimit | None = None,
    counts: bool = True,
    by: str | None = None,
) -> Results:
    """Compare agents by cumulative regret on the same users, with a certificate for each.

    An agent that raises an exception or returns an invalid action is left out with a warning, and
    listed in `failed` of the results; the other agents' runs go on.

    Args:
        env: a registered id such as "dpbandit/OJPricing-v0" (or "OJPricing"), a problem, an
            environment of `gym.make`, or a class or function that makes a `Problem` from keyword
            arguments, `horizon` among them.
        agents: a mapping from names to configs, a list of configs, or a single config. An id with
            settings, such as "fade:epsilon=2", can stand for a config. "Uniform" play, the
            "BestFixed" action and, on a convex domain, its "Centre" are added if missing.
        horizon: number of rounds T, 1 to 10^9; by default the problem's own, or 10,000.
        replicas: number of independent repetitions, 1 to 100,000; replica r depends on (seed, r)
            only.
        seed: random seed, 0 to 2^32 - 1.
        env_kwargs: further arguments of the environment.
        jobs: largest number of processes that share the agents and their batches of replicas, 1 to
            1,024; None for the number of cores, or for 1 if something cannot be sent to processes.
            A run that ends sooner in this process starts none. Results do not depend on it.
        on_mark: function that is called with a `Mark` at every mark of every agent, about 500
            times each, in this process.
        progress: show a progress bar, one for each process, after two seconds.
        limit: time limits of an agent on a block of replicas; by default none. With a limit,
            foreign agents play in separate processes, and one that ends its process is left out
            like other agents that fail.
        counts: in runs of more than 20,000 rounds, draw users as counts where that is faster, as
            `play` does. Results have the same distribution, but agents do not face the same users.
        by: a column with public levels, of an environment that is made from a log, such as "shop":
            `summary(by="shop")` of the results then has regret and rounds by shop. No users are
            drawn as counts.

    Raises:
        InputError: an unknown id or argument, a number out of range, an object that is no config,
            an agent that does not fit the environment, rewards that are not finite numbers.
        AgentError: all requested agents failed; the error of the first one.

    >>> results = compare("GLMBandit", "linucb,fade:epsilon=2", horizon=50, replicas=2)
    >>> list(results.certificates)
    ['linucb', 'fade:epsilon=2', 'Uniform', 'BestFixed']
    """
    if horizon is not None:
        whole("horizon", horizon, 1, MOST_ROUNDS)
    whole("replicas", replicas, 1, MOST_REPLICAS)
    whole("seed", seed, 0, 2**32 - 1)
    check_jobs(jobs)
    check_callback(on_mark)
    if on_mark is not None and (jobs or 1) > 1:
        raise InputError(f"Expected jobs={jobs} to be 1: on_mark is called in this process.")
    resolved = resolve_problem(env, horizon=horizon, env_kwargs=env_kwargs)
    resolved = resolved._replace(counts=counts, by=by)
    problem = resolved.make(**resolved.arguments)
    spec = problem.spec
    if by is not None:
        levels_of(problem, by)
    requested, failed = resolve_agents(agents), dict[str, InputError]()
    for name in requested:
        check_length("the name of an agent", name)
    configs = with_baselines(requested, spec)
    sent: dict[str, Any] = {f"environment {resolved.label!r}": resolved}
    sent |= {f"agent {name!r}": config for name, config in configs.items()}
    others = {name: config for name, config in configs.items() if is_of_others(config)}
    apart = limit is not None and on_mark is None and bool(others or limit != PATIENT)
    several = (jobs or 1) > 1
    for what, thing in sent.items() if several or apart else ():
        check_picklable(what, thing, f"jobs={jobs}" if several else "limit=")
    certificates = dict[str, Certificate]()
    for name, config in configs.items():
        try:
            certificates[name] = certify(config, spec, accountants=False)
        except AgentError as error:
            failed[name] = error.of(name)
    configs = _left(configs, requested, failed)
    tasks = _tasks(configs, spec, replicas, limit if apart else None)
    alone = on_mark is not None or useful_jobs(jobs, [task.seconds for task in tasks]) == 1
    alone = alone or (jobs is None and not all(map(is_picklable, sent.values())))
    logs_by_task: list[LogsByAgent] = []
    if alone and not apart:
        with Progress(len(configs) * spec.horizon * replicas, visible=progress) as bar:
            for block in consecutive(range(replicas), replicas_at_once(spec)):
                logs_by_task.append(_block_logs(resolved, configs, seed, block, bar, on_mark))
    else:
        parts = {
            f"part {k} of {len(tasks)}": len(configs) * spec.horizon * (last - first)
            for k, (configs, (first, last), *_) in enumerate(tasks, start=1)
        }
        with Board(parts, visible=progress) as board:
            logs_by_task = _logs_in_processes(resolved, seed, tasks, board, [*parts], jobs, limit)
    logs_of = {name: [logs[name] for logs in logs_by_task if name in logs] for name in configs}
    for name in configs:
        for why in logs_of[name]:
            if isinstance(why, InputError):
                failed.setdefault(name, why)
    configs = _left(configs, requested, failed)
    sentences = {name: failure_message(name, mistake) for name, mistake in failed.items()}
    for sentence in sentences.values():
        warnings.warn(sentence, stacklevel=2)
    setup = Setup(
        environment=resolved.name,
        env_kwargs=as_words(resolved.recorded),
        horizon=spec.horizon,
        seed=seed,
        reward_unit=spec.reward_unit,
        problem=resolved.label,
    )
    runs = []
    for name, config in configs.items():
        agent_logs = [log for logs in logs_of[name] for log in _played(logs)]
        runs.append(as_run(setup, name, config, certificates[name], agent_logs))
    return Results(tuple(runs), sentences)


ROUND_SECONDS, REPLICA_SECONDS = 1e-4, 2e-6
"""Time that a learning agent's round takes at least, and each of its replicas on top."""
_BASELINE_SHARE = 0.1
"""Time of a baseline's round as a share of a learning agent's."""
_MAX_TASKS_OF_AGENT = 64
"""Largest number of tasks of one agent."""
LogsByAgent: TypeAlias = dict[str, list[Log] | InputError]
"""Agent's name -> its logs, or the error with which it failed."""


def _played(found: list[Log] | InputError) -> list[Log]:
    return [] if isinstance(found, InputError) else found


def failure_message(name: str, why: InputError) -> str:
    """Return a sentence about an agent's error, with the agent's name in the comparison."""
    return str(why) if isinstance(why, AgentError) else f"{name} failed. {why}"


def _left(
    configs: Mapping[str, AgentConfig],
    requested: Mapping[str, AgentConfig],
    failed: Mapping[str, InputError],
) -> dict[str, AgentConfig]:
    """Return the agents that have not failed.

    Raises the first error if all requested agents failed, or if an added baseline did, which
    shows that the problem is wrong.
    """
    left = {name: config for name, config in configs.items() if name not in failed}
    if failed and (not requested.keys() & left.keys() or failed.keys() - requested.keys()):
        raise next(iter(failed.values()))
    return left


def _block_logs(
    resolved: ResolvedProblem,
    configs: Mapping[str, AgentConfig],
    seed: int,
    block: tuple[int, int],
    bar: Progress | Note,
    on_mark: Callable[[Mark], None] | None = None,
) -> LogsByAgent:
    """Play all agents on a block of replicas; oracles last, as they need the other agents' logs.

    Agents with large matrices play fewer replicas at a time.
    """
    logs: LogsByAgent = {}
    for name in sorted(configs, key=lambda name: isinstance(configs[name], Hindsight)):
        try:
            logs[name] = _logs_of(resolved, configs[name], name, seed, block, bar, on_mark, logs)
        except AgentError as error:
            logs[name] = error.of(name)
        except InputError as error:
            logs[name] = error
        bar.finish(f"{name}, {block[1] - block[0]} replicas")
    return logs


def _logs_of(
    resolved: ResolvedProblem,
    config: AgentConfig,
    name: str,
    seed: int,
    block: tuple[int, int],
    bar: Progress | Note,
    on_mark: Callable[[Mark], None] | None,
    logs: LogsByAgent,
) -> list[Log]:
    """Play one agent on a block of replicas; an oracle takes the best action from `logs`."""
    marks, played = log_marks(resolved.arguments["horizon"]), list[Log]()
    if isinstance(config, Hindsight):  # the best action for the users of uniform play
        met = logs.get("Uniform")
        if met is None or isinstance(met, InputError):
            met = [_uniform_log(resolved, seed, block, marks)]
        best = joined(met).best_fixed
    size = replicas_at_once(resolved.make(**resolved.arguments).spec, config)
    for first, last in consecutive(range(*block), size):
        bar.working_on(name, rate=last - first)
        mark_callback = None if on_mark is None else partial(_tell, on_mark, name, first)
        problem, seeds = (
            resolved.make(**resolved.arguments),
            [(seed, r) for r in range(first, last)],
        )
        player = config
        if isinstance(config, Hindsight):
            player = config.with_answer(best[first - block[0] : last - block[0]])
        how: dict[str, Any] = {"advance": bar.advance, "on_mark": mark_callback}
        played.append(
            play(problem, player, seeds, marks=marks, counts=resolved.counts, by=resolved.by, **how)
        )
    return played


def _uniform_log(resolved: ResolvedProblem, seed: int, block: tuple[int, int], marks: Ints) -> Log:
    from dpbandit.agents import Uniform  # imports 60 files: only when needed

    seeds = [(seed, r) for r in range(*block)]
    problem = resolved.make(**resolved.arguments)
    return play(problem, Uniform(), seeds, marks=marks, counts=resolved.counts)


def _tell(on_mark: Callable[[Mark], None], name: str, first: int, mark: Mark) -> None:
    on_mark(replace(mark, agent=name, first_replica=first))


def _is_baseline(config: AgentConfig) -> bool:
    from dpbandit.agents import Centre, Uniform  # imports 60 files: only when needed

    return isinstance(config, Hindsight | Uniform | Centre)


def rough_seconds(config: AgentConfig, spec: Spec, first: int, last: int) -> float:
    """Return a rough estimate of the time that replicas `first` to `last` - 1 take."""
    batches = ceil((last - first) / replicas_at_once(spec, config))
    seconds = spec.horizon * (batches * ROUND_SECONDS + (last - first) * REPLICA_SECONDS)
    return seconds * (_BASELINE_SHARE if _is_baseline(config) else 1.0)


class Task(NamedTuple):
    """Agents that play a block of consecutive replicas in one process."""

    configs: dict[str, AgentConfig]
    block: tuple[int, int]
    seconds: float
    """rough estimate of the time"""
    apart: bool
    """True for a foreign agent with a time limit, which gets a process of its own"""


def _tasks(
    configs: Mapping[str, AgentConfig], spec: Spec, replicas: int, limit: TimeLimit | None
) -> list[Task]:
    """Share agents' whole batches of replicas among tasks, as halves would take as long as wholes.

    Foreign agents come first, and then the agents that probably take longest: those with most
    batches, and private ones. Baselines, which take a tenth of the time, share tasks, as an oracle
    needs the log of uniform play. Agents of many small batches have long tasks.
    """
    baselines = {name: config for name, config in configs.items() if _is_baseline(config)}
    groups = [{name: config} for name, config in configs.items() if name not in baselines]
    found = list[Task]()
    for group in [*groups, baselines]:
        one = next(iter(group.values()))
        size = replicas_at_once(spec, one)
        size *= ceil(ceil(replicas / size) / _MAX_TASKS_OF_AGENT)
        apart = limit is not None and any(map(is_of_others, group.values()))
        for block in consecutive(range(replicas), size):
            seconds = sum(rough_seconds(config, spec, *block) for config in group.values())
            found.append(Task(group, block, seconds, apart))
    return sorted(found, key=_order)


def _order(task: Task) -> tuple[bool, float, bool]:
    private = any(getattr(config, "epsilon", None) for config in task.configs.values())
    return not task.apart, -task.seconds, not private


def _logs_in_processes(
    resolved: ResolvedProblem,
    seed: int,
    tasks: Sequence[Task],
    board: Board,
    parts: Sequence[str],
    jobs: int | None,
    limit: TimeLimit | None,
) -> list[LogsByAgent]:
    """Play tasks, with progress bars on `board`, and return their logs.

    Foreign agents with a limit never play in this process, nor in one with dpbandit's own. An
    agent whose process ends has failed; other agents' logs are kept.
    """
    calls = [
        (resolved, task.configs, seed, task.block, board.note(part), limit)
        for part, task in zip(parts, tasks, strict=True)
    ]
    many = sum(task.apart for task in tasks)
    done = [partial(board.finish, part) for part in parts]

    def shared(some: slice) -> Iterator[Any]:
        useful = useful_jobs(jobs, [task.seconds for task in tasks[some]])
        if useful == 1 and not any(task.apart for task in tasks[some]):
            for call, finish in zip(calls[some], done[some], strict=True):
                logs = _silent_block_logs(*call)
                finish()
                yield logs
        else:
            how = (useful, limit or PATIENT, done[some])
            yield from each_apart(_silent_block_logs, calls[some], *how)

    in_order = chain(shared(slice(many)), shared(slice(many, None)))
    found = []
    for task, logs in zip(tasks, in_order, strict=True):
        ended = isinstance(logs, AgentError)
        found.append({name: logs.of(name) for name in task.configs} if ended else logs)
    return found


def _silent_block_logs(
    resolved: ResolvedProblem,
    configs: Mapping[str, AgentConfig],
    seed: int,
    block: tuple[int, int],
    note: Note,
    limit: TimeLimit | None,
) -> LogsByAgent:
    """Play agents on a block of replicas in a worker process, on one thread, with time limits."""
    with one_thread(), warnings_on_stderr():
        limits = {limit_for(config, limit) for config in configs.values()}
        try:
            with time_limit(limits.pop() if len(limits) == 1 else None):
                return _block_logs(resolved, configs, seed, block, note)
        except OverTime as over:
            (name, *_) = configs
            return {name: AgentError(name, f"took more than {over}", "its run", None, "stopped")}


def check_played(name: str, proof: Certificate, ledger: Ledger, replicas: int) -> None:
    """Raise `InputError` unless the ledger of an agent that played equals the certified one."""
    if ledger != proof.ledger:
        delta = proof.claimed_delta
        raise InputError(
            f"Expected the ledger of {name} to be the same for any number of replicas, got epsilon "
            f"{proof.ledger.epsilon(delta):.4g} at delta {delta:g} for one and "
            f"{ledger.epsilon(delta):.4g} for the {replicas} that were played: let it depend on "
            "settings and the problem alone."
        )


def as_run(
    setup: Setup,
    name: str,
    config: AgentConfig,
    proof: Certificate,
    logs: Sequence[Log],
    *,
    first: int = 0,
    marks: Ints | None = None,
) -> AgentRun:
    """Join an agent's logs of consecutive replicas, the first one numbered `first`, to a run.

    `marks` are the logged rounds; by default the last ones of `log_marks`.
    Raises `InputError` if the ledger of an agent that played differs from the certificate's ledger.
    """
    for log in logs:
        check_played(name, proof, log.ledger, len(log.clipped))
    log = joined(logs)
    measures = dict(log.measures)
    if isinstance(config, Hindsight) and log.best_fixed.ndim == 1:
        measures["action"] = 1.0 * log.best_fixed
    return AgentRun(
        setup=setup,
        name=name,
        config=describe(config),
        certificate=proof,
        marks=log_marks(setup.horizon)[-len(log.regret) :] if marks is None else marks,
        replicas=np.arange(first, first + len(log.clipped)),
        regret=log.regret,
        reward=log.reward,
        switches=log.switches,
        clipped=log.clipped,
        seconds=log.seconds,
        provenance=provenance(),
        measures=measures,
    )
