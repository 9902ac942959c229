"""The latents of new tasks, all at once, with the model fixed.

For every task, q(h) = N(n, diag t) is to maximise the evidence lower bound of its own data. With m and var those of
the posterior at a known h, let

    g(h) = -1/2 sum_d [ |y_d - m_d(h)|^2 + sum_points var_d(h) ] / sigma_d^2

so that the bound is E_q[g(h)] - KL(q(h) || N(0, I)). A task's descriptor may count as evidence too: then g has the
decoder's log density log p(psi | h) in it. Where tasks have a noise of their own, g is that of the best noise ratio for
the misfit S(h) = -2 g(h) (`noise_ratio`), and predictions have another ratio.

To first order in t, which is tiny beside the squared length-scales, the bound is stationary where n maximises
g(n) - |n|^2 / 2 and t_q = 1 / (1 - d^2 g / dh_q^2).

In n this is a least-squares problem with few unknowns: damped Newton steps, batched over tasks, whose Hessians begin
as Gauss-Newton's and learn by BFGS; from the best point of a coarse set (local optima are real) that has the training
embeddings in it. The variances are nearly all of the work and decide little, so the steps are first taken without
them, and then with them.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import torch
from scipy.stats import norm, qmc
from torch import Tensor

from distpaml.model.device import at_once
from distpaml.model.expectations import rbf
from distpaml.model.noise_ratio import best_log_ratio, predictive_log_ratio, profile
from distpaml.model.posterior import Latents, Posterior

BLOCK = 10
"""Tasks that are inferred together on a CPU; their features [BLOCK, T, L] stay in cache."""
GPU_BLOCK = 128
"""Tasks that are inferred together on a GPU."""


Decode = Callable[[Tensor], tuple[Tensor, Tensor, Tensor, Tensor]]
"""h [K, Q] -> mean and variance of the descriptors [K, E] and their derivatives in h [K, E, Q]."""


@dataclass
class Described:
    """The descriptors [B, E] of some tasks as evidence on their latents."""

    descriptors: Tensor
    decode: Decode

    def take(self, tasks: Tensor | slice) -> "Described":
        return Described(self.descriptors[tasks], self.decode)

    def add(self, step: "_Step", n: Tensor) -> "_Step":
        """`step` at n [B, Q] with log p(psi | n) in it."""
        mean, variance, d_mean, d_variance = self.decode(n)
        error = (self.descriptors - mean) / variance
        slope = error.unsqueeze(-1) * d_mean
        slope += 0.5 * (error.square() - 1.0 / variance).unsqueeze(-1) * d_variance
        return replace(
            step,
            value=step.value - 0.5 * (error.square() * variance + variance.log()).sum(-1),
            gradient=step.gradient + slope.sum(1),
            curvature=step.curvature + self._curvature(variance, d_mean),
        )

    def curvature(self, n: Tensor) -> Tensor:
        """Gauss-Newton's [B, Q, Q]."""
        return self._curvature(*self.decode(n)[1:3])

    @staticmethod
    def _curvature(variance: Tensor, d_mean: Tensor) -> Tensor:
        return torch.einsum("beq,ber,be->bqr", d_mean, d_mean, 1.0 / variance)


@dataclass
class _Step:
    """The objective at n [B, Q], its gradient and its Gauss-Newton curvature."""

    value: Tensor  # [B]
    gradient: Tensor  # [B, Q]
    curvature: Tensor  # [B, Q, Q]
    log_ratio: Tensor  # [B], of the best noise ratios
    pull: Tensor  # [B, L], the gradient in kappa of half of what the variances lack of their prior

    def update(self, tasks: Tensor, other: "_Step", rows: Tensor) -> None:
        """Take over all but the curvature in `rows` of another for `tasks`."""
        self.value[tasks] = other.value[rows]
        self.gradient[tasks] = other.gradient[rows]
        self.log_ratio[tasks] = other.log_ratio[rows]
        self.pull[tasks] = other.pull[rows]


@torch.no_grad()
def infer(
    posterior: Posterior,
    x: Tensor,
    y: Tensor,
    counts: list[int],
    starts: Tensor,
    steps: int = 100,
    described: "Described | None" = None,
    task_noise: bool = False,
    block: int | None = None,
) -> Latents:
    """q(h) of N tasks from inputs [N, T, dx], targets [N, T, D] and their valid rows; `starts` [S, Q] are tried too.

    With `described`, the tasks' descriptors are evidence as well. With `task_noise`, each has its own noise ratio.
    `block` tasks are inferred together, as many as suit the device.
    """
    starts = torch.cat([starts, coarse_starts(starts)])
    parts = []
    size = block or at_once(x, cpu=BLOCK, gpu=GPU_BLOCK)
    for i in range(0, len(x), size):
        b = slice(i, i + size)
        own = described and described.take(b)
        parts.append(_infer_block(posterior, x[b], y[b], counts[b], starts, steps, own, task_noise))
    return Latents.joined(parts)


