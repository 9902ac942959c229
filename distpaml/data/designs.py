"""Tasks placed in a box [low, high] without a model: initial designs, baselines, test grids.

Initial tasks are the first rows of one Latin hypercube with as many rows as the experiment will have tasks; the LHS
baseline continues along the same design. Everything is keyed by the seed, so all methods of a seed share it.
"""

import numpy as np

from distpaml import seeds
from distpaml.domains.box import scaled, uniform
from distpaml.types import Array


def latin_hypercube(low: Array, high: Array, n: int, rng: np.random.Generator) -> Array:
    """A design [n, P] with one point in each of the n equal strata of every dimension."""
    from scipy.stats.qmc import LatinHypercube  # takes longer to import than everything else here

    return scaled(LatinHypercube(d=len(low), rng=rng).random(n), low, high)


def grid(low: Array, high: Array, per_axis: int, rows: range | None = None) -> Array:
    """The full grid [per_axis^P, P], evenly spaced with both ends; the last parameter changes fastest.

    `rows` selects some rows of a grid that is too large to hold.
    """
    axes = [np.linspace(a, b, per_axis) for a, b in zip(low, high, strict=True)]
    wanted = range(per_axis ** len(axes)) if rows is None else rows
    index = np.unravel_index(np.arange(wanted.start, wanted.stop, wanted.step), (per_axis,) * len(axes))
    return np.stack([axis[i] for axis, i in zip(axes, index, strict=True)], axis=-1)


def design(low: Array, high: Array, rows: int, seed: int) -> Array:
    """An experiment's Latin hypercube [rows, P]: initial tasks first, then the LHS baseline's choices."""
    return latin_hypercube(low, high, rows, seeds.rng(seed, "design"))


def uniform_choice(low: Array, high: Array, seed: int, index: int) -> Array:
    """The uniform baseline's choice [P] of task `index`, independent of earlier draws."""
    return uniform(low, high, 1, seeds.rng(seed, "uniform", index))[0]
