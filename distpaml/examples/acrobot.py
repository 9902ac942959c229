"""Ask and tell with a dm_control domain that is not in the package: the acrobot of its suite, with lower arms of any
length and mass.

    python -m distpaml.examples.acrobot DIR [TASKS]
"""

from typing import Any
from xml.etree import ElementTree

import numpy as np
from dm_control.suite import acrobot

from distpaml.examples import command, learn_and_forecast

DECLARATION = {
    "name": "acrobot",
    "descriptors": {"length": [0.5, 1.5], "mass": [0.5, 2.0]},
    "states": ["shoulder", "elbow", "shoulder_dot", "elbow_dot"],
    "controls": ["torque"],
    "angles": ["shoulder", "elbow"],
    "units": {"length": "m", "mass": "kg"},
    "dt": 0.05,
}


def attempt(descriptor: dict[str, float], steps: int = 80) -> dict[str, Any]:
    """One trajectory from hanging down, in columns. The model is compiled afresh for every task."""
    xml, assets = acrobot.get_model_and_assets()
    tree = ElementTree.fromstring(xml)
    arm = tree.find(".//geom[@name='lower_arm']")
    assert arm is not None
    arm.set("fromto", f"0 0 0 0 0 {descriptor['length']}")
    arm.set("mass", str(descriptor["mass"]))
    physics = acrobot.Physics.from_xml_string(ElementTree.tostring(tree), assets)
    physics.named.data.qpos[["shoulder", "elbow"]] = np.pi, 0.0
    torques = np.sign(np.sin(np.arange(steps) / 6.0))
    states = []
    for torque in torques:
        states.append(np.concatenate([physics.data.qpos, physics.data.qvel]))
        physics.set_control(torque)
        physics.step(round(0.05 / physics.timestep()))
    return {**dict(zip(DECLARATION["states"], np.array(states).T, strict=True)), "torque": torques}  # type: ignore[call-overload]


def main(directory: str, tasks: int) -> tuple[float, float]:
    return learn_and_forecast(DECLARATION, directory, tasks, attempt, untried={"length": 0.9, "mass": 1.2})


if __name__ == "__main__":
    command(main, __doc__)
