"""What is drawn, read back from axes."""

import numpy as np


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
