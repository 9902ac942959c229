"""Joint positions of systems, from a state and a task; the paper's by formula.

theta = 0 is upright and positive angles turn towards +x, as in MuJoCo's models: the end of a link of length l
at angle a from a joint at (x, z) is (x + l sin a, z + l cos a). The angle of a second link is relative to the first.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from distpaml.domains import DOMAINS, Domain
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


@dataclass(frozen=True)
class Look:
    """How a domain's states are drawn."""

    points: Callable[[Array, Array], Array]
    """Points of a line [..., J, 2] from states [..., S] of a task [P]."""
    cart: bool = False
    """Whether it is a cart on a rail."""
    straight: bool = False
    """Whether the line is links end to end, and not a tour of a tree."""

    def centre(self, points: Array) -> Array:
        """What the middle of a picture shows, [..., 2]: the cart, on its rail, or the first joint."""
        return points[..., 0, :] * [1.0, 0.0] if self.cart else points[..., 0, :]

    def reach(self, points: Array) -> float:
        """How far the line [F, J, 2] can go from the middle; of a tour, how far it goes."""
        if self.straight:
            return float(np.linalg.norm(np.diff(points[0], axis=0), axis=-1).sum())
        return max(float(np.linalg.norm(points - self.centre(points)[:, None], axis=-1).max()), 1e-6)


def look_of(domain: Domain, start: Array) -> Look | None:
    """How a domain is drawn, if it can be: by the formulas here or by its own `look`, tried on `start` [S]."""
    if domain.name in LOOKS and DOMAINS.get(domain.name) is type(domain):
        formula = LOOKS[domain.name]
        points = lambda states, task: formula(states, dict(zip(domain.box, task.tolist(), strict=True)))  # noqa: E731
        return Look(points, cart=domain.name in CARTS, straight=True)
    middle = np.array([(low + high) / 2 for low, high in domain.box.values()])
    return None if domain.look(start, middle) is None else Look(domain.look)  # type: ignore[arg-type]
