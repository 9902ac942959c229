"""The stochastic fit: the paper's procedure, with an explicit q(u) and one sample of H per step.

q(u) is whitened as in gpytorch's `VariationalStrategy`: K_ZZ = a C C', u^d = sqrt(a) C v^d and q(v^d) = N(m_d, S_d),
full rank. At a point with features phi = C^-1 k [L], given h, the function has

    mean_d = sqrt(a) phi'm_d        variance_d = a (1 - phi'phi + phi' S_d phi)

A step takes B of the N tasks and one sample h_i = n_i + sqrt(t_i) eps_i, and follows the gradient of

    N/B sum_{i in batch} [ sum_j E_q(f)[log p(y_ij | f(x_ij, h_i))] - KL(q(h_i) || p(h_i)) ]
        + log p(Psi | H) + log p(r) - sum_d KL(q(v^d) || N(0, I))

Every task is as likely as the others to be in a batch, so its mean is the bound, whatever the lengths of the tasks;
when they are equally long, N/B is points over points in the batch. The decoder's density does not factorise over
tasks, so it is there in full, at the sample of all latents.

`svgp`: Adam over everything. `svgp-ngd`: natural gradients for q(u), Adam for the rest.

References: Hensman, Fusi & Lawrence 2013, Gaussian processes for big data; Salimbeni, Eleftheriadis & Hensman 2018,
Natural gradients in practice.
"""

import math
from collections.abc import Sequence
from copy import deepcopy
from typing import NamedTuple

import torch
from gpytorch.optim import NGD
from gpytorch.variational import CholeskyVariationalDistribution, NaturalVariationalDistribution
from torch import Tensor, nn
from torch.distributions import Normal, kl_divergence

from distpaml.config.schema import FitConfig, ModelConfig
from distpaml.model.collapsed import FitError, safe_cholesky
from distpaml.model.device import normal
from distpaml.model.expectations import rbf
from distpaml.model.fit import Fit, place
from distpaml.model.latent_gp import LatentGP, Terms, TrainingSet
from distpaml.model.placement import descriptor_embedding
from distpaml.model.posterior import Posterior

CHECK = 100
"""Steps between two exact evaluations of the bound, which decide the state that is kept."""
NATURAL_RATE = 0.1
"""Size of a natural-gradient step; 1 would jump to the optimum of one sample of H."""


class Inducing(NamedTuple):
    """q(v^d) = N(mean_d, root_d root_d') for every output."""

    mean: Tensor  # m [D, L]
    root: Tensor  # lower triangular [D, L, L]

    @classmethod
    def of(cls, module: nn.Module) -> "Inducing":
        """What a variational distribution of gpytorch stands for."""
        q = module()
        return cls(q.mean, q.lazy_covariance_matrix.root.to_dense())

    def divergence(self) -> Tensor:
        """KL(q(v) || N(0, I)) []."""
        squares = self.root.square().sum() + self.mean.square().sum() - self.mean.numel()
        return 0.5 * squares - _log_diagonal(self.root)

    def posterior(self, gp: LatentGP) -> Posterior:
        """In the form that predictions use, S_d = root^-T root^-1; the factor is that of S_d from its last row up."""
        inputs, kernel = gp.bound_inputs(), gp.values
        chol = safe_cholesky(inputs.chol, "The covariance of the inducing points")
        reverse = safe_cholesky((self.root @ self.root.mT).flip(-1, -2), "The posterior covariance")
        eye = torch.eye(self.root.shape[-1], dtype=self.root.dtype, device=self.root.device)
        root = torch.linalg.solve_triangular(reverse.flip(-1, -2).mT, eye.expand_as(reverse), upper=False)
        known = chol, self.mean, root
        return Posterior(inputs.rate, kernel.rate_h, kernel.variance, gp.noise, inputs.zx, inputs.zh, *known)


def explicit_bound(gp: LatentGP, data: TrainingSet, q: Inducing) -> Terms:
    """The bound of an explicit q(v), exact under q(H): the collapsed bound less sum_d KL(q(v^d) || optimal q(v^d)).

    It can be differentiated in q alone.
    """
    with torch.no_grad():
        terms, best = gp.terms(data), Posterior.collapsed(gp, data)
    spread = (best.root.mT @ q.root).square().sum()
    distance = (best.root.mT @ (q.mean - best.w).unsqueeze(-1)).square().sum()
    gap = 0.5 * (spread + distance - q.mean.numel()) - _log_diagonal(q.root) - _log_diagonal(best.root)
    return terms._replace(data=terms.data - gap)


