"""Utilities of the model's own posterior over functions: what would a trajectory of the candidate teach it?

The imagined trajectory has M inputs x_m with the candidate's latent, C = {(x_m, h*)}; a task of the domain has the same
inputs with a reference's latent, R = {(x_m, h_r)}. S_d are the posterior's covariances of output d, given imagined
trajectories of the tasks that are chosen but not observed, and σ_d² is its noise.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from distpaml.model.collapsed import safe_cholesky
from distpaml.model.expectations import rbf
from distpaml.select.candidates import Candidates
from distpaml.select.context import SelectionContext
from distpaml.types import Array

JITTER = {torch.float64: 1e-10, torch.float32: 1e-2}
"""Added to variances, in units of the amplitude: they are small differences of numbers of the model's dtype."""


@torch.no_grad()
def predictive_variance(candidates: Candidates, context: SelectionContext) -> Array:
    """How much observing the candidate lowers the predictive variance, averaged over the domain.

    u = mean_d mean_r 1/M tr( S_d(R, C) (S_d(C) + σ_d² I)⁻¹ S_d(C, R) )        in standardised units
    """
    falls = [
        torch.linalg.vector_norm(imagined.gain, dim=(1, 3)).square().mean(1)
        for imagined in _each_output(candidates, context)
    ]  # [K] each
    return (torch.stack(falls).mean(0) / len(context.inputs)).cpu().numpy()


@torch.no_grad()
def information_gain(candidates: Candidates, context: SelectionContext) -> Array:
    """Nats that a trajectory of the candidate tells about a trajectory of another task, averaged over the domain.

    u = mean_r Σ_d ½ log|S_d(R) + σ_d² I| − ½ log|S_d(R | C) + σ_d² I|

    Reference: Bickford Smith et al. 2023, Prediction-oriented Bayesian active learning (EPIG), here for whole tasks.
    """
    gained = []
    for imagined in _each_output(candidates, context):
        gain = imagined.gain.transpose(1, 2).contiguous()  # [K, R, M, M]
        gained.append(_half_log_det(imagined.references) - _half_log_det(imagined.references - gain.mT @ gain))
    return torch.stack(gained).sum(0).mean(1).cpu().numpy()


def whitened(factor: Tensor, values: Tensor) -> Tensor:
    """factor⁻¹ values for a lower triangular factor [..., M, M] and values [..., M, C]."""
    return torch.linalg.solve_triangular(factor, values, upper=False)


def _half_log_det(covariance: Tensor) -> Tensor:
    """½ log|covariance| [...] of matrices [..., M, M]."""
    factor = safe_cholesky(covariance, "The covariance of an imagined trajectory")
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


@dataclass
class Imagined:
    """Trajectories of K candidates and R references, for one output."""

    gain: Tensor  # chol(S(C) + σ² I)⁻¹ S(C, R) [K, M, R, M]
    references: Tensor  # S(R) + σ² I [R, M, M]


@dataclass
class Points:
    """Scaled latents and the whitened features of the M points at each of them."""

    h: Tensor  # [K, Q]
    phi: Tensor  # C⁻¹ k [L, K M]


def _each_output(candidates: Candidates, context: SelectionContext) -> Iterator[Imagined]:
    field = _Field(context)
    c, r, p = (
        field.points(latents) for latents in (candidates.mean, context.references.mean, context.mean[context.fitted :])
    )
    prior = field.prior(c, r)  # [K M, R M]
    for d, noise in enumerate(context.posterior.noise):
        cross = torch.addmm(prior, c.phi.T, field.explained(d, r), alpha=-1.0)
        own, references = field.blocks(d, c), field.blocks(d, r)
        least = noise / context.posterior.amplitude + JITTER[context.model.descriptors.dtype]
        if len(p.h):
            seen = field.prior(p, p) - p.phi.T @ field.explained(d, p)
            seen.diagonal().add_(least)
            factor = safe_cholesky(seen, "The covariance of the chosen tasks")
            to_c, to_r = (
                whitened(factor, field.prior(p, other) - field.explained(d, p).T @ other.phi) for other in (c, r)
            )
            cross -= to_c.T @ to_r
            own, references = own - field.squares(to_c), references - field.squares(to_r)
        observed = least * torch.eye(len(field.x)).to(own)
        factor = safe_cholesky(own + observed, "The covariance of a candidate")
        scale = context.posterior.amplitude.sqrt()
        gain = whitened(factor, cross.unflatten(0, (-1, len(field.x)))).mul_(scale)
        yield Imagined(gain.unflatten(2, (-1, len(field.x))), (references + observed) * scale.square())


class _Field:
    """The posterior over functions at M inputs and any latents: covariances in units of the amplitude a.

    S_d = k − φ'(I − P_d) φ with whitened features φ and P_d the posterior of the whitened inducing values.
    """

    def __init__(self, context: SelectionContext) -> None:
        self.posterior, self.x = context.posterior, context.inputs
        self.kx_own = rbf(self.x, self.x)  # [M, M]
        self.kx = rbf(self.x, self.posterior.zx)  # [M, L]

    def points(self, latents: Array) -> Points:
        h = torch.as_tensor(latents).to(self.posterior.zh) * self.posterior.rate_h
        k = (rbf(h, self.posterior.zh)[:, None] * self.kx).flatten(0, 1)  # [K M, L]
        return Points(h, whitened(self.posterior.chol, k.T))

    def prior(self, a: Points, b: Points) -> Tensor:
        """k between all points [A M, B M]."""
        kernel = rbf(a.h, b.h)[:, None, :, None] * self.kx_own[None, :, None, :]  # [A, M, B, M]
        return kernel.flatten(2).flatten(0, 1)

    def explained(self, d: int, a: Points) -> Tensor:
        """(I − P_d) φ [L, A M]."""
        return a.phi - torch.cholesky_solve(a.phi, self.posterior.root[d])

    def blocks(self, d: int, a: Points) -> Tensor:
        """S_d of the points at each latent [A, M, M]."""
        return self.kx_own - self.squares(a.phi) + self.squares(whitened(self.posterior.root[d], a.phi))

    def squares(self, features: Tensor) -> Tensor:
        """The M × M blocks on the diagonal of features' features [A, M, M] of [L, A M]."""
        rows = features.unflatten(1, (-1, len(self.x))).permute(1, 2, 0)  # [A, M, L]
        return rows @ rows.mT
