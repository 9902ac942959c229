"""Where inducing points and embeddings start.

Inducing points: greedy conditional variance, the pivots of a pivoted Cholesky factorisation of the kernel matrix of
all points (Burt, Rasmussen & van der Wilk 2020); memory O(points x L), never the full matrix.
Embeddings: the descriptors' principal components first, since alike descriptors mostly mean alike tasks; then
random ones, since local optima are real.
"""

import torch
from torch import Tensor


@torch.no_grad()
def greedy_variance(points: Tensor, size: int) -> Tensor:
    """Indices of `size` of the points [M, D], each the one with the largest variance given those before it."""
    size = min(size, len(points))
    remaining = points.new_ones(len(points))
    squares = 0.5 * points.square().sum(-1)
    factor = points.new_zeros(size, len(points))
    chosen: list[int] = []
    for step in range(size):
        pivot = int(remaining.argmax())
        chosen.append(pivot)
        column = (points @ points[pivot] - squares - squares[pivot]).exp()
        column -= factor[:step].T @ factor[:step, pivot]
        factor[step] = column / remaining[pivot].clamp(min=1e-10).sqrt()
        remaining = (remaining - factor[step].square()).clamp_(min=0.0)
        remaining[chosen] = -1.0
    return torch.tensor(chosen, device=points.device)


def descriptor_embedding(descriptors: Tensor, latent: int, generator: torch.Generator) -> Tensor:
    """Standardised principal components of the descriptors [N, latent]; dimensions beyond are small noise."""
    centred = descriptors - descriptors.mean(0)
    centred = centred / centred.square().mean(0).sqrt().clamp(min=1e-12)
    u, s, _ = torch.linalg.svd(centred, full_matrices=False)
    scores = u * s
    scores = scores / scores.square().mean(0).sqrt().clamp(min=1e-6)
    embedding = 0.1 * torch.randn(len(descriptors), latent, generator=generator, dtype=descriptors.dtype)
    kept = min(latent, int((s > 1e-9).sum()))
    embedding[:, :kept] += scores[:, :kept]
    return embedding
