"""An agent for a plain `for` loop over anybody's Gymnasium bandit."""

from os import PathLike
from typing import Any, Self

import gymnasium as gym
import numpy as np

from dpbandit.base.arrays import clip_range
from dpbandit.base.inputs import InputError, whole
from dpbandit.base.random_streams import Streams
from dpbandit.clients.answers import one_number
from dpbandit.clients.bridge import Bridge, Contexts
from dpbandit.clients.states import read_state, write_state
from dpbandit.privacy.certificate import Certificate
from dpbandit.privacy.mechanism import Books, Roll, enrolled
from dpbandit.running.compare import certify
from dpbandit.running.given import AnyAgent, agent_given
from dpbandit.specs.contract import Outside, made_agent
from dpbandit.specs.models import Prior
from dpbandit.specs.protocols import MOST_OUTSIDE, Hindsight


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

    The copy is for environments that write the next observation into the array they handed out:
    without it the agent would be told that this reward was the next user's.

    A new episode does not start a new agent: it goes on learning until `horizon` users are told.

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
        seed: of the agent's noise and exploration.

    Guarantee:
        That of the certificate, for replacing one user: one `act` and one `update`. It covers this
        loop only, and only if horizon, bounds and `config` are public, not read off the data.
        Contexts and rewards are clipped to the bounds, and what is not finite is replaced by a
        constant, before the agent is told; `Player` itself keeps nothing but `outside`, counts that
        no certificate covers, nor whether they ended the loop (with most_outside=1 they never do).
        Observations or rewards that depend on earlier users' data (not merely on earlier actions)
        carry them to later users past every mechanism; contexts="none" helps against the first,
        nothing here against the second. Whoever sees this user's reward, or the generator's seed,
        is not covered.

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
        )
        self.config, self.spec = config, self._bridge.spec
        self._roll = Roll()
        with enrolled(self._roll):
            self._agent = made_agent(config, self.spec, Streams([seed]).child("agent"))
        self._books = Books(type(config).__name__, self._agent.ledger, self._roll)
        self._left, self._watch = horizon, self._bridge.watch()
        self._saved: str | None = None

    def save(self, path: str | PathLike[str]) -> None:
        """Hand over to a file, to go on with `load`; this player serves nobody any more.

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
        """The player that was saved, bit for bit; arguments as for a new one, but for the seed.

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
        """What the noise buys, beside what `config` claims; known before the first user."""
        return certify(self.config, self.spec, accountants=False)

    @property
    def outside(self) -> Outside:
        """How many contexts and rewards of the users told so far lay outside the bounds."""
        return self._watch.outside

    @property
    def learned(self) -> Prior:
        """What has been released of the parameters so far, to be the prior of another study.

        Raises `InputError` for an agent that takes none.
        """
        if not hasattr(self._agent, "learned"):
            raise InputError(
                f"Expected an agent that takes a prior, such as FADE, got {self.config}."
            )
        prior: Prior = self._agent.learned()
        return prior

    def act(self, observation: Any) -> int:
        """The action for this user. Remembers nothing of her."""
        self._check_not_saved()
        context = self._bridge.context(observation)[None]
        with enrolled(self._roll):
            arm = self.spec.validate(self._agent.act(context), 1)
        return self._bridge.action(arm[0])

    def update(self, observation: Any, action: Any, reward: float) -> None:
        """Learn from one user: what she showed, what was played and what she gave."""
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
        self._left -= 1
        self._books.check(users=self.spec.horizon - self._left)
