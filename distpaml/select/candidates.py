"""Candidates for the next task: descriptors with their latents.

`latent_grid`      the paper's: a grid in latent space around the embeddings, decoded; kept if the descriptor is valid
`descriptor_pool`  the other way round: real descriptors, mapped to latents
`image_pool`       images not chosen yet, encoded by the model's network
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import ceil, log2

import numpy as np
import torch
from scipy.stats import qmc

from distpaml.data.designs import grid
from distpaml.model.meta_model import MetaModel
from distpaml.select.encoder import Encoder
from distpaml.types import Array

HALVINGS = 6
"""How often an empty grid's slack is halved before descriptors are clipped."""
DECODED_AT_ONCE = 10_000
EDGE = 0.1
"""How much wider than the box its fine set is before it is clipped: in two dimensions 31 % of it lie on the edges."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """K candidates, and how they came about."""

    descriptors: Array  # [K, E]
    mean: Array  # [K, Q], of the latent
    variance: Array  # [K, Q], zero where the latent is known
    total: int
    """Candidates before invalid ones were dropped."""
    fallback: str | None = None
    """What was needed to find any, in words."""
    encoder: Encoder | None = None
    """The GP that foresees their latents, if one does; it knows how these go together."""

    @classmethod
    def at(cls, latents: Array) -> "Candidates":
        """Points of latent space [K, Q], without descriptors."""
        return cls(latents[:, :0], latents, np.zeros_like(latents), len(latents))

    def __len__(self) -> int:
        return len(self.mean)

    def take(self, rows: Array | slice) -> "Candidates":
        """The candidates in these rows."""
        return replace(self, descriptors=self.descriptors[rows], mean=self.mean[rows], variance=self.variance[rows])


def latent_grid(
    model: MetaModel, low: Array, high: Array, per_dimension: int, slack: float, least: int = 1
) -> Candidates:
    """`per_dimension` points per latent dimension over [min − slack, max + slack] of the embeddings' means.

    Points whose decoded descriptor lies in the box [low, high] are kept. If fewer than `least` are left, the slack is
    halved up to six times, which makes the grid finer around the embeddings. If that does not help, all points of the
    finest grid are kept and their descriptors clipped to the box.
    """
    means = model.embeddings.mean.double().numpy()
    size = per_dimension ** means.shape[1]
    for halving in range(HALVINGS + 1):
        reach = slack / 2**halving
        corners = means.min(axis=0) - reach, means.max(axis=0) + reach
        kept = []
        for rows in _parts(size):  # hold only what is kept, never the whole grid
            points = grid(*corners, per_dimension, rows)
            decoded = _decoded(model, points)
            inside = ((decoded >= low) & (decoded <= high)).all(axis=1)
            kept.append((decoded[inside], points[inside]))
        descriptors, points = (np.concatenate(column) for column in zip(*kept, strict=True))
        if len(points) >= least:
            fallback = f"slack narrowed to {reach:g}" if halving else None
            return Candidates(descriptors, points, np.zeros_like(points), size, fallback)
    points = grid(*corners, per_dimension)
    decoded = np.concatenate([_decoded(model, points[rows.start : rows.stop]) for rows in _parts(size)])
    clipped = np.clip(decoded, low, high)
    return Candidates(clipped, points, np.zeros_like(points), size, "descriptors clipped to the box")


Place = Callable[[Array], Candidates]
"""Descriptors [K, E] → candidates with these descriptors."""


def placing(model: MetaModel, low: Array, high: Array) -> Place:
    """Where the model puts tasks by their descriptors: images by its network, all others by a GP, fitted once."""
    if model.image_vae is not None:
        return partial(image_pool, model)
    embedding, spread = model.embeddings.mean.double().numpy(), model.embeddings.variance.double().numpy()
    encoder = Encoder.fit(model.descriptors.double().numpy(), embedding, spread, low, high)

    def place(descriptors: Array) -> Candidates:
        return Candidates(descriptors, *encoder.encode(descriptors), len(descriptors), encoder=encoder)

    return place


def descriptor_pool(model: MetaModel, low: Array, high: Array, descriptors: Array) -> Candidates:
    """Candidates with these descriptors [K, E], at the latents where the model puts them."""
    return placing(model, low, high)(descriptors)


def image_pool(model: MetaModel, labels: Array) -> Candidates:
    """Candidates whose images have these labels [K, E], at the means of their encodings."""
    vae = model.image_vae
    assert vae is not None
    with torch.no_grad():
        means = vae.encoded().mean[vae.rows(torch.as_tensor(labels).to(vae.labels))]
    mean = means.double().numpy().copy()
    return Candidates(labels, mean, np.zeros_like(mean), len(vae))


def fine_pool(low: Array, high: Array, size: int, rng: np.random.Generator) -> Array:
    """A low-discrepancy set [size, E] over the box, its faces and corners: a clipped scrambled Sobol sequence.

    The sequence fills a box that is wider by `EDGE` on every side. The worst errors are at the edges of a family.
    """
    points = qmc.Sobol(len(low), rng=rng).random_base2(ceil(log2(size)))[:size]
    return np.clip(low + (high - low) * ((1.0 + 2.0 * EDGE) * points - EDGE), low, high)


def _parts(size: int) -> list[range]:
    return [range(i, min(i + DECODED_AT_ONCE, size)) for i in range(0, size, DECODED_AT_ONCE)]


def _decoded(model: MetaModel, points: Array) -> Array:
    return model.decode(points)[0].astype(float)
