"""Checks that an agent or a problem keeps its contract.

Joint DP is tested by two runs, recorded on tapes: in the second run one user is replaced, and all
releases are those of the first. No mechanism's input may change by more than its sensitivity, and
neither shared memory nor another user's action may change (billboard lemma). If people return, a
user is a person with all her visits, which may be in other rounds of the second run.
"""

import copy
import pickle
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np

from dpbandit.base import Floats, InputError, Ints, Streams, whole
from dpbandit.privacy import BudgetExceededError, Certificate
from dpbandit.privacy.ledger import MOVEMENT_ROUNDING
from dpbandit.privacy.mechanism import Mechanism, overheard
from dpbandit.privacy.premises import is_blind
from dpbandit.running.compare import certify
from dpbandit.running.episode import check_context, check_hindsight, check_step
from dpbandit.shelf import from_shelf
from dpbandit.specs import (
    AgentConfig,
    Problem,
    Spec,
    Step,
    acted,
    check_mask,
    made_agent,
    spec_of_kind,
)
from dpbandit.testing.noise import (
    admitted,
    check_noise_knows_no_data,
    check_rows,
    check_size,
    drawn_by,
)
from dpbandit.testing.tapes import (
    Tape,
    expect,
    extreme_users,
    played_on,
    rounds_of,
    rounds_of_calls,
    run,
    same,
)

PARTS = ((0, 1), (1, 3), (3, 6))
"""Parts of six replicas that are also run separately, as pairs (first, last + 1) of replicas."""


def check_replicas(config: AgentConfig, spec: Spec) -> Tape:
    """Check that a run of six replicas exactly equals runs of one, two and three; return its tape.

    The run of six is in blocks if the agent can play blocks, other runs are in single rounds.
    Queries and releases of mechanisms are compared, too.
    """
    world = extreme_users(spec, 6, seed=5).within_bounds()

    def played(first: int, last: int, *, blocks: bool = False, record: bool = False) -> Tape:
        how: dict[str, Any] = {"seeds": [(9, r) for r in range(first, last)], "remember": False}
        return run(config, spec, world.of(first, last), **how, blocks=blocks, record=record)

    six = played(0, 6, blocks=True, record=True)
    single = six
    for first, last in PARTS:
        part = played(first, last, record=bool(six.blocks) and last == 6)
        expect(
            part.ledger == six.ledger,
            f"Expected the same ledger for any number of replicas, got {six.ledger} for six and "
            f"{part.ledger} for {last - first}.",
        )
        equal = same(six.actions[:, first:last], part.actions)
        if not equal and six.blocks:  # is the difference due to blocks, or to replicas?
            single = played(0, 6)
        expect(
            equal or same(single.actions[:, first:last], part.actions),
            f"Expected replicas not to know each other: {first} to {last - 1} of six play "
            "otherwise without the rest. Draw from `streams`, one number for each replica.",
        )
        expect(
            equal and (not part.queries or same_calls(six, part, slice(first, last))),
            f"Expected {type(config).__name__} to play, feed and release in blocks what it does in "
            "single rounds.",
        )
    return six


def same_calls(one: Tape, two: Tape, replicas: slice) -> bool:
    """Return True if queries and releases of `one`, in these replicas, equal those of `two`."""
    calls = [zip(*tape[1:4], strict=True) for tape in (one, two)]
    return len(one.queries) == len(two.queries) and all(
        type(m) is type(n)
        and same_to_rounding(a[replicas], b)
        and same_to_rounding(None if x is None else x[replicas], y)
        for (a, m, x), (b, n, y) in zip(*calls, strict=True)
    )


def copies_of(original: Any) -> dict[str, Any]:
    """Copy an object through a pickle, and by `copy.deepcopy`; raise if that is impossible."""
    try:
        return {
            "its pickle": pickle.loads(pickle.dumps(original)),
            "its deep copy": copy.deepcopy(original),
        }
    except Exception as error:
        kind = type(original)
        raise AssertionError(
            f"Expected a {kind.__module__}.{kind.__name__} to be picklable, got: {error}."
        ) from error


