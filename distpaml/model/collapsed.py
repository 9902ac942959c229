"""The collapsed bound: the optimal q(u) in closed form, and the bound's gradient too.

Let K_ZZ = sigma_f^2 C C' (C the factor of the correlations), a = sigma_f^2 and s_d = sigma_d^2. Task i has T_i
points and a noise of r_i s_d, so it counts with weight 1 / r_i. With M = sum_i T_i / r_i, S_d = sum_i y_id'y_id / r_i
and the whitened statistics of `expectations` (A and V = sum_i Phi_i Y_i, both weighted and for a = 1):

    W_d = I + a A / s_d,   w_d = W_d^-1 v_d sqrt(a) / s_d,    v_d a column of V

    F = sum_d [ -sum_i T_i/2 log(2 pi s_d) - log|W_d|/2 - (S_d + a (M - tr A))/(2 s_d) + sqrt(a) v_d'w_d/(2 s_d) ]

(`latent_gp` adds -D/2 sum_i T_i log r_i). Its gradient, with H_d = (I - W_d^-1 - w_d w_d')/2:

    dF/dA = a sum_d H_d / s_d        dF/dv_d = sqrt(a) w_d / s_d        dF/dK = C^-T [ sum_d H_d - a A/(2 s_d) ] C^-1
    dF/dM = -a/2 sum_d 1/s_d         dF/dS_d = -1/(2 s_d)

Reference: Titsias & Lawrence 2010, Bayesian Gaussian process latent variable model.
"""

import math
from dataclasses import dataclass
from itertools import count
from typing import Any

import torch
from torch import Tensor

from distpaml.errors import UserError
from distpaml.model.shards import BoundInputs, Cotangent, ShardPool

EVALUATIONS = count(1)
"""Numbers of evaluations, by which a shard knows whether a gradient belongs to its last one."""


class FitError(UserError):
    """The model could not be fitted to these data."""


def safe_cholesky(matrix: Tensor, what: str) -> Tensor:
    """Cholesky factor with as little jitter as needed, up to 1e-4 of the mean diagonal; then a clear error."""
    scale = matrix.detach().diagonal(dim1=-2, dim2=-1).mean()
    for jitter in (0.0, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4):
        jittered = matrix if jitter == 0.0 else matrix + jitter * scale * _eye_like(matrix)
        factor, info = torch.linalg.cholesky_ex(jittered)
        if not info.any() and torch.isfinite(factor.diagonal(dim1=-2, dim2=-1)).all():
            return factor
        if not torch.isfinite(matrix).all():
            raise FitError(f"{what} is not finite; check the data for NaN or for values of very different size.")
    raise FitError(f"{what} is not positive definite, even with 1e-4 of its diagonal added.")


def _eye_like(matrix: Tensor) -> Tensor:
    return torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)


@dataclass
class Whitened:
    """The statistics in the basis in which the prior of u is white; all that q(u) needs."""

    chol: Tensor  # C [L, L]
    a: Tensor  # a A [L, L]
    root: Tensor  # chol(W_d) [D, L, L]
    w: Tensor  # w_d [D, L]
    vw: Tensor  # sqrt(a) v_d'w_d [D]
    inputs: list[BoundInputs]  # of every shard


def whiten(k: Tensor, inputs: BoundInputs, amplitude: Tensor, noise: Tensor, pool: ShardPool) -> Whitened:
    """Evaluate all shards and factorise; `inputs` are those of all tasks, with no factor of k [L, L] yet."""
    chol = safe_cholesky(k, "The covariance of the inducing points")
    sizes = list(pool.sizes)
    latents = zip(*(part.split(sizes) for part in (inputs.mean, inputs.variance, inputs.log_weight)), strict=True)
    each = [inputs._replace(chol=chol, mean=n, variance=t, log_weight=w) for n, t, w in latents]
    square, correction, target = (torch.stack(part).sum(0) for part in zip(*pool.forward(each), strict=True))
    if inputs.uncertain:
        half = torch.linalg.solve_triangular(chol, correction, upper=False)
        square.add_(torch.linalg.solve_triangular(chol, half.T, upper=False))
    a = (0.5 * amplitude) * (square + square.T)
    root = _roots(a, noise)
    v = amplitude.sqrt() * target.T.unsqueeze(-1)  # [D, L, 1]
    w = torch.stack([torch.cholesky_solve(*pair) for pair in zip(v, root, strict=True)]).squeeze(-1) / noise[:, None]
    return Whitened(chol, a, root, w, (v.squeeze(-1) * w).sum(-1), each)


