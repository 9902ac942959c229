"""How each method starts and how it chooses the next tasks.

A method is a class marked with `@implements` and an entry of the same name in `distpaml.catalogue`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from distpaml import seeds
from distpaml.catalogue import DEFAULT, METHODS, planned_rounds
from distpaml.data import Dataset, designs
from distpaml.data.tasks import Tasks, TaskSet
from distpaml.errors import UserError
from distpaml.model.meta_model import MetaModel
from distpaml.select.candidates import Candidates, Place, fine_pool, latent_grid, placing
from distpaml.select.context import SelectionContext
from distpaml.select.references import reference_descriptors
from distpaml.select.repeats import near_repeats
from distpaml.select.scoring import Best
from distpaml.select.utilities import get_utility
from distpaml.types import Array

LARGEST_GRID = 4_000_000
"""Most candidates in a latent grid."""

Rank = Callable[[Candidates, SelectionContext], Best]


@dataclass(frozen=True)
class CandidateCounts:
    """How many candidates there were, and the fallback that produced them, if one was needed."""

    valid: int
    total: int
    fallback: str | None


@dataclass(frozen=True, eq=False)
class Selection:
    """The B tasks of a round; latents, utilities and counts only if candidates were ranked."""

    descriptors: Array  # [B, E]
    latents: Array | None = None  # [B, Q]
    variances: Array | None = None  # [B, Q], of the latents; None where they are points of latent space
    utilities: Array | None = None  # [B]
    counts: CandidateCounts | None = None
    repeats: tuple[int | None, ...] | None = None  # [B], numbers of the known tasks that are nearly repeated


class Method:
    """How an experiment starts and continues."""

    not_for_images = ""
    """Why the method cannot be used with image descriptors, if it cannot."""

    def __init__(self, task_set: TaskSet) -> None:
        self.task_set = task_set
        self.config = task_set.config
        self.rounds = planned_rounds(self.config.method, self.config.rounds)
        self.batch = self.config.selection.batch
        self.references = reference_descriptors(task_set)  # [R, E]

    def initial(self) -> Tasks:
        """The tasks known before the first choice."""
        return self.task_set.initial()

    def choose(self, model: MetaModel, data: Dataset, rank: Rank) -> Selection:
        """The next tasks, given the model of all data so far; those that nearly repeat a known one are marked."""
        selection, shown = self.select(model, data, rank), self.task_set.descriptor
        repeats = near_repeats(selection.descriptors, data.descriptors, shown.low, shown.high)
        return replace(selection, repeats=repeats)

    def select(self, model: MetaModel, data: Dataset, rank: Rank) -> Selection:
        """What `choose` marks."""
        raise NotImplementedError


CLASSES: dict[str, type[Method]] = {}
"""The class of every method in `distpaml.catalogue.METHODS`."""


def implements(name: str) -> Callable[[type[Method]], type[Method]]:
    """Make a class the one of method `name`."""

    def register(cls: type[Method]) -> type[Method]:
        CLASSES[METHODS[name].name] = cls
        return cls

    return register


@implements("uni")
class Uniform(Method):
    """Independent draws, from the box or from the user's choices that are left."""

    def select(self, model: MetaModel, data: Dataset, rank: Rank) -> Selection:
        seed, indices = self.config.seed, range(len(data), len(data) + self.batch)
        if self.task_set.choices is not None:
            left = self.task_set.unused(self.task_set.choices, data.descriptors)
            draw = seeds.rng(seed, "uniform", len(data)).choice(len(left), self.batch, replace=False)
            return Selection(left[draw])
        low, high = self.task_set.descriptor.low, self.task_set.descriptor.high
        return Selection(np.stack([designs.uniform_choice(low, high, seed, index) for index in indices]))


@implements("lhs")
class LatinHypercube(Method):
    """The next rows of the Latin hypercube whose first rows are the initial tasks."""

    not_for_images = "a Latin hypercube needs parameters, which are not shown; take any other method"

    def select(self, model: MetaModel, data: Dataset, rank: Rank) -> Selection:
        return Selection(self.task_set.design[len(data) : len(data) + self.batch])


