"""The paper's surprisal in the metric of the model's kernel: a GP over latent space with the kernel k_h between tasks.

Given the N known tasks it says how predictable every other task is: with K [N, N] the kernel between known tasks and
k(h) [N] that to a latent h,

    var(h) = 1 − k(h)' K⁻¹ k(h)

Latents that are not known exactly use the expected kernel. Length-scales are those of k_h, so distances mean what they
mean to the model, and the utility is bounded.
"""

import torch
from torch import Tensor

from distpaml.model.collapsed import safe_cholesky
from distpaml.select.candidates import Candidates
from distpaml.select.context import SelectionContext
from distpaml.types import Array

JITTER = 1e-9
"""Added to the variance of every task: far less than what a smooth kernel leaves unexplained between 20 tasks."""
TABLE = 2**20
"""Entries of a table over candidates × tasks × tasks × Q that is held at once."""


def kernel_surprisal(candidates: Candidates, context: SelectionContext) -> Array:
    """How far the candidate is from being predictable: u = E_q(h)[var(h)] = 1 − tr(K⁻¹ E_q(h)[k(h) k(h)']).

    0 at a task that is known exactly, 1 far from all.
    """
    known = scaled(context.mean, context.variance, context)
    own = expected_kernel(*known, *known).fill_diagonal_(1.0 + JITTER)
    inverse = torch.cholesky_inverse(safe_cholesky(own, "The covariance of the tasks"))  # [N, N]
    mean, variance = scaled(candidates.mean, candidates.variance, context)
    rows = max(1, TABLE // inverse.numel() // mean.shape[1])
    parts = zip(mean.split(rows), variance.split(rows), strict=True)
    explained = torch.cat([(_products(*known, *part) * inverse).sum((1, 2)) for part in parts])
    return (1.0 - explained).clamp(min=0.0).cpu().numpy()


def scaled(mean: Array, variance: Array, context: SelectionContext) -> tuple[Tensor, Tensor]:
    """Mean and variance [A, Q] of q(h) of some tasks, in units of the length-scales."""
    rate = context.posterior.rate_h
    return context.tensor(mean) * rate, context.tensor(variance) * rate.square()


def expected_kernel(
    a: Tensor, a_variance: Tensor, b: Tensor, b_variance: Tensor, covariance: Tensor | float = 0.0
) -> Tensor:
    """E[k(h, h')] [A, B] of h ~ N(a, diag) and h' ~ N(b, diag) with this covariance, in units of the length-scales."""
    spread = 1.0 + (a_variance[:, None] + b_variance - 2.0 * covariance).clamp(min=0.0)  # [A, B, Q]
    return (-0.5 * ((a[:, None] - b).square() / spread + spread.log()).sum(-1)).exp()


def _products(known: Tensor, known_variance: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    """E[k_i(h) k_j(h)] [K, N, N] of h ~ N(mean, diag variance), both [K, Q], where k_i(h) = E_q(h_i)[k(h, h_i)].

    With widths a_i = 1 + t_i, per dimension: k_i k_j is a Gaussian in h of precision p = 1/a_i + 1/a_j around
    c = (n_i/a_i + n_j/a_j) / p, times exp(−(n_i − n_j)² / 2(a_i + a_j)).
    """
    a = 1.0 + known_variance  # [N, Q]
    one, other = a[:, None], a[None]  # towards [N, N, Q]
    p = 1.0 / one + 1.0 / other
    c = (known[:, None] / one + known[None] / other) / p
    fixed = (known[:, None] - known[None]).square() / (one + other) + one.log() + other.log()
    wider = 1.0 + p * variance[:, None, None]  # [K, N, N, Q]
    moved = (mean[:, None, None] - c).square() * p / wider + wider.log()
    return (-0.5 * (fixed + moved).sum(-1)).exp()
