"""Utilities of a GP over tasks: how predictable is each from the known ones, and how much would one tell about others?

Its kernel is the model's own between latents, k_h, averaged over what the encoder does not know about the latents:

    k(c, r) = E[k_h(h_c, h_r)],        h_c − h_r ~ N(m_c − m_r, diag(v_c + v_r − 2 cov_cr))

with the means, variances and covariances of the encoder; of tasks that were observed it is q(h), without covariance.
Where the encoder knows the latents, distances mean what they mean to the model. Where it does not, no observed task
is close, but tasks with like descriptors are close to each other, and so observing one of them tells about the others.
Given the N known tasks,

    cov(c, r) = k(c, r) − k(c)' K⁻¹ k(r),        var(c) = cov(c, c),        0 ≤ var ≤ 1
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from distpaml.model.collapsed import safe_cholesky
from distpaml.select.candidates import Candidates
from distpaml.select.context import SelectionContext
from distpaml.select.latent_process import JITTER, expected_kernel, scaled
from distpaml.types import Array

SURPRISE = 0.1
"""Variance of what a task's own log r adds to that of its neighbourhood, as a share of the prior's."""


def integrated_variance(candidates: Candidates, context: SelectionContext) -> Array:
    """How much observing the candidate c lowers the variance over the domain (ALC): u = mean_r cov(r, c)² / var(c)."""
    return TaskProcess.of(context).reductions(candidates).mean(1).cpu().numpy()


def task_information(candidates: Candidates, context: SelectionContext) -> Array:
    """How many nats observing it tells about another task, averaged over the domain (EPIG, of whole tasks).

    u = mean_r ½ log (var(r) + ν) − ½ log (var(r) − cov(r, c)² / var(c) + ν),      ν = mean_d σ_d² / σ_f²

    Every task counts by the share of its variance that goes, not by the amount, so that a domain's worst tasks do not
    outweigh all others. ν is the noise in units of the kernel's variance: what lies below cannot be seen.
    """
    process, posterior = TaskProcess.of(context), context.posterior
    noise = (posterior.noise / posterior.amplitude).mean()
    before = process.variances(process.references)
    after = (before - process.reductions(candidates)).clamp(min=0.0)
    return (0.5 * ((before + noise) / (after + noise)).log().mean(1)).cpu().numpy()


def weighted_variance(candidates: Candidates, context: SelectionContext) -> Array:
    """`integrated_variance` where difficult tasks count more: u = Σ_r w_r cov(r, c)² / var(c) / Σ_r w_r.

    Difficult are tasks that need a large noise ratio r_i. Its logarithm is carried over to others by the kernel:

        log w(r) = k(r)' (K + 0.1 I)⁻¹ log r,      log r [N] of the tasks that the model has seen

    the posterior mean of log r ~ GP(0, s² k), s being the spread of log r a priori; 1 far from all tasks.
    """
    process = TaskProcess.of(context)
    weights = process.difficulty(context)  # [R]
    return (process.reductions(candidates) @ (weights / weights.sum())).cpu().numpy()


@dataclass
class TaskProcess:
    """The GP given the known tasks."""

    context: SelectionContext
    known: tuple[Candidates, ...]  # N tasks in all: those that the model has seen, and those that are pending
    references: Candidates
    factor: Tensor  # Cholesky's of K [N, N]

    @classmethod
    def of(cls, context: SelectionContext) -> "TaskProcess":
        known = (context.known.take(slice(context.fitted)), *context.pending)
        own = torch.cat([torch.cat([kernel(a, b, context) for b in known], 1) for a in known])
        own.fill_diagonal_(1.0 + JITTER)
        return cls(context, known, context.references, safe_cholesky(own, "The covariance of the tasks"))

    def whitened(self, tasks: Candidates) -> Tensor:
        """C⁻¹ k [N, K], where K = C C'."""
        cross = torch.cat([kernel(some, tasks, self.context) for some in self.known])
        return torch.linalg.solve_triangular(self.factor, cross, upper=False)

    def variances(self, tasks: Candidates) -> Tensor:
        """var [K]."""
        return _remaining(self.whitened(tasks))

    def reductions(self, candidates: Candidates) -> Tensor:
        """cov(r, c)² / var(c) [K, R]: how much each candidate lowers the variance at each reference."""
        ours, theirs = self.whitened(candidates), self.whitened(self.references)
        covariance = kernel(candidates, self.references, self.context) - ours.T @ theirs
        return covariance.square() / _remaining(ours)[:, None]

    def difficulty(self, context: SelectionContext) -> Tensor:
        """w [R] at the references."""
        seen = self.known[0]
        covariance = kernel(seen, seen, context).fill_diagonal_(1.0 + SURPRISE)
        ratio = context.model.embeddings.ratio.double().to(context.device)
        carried = torch.linalg.solve(covariance, ratio.log())  # [N]
        return (kernel(self.references, seen, context) @ carried).exp()


def _remaining(whitened: Tensor) -> Tensor:
    """1 − k' K⁻¹ k of every task [K]."""
    return (1.0 + JITTER - whitened.square().sum(0)).clamp(min=JITTER)


def kernel(a: Candidates, b: Candidates, context: SelectionContext) -> Tensor:
    """k between different tasks [A, B]."""
    covariance: Tensor | float = 0.0
    if a.encoder is not None and b.encoder is not None:
        rate = context.posterior.rate_h
        covariance = a.encoder.covariance(a.descriptors, b.descriptors).to(rate) * rate.square()
    ours, theirs = (scaled(some.mean, some.variance, context) for some in (a, b))
    return expected_kernel(*ours, *theirs, covariance)
