"""Utilities of a GP over latent space that has the model's own kernel between tasks, k_h, and no outputs.

Given the N known tasks it says how predictable every other task is: with K [N, N] the kernel between known tasks and
k(h) [N] that to a latent h,

    cov(h, h') = k_h(h, h') − k(h)' K⁻¹ k(h'),        var(h) = cov(h, h)

Latents that are not known exactly use the expected kernel. Length-scales are those of k_h, so distances mean what they
mean to the model, and every utility here is bounded.
"""

from dataclasses import dataclass

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
SURPRISE = 0.1
"""Variance of what a task's own log r adds to that of its neighbourhood, as a share of the prior's."""


def integrated_variance(candidates: Candidates, context: SelectionContext) -> Array:
    """How much observing the candidate c lowers the variance over the domain (ALC): u = mean_r cov(r, c)² / var(c)."""
    return LatentProcess.of(context).reductions(candidates, context).mean(1).cpu().numpy()


def weighted_variance(candidates: Candidates, context: SelectionContext) -> Array:
    """`integrated_variance` where difficult tasks count more: u = Σ_r w_r cov(r, c)² / var(c) / Σ_r w_r.

    Difficult are tasks that need a large noise ratio r_i. Its logarithm is carried over latent space by the kernel:

        log w(h) = k(h)' (K + 0.1 I)⁻¹ log r,      log r [N] of the tasks that the model has seen

    the posterior mean of log r ~ GP(0, s² k_h), s being the spread of log r a priori; 1 far from all tasks.
    """
    process = LatentProcess.of(context)
    weights = process.difficulty(context)  # [R]
    return (process.reductions(candidates, context) @ (weights / weights.sum())).cpu().numpy()


def kernel_surprisal(candidates: Candidates, context: SelectionContext) -> Array:
    """How far the candidate is from being predictable: u = E_q(h)[var(h)] = 1 − tr(K⁻¹ E_q(h)[k(h) k(h)']).

    0 at a task that is known exactly, 1 far from all; the paper's surprisal in the metric of the model's kernel.
    """
    process = LatentProcess.of(context)
    inverse = torch.cholesky_inverse(process.factor)  # [N, N]
    mean, variance = process.scaled(candidates.mean, candidates.variance)
    rows = max(1, TABLE // inverse.numel() // mean.shape[1])
    parts = zip(mean.split(rows), variance.split(rows), strict=True)
    explained = torch.cat([(process.products(*part) * inverse).sum((1, 2)) for part in parts])
    return (1.0 - explained).clamp(min=0.0).cpu().numpy()


@dataclass
class LatentProcess:
    """The GP given the known tasks, in units of the length-scales."""

    rate: Tensor  # [Q]
    mean: Tensor  # [N, Q]
    variance: Tensor  # [N, Q]
    factor: Tensor  # Cholesky's of K [N, N]

    @classmethod
    def of(cls, context: SelectionContext) -> "LatentProcess":
        rate = context.posterior.rate_h
        mean, variance = context.tensor(context.mean) * rate, context.tensor(context.variance) * rate.square()
        own = expected(mean, variance, mean, variance).fill_diagonal_(1.0 + JITTER)
        return cls(rate, mean, variance, safe_cholesky(own, "The covariance of the tasks"))

    def scaled(self, mean: Array, variance: Array) -> tuple[Tensor, Tensor]:
        """q(h) of some tasks in units of the length-scales."""
        return tuple(
            torch.as_tensor(part).to(self.rate) * scale
            for part, scale in ((mean, self.rate), (variance, self.rate.square()))
        )  # type: ignore[return-value]

    def reductions(self, candidates: Candidates, context: SelectionContext) -> Tensor:
        """cov(r, c)² / var(c) [K, R]: how much each candidate lowers the variance at each reference."""
        h, spread = self.scaled(candidates.mean, candidates.variance)
        references, known = self.scaled(context.references, 0.0 * context.references)
        to_candidates = whitened(self.factor, expected(self.mean, self.variance, h, spread))  # [N, K]
        to_references = whitened(self.factor, expected(self.mean, self.variance, references, known))  # [N, R]
        covariance = expected(h, spread, references, known) - to_candidates.T @ to_references  # [K, R]
        remaining = (1.0 + JITTER - to_candidates.square().sum(0)).clamp(min=JITTER)
        return covariance.square() / remaining[:, None]

    def difficulty(self, context: SelectionContext) -> Tensor:
        """w [R] at the references."""
        seen = slice(context.fitted)
        own, spread = self.mean[seen], self.variance[seen]
        references, known = self.scaled(context.references, 0.0 * context.references)
        covariance = expected(own, spread, own, spread).fill_diagonal_(1.0 + SURPRISE)
        ratio = context.model.embeddings.ratio.double().to(context.device)
        carried = torch.linalg.solve(covariance, ratio.log())  # [N]
        return (expected(references, known, own, spread) @ carried).exp()

    def products(self, mean: Tensor, variance: Tensor) -> Tensor:
        """E[k_i(h) k_j(h)] [K, N, N] of h ~ N(mean, diag variance), both [K, Q], where k_i(h) = E_q(h_i)[k(h, h_i)].

        With widths a_i = 1 + t_i, per dimension: k_i k_j is a Gaussian in h of precision p = 1/a_i + 1/a_j around
        c = (n_i/a_i + n_j/a_j) / p, times exp(−(n_i − n_j)² / 2(a_i + a_j)).
        """
        a = 1.0 + self.variance  # [N, Q]
        one, other = a[:, None], a[None]  # towards [N, N, Q]
        p = 1.0 / one + 1.0 / other
        c = (self.mean[:, None] / one + self.mean[None] / other) / p
        fixed = (self.mean[:, None] - self.mean[None]).square() / (one + other) + one.log() + other.log()
        wider = 1.0 + p * variance[:, None, None]  # [K, N, N, Q]
        moved = (mean[:, None, None] - c).square() * p / wider + wider.log()
        return (-0.5 * (fixed + moved).sum(-1)).exp()


def expected(a: Tensor, a_variance: Tensor, b: Tensor, b_variance: Tensor) -> Tensor:
    """E[k(h, h')] [A, B] of independent h ~ N(a, diag), h' ~ N(b, diag), in units of the length-scales."""
    spread = 1.0 + a_variance[:, None] + b_variance  # [A, B, Q]
    return (-0.5 * ((a[:, None] - b).square() / spread + spread.log()).sum(-1)).exp()


def whitened(factor: Tensor, values: Tensor) -> Tensor:
    """factor⁻¹ values."""
    return torch.linalg.solve_triangular(factor, values, upper=False)
