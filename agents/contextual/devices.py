"""What a user's own device has to do for privacy without a trusted server, and where it cannot."""

from dpbandit.base.inputs import InputError
from dpbandit.privacy.accounting.ledger import Trust
from dpbandit.specs.protocols import ContextualSpec, PriceListSpec


def check_devices_choose(spec: ContextualSpec, trust: Trust) -> None:
    """Raise `InputError` for a price list, unless the server is trusted."""
    if isinstance(spec, PriceListSpec) and trust != "central":
        raise InputError(
            f"Expected trust='central' for a price list, got {trust!r}: choose that, as the seller "
            "names the price and watches the sale."
        )
