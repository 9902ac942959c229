"""Ask and tell with a gymnasium environment: Pendulum-v1 with rods of any mass and length.

pip install gymnasium
python -m distpaml.examples.pendulum DIR [TASKS]
"""

from typing import Any

import gymnasium
import numpy as np

from distpaml.examples import command, learn_and_forecast

DECLARATION = {
    "name": "pendulum",
    "descriptors": {"m": [0.5, 2.0], "l": [0.5, 1.5]},
    "states": ["theta", "theta_dot"],
    "controls": ["torque"],
    "angles": ["theta"],
    "units": {"m": "kg", "l": "m", "torque": "Nm"},
    "dt": 0.05,
}


def attempt(descriptor: dict[str, float], steps: int = 80) -> dict[str, Any]:
    """One trajectory of a rod, in columns; the row's torque is held until the next row."""
    environment: Any = gymnasium.make("Pendulum-v1").unwrapped
    environment.m, environment.l = descriptor["m"], descriptor["l"]
    environment.reset(seed=0)
    environment.state = np.array([np.pi, 0.0])
    torques = 2.0 * np.sin(np.arange(steps) / 5.0)
    states = []
    for torque in torques:
        states.append(environment.state)
        environment.step(np.array([torque]))
    environment.close()
    theta, theta_dot = np.array(states).T
    return {"theta": theta, "theta_dot": theta_dot, "torque": torques}


def main(directory: str, tasks: int) -> tuple[float, float]:
    return learn_and_forecast(DECLARATION, directory, tasks, attempt, untried={"m": 1.2, "l": 1.1})


if __name__ == "__main__":
    command(main, __doc__)
