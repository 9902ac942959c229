"""The learner sees every task parameter."""

from collections.abc import Sequence

from distpaml.descriptors.base import Descriptor
from distpaml.types import Array


class Full(Descriptor):
    """The descriptor is the task: E = P."""

    def shown(self) -> dict[str, tuple[float, float]]:
        return self.task_box

    def describe(self, tasks: Array) -> Array:
        return tasks.copy()

    def resolve(self, descriptors: Array, seed: int, indices: Sequence[int]) -> Array:
        return self.check(descriptors).copy()