def check_copies(config: AgentConfig, spec: Spec) -> None:
    """Check that pickled and deep-copied agents continue exactly as the original."""
    world, middle = extreme_users(spec, 3, seed=6).within_bounds(), spec.horizon // 3

    agent = made_agent(config, spec, Streams(range(3)))
    played_on(agent, spec, world, 0, middle)
    copies = copies_of(agent)
    wanted = played_on(agent, spec, world, middle, spec.horizon)
    for name, copied in copies.items():
        try:
            played = played_on(copied, spec, world, middle, spec.horizon)
        except BudgetExceededError as error:
            raise AssertionError(f"Expected {name} to have its own mechanisms: {error}") from error
        for t, action in enumerate(played):
            expect(
                same(action, wanted[t]),
                f"Expected {name} to go on as the agent does and to share nothing with it, got "
                f"another action in round {middle + t}.",
            )


def check_blind(config: AgentConfig, spec: Spec) -> None:
    """Check that an agent ignores contexts if it is `blind`, or by its ledger reads "nothing"."""
    world, other = (extreme_users(spec, 3, seed).within_bounds() for seed in (7, 8))
    agent = made_agent(config, spec, Streams(range(3)))
    reads_nothing = agent.ledger.notion.reads == "nothing"
    if not (reads_nothing or is_blind(agent)):
        return
    which = "whose ledger says that it reads nothing" if reads_nothing else "which is `blind`"
    instead = "promise OWN_DATA" if reads_nothing else "leave that out"
    for t, context in enumerate(world.context):
        twin, mask = copy.deepcopy(agent), world.masked(t)
        action = acted(agent, context, mask)
        expect(
            same(action, acted(twin, other.context[t], mask)),
            f"Expected {type(agent).__name__}, {which}, to act alike whatever the context is, got "
            f"another action in round {t + 1}: {instead}, or read no context.",
        )
        agent.update(context, action, world.answer(spec, t, action))


REPLICAS = 24
"""Number of replicas per replaced user; each overlooks a missing clip with probability 1/2, and all
of them with probability 2^-24."""
EVERYBODY = "everybody"
"""Entry of `swapped` that replaces users of evenly spread rounds, one in each replica."""
FIRST_WORLD, OTHER_WORLD = 1, 2
"""Seeds of the users, and of the users who replace some of them."""
SWAPPED = (0, 14, EVERYBODY)
"""Rounds whose users are replaced; round 14 is the last in a batch of 3 or of 5 rounds."""


def two_worlds(
    config: AgentConfig,
    spec: Spec,
    swapped: Collection[int | str] = SWAPPED,
    replicas: int = REPLICAS,
) -> tuple[Tape, Tape, Ints]:
    """Run an agent on two streams that differ in one user; return both tapes, and her rounds t.

    t has shape (R,), or, if people return, is a mask (T, R) of the rounds in which she comes on
    either stream. Each user in `swapped` is replaced in `replicas` replicas. If the ledger says
    that contexts are public, she has the same context on both streams.
    """
    public = made_agent(config, spec, Streams([0])).ledger.notion.contexts == "public"
    seeds = FIRST_WORLD, OTHER_WORLD
    world, other = (extreme_users(spec, replicas * len(swapped), seed) for seed in seeds)
    every = np.arange(replicas) * spec.horizon // replicas
    t = np.concatenate([every if isinstance(user, str) else 0 * every + user for user in swapped])
    with np.errstate(all="ignore"):  # users that are no numbers reach the agents' arithmetic
        if spec.returning:
            replaced = from_shelf("testing", "with_other_people", "people who return")
            changed, t = replaced(spec, world, other, t)
        else:
            changed = world.swapped(t, other, answers_only=public)
        first = _with_controls(lambda: run(config, spec, world))
        return first, _with_controls(lambda: run(config, spec, changed, replay=first)), t


def _with_controls(play: Callable[[], Tape]) -> Tape:
    """Return the tape of a run, with all arguments of calls that must not depend on data."""
    controls: list[tuple[Mechanism, int, Any]] = []

    def listen(mechanism: Mechanism, datum: tuple[Any, ...], calls: int) -> None:
        places = [place for place in mechanism.control_places() if place < len(datum)]
        controls.extend((mechanism, place, np.array(datum[place])) for place in places)

    with overheard(listen):
        tape = play()
    return tape._replace(controls=controls)


