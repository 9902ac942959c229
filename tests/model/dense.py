"""The same model in plain dense formulas, point by point, for the tests to compare with."""

import math

import numpy as np
import torch
from torch import Tensor

from distpaml.model.expectations import correction_factors, expected_kernel
from distpaml.model.latent_gp import JITTER, LatentGP
from distpaml.model.posterior import Posterior


def double(*shape: int, generator: torch.Generator | None = None) -> Tensor:
    """Standard normal numbers in float64."""
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def kernel(a: Tensor, b: Tensor) -> Tensor:
    """exp(-|a - b|^2 / 2), difference by difference: [N, D], [M, D] -> [N, M]."""
    return torch.exp(-0.5 * (a[:, None] - b[None]).square().sum(-1))


def log_correction(mean: Tensor, variance: Tensor, z: Tensor) -> Tensor:
    """delta [..., L, L] = log E2 - log e1 - log e1' under h ~ N(mean, diag variance), both [..., Q]; z [L, Q]."""
    left, right = correction_factors(mean, variance, z)
    return left @ right.mT


def expected_kernel_product(mean: Tensor, variance: Tensor, z: Tensor) -> Tensor:
    """E2 [..., L, L] under h ~ N(mean, diag variance), both [..., Q]; z [L, Q]."""
    e1 = expected_kernel(mean, variance, z)
    return e1.unsqueeze(-1) * e1.unsqueeze(-2) * log_correction(mean, variance, z).exp()


def hermite(mean: Tensor, variance: Tensor, order: int) -> tuple[Tensor, Tensor]:
    """Nodes [K, Q] and weights [K] of Gauss-Hermite quadrature under N(mean, diag variance), both [Q]."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(order)
    axes = [torch.as_tensor(nodes) * v.sqrt() + m for m, v in zip(mean, variance, strict=True)]
    grid = torch.cartesian_prod(*axes).reshape(-1, len(mean))
    weight = torch.cartesian_prod(*[torch.as_tensor(weights)] * len(mean)).reshape(-1, len(mean)).prod(-1)
    return grid, weight / math.sqrt(2 * math.pi) ** len(mean)


def covariance(gp: LatentGP, a: Tensor, b: Tensor) -> Tensor:
    """k((x, h), (x', h')) with rows [x, h]."""
    scale = gp.kernel.base_kernel.lengthscale.detach().squeeze(0)
    return gp.kernel.outputscale.detach() * kernel(a / scale, b / scale)


def inducing(gp: LatentGP) -> tuple[Tensor, Tensor]:
    """Z [L, dx + Q] and K_ZZ with the model's jitter."""
    z = torch.cat([gp.zx, gp.zh], -1).detach()
    return z, covariance(gp, z, z) + JITTER * gp.kernel.outputscale.detach() * torch.eye(len(z), dtype=z.dtype)


def conditional(posterior: Posterior, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance [P, D] of the functions at inputs [P, dx] and latents [P, Q], from q(u) = N(m_d, S_d):

    k' K^-1 m_d  and  a - k' K^-1 (K - S_d) K^-1 k
    """
    amplitude, factor = posterior.amplitude, posterior.amplitude.sqrt() * posterior.chol
    k = amplitude * kernel(x * posterior.rate_x, posterior.zx) * kernel(h * posterior.rate_h, posterior.zh)  # [P, L]
    projected = torch.linalg.solve(factor @ factor.T, k.T)  # [L, P]
    means, variances = [], []
    for w, root in zip(posterior.w, posterior.root, strict=True):
        s = factor @ torch.linalg.inv(root @ root.T) @ factor.T
        means.append(k @ torch.linalg.solve(factor @ factor.T, factor @ w))
        variances.append(amplitude - (k.T * projected).sum(0) + (projected * (s @ projected)).sum(0))
    return torch.stack(means, -1), torch.stack(variances, -1)
