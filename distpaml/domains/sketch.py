"""A system without a MuJoCo model as a stick figure: links end to end, by their angles and lengths."""

from collections.abc import Mapping, Sequence

import numpy as np

from distpaml.domains.expressions import evaluate
from distpaml.types import Array

Links = Sequence[tuple[str, str | float]]
"""The state that is a link's angle, relative to the link before, and its length: a number or an expression."""


def chain(links: Links, states: Sequence[str], values: Array, task: Mapping[str, float]) -> Array:
    """Joints [..., links + 1, 2] for states [..., S]: an angle of 0 is upright, the first joint is the origin."""
    joints = [np.zeros((*values.shape[:-1], 2))]
    angle = np.zeros(values.shape[:-1])
    for state, length in links:
        angle = angle + values[..., list(states).index(state)]
        end = np.stack([np.sin(angle), np.cos(angle)], axis=-1)
        joints.append(joints[-1] + evaluate(length, task) * end)
    return np.stack(joints, axis=-2)
