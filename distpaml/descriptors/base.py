"""What the learner sees of a task, and what task a chosen descriptor becomes.

    describe   task [P] → descriptor [E]     a known task (a test task, the oracle's) as the learner sees it
    resolve    descriptor [E] → task [P]     a choice of the learner as a task to simulate

The learner never sees a task. Descriptors here are points of a box; others may be rows of any finite set: they override
`check`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np

from distpaml.config import DescriptorConfig
from distpaml.domains.box import bounds
from distpaml.errors import UserError
from distpaml.types import Array


class Descriptor(ABC):
    """Made from the descriptor's config and the box of the domain's P parameters."""

    choices: Array | None = None
    """All descriptors [K, E], if they are a finite set and not a box."""

    def __init__(self, config: DescriptorConfig, box: Mapping[str, tuple[float, float]]) -> None:
        self.config = config
        self.task_box = dict(box)
        self.box = self.shown()
        self.names = tuple(self.box)
        self.low, self.high = bounds(self.box)  # [E], [E]

    @abstractmethod
    def shown(self) -> dict[str, tuple[float, float]]:
        """The box of descriptors: E names, each with its interval."""

    @abstractmethod
    def describe(self, tasks: Array) -> Array:
        """Descriptors [N, E] of known tasks [N, P]."""

    @abstractmethod
    def resolve(self, descriptors: Array, seed: int, indices: Sequence[int]) -> Array:
        """Tasks [N, P] of chosen descriptors [N, E]; hidden parameters are drawn by (seed, task index)."""

    def check(self, descriptors: Array) -> Array:
        """The descriptors [N, E] as floats; raises if one cannot be chosen, and says why."""
        rows = np.asarray(descriptors, dtype=float)
        if rows.ndim != 2 or rows.shape[1] != len(self.names):
            raise UserError(
                f"Descriptors of shape {rows.shape} should be rows of {len(self.names)} numbers: "
                f"{', '.join(self.names)}."
            )
        inside = (rows >= self.low) & (rows <= self.high)  # False for nan
        if not inside.all():
            row, column = np.argwhere(~inside)[0]
            raise UserError(
                f"Descriptor {row} has {self.names[column]} = {rows[row, column]:g}, which is outside "
                f"[{self.low[column]:g}, {self.high[column]:g}]."
            )
        return rows
