"""Broadcast: one agent under four models of trust."""

from dataclasses import dataclass
from typing import Literal

from dpbandit.agents.contextual.broadcast_player import BroadcastPlayer
from dpbandit.agents.contextual.channels import SENT, Message, Sending
from dpbandit.agents.contextual.imagined_people import ImaginedPeople
from dpbandit.base import InputError, Streams, gaussian_target, inside, one_of, whole
from dpbandit.privacy import ledger_of
from dpbandit.privacy.fading import growing_batches
from dpbandit.privacy.ledger import Trust, check_honest
from dpbandit.specs import BanditSpec, ContextualSpec, fits


@dataclass(frozen=True, kw_only=True)
class Broadcast:
    """A model is broadcast; devices choose, look at the reward, and send one private message.

    A design of this project. Rounds are cut into batches, each a tenth longer than the one before::

        on her device     plays argmax_a x . theta_a (the first batch, and ties, at random),
                          sends what (x, a, r) says
        at a batch's end  the server learns a noisy sum of what was sent, and broadcasts theta

    What is sent, and what the server sees of it, is a matter of trust::

        trust        message              what is sent                        the server sees
        central      directions           u = sign(r - centre) x / |x|        all; it adds noise
        aggregated   directions           u and a share of Gaussian noise     sums of batches
                     coins                signs of u and some fair coins      sums of batches
        shuffled     coins                signs of u and some fair coins      bits of a batch, mixed
                     flips                signs of u, each flipped at times   bits of a batch, mixed
        local        privunit             a point of the sphere, rather       every message
                                          in u's cap than not
                     gaussian, laplace,   u and noise of her own              every message
                     k-norm

    u lies in the block of the arm that was played; the signs of other blocks are fair coins. What
    the server does with sums is the same for all: weigh them by their noise, undo what greedy play
    did to the rows that were seen, assuming rows uniform on a sphere, and play greedily.

    Code:
        `Sending` (channels.py) opens the mechanism, which adds up what is sent: `AggregatedSum`,
        `BitSum` or `LocalVectors` of dpbandit.privacy. `BroadcastPlayer`
        (broadcast_player.py) makes theta of the sums with `ImaginedPeople` (imagined_people.py).

    Guarantee:
        (epsilon, delta)-DP of everything that the server sees, for replacing one user's round, and
        so joint DP under continual observation. "central" and "aggregated" are exactly mu-GDP;
        coins are paid for by an exact law, flips by an upper bound of theirs (`BitSpend`). Local
        messages are private one by one: "privunit", "laplace" and "k-norm" are epsilon-DP, whatever
        `delta` is. A user sends one message, which enters one batch. A device that the server
        tells what to show, or watches, protects nothing: choice and reward have to stay there.
        With `honest` < 1 that many of the devices of a batch add what they should, and stay.

    **Limits.** Signs of rewards must tell about the middle of their public range, and rows should
    be dense, centred and isotropic; theta is in no units of the reward. Nobody protects who sends.

    >>> from dpbandit import certify
    >>> proof = certify(Broadcast(epsilon=1.0, trust="local"), "GLMBandit", accountants=False)
    >>> round(proof.ledger.pure, 9), proof.ledger.brief
    (1.0, 'local')
    """

    epsilon: float = 1.0
    """target, > 0; inf plays without privacy"""
    delta: float = 1e-5
    """target, in (0, 1)"""
    trust: Trust = "aggregated"
    """who sees what, "central", "aggregated", "shuffled" or "local" """
    message: Message | Literal["auto"] = "auto"
    """what is sent, by the table; "auto" the first that `trust` allows"""
    honest: float = 1.0
    """the fraction of devices that add noise and stay, in (0, 1]; "aggregated", "shuffled" """
    fade: float = 0.0
    """weight of a batch in the next sum, in [0, 0.999]; "central" alone"""
    first_batch: int | None = None
    """rounds of uniform play; if None, what the noise asks for, from 100 to a tenth of T"""
    growth: float = 0.1
    """by how much each batch is longer than the one before"""

    def __post_init__(self) -> None:
        gaussian_target(self.epsilon, self.delta)
        one_of("trust", self.trust, tuple(SENT))
        one_of("message", self.message, ("auto", *SENT[self.trust]))
        check_honest(self.honest, self.trust)
        inside("fade", self.fade, 0, 0.999, ends=True)
        if self.fade and self.trust != "central":
            raise InputError(
                f"Expected fade={self.fade} only with trust='central': elsewhere nobody keeps sums."
            )
        if self.first_batch is not None:
            whole("first_batch", self.first_batch, 1)
        inside("growth", self.growth, 0, 100, ends=True)

    def make(self, spec: BanditSpec, streams: Streams) -> BroadcastPlayer:
        """A running agent; raises `InputError` for anything but arms and their features."""
        spec = fits(self, spec, ContextualSpec)
        message = SENT[self.trust][0] if self.message == "auto" else self.message
        blocks, bits = 1 if spec.shared else spec.n_actions, message in ("coins", "flips")
        sending = Sending(
            message=message,
            epsilon=self.epsilon,
            delta=self.delta,
            honest=self.honest,
            fade=self.fade,
            blocks=blocks,
            dim=spec.dim,
            centre=(spec.reward_low + spec.reward_high) / 2,
        )
        first = self.first_batch or sending.first_batch(spec.horizon)
        ends = growing_batches(spec.horizon, first=first, growth=self.growth)
        channel = sending.open(streams, ends=ends, horizon=spec.horizon)
        return BroadcastPlayer(
            spec,
            channel,
            ImaginedPeople(spec.n_actions, spec.dim, shared=spec.shared, signs=bits),
            streams,
            ledger_of(self.epsilon, channel.spend, trust=self.trust, honest=self.honest),
            spread=1 / blocks if bits else 1 / (blocks * spec.dim),
        )
