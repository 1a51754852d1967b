"""What is drawn, read back from axes."""

from contextlib import contextmanager

import numpy as np
import pytest


@contextmanager
def unsaved():
    """The axes of every figure in turn, in place of its file."""
    seen = []

    def keep(figure, path):
        path.touch()
        seen.append(figure.axes)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpbandit.results.plots.save_figure", keep)
        yield seen


def points(line):
    """Its places and heights."""
    return line.get_xdata().tolist(), line.get_ydata().tolist()


def band(collection):
    """A filled band by its places: x -> (lower end, upper end)."""
    x, y = collection.get_paths()[0].vertices.T
    return {float(at): (float(y[x == at].min()), float(y[x == at].max())) for at in np.unique(x)}


def bars(container):
    """Error bars: for each point the lower and the upper end."""
    (collection,) = container[2]
    return [segment[:, 1].tolist() for segment in collection.get_segments()]
