"""Environments: one folder for each family of problems, and Gymnasium adapters."""

from dpbandit.lazy import catalogue as _catalogue, lazily as _lazily

# class name -> full name of the module that defines it, imported at first use
_CLASS_MODULES = {one["name"]: f"{__name__}.{one['file']}" for one in _catalogue(__name__)}
__all__ = sorted(_CLASS_MODULES)
__getattr__, __dir__ = _lazily(__name__, _CLASS_MODULES)
