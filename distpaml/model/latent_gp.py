"""The parameters of the latent sparse GP, and its collapsed bound.

    f^d ~ GP(0, k),    k((x, h), (x', h')) = sigma_f^2 k_x(x, x') k_h(h, h')      ARD-RBF, one for all D outputs
    y^d = f^d(x, h_i) + N(0, r_i sigma_d^2),    h_i ~ N(0, I),    q(h_i) = N(n_i, diag t_i)

r_i is the noise ratio of task i: 1 for all tasks (`model.noise: shared`, the paper's), or log r_i ~ N(0, 2^2) and
learned (`task`). A task that the model cannot follow then costs a larger r_i instead of a larger noise for all.

An inducing point belongs to the task whose data it was placed on and is stored relative to that task's embedding:
z_h = n_owner + offset. When an embedding moves, its inducing points move along.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from gpytorch.constraints import Positive
from gpytorch.kernels import RBFKernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood
from torch import Tensor, nn
from torch.distributions import Normal, kl_divergence

from distpaml.model.collapsed import CollapsedBound
from distpaml.model.decoder import Decoder, DescriptorModel
from distpaml.model.expectations import rbf
from distpaml.model.shards import BoundInputs, LocalShards, ShardPool

RATIO_SPREAD = 2.0
"""Standard deviation of the logarithm of a noise ratio, a priori."""
JITTER = 1e-9
"""Added to the diagonal of K_ZZ, in units of sigma_f^2; it bounds how exactly data can be fitted."""


@dataclass
class TrainingSet:
    """What the bound is a function of, beside the parameters."""

    x: Tensor  # [N, T, dx], standardised
    y: Tensor  # [N, T, D], standardised
    counts: list[int]  # [N]
    descriptors: Tensor  # [N, E], raw
    base: Tensor  # [S, N, Q], fixed samples for the decoder's term
    pool: ShardPool

    @classmethod
    def make(
        cls, x: Tensor, y: Tensor, counts: list[int], descriptors: Tensor, base: Tensor, shards: int = 1
    ) -> "TrainingSet":
        """With shards in this process."""
        return cls(x, y, counts, descriptors, base, LocalShards(x, y, counts, shards))

    @property
    def points(self) -> int:
        return sum(self.counts)

    @property
    def observed(self) -> int:
        """How many numbers were observed; bounds are compared per observed number."""
        return self.points * self.y.shape[-1]

    @cached_property
    def squares(self) -> Tensor:
        """y_id'y_id [N, D]."""
        return self.y.square().sum(1)

    @cached_property
    def lengths(self) -> Tensor:
        """T_i [N]."""
        return torch.tensor(self.counts, dtype=self.y.dtype, device=self.y.device)

    @cached_property
    def valid(self) -> Tensor:
        """Which rows are data [N, T]."""
        return torch.arange(self.x.shape[1], device=self.x.device) < self.lengths[:, None]


class Kernel(NamedTuple):
    """A kernel's values: rate_x [dx] and rate_h [Q] are 1 / length-scale, variance [] is sigma_f^2."""

    rate_x: Tensor
    rate_h: Tensor
    variance: Tensor


class Terms(NamedTuple):
    """The bound's terms, whose sum is the bound."""

    data: Tensor
    """Expected log-likelihood of the data less KL(q(u) || p(u))."""
    latent: Tensor
    """-KL(q(H) || p(H))."""
    decoder: Tensor
    """E_q(H)[log p(Psi | H)]."""
    prior: Tensor
    """log p(r), without its constant; zero where tasks share their noise."""

    @property
    def total(self) -> Tensor:
        return self.data + self.latent + self.decoder + self.prior


