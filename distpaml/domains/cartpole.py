"""Cart-pole: a pole hinged to a cart, which is pushed along a rail."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from distpaml.domains.mujoco import Camera, MujocoDomain, suite_spec
from distpaml.types import Array

if TYPE_CHECKING:
    from mujoco import MjSpec


class CartPole(MujocoDomain):
    """A cart of 1 kg and a pole (capsule of radius 4.5 cm); theta = 0 is upright.

    Variant `paper`: the control is the force on the cart in newtons and the rail has no ends.
    Variant `code`: the suite's cart-pole as it is, with the control clipped to ±1 and multiplied by 10 N,
    and soft stops at ±1.8 m.
    """

    name = "cartpole"
    box: ClassVar = {"pole_mass": (0.5, 5.0), "pole_length": (0.5, 2.0)}
    states = ("x", "theta", "x_dot", "theta_dot")
    units: ClassVar[Mapping[str, str]] = {
        "pole_mass": "kg",
        "pole_length": "m",
        "x": "m",
        "theta": "rad",
        "x_dot": "m/s",
        "theta_dot": "rad/s",
        "control": "N",
    }
    angles = ("theta",)
    dt = 0.125
    control_limit = 25.0
    alternations = 10
    variants = ("paper", "code")

    def start(self, rng: np.random.Generator) -> Array:
        """Hanging at rest, every state variable with a noise of 0.01."""
        return np.array([0.0, np.pi, 0.0, 0.0]) + 0.01 * rng.standard_normal(4)

    def spec(self, task: Array) -> MjSpec:
        mass, length = task
        spec = cart_spec(self.variant)
        spec.geom("pole_1").mass = mass
        spec.geom("pole_1").fromto = [0, 0, 0, 0, 0, length]
        return spec


class CartPoleLength(CartPole):
    """Cart-poles that differ in length alone, with a pole of 1 kg: what an image of the upright pole shows."""

    name = "cartpole_length"
    box: ClassVar = {"pole_length": (0.5, 4.5)}
    camera = Camera(centre=(0.0, 0.0, 3.2), height=5.6)

    def spec(self, task: Array) -> MjSpec:
        return super().spec(np.array([1.0, *task]))


class ShortCartPole(CartPole):
    """Cart-poles down to 0.4 m, as in experiment (ii)."""

    name = "cartpole_short"
    box: ClassVar = {"pole_mass": (0.4, 3.0), "pole_length": (0.4, 3.0)}

    @property
    def substeps(self) -> int:
        """Two in variant `paper`: with one, RK4 diverges for the shortest poles of the paper's test grid in about
        every eighth seed; tests/domains/test_divergence.py counts."""
        return 2 if self.variant == "paper" else 1


def cart_spec(variant: str) -> MjSpec:
    """The suite's cart with one pole; in variant `paper` newtons, and no constraints, hence no stops."""
    import mujoco

    spec = suite_spec("cartpole")
    if variant == "paper":
        motor = spec.actuator("slide")
        motor.gear = [1, 0, 0, 0, 0, 0]
        motor.ctrllimited = False
        spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    return spec
