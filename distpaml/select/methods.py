"""The methods that are compared: how each begins and how it chooses.

paml       the paper's: a latent grid, filtered through the decoder, ranked by a utility
paml-set   descriptors that exist, mapped to latents, ranked by a utility
uni, lhs   uniform draws; the next rows of the Latin hypercube that the initial tasks come from
oracle     trained on the test tasks; it chooses nothing
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from distpaml import designs, seeds
from distpaml.data import Dataset
from distpaml.domains.base import Array
from distpaml.errors import UserError
from distpaml.model.meta_model import MetaModel
from distpaml.select.candidates import Candidates, descriptor_set, fine_set, image_set, latent_grid
from distpaml.select.utilities import Knowledge, get_utility
from distpaml.world import Tasks, World

LARGEST_GRID = 4_000_000
"""Candidates that a latent grid may have."""


class Best(NamedTuple):
    """The candidate with the highest utility, the first of them where several have it."""

    row: int
    utility: float


Rank = Callable[[Candidates, Knowledge], Best]


@dataclass(frozen=True)
class Counted:
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
    counted: Counted | None = None


class Method:
    """How an experiment begins and goes on."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.config = world.config
        self.rounds = world.config.rounds
        self.batch = world.config.selection.batch

    def initial(self) -> Tasks:
        """The tasks known before the first choice."""
        return self.world.initial()

    def choose(self, model: MetaModel, data: Dataset, rank: Rank) -> Selection:
        """The next tasks, given the model of all data so far."""
        raise NotImplementedError


class Uniform(Method):
    """Independent draws, from the box or among the user's choices that are left."""

    def choose(self, model: MetaModel, data: Dataset, rank: Rank) -> Selection:
        seed, indices = self.config.seed, range(len(data), len(data) + self.batch)
        if self.world.choices is not None:
            left = self.world.unused(self.world.choices, data.descriptors)
            draw = seeds.rng(seed, "uniform", len(data)).choice(len(left), self.batch, replace=False)
            return Selection(left[draw])
        low, high = self.world.descriptor.low, self.world.descriptor.high
        return Selection(np.stack([designs.uniform_choice(low, high, seed, index) for index in indices]))


class LatinHypercube(Method):
    """On along the design."""

    def choose(self, model: MetaModel, data: Dataset, rank: Rank) -> Selection:
        return Selection(self.world.design[len(data) : len(data) + self.batch])


class Oracle(Method):
    """The test tasks themselves: what the model can do at best."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.rounds = 0

    def initial(self) -> Tasks:
        return self.world.test()


class Active(Method):
    """The candidates of the highest utility, one after the other; those chosen already count as observed."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        selection = self.config.selection
        self.kind: str = selection.candidates or ("latent-grid" if self.config.method == "paml" else "descriptor-set")
        if world.shows_images:
            if selection.candidates is not None:
                raise UserError(
                    f"selection.candidates is {selection.candidates!r}, but descriptors are images: leave it out, and "
                    "the images that are left are the candidates."
                )
            self.kind = "images"
        get_utility(selection.utility)
        size = selection.per_dimension**self.config.model.latent
        if self.kind == "latent-grid" and not selection.batch <= size <= LARGEST_GRID:
            raise UserError(
                f"selection.per_dimension={selection.per_dimension} to the power of model.latent="
                f"{self.config.model.latent} should be from selection.batch={selection.batch} to {LARGEST_GRID} "
                "candidates; or say selection.candidates=descriptor-set."
            )
        if self.kind == "latent-grid" and world.choices is not None:
            raise UserError(
                "selection.choices is a set of descriptors, but a latent grid makes its own; "
                "say method=paml-set or selection.candidates=descriptor-set."
            )

    def choose(self, model: MetaModel, data: Dataset, rank: Rank) -> Selection:
        candidates = self.candidates(model, data)
        known = Knowledge.of(model, data, candidates.mean)
        left, chosen = candidates, []
        for _ in range(self.batch):
            best = rank(left, known)
            chosen.append((left.descriptors[best.row], left.mean[best.row], best.utility))
            known = known.observing(left.mean[best.row])
            left = left.take(np.arange(len(left)) != best.row)
        descriptors, latents, utilities = (np.stack(part) for part in zip(*chosen, strict=True))
        counted = Counted(len(candidates), candidates.total, candidates.fallback)
        return Selection(descriptors, latents, utilities, counted)

    def candidates(self, model: MetaModel, data: Dataset) -> Candidates:
        """Those that `selection.candidates` asks for."""
        selection, (low, high) = self.config.selection, (self.world.descriptor.low, self.world.descriptor.high)
        if self.kind == "images" and self.world.choices is not None:
            return image_set(model, self.world.unused(self.world.choices, data.descriptors))
        if self.kind == "latent-grid":
            return latent_grid(model, low, high, selection.per_dimension, selection.slack, least=self.batch)
        everything = self.world.choices
        if everything is None:
            size = max(selection.set_size, self.world.size)
            everything = fine_set(low, high, size, seeds.rng(self.config.seed, "candidates"))
        return descriptor_set(model, low, high, self.world.unused(everything, data.descriptors))


METHODS: dict[str, type[Method]] = {
    "paml": Active,
    "paml-set": Active,
    "uni": Uniform,
    "lhs": LatinHypercube,
    "oracle": Oracle,
}


NOT_FOR_IMAGES = {
    "lhs": "a Latin hypercube needs parameters, which are not shown; take paml, uni or oracle",
    "paml-set": "'paml' itself ranks the images that exist; say method=paml",
}
"""Methods that make no sense where descriptors are images, and why."""


def get_method(world: World) -> Method:
    """The method that the world's config names."""
    name = world.config.method
    if world.shows_images and name in NOT_FOR_IMAGES:
        raise UserError(f"method is {name!r}, but descriptors are images: {NOT_FOR_IMAGES[name]}.")
    return METHODS[world.config.method](world)