def sampled_bound(gp: LatentGP, data: TrainingSet, q: Inducing, tasks: Tensor, eps: Tensor) -> Tensor:
    """An unbiased estimate of the bound from the batch `tasks` [B] and the standard normal numbers eps [N, Q]."""
    rate_x, rate_h, amplitude = gp.values
    h = (gp.mean + gp.variance.sqrt() * eps)[tasks]
    valid = data.valid[tasks]  # [B, T]
    rows = valid.nonzero()[:, 0]  # [P], the place in the batch of each point's task
    x, y = data.x[tasks][valid], data.y[tasks][valid]
    k = rbf(x * rate_x, gp.zx * rate_x) * rbf(h * rate_h, gp.zh * rate_h)[rows]  # [P, L]
    chol = safe_cholesky(gp.correlations(), "The covariance of the inducing points")
    phi = torch.linalg.solve_triangular(chol, k.T, upper=False)  # [L, P]
    mean = amplitude.sqrt() * q.mean @ phi  # [D, P]
    variance = amplitude * (1.0 - phi.square().sum(0) + (q.root.mT @ phi).square().sum(-2))
    noise = gp.noise[:, None] * gp.log_ratio.exp()[tasks][rows]  # [D, P]
    likelihood = -0.5 * ((2.0 * math.pi * noise).log() + ((y.T - mean).square() + variance) / noise).sum()

    own = Normal(gp.mean[tasks], gp.variance[tasks].sqrt(), validate_args=False)
    latent = kl_divergence(own, Normal(torch.zeros_like(h), torch.ones_like(h), validate_args=False)).sum()
    decoder = gp.decoder.expected_log_density(gp.mean, gp.variance, data.descriptors, eps.unsqueeze(0))
    return len(gp.mean) / len(tasks) * (likelihood - latent) + decoder - q.divergence() + gp.ratio_log_prior()


def fit_stochastic(
    data: TrainingSet, first: LatentGP | None, model: ModelConfig, fit: FitConfig, seed: int
) -> tuple[Fit, Inducing]:
    """Fit from `first`, or from the descriptors' embedding; q(v) starts as the prior.

    Every `CHECK` steps the exact bound is computed, and the best state by it is the result. A step that fails ends
    the fit there.
    """
    generator = torch.Generator().manual_seed(seed)
    if first is None:
        embedding = descriptor_embedding(data.descriptors, data.base.shape[-1], generator)
        first = LatentGP(data.x.shape[-1], data.y.shape[-1], embedding, data.descriptors, model.noise == "task")
    gp = first
    place(gp, data, model)
    q, optimisers = _optimisers(gp, fit)
    values: list[float] = []
    kept = None
    try:
        for step in range(fit.adam_steps + 1):
            if step % CHECK == 0 or step == fit.adam_steps:
                with torch.no_grad():
                    values.append(explicit_bound(gp, data, Inducing.of(q)).total.item())
                if values[-1] == max(values):
                    kept = deepcopy((gp.state_dict(), q.state_dict()))
            if step < fit.adam_steps:
                _step(gp, data, q, optimisers, fit.batch_tasks, generator)
    except FitError:
        if kept is None:
            raise
    if kept is None:
        raise FitError("The bound is not finite; check the data for NaN.")
    gp.load_state_dict(kept[0])
    q.load_state_dict(kept[1])
    with torch.no_grad():
        return Fit(gp, values), Inducing.of(q)


def _step(
    gp: LatentGP,
    data: TrainingSet,
    q: nn.Module,
    optimisers: Sequence[torch.optim.Optimizer],
    batch: int,
    generator: torch.Generator,
) -> None:
    tasks = torch.randperm(len(gp.mean), generator=generator)[:batch].to(gp.mean.device)
    eps = normal(*gp.mean.shape, like=gp.mean, generator=generator)
    for optimiser in optimisers:
        optimiser.zero_grad()
    loss = -sampled_bound(gp, data, Inducing.of(q), tasks, eps)
    if not torch.isfinite(loss):
        raise FitError("The bound is not finite.")
    loss.backward()
    for optimiser in optimisers:
        optimiser.step()


def _optimisers(gp: LatentGP, fit: FitConfig) -> tuple[nn.Module, list[torch.optim.Optimizer]]:
    """q(v) as the prior, and what moves it and the model."""
    size, outputs = len(gp.zx), torch.Size([len(gp.noise)])
    if fit.kind == "svgp-ngd":
        natural = NaturalVariationalDistribution(size, outputs).to(gp.mean)
        adam = torch.optim.Adam(gp.parameters(), fit.learning_rate)
        return natural, [NGD(natural.parameters(), num_data=1, lr=NATURAL_RATE), adam]
    plain = prior_inducing(gp)
    return plain, [torch.optim.Adam([*gp.parameters(), *plain.parameters()], fit.learning_rate)]


def prior_inducing(gp: LatentGP) -> nn.Module:
    """q(v) as the prior, full rank, to be moved by any optimiser."""
    return CholeskyVariationalDistribution(len(gp.zx), torch.Size([len(gp.noise)])).to(gp.mean)


def _log_diagonal(root: Tensor) -> Tensor:
    """sum of log |root_ll| over everything: half the log-determinants of root root'."""
    return root.diagonal(dim1=-2, dim2=-1).abs().log().sum()
