"""Joint positions of the paper's systems, from a state and a task.

theta = 0 is upright and positive angles turn towards +x, as in MuJoCo's models: the end of a link of length l
at angle a from a joint at (x, z) is (x + l sin a, z + l cos a). The angle of a second link is relative to the first.
"""

from collections.abc import Callable, Mapping

import numpy as np

from distpaml.types import Array

Joints = Callable[[Array, Mapping[str, float]], Array]


def _chain(root: Array, angles: list[Array], lengths: list[float]) -> Array:
    """Joints [..., links + 1, 2] of links end to end; `root` is x [...], on the ground line z = 0."""
    joints, absolute = [np.stack([root, np.zeros_like(root)], axis=-1)], np.zeros_like(root)
    for angle, length in zip(angles, lengths, strict=True):
        absolute = absolute + angle
        joints.append(joints[-1] + length * np.stack([np.sin(absolute), np.cos(absolute)], axis=-1))
    return np.stack(joints, axis=-2)


def _cartpole(states: Array, task: Mapping[str, float]) -> Array:
    return _chain(states[..., 0], [states[..., 1]], [task["pole_length"]])


def _cart_double_pole(states: Array, task: Mapping[str, float]) -> Array:
    return _chain(states[..., 0], [states[..., 1], states[..., 2]], [task["inner_length"], task["outer_length"]])


def _pendubot(states: Array, task: Mapping[str, float]) -> Array:
    angles = [states[..., 0], states[..., 1]]
    return _chain(np.zeros_like(states[..., 0]), angles, [task["upper_length"], task["lower_length"]])


LOOKS: dict[str, Joints] = {
    "cartpole": _cartpole,
    "cartpole_length": _cartpole,
    "cartpole_short": _cartpole,
    "cart_double_pole": _cart_double_pole,
    "pendubot": _pendubot,
}
"""Joints [..., J, 2] in metres from states [..., S] and a task, by the name of the domain."""
CARTS = ("cartpole", "cartpole_length", "cartpole_short", "cart_double_pole")
