"""The collapsed bound: the optimal q(u) in closed form, and the bound's gradient too.

With K_ZZ = sigma_f^2 C C' (C the factor of the correlations), a = sigma_f^2, noise s_d = sigma_d^2, M points in all
and the whitened statistics of `expectations` (A and V = sum_i Phi_i Y_i, both for a = 1):

    W_d = I + a A / s_d,   w_d = W_d^-1 v_d sqrt(a) / s_d,    v_d a column of V

    F = sum_d [ -M/2 log(2 pi s_d) - log|W_d|/2 - (y_d'y_d + a (M - tr A))/(2 s_d) + sqrt(a) v_d'w_d/(2 s_d) ]

Its gradient, with H_d = (I - W_d^-1 - w_d w_d')/2:

    dF/dA = a sum_d H_d / s_d        dF/dv_d = sqrt(a) w_d / s_d        dF/dK = C^-T [ sum_d H_d - a A/(2 s_d) ] C^-1

Reference: Titsias & Lawrence 2010, Bayesian Gaussian process latent variable model.
"""

import math
from dataclasses import dataclass
from itertools import count
from typing import Any

import torch
from torch import Tensor

from distpaml.errors import UserError
from distpaml.model.shards import Cotangent, Query, ShardPool

TICKETS = count(1)
"""Numbers of evaluations, by which a shard knows whether a gradient belongs to its last one."""


class FitError(UserError):
    """The model could not be fitted to these data."""


def safe_cholesky(matrix: Tensor, what: str) -> Tensor:
    """Cholesky factor with as little jitter as needed, up to 1e-4 of the mean diagonal; then a clear error."""
    if not torch.isfinite(matrix).all():
        raise FitError(f"{what} is not finite; check the data for NaN or for values of very different size.")
    scale = matrix.detach().diagonal(dim1=-2, dim2=-1).mean()
    eye = torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
    for jitter in (0.0, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4):
        factor, info = torch.linalg.cholesky_ex(matrix + jitter * scale * eye if jitter else matrix)
        if not info.any():
            return factor
    raise FitError(f"{what} is not positive definite, even with 1e-4 of its diagonal added.")


@dataclass
class Whitened:
    """The statistics in the basis in which the prior of u is white; all that q(u) needs."""

    chol: Tensor  # C [L, L]
    a: Tensor  # a A [L, L]
    root: Tensor  # chol(W_d) [D, L, L]
    w: Tensor  # w_d [D, L]
    vw: Tensor  # sqrt(a) v_d'w_d [D]
    queries: list[Query]  # what the shards were asked


def whiten(k: Tensor, query: Query, amplitude: Tensor, noise: Tensor, pool: ShardPool) -> Whitened:
    """Ask all shards and factorise; `query` has the q(H) of all tasks, and no factor of k [L, L] yet."""
    chol = safe_cholesky(k, "The covariance of the inducing points")
    sizes = list(pool.sizes)
    latents = zip(query.mean.split(sizes), query.variance.split(sizes), strict=True)
    queries = [query._replace(chol=chol, mean=n, variance=t) for n, t in latents]
    shares = pool.forward(queries)
    square, excess, target = (torch.stack(parts).sum(0) for parts in zip(*shares, strict=True))
    half = torch.linalg.solve_triangular(chol, excess, upper=False)
    a = amplitude * (square + torch.linalg.solve_triangular(chol, half.T, upper=False))
    a = 0.5 * (a + a.T)
    eye = torch.eye(len(a), dtype=a.dtype, device=a.device)
    root = safe_cholesky(eye + a / noise[:, None, None], "The posterior precision of the inducing points")
    v = amplitude.sqrt() * target.T.unsqueeze(-1)  # [D, L, 1]
    w = torch.cholesky_solve(v, root).squeeze(-1) / noise[:, None]
    return Whitened(chol, a, root, w, (v.squeeze(-1) * w).sum(-1), queries)


class CollapsedBound(torch.autograd.Function):
    """(k, rate, zx, zh, mean, variance, amplitude, noise, squares [D], points, pool) -> F []."""

    @staticmethod
    def forward(
        ctx: Any, k: Tensor, rate: Tensor, zx: Tensor, zh: Tensor, mean: Tensor, variance: Tensor,
        amplitude: Tensor, noise: Tensor, squares: Tensor, points: int, pool: ShardPool,
    ) -> Tensor:  # fmt: skip
        white = whiten(k, Query(rate, zx, zh, k, mean, variance, next(TICKETS)), amplitude, noise, pool)
        residual = squares + amplitude * points - white.a.diagonal().sum()
        log_det = 2.0 * white.root.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        ctx.white, ctx.residual, ctx.points, ctx.pool = white, residual, points, pool
        ctx.save_for_backward(amplitude, noise)
        return -0.5 * (points * (2.0 * math.pi * noise).log() + log_det + (residual - white.vw) / noise).sum()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (g,) = grads
        white, (amplitude, noise) = ctx.white, ctx.saved_tensors
        inverse = torch.cholesky_inverse(white.root)  # [D, L, L]
        h = (-0.5) * torch.addcmul(inverse, white.w.unsqueeze(-1), white.w.unsqueeze(-2))
        h.diagonal(dim1=-2, dim2=-1).add_(0.5)
        over_noise = (1.0 / noise).sum()
        g_a = torch.einsum("d,dij->ij", 1.0 / noise, h)  # in a A

        def solve(m: Tensor) -> Tensor:
            """C^-T m."""
            return torch.linalg.solve_triangular(white.chol.T, m, upper=True)

        features = amplitude * solve(g_a)
        target = amplitude.sqrt() * solve((white.w / noise[:, None]).T)
        excess = solve(features.T)
        g_k = solve(solve(h.sum(0) - 0.5 * over_noise * white.a).T)
        parts = ctx.pool.backward(white.queries, Cotangent(features, 0.5 * (excess + excess.T), target))
        rate, zx, zh, mean, variance = zip(*parts, strict=True)

        trace = inverse.diagonal(dim1=-2, dim2=-1).sum(-1)
        g_amplitude = (g_a * white.a).sum() + 0.5 * (white.vw / noise).sum()
        g_amplitude = g_amplitude / amplitude - 0.5 * ctx.points * over_noise
        g_noise = 0.5 * (
            (len(white.a) - trace - ctx.points - white.w.square().sum(-1)) / noise
            + (ctx.residual - white.vw) / noise.square()
        )
        shared = [torch.stack(part).sum(0) for part in (rate, zx, zh)]
        own = [torch.cat(part) for part in (mean, variance)]
        gradients = [g * part for part in (g_k, *shared, *own, g_amplitude, g_noise)]
        return (*gradients, None, None, None)
