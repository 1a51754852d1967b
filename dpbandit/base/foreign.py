"""Code of others: what it raised as one sentence, and a limit to the time that it may take."""

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
"""Exceptions that end the run of the agent that raised them, and nothing else"""
_OURS = Path(__file__).parents[1]
_LONG = 300
"""Letters of a message that are told, at most"""


class AgentError(InputError):
    """An agent raised an exception, or took too long: who, what, in which method and round.

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
        """The sentence without the name of the agent."""
        when = "" if self.round is None else f", round {self.round:,}"
        why = f": {self.why}" if self.why else ""
        return f"{self.what} in {self.method}{when}{why}"

    def __str__(self) -> str:
        return f"{self.agent} {self.message}."

    def of(self, name: str) -> "AgentError":
        """The same of an agent by another name, such as that in a comparison."""
        renamed = AgentError(name, self.what, self.method, self.round, self.why, self.trace)
        return renamed.with_traceback(self.__traceback__)


def agent_error(
    agent: str, method: str, round: int | None, error: BaseException
) -> AgentError | None:
    """Describe an exception that a method of an agent raised, and count that the call has ended.

    Frames of the agent come after the caller's own. Returns None for exceptions that are passed on
    as they are: `InputError`, which is a sentence, `MemoryError`, and assertions of our own checks.
    """
    WATCH.calls += 1
    if isinstance(error, InputError | MemoryError) or _is_checked(error):
        return None
    if isinstance(error, OverTime):
        return AgentError(agent, f"took more than {error}", method, round, "it was stopped")
    inside = _theirs(error.__traceback__ and error.__traceback__.tb_next)
    message = " ".join(str(error).split()).rstrip(".")
    message = message if len(message) <= _LONG else f"{message[:_LONG]}..."
    trace = "".join(traceback.format_exception(type(error), error, inside))
    why = f"{message}{_place(traceback.extract_tb(inside))}".strip()
    return AgentError(agent, f"raised {type(error).__name__}", method, round, why, trace)


def _theirs(trace: TracebackType | None) -> TracebackType | None:
    """A traceback from the first frame on that is not ours; all of it where all are."""
    found = trace
    while found is not None and found.tb_frame.f_code.co_filename.startswith(str(_OURS)):
        found = found.tb_next
    return trace if found is None else found


def _is_checked(error: BaseException) -> bool:
    frames = traceback.extract_tb(error.__traceback__)[-1:]
    ours = any(one.filename.startswith(str(_OURS)) for one in frames)
    return isinstance(error, AssertionError) and ours


def _place(frames: traceback.StackSummary) -> str:
    """The last line that is somebody's own, neither Python's nor of what is installed."""
    known = (str(_OURS), get_path("stdlib"), get_path("purelib"), get_path("platlib"))
    foreign_frames = [one for one in frames if not one.filename.startswith((*known, "<frozen"))]
    last = [*frames[-1:], *foreign_frames][-1:]
    return "".join(f" ({Path(one.filename).name}, line {one.lineno})" for one in last)


class OverTime(BaseException):
    """Raised in code that takes too long; so that it passes what catches every `Exception`."""


class TimeLimit(NamedTuple):
    """Seconds that an agent may take."""

    run: float
    """for a run of some replicas on one problem, all of its rounds"""
    call: float
    """for one call of make, act or update"""


class _Watch(threading.local):
    """Calls of agents that began or ended, counted in each thread; odd inside a call."""

    calls = 0


WATCH = _Watch()
"""Whoever calls an agent counts that here, and that it came back"""


@contextmanager
def time_limit(limit: TimeLimit | None) -> Iterator[None]:
    """Stop what takes longer, by raising `OverTime` in it.

    In the main thread a signal of the system does it, which wakes a sleeper, too; elsewhere another
    thread, which has to wait for the next line of Python. What never comes back from a call of a
    compiled library is not stopped.
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
    """Looks several times within a limit at whether it is kept."""

    def __init__(self, limit: TimeLimit) -> None:
        self.limit, self.every = limit, min(1.0, min(limit) / 4)
        self._watch = WATCH.__dict__  # of this thread, for another one to read
        self._began = self._since = time.monotonic()
        self._calls = self._count()

    def _count(self) -> int:
        count: int = self._watch.get("calls", 0)
        return count

    def passed(self) -> str | None:
        """Name the limit that was exceeded, in seconds; None while both are kept."""
        now, calls = time.monotonic(), self._count()
        if calls != self._calls:
            self._calls, self._since = calls, now
        text = None
        if calls % 2 and now - self._since > self.limit.call:
            text = f"{self.limit.call:g} s"
        elif now - self._began > self.limit.run:
            text = f"{self.limit.run:g} s for all rounds"
        if text is not None:
            self._began = self._since = now  # told once, not while it is being handled
        return text

    def watch(self, over: threading.Event) -> None:
        """Look from another thread, and raise in this one."""
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
    """Look whenever the timer of the process rings; whoever had set it finds it as it was."""

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
