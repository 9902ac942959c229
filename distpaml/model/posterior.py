"""q(f): what the fitted model knows about the dynamics, and its predictions.

With K_ZZ = a C C', expected features phi = C^-1 (k_x * e1) [L] of a point under q(h), the whitened posterior
q(C^-1 u / sqrt(a)) = N(w_d, P_d) (`collapsed`: P_d = W_d^-1) and alpha_d = C^-T w_d sqrt(a):

    mean_d     = (k_x * e1)' alpha_d
    variance_d = a (1 - phi'phi) + a phi' P_d phi + unknown_d + r sigma_d^2
    unknown_d  = k_x' [ (alpha_d alpha_d' - Q_d) * e1 e1' * expm1(delta) ] k_x,       Q_d = a C^-T (I - P_d) C^-1

the last but one being what not knowing h adds, and r the noise ratio of the task. All moments are exact under q(h);
the mixture itself is not Gaussian.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property

import torch
from torch import Tensor

from distpaml.model.collapsed import Whitened, whiten
from distpaml.model.device import at_once
from distpaml.model.expectations import correction_factors, expected_kernel, expm1_, rbf
from distpaml.model.latent_gp import LatentGP, TrainingSet
from distpaml.model.shards import panels

PREDICTED = 32
"""Tasks that are predicted together on a GPU; on a CPU each is by itself."""


@dataclass
class Latents:
    """q(h) of some tasks, mean and variance [N, Q], and their noise ratios r [N], 1 unless given."""

    mean: Tensor
    variance: Tensor
    ratio: Tensor = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.ratio is None:
            self.ratio = self.mean.new_ones(len(self.mean))

    @classmethod
    def prior(cls, tasks: int, like: Tensor) -> "Latents":
        """N(0, I): all that is known of a task before its first observation."""
        return cls(like.new_zeros(tasks, like.shape[-1]), like.new_ones(tasks, like.shape[-1]))

    @classmethod
    def joined(cls, parts: Sequence["Latents"]) -> "Latents":
        """Those of all parts, in order."""
        return cls(*(torch.cat([getattr(part, field.name) for part in parts]) for field in fields(cls)))

    def take(self, rows: slice | Tensor) -> "Latents":
        """Those of some tasks."""
        return Latents(self.mean[rows], self.variance[rows], self.ratio[rows])

    def to(self, device: torch.device) -> "Latents":
        """The same on `device`."""
        return Latents(self.mean.to(device), self.variance.to(device), self.ratio.to(device))

    def __len__(self) -> int:
        return len(self.mean)


@dataclass
class Posterior:
    """A posterior over the D functions, in standardised units."""

    rate_x: Tensor  # [dx]
    rate_h: Tensor  # [Q]
    amplitude: Tensor  # a []
    noise: Tensor  # [D]
    zx: Tensor  # [L, dx], in units of the length-scales, as zh
    zh: Tensor  # [L, Q]
    chol: Tensor  # C [L, L]
    w: Tensor  # [D, L]
    root: Tensor  # lower triangular [D, L, L], P_d = root^-T root^-1

    def __post_init__(self) -> None:
        for field in fields(self):  # the same memory layout for a fitted and a loaded model: the same bits
            setattr(self, field.name, getattr(self, field.name).detach().clone(memory_format=torch.contiguous_format))
        self.alpha = self.amplitude.sqrt() * torch.linalg.solve_triangular(self.chol.T, self.w.T, upper=True)
        inverse = torch.cholesky_inverse(self.root)
        gap = torch.eye(len(self.zx), dtype=self.zx.dtype, device=self.zx.device) - inverse
        half = torch.linalg.solve_triangular(self.chol.T, gap, upper=True)
        information = self.amplitude * torch.einsum("d,dij->ij", 1.0 / self.noise, gap)  # [L, L]
        self.back = torch.linalg.solve_triangular(self.chol.T, information, upper=True).T.contiguous()  # I C^-1
        self.q = self.amplitude * torch.linalg.solve_triangular(self.chol.T, half.mT, upper=True)  # [D, L, L]

    @cached_property
    def second(self) -> Tensor:
        """alpha_d alpha_d' - Q_d [D, L, L]."""
        return self.alpha.T.unsqueeze(-1) * self.alpha.T.unsqueeze(-2) - self.q

    @classmethod
    @torch.no_grad()
    def collapsed(cls, gp: LatentGP, data: TrainingSet) -> "Posterior":
        """With the optimal q(u) of the collapsed bound."""
        inputs, kernel = gp.bound_inputs(), gp.values
        white: Whitened = whiten(inputs.chol, inputs, kernel.variance, gp.noise, data.pool)
        known = white.chol, white.w, white.root
        return cls(inputs.rate, kernel.rate_h, kernel.variance, gp.noise, inputs.zx, inputs.zh, *known)

    def to(self, device: torch.device, dtype: torch.dtype | None = None) -> "Posterior":
        """The same on `device`, in numbers of type `dtype`."""
        return Posterior(*(getattr(self, field.name).to(device, dtype or self.zx.dtype) for field in fields(self)))

    def divergence(self) -> Tensor:
        """KL(q(u) || p(u)) [D]: (tr P + w'w - L + log|P^-1|) / 2."""
        identity = torch.eye(len(self.zx), dtype=self.zx.dtype, device=self.zx.device)
        inverse_root = torch.linalg.solve_triangular(self.root, identity.expand_as(self.root), upper=False)
        log_det = 2.0 * self.root.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return 0.5 * (inverse_root.square().sum((-2, -1)) + self.w.square().sum(-1) - len(self.zx) + log_det)

    @torch.no_grad()
    def predict(self, x: Tensor, latents: Latents, group: int | None = None) -> tuple[Tensor, Tensor]:
        """Mean and variance [N, T, D] of the outputs at inputs [N, T, dx] of tasks with q(h) `latents`.

        `group` tasks are computed at a time: one on a CPU, many on a GPU.
        """
        size = group or at_once(x, cpu=1, gpu=PREDICTED)
        parts = zip(x.split(size), latents.mean.split(size), latents.variance.split(size), strict=True)
        mean, variance = (torch.cat(part) for part in zip(*(self._moments(*part) for part in parts), strict=True))
        return mean, variance + latents.ratio[:, None, None] * self.noise

    def _moments(self, x: Tensor, n: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
        """Of the functions of G tasks: x [G, T, dx], n and t [G, Q] -> [G, T, D], [G, T, D]."""
        n, t = n * self.rate_h, t * self.rate_h.square()
        psi1 = rbf(x * self.rate_x, self.zx) * expected_kernel(n, t, self.zh).unsqueeze(1)  # [G, T, L]
        mean, variance = self.moments(psi1)
        left, right = correction_factors(n, t, self.zh)
        for p in panels(len(self.zh)):  # of symmetric tables, from the diagonal on: what is right of it counts twice
            unknown = expm1_(left[:, p] @ right[:, p.start :].mT)
            unknown[..., p.stop - p.start :] *= 2.0
            for d, table in enumerate(self.second):
                variance[..., d] += ((psi1[..., p] @ (table[p, p.start :] * unknown)) * psi1[..., p.start :]).sum(-1)
        return mean, variance.clamp(min=0.0)

    def moments(self, psi: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance [G, T, D] of the functions at features psi = k_x * k_h [G, T, L] of known latents."""
        phi = torch.linalg.solve_triangular(self.chol, psi.flatten(0, 1).T, upper=False)  # [L, G T]
        known = torch.linalg.solve_triangular(self.root, phi.expand(len(self.root), -1, -1), upper=False)
        variance = self.amplitude * ((1.0 - phi.square().sum(0)).clamp(min=0.0) + known.square().sum(-2))  # [D, G T]
        return psi @ self.alpha, variance.T.unflatten(0, psi.shape[:2])
