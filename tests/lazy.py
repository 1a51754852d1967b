"""Libraries that take long to import, and that few tests need."""

import importlib


class Lazy:
    """The module of that name, imported when something of it is asked for; pytest, which asks every
    name of a test's module whether it is a fixture, is told no without it."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, attribute):
        if attribute.startswith(("__", "_pytest", "pytest")):
            raise AttributeError(attribute)
        return getattr(importlib.import_module(self._name), attribute)
