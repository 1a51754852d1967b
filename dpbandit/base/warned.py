"""Warnings for users as sentences, without the place in our source that Python adds."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def warnings_said() -> Iterator[None]:
    """Print each `UserWarning` on stderr, the first time that it is given; others stay as they are.

    >>> from contextlib import redirect_stderr
    >>> with redirect_stderr(sys.stdout), warnings_said():
    ...     for age in (170, 180, 170):
    ...         warnings.warn(f"Somebody is {age}.", stacklevel=1)
    dpbandit: Somebody is 170.
    dpbandit: Somebody is 180.
    """
    said, usual = set[str](), warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *where: Any, **how: Any) -> None:
        if not issubclass(category, UserWarning):
            usual(message, category, *where, **how)
        elif str(message) not in said:
            said.add(str(message))
            print(f"dpbandit: {message}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield
