"""Where inducing points and embeddings start.

Inducing points: greedy conditional variance, the pivots of a pivoted Cholesky factorisation of the kernel matrix of
all points (Burt, Rasmussen & van der Wilk 2020); memory O(points x L), never the full matrix. A point of a task with
noise ratio r counts by 1 / r, since the bound pays (variance left) / (2 r sigma_d^2) for it.
Embeddings: the descriptors' principal components first, since alike descriptors mostly mean alike tasks; then
random ones, since local optima are real.
"""

import torch
from torch import Tensor

from distpaml.model.device import normal


@torch.no_grad()
def greedy_variance(points: Tensor, weights: Tensor, size: int, enough: float = 0.0) -> Tensor:
    """Indices of at most `size` of the points [M, D], each the one with the largest variance given those before it.

    Variances count by their weights [M]. Ends early when what is left of them is below `enough`, averaged over the
    points; the kernel's variance is 1.
    """
    size = min(size, len(points))
    remaining = points.new_ones(len(points))
    squares = 0.5 * points.square().sum(-1)
    factor = points.new_zeros(size, len(points))
    chosen = torch.empty(size, dtype=torch.long, device=points.device)
    for step in range(size):
        pivot = int((weights * remaining).argmax())
        chosen[step] = pivot
        column = (points @ points[pivot] - squares - squares[pivot]).exp()
        column -= factor[:step].T @ factor[:step, pivot]
        factor[step] = column / remaining[pivot].clamp(min=1e-10).sqrt()
        remaining = (remaining - factor[step].square()).clamp_(min=0.0)
        if (weights * remaining).mean() < enough:
            return chosen[: step + 1]
        remaining[chosen[: step + 1]] = -1.0
    return chosen


def descriptor_embedding(descriptors: Tensor, latent: int, generator: torch.Generator) -> Tensor:
    """Standardised principal components of the descriptors [N, latent]; dimensions beyond are small noise."""
    return principal_components(descriptors, descriptors.std(0, correction=0), latent, generator)


def principal_components(values: Tensor, scale: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """The first components [N, count] of values [N, E] in units of `scale` [E], each of variance 1, and some noise.

    Where values have fewer components there is only the noise. Found on the CPU: elsewhere signs may be others.
    """
    centred = ((values - values.mean(0)) / scale.clamp(min=1e-12)).cpu()
    u, s, _ = torch.linalg.svd(centred, full_matrices=False)
    scores = u * s
    scores = scores / scores.square().mean(0).sqrt().clamp(min=1e-6)
    components = 0.1 * normal(len(values), count, like=centred, generator=generator)
    kept = min(count, int((s > 1e-9).sum()))
    components[:, :kept] += scores[:, :kept]
    return components.to(values.device)
