"""What all methods of a seed share: initial tasks, start states, the LHS design and the test tasks.

Nothing here depends on the method or on earlier draws, so methods differ only in their choices.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from distpaml import seeds
from distpaml.config import ExperimentConfig
from distpaml.data import ImageSet, designs
from distpaml.descriptors import ImageDescriptor, get_descriptor
from distpaml.domains.box import bounds
from distpaml.errors import UserError
from distpaml.types import Array

LARGEST_TEST = 10_000
"""Most test tasks in a grid."""


@dataclass(frozen=True, eq=False)
class Tasks:
    """N tasks: what the learner sees, their true parameters, and their start states."""

    descriptors: Array  # [N, E]
    parameters: Array  # [N, P]
    starts: Array  # [N, S]

    def __len__(self) -> int:
        return len(self.parameters)

    def take(self, rows: slice | NDArray[np.int64]) -> "Tasks":
        """The tasks in these rows."""
        return Tasks(self.descriptors[rows], self.parameters[rows], self.starts[rows])


class TaskSet:
    """The tasks of one experiment, by its config and seed."""

    def __init__(self, config: ExperimentConfig) -> None:
        self.config = config
        self.domain = config.domain.make()
        self.descriptor = get_descriptor(config.descriptor, config.domain.box, config.domain)
        if config.evaluation.grid ** len(config.domain.box) > LARGEST_TEST:
            raise UserError(
                f"evaluation.grid={config.evaluation.grid} for each of {len(config.domain.box)} parameters makes more "
                f"than {LARGEST_TEST} test tasks; lower it."
            )
        self.size = config.initial + config.rounds * config.selection.batch
        self.choices = self._choices()
        low, high = self.descriptor.low, self.descriptor.high
        design = designs.design(low, high, self.size, config.seed)
        self.design = design if self.choices is None else _nearest(design, self.choices, high - low)  # [size, E]

    def initial(self) -> Tasks:
        """The first rows of the design."""
        return self.chosen(self.design[: self.config.initial], first=0)

    def chosen(self, descriptors: Array, first: int) -> Tasks:
        """Tasks number first, first + 1, … of the experiment; hidden parameters are drawn by that number."""
        indices = range(first, first + len(descriptors))
        parameters = self.descriptor.resolve(descriptors, self.config.seed, indices)
        return Tasks(descriptors, parameters, self._starts("start", indices))

    def test(self) -> Tasks:
        """The full grid over the box of the domain."""
        parameters = designs.grid(*bounds(self.config.domain.box), self.config.evaluation.grid)
        starts = self._starts("test-start", range(len(parameters)))
        return Tasks(self.descriptor.describe(parameters), parameters, starts)

    def unused(self, descriptors: Array, used: Array) -> Array:
        """The rows of `descriptors` [K, E] that are not in `used` [N, E]."""
        return descriptors[~(descriptors[:, None] == used).all(-1).any(-1)]

    @property
    def shows_images(self) -> bool:
        """Whether the learner sees images."""
        return isinstance(self.descriptor, ImageDescriptor)

    def image_set(self, descriptors: Array) -> ImageSet | None:
        """Images of all choices, and of tasks with these descriptors that are not choices (the oracle's).

        None if the learner sees no images.
        """
        if not isinstance(self.descriptor, ImageDescriptor) or self.choices is None:
            return None
        labels = np.concatenate([self.choices, self.unused(descriptors, self.choices)])
        images = self.descriptor.images(labels)
        if images.ndim != 3 or len(images) != len(labels) or not ((images >= 0.0) & (images <= 1.0)).all():
            raise UserError(
                f"descriptor.kind {self.config.descriptor.kind!r} should give {len(labels)} images [height, width] of "
                f"values from 0 to 1 for as many labels, but gave an array of shape {list(images.shape)}."
            )
        return ImageSet(images, labels)

    def _starts(self, purpose: str, indices: Sequence[int]) -> Array:
        return np.stack([self.domain.start(seeds.rng(self.config.seed, purpose, index)) for index in indices])

    def _choices(self) -> Array | None:
        """The finite set of descriptors to choose from, if there is one: the user's, or the descriptor's own."""
        rows, key = self.config.selection.choices, "selection.choices"
        if rows is None:
            if self.descriptor.choices is None:
                return None
            rows, key = self.descriptor.choices.tolist(), "descriptor.images"
        try:
            choices = np.unique(self.descriptor.check(np.array(rows)), axis=0)
        except UserError as error:
            raise UserError(f"{key} cannot be used: {error}") from error
        if len(choices) < self.size:
            raise UserError(
                f"{key} has {len(choices)} different descriptors, but initial={self.config.initial} and "
                f"rounds={self.config.rounds} with selection.batch={self.config.selection.batch} need {self.size}."
            )
        return choices


def _nearest(design: Array, choices: Array, width: Array) -> Array:
    """For every row of the design, the nearest choice that no earlier row has taken."""
    free = list(range(len(choices)))
    taken = []
    for row in design:
        distance = np.square((choices[free] - row) / width).sum(axis=1)
        taken.append(free.pop(int(distance.argmin())))
    return choices[taken]