def _roots(a: Tensor, noise: Tensor) -> Tensor:
    """chol(I + a / s_d) [D, L, L], laid out by columns as LAPACK has them.

    One output after the other, here and in `_inverses`: the cache holds one table, not D of them.
    """
    root = a.new_empty(len(noise), *a.shape).mT
    for own, variance in zip(root, noise, strict=True):
        precision = (a / variance).mT  # symmetric to the bit
        precision.diagonal().add_(1.0)
        own.copy_(safe_cholesky(precision, "The posterior precision of the inducing points"))
    return root


def _inverses(root: Tensor) -> Tensor:
    """(root root')^-1 [D, L, L], laid out by rows; they are symmetric to the bit."""
    inverse = torch.empty_like(root, memory_format=torch.contiguous_format)
    for own, factor in zip(inverse, root, strict=True):
        own.copy_(torch.cholesky_inverse(factor).mT)
    return inverse


class CollapsedBound(torch.autograd.Function):
    """(k, rate, zx, zh, mean, variance, log_weight, amplitude, noise, S [D], M [], points, pool, uncertain) -> F []."""

    @staticmethod
    def forward(
        ctx: Any, k: Tensor, rate: Tensor, zx: Tensor, zh: Tensor, mean: Tensor, variance: Tensor, log_weight: Tensor,
        amplitude: Tensor, noise: Tensor, squares: Tensor, mass: Tensor, points: int, pool: ShardPool,
        uncertain: bool,
    ) -> Tensor:  # fmt: skip
        inputs = BoundInputs(rate, zx, zh, k, mean, variance, log_weight, next(EVALUATIONS), uncertain)
        white = whiten(k, inputs, amplitude, noise, pool)
        residual = squares + amplitude * mass - white.a.diagonal().sum()
        log_det = 2.0 * white.root.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        ctx.white, ctx.residual, ctx.points, ctx.pool = white, residual, points, pool
        ctx.save_for_backward(amplitude, noise, mass)
        return -0.5 * (points * (2.0 * math.pi * noise).log() + log_det + (residual - white.vw) / noise).sum()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (g,) = grads
        white, (amplitude, noise, mass) = ctx.white, ctx.saved_tensors
        inverse = _inverses(white.root)  # W_d^-1 [D, L, L]
        over_noise = (1.0 / noise).sum()
        scaled_w = white.w / noise[:, None]
        g_a = torch.addmm(torch.tensordot(1.0 / noise, inverse, 1), scaled_w.T, white.w).mul_(-0.5)  # in a A
        g_a.diagonal().add_(0.5 * over_noise)
        g_white = torch.addmm(inverse.sum(0), white.w.T, white.w).addcmul_(white.a, over_noise).mul_(-0.5)
        g_white.diagonal().add_(0.5 * len(noise))

        def solve(m: Tensor) -> Tensor:
            """C^-T m."""
            return torch.linalg.solve_triangular(white.chol.T, m, upper=True)

        features = amplitude * solve(g_a)
        target = amplitude.sqrt() * solve(scaled_w.T)
        correction = solve(features.T) if white.inputs[0].uncertain else features.new_zeros(0, 0)
        g_k = solve(solve(g_white).T)
        cotangent = Cotangent(features, 0.5 * (correction + correction.T), target)
        rate, zx, zh, *own = zip(*ctx.pool.backward(white.inputs, cotangent), strict=True)

        trace = inverse.diagonal(dim1=-2, dim2=-1).sum(-1)
        g_amplitude = (g_a * white.a).sum() + 0.5 * (white.vw / noise).sum()
        g_amplitude = g_amplitude / amplitude - 0.5 * mass * over_noise
        g_noise = 0.5 * (
            (len(white.a) - trace - ctx.points - white.w.square().sum(-1)) / noise
            + (ctx.residual - white.vw) / noise.square()
        )
        parts = [torch.stack(part).sum(0) for part in (rate, zx, zh)] + [torch.cat(part) for part in own]
        parts += [g_amplitude, g_noise, -0.5 / noise, -0.5 * amplitude * over_noise]
        return (g * g_k, *(g * part for part in parts), None, None, None)