def check_joint_dp(
    config: AgentConfig,
    spec: Spec,
    swapped: Collection[int | str] = SWAPPED,
    replicas: int = REPLICAS,
) -> tuple[float, Tape]:
    """Check joint DP; return the largest change of an input / sensitivity, and the first tape."""
    one, two, t = two_worlds(config, spec, swapped, replicas)
    largest = check_sensitivity(one, two, t)
    check_billboard(one, two, t)
    if spec.returning:
        absent = from_shelf("testing", "without_person", "people who return")
        world = absent(extreme_users(spec, t.shape[1], FIRST_WORLD), t)
        with np.errstate(all="ignore"):
            nobody = run(config, spec, world, replay=one, remember=False)
        check_visits(spec, one, two, nobody, t)
    return largest, one


def largest_move(one: Tape, two: Tape, t: Ints) -> Floats:
    """Return the largest ratio (R,) of an input's change in the differing rounds t to sensitivity.

    Changes by several calls of a mechanism in one round add up; if a mechanism `replaces` earlier
    contributions of a person, so do changes in all her rounds. In other rounds queries must be
    exactly the same in both runs.
    """
    expect(one.marks == two.marks, f"Expected {_who(t)} not to decide how many calls are made.")
    places = [_places(tape) for tape in (one, two)]
    expect(places[0] == places[1], f"Expected {_who(t)} not to decide which mechanism is told.")
    theirs, rounds = rounds_of(one, t), rounds_of_calls(one)
    moves: dict[tuple[int, int] | None, Floats] = {None: np.zeros(t.shape[-1])}
    so_far: dict[int, Floats] = {}
    for i, (a, b) in enumerate(zip(one.queries, two.queries, strict=True)):
        mechanism, round = one.mechanisms[i], rounds[i]
        differing = theirs[round]
        expect(
            same(a[~differing], b[~differing]),
            f"Expected {_who(t)} to enter {_name(mechanism)} in no other round.",
        )
        if differing.any():
            gap = (a - b).reshape(len(a), -1)
            if getattr(mechanism, "replaces", False):
                gap = so_far[id(mechanism)] = so_far.get(id(mechanism), 0.0) + gap
            gap = gap[differing]
            move = moves.setdefault((id(mechanism), round), np.zeros(t.shape[-1]))
            with np.errstate(over="ignore"):  # the norm of an unclipped query may overflow
                size = np.linalg.norm(gap, ord=mechanism.order, axis=1)
            move[differing] += size / mechanism.sensitivity
    return np.max(list(moves.values()), axis=0)


def _places(tape: Tape) -> list[int]:
    """Return for each call the number of its mechanism, in the order of first calls."""
    places: dict[int, int] = {}
    return [places.setdefault(id(mechanism), len(places)) for mechanism in tape.mechanisms]


def check_visits(spec: Any, one: Tape, two: Tape, nobody: Tape, t: Ints) -> None:
    """Raise `AssertionError` if a person enters a mechanism more often than its cap or the spec's.

    She enters a mechanism in a round if its query differs from the query, perhaps not 0, of a round
    without a user; that is the round's query in the run `nobody`, in which she does not come.
    """
    theirs = rounds_of(one, t)
    for tape in (one, two):
        entered: dict[int, Floats] = {}
        rounds = rounds_of_calls(tape)
        queries = zip(tape.queries, nobody.queries, tape.mechanisms, strict=True)
        for i, (query, null, mechanism) in enumerate(queries):
            entering = (query != null).reshape(len(query), -1).any(axis=1) & theirs[rounds[i]]
            entered[id(mechanism)] = entered.get(id(mechanism), 0) + entering
        for mechanism in tape.mechanisms:
            most = getattr(mechanism, "most", spec.visits.cap)
            found = entered[id(mechanism)].max()
            expect(
                found <= most,
                f"Expected a person to enter {_name(mechanism)} at most {most} times, got {found}.",
            )


def check_sensitivity(one: Tape, two: Tape, t: Ints) -> float:
    """Check that no input changes by more than its sensitivity; return the largest ratio."""
    largest = float(largest_move(one, two, t).max())
    names = sorted({_name(m) for m in one.mechanisms})
    expect(
        largest <= 1 + MOVEMENT_ROUNDING,
        f"Expected replacing {_who(t)} to move the inputs of {', '.join(names)} by no more than "
        f"their sensitivity, got {largest:.4g} times as far: clip all that users say, and feed "
        "each of them to a mechanism once.",
    )
    return largest


def check_billboard(one: Tape, two: Tape, t: Ints) -> None:
    """Check that, given all releases, the agent and others' actions ignore a user's data."""
    found = billboard_differences(one, two, t)
    expect(
        not found,
        f"Expected data of {_who(t)} to reach the future through mechanisms only; with all "
        f"releases held fixed replacing her changed {' and '.join(found)}.",
    )


