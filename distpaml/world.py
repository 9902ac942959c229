"""What all methods of a seed share: initial tasks, start states, the design of the baselines and the test tasks.

Nothing here depends on the method or on what was drawn before, so methods differ in their choices only.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from distpaml import designs, seeds
from distpaml.config import Experiment
from distpaml.descriptors import get_descriptor
from distpaml.domains import get_domain
from distpaml.domains.base import Array
from distpaml.errors import UserError

LARGEST_TEST = 10_000
"""Test tasks that a grid may have."""


@dataclass(frozen=True, eq=False)
class Tasks:
    """N tasks as the learner sees them, as they are, and where they start."""

    descriptors: Array  # [N, E]
    parameters: Array  # [N, P]
    starts: Array  # [N, S]

    def __len__(self) -> int:
        return len(self.parameters)

    def take(self, rows: slice) -> "Tasks":
        """Some of them."""
        return Tasks(self.descriptors[rows], self.parameters[rows], self.starts[rows])


class World:
    """The tasks of one experiment, by its config and seed."""

    def __init__(self, config: Experiment) -> None:
        self.config = config
        self.domain = get_domain(config.domain.name)(config.domain.reading)
        self.descriptor = get_descriptor(config.descriptor, config.domain.box)
        if config.evaluation.grid ** len(config.domain.box) > LARGEST_TEST:
            raise UserError(
                f"evaluation.grid={config.evaluation.grid} for each of {len(config.domain.box)} parameters makes more "
                f"than {LARGEST_TEST} test tasks; lower it."
            )
        self.size = config.initial + config.rounds * config.selection.batch
        self.choices = None if config.selection.choices is None else self._checked(config.selection.choices)
        low, high = self.descriptor.low, self.descriptor.high
        design = designs.design(low, high, self.size, config.seed)
        self.design = design if self.choices is None else _nearest(design, self.choices, high - low)  # [size, E]

    def initial(self) -> Tasks:
        """The first rows of the design."""
        return self.chosen(self.design[: self.config.initial], first=0)

    def chosen(self, descriptors: Array, first: int) -> Tasks:
        """Tasks first, first + 1, … of the experiment; what their descriptors hide is drawn by that number."""
        indices = range(first, first + len(descriptors))
        parameters = self.descriptor.resolve(descriptors, self.config.seed, indices)
        return Tasks(descriptors, parameters, self._starts("start", indices))

    def test(self) -> Tasks:
        """The full grid over the box of the domain."""
        parameters = designs.grid(*designs.bounds(self.config.domain.box), self.config.evaluation.grid)
        starts = self._starts("test-start", range(len(parameters)))
        return Tasks(self.descriptor.describe(parameters), parameters, starts)

    def unused(self, descriptors: Array, used: Array) -> Array:
        """Those rows of `descriptors` [K, E] that are not among `used` [N, E]: a chosen one leaves the set."""
        return descriptors[~(descriptors[:, None] == used).all(-1).any(-1)]

    def _starts(self, purpose: str, indices: Sequence[int]) -> Array:
        return np.stack([self.domain.start(seeds.rng(self.config.seed, purpose, index)) for index in indices])

    def _checked(self, rows: Sequence[Sequence[float]]) -> Array:
        try:
            choices = np.unique(self.descriptor.check(np.array(rows)), axis=0)
        except UserError as error:
            raise UserError(f"selection.choices cannot be used: {error}") from error
        if len(choices) < self.size:
            raise UserError(
                f"selection.choices has {len(choices)} different descriptors, but initial={self.config.initial} and "
                f"rounds={self.config.rounds} with selection.batch={self.config.selection.batch} need {self.size}."
            )
        return choices


def _nearest(design: Array, choices: Array, width: Array) -> Array:
    """For every row of the design the nearest choice that no earlier row has taken."""
    free = list(range(len(choices)))
    taken = []
    for row in design:
        distance = np.square((choices[free] - row) / width).sum(axis=1)
        taken.append(free.pop(int(distance.argmin())))
    return choices[taken]
