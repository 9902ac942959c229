"""Samples in time → runs without gaps, at even times, and the outliers among them; and rows in words."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from distpaml.types import Array

LONGEST_GAP, JITTER = 1.5, 0.02
"""Steps between linked samples at most, and how far they may be from one step to count as regular."""
LEAP = 10.0
"""How much further than usual an outlier leaps."""


def linked_runs(time: Array, good: NDArray[np.bool_], dt: float) -> Iterator[NDArray[np.int64]]:
    """Rows of each run of good samples that are linked, two or more."""
    kept = np.flatnonzero(good)
    cuts = np.flatnonzero(np.diff(time[kept]) > LONGEST_GAP * dt) + 1
    return (run for run in np.split(kept, cuts) if len(run) > 1)


def outliers(values: Array) -> NDArray[np.bool_]:
    """Which of the values [T] are outliers."""
    found = np.zeros(len(values), dtype=bool)
    steps = np.diff(values)
    moves = np.abs(steps[steps != 0])
    if len(values) >= 10 and len(moves):
        usual = max(np.quantile(np.abs(steps), 0.9), np.median(moves))
        back = (steps[:-1] * steps[1:] < 0) & (np.minimum(np.abs(steps[:-1]), np.abs(steps[1:])) > LEAP * usual)
        found[1:-1] = back
    return found


def resampled(time: Array, states: Array, controls: Array, dt: float) -> tuple[Array, Array]:
    """A run of samples at even times: states along straight lines, controls as their mean over each step."""
    grid = time[0] + dt * np.arange(int((time[-1] - time[0]) / dt + 1e-6) + 1)
    even = np.stack([np.interp(grid, time, column) for column in states.T], axis=1)
    effect = np.vstack([np.zeros(controls.shape[1]), np.cumsum(controls[:-1] * np.diff(time)[:, None], axis=0)])
    means = [np.diff(np.interp(grid, time, column)) / dt for column in effect.T]
    return even, np.stack(means, axis=1) if means else np.empty((len(grid) - 1, 0))


def row_words(which: NDArray[np.bool_], rows: NDArray[np.int64] | None = None) -> str:
    """ "row 4" or "rows 4, 7 and 9 more"."""
    places = np.flatnonzero(which) if rows is None else rows[which]
    shown = ", ".join(str(place + 1) for place in places[:5])
    more = f" and {len(places) - 5} more" if len(places) > 5 else ""
    return f"row{'s' if len(places) > 1 else ''} {shown}{more}"
