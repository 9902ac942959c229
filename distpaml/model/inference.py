"""The latents of new tasks, all at once, with the model fixed.

For every task, q(h) = N(n, diag t) maximises the evidence lower bound of its own data,

    -1/2 sum_d [ |y_d - m_d(n)|^2 + sum_q t_q |dm_d/dn_q|^2 + sum_points var_d(n) ] / sigma_d^2  -  KL(q(h) || N(0, I)),

to first order in t / length-scale^2, which is small even for the prior. m and var are the posterior's at h = n.
Given n, the best t is closed-form, 1 / (1 + sum_d |dm_d/dn_q|^2 / sigma_d^2). In n this is a least-squares problem
with few unknowns: damped Newton steps, batched over tasks, whose Hessians begin as Gauss-Newton's and learn by BFGS;
from the best point of a coarse set (local optima are real) that has the training embeddings in it.
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
    """The objective at n [B, Q], its gradient, and Gauss-Newton curvatures of its terms."""

    value: Tensor  # [B]
    gradient: Tensor  # [B, Q]
    curvature: Tensor  # [B, Q, Q]
    spread: Tensor  # [B, Q, Q], Gauss-Newton curvature of the variance's term

    def update(self, tasks: Tensor, other: "_Step", rows: Tensor) -> None:
        """Take over `rows` of another for `tasks`."""
        self.value[tasks] = other.value[rows]
        self.gradient[tasks] = other.gradient[rows]
        self.curvature[tasks] = other.curvature[rows]
        self.spread[tasks] = other.spread[rows]


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
    hessian = here.curvature + here.spread + torch.eye(n.shape[-1], dtype=n.dtype, device=n.device)
    damping = torch.full_like(here.value, 1e-3)
    active = torch.arange(len(n), device=n.device)
    for _ in range(steps):
        model = hessian[active]
        damped = model + torch.diag_embed(damping[active, None] * model.diagonal(dim1=-2, dim2=-1))
        move = torch.linalg.solve(damped, here.gradient[active].unsqueeze(-1)).squeeze(-1)
        there = _evaluate(posterior, kx[active], y[active], valid[active], n[active] + move)
        hessian[active] = _bfgs(model, move, here.gradient[active] - there.gradient)
        promised = (move * here.gradient[active]).sum(-1)
        better = there.value > here.value[active]
        moved = active[better]
        n[moved] += move[better]
        here.update(moved, there, better)
        damping[active] = torch.where(better, damping[active] * 0.1, damping[active] * 4.0)
        active = active[promised > 1e-3 + 1e-7 * here.value[active].abs()]
        if not len(active):
            break
    return Latents(n, 1.0 / (1.0 + here.curvature.diagonal(dim1=-2, dim2=-1)))


def _bfgs(hessian: Tensor, move: Tensor, change: Tensor) -> Tensor:
    """Hessians [B, Q, Q] after gradients changed by `change` [B, Q] along `move` [B, Q], where that is convex."""
    pushed = (hessian @ move.unsqueeze(-1)).squeeze(-1)
    along, before = (move * change).sum(-1), (move * pushed).sum(-1)
    rank_one = change.unsqueeze(-1) * change.unsqueeze(-2) / along[:, None, None]
    updated = hessian + rank_one - pushed.unsqueeze(-1) * pushed.unsqueeze(-2) / before[:, None, None]
    return torch.where((along > 1e-3 * before)[:, None, None], updated, hessian)


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

    spread, spread_slope = _scaled_variance(posterior, kx, valid, kappa, slope)
    deviation = spread_slope / (2.0 * spread.sqrt().unsqueeze(-1))  # Jacobian of sqrt(spread)
    # the closed-form t has its share of the bound too: -sum_q log(1 + curvature_qq) / 2
    share = torch.log1p(curvature.diagonal(dim1=-2, dim2=-1)).sum(-1)
    return _Step(
        value - 0.5 * (spread.sum(1) + share),
        gradient - 0.5 * spread_slope.sum(1) - n,
        curvature,
        torch.einsum("btq,btr->bqr", deviation, deviation),
    )


def _scaled_variance(
    posterior: Posterior, kx: Tensor, valid: Tensor, kappa: Tensor, slope: Tensor
) -> tuple[Tensor, Tensor]:
    """sum_d var_d / sigma_d^2 of every point [B, T], and its gradient in n [B, T, Q]."""
    features = (kx * kappa.unsqueeze(1)).flatten(0, 1).T  # [L, B T]
    phi = torch.linalg.solve_triangular(posterior.chol, features, upper=False)
    known = posterior.information @ phi
    back = torch.linalg.solve_triangular(posterior.chol.T, known, upper=True).T.unflatten(0, kx.shape[:2])  # [B, T, L]
    prior = valid * (posterior.amplitude / posterior.noise).sum()
    spread = prior - (known * phi).sum(0).unflatten(0, kx.shape[:2])
    return spread.clamp(min=1e-12), -2.0 * (back * kx) @ slope.mT
