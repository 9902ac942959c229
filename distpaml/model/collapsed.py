"""The collapsed bound: the optimal q(u) in closed form, and the bound's gradient too.

With K = K_ZZ = L L', per-output noise s_d = sigma_d^2, M points in all and the statistics of `expectations`
(b_d = Psi1'y_d, psi0 = M sigma_f^2):

    A = L^-1 Psi2 L^-T,   W_d = I + A / s_d,   v_d = L^-1 b_d,   w_d = W_d^-1 v_d / s_d

    F = sum_d [ -M/2 log(2 pi s_d) - log|W_d|/2 - (y_d'y_d + psi0 - tr A)/(2 s_d) + v_d'w_d/(2 s_d) ]

    dF/dA   = sum_d (I - W_d^-1 - w_d w_d') / (2 s_d)             dF/dPsi2 = L^-T dF/dA L^-1
    dF/dK   = L^-T [ sum_d (I - W_d^-1 - w_d w_d' - A/s_d)/2 ] L^-1
    dF/db_d = L^-T w_d / s_d

Reference: Titsias & Lawrence 2010, Bayesian Gaussian process latent variable model.
"""

import math
from typing import Any

import torch
from torch import Tensor

from distpaml.errors import UserError


class FitError(UserError):
    """The model could not be fitted to these data."""


def safe_cholesky(matrix: Tensor, what: str) -> Tensor:
    """Cholesky factor with as little jitter as needed, from none to 1e-4 of the mean diagonal; then a clear error."""
    scale = matrix.diagonal(dim1=-2, dim2=-1).mean()
    if not torch.isfinite(matrix).all():
        raise FitError(f"{what} is not finite; check the data for NaN or values of very different size.")
    eye = torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
    for jitter in (0.0, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4):
        factor, info = torch.linalg.cholesky_ex(matrix + jitter * scale * eye)
        if not info.any():
            return factor
    raise FitError(f"{what} is not positive definite, even with 1e-4 of its diagonal added.")


def factorise(k: Tensor, psi2: Tensor, noise: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """chol(K) [L, L], A [L, L] and chol(W_d) [D, L, L]."""
    chol = safe_cholesky(k, "The covariance of the inducing points")
    half = torch.linalg.solve_triangular(chol, psi2, upper=False)
    a = torch.linalg.solve_triangular(chol, half.T, upper=False)
    a = 0.5 * (a + a.T)
    eye = torch.eye(len(a), dtype=a.dtype, device=a.device)
    return chol, a, safe_cholesky(eye + a / noise[:, None, None], "The posterior precision of the inducing points")


class CollapsedBound(torch.autograd.Function):
    """(K [L, L], Psi1'Y [L, D], Psi2 [L, L], noise [D], psi0 [], yy [D], points) -> F []."""

    @staticmethod
    def forward(
        ctx: Any, k: Tensor, psi1y: Tensor, psi2: Tensor, noise: Tensor, psi0: Tensor, yy: Tensor, points: int
    ) -> Tensor:
        chol, a, root = factorise(k, psi2, noise)
        v = torch.linalg.solve_triangular(chol, psi1y, upper=False).T.unsqueeze(-1)  # [D, L, 1]
        w = torch.cholesky_solve(v, root).squeeze(-1) / noise[:, None]  # [D, L]
        vw = (v.squeeze(-1) * w).sum(-1)
        residual = yy + psi0 - a.diagonal().sum()
        log_det = 2.0 * root.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        ctx.save_for_backward(chol, a, root, w, vw, residual, noise)
        ctx.points = points
        return -0.5 * (points * (2.0 * math.pi * noise).log() + log_det + (residual - vw) / noise).sum()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (g,) = grads
        chol, a, root, w, vw, residual, noise = ctx.saved_tensors
        inverse = torch.cholesky_inverse(root)  # [D, L, L]
        eye = torch.eye(len(a), dtype=a.dtype, device=a.device)
        half = 0.5 * (eye - inverse - w.unsqueeze(-1) * w.unsqueeze(-2))
        inner = torch.stack([(half / noise[:, None, None]).sum(0), half.sum(0) - 0.5 * a * (1.0 / noise).sum()])

        def outer(m: Tensor) -> Tensor:
            """L^-T m, for the last two axes."""
            return torch.linalg.solve_triangular(chol.mT, m, upper=True)

        g_psi2, g_k = outer(outer(inner).mT)
        g_psi1y = outer((w / noise[:, None]).T)
        trace = inverse.diagonal(dim1=-2, dim2=-1).sum(-1)
        g_noise = 0.5 * (
            (len(a) - trace - ctx.points) / noise + (residual - vw) / noise.square() - w.square().sum(-1) / noise
        )
        return g * g_k, g * g_psi1y, g * g_psi2, g * g_noise, -0.5 * g * (1.0 / noise).sum(), None, None
