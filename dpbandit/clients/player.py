"""Run an agent in your own loop over a Gymnasium bandit, and save its state to a file.

Running agents as plain values and arrays, and back: no pickle, and no code comes from a file.

What may be stored is listed here: plain values, containers, arrays, generators of random numbers,
objects of dpbandit's classes (or of the module of one's own agent) as their attributes, and
functions by name. What is held twice is held twice again.
"""

import json
import os
import secrets
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import _lru_cache_wrapper, partial
from hashlib import sha256
from importlib import import_module
from os import PathLike
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any, Protocol, Self
from zipfile import BadZipFile

import gymnasium as gym
import numpy as np

from dpbandit.base import (
    PROGRAM,
    AnyArray,
    InputError,
    Streams,
    check_readable,
    clip_range,
    one_number,
    provenance,
    shown_path,
    text_of,
    whole,
    write_atomically,
)
from dpbandit.clients.from_gymnasium import Bridge, Contexts
from dpbandit.privacy import Certificate
from dpbandit.privacy.mechanism import Books, Roll, enrolled
from dpbandit.running.compare import certify
from dpbandit.running.given import AnyAgent, agent_given
from dpbandit.specs import (
    MOST_OUTSIDE,
    AgentConfig,
    Hindsight,
    Masks,
    Outside,
    Prior,
    Spec,
    acted,
    check_available,
    made_agent,
)

_CONTAINERS: dict[str, Callable[..., Any]] = {
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "slice": lambda parts: slice(*parts),
    "range": lambda parts: range(*parts),
    "partial": lambda parts: partial(parts[0], *parts[1], **parts[2]),
    "method": lambda parts: getattr(*parts),
    "counter": lambda parts: Counter(parts[0]),
    "deque": lambda parts: deque(parts[0], parts[1]),
}
_BIT_GENERATORS = {"SFC64": np.random.SFC64, "PCG64": np.random.PCG64}
_SLOTS = "__slots__"


class Encoder:
    """One value as nodes, each of which may name others by their number.

    Args:
        own: the package of one's own agent, whose classes may be stored, too.
        facts: for comparisons: dataclasses are their fields, and what is held twice is told twice.
    """

    def __init__(self, own: str = "dpbandit", *, facts: bool = False) -> None:
        self.nodes: list[Any] = []
        """[kind, ...], JSON"""
        self.arrays: list[AnyArray] = []
        self._own, self._facts, self._seen = own, facts, dict[int, int]()
        self._alive: list[Any] = []  # so that no id is given twice

    def put(self, value: Any) -> int:
        """The number of its node."""
        if id(value) in self._seen and not self._facts:
            return self._seen[id(value)]
        number = self._seen[id(value)] = len(self.nodes)
        self._alive.append(value)
        self.nodes.append(None)
        self.nodes[number] = self._node(value)
        return number

    def _node(self, value: Any) -> list[Any]:
        if self._facts and type(value) is int and abs(value) < 2**53:
            value = float(value)  # epsilon=1 is epsilon=1.0
        if value is None or type(value) in (bool, int, float, str):
            return ["plain", value]
        if isinstance(value, np.ndarray | np.generic):
            if value.dtype.hasobject or isinstance(value, np.ma.MaskedArray | np.matrix):
                raise InputError(f"Expected arrays of numbers in an agent, got {value.dtype}.")
            self.arrays.append(np.asarray(value))
            return ["array" if isinstance(value, np.ndarray) else "scalar", len(self.arrays) - 1]
        if isinstance(value, np.random.Generator):
            return ["generator", self.put(value.bit_generator.state)]
        if isinstance(value, list):
            return ["list", [self.put(item) for item in value]]
        if type(value) is dict:
            return ["dict", [[self.put(key), self.put(item)] for key, item in value.items()]]
        if (parts := _parts(value)) is not None:
            return [parts[0], [self.put(part) for part in parts[1]]]
        if isinstance(value, type | FunctionType | _lru_cache_wrapper | np.ufunc):
            return ["name", *_name_of(value, self._own)]
        kind = type(value)
        module, name = _name_of(kind, self._own)
        if issubclass(kind, tuple):
            return ["named", module, name, [self.put(item) for item in value]]
        if self._facts and is_dataclass(value):
            held = {field.name: getattr(value, field.name) for field in fields(value)}
            return ["object", module, name, self.put(held)]
        return ["object", module, name, self.put(_attributes(value))]