def coarse_starts(like: Tensor, size: int = 128) -> Tensor:
    """A low-discrepancy sample of the prior [size, Q]."""
    points = qmc.Sobol(like.shape[-1], scramble=False).random(size)
    return torch.as_tensor(norm.ppf((points + 0.5 / size) / (1.0 + 1.0 / size))).to(like)


def _infer_block(
    posterior: Posterior,
    x: Tensor,
    y: Tensor,
    counts: list[int],
    starts: Tensor,
    steps: int,
    described: "Described | None",
    task_noise: bool,
) -> Latents:
    numbers = y.shape[-1] * torch.tensor(counts, dtype=y.dtype, device=y.device)  # [B], observed of each task
    valid = torch.arange(x.shape[1], device=x.device) < torch.tensor(counts, device=x.device)[:, None]
    kx = rbf(x * posterior.rate_x, posterior.zx) * valid.unsqueeze(-1)  # [B, T, L]

    def evaluate(tasks: Tensor, n: Tensor, spread: bool) -> _Step:
        own = numbers[tasks] if task_noise else None
        step = _evaluate(posterior, kx[tasks], y[tasks], valid[tasks], n, own, spread)
        return step if described is None else described.take(tasks).add(step, n)

    n = _best_start(posterior, kx, y, starts, described, numbers if task_noise else None)
    _climb(partial(evaluate, spread=False), n, steps)
    here = _climb(partial(evaluate, spread=True), n, steps)
    bend = _second_derivatives(posterior, kx, y, n, here.pull) * (-here.log_ratio).exp()[:, None]
    if described is not None:
        bend = bend - described.curvature(n).diagonal(dim1=-2, dim2=-1)
    ratio = torch.ones_like(here.log_ratio)
    if task_noise:
        mean, variance = posterior.moments(kx * _features(posterior, n)[0].unsqueeze(1))
        ratio = predictive_log_ratio((y - mean).square(), variance, posterior.noise, valid).exp()
    return Latents(n, 1.0 / (1.0 - bend.clamp(max=0.0)), ratio)


def _climb(evaluate: Callable[[Tensor, Tensor], _Step], n: Tensor, steps: int) -> _Step:
    """Move n [B, Q] to where the objective is largest, in place, in at most so many steps; the objective there.

    `evaluate` gives it for some of the tasks. A task is left alone when its next step would gain next to nothing.
    """
    active = torch.arange(len(n), device=n.device)
    here = evaluate(active, n)
    hessian, damping = here.curvature, torch.full_like(here.value, 1e-3)
    for _ in range(steps):
        damped = hessian + torch.diag_embed(damping[:, None] * hessian.diagonal(dim1=-2, dim2=-1))
        moves = torch.linalg.solve(damped, here.gradient.unsqueeze(-1)).squeeze(-1)
        promised = (moves * here.gradient).sum(-1)
        active = active[promised[active] > 1e-3 + 1e-7 * here.value[active].abs()]
        if not len(active):
            break
        move = moves[active]
        there = evaluate(active, n[active] + move)
        hessian[active] = _bfgs(hessian[active], move, here.gradient[active] - there.gradient)
        better = there.value > here.value[active]
        moved = active[better]
        n[moved] += move[better]
        here.update(moved, there, better)
        damping[active] = torch.where(better, damping[active] * 0.1, damping[active] * 4.0)
    return here


def _bfgs(hessian: Tensor, move: Tensor, change: Tensor) -> Tensor:
    """Hessians [B, Q, Q] after gradients changed by `change` [B, Q] along `move` [B, Q], where that is convex."""
    pushed = (hessian @ move.unsqueeze(-1)).squeeze(-1)
    along, before = (move * change).sum(-1), (move * pushed).sum(-1)
    rank_one = change.unsqueeze(-1) * change.unsqueeze(-2) / along[:, None, None]
    updated = hessian + rank_one - pushed.unsqueeze(-1) * pushed.unsqueeze(-2) / before[:, None, None]
    return torch.where((along > 1e-3 * before)[:, None, None], updated, hessian)


def _best_start(
    posterior: Posterior, kx: Tensor, y: Tensor, starts: Tensor, described: Described | None, numbers: Tensor | None
) -> Tensor:
    """For every task the start with the smallest squared residuals and prior penalty [B, Q]."""
    kappa = rbf(starts * posterior.rate_h, posterior.zh)  # [S, L]
    weights = (kappa.T.unsqueeze(-1) * posterior.alpha.unsqueeze(1)).flatten(1)  # [L, S D]
    mean = (kx @ weights).unflatten(-1, (len(starts), -1))  # [B, T, S, D]
    loss = ((y.unsqueeze(2) - mean).square() / posterior.noise).sum((1, 3))  # [B, S]
    if numbers is not None:
        many = numbers[:, None].expand_as(loss)
        loss = profile(loss, best_log_ratio(loss, many), many)
    if described is not None:
        psi, variance, _, _ = described.decode(starts)
        misfit = (described.descriptors.unsqueeze(1) - psi).square() / variance  # [B, S, E]
        loss = loss + (misfit + variance.log()).sum(-1)
    return starts[(loss + starts.square().sum(-1)).argmin(1)]


