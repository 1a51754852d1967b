"""What prices a random policy asked from a continuum and what they earned."""

from dataclasses import dataclass, field, replace

import numpy as np

from dpbandit.base.arrays import Floats
from dpbandit.base.inputs import InputError, flag, shaped
from dpbandit.offline.rows import (
    LEAST,
    MOST,
    arrays_at,
    numbers_in,
    refuse_row,
    refuse_spec,
    within,
)
from dpbandit.specs.contract import Outside
from dpbandit.specs.protocols import PriceSpec


@dataclass(kw_only=True, eq=False)
class LoggedPrices:
    """n rounds with a price each, drawn from a known density.

    Contexts beyond the bound of the spec are clipped to it, as in `Logged`. Raises `InputError`
    where shapes do not fit, something is not finite, a price lies outside the spec's, a density is
    not above 0, or more contexts or rewards lie outside their bounds than `most_outside` allows.

    >>> spec = PriceSpec(dim=1, low=1.0, high=3.0, horizon=2, reward_low=0.0, reward_high=3.0)
    >>> log = LoggedPrices(spec=spec, context=np.ones((2, 1)), price=[1.5, 2.0], reward=[1.5, 0.0],
    ...                    density=[0.5, 0.5])
    >>> print(log)
    2 rounds with prices from 1 to 3, 0 of 2 contexts (0 %) and 0 rewards (0 %) outside their bounds
    """

    spec: PriceSpec
    """the public facts, its bounds above all; its horizon is not used"""
    context: Floats
    """(n, d)"""
    price: Floats
    """(n,), dollars"""
    reward: Floats
    """(n,), what they brought"""
    density: Floats
    """(n,), per dollar, at the price that was asked, given the context"""
    adaptive: bool = False
    """rows are in order of collection, and densities may depend on earlier rows"""
    outside: Outside = field(init=False)
    """how much did lie outside"""

    def __post_init__(self) -> None:
        refuse_spec(self.spec, PriceSpec)
        self.price, self.reward = (
            numbers_in("prices", self.price),
            numbers_in("rewards", self.reward),
        )
        self.context = numbers_in("contexts", self.context)
        self.density = numbers_in("densities", self.density)
        spec, n = self.spec, self.price.size
        if n == 0:
            raise InputError("Expected at least one logged round.")
        flag("adaptive", self.adaptive)
        shaped("logged prices", self.price, (n,))
        shaped("logged contexts", self.context, (n, *spec.context_shape))
        shaped("logged rewards", self.reward, (n,))
        shaped("densities", self.density, (n,))
        refuse_row("finite contexts", np.isfinite(self.context).all(axis=1))
        refuse_row("finite rewards", np.isfinite(self.reward))
        offered = (self.price >= spec.low) & (self.price <= spec.high)
        refuse_row(f"prices from {spec.low:g} to {spec.high:g}", offered)
        fine = (self.density >= LEAST) & (self.density <= MOST)
        refuse_row(f"densities > 0, up to {MOST:g}", fine)
        self.context, self.outside = within(spec, self.context, self.reward)

    def __getitem__(self, rows: slice) -> "LoggedPrices":
        """Some of the rows, such as `log[1000:]`."""
        return replace(self, **arrays_at(self, rows, ("context", "price", "reward", "density")))

    def __str__(self) -> str:
        prices = f"prices from {self.spec.low:g} to {self.spec.high:g}"
        return f"{len(self.price)} rounds with {prices}, {self.outside}"
