"""A plot of latent space: where the tasks are, and how well the test tasks are predicted."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import EllipseCollection
from matplotlib.figure import Figure


class LatentPlot:
    """One figure redrawn for every round, several times faster than a new one."""

    def __init__(self) -> None:
        figure = Figure(figsize=(4.8, 4.0), dpi=80)
        self.canvas = FigureCanvasAgg(figure)
        self.axes = figure.add_axes((0.12, 0.12, 0.85, 0.8))
        self.axes.locator_params(nbins=5)

    def draw(self, arrays: Mapping[str, Any], new: int, tasks: int) -> np.ndarray:
        """Bytes [height, width, 3]: dots, the test tasks (darker: larger error); ellipses, two standard deviations of
        the tasks; crosses, the `new` tasks of the round. Of more than two latent dimensions the first two."""
        test, mean = _plane(arrays["test_mean"]), _plane(arrays["embedding_mean"])
        spread = 2.0 * np.sqrt(_plane(arrays["embedding_variance"]))
        axes = self.axes
        for artist in [*axes.collections, *axes.lines]:
            artist.remove()
        axes.scatter(test[:, 0], test[:, 1], c=arrays["test_rmse"], s=8, cmap="viridis_r")
        axes.plot(*mean.T, "k.", markersize=3)
        axes.plot(*mean[-new:].T, "rx")
        ellipses = EllipseCollection(
            2.0 * spread[:, 0],
            2.0 * spread[:, 1],
            np.zeros(len(mean)),
            units="xy",
            offsets=mean,
            offset_transform=axes.transData,
            facecolor="none",
            edgecolor="k",
        )
        axes.add_collection(ellipses, autolim=False)
        corners = np.vstack([test, mean - spread, mean + spread])
        low, high = corners.min(axis=0), corners.max(axis=0)
        margin = 0.05 * (high - low) + 1e-9
        axes.set(xlim=(low[0] - margin[0], high[0] + margin[0]), ylim=(low[1] - margin[1], high[1] + margin[1]))
        axes.set(title=f"{tasks} tasks", xlabel="h1", ylabel="h2")
        self.canvas.draw()
        return np.asarray(self.canvas.buffer_rgba())[..., :3].copy()


def _plane(latents: np.ndarray) -> np.ndarray:
    """The first two dimensions; zeros where there is only one."""
    return np.pad(latents, ((0, 0), (0, max(0, 2 - latents.shape[1]))))[:, :2]
