"""The learner sees every task parameter, and dimensions that have no effect on the task."""

from collections.abc import Sequence

import numpy as np

from distpaml.descriptors.base import Descriptor
from distpaml.types import Array


class Noisy(Descriptor):
    """E > P: the task parameters, then the `superfluous` dimensions, which are `neutral` for known tasks."""

    def shown(self) -> dict[str, tuple[float, float]]:
        return {**self.task_box, **self.config.superfluous}

    def describe(self, tasks: Array) -> Array:
        superfluous = np.full((len(tasks), len(self.config.superfluous)), self.config.neutral)
        return np.concatenate([tasks, superfluous], axis=1)

    def resolve(self, descriptors: Array, seed: int, indices: Sequence[int]) -> Array:
        return self.check(descriptors)[:, : len(self.task_box)].copy()