def billboard_differences(one: Tape, two: Tape, t: Ints) -> list[str]:
    """Describe what changed when the users of rounds t were replaced and all releases kept."""
    found = []
    others = ~rounds_of(one, t)
    if not same(one.actions[others], two.actions[others]):
        found.append("other users' actions")
    if one.memories != two.memories:
        found.append("what the agent remembers")
    if not same_but_for_one_user(one, two, people=1 if t.ndim == 2 else 0):
        found.append("what is remembered of other people")
    for (mechanism, place, a), (_, _, b) in zip(one.controls, two.controls, strict=False):
        words = f"argument {place + 1} of {_name(mechanism)}, which its proof takes for public"
        if words not in found and not same(a, b):
            found.append(words)
    return found


def same_but_for_one_user(one: Tape, two: Tape, *, people: int) -> bool:
    """Return True if the arrays kept for each person differ for <= `people` people per replica."""
    for a, b in zip(one.personal, two.personal, strict=True):
        for x, y in zip(a, b, strict=True):
            other = (x != y).reshape(*x.shape[:2], -1).any(axis=2)  # finite numbers alone
            if (other.sum(axis=1) > people).any():
                return False
    return True


def _who(t: Ints) -> str:
    if t.ndim == 2:
        return "a person"
    return f"user {t[0]}" if (t == t[0]).all() else "one user of each replica"


def _name(mechanism: object) -> str:
    return type(mechanism).__name__


UNPROVEN_CALIBRATIONS = ("paper", "paper-fixed", "heuristic")
"""Calibrations whose noise need not give the claimed epsilon."""


def check_agent(
    config: AgentConfig, spec: Spec, *, rounds: int = 24, tested: tuple[type, ...] = ()
) -> tuple[str, ...]:
    r"""Raise `AssertionError` unless the agent has the guarantees of its ledger on such problems::

        certificate   the noise gives the claimed epsilon, unless the calibration is a paper's
        replicas      a run of six exactly equals runs of one, two and three
        blocks        actions, queries and releases are the same in blocks as in single rounds
        actions       are allowed by the spec and by masks, and contexts are not changed
        copies        pickles and deep copies continue as the original
        ledger        names every mechanism that is called
        sensitivity   extreme users change no mechanism's input by more than its sensitivity
        billboard     with all releases held fixed, nothing else depends on a user's data
        admission     no later step of a mechanism reads a datum that was not clipped
        noise         does not depend on data, is as large as stated, and drawn for every row

    The last five are for agents whose ledger guarantees privacy. They are no proof, but an agent
    that forgets a clip, a factor or a release rarely passes. The noise of sums is measured; every
    other kind of mechanism needs its own test; every kind in dpbandit has one.

    Args:
        config: the agent's config.
        spec: public facts of a problem, such as bounds: `MyProblem().spec`; small ones are fast.
        rounds: largest number of rounds played; all that the agent does should happen in them.
        tested: mechanisms of yours whose noise you have tested.

    Returns:
        A line for each check, with its result.

    Raises:
        InputError: the agent does not fit the problem.
        AssertionError: a guarantee is broken, or nothing was checked.

    >>> from dpbandit.agents import DPUCB
    >>> from dpbandit.specs.protocols import ContextualSpec
    >>> print(*check_agent(DPUCB(), ContextualSpec(n_actions=2, dim=2, horizon=24)), sep="\n")
    certificate: epsilon 1 at delta 1e-05
    replicas: six equal three runs
    copies: go on alike
    ledger: names all of 1 mechanisms
    sensitivity: inputs move by 0.9428 of it at most
    billboard: nothing but releases is remembered
    noise: of 1 sums and 23 releases as the ledger says
    """
    spec_of_kind(spec, Spec)
    whole("rounds", rounds, 1)
    horizon = min(spec.horizon, rounds)
    spec = replace(spec, horizon=horizon, delay=min(spec.delay, horizon))
    proof = certify(config, spec, accountants=False)
    found = [check_certificate(config, proof)]
    tape = check_replicas(config, spec)
    check_copies(config, spec)
    check_blind(config, spec)
    found += ["replicas: six equal three runs", "copies: go on alike"]
    if tape.blocks:
        found.append(f"blocks: {tape.blocks} rounds equal single ones")
    if all(spend.mu != inf for spend in proof.ledger.spends):
        found += _private(config, spec, proof, tested)
    return tuple(found)


