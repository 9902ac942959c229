"""Some task parameters are hidden; each chosen task draws its own from their intervals."""

from collections.abc import Sequence

import numpy as np

from distpaml import seeds
from distpaml.descriptors.base import Descriptor
from distpaml.domains.box import bounds, uniform
from distpaml.types import Array


class Partial(Descriptor):
    """E < P: the parameters that `hidden` does not name."""

    def shown(self) -> dict[str, tuple[float, float]]:
        return {name: interval for name, interval in self.task_box.items() if name not in self.config.hidden}

    @property
    def _is_shown(self) -> np.ndarray:  # [P]
        return np.array([name in self.box for name in self.task_box])

    def describe(self, tasks: Array) -> Array:
        return tasks[:, self._is_shown]

    def resolve(self, descriptors: Array, seed: int, indices: Sequence[int]) -> Array:
        low, high = bounds({name: self.task_box[name] for name in self.task_box if name not in self.box})
        tasks = np.empty((len(descriptors), len(self.task_box)))
        tasks[:, self._is_shown] = self.check(descriptors)
        for task, index in zip(tasks, indices, strict=True):
            task[~self._is_shown] = uniform(low, high, 1, seeds.rng(seed, "hidden", index))[0]
        return tasks