class Decoder:
    """What an `Encoder` was given, of its nodes and arrays."""

    def __init__(self, nodes: list[Any], arrays: list[Any], own: str = "dpbandit") -> None:
        self._nodes, self._arrays, self._own = nodes, arrays, own
        self._made = dict[int, Any]()

    def get(self, number: int) -> Any:
        """The value of this node."""
        if number not in self._made:
            self._made[number] = self._value(number, *self._nodes[number])
        return self._made[number]

    def _value(self, number: int, kind: str, *rest: Any) -> Any:
        if kind == "plain":
            return rest[0]
        if kind == "array":
            return self._arrays[rest[0]]
        if kind == "scalar":
            return self._arrays[rest[0]][()]
        if kind == "generator":
            state = self.get(rest[0])
            bits: Any = _BIT_GENERATORS[state["bit_generator"]]()
            bits.state = state
            return np.random.Generator(bits)
        if kind == "list":
            items = self._made[number] = []
            items.extend(self.get(part) for part in rest[0])
            return items
        if kind == "dict":
            table = self._made[number] = {}
            for key, item in rest[0]:
                table[self.get(key)] = self.get(item)
            return table
        if kind == "name":
            return _named(rest[0], rest[1], self._own)
        if kind == "named":
            shown_path = _named(rest[0], rest[1], self._own)
            return tuple.__new__(shown_path, [self.get(part) for part in rest[2]])
        if kind == "object":
            made = self._made[number] = object.__new__(_named(rest[0], rest[1], self._own))
            for name, value in self.get(rest[2]).items():
                object.__setattr__(made, name, value)
            return made
        return _CONTAINERS[kind]([self.get(part) for part in rest[0]])


def _parts(value: Any) -> tuple[str, list[Any]] | None:
    if type(value) in (tuple, set, frozenset):
        return type(value).__name__, list(value)
    if isinstance(value, slice | range):
        return type(value).__name__, [value.start, value.stop, value.step]
    if isinstance(value, partial):
        return "partial", [value.func, value.args, value.keywords]
    if isinstance(value, MethodType):
        return "method", [value.__self__, value.__name__]
    if type(value) is Counter:
        return "counter", [dict(value)]
    if isinstance(value, deque):
        return "deque", [list(value), value.maxlen]
    return None


def _attributes(value: Any) -> dict[str, Any]:
    slots = [name for kind in type(value).__mro__ for name in vars(kind).get(_SLOTS, ())]
    return {
        **{name: getattr(value, name) for name in slots if hasattr(value, name)},
        **getattr(value, "__dict__", {}),
    }


def _name_of(thing: Any, own: str) -> tuple[str, str]:
    """Where it is found; raises `InputError` for what may not be stored."""
    if isinstance(thing, np.ufunc):
        module, name = ("numpy" if hasattr(np, thing.__name__) else "scipy.special"), thing.__name__
    else:
        module, name = str(thing.__module__), str(thing.__qualname__)
    if _named(module, name, own) is not thing:
        raise InputError(f"Expected a state to be kept of plain parts, got {module}.{name}.")
    return module, name


def _named(module: str, name: str, own: str) -> Any:
    """A class or function of dpbandit or of one's own, or a function of NumPy's kind."""
    root = module.partition(".")[0]
    found: Any = None
    if root in ("dpbandit", own) or module in ("numpy", "scipy.special"):
        found = import_module(module)
        for part in name.split("."):
            found = getattr(found, part, None)
    kinds = type | FunctionType | _lru_cache_wrapper if root in ("dpbandit", own) else np.ufunc
    if not isinstance(found, kinds):
        raise InputError(f"Expected a state to be kept of plain parts, got {module}.{name}.")
    return found


_FORMAT = 1
_WHAT = "dpbandit state"


class _Promising(Protocol):
    ledger: Any


