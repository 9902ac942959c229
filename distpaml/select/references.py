"""The tasks that count: descriptors that stand for the task domain in a utility's averages over it.

They depend on the experiment alone, not on the candidates of a round or on the seed, and `selection.target` narrows
them to the tasks that somebody cares about, or lists these.
"""

from collections.abc import Mapping

import numpy as np

from distpaml import seeds
from distpaml.data.tasks import TaskSet
from distpaml.descriptors.base import Descriptor
from distpaml.errors import UserError
from distpaml.names import nearest
from distpaml.select.candidates import fine_pool
from distpaml.types import Array

REFERENCES = 64
"""Descriptors that represent the task domain."""


def reference_descriptors(task_set: TaskSet) -> Array:
    """[R, E]: the target's own rows; else an even set over the box, faces and corners included; of images or other
    choices, these themselves.

    There are at most 64; of more rows or choices, a fixed sample.
    """
    target, rng = task_set.config.selection.target, seeds.rng(0, "references")
    if not isinstance(target, dict):
        return rng.permutation(_rows(task_set.descriptor, np.array(target, dtype=float)))[:REFERENCES]
    low, high = target_box(task_set.descriptor, target)
    if task_set.choices is None:
        return fine_pool(low, high, REFERENCES, rng)
    choices = task_set.choices
    inside = choices[((choices >= low) & (choices <= high)).all(axis=1)]
    if not len(inside):
        raise UserError(f"selection.target leaves none of the {len(choices)} descriptors that can be chosen; widen it.")
    return rng.permutation(inside)[:REFERENCES]


def _rows(descriptor: Descriptor, rows: Array) -> Array:
    """The same rows, if they are descriptors in the box."""
    names = ", ".join(descriptor.names)
    if rows.shape[1] != len(descriptor.names):
        raise UserError(f"selection.target has rows of {rows.shape[1]} numbers, but a descriptor is {names}.")
    outside = ((rows < descriptor.low) | (rows > descriptor.high)).any(axis=1)
    if outside.any():
        raise UserError(
            f"selection.target has {rows[outside][0].tolist()} ({names}), which lies outside of the box of descriptors "
            f"from {descriptor.low.tolist()} to {descriptor.high.tolist()}."
        )
    return rows


def target_box(descriptor: Descriptor, target: Mapping[str, tuple[float, float]]) -> tuple[Array, Array]:
    """The box of descriptors [E], [E] where intervals of `selection.target` replace its own."""
    low, high = descriptor.low.copy(), descriptor.high.copy()
    for name, (first, last) in target.items():
        if name not in descriptor.names:
            raise UserError(f"selection.target has {name!r}, which no descriptor has{nearest(name, descriptor.names)}.")
        place = descriptor.names.index(name)
        if first < low[place] or last > high[place]:
            raise UserError(
                f"selection.target has {name} in [{first:g}, {last:g}], but descriptors have it in "
                f"[{low[place]:g}, {high[place]:g}]; the target should lie inside."
            )
        low[place], high[place] = first, last
    return low, high