def _features(posterior: Posterior, n: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """kappa = k_h(n, z) [B, L], dkappa/dn_q and d^2 kappa/dn_q^2 [B, Q, L]."""
    scaled = n * posterior.rate_h
    kappa = rbf(scaled, posterior.zh)
    towards = (posterior.zh - scaled.unsqueeze(1)).mT * posterior.rate_h[:, None]  # [B, Q, L]
    slope = kappa.unsqueeze(1) * towards
    return kappa, slope, slope * towards - kappa.unsqueeze(1) * posterior.rate_h.square()[:, None]


def _outputs(posterior: Posterior, kx: Tensor, features: Tensor) -> Tensor:
    """Means in units of the noise [B, T, F, D] at features [B, F, L], of which the means are linear functions."""
    weights = (features.unsqueeze(-1) * posterior.alpha).permute(0, 2, 1, 3).flatten(2)  # [B, L, F D]
    return (kx @ weights).unflatten(-1, (features.shape[1], -1)) / posterior.noise.sqrt()


def _evaluate(
    posterior: Posterior, kx: Tensor, y: Tensor, valid: Tensor, n: Tensor, numbers: Tensor | None, spread: bool
) -> _Step:
    """The objective and its derivatives at n [B, Q]; without `spread` as if the functions were known."""
    kappa, slope, _ = _features(posterior, n)
    outputs = _outputs(posterior, kx, torch.cat([kappa.unsqueeze(1), slope], 1))
    residual, jacobian = y / posterior.noise.sqrt() - outputs[:, :, 0], outputs[:, :, 1:]  # [B, T, D], [B, T, Q, D]
    curvature = torch.einsum("btqd,btrd->bqr", jacobian, jacobian)
    gradient = torch.einsum("btqd,btd->bq", jacobian, residual)
    misfit = residual.square().sum((1, 2))
    pull = torch.zeros_like(kappa)
    if spread:
        variance, variance_slope, pull = _scaled_variance(posterior, kx, valid, kappa, slope)
        deviation = variance_slope / (2.0 * variance.sqrt().unsqueeze(-1))  # Jacobian of its root [B, T, Q]
        curvature = curvature + deviation.mT @ deviation
        gradient, misfit = gradient - 0.5 * variance_slope.sum(1), misfit + variance.sum(1)
    if numbers is None:
        log_ratio, loss = torch.zeros_like(misfit), misfit
    else:
        log_ratio = best_log_ratio(misfit, numbers)
        loss = profile(misfit, log_ratio, numbers)
    precision = (-log_ratio).exp()  # at the best ratio the profile has the slope that it has at a fixed one
    return _Step(
        -0.5 * (loss + n.square().sum(-1)),
        precision[:, None] * gradient - n,
        precision[:, None, None] * curvature + torch.eye(n.shape[-1], dtype=n.dtype, device=n.device),
        log_ratio,
        pull,
    )


def _scaled_variance(
    posterior: Posterior, kx: Tensor, valid: Tensor, kappa: Tensor, slope: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """sum_d var_d / sigma_d^2 of every point [B, T], its gradient in n [B, T, Q], and `pull` [B, L]."""
    psi = kx * kappa.unsqueeze(1)
    back = _explained(posterior, psi)
    prior = valid * (posterior.amplitude / posterior.noise).sum()
    variance = (prior - (psi * back).sum(-1)).clamp(min=1e-12)
    pull = back.mul_(kx)
    return variance, -2.0 * pull @ slope.mT, pull.sum(1)


def _explained(posterior: Posterior, psi: Tensor) -> Tensor:
    """C^-T I C^-1 psi for features psi [B, T, L], I the posterior's information: psi' times that is explained."""
    phi = torch.linalg.solve_triangular(posterior.chol, psi.flatten(0, 1).T, upper=False)  # [L, B T]
    return (phi.T @ posterior.back).view_as(psi)


def _second_derivatives(posterior: Posterior, kx: Tensor, y: Tensor, n: Tensor, pull: Tensor) -> Tensor:
    """d^2 g / dh_q^2 at n [B, Q], where the variances have this `pull` [B, L]."""
    kappa, slope, bend = _features(posterior, n)
    outputs = _outputs(posterior, kx, torch.cat([kappa.unsqueeze(1), slope, bend], 1))
    mean, jacobian, bent = outputs[:, :, 0], *outputs[:, :, 1:].chunk(2, dim=2)
    residual = y / posterior.noise.sqrt() - mean
    from_mean = (residual.unsqueeze(2) * bent - jacobian.square()).sum((1, 3))
    from_variance = torch.einsum("bql,bl->bq", bend, pull)
    for q in range(n.shape[-1]):
        psi = kx * slope[:, q, None]
        from_variance[:, q] += (_explained(posterior, psi) * psi).sum((1, 2))
    return from_mean + from_variance