def write_state(
    path: str | os.PathLike[str], parts: list[Any], *, config: AgentConfig, spec: Spec
) -> str:
    """Write `parts`, the agent first; the path as text.

    The file is an npz: arrays, what they are part of as JSON, and one hash over all of it. Only its
    owner may read it.
    """
    where, own = text_of("path", path), _package(config)
    encoder = Encoder(own)
    facts = {
        "what": _WHAT,
        "format": _FORMAT,
        "ticket": secrets.token_hex(16),
        "program": _program(),
        "config": _fingerprint(config, own),
        "spec": _fingerprint(spec, own),
        "root": encoder.put(parts),
        "nodes": encoder.nodes,
    }
    text = np.frombuffer(json.dumps(facts).encode(), dtype=np.uint8)
    arrays = {f"array{i}": array for i, array in enumerate(encoder.arrays)}
    digest = np.array(_digest(text, arrays))

    def write(partial: Path) -> None:
        with open(os.open(partial, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
            np.savez(file, allow_pickle=False, facts=text, digest=digest, **arrays)

    write_atomically(Path(where), write)
    return where


def read_state(
    path: str | os.PathLike[str], *, config: AgentConfig, spec: Spec, ledger: Any
) -> list[Any]:
    """What `write_state` wrote, once.

    Raises:
        InputError: no such state, a damaged one, one of another program, config or environment, or
            one that was loaded before on this machine.
    """
    where, own = text_of("path", path), _package(config)
    facts, arrays = _contents(where)
    for name, value, right in (
        ("format", facts["format"], _FORMAT),
        ("program", facts["program"], _program()),
        ("config", facts["config"], _fingerprint(config, own)),
        ("environment, bounds and horizon", facts["spec"], _fingerprint(spec, own)),
    ):
        if value != right:
            told = f", which is {value} there and {right} here" if name != "program" else ""
            raise InputError(f"Expected {shown_path(where)} to be of this {name}{told}.")
    try:
        parts: list[Any] = Decoder(facts["nodes"], arrays, own).get(facts["root"])
        agent: _Promising = parts[0]
        kept = agent.ledger == ledger
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise InputError(f"Expected a state in {shown_path(where)}, got: {error}") from error
    if not kept:
        raise InputError(f"Expected the promise of {config} in {shown_path(where)}, got another.")
    _use_up(facts["ticket"], where)
    return parts


def _contents(where: str) -> tuple[Mapping[str, Any], list[Any]]:
    check_readable(where)
    try:
        with open(where, "rb") as raw, np.load(raw, allow_pickle=False) as file:
            stored = {name: file[name] for name in file.files}
        text, digest = stored.pop("facts"), stored.pop("digest")
        facts = json.loads(text.tobytes())
        if facts["what"] != _WHAT:
            raise ValueError("it is something else")
        if digest.item() != _digest(text, stored):
            raise ValueError("its hash is another, so it was changed")
        return facts, [stored[f"array{i}"] for i in range(len(stored))]
    except (OSError, ValueError, LookupError, TypeError, AttributeError, EOFError) as error:
        raise InputError(f"Expected a state in {shown_path(where)}, got none: {error}.") from error
    except BadZipFile as error:
        raise InputError(f"Expected a whole state in {shown_path(where)}: {error}.") from error


def _use_up(ticket: str, where: str) -> None:
    """Note that a state goes on; at most one process can."""
    home = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    note = Path(home).expanduser() / "dpbandit" / "loaded" / ticket
    try:
        note.parent.mkdir(parents=True, exist_ok=True)
        note.touch(exist_ok=False)
    except FileExistsError:
        raise InputError(
            f"Expected a state that has not gone on yet, {shown_path(where)} was loaded before: "
            "the same noise on other users' data is covered by no certificate."
        ) from None
    except OSError as error:
        raise InputError(
            f"Cannot note in {note.parent} that {shown_path(where)} goes on: {error.strerror}."
        ) from error


def _package(config: AgentConfig) -> str:
    return type(config).__module__.partition(".")[0]


def _program() -> dict[str, str]:
    return {name: provenance()[name] for name in PROGRAM}


def _fingerprint(value: Any, own: str) -> str:
    encoder = Encoder(own, facts=True)
    encoder.put(value)
    arrays = {str(i): array for i, array in enumerate(encoder.arrays)}
    return _digest(np.frombuffer(json.dumps(encoder.nodes).encode(), dtype=np.uint8), arrays)[:12]


def _digest(text: Any, arrays: Mapping[str, Any]) -> str:
    digest = sha256(text.tobytes())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


class Player:
    """One running agent, R = 1, that speaks Gymnasium: observations in, plain ints out::

        player = Player(DPUCB(epsilon=1.0), env, horizon=1000, reward_range=(0, 1),
                        context_bound=1.0)
        observation, info = env.reset(seed=0)
        for _ in range(1000):
            action, shown = player.act(observation), copy.deepcopy(observation)
            observation, reward, terminated, truncated, info = env.step(action)
            player.update(shown, action, reward)
            if terminated or truncated:
                observation, info = env.reset()

    The copy is for environments that write the next observation into the same array: without it the
    agent would learn this reward with the next user's observation.

    A new episode does not start a new agent: it goes on learning for `horizon` users.

    Args:
        config: an agent for finitely many arms, such as `LinUCB()` or "dp-ucb:epsilon=1".
        env: read for its two spaces only; actions have to be `Discrete`.
        horizon: users the agent may be told about, over all episodes.
        reward_range: (low, high), public bounds on every reward.
        context_bound: public bound on the l_order norm of an observation; discrete observations
            become one-hot vectors, whose bound is known (see `Bridge`).
        context_order: 1, 2 or inf.
        contexts: "observation", or "none" to play every user alike, with the constant context 1.
        most_outside: the share of `horizon` users' contexts, and of their rewards, that may lie
            outside these bounds; one more is refused. 1 allows all.
        masks: where actions come and go, whose data `info["action_mask"]` is: of a "public"
            schedule, or of the "user" herself, part of her round; `act` is told it.
        seed: of the agent's noise and exploration.

    Guarantee:
        That of the certificate, for replacing one user: one `act` and one `update`. It covers this
        loop only, and only if horizon, bounds and `config` are public, not read off the data.
        Contexts and rewards are clipped to the bounds, and numbers that are not finite are replaced
        by a constant, before the agent sees them. `Player` itself keeps only the counts `outside`;
        no certificate covers them, nor the fact that they ended the loop (with most_outside=1 they
        never do). Observations or rewards that depend on earlier users' data, not only on earlier
        actions, pass them on to later users around every mechanism; contexts="none" prevents the
        first, nothing here prevents the second. There is no protection against somebody who sees
        this user's reward, or the seed.

    Raises:
        InputError: actions that are not finitely many, bounds that are missing or out of range, an
            agent of another kind, an observation or action outside its space, a reward that is not
            one number, a round too many, too many contexts or rewards outside the bounds; an agent
            that plays what is no arm, or calls a mechanism that its ledger does not name.

    >>> from dpbandit.agents import DPUCB
    >>> import dpbandit
    >>> env = gym.make("dpbandit/GLMBandit-v0", n_actions=3, dim=2)      # or anybody's
    >>> player = Player(DPUCB(epsilon=1.0), env, horizon=100, reward_range=(-1.4, 1.4),
    ...                 context_bound=1.0)
    >>> observation, _ = env.reset(seed=0)
    >>> action = player.act(observation)
    >>> then, reward, *_ = env.step(action)
    >>> player.update(observation, action, reward)
    >>> action, round(player.certificate.epsilon, 6)
    (0, 1.0)
    """

    def __init__(
        self,
        config: AnyAgent,
        env: gym.Env[Any, Any],
        *,
        horizon: int,
        reward_range: tuple[float, float] | None = None,
        context_bound: float | None = None,
        context_order: float = 2,
        contexts: Contexts = "observation",
        most_outside: float = MOST_OUTSIDE,
        masks: Masks = "none",
        seed: int = 0,
    ) -> None:
        whole("seed", seed, 0)
        config = agent_given(config)
        if isinstance(config, Hindsight):
            raise InputError(
                f"Expected an agent that learns, got {config}: there is no hindsight yet."
            )
        self._bridge = Bridge(
            env,
            horizon=horizon,
            reward_range=reward_range,
            context_bound=context_bound,
            context_order=context_order,
            contexts=contexts,
            most_outside=most_outside,
            masks=masks,
        )
        self.config, self.spec = config, self._bridge.spec
        self._roll = Roll()
        with enrolled(self._roll):
            self._agent = made_agent(config, self.spec, Streams([seed]).child("agent"))
        self._books = Books(type(config).__name__, self._agent.ledger, self._roll)
        self._left, self._watch = horizon, self._bridge.watch()
        self._saved: str | None = None

    def save(self, path: str | PathLike[str]) -> None:
        """Save the player to a file for `load`; afterwards this player refuses to act.

        Two players that go on from one state would add the same noise to different users' data,
        which no certificate covers. The file holds exact sums of users' data and the noise to
        come: guard it as you guard the data.
        """
        self._check_not_saved()
        parts = [self._agent, self._roll, self._books, self._left, self._watch]
        self._saved = write_state(path, parts, config=self.config, spec=self.spec)

    @classmethod
    def load(
        cls, path: str | PathLike[str], config: AnyAgent, env: gym.Env[Any, Any], **arguments: Any
    ) -> Self:
        """Load a saved player, bit for bit; arguments as for a new one, except for the seed.

        A state goes on once: what has been loaded is remembered in a folder of this user
        (`$XDG_STATE_HOME/dpbandit/loaded`), and refused from then on, copies of the file, too.
        On other machines, for other users, or without that folder it cannot be told.

        Raises:
            InputError: as `Player`; a file that is no state, of another format, program, config or
                environment, damaged, or loaded before.
        """
        player = cls(config, env, **arguments)
        ledger = player._agent.ledger
        player._agent, player._roll, player._books, player._left, player._watch = read_state(
            path, config=player.config, spec=player.spec, ledger=ledger
        )
        return player

    def _check_not_saved(self) -> None:
        if self._saved is not None:
            raise InputError(
                f"Expected a player that goes on, got one that was saved to {self._saved}: "
                "go on with Player.load."
            )

    @property
    def certificate(self) -> Certificate:
        """Certificate of the agent, with the epsilon of its noise beside its claim."""
        return certify(self.config, self.spec, accountants=False)

    @property
    def outside(self) -> Outside:
        """Number of contexts and rewards so far that lay outside the bounds."""
        return self._watch.outside

    @property
    def learned(self) -> Prior:
        """Prior for another study, made of what has been released so far.

        What this study's own prior cost the people of its log, it still says; the users of this
        study are assumed not to come again.

        Raises `InputError` for an agent that takes none.
        """
        if not hasattr(self._agent, "learned"):
            raise InputError(
                "Expected an agent that takes a prior, such as FADE(model='arms'), got "
                f"{self.config}."
            )
        prior: Prior = self._agent.learned()
        own = getattr(self.config, "prior", None)
        if own is None:
            return prior
        return replace(prior, mu=own.mu, source=own.source, disjoint=own.disjoint)

    def act(self, observation: Any, action_mask: Any = None) -> int:
        """Choose the action for this user, of those that are there; keeps nothing of her."""
        self._check_not_saved()
        context, mask = self._bridge.context(observation)[None], self._bridge.mask(action_mask)
        if action_mask is not None and mask is None:
            raise InputError("Expected masks='public' or 'user' of a Player with an action_mask.")
        with enrolled(self._roll):
            there = None if mask is None else mask[None]
            arm = self.spec.validate(acted(self._agent, context, there), 1)
        if there is not None:
            check_available(arm, there)
        return self._bridge.action(arm[0])

    def update(self, observation: Any, action: Any, reward: float) -> None:
        """Learn from one user: her observation, the action and her reward."""
        self._check_not_saved()
        if self._left == 0:
            raise InputError(
                f"The horizon of {self.spec.horizon} users is over: make a new Player."
            )
        shown, arm = self._bridge.numbers(observation)[None], self._bridge.arm(action)
        try:
            given = np.array([one_number("reward", reward)])
            self._watch.see(shown[None], given[None])
        except InputError as mistake:
            done = self.spec.horizon - self._left
            raise InputError(f"In round {done + 1}: {mistake}") from None
        told = clip_range(given, self.spec.reward_low, self.spec.reward_high)
        with enrolled(self._roll):
            self._agent.update(self._bridge.clip(shown), np.array([arm]), told)
            self._roll.heard(1)
        self._left -= 1
        self._books.check(users=self.spec.horizon - self._left)
