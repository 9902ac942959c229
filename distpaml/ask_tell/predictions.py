"""What the model of an experiment says about a task: its latent, and where controls lead."""

from collections.abc import Sequence

import numpy as np

from distpaml.ask_tell.declaration import Declaration
from distpaml.ask_tell.forecasts import Inferred
from distpaml.ask_tell.models import as_dataset, threads
from distpaml.ask_tell.recordings import Recording
from distpaml.errors import UserError
from distpaml.model.meta_model import MetaModel
from distpaml.model.posterior import Latents
from distpaml.model.rollouts import rollout
from distpaml.select.candidates import descriptor_pool
from distpaml.types import Array

MOST_SAMPLES = 100_000
"""Rollouts of one forecast at most, so that they fit into the memory."""


def of_recording(model: MetaModel, recording: Recording, declaration: Declaration, encoded: Array | None) -> Latents:
    """q(h) from what was recorded, and from the numbers [E] of the descriptor if they are given."""
    row = np.zeros(model.descriptors.shape[1]) if encoded is None else encoded
    with threads(declaration.threads):
        return model.infer(as_dataset(recording, declaration, row), use_descriptors=encoded is not None)


def of_observed(model: MetaModel, row: int) -> Latents:
    """q(h) of a task that the model was fitted to."""
    return model.embeddings.take(slice(row, row + 1))


def of_latent(model: MetaModel, latent: Inferred) -> Latents:
    """q(h) that is known already."""
    like, size = model.embeddings.mean, model.embeddings.mean.shape[1]
    if latent.mean.shape != (size,):
        raise UserError(f"A latent has {size} dimensions here, not {latent.mean.size}.")
    return Latents(like.new_tensor(latent.mean)[None], like.new_tensor(latent.variance)[None])


def of_descriptor(model: MetaModel, encoded: Array) -> Latents:
    """q(h) that is expected from the numbers [E] of a descriptor."""
    ones, like = np.ones(len(encoded)), model.embeddings.mean
    found = descriptor_pool(model, -ones, ones, encoded[None])
    return Latents(like.new_tensor(found.mean), like.new_tensor(found.variance))


def trajectories(
    model: MetaModel, latents: Latents, start: Array, controls: Array, declaration: Declaration, samples: int
) -> Array:
    """Sampled states [S, T + 1, D] of one task, in the model's units."""
    if isinstance(samples, bool) or not isinstance(samples, int | np.integer) or not 1 <= samples <= MOST_SAMPLES:
        raise UserError(f"A forecast takes 1 to {MOST_SAMPLES} samples, not {samples!r}.")
    angles: Sequence[int] = declaration.angle_places
    with threads(declaration.threads):
        return rollout(model, start, controls, latents, angles, samples, declaration.seed)
