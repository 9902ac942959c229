"""Choices that nearly repeat a task which is known already: they teach little, and a method should not make many."""

import numpy as np

from distpaml.types import Array

NEAR = 0.01
"""A choice repeats a task if no dimension of the descriptor differs by more than this share of its interval."""


def near_repeats(chosen: Array, known: Array, low: Array, high: Array) -> tuple[int | None, ...]:
    """For every chosen descriptor [B, E], the number of the known one [N, E], or earlier choice, that it repeats."""
    found: list[int | None] = []
    for row in chosen:
        distance = np.abs((known - row) / (high - low)).max(axis=1)  # [N]
        nearest = int(distance.argmin())
        found.append(nearest if distance[nearest] <= NEAR else None)
        known = np.vstack([known, row])
    return tuple(found)
