"""One case for many variants: what fails, or asserts nothing, is named in a note."""

import functools
import inspect
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from dpbandit import InputError
from dpbandit.testing import tapes
from tests import conftest


@contextmanager
def asserting(what: object, *, surely: bool = False) -> Iterator[None]:
    """One of many things that a test goes through; `surely` if its source shows that it asserts."""
    before = conftest.passed, tapes.held
    try:
        yield
        if not surely and (conftest.passed, tapes.held) == before:
            raise AssertionError("Asserted nothing: see tests/conftest.py.")
    except BaseException as error:
        error.add_note(f"with {what}")
        raise


@functools.cache
def turn():
    """Return a number made of the commit, by which rotas turn; 0 outside of a repository."""
    asked = ["git", "rev-parse", "--short=8", "HEAD"]
    found = subprocess.run(asked, cwd=conftest.HERE, capture_output=True, text=True, check=False)
    return int(found.stdout or "0", 16)


def marks(place, share, slow):
    """Return the marks of a test: none, or `slow`, at one commit in `share`, `rota` at others."""
    return [pytest.mark.rota] if (place + turn()) % share else [pytest.mark.slow][:slow]


def by_rota(cells, share, *, slow=True):
    """Cells that are alike and take long, as values to parametrize with: one in `share` is `slow`
    at this commit, or among the default tests, the others wait with the mark `rota`."""
    return [
        pytest.param(cell, id=str(cell), marks=marks(place, share, slow))
        for place, cell in enumerate(cells)
    ]


def in_turn(place, share=3, *, slow=False):
    """Decorate a test that is run at one commit in `share`; places spread tests over commits."""
    (mark,) = marks(place, share, slow) or [lambda test: test]
    return mark


def refused(sentence, call, /, *args, **settings):
    """Assert that a call is refused in one line that matches, and return it."""
    with pytest.raises(InputError, match=sentence) as caught:
        call(*args, **settings)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def each(names, values, *, ids=None):
    """`pytest.mark.parametrize` without a case for each: for tests that take milliseconds.

    `values` may be a function, which is called within the test.
    """
    wanted = names.replace(",", " ").split() if isinstance(names, str) else list(names)

    def looping(test):
        signature = inspect.signature(test)
        others = [p for name, p in signature.parameters.items() if name not in wanted]

        @functools.wraps(test)
        def looped(**given):
            found = values() if inspect.isfunction(values) else values
            rows = [tuple(value) if len(wanted) > 1 else (value,) for value in found]
            labels = [ids(row[0]) for row in rows] if callable(ids) else list(ids or rows)
            surely = conftest.surely_asserts(test)
            assert rows, f"Expected values of {', '.join(wanted)}, got none."
            for row, name in zip(rows, labels, strict=True):
                with asserting(f"{', '.join(wanted)} = {name}", surely=surely):
                    test(**dict(zip(wanted, row, strict=True)), **given)

        looped.__signature__ = signature.replace(parameters=others)
        return looped

    return looping


def each_wrong(rows):
    """`each` (kind, settings, name) of rows (kind, settings beside, {name: wrong values})."""
    found = [
        (kind, {**beside, name: value}, name)
        for kind, beside, wrong in rows
        for name, values in wrong.items()
        for value in values
    ]
    return each(("kind", "settings", "name"), found, ids=[f"{k.__name__} {s}" for k, s, _ in found])
