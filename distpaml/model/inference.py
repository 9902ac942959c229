"""The latents of new tasks, all at once, with the model fixed.

For every task, q(h) = N(n, diag t) maximises the evidence lower bound of its own data,

    -1/2 sum_d [ |y_d - m_d(n)|^2 + sum_q t_q |dm_d/dn_q|^2 + sum_points var_d(n) ] / sigma_d^2  -  KL(q(h) || N(0, I)),

to first order in t / length-scale^2, which is small even for the prior. m and var are the posterior's at h = n.
Given n, the best t is closed-form, 1 / (1 + sum_d |dm_d/dn_q|^2 / sigma_d^2). In n this is a least-squares problem
with few unknowns: Levenberg-Marquardt, batched over tasks, from the best point of a coarse set (local optima are
real) that has the training embeddings in it.
"""

from dataclasses import dataclass

import torch
from scipy.stats import norm, qmc
from torch import Tensor

from distpaml.model.expectations import rbf
from distpaml.model.posterior import Latents, Posterior

BLOCK = 10
"""Tasks that are inferred together; their features [BLOCK, T, L] stay in cache."""


@dataclass
class _Step:
    """The objective at n [B, Q], and the gradient and Gauss-Newton curvature of all but the prior."""

    value: Tensor  # [B]
    gradient: Tensor  # [B, Q]
    curvature: Tensor  # [B, Q, Q]

    def update(self, tasks: Tensor, other: "_Step", rows: Tensor) -> None:
        """Take over `rows` of another for `tasks`."""
        self.value[tasks] = other.value[rows]
        self.gradient[tasks] = other.gradient[rows]
        self.curvature[tasks] = other.curvature[rows]


@torch.no_grad()
def infer(posterior: Posterior, x: Tensor, y: Tensor, counts: list[int], starts: Tensor, steps: int = 100) -> Latents:
    """q(h) of N tasks from inputs [N, T, dx], targets [N, T, D] and their valid rows; `starts` [S, Q] are tried too."""
    starts = torch.cat([starts, coarse_starts(starts)])
    blocks = [slice(i, i + BLOCK) for i in range(0, len(x), BLOCK)]
    parts = [_infer_block(posterior, x[b], y[b], counts[b], starts, steps) for b in blocks]
    return Latents(torch.cat([p.mean for p in parts]), torch.cat([p.variance for p in parts]))


def coarse_starts(like: Tensor, size: int = 128) -> Tensor:
    """A low-discrepancy sample of the prior [size, Q]."""
    points = qmc.Sobol(like.shape[-1], scramble=False).random(size)
    return torch.as_tensor(norm.ppf((points + 0.5 / size) / (1.0 + 1.0 / size))).to(like)


def _infer_block(posterior: Posterior, x: Tensor, y: Tensor, counts: list[int], starts: Tensor, steps: int) -> Latents:
    valid = torch.arange(x.shape[1], device=x.device) < torch.tensor(counts, device=x.device)[:, None]
    kx = rbf(x * posterior.rate_x, posterior.zx) * valid.unsqueeze(-1)  # [B, T, L]
    n = _best_start(posterior, kx, y, starts)
    here = _evaluate(posterior, kx, y, valid, n)
    damping = n.new_full((len(n),), 1e-3)
    eye = torch.eye(n.shape[-1], dtype=n.dtype, device=n.device)
    active = torch.arange(len(n), device=n.device)
    for _ in range(steps):
        curvature = here.curvature[active] + eye
        curvature = curvature + torch.diag_embed(damping[active, None] * curvature.diagonal(dim1=-2, dim2=-1))
        move = torch.linalg.solve(curvature, (here.gradient - n)[active].unsqueeze(-1)).squeeze(-1)
        there = _evaluate(posterior, kx[active], y[active], valid[active], n[active] + move)
        gain = there.value - here.value[active]
        better = gain > 0
        moved = active[better]
        n[moved] += move[better]
        here.update(moved, there, better)
        damping[active] = torch.where(better, damping[active] * 0.1, damping[active] * 10.0)
        settled = (gain.abs() < 1e-3 + 1e-6 * there.value.abs()) | (damping[active] > 1e6)
        active = active[~settled]
        if not len(active):
            break
    return Latents(n, 1.0 / (1.0 + here.curvature.diagonal(dim1=-2, dim2=-1)))


def _best_start(posterior: Posterior, kx: Tensor, y: Tensor, starts: Tensor) -> Tensor:
    """For every task the start with the smallest squared residuals and prior penalty [B, Q]."""
    kappa = rbf(starts * posterior.rate_h, posterior.zh)  # [S, L]
    weights = (kappa.T.unsqueeze(-1) * posterior.alpha.unsqueeze(1)).flatten(1)  # [L, S D]
    mean = (kx @ weights).unflatten(-1, (len(starts), -1))  # [B, T, S, D]
    loss = ((y.unsqueeze(2) - mean).square() / posterior.noise).sum((1, 3))
    return starts[(loss + starts.square().sum(-1)).argmin(1)]


def _evaluate(posterior: Posterior, kx: Tensor, y: Tensor, valid: Tensor, n: Tensor) -> _Step:
    scaled = n * posterior.rate_h
    kappa = rbf(scaled, posterior.zh)  # [B, L]
    slope = (
        kappa.unsqueeze(1) * (posterior.zh - scaled.unsqueeze(1)).mT * posterior.rate_h[:, None]
    )  # dkappa/dn [B, Q, L]
    features = torch.cat([kappa.unsqueeze(1), slope], 1)  # [B, 1 + Q, L]
    weights = (features.unsqueeze(-1) * posterior.alpha).permute(0, 2, 1, 3).flatten(2)  # [B, L, (1 + Q) D]
    outputs = (kx @ weights).unflatten(-1, (features.shape[1], -1)) / posterior.noise.sqrt()
    residual = y / posterior.noise.sqrt() - outputs[:, :, 0]  # [B, T, D]
    jacobian = outputs[:, :, 1:]  # [B, T, Q, D]
    curvature = torch.einsum("btqd,btrd->bqr", jacobian, jacobian)
    value = -0.5 * (residual.square().sum((1, 2)) + n.square().sum(-1))
    gradient = torch.einsum("btqd,btd->bq", jacobian, residual)

    spread, spread_slope = _total_variance(posterior, kx, valid, kappa, slope)
    value = value - 0.5 * spread
    # the closed-form t: its share of the bound is -sum_q log(1 + curvature_qq) / 2
    value = value - 0.5 * torch.log1p(curvature.diagonal(dim1=-2, dim2=-1)).sum(-1)
    return _Step(value, gradient - 0.5 * spread_slope, curvature)


def _total_variance(
    posterior: Posterior, kx: Tensor, valid: Tensor, kappa: Tensor, slope: Tensor
) -> tuple[Tensor, Tensor]:
    """sum over points and outputs of var_d / sigma_d^2 [B], and its gradient in n [B, Q]."""
    points = valid.sum(1) * (posterior.amplitude / posterior.noise).sum()
    values, slopes = [], []
    for k, kap, slo in zip(kx, kappa, slope, strict=True):
        phi = torch.linalg.solve_triangular(posterior.chol, (k * kap).T, upper=False)  # [L, T]
        known = posterior.information @ phi
        values.append((known * phi).sum())
        back = torch.linalg.solve_triangular(posterior.chol.T, known, upper=True)  # [L, T]
        slopes.append(2.0 * (slo * (back * k.T).sum(1)).sum(1))
    return points - torch.stack(values), -torch.stack(slopes)
