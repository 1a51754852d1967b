"""CascadeUCB1 and CascadeKL-UCB: a bound for each item, without contexts and without privacy."""

from dataclasses import dataclass

from dpbandit.agents.lists.item_bounds import BOUNDS, Bound, ItemCounter, Order
from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.inputs import one_of
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.clicks import ListCounts
from dpbandit.privacy.ledger import no_privacy
from dpbandit.specs.lists import ListSpec
from dpbandit.specs.protocols import Spec, fits


@dataclass(frozen=True, kw_only=True)
class CascadeUCB:
    """Show the m items with the largest upper bounds on their attraction.

    Kveton, Szepesvari, Wen and Ashkan, "Cascading bandits: learning to rank in the cascade model",
    ICML 2015, Algorithm 1: CascadeKL-UCB, with `bound="ucb1"` CascadeUCB1.

    Code:
        Bounds and list are `ItemCounter` (item_bounds.py), which sorts by `best_lists`
        (ranking.py); what is counted is `dpbandit.privacy.clicks.ListCounts`.

    Guarantee:
        None: exact data reaches later lists.

    Differs from the paper:
        1. Items that were never looked at come first, in random order.
        2. `order="least-examined"` shows what was looked at least first; rewards do not depend on
           the order, what is learned does. The default is the paper's order.
    """

    bound: Bound = "kl"
    """of an item's attraction"""
    order: Order = "index"
    """in which a list is shown"""

    def __post_init__(self) -> None:
        one_of("bound", self.bound, BOUNDS)
        one_of("order", self.order, ("index", "least-examined"))

    def make(self, spec: Spec, streams: Streams) -> "CascadeUCBAgent":
        """A running agent; raises `InputError` for anything but lists in a cascade."""
        return CascadeUCBAgent(self, fits(self, spec, ListSpec), streams)


class CascadeUCBAgent(ItemCounter):
    """See `CascadeUCB`."""

    def __init__(self, config: CascadeUCB, spec: ListSpec, streams: Streams) -> None:
        ledger = no_privacy("exact counts")
        super().__init__(spec, streams, ledger, bound=config.bound, order=config.order)
        self._counts = ListCounts(spec.n_items, spec.length)

    def _learn(self, u: Floats, lists: Ints, vectors: Floats, clicks: Floats) -> None:
        looks, clicked = self._counts.total(lists[None], clicks[None]).swapaxes(0, 1)
        self._looks, self._clicks = self._looks + looks, self._clicks + clicked
