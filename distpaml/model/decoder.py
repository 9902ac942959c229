"""From latents to descriptors: the decoder p(Psi | H) of the paper, a zero-mean GP on raw descriptors.

    psi^e ~ N(0, a_e (K_h + nu_e I)),     K_h the ARD-RBF between latents [N, N], one amplitude and noise per output

Its term of the bound, E_q(H)[log p(Psi | H)], is averaged over base samples that stay fixed during a fit, so that
the bound is deterministic.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn

from distpaml.model.collapsed import safe_cholesky
from distpaml.model.expectations import rbf


class DescriptorModel(nn.Module):
    """p(Psi | H), whatever kind of model that is."""

    def expected_log_density(self, mean: Tensor, variance: Tensor, descriptors: Tensor, base: Tensor) -> Tensor:
        """E[log p(Psi | H)] over H = mean + sqrt(variance) base, with base [S, N, Q] and descriptors [N, E]."""
        raise NotImplementedError

    def predict(self, h: Tensor, mean: Tensor, descriptors: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance [K, E] of what is seen at h [K, Q], given the descriptors [N, E] at `mean` [N, Q]."""
        raise NotImplementedError

    def conditional(self, h: Tensor, mean: Tensor, descriptors: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Mean and variance [K, E] as in `predict`, and their derivatives in h [K, E, Q]."""
        raise NotImplementedError

    def open_dimensions(self, closed: Tensor) -> None:
        """Forget what was learned along the latent dimensions `closed` [Q], a mask."""
        raise NotImplementedError


class _LogDensity(torch.autograd.Function):
    """(covariance K [..., N, N], constants v [..., N]) -> log N(v; 0, K) [...]; dK = (K^-1 v v' K^-1 - K^-1) / 2."""

    @staticmethod
    def forward(ctx: Any, covariance: Tensor, values: Tensor) -> Tensor:
        factor = safe_cholesky(covariance, "The decoder's covariance")
        values = values.expand(factor.shape[:-1]).unsqueeze(-1)
        solved = torch.cholesky_solve(values, factor)
        ctx.save_for_backward(factor, solved)
        log_det = 2.0 * factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return -0.5 * ((values * solved).sum((-2, -1)) + log_det + values.shape[-2] * math.log(2.0 * math.pi))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        factor, solved = ctx.saved_tensors
        return 0.5 * grads[0][..., None, None] * (solved @ solved.mT - torch.cholesky_inverse(factor)), None


class Decoder(DescriptorModel):
    """A GP from latents [N, Q] to descriptors [N, E]."""

    SCALE = 0.5
    """Logarithm of the length-scales that a new decoder has."""

    def __init__(self, latent: int, descriptors: Tensor) -> None:
        super().__init__()
        size = descriptors.square().mean(0).clamp(min=1e-12)
        self.log_lengthscale = nn.Parameter(descriptors.new_full((latent,), self.SCALE))
        self.log_amplitude = nn.Parameter(size.log())
        self.log_noise = nn.Parameter(torch.full_like(size, -4.0))

    @torch.no_grad()
    def open_dimensions(self, closed: Tensor) -> None:
        """Forget the length-scales of the latent dimensions `closed` [Q], a mask."""
        self.log_lengthscale[closed] = self.SCALE

    def covariance(self, h: Tensor) -> Tensor:
        """Covariances of the descriptors of latents [..., N, Q]: [..., E, N, N]."""
        scaled = h / self.log_lengthscale.exp()
        eye = torch.eye(h.shape[-2], dtype=h.dtype, device=h.device)
        noisy = rbf(scaled, scaled).unsqueeze(-3) + self.log_noise.exp()[:, None, None] * eye
        return self.log_amplitude.exp()[:, None, None] * noisy

    def expected_log_density(self, mean: Tensor, variance: Tensor, descriptors: Tensor, base: Tensor) -> Tensor:
        """E[log p(Psi | H)] over H = mean + sqrt(variance) base, with base [S, N, Q] and descriptors [N, E]."""
        covariance = self.covariance(mean + variance.sqrt() * base)  # [S, E, N, N]
        return _LogDensity.apply(covariance, descriptors.T).sum(-1).mean()

    @torch.no_grad()
    def predict(self, h: Tensor, mean: Tensor, descriptors: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance [K, E] of the descriptors at latents h [K, Q], given those at `mean` [N, Q]."""
        return self.conditional(h, mean, descriptors)[:2]

    def conditional(self, h: Tensor, mean: Tensor, descriptors: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Mean and variance [K, E] as in `predict`, and their derivatives in h [K, E, Q]."""
        factor = safe_cholesky(self.covariance(mean), "The decoder's covariance")  # [E, N, N]
        scale, amplitude = self.log_lengthscale.exp(), self.log_amplitude.exp()
        cross = amplitude[:, None, None] * rbf(mean / scale, h / scale)  # [E, N, K]
        towards = (mean.unsqueeze(1) - h) / scale.square()  # [N, K, Q], d log cross / dh
        weights = torch.cholesky_solve(descriptors.T.unsqueeze(-1), factor)  # [E, N, 1]
        solved = torch.cholesky_solve(cross, factor)  # [E, N, K]
        variance = amplitude[:, None] * (1.0 + self.log_noise.exp()[:, None]) - (solved * cross).sum(-2)
        d_mean = torch.einsum("enk,nkq->keq", weights * cross, towards)
        d_variance = -2.0 * torch.einsum("enk,nkq->keq", solved * cross, towards)
        floor = 1e-6 * amplitude[:, None]
        return (cross.mT @ weights).squeeze(-1).T, torch.maximum(variance, floor).T, d_mean, d_variance