@implements("oracle")
class Oracle(Method):
    """Trains on the test tasks themselves: the best that the model can do."""

    def initial(self) -> Tasks:
        return self.task_set.test()


@implements("paml")
class Paml(Method):
    """The paper's: a latent grid, filtered through the decoder, ranked by a utility.

    A batch is chosen greedily: tasks chosen so far count as observed for the next one.
    """

    default_candidates = "latent-grid"

    def __init__(self, task_set: TaskSet) -> None:
        super().__init__(task_set)
        selection = self.config.selection
        self.kind: str = selection.candidates or self.default_candidates
        if task_set.shows_images:
            if selection.candidates is not None:
                raise UserError(
                    f"selection.candidates is {selection.candidates!r}, but descriptors are images; drop the key: the "
                    "candidates are the images that are left."
                )
            if selection.utility == "descriptor_maximin":
                raise UserError(
                    "selection.utility is 'descriptor_maximin', but descriptors are images, whose distances say "
                    "little; take latent_maximin."
                )
            self.kind = "image-pool"
        get_utility(self.config.utility)
        size = selection.per_dimension**self.config.model.latent
        if self.kind == "latent-grid" and not selection.batch <= size <= LARGEST_GRID:
            raise UserError(
                f"selection.per_dimension={selection.per_dimension} to the power of model.latent="
                f"{self.config.model.latent} should be from selection.batch={selection.batch} to {LARGEST_GRID} "
                "candidates; or set selection.candidates=descriptor-pool."
            )
        if self.kind == "latent-grid" and task_set.choices is not None:
            raise UserError(
                "selection.choices lists descriptors, but a latent grid makes its own; "
                f"set method={DEFAULT.name} or selection.candidates=descriptor-pool."
            )

    def select(self, model: MetaModel, data: Dataset, rank: Rank) -> Selection:
        low, high = self.task_set.descriptor.low, self.task_set.descriptor.high
        place = placing(model, low, high)
        candidates = self.candidates(model, data, place)
        context = SelectionContext.of(model, data, place(self.references), low, high)
        left, chosen = candidates, []
        for _ in range(self.batch):
            best = rank(left, context)
            chosen.append((left.descriptors[best.row], left.mean[best.row], left.variance[best.row], best.utility))
            context = context.observing(left.take(slice(best.row, best.row + 1)))
            left = left.take(np.arange(len(left)) != best.row)
        descriptors, latents, variances, utilities = (np.stack(part) for part in zip(*chosen, strict=True))
        counts = CandidateCounts(len(candidates), candidates.total, candidates.fallback)
        return Selection(descriptors, latents, variances if variances.any() else None, utilities, counts)

    def candidates(self, model: MetaModel, data: Dataset, place: Place) -> Candidates:
        """The candidates of `self.kind`; `place` says where in latent space a descriptor lies."""
        selection, (low, high) = self.config.selection, (self.task_set.descriptor.low, self.task_set.descriptor.high)
        if self.kind == "latent-grid":
            return latent_grid(model, low, high, selection.per_dimension, selection.slack, least=self.batch)
        everything = self.task_set.choices
        if everything is None:
            size = max(selection.pool_size, self.task_set.size)
            everything = fine_pool(low, high, size, seeds.rng(self.config.seed, "candidates"))
        return place(self.task_set.unused(everything, data.descriptors))


@implements("paml-pool")
class PamlPool(Paml):
    """Real descriptors, mapped to latents by a GP, ranked by a utility; of images, which exist, both do the same."""

    default_candidates = "descriptor-pool"


@implements("paml-plus")
class PamlPlus(PamlPool):
    """As `paml-pool`, with another utility: see `distpaml.catalogue`."""


def get_method(task_set: TaskSet) -> Method:
    """The method that the config names."""
    name = task_set.config.method
    if task_set.shows_images and CLASSES[name].not_for_images:
        raise UserError(f"method is {name!r}, but descriptors are images: {CLASSES[name].not_for_images}.")
    return CLASSES[name](task_set)
