"""Comparison of agents on the same users, with certificates and baselines."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from math import ceil
from typing import Any, TypeAlias

import numpy as np

from dpbandit.base import (
    MOST_JOBS,
    MOST_REPLICAS,
    MOST_ROUNDS,
    AgentError,
    Board,
    InputError,
    Ints,
    Note,
    OverTime,
    Progress,
    Seed,
    Streams,
    TimeLimit,
    check_length,
    check_picklable,
    provenance,
    time_limit,
    warnings_on_stderr,
    whole,
)
from dpbandit.base.arrays import one_thread
from dpbandit.privacy import Certificate, Ledger
from dpbandit.privacy.certificate import certificate
from dpbandit.privacy.mechanism import checked_ledger, logged_calls
from dpbandit.results.problems import Setup, as_words
from dpbandit.results.results import Results
from dpbandit.results.runs import AgentRun, describe, log_marks
from dpbandit.running.foreign import PATIENT, each_apart, is_of_others, limit_for
from dpbandit.running.loop import Log, Mark, check_callback, play
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
from dpbandit.specs import (
    AgentConfig,
    Hindsight,
    Problem,
    Spec,
    made_agent,
    matrix_entries,
)

_CACHE_BYTES, _MAX_REPLICAS_TOGETHER = 1 << 22, 256
"""Bytes for the matrices of replicas that run together, and largest number of such replicas."""


def replicas_at_once(spec: Spec, config: AgentConfig | None = None) -> int:
    """Return the number of replicas whose matrices fit in the cache; affects only the speed.

    Matrices are as large as `spec` suggests, or as the agent of `config` needs.
    """
    entries = spec.matrix_entries if config is None else matrix_entries(config, spec)
    return max(1, min(_MAX_REPLICAS_TOGETHER, _CACHE_BYTES // (8 * entries)))


def consecutive(replicas: Sequence[int], size: int) -> list[tuple[int, int]]:
    """Split replica numbers into blocks (first, last + 1) of at most `size` consecutive ones.

    >>> consecutive([0, 1, 2, 5, 6], 2)
    [(0, 2), (2, 3), (5, 7)]
    """
    numbers = np.array(replicas, dtype=int)
    parts = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1)
    return [
        (int(part[i]), int(part[min(i + size, len(part)) - 1]) + 1)
        for part in parts
        for i in range(0, len(part), size)
    ]


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
    answer_from: Ints | None = None,
) -> Log:
    """Play any agent; for an oracle, first find the best action by a run of Uniform on these users.

    This action is the best one up to the last of the rounds `answer_from`, by default `marks`.
    """
    if isinstance(config, Hindsight):
        from dpbandit.agents import Uniform

        uniform_log = play(
            problem, Uniform(), seeds, marks=marks if answer_from is None else answer_from
        )
        config = config.with_answer(uniform_log.best_fixed)
    return play(problem, config, seeds, marks=marks, advance=advance)


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
    jobs: int = 1,
    progress: bool = True,
    on_mark: Callable[[Mark], None] | None = None,
    limit: TimeLimit | None = None,
    counts: bool = True,
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
        jobs: number of processes that share the replicas, 1 to 1,024; results do not depend on it.
        on_mark: function that is called with a `Mark` at every mark of every agent, about 500
            times each; with one job only.
        progress: show a progress bar, one for each job, after two seconds.
        limit: time limits of an agent on a block of replicas; by default none. With a limit,
            foreign agents play in separate processes, and one that ends its process is left out
            like other agents that fail.
        counts: in runs of more than 20,000 rounds, draw users as counts where that is faster, as
            `play` does. Results have the same distribution, but agents do not face the same users.

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
    whole("jobs", jobs, 1, MOST_JOBS)
    check_callback(on_mark)
    if on_mark is not None and jobs > 1:
        raise InputError(f"Expected jobs={jobs} to be 1: on_mark is called in this process.")
    resolved = resolve_problem(env, horizon=horizon, env_kwargs=env_kwargs)
    resolved = resolved._replace(counts=counts)
    spec = resolved.make(**resolved.arguments).spec
    requested, failed = resolve_agents(agents), dict[str, InputError]()
    for name in requested:
        check_length("the name of an agent", name)
    configs = with_baselines(requested, spec)
    sent: dict[str, Any] = {f"environment {resolved.label!r}": resolved}
    sent |= {f"agent {name!r}": config for name, config in configs.items()}
    others = {name: config for name, config in configs.items() if is_of_others(config)}
    apart = limit is not None and on_mark is None and bool(others or limit != PATIENT)
    for what, thing in sent.items() if jobs > 1 or apart else ():
        check_picklable(what, thing, f"jobs={jobs}" if jobs > 1 else "limit=")
    certificates = dict[str, Certificate]()
    for name, config in configs.items():
        try:
            certificates[name] = certify(config, spec, accountants=False)
        except AgentError as error:
            failed[name] = error.of(name)
    configs = _left(configs, requested, failed)
    groups, size = _groups(configs), replicas_at_once(spec)
    if jobs > 1:
        size = min(size, ceil(replicas / ceil(2 * jobs / len(groups))))
    blocks = consecutive(range(replicas), size)
    logs_by_block: list[LogsByAgent] = [{} for _ in blocks]
    if jobs == 1 and not apart:
        with Progress(len(configs) * spec.horizon * replicas, visible=progress) as bar:
            logs_by_block = [
                _block_logs(resolved, configs, seed, block, bar, on_mark) for block in blocks
            ]
    else:
        tasks = [(block, group) for group in groups for block in blocks]
        parts = {
            f"part {k} of {len(tasks)}": len(group) * spec.horizon * (block[1] - block[0])
            for k, (block, group) in enumerate(tasks, start=1)
        }
        with Board(parts, visible=progress) as board:
            found = _logs_in_processes(resolved, seed, tasks, board, [*parts], jobs, limit)
        for k, logs in enumerate(found):
            logs_by_block[k % len(blocks)] |= logs
    for name in configs:
        for why in (parts[name] for parts in logs_by_block):
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
        agent_logs = [log for parts in logs_by_block for log in _played(parts[name])]
        runs.append(as_run(setup, name, config, certificates[name], agent_logs))
    return Results(tuple(runs), sentences)


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
    if isinstance(config, Hindsight):  # the best action from another agent's log, on equal users
        met = next((log for log in logs.values() if not isinstance(log, InputError)), None)
        best = met or [_empty_log(resolved, seed, block, marks)]
        config = config.with_answer(np.concatenate([log.best_fixed for log in best]))
    size = replicas_at_once(resolved.make(**resolved.arguments).spec, config)
    for first, last in consecutive(range(*block), size):
        bar.working_on(name, rate=last - first)
        mark_callback = None if on_mark is None else partial(_tell, on_mark, name, first)
        problem, seeds = (
            resolved.make(**resolved.arguments),
            [(seed, r) for r in range(first, last)],
        )
        how: dict[str, Any] = {"advance": bar.advance, "on_mark": mark_callback}
        played.append(play(problem, config, seeds, marks=marks, counts=resolved.counts, **how))
    return played


def _empty_log(resolved: ResolvedProblem, seed: int, block: tuple[int, int], marks: Ints) -> Log:
    from dpbandit.agents import Uniform  # imports 60 files: only when needed

    seeds = [(seed, r) for r in range(*block)]
    problem = resolved.make(**resolved.arguments)
    return play(problem, Uniform(), seeds, marks=marks, counts=resolved.counts)


def _tell(on_mark: Callable[[Mark], None], name: str, first: int, mark: Mark) -> None:
    on_mark(replace(mark, agent=name, first_replica=first))


def _groups(configs: Mapping[str, AgentConfig]) -> list[dict[str, AgentConfig]]:
    """Split agents into tasks, foreign ones first, then private ones, which mostly take longest.

    Oracles (such as BestFixed) join the task of the last agent, whose log has the best action.
    """
    groups, oracles = list[dict[str, AgentConfig]](), dict[str, AgentConfig]()
    order = {
        name: (not is_of_others(config), not getattr(config, "epsilon", None))
        for name, config in configs.items()
    }
    for name in sorted(configs, key=order.__getitem__):
        if isinstance(configs[name], Hindsight):
            oracles[name] = configs[name]
        else:
            groups.append({name: configs[name]})
    groups[-1] |= oracles
    return groups


def _logs_in_processes(
    resolved: ResolvedProblem,
    seed: int,
    tasks: Sequence[tuple[tuple[int, int], Mapping[str, AgentConfig]]],
    board: Board,
    parts: Sequence[str],
    jobs: int,
    limit: TimeLimit | None,
) -> list[LogsByAgent]:
    """Play tasks (block of replicas, agents) in worker processes, with progress bars on `board`.

    With a limit, tasks of foreign agents, which come first, have one process each.
    """
    from joblib import Parallel, delayed  # not before: slow to import

    calls = [
        (resolved, configs, seed, block, board.note(part), limit)
        for part, (block, configs) in zip(parts, tasks, strict=True)
    ]
    many = sum(limit is not None and any(map(is_of_others, one.values())) for _, one in tasks)
    apart = each_apart(_silent_block_logs, calls[:many], jobs, limit or PATIENT)
    parallel = Parallel(n_jobs=jobs, return_as="generator", batch_size=1)
    in_pool = parallel(delayed(_silent_block_logs)(*call) for call in calls[many:])
    met = []
    for part, (_, configs), logs in zip(parts, tasks, chain(apart, in_pool), strict=True):
        ended = isinstance(logs, AgentError)
        met.append({name: logs.of(name) for name in configs} if ended else logs)
        board.finish(part)
    return met


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
    regret, reward, switches = (
        np.concatenate([getattr(log, what) for log in logs], axis=1)
        for what in ("regret", "reward", "switches")
    )
    return AgentRun(
        setup=setup,
        name=name,
        config=describe(config),
        certificate=proof,
        marks=log_marks(setup.horizon)[-len(regret) :] if marks is None else marks,
        replicas=np.arange(first, first + regret.shape[1]),
        regret=regret,
        reward=reward,
        switches=switches,
        clipped=np.concatenate([log.clipped for log in logs]),
        seconds=sum(log.seconds for log in logs),
        provenance=provenance(),
    )
