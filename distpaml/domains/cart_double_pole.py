"""Cart-double-pole: a second pole hinged to the end of the cart's pole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from distpaml.domains.cartpole import cart_spec
from distpaml.domains.mujoco import MujocoDomain
from distpaml.types import Array

if TYPE_CHECKING:
    from mujoco import MjSpec


class CartDoublePole(MujocoDomain):
    """A cart of 1 kg and two poles of 0.1 kg each.

    theta_1 = 0 is upright, theta_2 is relative to the inner pole.
    The variants differ as those of `CartPole` do.
    """

    name = "cart_double_pole"
    box: ClassVar = {"inner_length": (0.5, 3.0), "outer_length": (0.5, 3.0)}
    states = ("x", "theta_1", "theta_2", "x_dot", "theta_1_dot", "theta_2_dot")
    units: ClassVar[Mapping[str, str]] = {
        "inner_length": "m",
        "outer_length": "m",
        "x": "m",
        "theta_1": "rad",
        "theta_2": "rad",
        "x_dot": "m/s",
        "theta_1_dot": "rad/s",
        "theta_2_dot": "rad/s",
        "control": "N",
    }
    angles = ("theta_1", "theta_2")
    dt = 0.05
    control_limit = 25.0
    alternations = 10
    variants = ("paper", "code")

    @property
    def substeps(self) -> int:
        """Two in variant `paper`: with one, the outer pole, at over 70 rad/s, makes RK4 diverge for a task of
        the paper's test grid in about every eighth seed; tests/domains/test_divergence.py counts."""
        return 2 if self.variant == "paper" else 1

    def start(self, rng: np.random.Generator) -> Array:
        """Hanging straight at rest, every state variable with a noise of 0.01."""
        return np.array([0.0, np.pi, 0.0, 0.0, 0.0, 0.0]) + 0.01 * rng.standard_normal(6)

    def spec(self, task: Array) -> MjSpec:
        inner, outer = task
        spec = cart_spec(self.variant)
        like_inner = spec.find_default("pole")
        spec.geom("pole_1").fromto = [0, 0, 0, 0, 0, inner]
        pole = spec.body("pole_1").add_body(name="pole_2", pos=[0, 0, inner], childclass="pole")
        pole.add_joint(like_inner, name="hinge_2")
        pole.add_geom(like_inner, name="pole_2", fromto=[0, 0, 0, 0, 0, outer])
        return spec
