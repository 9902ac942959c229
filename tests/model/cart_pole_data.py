"""Trajectories of real cart-poles."""

import numpy as np

from distpaml.data import Dataset
from distpaml.domains import CartPole, control_signals
from distpaml.domains.signals import Signal

TASKS = np.array([[0.6, 0.7], [1.5, 1.8], [3.0, 0.6], [4.5, 1.4]])
"""Pole masses and lengths."""


def cart_poles(tasks: np.ndarray, states: int) -> Dataset:
    """Trajectories from near rest, all under the same control."""
    domain, rng = CartPole(), np.random.default_rng(0)
    starts = np.stack([domain.start(rng) for _ in tasks])
    controls = np.tile(control_signals(domain, Signal(), domain.control_limit, 4, states, rng), (len(tasks), 1, 1))
    return Dataset.from_trajectories(domain.simulate(tasks, starts, controls), controls, [1], tasks)