class LatentGP(nn.Module):
    """All that is learned, save q(u), which is in closed form."""

    LATENT_SCALE = math.log(3.0)
    """Logarithm of the length-scales that a new kernel has."""
    owner: Tensor  # [L], the task each inducing point belongs to
    log_ratio: Tensor  # log r [N]

    def __init__(self, inputs: int, outputs: int, mean: Tensor, descriptors: Tensor, task_noise: bool = False) -> None:
        super().__init__()
        latent = mean.shape[-1]
        positive = {"transform": torch.exp, "inv_transform": torch.log}
        rbf_kernel = RBFKernel(ard_num_dims=inputs + latent, lengthscale_constraint=Positive(**positive))
        self.kernel = ScaleKernel(rbf_kernel, outputscale_constraint=Positive(**positive)).to(mean)
        self.likelihood = GaussianLikelihood(
            batch_shape=torch.Size([outputs]), noise_constraint=Positive(**positive)
        ).to(mean)
        self.kernel.initialize(outputscale=4.0, **{"base_kernel.lengthscale": math.exp(self.LATENT_SCALE)})
        self.likelihood.initialize(noise=1e-2)
        self.mean = nn.Parameter(mean.clone())  # n [N, Q]
        self.log_variance = nn.Parameter(mean.new_full(mean.shape, -12.0))  # log t [N, Q]
        self.task_noise = task_noise
        if task_noise:
            self.log_ratio = nn.Parameter(mean.new_zeros(len(mean)))
        else:
            self.register_buffer("log_ratio", mean.new_zeros(len(mean)))
        self.decoder: DescriptorModel = Decoder(latent, descriptors)
        self.place_inducing(mean.new_zeros(0, inputs), torch.zeros(0, dtype=torch.long, device=mean.device))

    def place_inducing(self, zx: Tensor, owner: Tensor) -> None:
        """Put inducing points at inputs zx [L, dx] and at the embeddings of the tasks `owner` [L]."""
        self.zx = nn.Parameter(zx.clone())
        self.offset = nn.Parameter(zx.new_zeros(len(zx), self.mean.shape[-1]))
        self.register_buffer("owner", owner)

    @property
    def values(self) -> Kernel:
        rate = 1.0 / self.kernel.base_kernel.lengthscale.squeeze(0)
        split = len(rate) - self.mean.shape[-1]
        return Kernel(rate[:split], rate[split:], self.kernel.outputscale)

    @property
    def noise(self) -> Tensor:
        """sigma_d^2 [D]."""
        return self.likelihood.noise.squeeze(-1)

    @property
    def variance(self) -> Tensor:
        """t [N, Q]."""
        return self.log_variance.exp()

    @property
    def zh(self) -> Tensor:
        """Latents of the inducing points [L, Q]."""
        return self.mean[self.owner] + self.offset

    def correlations(self) -> Tensor:
        """K_ZZ / sigma_f^2 [L, L]."""
        rate_x, rate_h, _ = self.values
        z = torch.cat([self.zx * rate_x, self.zh * rate_h], -1)
        return rbf(z, z) + JITTER * torch.eye(len(z), dtype=z.dtype, device=z.device)

    def bound_inputs(self) -> BoundInputs:
        """Rate, inducing points, q(H) and weights in units of the length-scales; K_ZZ in the place of its factor."""
        rate_x, rate_h, _ = self.values
        latents = self.mean * rate_h, self.variance * rate_h.square()
        return BoundInputs(
            rate_x, self.zx * rate_x, self.zh * rate_h, self.correlations(), *latents, -0.5 * self.log_ratio
        )

    def evidence(self, data: TrainingSet, uncertain: bool = True) -> Tensor:
        """The data's term of the collapsed bound at these parameters []."""
        i, outputs = self.bound_inputs(), data.y.shape[-1]
        variance = i.variance if uncertain else torch.zeros_like(i.variance).detach()
        precision = (-self.log_ratio).exp()
        bound = CollapsedBound.apply(
            i.chol, i.rate, i.zx, i.zh, i.mean, variance, i.log_weight, self.values.variance, self.noise,
            precision @ data.squares, precision @ data.lengths, data.points, data.pool, uncertain,
        )  # fmt: skip
        return bound - 0.5 * outputs * (data.lengths * self.log_ratio).sum()

    def ratio_log_prior(self) -> Tensor:
        """log p(r) without its constant []."""
        return -0.5 * (self.log_ratio / RATIO_SPREAD).square().sum()

    def terms(self, data: TrainingSet, uncertain: bool = True) -> Terms:
        """The collapsed bound at these parameters."""
        posterior = Normal(self.mean, self.variance.sqrt(), validate_args=False)
        prior = Normal(torch.zeros_like(self.mean), torch.ones_like(self.mean), validate_args=False)
        decoder = self.decoder.expected_log_density(self.mean, self.variance, data.descriptors, data.base)
        return Terms(
            self.evidence(data, uncertain), -kl_divergence(posterior, prior).sum(), decoder, self.ratio_log_prior()
        )
