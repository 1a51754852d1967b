"""Environments: one folder for each family of problems, and Gymnasium adapters."""

from dpbandit.lazy import catalogue as _catalogue, lazily as _lazily

_HOMES = {one["name"]: f"{__name__}.{one['file']}" for one in _catalogue(__name__)}
__all__ = sorted(_HOMES)
__getattr__, __dir__ = _lazily(__name__, _HOMES)