def check_certificate(config: Any, proof: Certificate) -> str:
    """Check that the noise gives the claimed epsilon; calibrations without a proof pass."""
    printed = getattr(config, "calibration", "certified") in UNPROVEN_CALIBRATIONS
    proved = f"epsilon {proof.epsilon:.4g} at delta {proof.claimed_delta:.4g}"
    expect(printed or proof.holds, f"Expected the claim to hold, the noise buys {proved}.")
    return f"certificate: {proved}"


def _private(
    config: AgentConfig, spec: Spec, proof: Certificate, tested: tuple[type, ...]
) -> Iterator[str]:
    """Run the checks of an agent that claims privacy; yield a line for each."""
    swapped = [t for t in SWAPPED if t == EVERYBODY or int(t) < spec.horizon]
    largest, one = check_joint_dp(config, spec, swapped)
    yield f"ledger: names all of {len(set(map(id, one.mechanisms)))} mechanisms"
    yield f"sensitivity: inputs move by {largest:.4g} of it at most"
    yield "billboard: nothing but releases is remembered"
    kinds = {type(mechanism) for mechanism in one.mechanisms}
    expect(
        bool(kinds) == (proof.epsilon > 0)
        and any(r is not None for r in one.releases) >= bool(kinds),
        f"Expected a mechanism to be called, and to release, within rounds={spec.horizon}: nothing "
        "was checked.",
    )
    for kind in sorted(kinds, key=str):
        expect(
            kind.releases_sum
            or issubclass(kind, tuple(tested))
            or kind.__module__.startswith("dpbandit."),
            f"Expected tested= to name {kind.__name__}: it is no sum, test its noise by itself.",
        )
    if any(kind.releases_sum for kind in kinds):
        count = check_noise_knows_no_data(config, spec)
        drawn = drawn_by(config, spec)
        check_size(proof.ledger, drawn)
        check_rows(drawn)
        yield f"noise: of {len(drawn)} sums and {count} releases as the ledger says"
    elif kinds:
        check_admission(config, spec)
        yield "admission: nothing is read that was not clipped"


def check_admission(config: AgentConfig, spec: Spec) -> None:
    """Check that mechanisms which compute more than sums never read a datum that is not clipped.

    Two runs have equal seeds, and in one every datum is clipped before the call; all releases and
    actions must be the same. Sums need no such test, because they read their query alone.
    """
    users = extreme_users(spec, 8, seed=1)
    with np.errstate(all="ignore"):
        raw, clipped = (run(config, spec, users, admit=a, remember=False) for a in (None, admitted))
    equal = same_to_rounding(raw.actions, clipped.actions) and all(
        same_to_rounding(a, b) for a, b in zip(raw.releases, clipped.releases, strict=True)
    )
    expect(equal, "Expected mechanisms to clip all that they are fed, and to keep nothing else.")


def same_to_rounding(one: Any, two: Any) -> bool:
    """Return True if two releases differ by at most 1e-7 of their size + 1e-9, or are both None."""
    if one is None or two is None:
        return one is two
    return np.allclose(one, two, rtol=1e-7, atol=1e-9, equal_nan=True)


_PROBLEM_REPLICAS = 6  # number of replicas in which problems are checked


def check_problem(problem: Problem, *, rounds: int = 24) -> tuple[str, ...]:
    """Raise `AssertionError` unless the problem keeps its contract; the problem is not changed::

        shapes     contexts, rewards, data and regrets are as the spec says, and finite
        seeds      decide everything, and other seeds bring other users
        replicas   a run of six exactly equals runs of one, two and three
        copies     pickles and deep copies continue as the original
        bounds     contexts and rewards lie in the spec's bounds but for a share `most_outside`
        regret     is oracle - expected, and where contexts have a best action, never below 0
        rewards    have the mean `expected` (statistical, false alarm 1e-8)
        masks      allow enough actions, and public masks do not depend on actions
        actions    NaN, wrong shapes and unavailable actions are refused
        hindsight  is finite, 0 where contexts have a best action; no fixed action beats the best

    Args:
        problem: a problem of yours, with its arguments.
        rounds: largest number of rounds played.

    Returns:
        A line for each check, with its result.

    Raises:
        AssertionError: the problem breaks its contract; one sentence says how.

    >>> from dpbandit.envs import OJPricing
    >>> check_problem(OJPricing())[0]
    'shapes: context, reward, expected, oracle, regret of 6 replicas in 24 rounds'
    """
    whole("rounds", rounds, 1)
    try:
        return tuple(_checks(problem, min(rounds, problem.spec.horizon)))
    except InputError as error:
        raise AssertionError(error) from error


