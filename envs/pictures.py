"""What `render` shows of an episode: regret so far, and the actions played last."""

from collections import deque
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from dpbandit.base.arrays import Floats

MODES = ("ansi", "rgb_array")
_LAST = 40
"""Actions that are shown"""


class Pictures:
    """One replica's course, as text or as one picture.

    Args:
        mode: "ansi" or "rgb_array".
        horizon: rounds of an episode.
        actions: the space of one action.
        hindsight: regret is known at the end of an episode only, so rewards are shown instead.

    Of lists what was clicked is shown, too: a star behind an item, or a dot on its position.
    """

    def __init__(
        self, mode: str, *, horizon: int, actions: gym.Space[Any], hindsight: bool
    ) -> None:
        self._mode, self._horizon, self._actions = mode, horizon, actions
        self._what = "reward" if hindsight else "regret"
        self.clear()

    def clear(self) -> None:
        """A new episode begins."""
        self._total: list[float] = [0.0]
        self._last: deque[Any] = deque(maxlen=_LAST)
        self._clicks: deque[Any] = deque(maxlen=_LAST)

    def see(self, action: Any, reward: float, regret: float, clicks: Floats | None = None) -> None:
        """One round, with the clicks on each position of a list."""
        self._total.append(self._total[-1] + (reward if self._what == "reward" else regret))
        self._last.append(np.array(action))
        self._clicks.append(clicks)

    def draw(self) -> str | npt.NDArray[np.uint8]:
        """The text, or the picture (360, 480, 3)."""
        return self._text() if self._mode == "ansi" else self._picture()

    def _text(self) -> str:
        played = " ".join(map(_said, self._last, self._clicks))
        return (
            f"round {self._round} of {self._horizon}\n"
            f"total {self._what} {self._total[-1]:.6g}\n"
            f"last actions {played or '(none)'}\n"
        )

    @property
    def _round(self) -> int:
        return len(self._total) - 1

    def _picture(self) -> npt.NDArray[np.uint8]:
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # not before: slow to import
        from matplotlib.figure import Figure

        figure = Figure(figsize=(4.8, 3.6), dpi=100, layout="constrained")
        canvas: Any = FigureCanvasAgg(figure)
        above, below = figure.subplots(2)
        above.plot(self._total, color="C0")
        above.set(xlim=(0, max(1, self._round)), ylabel=f"total {self._what}")
        above.set_title(f"Round {self._round} of {self._horizon}", loc="left", fontsize=10)
        first, count = self._round - len(self._last) + 1, len(self._last)
        if isinstance(self._actions, gym.spaces.Discrete):
            start, n = int(self._actions.start), int(self._actions.n)
            below.plot(range(first, first + count), [int(a) for a in self._last], "s", color="C1")
            below.set(xlim=(first - 0.5, first + _LAST - 0.5), ylim=(start - 0.5, start + n - 0.5))
            below.yaxis.get_major_locator().set_params(integer=True)
            below.set_ylabel("action")
        else:
            below.imshow(self._points(), aspect="auto", extent=self._extent(first), origin="lower")
            below.set_ylabel("coordinate")
        if any(clicks is not None for clicks in self._clicks):
            marks = [np.flatnonzero(clicks) for clicks in self._clicks]
            rounds = np.repeat(np.arange(first, first + count), [len(mark) for mark in marks])
            below.plot(rounds, np.concatenate(marks) + 1, "o", color="white", mec="black", ms=4)
            below.yaxis.get_major_locator().set_params(integer=True)
            below.invert_yaxis()
            below.set_ylabel("position")
            below.set_title("Items (colours) and clicks (dots)", loc="left", fontsize=9)
        below.set_xlabel(f"round, the last {_LAST}")
        canvas.draw()
        return np.asarray(canvas.buffer_rgba())[..., :3].copy()

    def _points(self) -> Floats:
        """The last actions as columns, (coordinates, 40); white where there is none yet."""
        shape = self._actions.shape or (1,)
        points = np.full((int(np.prod(shape)), _LAST), np.nan)
        for i, action in enumerate(self._last):
            points[:, i] = np.ravel(action)
        return points

    def _extent(self, first: int) -> tuple[float, float, float, float]:
        coordinates = int(np.prod(self._actions.shape or (1,)))
        return first - 0.5, first + _LAST - 0.5, 0.5, coordinates + 0.5


def _said(action: Any, clicks: Floats | None) -> str:
    """An action in words; of a list, with a star behind what was clicked."""
    if clicks is None:
        return np.array2string(action, precision=2, separator=" ")
    return (
        f"[{' '.join(f'{a:g}*' if c else f'{a:g}' for a, c in zip(action, clicks, strict=True))}]"
    )
