"""Tests of many variants in one case, whose notes name what fails, and tests that come in turns."""

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
    """Name `what` in a note if a check fails; fail if none is made, unless `surely` tells so."""
    conftest.listen()
    before = conftest.passed, tapes.held
    try:
        yield
        if not surely and (conftest.passed, tapes.held) == before:
            raise AssertionError("Asserted nothing: see tests/conftest.py.")
    except BaseException as error:
        error.add_note(f"with {what}")
        raise


def git(words):
    """Return what git prints; nothing without a repository or without git."""
    how = {"shell": True, "cwd": conftest.HERE.parent, "capture_output": True, "text": True}
    return subprocess.run(f"git {words}", **how).stdout


@functools.cache
def turn():
    """Return the hash of the commit, by which rotas turn; 0 without a repository or without git."""
    return int(git("rev-parse --verify HEAD") or "0", 16)


@functools.cache
def changed():
    """Return the files that differ from the commit before this one, without dpbandit/ and tests/,
    below which a folder of source and the folder of its tests have the same name."""
    found = git("diff --name-only HEAD~1") + git("ls-files --others --exclude-standard")
    return [name.removeprefix("dpbandit/").removeprefix("tests/") for name in found.split("\n")]


def touched(file):
    """Return True if the last commit, or an edit since, changes what a file of tests looks at: its
    folder, that folder of the source, or a module of the same name."""
    home, name = file.parent.relative_to(conftest.HERE).as_posix(), file.stem.removeprefix("test_")
    return any(one.startswith((f"{home}/", f"{home}.")) or f"/{name}." in one for one in changed())


def marks(place, share, slow):
    """Return the marks of a test: `turn` and `slow` at one commit in `share`, `rota` at others."""
    due = [pytest.mark.turn, *[pytest.mark.slow][:slow]]
    return [pytest.mark.rota] if (place + turn()) % share else due


def by_rota(cells, share, *, slow=True):
    """Return values to parametrize with: one in `share` of the cells is run at this commit, as a
    `slow` or as a default test, and the others have the mark `rota`."""
    return [
        pytest.param(cell, id=str(cell), marks=marks(place, share, slow))
        for place, cell in enumerate(cells)
    ]


def in_turn(place, share=3, *, slow=False):
    """Decorate a test that is run at one commit in `share`; places spread tests over commits."""
    return lambda test: functools.reduce(lambda t, mark: mark(t), marks(place, share, slow), test)


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
