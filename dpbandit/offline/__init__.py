"""Offline evaluation: logs of a known random policy, replay on them, and what others would earn."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpbandit.offline.adaptive_weights import TypeLaw as TypeLaw
    from dpbandit.offline.evaluation import evaluate as evaluate
    from dpbandit.offline.list_policies import ListLaw as ListLaw
    from dpbandit.offline.logged_lists import LoggedLists as LoggedLists
    from dpbandit.offline.logged_prices import LoggedPrices as LoggedPrices
    from dpbandit.offline.logs import Logged as Logged
    from dpbandit.offline.private_values import PrivateValue as PrivateValue
    from dpbandit.offline.private_values import release as release
    from dpbandit.offline.replays import Replay as Replay
    from dpbandit.offline.replays import Replays as Replays
    from dpbandit.offline.replays import replay as replay
    from dpbandit.offline.snapshots import Snapshot as Snapshot
    from dpbandit.offline.snapshots import snapshot as snapshot

_HOMES = {
    "adaptive_weights": "TypeLaw",
    "evaluation": "evaluate",
    "list_policies": "ListLaw",
    "logged_lists": "LoggedLists",
    "logged_prices": "LoggedPrices",
    "logs": "Logged",
    "private_values": "PrivateValue release",
    "replays": "Replay Replays replay",
    "snapshots": "Snapshot snapshot",
}
_FACE = {name: home for home, names in _HOMES.items() for name in names.split()}
__all__ = sorted(_FACE)  # names that come when they are asked for


def __getattr__(name: str) -> Any:
    """Each name when it is asked for: its own modules import one another, not this face."""
    if name in _FACE:
        return getattr(import_module(f"{__name__}.{_FACE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_FACE])
