"""A finished round as numbers, a table and a plot."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from distpaml.config import ExperimentConfig
from distpaml.config.load import leaves
from distpaml.descriptors import get_descriptor
from distpaml.rounds import Record


@dataclass(frozen=True, eq=False)
class Shown:
    """The newest of the finished rounds of an experiment."""

    config: ExperimentConfig
    records: tuple[Record, ...]
    image: np.ndarray | None  # [height, width, 3] of bytes
    model: Path | None
    """The file of the model, after the last round."""

    @property
    def record(self) -> Record:
        return self.records[-1]

    def numbers(self) -> dict[str, float]:
        """Every number of the record, by its path: `rmse`, `terms/elbo`, `shots/5/nll`, `seconds/fit`."""
        found = leaves(self.record.model_dump(exclude={"added"}))
        return {path.replace(".", "/"): value for path, value in found if isinstance(value, int | float)}

    def choices(self) -> tuple[list[str], list[list[Any]]]:
        """Columns and rows of all tasks so far: true parameters, what else the learner saw, latent, utility."""
        domain, latents = self.config.domain, self.config.model.latent
        names = get_descriptor(self.config.descriptor, domain.box).names
        others = [e for e, name in enumerate(names) if name not in domain.box]
        columns = ["round", "task", *domain.box, *(names[e] for e in others)]
        columns += [*(f"h{q + 1}" for q in range(latents)), "utility", "repeats"]
        rows: list[list[Any]] = []
        for record in self.records:
            for added in record.added:
                latent = added.latent or (None,) * latents
                more = (added.descriptor[e] for e in others)
                rows.append([record.round, len(rows), *added.task, *more, *latent, added.utility, added.repeats])
        return columns, rows
