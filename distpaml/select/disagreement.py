"""Disagreement of a committee: models that explain the same data, but carry it over to other tasks differently.

A few tasks hardly say how fast the dynamics change from task to task, so the length-scales of k_h are little more than
a guess, and fits that compete differ mostly there. The committee is the fitted model and, for every dimension q of the
latent, two more whose length-scale ℓ_q is √2 times shorter or longer. Each has the optimal q(u) of the same data, so
members agree about known tasks and differ between and beyond them.

Reference: Seung, Opper & Sompolinsky 1992, Query by committee.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from distpaml.model.collapsed import whiten
from distpaml.model.expectations import rbf
from distpaml.model.latent_gp import JITTER
from distpaml.model.shards import BoundInputs, LocalShards
from distpaml.select.candidates import Candidates
from distpaml.select.context import SelectionContext
from distpaml.types import Array

FACTOR = 2.0**0.5
"""How much shorter or longer a length-scale of a member is."""


@torch.no_grad()
def disagreement(candidates: Candidates, context: SelectionContext) -> Array:
    """Variance of the G members' predictions, u = mean_d mean_m 1/G Σ_g e_gd(x_m, h*)², in standardised units.

    e_gd is how far member g's mean of output d is from the committee's. Tasks that are chosen but not observed lower
    it as if members were draws of a Gaussian, f_d = Σ_g z_g e_gd / √G with z ~ N(0, I), and z was then inferred from
    their M points each, E_d [G, points], with noise σ_d²: e' (I + E_d E_d' / G σ_d²)⁻¹ e in the place of Σ_g e_g².
    """
    latents = torch.cat([context.tensor(candidates.mean), context.tensor(context.mean[context.fitted :])])
    means = torch.stack([member.means(latents, context.inputs) for member in committee(context)])  # [G, A, M, D]
    own, pending = (means - means.mean(0)).split([len(candidates), len(latents) - len(candidates)], dim=1)
    seen = pending.permute(3, 0, 1, 2).flatten(2)  # [D, G, P M]
    precision = seen @ seen.mT / (len(means) * context.posterior.noise[:, None, None])
    precision.diagonal(dim1=-2, dim2=-1).add_(1.0)
    weighted = torch.einsum("dgh,hkmd->gkmd", torch.linalg.inv(precision), own)
    return ((own * weighted).mean(0)).mean((1, 2)).cpu().numpy()


@dataclass
class Member:
    """One model of the committee: mean_d(x, h) = Σ_l k_x(x, z_l) k_h(h, z_l) α_ld."""

    rate: Tensor  # [Q]
    zx: Tensor  # [L, dx], in units of the length-scales, as zh
    zh: Tensor  # [L, Q]
    alpha: Tensor  # [L, D]

    def means(self, latents: Tensor, inputs: Tensor) -> Tensor:
        """[K, M, D] at latents [K, Q] and scaled inputs [M, dx]."""
        weights = rbf(inputs, self.zx).T.unsqueeze(-1) * self.alpha.unsqueeze(1)  # [L, M, D]
        means = rbf(latents * self.rate, self.zh) @ weights.flatten(1)
        return means.unflatten(1, (len(inputs), -1))


@torch.no_grad()
def committee(context: SelectionContext) -> Iterator[Member]:
    """The fitted model first; all with the inducing points and embeddings of the fitted one."""
    gp, posterior = context.model.gp, context.posterior
    scaled = context.data.standardised(context.model.inputs, context.model.targets)
    pool = LocalShards(context.tensor(scaled.inputs), context.tensor(scaled.targets), scaled.counts.tolist(), 1)
    z, mean, variance, ratio = (part.detach().to(posterior.zh) for part in (gp.zh, gp.mean, gp.variance, gp.log_ratio))
    each = torch.eye(len(posterior.rate_h)).to(posterior.zh)  # [Q, Q]
    for power in torch.cat([0.0 * each[:1], each, -each]):
        rate = posterior.rate_h * FACTOR**power
        joint = torch.cat([posterior.zx, z * rate], -1)
        correlations = rbf(joint, joint)
        correlations.diagonal().add_(JITTER)
        inputs = BoundInputs(
            posterior.rate_x, posterior.zx, z * rate, correlations, mean * rate, variance * rate.square(), -0.5 * ratio
        )
        white = whiten(correlations, inputs, posterior.amplitude, posterior.noise, pool)
        alpha = posterior.amplitude.sqrt() * torch.linalg.solve_triangular(white.chol.T, white.w.T, upper=True)
        yield Member(rate, posterior.zx, z * rate, alpha)
