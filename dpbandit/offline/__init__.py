"""Evaluate policies offline, on logs of a random policy."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpbandit.offline.evaluation import evaluate as evaluate
    from dpbandit.offline.intervals import TypeLaw as TypeLaw
    from dpbandit.offline.logs import (
        Logged as Logged,
        LoggedLists as LoggedLists,
        LoggedPrices as LoggedPrices,
        Observed as Observed,
    )
    from dpbandit.offline.policies import (
        ListLaw as ListLaw,
        Snapshot as Snapshot,
        snapshot as snapshot,
    )
    from dpbandit.offline.replays import Replay as Replay, Replays as Replays, replay as replay
    from dpbandit.offline.unrecorded import Assessment as Assessment, assess as assess

_HOMES = {
    "evaluation": "evaluate",
    "intervals": "TypeLaw",
    "logs": "Logged LoggedLists LoggedPrices Observed",
    "policies": "ListLaw Snapshot snapshot",
    "replays": "Replay Replays replay",
    "unrecorded": "Assessment assess",
}
_FACE = {name: home for home, names in _HOMES.items() for name in names.split()}
__all__ = sorted(_FACE)  # names that come when they are asked for


def __getattr__(name: str) -> Any:
    """Import each name when it is used: environments from logs need only two of these modules."""
    if name in _FACE:
        return getattr(import_module(f"{__name__}.{_FACE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_FACE])