def _checks(problem: Problem, rounds: int) -> Iterator[str]:
    spec: Spec = problem.spec
    six, after = _episode(problem, range(_PROBLEM_REPLICAS), rounds)
    named = "context, reward, expected, oracle, regret"
    named += "" if spec.datum_shape is None else ", datum"
    yield f"shapes: {named} of {_PROBLEM_REPLICAS} replicas in {rounds} rounds"
    again, others = (_play(problem, range(_PROBLEM_REPLICAS), rounds, episode=e) for e in (0, 1))
    expect(_alike(six, again), "Expected the same seeds to bring the same users and rewards.")
    expect(not _alike(six, others), "Expected other seeds to bring other users or rewards.")
    yield "seeds: decide everything"
    for first, last in PARTS:
        part = {name: values[:, first:last] for name, values in six.items()}
        expect(
            _alike(part, _play(problem, range(first, last), rounds)),
            f"Expected replicas not to know each other: {first} to {last - 1} of six go otherwise "
            "without the rest. Draw from `streams`, one number for each replica.",
        )
    yield "replicas: six equal three runs"
    for name in copies_of(problem):
        copied = _play(problem, range(_PROBLEM_REPLICAS), rounds, halfway=name)
        expect(_alike(six, copied), f"Expected {name} in mid-episode to go on as the problem does.")
    yield "copies: go on alike"
    many = _play(problem, range(200), rounds)
    _check_bounds(many, spec)
    yield "bounds: are kept"
    yield _check_regret(many, spec)
    yield _check_means(many, spec)
    if spec.masks != "none":
        yield _check_masks(problem, six, rounds)
    yield _check_actions(problem, rounds)
    check_hindsight(spec, after.hindsight(), _PROBLEM_REPLICAS)
    best = spec.validate(after.best_fixed(), _PROBLEM_REPLICAS)
    compared = _compare_with_best(problem, six, best)
    yield f"hindsight: the best fixed action is allowed, and none of {compared} others better"


def _play(problem: Problem, seeds: range, rounds: int, **how: Any) -> dict[str, Any]:
    return _episode(problem, seeds, rounds, **how)[0]


def _episode(
    problem: Problem,
    seeds: range,
    rounds: int,
    *,
    episode: int = 0,
    halfway: str | None = None,
    action: Any = None,
    action_seed: int = 9,
) -> tuple[dict[str, Any], Problem]:
    """Play a copy of a problem; return contexts, actions and feedback (T, R, ...), and the copy.

    Actions are uniformly random, or always `action` (R, ...). `halfway` names a kind of
    copy from `copies_of`, which takes over after half of the rounds.
    """
    mine, contexts, spec = copy.deepcopy(problem), [], problem.spec
    draw: Any = spec.uniform(Streams([(action_seed, seed) for seed in seeds]))
    mine.reset(Streams([(episode, seed) for seed in seeds]))
    for t in range(rounds):
        if halfway is not None and t == rounds // 2:
            mine = copies_of(mine)[halfway]
        context = mine.context()
        check_context(spec, context, len(seeds), t + 1)
        seen = {"context": context.copy()}
        if spec.masks != "none":
            seen["mask"] = mine.mask()  # type: ignore[attr-defined]
            check_mask(spec, seen["mask"], len(seeds))
        masks = {name: seen[name] for name in seen if name == "mask"}
        seen["action"] = draw(**masks) if action is None else action
        step = mine.step(seen["action"])
        check_step(spec, step, len(seeds))
        contexts.append(seen | {n: np.array(x) for n, x in step._asdict().items() if x is not None})
    return {name: np.array([one[name] for one in contexts]) for name in contexts[0]}, mine


