"""A box [low, high] of task parameters or descriptors: its corners, and uniform points in it."""

from collections.abc import Mapping

import numpy as np

from distpaml.types import Array


def bounds(box: Mapping[str, tuple[float, float]]) -> tuple[Array, Array]:
    """The corners low [P], high [P] of a box, in the order of its keys."""
    low, high = np.array([*box.values()], dtype=float).reshape(-1, 2).T
    return low, high


def uniform(low: Array, high: Array, n: int, rng: np.random.Generator) -> Array:
    """Independent uniform points [n, P]."""
    return scaled(rng.random((n, len(low))), low, high)


def scaled(unit: Array, low: Array, high: Array) -> Array:
    """Points of the unit cube [..., P] in the box."""
    return np.clip(low + (high - low) * unit, low, high)  # rounding may step over `high`
