"""Pendubot: two links, driven at the shoulder; the elbow swings freely."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from distpaml.domains.mujoco import MujocoDomain, suite_spec
from distpaml.types import Array

if TYPE_CHECKING:
    from mujoco import MjSpec


class Pendubot(MujocoDomain):
    """Two links of 1 kg each; shoulder = 0 is upright, elbow is relative to the upper link.

    Variant `paper`: the control is the torque at the shoulder in newton metres.
    Variant `code`: the suite's acrobot as it is, with the control clipped to ±1 and multiplied by 2 Nm,
    at the elbow.
    """

    name = "pendubot"
    box: ClassVar = {"upper_length": (0.6, 3.0), "lower_length": (0.6, 3.0)}
    states = ("shoulder", "elbow", "shoulder_dot", "elbow_dot")
    units: ClassVar[Mapping[str, str]] = {
        "upper_length": "m",
        "lower_length": "m",
        "shoulder": "rad",
        "elbow": "rad",
        "shoulder_dot": "rad/s",
        "elbow_dot": "rad/s",
        "control": "Nm",
    }
    angles = ("shoulder", "elbow")
    dt = 0.05
    control_limit = 10.0
    alternations = 5
    variants = ("paper", "code")

    def start(self, rng: np.random.Generator) -> Array:
        """Hanging straight at rest, every state variable with a noise of 0.01."""
        return np.array([-np.pi, 0.0, 0.0, 0.0]) + 0.01 * rng.standard_normal(4)

    def spec(self, task: Array) -> MjSpec:
        upper, lower = task
        spec = suite_spec("acrobot")
        spec.geom("upper_arm").fromto = [0, 0, 0, 0, 0, upper]
        spec.body("lower_arm").pos = [0, 0, upper]
        spec.geom("lower_arm").fromto = [0, 0, 0, 0, 0, lower]
        spec.site("tip").pos = [0, 0, lower]
        if self.variant == "paper":
            motor = spec.actuator("elbow")
            motor.name = motor.target = "shoulder"
            motor.gear = [1, 0, 0, 0, 0, 0]
            motor.ctrllimited = False
        return spec