def _compare_with_best(problem: Problem, six: dict[str, Any], best: Any) -> int:
    """Check that the action `best` earns most if always played; return the number of other actions.

    No action is compared if users depend on actions, means are not known, or there are masks.
    """
    if problem.spec.masks != "none":
        return 0
    rounds, draw = len(six["action"]), problem.spec.uniform(Streams(range(_PROBLEM_REPLICAS)))
    plays = [
        _play(problem, range(_PROBLEM_REPLICAS), rounds, action=a)
        for a in (best, *(draw() for _ in range(4)))
    ]
    known = not same(six["expected"], six["reward"])
    if not known or not all(same(play["context"], six["context"]) for play in plays):
        return 0
    most, *totals = (play["expected"].sum(axis=0) for play in plays)
    expect(
        all((total <= most + 1e-6 * (1 + abs(most))).all() for total in totals),
        "Expected best_fixed() to be the best of all fixed actions, one earns "
        f"{np.max(totals - most):.4g} more.",
    )
    return len(totals)


def _alike(one: dict[str, Any], two: dict[str, Any]) -> bool:
    return one.keys() == two.keys() and all(same(one[name], two[name]) for name in one)


def _check_bounds(episode: dict[str, Any], spec: Spec) -> None:
    rounds = []
    for row in zip(*episode.values(), strict=True):
        one = dict(zip(episode, row, strict=True))
        step: Any = {name: one.get(name) for name in Step._fields}
        rounds.append((one["context"], Step(**step)))
    for bound in spec.bounds():
        observed = rounds[spec.delay :] if bound.delayed else rounds
        if not observed:  # the delay exceeds the rounds played
            continue
        sizes = bound.size(np.array([bound.array(context, step) for context, step in observed]))
        share, most = ((sizes < bound.low) | (sizes > bound.high)).mean(), spec.most_outside
        expect(
            share <= most + 5 * (most / sizes.size) ** 0.5,
            f"Expected at most {most:.2%} of {bound.kind} {bound.where}, got {share:.2%}: "
            f"{bound.advice}, or say so in most_outside.",
        )


def _check_regret(episode: dict[str, Any], spec: Spec) -> str:
    regret = episode["regret"]
    if not spec.in_hindsight and spec.domain is None:  # a round of a stream may go below 0
        expect(
            (regret >= 0).all(),
            f"Expected no action to be better than the oracle, got regret={regret.min():.4g}.",
        )
    return f"regret: of random actions {regret.mean():.4g} a round"


def _check_means(episode: dict[str, Any], spec: Spec) -> str:
    expected = episode["expected"]
    gap = episode["reward"][spec.delay :] - expected[: len(expected) - spec.delay]
    error = float(np.sqrt(np.square(gap).sum()) / max(1, gap.size))
    mean = float(gap.sum() / max(1, gap.size))
    expect(
        abs(mean) <= 6 * error,
        f"Expected rewards to be on average what is expected, got {mean:.4g} more, with a "
        f"standard error of {error:.2g}.",
    )
    return f"rewards: are what is expected, to a standard error of {error:.2g}"


def _check_masks(problem: Problem, six: dict[str, Any], rounds: int) -> str:
    """Check that public masks are the same whatever the actions; return a line about masks."""
    if problem.spec.masks == "public":
        other = _play(problem, range(_PROBLEM_REPLICAS), rounds, action_seed=10)
        expect(
            same(other["mask"], six["mask"]),
            "Expected public masks not to depend on what is played: say masks='user'.",
        )
    return f"masks: {problem.spec.masks}, {six['mask'].mean():.3g} of the actions are there"


def _check_actions(problem: Problem, rounds: int) -> str:
    mine: Any = copy.deepcopy(problem)
    streams = Streams(range(_PROBLEM_REPLICAS))
    draw: Any = mine.spec.uniform(streams.child("player"))
    action = np.array(draw())
    mine.reset(streams.child("problem"))
    mine.context()
    wrongs: list[Any] = [action * np.nan, action[:-1], None]
    for _ in range(rounds - 1 if mine.spec.masks != "none" else 0):
        gone = ~mine.mask()
        if gone.any(axis=1).all():
            wrongs.append(action.copy())
            wrongs[-1].reshape(len(gone), -1)[:, 0] = gone.argmax(axis=1)
            break
        mine.step(draw(mask=~gone))
        mine.context()
    for wrong in wrongs:
        refused = False
        try:
            mine.step(wrong)
        except ValueError:
            refused = True
        expect(
            refused,
            f"Expected the action {wrong!r} to be refused: begin `step` with "
            "`action = self.spec.validate(action, R)`, and `check_available(action, mask)` where "
            "actions come and go.",
        )
    return "actions: wrong ones are refused"
