"""A single running agent for your own loop over a Gymnasium bandit."""

import os
from collections import deque
from dataclasses import replace
from os import PathLike
from typing import Any, NoReturn, Self, SupportsIndex

import gymnasium as gym
import numpy as np

from dpbandit.base import InputError, Streams, clip_range, one_number, whole
from dpbandit.clients.bridge import Bridge, Contexts
from dpbandit.privacy import Certificate
from dpbandit.privacy.certificate import certificate
from dpbandit.privacy.mechanism import CallLog, LedgerCheck, logged_calls
from dpbandit.privacy.premises import Fact
from dpbandit.running.compare import claim_of
from dpbandit.running.resolve import AnyAgent, resolve_agent
from dpbandit.shelf import from_shelf
from dpbandit.specs import (
    MOST_OUTSIDE,
    Hindsight,
    Masks,
    Outside,
    Prior,
    acted,
    answered,
    check_available,
    made_agent,
)
from dpbandit.specs.premises import Premises

# subject of the message of an error
_OTHER_ACTIONS = "a loop that calls act twice for a user, or reports another action than chosen,"


class Player:
    """A single running agent that takes Gymnasium observations and returns plain int actions::

        player = Player(DPUCB(epsilon=1.0), env, horizon=1000, reward_range=(0, 1),
                        context_bound=1.0)
        observation, info = env.reset(seed=0)
        for _ in range(1000):
            action, shown = player.act(observation), copy.deepcopy(observation)
            observation, reward, terminated, truncated, info = env.step(action)
            player.update(shown, action, reward)
            if terminated or truncated:
                observation, info = env.reset()

    The copy is for environments that write the next observation into the same array: without a copy
    the agent would learn this reward with the next user's observation.

    A new episode does not start a new agent: the same agent learns for `horizon` users.

    Args:
        config: an agent for finitely many arms, such as `LinUCB()` or "dp-ucb:epsilon=1".
        env: environment whose two spaces are read, nothing else; actions have to be `Discrete`.
        horizon: number of users from whom the agent may learn, over all episodes.
        reward_range: (low, high), public bounds on every reward.
        context_bound: public bound on the norm of an observation; discrete observations become
            one-hot vectors, whose bound is known (see `Bridge`).
        context_order: order of the norm of observations, 1, 2 or inf.
        contexts: "observation", or "none" to play every user alike, with the constant context 1.
        most_outside: share of `horizon` users' contexts, and of their rewards, that may lie
            outside their bounds; any more are refused. With 1 all are allowed.
        delay: number of later users who may come before a user's reward is known.
        masks: if actions come and go, the owner of `info["action_mask"]`, an argument of `act`: a
            "public" schedule, or the "user", as part of her round.
        seed: seed of the agent's noise and exploration.

    Guarantee:
        The certificate is for replacing one user, who has one `act` and one `update`; a second
        `update` is refused. It covers this loop only, and only if all of these are public, not read
        off the data: horizon, bounds, `config`, the users without an `update` and, with a `delay`,
        the order of rewards, since missing users and other orders shift users to other batches.
        Contexts and rewards are clipped to the bounds, and numbers that are not finite are replaced
        by a constant, before the agent sees them. `Player` stores only the counts `outside`; no
        certificate covers the counts, nor the fact that they ended the loop (with most_outside=1
        they never do). Observations or rewards that depend on earlier users' data, not only on
        earlier actions, pass the data on to later users around every mechanism; contexts="none"
        prevents this for observations, nothing here prevents it for rewards. There is no protection
        against somebody who sees this user's reward, or the seed. Two players of the same seed add
        the same noise to different users' sums, and the noise cancels in the difference: give each
        player a seed that nobody knows.

    Raises:
        InputError: actions that are not finitely many, bounds that are missing or out of range, an
            agent of another kind, an observation or action outside its space, a reward that is not
            one number, a round too many, too many contexts or rewards outside the bounds; an agent
            that plays no valid arm, or calls a mechanism that its ledger does not name.

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
        delay: int = 0,
        masks: Masks = "none",
        seed: int = 0,
    ) -> None:
        whole("seed", seed, 0)
        config = resolve_agent(config)
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
            delay=delay,
            masks=masks,
        )
        self.config, self.spec = config, self._bridge.spec
        self._call_log = CallLog()
        with logged_calls(self._call_log):
            self._agent = made_agent(config, self.spec, Streams([seed]).child("agent"))
        self._ledger_check = LedgerCheck(type(config).__name__, self._agent.ledger, self._call_log)
        self._left, self._bounds = horizon, self._bridge.bounds()
        self._claim = claim_of(config)
        self._awaiting: deque[int] = deque(maxlen=delay + 1)  # arms played, rewards not yet known
        self._any_arm = False  # True once checked that other arms than chosen may be reported
        self._saved: str | None = None
        self._process = os.getpid()

    def save(self, path: str | PathLike[str]) -> None:
        """Save the player to a file for `load`; afterwards this player refuses to act.

        Two players that continue one state would add the same noise to different users' data,
        which no certificate covers. The file holds exact sums of users' data and the noise to
        come, so guard the file as you guard the data. Its hash, called its ticket, is stored in a
        folder of this user, `$XDG_STATE_HOME/dpbandit/saved` (default `~/.local/state/...`).
        """
        self._check_goes_on()
        self._saved = from_shelf("clients", "save_player", "saved state")(self, path)

    @classmethod
    def load(
        cls, path: str | PathLike[str], config: AnyAgent, env: gym.Env[Any, Any], **arguments: Any
    ) -> Self:
        """Load a player exactly as it was saved; arguments are those of `Player` without the seed.

        A state can be continued once: loading deletes the file's ticket (see `save`), and a file or
        copy without a ticket is not opened. So a file from elsewhere is never run as a program; to
        continue on another machine, or as another user, move the ticket, too.

        Raises:
            InputError: as `Player`; the file is no state, has another format, program, config or
                environment, was changed or loaded before, or has no ticket.
        """
        player = cls(config, env, **arguments)
        from_shelf("clients", "restore_player", "saved state")(player, path)
        return player

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Raise `InputError` for `pickle`, `copy`, `joblib` and all else that copies a player."""
        raise InputError(
            "Expected one player, not a copy or a pickle of it: two would go on with the same "
            "noise, and the difference of their sums would have none; save writes a file that goes "
            "on once."
        )

    def _check_goes_on(self) -> None:
        if self._saved is not None:
            raise InputError(
                f"Expected a player that goes on, got one that was saved to {self._saved}: "
                "go on with Player.load."
            )
        if self._process != os.getpid():  # a fork copies players without pickle
            raise InputError(
                "Expected a player in the process that made it, not in a fork of that: two would "
                "go on with the same noise; save it before, and load it in one of them."
            )

    def _check_any_arm(self) -> None:
        """Raise `InputError` if the guarantee requires that all actions are the agent's choices."""
        if not self._any_arm:
            lost = {Fact.AS_CHOSEN: _OTHER_ACTIONS}
            premises = Premises(type(self.config).__name__, self._agent, self.spec, lost=lost)
            if premises.promises:
                premises.check()
            self._any_arm = True

    @property
    def certificate(self) -> Certificate:
        """Certificate of the running agent, with the claimed epsilon and that of its noise."""
        ledger = self._ledger_check.ledger.on(self.spec)
        return certificate(ledger, claim=self._claim, accountants=False)

    @property
    def outside(self) -> Outside:
        """Number of contexts and rewards so far that lay outside the bounds."""
        return self._bounds.outside

    @property
    def learned(self) -> Prior:
        """Prior for another study, made of all releases so far.

        If this study began with a prior from a log, the new prior still names the privacy cost for
        the people of that log. Users of this study are assumed not to take part in the next one.

        Raises `InputError` for an agent that takes no prior.
        """
        if not hasattr(self._agent, "learned"):
            raise InputError(
                "Expected an agent that takes a prior, such as FADE(model='arms'), got "
                f"{self.config}."
            )
        prior: Prior = self._agent.learned()
        prior_of_config = getattr(self.config, "prior", None)
        if prior_of_config is None:
            return prior
        return replace(
            prior,
            mu=prior_of_config.mu,
            source=prior_of_config.source,
            disjoint=prior_of_config.disjoint,
        )

    def act(self, observation: Any, action_mask: Any = None) -> int:
        """Choose an available action for this user; her observation is not stored."""
        self._check_goes_on()
        context, mask = self._bridge.context(observation)[None], self._bridge.mask(action_mask)
        if action_mask is not None and mask is None:
            raise InputError("Expected masks='public' or 'user' of a Player with an action_mask.")
        with logged_calls(self._call_log):
            there = None if mask is None else mask[None]
            arm = self.spec.validate(acted(self._agent, context, there), 1)
        if there is not None:
            check_available(arm, there)
        if len(self._awaiting) > self.spec.delay:
            self._check_any_arm()
        self._awaiting.append(int(arm[0]))
        return self._bridge.action(arm[0])

    def update(self, observation: Any, action: Any, reward: float) -> None:
        """Learn from one user: her observation, the action and her reward.

        Each `update` belongs to one `act`; a repeated `act` before her reward is for the same user.
        Up to `delay` earlier users may wait for their updates, besides the last one. An agent whose
        guarantee requires its own choices (`Fact.AS_CHOSEN`) refuses others and repeated acts.
        """
        self._check_goes_on()
        if self._left == 0:
            raise InputError(
                f"The horizon of {self.spec.horizon} users is over: make a new Player."
            )
        if not self._awaiting:
            raise InputError(
                "Expected one update for each act, got one more: a user whose data count twice is "
                "not covered by the certificate; call act first, with delay= if rewards are late."
            )
        context, arm = self._bridge.numbers(observation)[None], self._bridge.arm(action)
        try:
            rewards = np.array([one_number("reward", reward)])
            self._bounds.see(context, answered(rewards))
        except InputError as mistake:
            done = self.spec.horizon - self._left
            raise InputError(f"In round {done + 1}: {mistake}") from None
        if arm not in self._awaiting:
            self._check_any_arm()
        clipped = clip_range(rewards, self.spec.reward_low, self.spec.reward_high)
        # counted before the update: an interrupted one may have reached a mechanism already
        self._left -= 1
        self._awaiting.remove(arm if arm in self._awaiting else self._awaiting[0])
        with logged_calls(self._call_log):
            self._agent.update(self._bridge.clip(context), np.array([arm]), clipped)
            self._call_log.count_users(1)
        self._ledger_check.check(users=self.spec.horizon - self._left)
