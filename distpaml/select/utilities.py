"""Utilities: what a candidate is worth. A utility is a plain function

    utility(mean [K, Q], variance [K, Q], context: SelectionContext) -> [K]        larger is better

of the latents of K candidates and of what is known so far. It scores each candidate alone, so candidates can be ranked
in parts. Name your own in a config as `selection.utility=module:function`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from distpaml import seeds
from distpaml.data import Dataset
from distpaml.errors import UserError
from distpaml.model.collapsed import safe_cholesky
from distpaml.model.device import CPU
from distpaml.model.expectations import rbf
from distpaml.model.meta_model import MetaModel
from distpaml.model.posterior import Posterior
from distpaml.names import nearest
from distpaml.plugins import load_object
from distpaml.types import Array

REFERENCES = 64
"""Latents that represent the task domain in averages over it."""
INPUTS = 8
"""Inputs that represent an imagined trajectory."""
TABLE = 2**17
"""Entries of a candidates × tasks table held at once: it fits in cache."""

LOWEST = 60.0
"""Terms below exp(−60) times the largest are dropped: half a unit in the last place is exp(−37)."""


@dataclass(frozen=True, eq=False)
class Embedded:
    """N tasks in latent space."""

    mean: Array  # [N, Q], of q(h)
    variance: Array  # [N, Q]

    @cached_property
    def exponents(self) -> tuple[Array, Array, Array]:
        """The parts of −log N(h; n, diag t) that all candidates share, tasks within dimensions.

        A matrix [Q N, Q + 1] that maps (h, 1) to h_q − n_iq; 1/2t_iq [Q N, 1]; and ½ Σ_q log 2πt_iq [N, 1].
        """
        tasks, latent = self.mean.shape
        minus = np.hstack([np.repeat(np.eye(latent), tasks, axis=0), -self.mean.T.reshape(-1, 1)])
        offset = 0.5 * np.log(2.0 * np.pi * self.variance).sum(axis=1, keepdims=True)
        return minus, 0.5 / self.variance.T.reshape(-1, 1), offset


@dataclass(frozen=True, eq=False)
class SelectionContext(Embedded):
    """What is known when candidates are ranked: N observed tasks and the fitted model.

    A chosen task that is not observed yet counts as observed: it is among the N, but not in the posterior.
    """

    references: Array  # [R, Q], latents that represent the task domain
    inputs: Array  # [M, dx], standardised inputs that represent a trajectory
    posterior: Posterior
    fitted: int  # how many of the N the posterior has seen
    device: torch.device = CPU  # where utilities that use the model compute

    @cached_property
    def local(self) -> Posterior:
        """The posterior on `device`, in float64."""
        return self.posterior.to(self.device, torch.float64)

    @classmethod
    def of(cls, model: MetaModel, data: Dataset, domain: Array) -> "SelectionContext":
        """After `model` was fitted to `data`; `domain` [K, Q] are the latents of all candidates."""
        latents = model.embeddings
        mean, variance = (tensor.double().numpy().copy() for tensor in (latents.mean, latents.variance))
        references = seeds.rng(0, "references").permutation(domain)[:REFERENCES]
        inputs = model.inputs.apply(data.inputs[data.valid])
        rows = np.linspace(0, len(inputs) - 1, INPUTS).astype(int)
        return cls(mean, variance, references, inputs[rows], model.posterior, len(mean))

    def observing(self, latent: Array) -> "SelectionContext":
        """The context after choosing a task with this latent [Q], to be known as precisely as the others."""
        typical = np.median(self.variance[: self.fitted], axis=0)
        return replace(self, mean=np.vstack([self.mean, latent]), variance=np.vstack([self.variance, typical]))


Utility = Callable[[Array, Array, SelectionContext], Array]


def surprisal(mean: Array, variance: Array, context: Embedded) -> Array:
    """The paper's: −log 1/N Σ_i N(h*; n_i, diag t_i), at the candidate's mean.

    With e_i = Σ_q (h*_q − n_iq)² / 2t_iq + ½ log 2πt_iq and the least of them, e, this is
    log N + e − log Σ_i exp(e − e_i). A term below exp(−60) changes no digit, so the sum is skipped where only
    one term is above: nearly everywhere on a grid, and exp is slow where it underflows. Terms are summed in the order
    of the tasks, so a score has the same bits whatever candidates are scored with it.
    """
    minus, rate, offset = context.exponents  # [Q N, Q + 1], [Q N, 1], [N, 1]
    tasks, latent = context.mean.shape
    rows, counts = max(1, TABLE // (latent * tasks)), np.min_scalar_type(tasks)

    def block(h: Array) -> Array:
        parts = minus @ np.vstack([h.T, np.ones(len(h))])  # [Q N, rows], the differences, each rounded once
        parts *= parts
        parts *= rate
        exponent = parts[:tasks]  # [N, rows]
        for q in range(1, latent):
            exponent += parts[q * tasks : (q + 1) * tasks]
        exponent += offset
        least = exponent.min(axis=0)
        scores = np.log(tasks) + least
        mixed = np.flatnonzero(np.add.reduce(exponent < least + LOWEST, axis=0, dtype=counts) > 1)
        if len(mixed):
            terms = np.take(exponent, mixed, axis=1)  # [N, mixed]
            np.subtract(least[mixed], terms, out=terms)
            np.exp(np.maximum(terms, -LOWEST, out=terms), out=terms)
            scores[mixed] -= np.log(np.add.reduce(terms, axis=0) if len(mixed) > 1 else np.add.accumulate(terms)[-1])
        return scores

    return np.concatenate([block(mean[i : i + rows]) for i in range(0, len(mean), rows)])


def integrated_variance(mean: Array, variance: Array, context: SelectionContext) -> Array:
    """How much observing the candidate reduces the variance of a GP over latent space, averaged over the domain (ALC).

    The GP has the model's own kernel between latents; with c the candidate, r a reference and cov, var the GP's
    posterior given the observed tasks, u = mean_r cov(r, c)² / var(c). Uncertain latents use the expected kernel.
    """
    rate = context.posterior.rate_h.to(context.device, torch.float64)
    h, references, tasks = (torch.as_tensor(a).to(rate) * rate for a in (mean, context.references, context.mean))
    spread, own = (torch.as_tensor(a).to(rate) * rate.square() for a in (variance, context.variance))
    factor = safe_cholesky(
        _expected(tasks, own, tasks, own).fill_diagonal_(1.0 + 1e-6), "The covariance of the tasks"
    )  # [N, N]
    to_candidates = _whitened(factor, _expected(tasks, own, h, spread))  # [N, K]
    to_references = _whitened(factor, _expected(tasks, own, references, torch.zeros_like(references)))  # [N, R]
    prior = _expected(h, spread, references, torch.zeros_like(references))  # [K, R]
    covariance = prior - to_candidates.T @ to_references
    remaining = (1.0 + 1e-6 - to_candidates.square().sum(0)).clamp(min=1e-9)
    return (covariance.square().mean(1) / remaining).cpu().numpy()


@torch.no_grad()
def predictive_variance(mean: Array, variance: Array, context: SelectionContext) -> Array:
    """How much observing the candidate reduces the model's predictive variance, averaged over the domain.

    The imagined trajectory has M inputs with the candidate's latent, C = {(x_m, h*)}. Under the model's posterior of
    output d, at the points R = {(x_m, h_r)} of the domain:

        u = mean_d mean_R diag( cov_d(R, C) (cov_d(C, C) + σ_d² I)⁻¹ cov_d(C, R) )        in standardised units
    """
    field = _Field(context)
    candidates, references = field.features(mean), field.features(context.references)
    pending = field.features(context.mean[context.fitted :])
    reduction = torch.zeros(len(mean), dtype=torch.float64, device=context.device)
    for output in range(len(context.posterior.noise)):
        reduction += field.reduction(output, candidates, references, pending)
    return (reduction / len(context.posterior.noise)).cpu().numpy()


class _Field:
    """The model's posterior over functions at M inputs and any latents, as covariances."""

    def __init__(self, context: SelectionContext) -> None:
        self.posterior = context.local
        self.x = torch.as_tensor(context.inputs).to(self.posterior.zx) * self.posterior.rate_x
        self.kx_own = rbf(self.x, self.x)  # [M, M]
        self.kx = rbf(self.x, self.posterior.zx)  # [M, L]

    def features(self, latents: Array) -> tuple[Tensor, Tensor]:
        """Scaled latents [K, Q] and whitened features [L, K M] of the points at these latents."""
        h = torch.as_tensor(latents).to(self.posterior.zh) * self.posterior.rate_h
        points = (rbf(h, self.posterior.zh)[:, None] * self.kx).flatten(0, 1)  # [K M, L]
        return h, _whitened(self.posterior.chol, points.T)

    def reduction(self, d: int, candidates: tuple, references: tuple, pending: tuple) -> Tensor:
        """Mean reduction of the variance at the references for each candidate [K]."""
        inputs, noise = len(self.x), self.posterior.noise[d]
        known = [(h, phi, _whitened(self.posterior.root[d], phi)) for h, phi in (candidates, references, pending)]
        c, r, p = known
        cross = self._covariance(c, r)  # [K M, R M]
        own = self._blocks(c)  # [K, M, M]
        if len(p[0]):
            identity = torch.eye(len(p[0]) * inputs, dtype=cross.dtype, device=cross.device)
            factor = safe_cholesky(self._covariance(p, p) + noise * identity, "The covariance of the chosen tasks")
            to_c, to_r = (_whitened(factor, self._covariance(p, other)) for other in (c, r))
            cross = cross - to_c.T @ to_r
            pieces = to_c.unflatten(1, (-1, inputs)).permute(1, 2, 0)  # [K, M, P M]
            own = own - pieces @ pieces.mT
        jitter = (noise + 1e-9) * torch.eye(inputs, dtype=own.dtype, device=own.device)
        factor = safe_cholesky(own + jitter, "The covariance of a candidate")
        gain = _whitened(factor, cross.unflatten(0, (-1, inputs)))  # [K, M, R M]
        return gain.square().sum(1).mean(1).double()

    def _covariance(self, a: tuple[Tensor, ...], b: tuple[Tensor, ...]) -> Tensor:
        """a (k − φ'φ + φ'Pφ) between all points at the latents of `a` and of `b`."""
        prior = torch.einsum("kr,mn->kmrn", rbf(a[0], b[0]), self.kx_own).flatten(2).flatten(0, 1)
        return self.posterior.amplitude * (prior - a[1].T @ b[1] + a[2].T @ b[2])

    def _blocks(self, a: tuple[Tensor, ...]) -> Tensor:
        """The covariance of the M points at each latent [K, M, M]."""
        known, rest = (part.unflatten(1, (-1, len(self.x))).permute(1, 2, 0) for part in a[1:])  # [K, M, L]
        return self.posterior.amplitude * (self.kx_own - known @ known.mT + rest @ rest.mT)


def _whitened(factor: Tensor, values: Tensor) -> Tensor:
    return torch.linalg.solve_triangular(factor, values, upper=False)


def _expected(a: Tensor, a_variance: Tensor, b: Tensor, b_variance: Tensor) -> Tensor:
    """E[k(h, h')] [A, B] of independent h ~ N(a, diag), h' ~ N(b, diag), in units of the length-scales."""
    spread = 1.0 + a_variance[:, None] + b_variance  # [A, B, Q]
    return (-0.5 * ((a[:, None] - b).square() / spread + spread.log()).sum(-1)).exp()


UTILITIES: dict[str, Utility] = {
    utility.__name__: utility for utility in (surprisal, integrated_variance, predictive_variance)
}


def get_utility(name: str) -> Utility:
    """The utility called `name`, or the function `module:function`."""
    if ":" in name:
        found = load_object(name, "selection.utility")
        if not callable(found):
            raise UserError(f"selection.utility is {name!r}, but that is not a function.")
        return found
    if name not in UTILITIES:
        known = nearest(name, UTILITIES)
        raise UserError(f"selection.utility is {name!r}, but there is no such utility{known}, or module:function.")
    return UTILITIES[name]
