"""The methods that are compared: how each begins and how it chooses.

paml        the paper's: a latent grid, filtered through the decoder, ranked by a utility
paml-pool   descriptors that exist, mapped to latents, ranked by a utility
uni, lhs    uniform draws; the next rows of the Latin hypercube that the initial tasks come from
oracle      trained on the test tasks; it chooses nothing
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from distpaml import seeds
from distpaml.data import Dataset, designs
from distpaml.data.tasks import Tasks, TaskSet
from distpaml.errors import UserError
from distpaml.model.meta_model import MetaModel
from distpaml.select.candidates import Candidates, descriptor_pool, fine_pool, image_pool, latent_grid
from distpaml.select.utilities import SelectionContext, get_utility
from distpaml.types import Array

LARGEST_GRID = 4_000_000
"""Candidates that a latent grid may have."""


class Best(NamedTuple):
    """The candidate with the highest utility, the first of them where several have it."""

    row: int
    utility: float


Rank = Callable[[Candidates, SelectionContext], Best]


@dataclass(frozen=True)
class CandidateCounts:
    """How many candidates there were, and what had to be done to have any."""

    valid: int
    total: int
    fallback: str | None


@dataclass(frozen=True, eq=False)
class Selection:
    """The B tasks of a round; latents, utilities and counts only where candidates were ranked."""

    descriptors: Array  # [B, E]
    latents: Array | None = None  # [B, Q]
    utilities: Array | None = None  # [B]
    counts: CandidateCounts | None = None


class Method:
    """How an experiment begins and goes on."""

    def __init__(self, task_set: TaskSet) -> None:
        self.task_set = task_set
        self.config = task_set.config
        self.rounds = task_set.config.rounds
        self.batch = task_set.config.selection.batch

    def initial(self) -> Tasks:
        """The tasks known before the first choice."""
        return self.task_set.initial()

    def choose(self, model: MetaModel, data: Dataset, rank: Rank) -> Selection:
        """The next tasks, given the model of all data so far."""
        raise NotImplementedError


class Uniform(Method):
    """Independent draws, from the box or among the user's choices that are left."""

    def choose(self, model: MetaModel, data: Dataset, rank: Rank) -> Selection:
        seed, indices = self.config.seed, range(len(data), len(data) + self.batch)
        if self.task_set.choices is not None:
            left = self.task_set.unused(self.task_set.choices, data.descriptors)
            draw = seeds.rng(seed, "uniform", len(data)).choice(len(left), self.batch, replace=False)
            return Selection(left[draw])
        low, high = self.task_set.descriptor.low, self.task_set.descriptor.high
        return Selection(np.stack([designs.uniform_choice(low, high, seed, index) for index in indices]))


class LatinHypercube(Method):
    """On along the design."""

    def choose(self, model: MetaModel, data: Dataset, rank: Rank) -> Selection:
        return Selection(self.task_set.design[len(data) : len(data) + self.batch])


class Oracle(Method):
    """The test tasks themselves: what the model can do at best."""

    def __init__(self, task_set: TaskSet) -> None:
        super().__init__(task_set)
        self.rounds = 0

    def initial(self) -> Tasks:
        return self.task_set.test()


class Active(Method):
    """The candidates of the highest utility, one after the other; those chosen already count as observed."""

    def __init__(self, task_set: TaskSet) -> None:
        super().__init__(task_set)
        selection = self.config.selection
        self.kind: str = selection.candidates or ("latent-grid" if self.config.method == "paml" else "descriptor-pool")
        if task_set.shows_images:
            if selection.candidates is not None:
                raise UserError(
                    f"selection.candidates is {selection.candidates!r}, but descriptors are images: leave it out, and "
                    "the images that are left are the candidates."
                )
            self.kind = "image-pool"
        get_utility(selection.utility)
        size = selection.per_dimension**self.config.model.latent
        if self.kind == "latent-grid" and not selection.batch <= size <= LARGEST_GRID:
            raise UserError(
                f"selection.per_dimension={selection.per_dimension} to the power of model.latent="
                f"{self.config.model.latent} should be from selection.batch={selection.batch} to {LARGEST_GRID} "
                "candidates; or say selection.candidates=descriptor-pool."
            )
        if self.kind == "latent-grid" and task_set.choices is not None:
            raise UserError(
                "selection.choices is a set of descriptors, but a latent grid makes its own; "
                "say method=paml-pool or selection.candidates=descriptor-pool."
            )

    def choose(self, model: MetaModel, data: Dataset, rank: Rank) -> Selection:
        candidates = self.candidates(model, data)
        context = SelectionContext.of(model, data, candidates.mean)
        left, chosen = candidates, []
        for _ in range(self.batch):
            best = rank(left, context)
            chosen.append((left.descriptors[best.row], left.mean[best.row], best.utility))
            context = context.observing(left.mean[best.row])
            left = left.take(np.arange(len(left)) != best.row)
        descriptors, latents, utilities = (np.stack(part) for part in zip(*chosen, strict=True))
        counts = CandidateCounts(len(candidates), candidates.total, candidates.fallback)
        return Selection(descriptors, latents, utilities, counts)

    def candidates(self, model: MetaModel, data: Dataset) -> Candidates:
        """Those that `selection.candidates` asks for."""
        selection, (low, high) = self.config.selection, (self.task_set.descriptor.low, self.task_set.descriptor.high)
        if self.kind == "image-pool" and self.task_set.choices is not None:
            return image_pool(model, self.task_set.unused(self.task_set.choices, data.descriptors))
        if self.kind == "latent-grid":
            return latent_grid(model, low, high, selection.per_dimension, selection.slack, least=self.batch)
        everything = self.task_set.choices
        if everything is None:
            size = max(selection.pool_size, self.task_set.size)
            everything = fine_pool(low, high, size, seeds.rng(self.config.seed, "candidates"))
        return descriptor_pool(model, low, high, self.task_set.unused(everything, data.descriptors))


METHODS: dict[str, type[Method]] = {
    "paml": Active,
    "paml-pool": Active,
    "uni": Uniform,
    "lhs": LatinHypercube,
    "oracle": Oracle,
}


NOT_FOR_IMAGES = {
    "lhs": "a Latin hypercube needs parameters, which are not shown; take paml, uni or oracle",
    "paml-pool": "'paml' itself ranks the images that exist; say method=paml",
}
"""Methods that make no sense where descriptors are images, and why."""


def get_method(task_set: TaskSet) -> Method:
    """The method that the config names."""
    name = task_set.config.method
    if task_set.shows_images and name in NOT_FOR_IMAGES:
        raise UserError(f"method is {name!r}, but descriptors are images: {NOT_FOR_IMAGES[name]}.")
    return METHODS[task_set.config.method](task_set)
