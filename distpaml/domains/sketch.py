"""A system without a MuJoCo model as a stick figure: links end to end, by their angles and lengths."""

from collections.abc import Mapping, Sequence

import numpy as np

from distpaml.domains.expressions import ExpressionError, evaluate
from distpaml.domains.family import FamilyError
from distpaml.names import nearest
from distpaml.types import Array

Links = Sequence[tuple[str, str | float]]
"""The state that is a link's angle, relative to the link before, and its length: a number or an expression."""


def check_links(links: Links, states: Sequence[str], box: Mapping[str, tuple[float, float]]) -> None:
    """Every angle is a state and every length a number, or it is a `FamilyError`."""
    middle = {name: (low + high) / 2 for name, (low, high) in box.items()}
    for number, (angle, length) in enumerate(links):
        if angle not in states:
            raise FamilyError(("links", number), f"there is no state {angle!r}{nearest(angle, states)}")
        try:
            evaluate(length, middle)
        except ExpressionError as error:
            raise FamilyError(("links", number), str(error)) from error


def chain(links: Links, states: Sequence[str], values: Array, task: Mapping[str, float]) -> Array:
    """Joints [..., links + 1, 2] for states [..., S]: an angle of 0 is upright, the first joint is the origin."""
    joints = [np.zeros((*values.shape[:-1], 2))]
    angle = np.zeros(values.shape[:-1])
    for state, length in links:
        angle = angle + values[..., list(states).index(state)]
        end = np.stack([np.sin(angle), np.cos(angle)], axis=-1)
        joints.append(joints[-1] + evaluate(length, task) * end)
    return np.stack(joints, axis=-2)
