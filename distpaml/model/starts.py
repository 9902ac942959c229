"""Where a fit may start: the last model, the last model with closed latent dimensions opened, and from scratch.

Two tasks, or three on a line, are explained by one latent dimension, and automatic relevance determination closes the
others: their length-scales grow until the gradient vanishes. A model that is only ever continued never opens them
again, however many tasks follow. So a fit from scratch and the last model with every closed dimension opened compete
with the last model in every round.
"""

from copy import deepcopy
from dataclasses import dataclass

import torch
from torch import Tensor

from distpaml.model.device import normal
from distpaml.model.latent_gp import LatentGP, TrainingSet
from distpaml.model.placement import descriptor_embedding, principal_components

CLOSED = 0.05
"""A latent dimension is closed if the embeddings spread over less than this part of the widest, in length-scales."""


@dataclass
class Start:
    """An unfitted model and where it comes from."""

    name: str
    gp: LatentGP


def starts(
    data: TrainingSet, last: LatentGP | None, task_noise: bool, restarts: int, seed: int
) -> tuple[list[Start], list[Start]]:
    """Those with a known kernel, `last` and `opened`, and fresh ones: `scratch`, in the first fit with `restarts` - 1
    random embeddings beside it."""
    generator = torch.Generator().manual_seed(seed + 1)  # the decoder's base samples are drawn with `seed`
    latent = data.base.shape[-1]

    def fresh(embedding: Tensor) -> LatentGP:
        return LatentGP(data.x.shape[-1], data.y.shape[-1], embedding, data.descriptors, task_noise)

    scratch = Start("scratch", fresh(descriptor_embedding(data.descriptors, latent, generator)))
    if last is None:
        drawn = (normal(len(data.x), latent, like=data.x, generator=generator) for _ in range(restarts - 1))
        return [], [scratch, *(Start(f"random-{k}", fresh(embedding)) for k, embedding in enumerate(drawn, start=1))]
    opened = open_dimensions(last, data.descriptors, generator)
    return [Start("last", last), *([] if opened is None else [Start("opened", opened)])], [scratch]


@torch.no_grad()
def open_dimensions(gp: LatentGP, descriptors: Tensor, generator: torch.Generator) -> LatentGP | None:
    """A copy in which closed latent dimensions have a new length-scale and show what the others leave unexplained of
    the descriptors; None if there are none."""
    spread = gp.mean.std(0, correction=0) * gp.values.rate_h  # [Q]
    closed = spread < CLOSED * spread.max()
    if not closed.any():
        return None
    opened, count = deepcopy(gp), int(closed.sum())
    explained = torch.cat([torch.ones_like(gp.mean[:, :1]), gp.mean[:, ~closed]], -1)
    # not the default driver: torch leaves its pivots uninitialised, so that the same input gives other bits at times;
    # a GPU does not have this one
    line = torch.linalg.lstsq(explained.cpu(), descriptors.cpu(), driver="gelsd").solution.to(explained.device)
    residual = descriptors - explained @ line
    opened.mean[:, closed] = principal_components(residual, descriptors.std(0, correction=0), count, generator)
    opened.log_variance[:, closed] = -12.0
    opened.kernel.base_kernel.raw_lengthscale[0, -len(closed) :][closed] = LatentGP.LATENT_SCALE
    opened.decoder.open_dimensions(closed)
    return opened
