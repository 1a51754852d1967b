"""Libraries that take long to import, and that few tests need."""

import importlib


class Lazy:
    """The module of that name, imported when something of it is asked for."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, attribute):
        return getattr(importlib.import_module(self._name), attribute)
