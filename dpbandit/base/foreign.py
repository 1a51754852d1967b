"""Foreign agents: their exceptions as one sentence, and a limit on their running time."""

import ctypes
import signal
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from sysconfig import get_path
from types import TracebackType
from typing import Any, NamedTuple

from dpbandit.base.inputs import InputError

RAISED = (Exception, SystemExit)
"""Exceptions that end only the run of the agent that raised them, not those of other agents."""
_PACKAGE_FOLDER = Path(__file__).parents[1]  # of dpbandit's code
_MAX_MESSAGE_LETTERS = 300
"""Largest number of letters of an exception's message that is quoted; the rest is cut off."""


class AgentError(InputError):
    """An agent's exception or timeout, with the agent's name, the method and the round.

    >>> print(AgentError("Mine", "raised KeyError", "act", 3, "'age'"))
    Mine raised KeyError in act, round 3: 'age'.
    """

    def __init__(
        self, agent: str, what: str, method: str, round: int | None, why: str, trace: str = ""
    ) -> None:
        super().__init__(agent, what, method, round, why, trace)  # so that it can be pickled
        self.agent, self.what, self.method, self.round = agent, what, method, round
        self.why, self.trace = why, trace

    @property
    def message(self) -> str:
        """Sentence about the failure, without the agent's name."""
        when = "" if self.round is None else f", round {self.round:,}"
        why = f": {self.why}" if self.why else ""
        return f"{self.what} in {self.method}{when}{why}"

    def __str__(self) -> str:
        return f"{self.agent} {self.message}."

    def of(self, name: str) -> "AgentError":
        """Return this error with the agent called `name`, such as its label in a comparison."""
        renamed = AgentError(name, self.what, self.method, self.round, self.why, self.trace)
        return renamed.with_traceback(self.__traceback__)


def agent_error(
    agent: str, method: str, round: int | None, error: BaseException
) -> AgentError | None:
    """Return an exception of an agent's method as an `AgentError`; count its call as ended.

    Returns None for exceptions that should propagate unchanged: `InputError`, `MemoryError`, and
    assertions in the code of dpbandit. Must be called in the function that called the agent.
    """
    WATCH.calls += 1
    if isinstance(error, InputError | MemoryError) or _is_checked(error):
        return None
    if isinstance(error, OverTime):
        return AgentError(agent, f"took more than {error}", method, round, "it was stopped")
    # the first frame is the caller's, the agent's follow
    inside = _theirs(error.__traceback__ and error.__traceback__.tb_next)
    message = " ".join(str(error).split()).rstrip(".")
    if len(message) > _MAX_MESSAGE_LETTERS:
        message = f"{message[:_MAX_MESSAGE_LETTERS]}..."
    trace = "".join(traceback.format_exception(type(error), error, inside))
    why = f"{message}{_place(traceback.extract_tb(inside))}".strip()
    return AgentError(agent, f"raised {type(error).__name__}", method, round, why, trace)


def _theirs(trace: TracebackType | None) -> TracebackType | None:
    """Drop the leading frames of a traceback that are in dpbandit's code, unless all are."""
    found = trace
    while found is not None and found.tb_frame.f_code.co_filename.startswith(str(_PACKAGE_FOLDER)):
        found = found.tb_next
    return trace if found is None else found


def _is_checked(error: BaseException) -> bool:
    frames = traceback.extract_tb(error.__traceback__)[-1:]
    ours = any(one.filename.startswith(str(_PACKAGE_FOLDER)) for one in frames)
    return isinstance(error, AssertionError) and ours


def _place(frames: traceback.StackSummary) -> str:
    """Return " (file, line)" of the last frame in a user's file, not Python's or a library's."""
    known = (str(_PACKAGE_FOLDER), get_path("stdlib"), get_path("purelib"), get_path("platlib"))
    foreign_frames = [one for one in frames if not one.filename.startswith((*known, "<frozen"))]
    last = [*frames[-1:], *foreign_frames][-1:]
    return "".join(f" ({Path(one.filename).name}, line {one.lineno})" for one in last)


class OverTime(BaseException):
    """Exception raised inside code that exceeds a time limit; not caught by `except Exception`."""


class TimeLimit(NamedTuple):
    """Time limits of an agent, in seconds."""

    run: float
    """seconds for all rounds of a run of some replicas on one problem"""
    call: float
    """seconds for one call of make, act or update"""


class _Watch(threading.local):
    """Counter, per thread, of begins and ends of calls of agents' methods; odd during a call."""

    calls = 0


WATCH = _Watch()
"""Counter that callers of an agent's methods increase before and after each call."""


@contextmanager
def time_limit(limit: TimeLimit | None) -> Iterator[None]:
    """Raise `OverTime` inside the `with` block once an agent exceeds a time limit.

    In the main thread a signal interrupts even a sleep; in other threads a watching thread
    interrupts at the next line of Python. A call of a compiled library that never returns is not
    stopped.
    """
    if limit is None:
        yield
        return
    clock = _Clock(limit)
    main = threading.current_thread() is threading.main_thread()
    if main and hasattr(signal, "setitimer"):
        with _signals(clock):
            yield
        return
    over = threading.Event()
    clock.watch(over)
    try:
        yield
    finally:
        over.set()


class _Clock:
    """Timer that checks a time limit at least four times before it ends."""

    def __init__(self, limit: TimeLimit) -> None:
        self.limit, self.every = limit, min(1.0, min(limit) / 4)
        self._watch = WATCH.__dict__  # of this thread, for another one to read
        self._began = self._since = time.monotonic()
        self._calls = self._count()

    def _count(self) -> int:
        count: int = self._watch.get("calls", 0)
        return count

    def passed(self) -> str | None:
        """Return the exceeded limit as text, such as "5 s"; None while within both limits."""
        now, calls = time.monotonic(), self._count()
        if calls != self._calls:
            self._calls, self._since = calls, now
        text = None
        if calls % 2 and now - self._since > self.limit.call:
            text = f"{self.limit.call:g} s"
        elif now - self._began > self.limit.run:
            text = f"{self.limit.run:g} s for all rounds"
        if text is not None:
            self._began = self._since = now  # raised once, not again while it is being handled
        return text

    def watch(self, over: threading.Event) -> None:
        """Start a thread that raises `OverTime` in the calling thread once a limit is exceeded."""
        here = threading.get_ident()

        def look() -> None:
            while not over.wait(self.every):
                if (text := self.passed()) is not None and not over.is_set():
                    kind = type("OverTime", (OverTime,), {"__str__": lambda self: text})
                    raising: Any = ctypes.pythonapi.PyThreadState_SetAsyncExc
                    raising(ctypes.c_ulong(here), ctypes.py_object(kind))

        threading.Thread(target=look, daemon=True).start()


@contextmanager
def _signals(clock: _Clock) -> Iterator[None]:
    """Check the limits at each alarm of the process's timer; at the end restore the old timer."""

    def look(number: int, frame: Any) -> None:
        if (text := clock.passed()) is not None:
            raise OverTime(text)

    before = signal.signal(signal.SIGALRM, look)
    left, interval = signal.setitimer(signal.ITIMER_REAL, clock.every, clock.every)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, left, interval)
        signal.signal(signal.SIGALRM, before)
